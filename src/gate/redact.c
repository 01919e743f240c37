/* redact.c - covers fields with secrets in images; see redact.h. */
#include "gate/redact.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/number.h"
#include "gate/copies.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MARGIN = 6, /* pixels around the changed area */
    GRID = 32,  /* a field's right edge is a multiple of this, to hide the length of the secret */
    FINE = 8,   /* its other edges are multiples of this, to hide the shapes of the first characters */
    BAND = 24,  /* pixels above and below the typing position if nothing changed */
    CELL = 16,  /* size of the cells that another window may cover */
    STRIPE = 8,
    POLL_MS = 40,
    REST_MS = 250,      /* unchanged for this long: the text has been drawn */
    REST_MAX_MS = 2500, /* maximum wait if something else keeps moving */
    GLYPHS_LEAST = 4,   /* minimum width and height of glyphs to search for */
    TYPING_S = 10,      /* maximum wait of an image for a secret that is being typed */
};

struct field {
    unsigned long window;         /* application window; 0: the whole screen */
    unsigned long inner;          /* innermost window within it that contains the text; or `window` */
    struct screen_rect at;        /* relative to `inner` */
    struct screen_rect window_at; /* last known rectangle of `inner` */
    struct screen_rect outer_at;  /* last known rectangle of `window` */
    uint8_t colour[3];
    struct image glyphs; /* pixels of the first characters; empty: do not search */
    int gx, gy;          /* their position in the field */
};

