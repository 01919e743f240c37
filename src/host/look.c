/* look.c - read-only requests (errands): screenshot, window list, image from a record; for elements see
 * look_elements.c.
 * They send no input and take no input lock.  As in a run, areas of --hide and fields that hold a secret are
 * painted over in screenshots. */
#include "host/private.h"

#include "base/json.h"
#include "run/place.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOWS_MAX = 64 };

/* ---- pictures ------------------------------------------------------------------------------------------ */

/* Encodes im as PNG, scaled to w x h, in base64.  Sets *len to the length of the result.  Returns NULL if out
 * of memory; the caller frees the result. */
static char *encode(const struct image *im, int w, int h, size_t *len)
{
    struct image small = {0};
    struct buf text;
    void *png = NULL;
    uint64_t n = 0;
    bool same = w == im->w && h == im->h;
    int rc = same ? 0 : image_shrink(&small, im, w, h, NULL);
    rc = rc ? rc : image_encode_png(same ? im : &small, &png, &n, NULL);
    image_free(&small);
    if (rc)
        return NULL;
    buf_init(&text, 2 * n + 64);
    buf_put_base64(&text, png, n);
    free(png);
    *len = text.len;
    return buf_take(&text);
}

static int scaled(int side, double scale)
{
    int n = (int)(side * scale + 0.5);
    return n > 0 ? n : 1;
}

/* An image whose base64 exceeds HOST_PICTURE_BYTES is scaled down until it fits: its size is about
 * proportional to its number of pixels. */
json_t *look_picture(const struct image *im, int max_side)
{
    int most = max_side ? max_side : HOST_PICTURE_SIDE, longer = im->w > im->h ? im->w : im->h, w, h;
    double scale = longer > most ? (double)most / longer : 1;
    size_t len = 0;
    char *data;
    for (;;) {
        w = scaled(im->w, scale);
        h = scaled(im->h, scale);
        data = encode(im, w, h, &len);
        if (!data || len <= HOST_PICTURE_BYTES)
            break;
        free(data);
        scale *= 0.95 * sqrt((double)HOST_PICTURE_BYTES / (double)len);
    }
    json_t *picture = data ? json_pack("{s:s, s:i, s:i, s:i, s:i}", "data", data, "w", w, "h", h, "of_w",
                                       im->w, "of_h", im->h)
                           : NULL;
    free(data);
    return picture;
}

/* ---- the screen ---------------------------------------------------------------------------------------- */

struct place { /* the errand's own connection to the display */
    struct screen *screen;
};

static int open_place(struct place *p, const struct work *w, struct err *e)
{
    const struct screen_options o = {0};
    *p = (struct place){0};
    return (p->screen = place_screen(w->host->settings, o, e)) ? 0 : -1;
}

static void close_place(struct place *p)
{
    screen_close(p->screen);
}

/* Paints over the areas that the settings hide and the fields that hold a secret.  Returns -1 with e. */
static int cover(const struct host *h, struct screen *screen, struct image *im, struct err *e)
{
    struct gate_options o = {.observe_only = true, .covered = h->covered};
    const struct run_settings *s = h->settings;
    if ((o.n_hide = zones_read(s->hide, "--hide", o.hide, e)) < 0)
        return -1;
    if (!o.n_hide && !o.covered)
        return 0;
    struct policy *policy = policy_open(s->policy, e);
    if (!policy)
        return -1;
    o.policy = policy;
    struct gate *gate = gate_new(&o);
    gate_begin(gate, screen, NULL);
    gate_redact(gate, im);
    gate_free(gate);
    policy_free(policy);
    return 0;
}

static int crop(struct image *im, struct screen_rect r, struct err *e)
{
    struct image part = {0};
    if (!r.w)
        return 0;
    if (r.x < 0 || r.y < 0 || r.w < 1 || r.h < 1 || r.w > im->w || r.h > im->h || r.x > im->w - r.w ||
        r.y > im->h - r.h)
        return err_set(e, ERR_USAGE, "region: %d,%d %dx%d is not within %dx%d", r.x, r.y, r.w, r.h, im->w,
                       im->h);
    if (image_crop(&part, im, r.x, r.y, r.w, r.h, e))
        return -1;
    image_free(im);
    *im = part;
    return 0;
}

/* Returns a window title without secrets, because programs put typed text into titles. */
static json_t *shown(const struct work *w, const char *title)
{
    autofree char *masked = host_mask(w->host, title);
    return json_clean_string(masked);
}

/* Scales the image to its final size before its elements are marked, so that the marks stay legible.  Sets
 * *marks to their number.  Returns -1 with e. */
