/* redact.c - see redact.h. */
#include "gate/redact.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum {
    MARGIN = 6, /* around what has changed */
    GRID = 32,  /* a field's width is a multiple of it: the length of a secret shows only roughly */
    BAND = 24,  /* above and below a place where nothing changed */
    CELL = 16,  /* pieces that another window may cover */
    STRIPE = 8,
    LOOK_MS = 40,       /* between looks until what was typed is seen */
    REST_MS = 250,      /* unchanged for so long: it is */
    REST_MAX_MS = 2500, /* something else moves all the time */
    GLYPHS_LEAST = 4,   /* pixels of a piece that is looked for elsewhere */
};

struct field {
    unsigned long window;
    struct screen_rect at;        /* relative to the window */
    struct screen_rect window_at; /* when it was seen last */
    uint8_t colour[3];
    struct image glyphs; /* what the first characters look like; empty: nothing to look for */
    int gx, gy;          /* where they are in the field */
};

struct redact {
    struct screen *s;
    struct image before;
    struct field fields[REDACT_FIELDS];
    int n;
};

/* ---- images ------------------------------------------------------------------------------------------- */

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

static int lower(int a, int b)
{
    return a < b ? a : b;
}

static int higher(int a, int b)
{
    return a > b ? a : b;
}

/* The part of both; w or h 0: none. */
static struct screen_rect both(struct screen_rect a, struct screen_rect b)
{
    int x = higher(a.x, b.x), y = higher(a.y, b.y);
    int w = lower(a.x + a.w, b.x + b.w) - x, h = lower(a.y + a.h, b.y + b.h) - y;
    return (struct screen_rect){x, y, higher(w, 0), higher(h, 0)};
}

/* The smallest that holds both. */
static struct screen_rect hull(struct screen_rect a, struct screen_rect b)
{
    int x = lower(a.x, b.x), y = lower(a.y, b.y);
    return (struct screen_rect){x, y, higher(a.x + a.w, b.x + b.w) - x, higher(a.y + a.h, b.y + b.h) - y};
}

static struct screen_rect moved(struct screen_rect r, int dx, int dy)
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
            x0 = lower(x0, x);
            x1 = higher(x1, x);
            y0 = lower(y0, y);
            y1 = higher(y1, y);
        }
    }
    struct screen_rect box = {0};
    if (x1 >= 0)
        box = (struct screen_rect){x0, y0, x1 - x0 + 1, y1 - y0 + 1};
    return box;
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

/* ---- the field ------------------------------------------------------------------------------------------ */

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

int redact_fields(const struct redact *r)
{
    return r ? r->n : 0;
}

struct screen_rect redact_field(const struct redact *r, int i)
{
    const struct field *f = &r->fields[i];
    return moved(f->at, f->window_at.x, f->window_at.y);
}

int redact_before(struct redact *r, struct err *e)
{
    if (r->n == REDACT_FIELDS)
        return err_set(e, ERR_FAILED, "secrets were typed into %d fields: no more", REDACT_FIELDS);
    return screen_capture(r->s, &r->before, e);
}

static bool one_colour(const struct image *im)
{
    for (int y = 0; y < im->h; y++)
        for (int x = 0; x < im->w; x++)
            if (memcmp(pixel(im, x, y), im->rgb, 3) != 0)
                return false;
    return true;
}

/* The left part of what has changed: the rest may have a caret in it that blinks. */
static void keep_glyphs(struct field *f, const struct image *now, struct screen_rect box,
                        struct screen_rect view)
{
    int w = box.w * 3 / 5;
    if (w < GLYPHS_LEAST || box.h < GLYPHS_LEAST || image_alloc(&f->glyphs, w, box.h, NULL))
        return;
    for (int y = 0; y < box.h; y++)
        memcpy(pixel(&f->glyphs, 0, y), pixel(now, box.x, box.y + y), 3 * (size_t)w);
    if (one_colour(&f->glyphs)) /* would be found everywhere */
        wipe(&f->glyphs);
    f->gx = box.x + view.x - f->window_at.x - f->at.x;
    f->gy = box.y + view.y - f->window_at.y - f->at.y;
}

/* Grown by a margin to a multiple of the grid, inside the window; root pixels. */
static struct screen_rect grown(struct screen_rect box, struct screen_rect window)
{
    int w = (box.w + 2 * MARGIN + GRID - 1) / GRID * GRID;
    return both((struct screen_rect){box.x - MARGIN, box.y - MARGIN, w, box.h + 2 * MARGIN}, window);
}

static void drop(struct redact *r, int i)
{
    wipe(&r->fields[i].glyphs);
    memmove(&r->fields[i], &r->fields[i + 1], (size_t)(--r->n - i) * sizeof r->fields[0]);
}

/* The same field once more: one that has all of both takes their place. */
static void join_overlapping(struct redact *r)
{
    unsigned long window = r->fields[r->n - 1].window;
    struct screen_rect at = r->fields[r->n - 1].at;
    for (int i = r->n - 2; i >= 0; i--) {
        struct screen_rect b = r->fields[i].at;
        if (r->fields[i].window != window || !both(at, b).w || !both(at, b).h)
            continue;
        at = hull(at, b);
        drop(r, i);
    }
    r->fields[r->n - 1].at = at;
}

