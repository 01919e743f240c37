/* redact.c - see redact.h. */
#include "gate/redact.h"

#include "base/clock.h"
#include "gate/copies.h"

#include <stdlib.h>
#include <string.h>

enum {
    MARGIN = 6, /* around the changed pixels */
    GRID = 32,  /* a field's width is a multiple of it, to hide the length of the secret */
    BAND = 24,  /* above and below the typing position when nothing changed */
    CELL = 16,  /* side of the parts that another window may cover */
    STRIPE = 8,
    POLL_MS = 40,
    REST_MS = 250,      /* unchanged for so long: the text has been drawn */
    REST_MAX_MS = 2500, /* given up: something else moves all the time */
    GLYPHS_LEAST = 4,   /* smallest width and height searched for elsewhere */
};

struct field {
    unsigned long window;
    struct screen_rect at;        /* relative to the window */
    struct screen_rect window_at; /* when it was seen last */
    uint8_t colour[3];
    struct image glyphs; /* pixels of the first characters; empty: do not search */
    int gx, gy;          /* where they are in the field */
};

struct redact {
    struct screen *s;
    struct image before;
    struct field fields[REDACT_FIELDS];
    int n;
};

/* ---- images ----------------------------------------------------------------------------------- */

static void wipe(struct image *im)
{
    if (im->rgb)
        explicit_bzero(im->rgb, 3 * (size_t)im->w * (size_t)im->h);
    image_free(im);
}

static uint8_t *pixel(const struct image *im, int x, int y)
{
    return im->rgb + 3 * ((size_t)y * (size_t)im->w + (size_t)x);
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

/* The smallest rectangle that contains both. */
static struct screen_rect hull(struct screen_rect a, struct screen_rect b)
{
    int x = min_int(a.x, b.x), y = min_int(a.y, b.y);
    return (struct screen_rect){x, y, max_int(a.x + a.w, b.x + b.w) - x, max_int(a.y + a.h, b.y + b.h) - y};
}

static struct screen_rect translated(struct screen_rect r, int dx, int dy)
{
    return (struct screen_rect){r.x + dx, r.y + dy, r.w, r.h};
}

/* Bounding box of the pixels that differ within r, in pixels of the images; w 0: none. */
static struct screen_rect changed_box(const struct image *a, const struct image *b, struct screen_rect r)
{
    int x0 = r.x + r.w, y0 = r.y + r.h, x1 = -1, y1 = -1;
    for (int y = r.y; y < r.y + r.h; y++) {
        for (int x = r.x; x < r.x + r.w; x++) {
            if (!memcmp(pixel(a, x, y), pixel(b, x, y), 3))
                continue;
            x0 = min_int(x0, x);
            x1 = max_int(x1, x);
            y0 = min_int(y0, y);
            y1 = max_int(y1, y);
        }
    }
    struct screen_rect box = {x0, y0, x1 - x0 + 1, y1 - y0 + 1}, none = {0};
    return x1 < 0 ? none : box;
}

static void mean_colour(const struct image *im, struct screen_rect r, uint8_t out[3])
{
    uint64_t sum[3] = {0}, n = (uint64_t)r.w * (uint64_t)r.h;
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++)
            for (int c = 0; c < 3; c++)
                sum[c] += pixel(im, x, y)[c];
    for (int c = 0; c < 3; c++)
        out[c] = n ? (uint8_t)(sum[c] / n) : 128;
}

/* ---- the field -------------------------------------------------------------------------------- */

struct redact *redact_new(struct screen *s)
{
    struct redact *r = xcalloc(1, sizeof *r);
    r->s = s;
    return r;
}

void redact_free(struct redact *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->n; i++)
        wipe(&r->fields[i].glyphs);
    wipe(&r->before);
    free(r);
}

int redact_before(struct redact *r, struct err *e)
{
    if (r->n == REDACT_FIELDS)
        return err_set(e, ERR_FAILED, "secrets were typed into %d fields: no more", REDACT_FIELDS);
    return screen_capture(r->s, &r->before, e);
}

static bool one_colour(const struct image *im)
{
    return !memcmp(im->rgb, im->rgb + 3, 3 * ((size_t)im->w * (size_t)im->h - 1));
}

