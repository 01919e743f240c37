/* check_screen.c - checks of what is to be seen: windows by their titles and classes, regions by their pixels. */
#include "qa/run/check_impl.h"

#include "base/file.h"
#include "base/regex.h"

#include <stdlib.h>
#include <string.h>

/* ---- windows ---------------------------------------------------------------------------------------------------- */

enum { LISTED = 400 }; /* bytes of titles in a message */

struct wanted {
    struct regex *title, *class; /* NULL: any */
    bool found, unsure;
    struct buf others; /* what else there is; the one that was found */
};

static bool matches(struct wanted *w, const struct regex *r, const char *text)
{
    int found = r ? regex_find(r, text, strlen(text)) : 1;
    w->unsure = w->unsure || found < 0;
    return found == 1;
}

static bool look_at_window(void *arg, const char *title, const char *class)
{
    struct wanted *w = arg;
    w->found = matches(w, w->title, title) && matches(w, w->class, class);
    if (w->found)
        buf_clear(&w->others);
    buf_printf(&w->others, "%s'%.*s'", w->others.len ? ", " : "", look_cut(title, strlen(title)), title);
    if (w->class)
        buf_printf(&w->others, " of class '%.*s'", look_cut(class, strlen(class)), class);
    return w->found;
}

static void say_windows(struct look *l, const struct wanted *w)
{
    const struct check *c = l->c;
    char *asked = xasprintf("%s%.200s%s%s%.200s%s", c->text ? " titled '" : "", c->text ? c->text : "",
                            c->text ? "'" : "", c->text2 ? " of class '" : "", c->text2 ? c->text2 : "",
                            c->text2 ? "'" : "");
    look_says(l, "expected %s window%s, there is %s", c->absent ? "no" : "a", asked,
              w->others.len ? w->others.data : "none at all");
    free(asked);
}

enum answer check_window(struct look *l, struct err *e)
{
    const struct check *c = l->c;
    struct wanted w = {0};
    int rc = -1;
    buf_init(&w.others, LISTED);
    w.title = c->text ? regex_new(c->text, false, e) : NULL;
    w.class = c->text2 ? regex_new(c->text2, false, e) : NULL;
    if (!w.title == !c->text && !w.class == !c->text2)
        rc = screen_each_window(l->s->screen, look_at_window, &w, e);
    if (rc == 0 && w.unsure)
        rc = err_set(e, ERR_USAGE, "it takes too long to look for '%.80s' in titles",
                     c->text ? c->text : c->text2);
    if (rc >= 0)
        say_windows(l, &w);
    regex_free(w.title);
    regex_free(w.class);
    buf_free(&w.others);
    return rc < 0 ? ANSWER_ERROR : w.found ? ANSWER_YES : ANSWER_NO;
}

/* ---- regions ---------------------------------------------------------------------------------------------------- */

static char *golden_path(const struct look *l)
{
    const char *dir = l->s->golden_dir, *png = l->c->text;
    return *png == '/' || !dir ? xstrdup(png) : xasprintf("%s/%s", dir, png);
}

/* The area as it is now, into l->actual. */
static int take_actual(struct look *l, const struct image *screen, struct err *e)
{
    const int *a = l->c->area;
    if (!a[2])
        return image_copy(&l->actual, screen, e);
    if (a[0] < 0 || a[1] < 0 || a[2] < 0 || a[3] < 1 || a[0] > screen->w - a[2] || a[1] > screen->h - a[3])
        return err_set(e, ERR_USAGE, "the area [%d, %d, %d, %d] is not within the screen, which has %dx%d",
                       a[0], a[1], a[2], a[3], screen->w, screen->h);
    return image_crop(&l->actual, screen, a[0], a[1], a[2], a[3], e);
}

/* As it is, and as it may be seen. */
static int capture(const struct look *l, struct image *screen, struct image *shown, struct err *e)
{
    if (screen_capture(l->s->screen, screen, e) || image_copy(shown, screen, e))
        return -1;
    gate_redact(l->s->gate, shown);
    return 0;
}

/* A picture of the whole screen is one of the area, too. */
static int take_area(struct look *l, const struct image *screen, struct err *e)
{
    const int *a = l->c->area;
    struct image *im = &l->expected, part;
    if (!a[2] || im->w != screen->w || im->h != screen->h)
        return 0;
    if (image_crop(&part, im, a[0], a[1], a[2], a[3], e))
        return -1;
    image_free(im);
    *im = part;
    return 0;
}