/* Waits until the window rests, and has it as it is then. */
static int rested(struct redact *r, struct screen_rect part, struct image *now, struct err *e)
{
    struct image last = {0};
    int64_t start = clock_ns(), since = start;
    int rc = screen_capture(r->s, now, e);
    while (rc == 0 && clock_ms_since(since) < REST_MS && clock_ms_since(start) < REST_MAX_MS) {
        if (screen_wait(r->s, LOOK_MS, NULL)) /* stopped: what is seen now must do */
            break;
        struct image swap = last;
        last = *now;
        *now = swap;
        rc = screen_capture(r->s, now, e);
        part = both(part, (struct screen_rect){0, 0, now->w, now->h});
        if (rc == 0 && (last.w != now->w || last.h != now->h || changed_box(&last, now, part).w))
            since = clock_ns();
    }
    wipe(&last);
    return rc;
}

/* What typing has changed; all of the window or a band of it when nothing is to be seen.  Root pixels. */
static struct screen_rect find_field(const struct redact *r, const struct image *now,
                                     struct screen_rect whole, int x, int y, struct screen_rect *box)
{
    struct screen_rect view = screen_view(r->s), image = {0, 0, now->w, now->h};
    *box = (struct screen_rect){0};
    if (now->w == r->before.w && now->h == r->before.h)
        *box = changed_box(&r->before, now, both(moved(whole, -view.x, -view.y), image));
    if (box->w)
        return grown(moved(*box, view.x, view.y), whole);
    return x < 0 ? whole : both((struct screen_rect){whole.x, y - BAND, whole.w, 2 * BAND}, whole);
}

int redact_after(struct redact *r, const struct screen_window *w, int x, int y, struct err *e)
{
    struct image now = {0};
    struct screen_rect view = screen_view(r->s), whole = w->id ? w->rect : screen_root(r->s), box;
    if (rested(r, moved(whole, -view.x, -view.y), &now, e))
        return -1;
    struct screen_rect at = find_field(r, &now, whole, x, y, &box);
    struct field *f = &r->fields[r->n++];
    *f = (struct field){.window = w->id, .window_at = whole, .at = moved(at, -whole.x, -whole.y)};
    join_overlapping(r);
    f = &r->fields[r->n - 1];
    struct screen_rect seen = moved(f->at, whole.x - view.x, whole.y - view.y);
    mean_colour(&r->before, both(seen, (struct screen_rect){0, 0, r->before.w, r->before.h}), f->colour);
    if (box.w)
        keep_glyphs(f, &now, box, view);
    wipe(&now);
    return 0;
}

void redact_seal(struct redact *r)
{
    wipe(&r->before);
}

/* A picture after typing may show more of it than was seen then: the field grows. */
static void grow_last(struct redact *r, const struct image *im)
{
    struct field *f = &r->fields[r->n - 1];
    struct screen_rect box, at = find_field(r, im, f->window_at, -1, -1, &box);
    if (box.w)
        f->at = hull(f->at, moved(at, -f->window_at.x, -f->window_at.y));
}

/* ---- pictures --------------------------------------------------------------------------------------------- */

void redact_paint(struct image *im, struct screen_rect part, const uint8_t colour[3])
{
    part = both(part, (struct screen_rect){0, 0, im->w, im->h});
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

/* Whether any of a cell's corners or its middle shows the window; root pixels. */
static bool shows(struct redact *r, unsigned long window, struct screen_rect c)
{
    return !window || screen_window_covers(r->s, window, c.x, c.y) ||
           screen_window_covers(r->s, window, c.x + c.w - 1, c.y) ||
           screen_window_covers(r->s, window, c.x, c.y + c.h - 1) ||
           screen_window_covers(r->s, window, c.x + c.w - 1, c.y + c.h - 1) ||
           screen_window_covers(r->s, window, c.x + c.w / 2, c.y + c.h / 2);
}

static void fill_field(struct redact *r, const struct field *f, struct image *im)
{
    struct screen_rect view = screen_view(r->s), at = moved(f->at, f->window_at.x, f->window_at.y);
    int cw = higher(CELL, at.w / CELL), ch = higher(CELL, at.h / CELL);
    for (int y = at.y; y < at.y + at.h; y += ch) {
        for (int x = at.x; x < at.x + at.w; x += cw) {
            struct screen_rect cell = both((struct screen_rect){x, y, cw, ch}, at);
            if (shows(r, f->window, cell))
                redact_paint(im, moved(cell, -view.x, -view.y), f->colour);
        }
    }
}

static bool same_glyphs(const struct image *im, int x, int y, const struct image *g)
{
    for (int j = 0; j < g->h; j++)
        if (memcmp(pixel(im, x, y + j), pixel(g, 0, j), 3 * (size_t)g->w) != 0)
            return false;
    return true;
}

/* The same characters elsewhere: the page was scrolled, or shows them twice. */
static void fill_copies(const struct field *f, struct image *im)
{
    const struct image *g = &f->glyphs;
    for (int y = 0; g->rgb && y + g->h <= im->h; y++)
        for (int x = 0; x + g->w <= im->w; x++)
            if (!memcmp(pixel(im, x, y + g->h / 2), pixel(g, 0, g->h / 2), 3 * (size_t)g->w) &&
                same_glyphs(im, x, y, g))
                redact_paint(im, (struct screen_rect){x - f->gx, y - f->gy, f->at.w, f->at.h}, f->colour);
}

/* Where the window is now; a window of another size is laid out anew, and taken out as a whole. */
static bool follow(struct redact *r, struct field *f)
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
        if (!follow(r, &r->fields[i]))
            drop(r, i);
    if (r->before.rgb && r->n)
        grow_last(r, im);
    for (int i = 0; i < r->n; i++) /* before fields are filled: what is looked for may be in one */
        fill_copies(&r->fields[i], im);
    for (int i = 0; i < r->n; i++)
        fill_field(r, &r->fields[i], im);
}