static int mark(const struct work *w, struct screen *screen, struct image *im, int *marks, struct err *e)
{
    int most = w->max_side ? w->max_side : HOST_PICTURE_SIDE, longer = im->w > im->h ? im->w : im->h;
    double scale = longer > most ? (double)most / longer : 1;
    struct image small = {0};
    if (!w->marks)
        return 0;
    if (scale < 1) {
        if (image_shrink(&small, im, scaled(im->w, scale), scaled(im->h, scale), e))
            return -1;
        image_free(im);
        *im = small;
    }
    *marks = look_draw_marks(w, screen, im, scale, w->region.x, w->region.y, e);
    return *marks < 0 ? -1 : 0;
}

/* Sets the size of the image before it was scaled for its marks. */
static void set_size(json_t *picture, int w, int h)
{
    if (picture) {
        json_object_set_new(picture, "of_w", json_integer(w));
        json_object_set_new(picture, "of_h", json_integer(h));
    }
}

static json_t *look_at_screen(const struct work *w, struct err *e)
{
    struct place p;
    struct image im = {0};
    json_t *event = NULL, *picture = NULL;
    char title[256], class[128];
    int marks = 0, width = 0, height = 0;
    bool captured = !open_place(&p, w, e) && !screen_capture(p.screen, &im, e);
    if (captured)
        shown_keep(w->host, p.screen, &im);
    bool ready = captured && !cover(w->host, p.screen, &im, e) && !crop(&im, w->region, e);
    width = im.w;
    height = im.h;
    if (ready && !mark(w, p.screen, &im, &marks, e))
        set_size(picture = look_picture(&im, w->max_side), width, height);
    if (picture) {
        screen_active_window(p.screen, title, sizeof title, class, sizeof class);
        event = json_pack("{s:o, s:i, s:i, s:i, s:i, s:s}", "picture", picture, "x", w->region.x, "y",
                          w->region.y, "w", width, "h", height, "display", screen_name(p.screen));
        json_object_set_new(event, "window", shown(w, title));
        if (w->marks)
            json_object_set_new(event, "marks", json_integer(marks));
    } else if (!e->kind) {
        err_set(e, ERR_ENV, "out of memory for the image");
    }
    image_free(&im);
    close_place(&p);
    return event;
}

struct listing {
    char title[512], class[128];
};
struct listings {
    struct listing *list;
    int n;
};

static bool list_window(void *arg, const char *title, const char *class)
{
    struct listings *l = arg;
    struct listing *at = &l->list[l->n++];
    snprintf(at->title, sizeof at->title, "%s", title);
    snprintf(at->class, sizeof at->class, "%s", class);
    return l->n == WINDOWS_MAX;
}

static json_t *look_at_windows(const struct work *w, struct err *e)
{
    struct place p;
    struct listings l = {xcalloc(WINDOWS_MAX, sizeof *l.list), 0};
    char title[512], class[128];
    json_t *event = NULL;
    if (!open_place(&p, w, e) && screen_each_window(p.screen, list_window, &l, e) >= 0) {
        json_t *all = json_array();
        screen_active_window(p.screen, title, sizeof title, class, sizeof class);
        for (int i = 0; i < l.n; i++) {
            struct screen_window is;
            json_t *one = json_pack("{s:o, s:o}", "title", shown(w, l.list[i].title), "class",
                                    shown(w, l.list[i].class));
            if (screen_find_window(p.screen, l.list[i].class, l.list[i].title, &is) == 0)
                json_object_set_new(one, "place",
                                    json_pack("[i, i, i, i]", is.rect.x, is.rect.y, is.rect.w, is.rect.h));
            json_array_append_new(all, one);
        }
        event = json_pack("{s:o, s:o, s:s}", "windows", all, "active", shown(w, title), "display",
                          screen_name(p.screen));
    }
    free(l.list);
    close_place(&p);
    return event;
}

static json_t *look_at_file(const struct work *w, struct err *e)
{
    struct image im = {0};
    json_t *picture = image_read_png(&im, w->path, e) ? NULL : look_picture(&im, w->max_side);
    image_free(&im);
    if (!picture && !e->kind)
        err_set(e, ERR_ENV, "out of memory for the image");
    return picture ? json_pack("{s:o}", "picture", picture) : NULL;
}

json_t *look_done(struct work *w)
{
    struct err e = ERR_INIT;
    json_t *event = w->kind == WORK_LOOK       ? look_at_screen(w, &e)
                    : w->kind == WORK_WINDOWS  ? look_at_windows(w, &e)
                    : w->kind == WORK_ELEMENTS ? look_at_elements(w, &e)
                                               : look_at_file(w, &e);
    if (!event)
        event = json_pack("{s:i, s:s}", "code", (int)e.kind, "error", e.text);
    json_object_set_new(event, "kind", json_string("done"));
    return event;
}