struct redact {
    pthread_mutex_t lock;
    pthread_cond_t typed;
    struct screen *typing;       /* screen between redact_before() and redact_after(); NULL: none */
    const struct screen *typist; /* screen that called redact_before() last; only compared */
    struct image before;         /* screenshot before typing; empty: sealed */
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

static struct screen_rect translated(struct screen_rect r, int dx, int dy)
{
    return (struct screen_rect){r.x + dx, r.y + dy, r.w, r.h};
}

/* Returns the bounding box of the pixels that differ within r, in pixels of the images; w 0: none. */
static struct screen_rect changed_box(const struct image *a, const struct image *b, struct screen_rect r)
{
    int x0 = r.x + r.w, y0 = r.y + r.h, x1 = -1, y1 = -1;
    for (int y = r.y; y < r.y + r.h; y++) {
        for (int x = r.x; x < r.x + r.w; x++) {
            if (!memcmp(image_at(a, x, y), image_at(b, x, y), 3))
                continue;
            x0 = int_min(x0, x);
            x1 = int_max(x1, x);
            y0 = int_min(y0, y);
            y1 = int_max(y1, y);
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
                sum[c] += image_at(im, x, y)[c];
    for (int c = 0; c < 3; c++)
        out[c] = n ? (uint8_t)(sum[c] / n) : 128;
}

/* ---- windows ------------------------------------------------------------------------------------ */

static void remove_field(struct redact *r, int i)
{
    wipe(&r->fields[i].glyphs);
    memmove(&r->fields[i], &r->fields[i + 1], (size_t)(--r->n - i) * sizeof r->fields[0]);
}

/* Handles a closed inner window: its area in the application window stays covered. */
static void leave_inner(struct field *f)
{
    f->at = translated(f->at, f->window_at.x - f->outer_at.x, f->window_at.y - f->outer_at.y);
    f->inner = f->window;
    f->window_at = f->outer_at;
}

/* Updates the positions of the field's windows. After a resize the layout is unknown, and all of the
 * innermost window is covered. The innermost window counts even if it was moved to another window. Returns
 * false if both no longer exist. */
static bool follow_window(struct screen *s, struct field *f)
{
    struct screen_rect outer, now;
    if (!f->window)
        return true;
    bool has_outer = screen_window_rect(s, f->window, &outer) == 0;
    bool has_inner = f->inner != f->window && screen_window_rect(s, f->inner, &now) == 0;
    if (!has_outer && !has_inner)
        return false;
    if (f->inner != f->window && !has_inner)
        leave_inner(f);
    now = has_inner ? now : outer;
    if (now.w != f->window_at.w || now.h != f->window_at.h)
        f->at = (struct screen_rect){0, 0, now.w, now.h};
    f->window_at = now;
    f->outer_at = has_outer ? outer : f->outer_at;
    return true;
}

static void follow_windows(struct redact *r, struct screen *s)
{
    for (int i = r->n - 1; i >= 0; i--)
        if (!follow_window(s, &r->fields[i]))
            remove_field(r, i);
}

/* ---- the field -------------------------------------------------------------------------------- */

struct redact *redact_new(void)
{
    pthread_condattr_t clock;
    struct redact *r = xcalloc(1, sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&r->typed, &clock);
    pthread_condattr_destroy(&clock);
    return r;
}

void redact_free(struct redact *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->n; i++)
        wipe(&r->fields[i].glyphs);
    wipe(&r->before);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->typed);
    free(r);
}

static void end_typing(struct redact *r)
{
    r->typing = NULL;
    pthread_cond_broadcast(&r->typed);
}

int redact_before(struct redact *r, struct screen *s, struct err *e)
{
    LOCKED(&r->lock);
    follow_windows(r, s);
    int rc = r->n < REDACT_FIELDS ? screen_capture(s, &r->before, e)
                                  : err_set(e, ERR_FAILED,
                                            "cannot cover secrets in more than %d fields; close "
                                            "their windows first",
                                            REDACT_FIELDS);
    if (rc)
        wipe(&r->before);
    r->typing = rc ? r->typing : s;
    r->typist = s;
    return rc;
}

void redact_untyped(struct redact *r)
{
    LOCKED(&r->lock);
    wipe(&r->before);
    end_typing(r);
}

static bool one_colour(const struct image *im)
{
    return !memcmp(im->rgb, im->rgb + 3, 3 * ((size_t)im->w * (size_t)im->h - 1));
}

/* Stores the left part of the changed area for the search; the rest may contain a blinking caret. */
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

static int round_down(int v, int step)
{
    return v >= 0 ? v / step * step : -((-v + step - 1) / step) * step;
}

/* Extends a box by a margin and to the grid, within the window; root pixels. The grid begins at the window's
 * corner, so a caret or the shape of a character moves an edge only in steps of the grid. */
static struct screen_rect padded(struct screen_rect box, struct screen_rect window)
{
    int x = box.x - window.x, y = box.y - window.y;
    int left = round_down(x - MARGIN, FINE), right = -round_down(-(x + box.w + MARGIN), GRID);
    int top = round_down(y - MARGIN, FINE), bottom = -round_down(-(y + box.h + MARGIN), FINE);
    struct screen_rect at = {window.x + left, window.y + top, right - left, bottom - top};
    return screen_rect_intersect(at, window);
}

/* Merges the last field with overlapping fields of the same window. */
static void join_overlapping(struct redact *r)
{
    unsigned long window = r->fields[r->n - 1].window;
    struct screen_rect at = r->fields[r->n - 1].at;
    for (int i = r->n - 2; i >= 0; i--) {
        struct screen_rect b = r->fields[i].at;
        if (r->fields[i].window != window || !screen_rect_intersect(at, b).w ||
            !screen_rect_intersect(at, b).h)
            continue;
        at = screen_rect_join(at, b);
        remove_field(r, i);
    }
    r->fields[r->n - 1].at = at;
}

/* Captures the screen once `part` has not changed for REST_MS. */
static int capture_settled(struct screen *s, struct screen_rect part, struct image *now, struct err *e)
{
    struct image last = {0};
    int64_t start = clock_ns(), since = start;
    int rc = screen_capture(s, now, e);
    while (rc == 0 && clock_ms_since(since) < REST_MS && clock_ms_since(start) < REST_MAX_MS) {
        if (screen_wait(s, POLL_MS, NULL)) /* stopped: use this screenshot */
            break;
        struct image swap = last;
        last = *now;
        *now = swap;
        rc = screen_capture(s, now, e);
        part = screen_rect_intersect(part, (struct screen_rect){0, 0, now->w, now->h});
        if (rc == 0 && (last.w != now->w || last.h != now->h || changed_box(&last, now, part).w))
            since = clock_ns();
    }
    wipe(&last);
    return rc;
}

/* Returns the area that typing has changed, in root pixels; if nothing has changed, a band of the window, or
 * all of it. */
static struct screen_rect find_field(const struct redact *r, struct screen *s, const struct image *now,
                                     struct screen_rect whole, int x, int y, struct screen_rect *box)
{
    struct screen_rect view = screen_view(s), image = {0, 0, now->w, now->h};
    *box = (struct screen_rect){0};
    if (now->w == r->before.w && now->h == r->before.h)
        *box =
            changed_box(&r->before, now, screen_rect_intersect(translated(whole, -view.x, -view.y), image));
    if (box->w)
        return padded(translated(*box, view.x, view.y), whole);
    return x < 0 ? whole
                 : screen_rect_intersect((struct screen_rect){whole.x, y - BAND, whole.w, 2 * BAND}, whole);
}

/* Adds the field at this position of the screen. box: the text in the screenshot `now`, w 0: unknown. */
static void add_field(struct redact *r, struct screen *s, const struct screen_window *w,
                      struct screen_rect whole, struct screen_rect at, struct screen_rect box,
                      const struct image *now)
{
    struct screen_rect view = screen_view(s), there, image = {0, 0, r->before.w, r->before.h};
    unsigned long id = w->id && screen_window_rect(s, w->id, &there) == 0 ? w->id : 0;
    struct field *f = &r->fields[r->n++];
    *f = (struct field){.window = id, .inner = id, .window_at = whole, .outer_at = whole};
    if (id && box.w)
        f->inner = screen_window_around(s, id, translated(box, view.x, view.y));
    if (f->inner != id && screen_window_rect(s, f->inner, &f->window_at))
        *f = (struct field){.window = id, .inner = id, .window_at = whole, .outer_at = whole};
    f->at = translated(at, -f->window_at.x, -f->window_at.y);
    join_overlapping(r);
    f = &r->fields[r->n - 1];
    mean_colour(
        &r->before,
        screen_rect_intersect(translated(f->at, f->window_at.x - view.x, f->window_at.y - view.y), image),
        f->colour);
    if (box.w)
        keep_glyphs(f, now, box, view);
}

/* Covers the whole screen from now on, because there are secrets in more than REDACT_FIELDS fields. */
static void cover_screen(struct redact *r, struct screen *s)
{
    struct screen_rect root = screen_root(s);
    while (r->n)
        remove_field(r, r->n - 1);
    r->fields[r->n++] = (struct field){
        .at = {0, 0, root.w, root.h}, .window_at = root, .outer_at = root, .colour = {128, 128, 128}};
}

int redact_after(struct redact *r, struct screen *s, const struct screen_window *w, int x, int y,
                 struct err *e)
{
    struct image now = {0};
    struct screen_rect view = screen_view(s), whole = w->id ? w->rect : screen_root(s), box;
    int rc = capture_settled(s, translated(whole, -view.x, -view.y), &now, e);
    pthread_mutex_lock(&r->lock);
    if (rc)
        wipe(&now); /* then all of the window is covered */
    struct screen_rect at = find_field(r, s, &now, whole, rc ? -1 : x, y, &box);
    if (r->n < REDACT_FIELDS)
        add_field(r, s, w, whole, at, box, &now);
    else
        cover_screen(r, s);
    end_typing(r);
    pthread_mutex_unlock(&r->lock);
    wipe(&now);
    return rc;
}

void redact_seal(struct redact *r)
{
    LOCKED(&r->lock);
    wipe(&r->before);
}

void redact_leave(struct redact *r, const struct screen *s)
{
    LOCKED(&r->lock);
    if (r->typist == s)
        wipe(&r->before);
    if (r->typing == s)
        end_typing(r);
}

bool redact_has_fields(struct redact *r)
{
    LOCKED(&r->lock);
    return r->n > 0;
}

/* Extends the last field if a later screenshot shows more of the typed text. */
static void grow_last(struct redact *r, struct screen *s, const struct image *im)
{
    struct field *f = &r->fields[r->n - 1];
    struct screen_rect box, at = find_field(r, s, im, f->outer_at, -1, -1, &box);
    if (box.w)
        f->at = screen_rect_join(f->at, translated(at, -f->window_at.x, -f->window_at.y));
}

/* ---- images ----------------------------------------------------------------------------------------- */

void redact_paint(struct image *im, struct screen_rect part, const uint8_t colour[3])
{
    part = screen_rect_intersect(part, (struct screen_rect){0, 0, im->w, im->h});
    for (int y = part.y; y < part.y + part.h; y++) {
        for (int x = part.x; x < part.x + part.w; x++) {
            bool stripe = (x + y) / 2 % STRIPE == 0;
            for (int c = 0; c < 3; c++)
                image_at(im, x, y)[c] = (uint8_t)(!stripe           ? colour[c]
                                                  : colour[c] > 127 ? colour[c] - 60
                                                                    : colour[c] + 60);
        }
    }
}

/* Returns whether the window is visible at a corner or the centre of the cell; root pixels. */
static bool shows_window(struct screen *s, unsigned long window, struct screen_rect c)
{
    return !window || screen_window_covers(s, window, c.x, c.y) ||
           screen_window_covers(s, window, c.x + c.w - 1, c.y) ||
           screen_window_covers(s, window, c.x, c.y + c.h - 1) ||
           screen_window_covers(s, window, c.x + c.w - 1, c.y + c.h - 1) ||
           screen_window_covers(s, window, c.x + c.w / 2, c.y + c.h / 2);
}

static void fill_field(struct screen *s, const struct field *f, struct image *im)
{
    struct screen_rect view = screen_view(s), at = translated(f->at, f->window_at.x, f->window_at.y);
    int cw = int_max(CELL, at.w / CELL), ch = int_max(CELL, at.h / CELL);
    for (int y = at.y; y < at.y + at.h; y += ch) {
        for (int x = at.x; x < at.x + at.w; x += cw) {
            struct screen_rect cell = screen_rect_intersect((struct screen_rect){x, y, cw, ch}, at);
            if (shows_window(s, f->inner, cell))
                redact_paint(im, translated(cell, -view.x, -view.y), f->colour);
        }
    }
}

/* Covers further occurrences of the same characters. */
static void fill_copies(const struct field *f, const struct copy *copies, int n, struct image *im)
{
    for (int i = 0; i < n; i++) {
        const struct copy *c = &copies[i];
        int wider = (c->w - f->glyphs.w) * int_max(f->at.w, 1) / int_max(f->glyphs.w, 1);
        redact_paint(im, (struct screen_rect){c->x - f->gx, c->y - f->gy, f->at.w + wider, f->at.h},
                     f->colour);
    }
}

/* Waits until no other screen is typing a secret. Returns false after TYPING_S. */
static bool wait_for_typing(struct redact *r, const struct screen *s)
{
    struct timespec until;
    int rc = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += TYPING_S;
    while (r->typing && r->typing != s && rc == 0)
        rc = pthread_cond_timedwait(&r->typed, &r->lock, &until);
    return rc == 0;
}

static void cover_fields(struct redact *r, struct screen *s, struct image *im)
{
    follow_windows(r, s);
    if (r->before.rgb && r->n)
        grow_last(r, s, im);
    /* All copies are found before any area is painted: a copy on the next line may touch the first, or be
     * inside a field. */
    struct copy *copies[REDACT_FIELDS];
    int n[REDACT_FIELDS];
    for (int i = 0; i < r->n; i++)
        n[i] = copies_find(im, &r->fields[i].glyphs, &copies[i]);
    for (int i = 0; i < r->n; i++) {
        fill_copies(&r->fields[i], copies[i], n[i], im);
        fill_field(s, &r->fields[i], im);
        free(copies[i]);
    }
}

void redact_image(struct redact *r, struct screen *s, struct image *im)
{
    static const uint8_t grey[3] = {128, 128, 128};
    if (!r || !im->rgb)
        return;
    LOCKED(&r->lock);
    if (wait_for_typing(r, s))
        cover_fields(r, s, im);
    else /* cover everything rather than show a partly typed secret */
        redact_paint(im, (struct screen_rect){0, 0, im->w, im->h}, grey);
}
