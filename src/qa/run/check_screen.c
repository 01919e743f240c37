/* check_screen.c - checks of the screen: windows by title and class, regions by their pixels. */
#include "qa/run/check_impl.h"

#include "base/file.h"
#include "base/regex.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>

/* ---- windows ------------------------------------------------------------------------------------- */

enum { LISTED = 400 }; /* bytes of titles in a message */

struct window_search {
    struct regex *title, *class; /* NULL: any */
    bool found, unsure;
    struct buf titles; /* titles of the window that was found, else of all windows */
};

static bool matches(struct window_search *w, const struct regex *r, const char *text)
{
    int found = r ? regex_find(r, text, strlen(text)) : 1;
    w->unsure = w->unsure || found < 0;
    return found == 1;
}

static bool look_at_window(void *arg, const char *title, const char *class)
{
    struct window_search *w = arg;
    w->found = matches(w, w->title, title) && matches(w, w->class, class);
    if (w->found)
        buf_clear(&w->titles);
    buf_printf(&w->titles, "%s'%.*s'", w->titles.len ? ", " : "", probe_cut(title, strlen(title)), title);
    if (w->class)
        buf_printf(&w->titles, " of class '%.*s'", probe_cut(class, strlen(class)), class);
    return w->found;
}

static void put_windows(struct probe *probe, const struct window_search *w)
{
    const struct check *c = probe->c;
    autofree char *asked = xasprintf(
        "%s%.200s%s%s%.200s%s", c->text ? " titled '" : "", c->text ? c->text : "", c->text ? "'" : "",
        c->text2 ? " of class '" : "", c->text2 ? c->text2 : "", c->text2 ? "'" : "");
    probe_detail(probe, "expected %s window%s, there is %s", c->absent ? "no" : "a", asked,
                 w->titles.len ? w->titles.data : "none");
}

enum answer check_window(struct probe *probe, struct err *e)
{
    const struct check *c = probe->c;
    struct window_search w = {0};
    int rc = -1;
    buf_init(&w.titles, LISTED);
    w.title = c->text ? regex_new(c->text, false, e) : NULL;
    w.class = c->text2 ? regex_new(c->text2, false, e) : NULL;
    if (!w.title == !c->text && !w.class == !c->text2)
        rc = screen_each_window(probe->s->screen, look_at_window, &w, e);
    if (rc == 0 && w.unsure)
        rc = err_set(e, ERR_USAGE, "matching '%.80s' against window titles takes too long",
                     c->text ? c->text : c->text2);
    if (rc >= 0)
        put_windows(probe, &w);
    regex_free(w.title);
    regex_free(w.class);
    buf_free(&w.titles);
    return rc < 0 ? ANSWER_ERROR : w.found ? ANSWER_YES : ANSWER_NO;
}

/* ---- regions ------------------------------------------------------------------------------------- */

static char *golden_path(const struct probe *probe)
{
    const char *dir = probe->s->golden_dir, *png = probe->c->text;
    return *png == '/' || !dir ? xstrdup(png) : xasprintf("%s/%s", dir, png);
}

/* Crops the check's area from a capture of the screen. */
static int crop_area(const struct probe *probe, const struct image *screen, struct image *out, struct err *e)
{
    const int *a = probe->c->area;
    if (!a[2])
        return image_copy(out, screen, e);
    if (a[0] < 0 || a[1] < 0 || a[2] < 0 || a[3] < 1 || a[0] > screen->w - a[2] || a[1] > screen->h - a[3])
        return err_set(e, ERR_USAGE, "the area [%d, %d, %d, %d] is not within the screen of %dx%d", a[0],
                       a[1], a[2], a[3], screen->w, screen->h);
    return image_crop(out, screen, a[0], a[1], a[2], a[3], e);
}

/* Captures the screen, with and without hidden areas painted over. */
static int capture(const struct probe *probe, struct image *screen, struct image *shown, struct err *e)
{
    if (screen_capture(probe->s->screen, screen, e) || image_copy(shown, screen, e))
        return -1;
    gate_redact(probe->s->gate, shown);
    return 0;
}

/* Crops a reference image of the whole screen to the area. */
static int crop_expected(struct probe *probe, const struct image *screen, struct err *e)
{
    struct image *im = &probe->expected, part;
    if (!probe->c->area[2] || im->w != screen->w || im->h != screen->h)
        return 0;
    if (crop_area(probe, im, &part, e))
        return -1;
    image_free(im);
    *im = part;
    return 0;
}

