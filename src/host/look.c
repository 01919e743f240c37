/* look.c - errands: the screen as a picture, its windows, a picture of a record.  They press nothing and
 * take no lock.  A picture is what a run would see of that display: areas of --hide are painted over. */
#include "host/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOWS_MAX = 64 };

/* ---- pictures
 * ------------------------------------------------------------------------------------------- */

/* Encodes; a picture of too many bytes is made smaller until it fits. */
static char *encode(const struct image *im, int w, int h, int *out_w, int *out_h)
{
    struct buf text;
    char *data = NULL;
    while (!data && w > 0 && h > 0) {
        struct image small = {0};
        void *png = NULL;
        uint64_t len = 0;
        bool same = w == im->w && h == im->h;
        if ((!same && image_shrink(&small, im, w, h, NULL)) ||
            image_encode_png(same ? im : &small, &png, &len, NULL)) {
            image_free(&small);
            return NULL;
        }
        image_free(&small);
        if (len <= HOST_PICTURE_BYTES || w < 64) {
            buf_init(&text, 2 * len + 64);
            buf_put_base64(&text, png, len);
            data = buf_take(&text);
            *out_w = w;
            *out_h = h;
        }
        free(png);
        w = w * 4 / 5;
        h = h * 4 / 5;
    }
    return data;
}

json_t *look_picture(const struct image *im, int max_side)
{
    int most = max_side ? max_side : HOST_PICTURE_SIDE, w = im->w, h = im->h;
    if (w > most || h > most) {
        double s = (double)most / (w > h ? w : h);
        w = (int)(w * s) > 0 ? (int)(w * s) : 1;
        h = (int)(h * s) > 0 ? (int)(h * s) : 1;
    }
    char *data = encode(im, w, h, &w, &h);
    if (!data)
        return NULL;
    json_t *picture =
        json_pack("{s:s, s:i, s:i, s:f}", "data", data, "w", w, "h", h, "scale", (double)im->w / w);
    free(data);
    return picture;
}

/* ---- the screen
 * ------------------------------------------------------------------------------------------ */

static struct screen *open_screen(const struct work *w, struct err *e)
{
    const struct run_settings *s = w->host->settings;
    const struct screen_options o = {
        .display = *w->display ? w->display : NULL, .view = s->view, .cursor = s->cursor};
    return screen_open(&o, e);
}

/* Paints over what the settings hide. */
static int cover(const struct run_settings *s, struct screen *screen, struct image *im, struct err *e)
{
    struct gate_options o = {.observe_only = true};
    if ((o.n_hide = zones_read(s->hide, "--hide", o.hide, e)) < 0)
        return -1;
    if (!o.n_hide)
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
    if (r.x < 0 || r.y < 0 || r.w < 1 || r.h < 1 || r.x + r.w > im->w || r.y + r.h > im->h)
        return err_set(e, ERR_USAGE, "region: %d,%d %dx%d is not within %dx%d", r.x, r.y, r.w, r.h, im->w,
                       im->h);
    if (image_crop(&part, im, r.x, r.y, r.w, r.h, e))
        return -1;
    image_free(im);
    *im = part;
    return 0;
}

static json_t *look_at_screen(const struct work *w, struct err *e)
{
    struct screen *s = open_screen(w, e);
    struct image im = {0};
    json_t *event = NULL, *picture = NULL;
    char title[256], class[128];
    if (s && !screen_capture(s, &im, e) && !cover(w->host->settings, s, &im, e) && !crop(&im, w->region, e))
        picture = look_picture(&im, w->max_side);
    if (picture) {
        screen_active_window(s, title, sizeof title, class, sizeof class);
        event = json_pack("{s:o, s:i, s:i, s:i, s:i, s:s, s:s}", "picture", picture, "x", w->region.x, "y",
                          w->region.y, "w", im.w, "h", im.h, "display", screen_name(s), "window", title);
        if (!event)
            err_set(e, ERR_ENV, "the title of the active window is no text");
    } else if (!e->kind) {
        err_set(e, ERR_ENV, "out of memory for the picture");
    }
    image_free(&im);
    screen_close(s);
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
    struct screen *s = open_screen(w, e);
    struct listings l = {xcalloc(WINDOWS_MAX, sizeof *l.list), 0};
    char title[512], class[128];
    json_t *event = NULL;
    if (s && screen_each_window(s, list_window, &l, e) >= 0) {
        json_t *all = json_array();
        screen_active_window(s, title, sizeof title, class, sizeof class);
        for (int i = 0; i < l.n; i++) {
            struct screen_window is;
            json_t *one = json_pack("{s:s, s:s}", "title", l.list[i].title, "class", l.list[i].class);
            if (one && screen_find_window(s, l.list[i].class, l.list[i].title, &is) == 0)
                json_object_set_new(one, "place",
                                    json_pack("[i, i, i, i]", is.rect.x, is.rect.y, is.rect.w, is.rect.h));
            if (one)
                json_array_append_new(all, one);
        }
        event = json_pack("{s:o, s:s, s:s}", "windows", all, "active", title, "display", screen_name(s));
    }
    if (!event && !e->kind)
        err_set(e, ERR_ENV, "a window's title is no text");
    free(l.list);
    screen_close(s);
    return event;
}

static json_t *look_at_file(const struct work *w, struct err *e)
{
    struct image im = {0};
    json_t *picture = image_read_png(&im, w->path, e) ? NULL : look_picture(&im, w->max_side);
    image_free(&im);
    if (!picture && !e->kind)
        err_set(e, ERR_ENV, "out of memory for the picture");
    return picture ? json_pack("{s:o}", "picture", picture) : NULL;
}

json_t *look_done(struct work *w)
{
    struct err e = ERR_INIT;
    json_t *event = w->kind == WORK_LOOK      ? look_at_screen(w, &e)
                    : w->kind == WORK_WINDOWS ? look_at_windows(w, &e)
                                              : look_at_file(w, &e);
    if (!event)
        event = json_pack("{s:i, s:s}", "code", (int)e.kind, "error", e.text);
    json_object_set_new(event, "kind", json_string("done"));
    return event;
}