/* Keeps the left part of what has changed: the rest may contain a blinking caret. */
static void keep_glyphs(struct field *f, const struct image *now, struct screen_rect box,
                        struct screen_rect view)
{
    int w = box.w * 3 / 5;
    if (w < GLYPHS_LEAST || box.h < GLYPHS_LEAST || image_crop(&f->glyphs, now, box.x, box.y, w, box.h, NULL))
        return;
    if (one_colour(&f->glyphs)) /* would match everywhere */
        wipe(&f->glyphs);
    f->gx = box.x + view.x - f->window_at.x - f->at.x;
    f->gy = box.y + view.y - f->window_at.y - f->at.y;
}

/* Extended by a margin and to a multiple of the grid, within the window; root pixels. */
static struct screen_rect padded(struct screen_rect box, struct screen_rect window)
{
    int w = (box.w + 2 * MARGIN + GRID - 1) / GRID * GRID;
    return screen_rect_intersect((struct screen_rect){box.x - MARGIN, box.y - MARGIN, w, box.h + 2 * MARGIN},
                                 window);
}

static void remove_field(struct redact *r, int i)
{
    wipe(&r->fields[i].glyphs);
    memmove(&r->fields[i], &r->fields[i + 1], (size_t)(--r->n - i) * sizeof r->fields[0]);
}

/* Merges the last field with those of the same window that it overlaps. */
static void join_overlapping(struct redact *r)
{
    unsigned long window = r->fields[r->n - 1].window;
    struct screen_rect at = r->fields[r->n - 1].at;
    for (int i = r->n - 2; i >= 0; i--) {
        struct screen_rect b = r->fields[i].at;
        if (r->fields[i].window != window || !screen_rect_intersect(at, b).w ||
            !screen_rect_intersect(at, b).h)
            continue;
        at = hull(at, b);
        remove_field(r, i);
    }
    r->fields[r->n - 1].at = at;
}

/* Captures the screen once `part` has not changed for REST_MS. */
static int capture_settled(struct redact *r, struct screen_rect part, struct image *now, struct err *e)
{
    struct image last = {0};
    int64_t start = clock_ns(), since = start;
    int rc = screen_capture(r->s, now, e);
    while (rc == 0 && clock_ms_since(since) < REST_MS && clock_ms_since(start) < REST_MAX_MS) {
        if (screen_wait(r->s, POLL_MS, NULL)) /* stopped: use this capture */
            break;
        struct image swap = last;
        last = *now;
        *now = swap;
        rc = screen_capture(r->s, now, e);
        part = screen_rect_intersect(part, (struct screen_rect){0, 0, now->w, now->h});
        if (rc == 0 && (last.w != now->w || last.h != now->h || changed_box(&last, now, part).w))
            since = clock_ns();
    }
    wipe(&last);
    return rc;
}

/* The area that typing has changed; a band of the window, or all of it, when nothing has.  Root pixels. */
static struct screen_rect find_field(const struct redact *r, const struct image *now,
                                     struct screen_rect whole, int x, int y, struct screen_rect *box)
{
    struct screen_rect view = screen_view(r->s), image = {0, 0, now->w, now->h};
    *box = (struct screen_rect){0};
    if (now->w == r->before.w && now->h == r->before.h)
        *box =
            changed_box(&r->before, now, screen_rect_intersect(translated(whole, -view.x, -view.y), image));
    if (box->w)
        return padded(translated(*box, view.x, view.y), whole);
    return x < 0 ? whole
                 : screen_rect_intersect((struct screen_rect){whole.x, y - BAND, whole.w, 2 * BAND}, whole);
}

int redact_after(struct redact *r, const struct screen_window *w, int x, int y, struct err *e)
{
    struct image now = {0};
    struct screen_rect view = screen_view(r->s), whole = w->id ? w->rect : screen_root(r->s), box;
    if (capture_settled(r, translated(whole, -view.x, -view.y), &now, e))
        return -1;
    struct screen_rect at = find_field(r, &now, whole, x, y, &box);
    struct field *f = &r->fields[r->n++];
    *f = (struct field){.window = w->id, .window_at = whole, .at = translated(at, -whole.x, -whole.y)};
    join_overlapping(r);
    f = &r->fields[r->n - 1];
    struct screen_rect seen = translated(f->at, whole.x - view.x, whole.y - view.y);
    mean_colour(&r->before, screen_rect_intersect(seen, (struct screen_rect){0, 0, r->before.w, r->before.h}),
                f->colour);
    if (box.w)
        keep_glyphs(f, &now, box, view);
    wipe(&now);
    return 0;
}