static enum answer update_golden(struct probe *probe, const char *path, struct err *e)
{
    autofree char *copy = xstrdup(path);
    int rc = dir_make(dirname(copy), e) ? -1 : image_write_png(&probe->actual, path, e);
    if (rc == 0)
        probe_detail(probe, "wrote '%s', %dx%d, from the current screen", path, probe->actual.w,
                     probe->actual.h);
    return rc ? ANSWER_ERROR : ANSWER_YES;
}

/* Excludes hidden pixels from the comparison by copying them to `expected`. A pixel is hidden if it is
 * painted the same in the screen and in its negative, so it is found even if the screen already has that
 * colour. */
static int exclude_hidden(struct probe *probe, const struct image *screen, struct err *e)
{
    const struct image *shown = &probe->actual;
    struct image *to = &probe->expected, negative = {0}, raw = {0}, other = {0};
    if (!probe->s->gate || to->w != shown->w || to->h != shown->h)
        return 0;
    int rc = image_copy(&negative, screen, e);
    for (size_t i = 0; rc == 0 && i < 3 * (size_t)negative.w * (size_t)negative.h; i++)
        negative.rgb[i] ^= 0xff;
    gate_redact(probe->s->gate, &negative);
    rc = rc || crop_area(probe, screen, &raw, e) || crop_area(probe, &negative, &other, e) ? -1 : 0;
    for (size_t i = 0; rc == 0 && raw.rgb && other.rgb && i < 3 * (size_t)raw.w * (size_t)raw.h; i += 3)
        if (!memcmp(other.rgb + i, shown->rgb + i, 3) || memcmp(raw.rgb + i, shown->rgb + i, 3) != 0)
            memcpy(to->rgb + i, shown->rgb + i, 3);
    image_free(&negative);
    image_free(&raw);
    image_free(&other);
    return rc;
}

static enum answer compare(struct probe *probe)
{
    const struct check *c = probe->c;
    const struct image *a = &probe->expected, *b = &probe->actual;
    if (a->w != b->w || a->h != b->h) {
        probe_detail(probe, "expected the image '%s' of %dx%d; the area is %dx%d", c->text, a->w, a->h, b->w,
                     b->h);
        return ANSWER_NO;
    }
    double changed = image_pixels_changed(a, b, c->tolerance);
    probe_detail(probe,
                 "expected at most %g %% of the pixels to differ from '%s' by more than %d, %.4g %% do",
                 100 * c->max_diff, c->text, c->tolerance, 100 * changed);
    return changed <= c->max_diff ? ANSWER_YES : ANSWER_NO;
}

enum answer check_region(struct probe *probe, struct err *e)
{
    autofree char *path = golden_path(probe);
    struct image screen = {0}, shown = {0};
    enum answer a = ANSWER_ERROR;
    int rc = capture(probe, &screen, &shown, e) || crop_area(probe, &shown, &probe->actual, e) ? -1 : 0;
    if (rc == 0 && probe->s->update_golden) {
        a = update_golden(probe, path, e);
    } else if (rc == 0 && !file_exists(path)) {
        err_set(e, ERR_USAGE,
                "reference image '%s' not found; --update-golden creates it from the current screen", path);
    } else if (rc == 0 && !image_read_png(&probe->expected, path, e) && !crop_expected(probe, &screen, e) &&
               !exclude_hidden(probe, &screen, e)) {
        a = compare(probe);
    }
    image_free(&screen);
    image_free(&shown);
    return a;
}

int check_region_pictures(struct probe *probe, int number, struct err *e)
{
    static const char *const names[] = {"expected", "actual", "difference"};
    struct image difference = {0};
    const struct image *images[] = {&probe->expected, &probe->actual, &difference};
    int rc = 0;
    if (!probe->expected.rgb || !probe->s->out_dir)
        return 0;
    if (probe->expected.w == probe->actual.w && probe->expected.h == probe->actual.h)
        rc = image_mark_pixels(&difference, &probe->expected, &probe->actual, probe->c->tolerance, e);
    if (rc == 0)
        rc = dir_make(probe->s->out_dir, e);
    for (int i = 0; i < 3 && rc == 0; i++) {
        char *path =
            images[i]->rgb ? xasprintf("%s/check-%d-%s.png", probe->s->out_dir, number, names[i]) : NULL;
        rc = path ? image_write_png(images[i], path, e) : 0;
        probe->r.pictures[i] = rc ? NULL : path;
        if (rc)
            free(path);
    }
    image_free(&difference);
    return rc;
}