static enum answer update_golden(struct look *l, const char *path, struct err *e)
{
    char *slash = strrchr(path, '/'),
         *dir = slash && slash > path ? xasprintf("%.*s", (int)(slash - path), path) : NULL;
    int rc = dir ? dir_make(dir, e) : 0;
    if (rc == 0)
        rc = image_write_png(&l->actual, path, e);
    if (rc == 0)
        look_says(l, "wrote '%s', %dx%d, as it is now", path, l->actual.w, l->actual.h);
    free(dir);
    return rc ? ANSWER_ERROR : ANSWER_YES;
}

static int cut_area(const struct look *l, const struct image *screen, struct image *out, struct err *e)
{
    const int *a = l->c->area;
    return a[2] ? image_crop(out, screen, a[0], a[1], a[2], a[3], e) : image_copy(out, screen, e);
}

/* What is hidden is not compared.  It is the same in the negative, where nothing else is, so that it is known also where the
 * screen has the colour that it is painted with. */
static int hide_hidden(struct look *l, const struct image *screen, struct err *e)
{
    const struct image *shown = &l->actual;
    struct image *to = &l->expected, negative = {0}, raw = {0}, other = {0};
    if (!l->s->gate || to->w != shown->w || to->h != shown->h)
        return 0;
    int rc = image_copy(&negative, screen, e);
    for (size_t i = 0; rc == 0 && i < 3 * (size_t)negative.w * (size_t)negative.h; i++)
        negative.rgb[i] ^= 0xff;
    gate_redact(l->s->gate, &negative);
    rc = rc || cut_area(l, screen, &raw, e) || cut_area(l, &negative, &other, e) ? -1 : 0;
    for (size_t i = 0; rc == 0 && i < 3 * (size_t)raw.w * (size_t)raw.h; i += 3)
        if (!memcmp(other.rgb + i, shown->rgb + i, 3) || memcmp(raw.rgb + i, shown->rgb + i, 3) != 0)
            memcpy(to->rgb + i, shown->rgb + i, 3);
    image_free(&negative);
    image_free(&raw);
    image_free(&other);
    return rc;
}

static enum answer compare(struct look *l)
{
    const struct check *c = l->c;
    const struct image *a = &l->expected, *b = &l->actual;
    if (a->w != b->w || a->h != b->h) {
        look_says(l, "expected what '%s' shows, which is %dx%d; the area is %dx%d", c->text, a->w, a->h, b->w,
                  b->h);
        return ANSWER_NO;
    }
    double changed = image_pixels_changed(a, b, c->tolerance);
    look_says(l, "expected at most %g %% of the pixels to differ from '%s' by more than %d, %.4g %% do",
              100 * c->max_diff, c->text, c->tolerance, 100 * changed);
    return changed <= c->max_diff ? ANSWER_YES : ANSWER_NO;
}

enum answer check_region(struct look *l, struct err *e)
{
    char *path = golden_path(l);
    struct image screen = {0}, shown = {0};
    enum answer a = ANSWER_ERROR;
    int rc = capture(l, &screen, &shown, e) || take_actual(l, &shown, e) ? -1 : 0;
    if (rc == 0 && l->s->update_golden) {
        a = update_golden(l, path, e);
    } else if (rc == 0 && !file_exists(path)) {
        err_set(e, ERR_USAGE,
                "there is no picture '%s' to compare with; --update-golden makes it of what is to be seen",
                path);
    } else if (rc == 0 && !image_read_png(&l->expected, path, e) && !take_area(l, &screen, e) &&
               !hide_hidden(l, &screen, e)) {
        a = compare(l);
    }
    image_free(&screen);
    image_free(&shown);
    free(path);
    return a;
}

int check_region_pictures(struct look *l, int number, struct err *e)
{
    static const char *const names[] = {"expected", "actual", "difference"};
    struct image difference = {0};
    const struct image *images[] = {&l->expected, &l->actual, &difference};
    int rc = 0;
    if (!l->expected.rgb || !l->s->out_dir)
        return 0;
    if (l->expected.w == l->actual.w && l->expected.h == l->actual.h)
        rc = image_mark_pixels(&difference, &l->expected, &l->actual, l->c->tolerance, e);
    if (rc == 0)
        rc = dir_make(l->s->out_dir, e);
    for (int i = 0; i < 3 && rc == 0; i++) {
        char *path = images[i]->rgb ? xasprintf("%s/check-%d-%s.png", l->s->out_dir, number, names[i]) : NULL;
        rc = path ? image_write_png(images[i], path, e) : 0;
        l->r.pictures[i] = rc ? NULL : path;
        if (rc)
            free(path);
    }
    image_free(&difference);
    return rc;
}
