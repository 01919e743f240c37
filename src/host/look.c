/* look.c - errands: the screen as a picture, its windows, a picture of a record.  They press nothing and
 * take no lock.  A picture is what a run would see of that display: areas of --hide are painted over. */
#include "host/private.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOWS_MAX = 64 };

/* ---- pictures
 * ------------------------------------------------------------------------------------------- */

/* Encodes im, scaled to w x h, in base64.  *len: bytes of the result, which is NULL without memory. */
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

/* A picture of too many bytes is scaled down: their number is about proportional to its pixels. */
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
    bool captured = s && !screen_capture(s, &im, e);
    if (captured)
        shown_keep(w->host, s, &im);
    if (captured && !cover(w->host->settings, s, &im, e) && !crop(&im, w->region, e))
        picture = look_picture(&im, w->max_side);
    if (picture) {
        screen_active_window(s, title, sizeof title, class, sizeof class);
        event = json_pack("{s:o, s:i, s:i, s:i, s:i, s:s}", "picture", picture, "x", w->region.x, "y",
                          w->region.y, "w", im.w, "h", im.h, "display", screen_name(s));
        json_object_set_new(event, "window", json_clean_string(title));
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
            json_t *one = json_pack("{s:o, s:o}", "title", json_clean_string(l.list[i].title), "class",
                                    json_clean_string(l.list[i].class));
            if (screen_find_window(s, l.list[i].class, l.list[i].title, &is) == 0)
                json_object_set_new(one, "place",
                                    json_pack("[i, i, i, i]", is.rect.x, is.rect.y, is.rect.w, is.rect.h));
            json_array_append_new(all, one);
        }
        event = json_pack("{s:o, s:o, s:s}", "windows", all, "active", json_clean_string(title), "display",
                          screen_name(s));
    }
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