void redact_seal(struct redact *r)
{
    wipe(&r->before);
}

/* A later capture may show more of what was typed: the field grows. */
static void grow_last(struct redact *r, const struct image *im)
{
    struct field *f = &r->fields[r->n - 1];
    struct screen_rect box, at = find_field(r, im, f->window_at, -1, -1, &box);
    if (box.w)
        f->at = hull(f->at, translated(at, -f->window_at.x, -f->window_at.y));
}

/* ---- pictures --------------------------------------------------------------------------------- */

void redact_paint(struct image *im, struct screen_rect part, const uint8_t colour[3])
{
    part = screen_rect_intersect(part, (struct screen_rect){0, 0, im->w, im->h});
    for (int y = part.y; y < part.y + part.h; y++) {
        for (int x = part.x; x < part.x + part.w; x++) {
            bool stripe = (x + y) / 2 % STRIPE == 0;
            for (int c = 0; c < 3; c++)
                pixel(im, x, y)[c] = (uint8_t)(!stripe           ? colour[c]
                                               : colour[c] > 127 ? colour[c] - 60
                                                                 : colour[c] + 60);
        }
    }
}

/* Whether the window is visible at one of the cell's corners or its centre; root pixels. */
static bool shows_window(struct redact *r, unsigned long window, struct screen_rect c)
{
    return !window || screen_window_covers(r->s, window, c.x, c.y) ||
           screen_window_covers(r->s, window, c.x + c.w - 1, c.y) ||
           screen_window_covers(r->s, window, c.x, c.y + c.h - 1) ||
           screen_window_covers(r->s, window, c.x + c.w - 1, c.y + c.h - 1) ||
           screen_window_covers(r->s, window, c.x + c.w / 2, c.y + c.h / 2);
}

static void fill_field(struct redact *r, const struct field *f, struct image *im)
{
    struct screen_rect view = screen_view(r->s), at = translated(f->at, f->window_at.x, f->window_at.y);
    int cw = max_int(CELL, at.w / CELL), ch = max_int(CELL, at.h / CELL);
    for (int y = at.y; y < at.y + at.h; y += ch) {
        for (int x = at.x; x < at.x + at.w; x += cw) {
            struct screen_rect cell = screen_rect_intersect((struct screen_rect){x, y, cw, ch}, at);
            if (shows_window(r, f->window, cell))
                redact_paint(im, translated(cell, -view.x, -view.y), f->colour);
        }
    }
}

/* Covers the same characters elsewhere. */
static void fill_copies(const struct field *f, const struct copy *copies, int n, struct image *im)
{
    for (int i = 0; i < n; i++) {
        const struct copy *c = &copies[i];
        int wider = (c->w - f->glyphs.w) * max_int(f->at.w, 1) / max_int(f->glyphs.w, 1);
        redact_paint(im, (struct screen_rect){c->x - f->gx, c->y - f->gy, f->at.w + wider, f->at.h},
                     f->colour);
    }
}

/* Updates the window's position; after a resize the layout is unknown and all of it is covered.  false: it
 * is gone. */
static bool follow_window(struct redact *r, struct field *f)
{
    struct screen_rect now;
    if (!f->window)
        return true;
    if (screen_window_rect(r->s, f->window, &now))
        return false;
    if (now.w != f->window_at.w || now.h != f->window_at.h)
        f->at = (struct screen_rect){0, 0, now.w, now.h};
    f->window_at = now;
    return true;
}

void redact_image(struct redact *r, struct image *im)
{
    if (!r || !im->rgb)
        return;
    for (int i = r->n - 1; i >= 0; i--)
        if (!follow_window(r, &r->fields[i]))
            remove_field(r, i);
    if (r->before.rgb && r->n)
        grow_last(r, im);
    /* All are found before one is painted: a copy on the next line touches the first, or lies in a field. */
    struct copy *copies[REDACT_FIELDS];
    int n[REDACT_FIELDS];
    for (int i = 0; i < r->n; i++)
        n[i] = copies_find(im, &r->fields[i].glyphs, &copies[i]);
    for (int i = 0; i < r->n; i++) {
        fill_copies(&r->fields[i], copies[i], n[i], im);
        fill_field(r, &r->fields[i], im);
        free(copies[i]);
    }
}
