/* observed_busy.c - compares the area around a target with the observed frame, and learns which areas of the
 * screen change by themselves.
 *
 * Such areas are cells of 16x16 pixels of the root. A cell is busy, and its pixels are ignored, for BUSY_MS
 * after repeated changes during screen_settle() or while a difference was monitored. A cell that has refused
 * an event twice within STOPS_MS also becomes busy. */
#include "screen/observed_impl.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum {
    CELL = 16,
    BUSY_MS = 20000,
    LEARN_TIMES = 4, /* a reaction to an action changes a cell less often */
    AGAIN_MS = 700,  /* changes further apart do not count as one animation */
    STOPS_MS = 60000,
    WATCH_MS = 1200,
    CLOCK_MS = 2800, /* extended time if something at the target changes once a second */
    WATCH_POLL_MS = 100,
    SMALL = 60 * 24, /* maximum pixels of an area that may change once a second: a clock */
    BUSY_REACH = 5,  /* cells that a moving object may reach next */
    CLOCK_W = 64,
    CLOCK_H = 24,
    CORE_X = 24, /* distance from the target within which only animations are ignored */
    CORE_Y = 10
};
static const double content_share = 0.3;

static void make_cells(struct observed *o, struct screen_rect root)
{
    int columns = root.w / CELL + 1, rows = root.h / CELL + 1;
    if (o->cells && columns == o->columns && rows == o->rows)
        return;
    free(o->cells);
    o->cells = xcalloc((unsigned long)columns * (unsigned long)rows, sizeof *o->cells);
    o->columns = columns;
    o->rows = rows;
}

/* Returns the cell of a pixel of the root, or NULL outside. */
static struct observed_cell *cell_at(const struct observed *o, int x, int y)
{
    bool inside = o->cells && x >= 0 && y >= 0 && x / CELL < o->columns && y / CELL < o->rows;
    return inside ? &o->cells[y / CELL * o->columns + x / CELL] : NULL;
}

bool observed_busy_at(const struct observed *o, int x, int y, int64_t time)
{
    const struct observed_cell *c = cell_at(o, x, y);
    return c && c->busy > time;
}

bool observed_mostly_busy(const struct screen *s, struct screen_rect r)
{
    int busy = 0, all = 0;
    int64_t time = clock_ns();
    for (int y = r.y / CELL; s->observed && y <= (r.y + r.h - 1) / CELL; y++)
        for (int x = r.x / CELL; x <= (r.x + r.w - 1) / CELL; x++, all++)
            busy += observed_busy_at(s->observed, x * CELL, y * CELL, time);
    return all && 2 * busy >= all;
}

bool observed_keep_frame(struct screen *s, struct observed *o, const struct image *frame)
{
    make_cells(o, s->root_rect);
    if (s->lost || !frame->rgb)
        return false;
    if (o->frame.w != frame->w || o->frame.h != frame->h) {
        image_free(&o->frame);
        if (image_alloc(&o->frame, frame->w, frame->h, NULL))
            return false;
    }
    if (!s->ops->recall(s, frame->w, frame->h, o->frame.rgb))
        memcpy(o->frame.rgb, frame->rgb, 3 * (size_t)frame->w * (size_t)frame->h);
    return true;
}

/* ---- while the screen settles ------------------------------------------------------------------------ */

static bool cell_differs(const struct image *a, const struct image *b, int x0, int y0)
{
    int x1 = x0 + CELL < a->w ? x0 + CELL : a->w, y1 = y0 + CELL < a->h ? y0 + CELL : a->h;
    for (int y = y0; y < y1; y++) {
        size_t at = 3 * ((size_t)y * (size_t)a->w + (size_t)x0), n = 3 * (size_t)(x1 - x0);
        if (memcmp(a->rgb + at, b->rgb + at, n) != 0)
            return true;
    }
    return false;
}

void observed_begin_learning(struct screen *s)
{
    if (s->observed)
        s->observed->learns_since = clock_ns();
}

void observed_learn(struct screen *s, const struct image *a, const struct image *b, bool at_rest)
{
    struct observed *o = s->observed ? s->observed : xcalloc(1, sizeof *o);
    int64_t now = clock_ns();
    s->observed = o;
    if (a->w != b->w || a->h != b->h)
        return;
    make_cells(o, s->root_rect);
    for (int y = 0; y < a->h; y += CELL)
        for (int x = 0; x < a->w; x += CELL) {
            struct observed_cell *c = cell_at(o, x + s->view.x, y + s->view.y);
            if (!c || !cell_differs(a, b, x, y))
                continue;
            bool again = c->changed > o->learns_since && now - c->changed < AGAIN_MS * 1000000LL;
            c->times = again ? c->times + 1 : 1;
            if (at_rest || c->times >= LEARN_TIMES)
                c->busy = now + BUSY_MS * 1000000LL;
            c->changed = now;
        }
}

/* ---- the area around the target ---------------------------------------------------------------------- */

struct area {
    struct observed_area a;
    struct screen_rect r; /* current position in root pixels */
    uint8_t *was, *is, *skip, *differs;
};

static void area_free(struct area *k)
{
    free(k->was);
    k->was = NULL;
}

/* Returns the area around a position that was in the observed frame and is inside the window; w or h is 0 if
 * there is none. */
static struct screen_rect neighbourhood(const struct screen *s, const struct observed_now *now, int x, int y)
{
    const struct observed *o = s->observed;
    struct screen_rect r = {x - OBSERVED_REACH_X, y - OBSERVED_REACH_Y, 2 * OBSERVED_REACH_X + 1,
                            2 * OBSERVED_REACH_Y + 1};
    struct screen_rect view = {o->view.x + now->dx, o->view.y + now->dy, o->frame.w, o->frame.h};
    r = screen_rect_intersect(screen_rect_intersect(r, view), s->root_rect);
    for (int i = 0; i < now->n; i++)
        if (now->tops[i].id == now->hit)
            r = screen_rect_intersect(r, now->tops[i].rect);
    return r;
}

static void area_begin(struct area *k, struct screen *s, const struct observed_now *now, int x, int y)
{
    const struct observed *o = s->observed;
    *k = (struct area){.r = neighbourhood(s, now, x, y)};
    size_t n = (size_t)k->r.w * (size_t)k->r.h;
    if (!k->r.w || !k->r.h || x < k->r.x || y < k->r.y || x >= k->r.x + k->r.w || y >= k->r.y + k->r.h)
        return;
    k->was = xcalloc(8 * n + 1, 1);
    k->is = k->was + 3 * n;
    k->skip = k->is + 3 * n;
    k->differs = k->skip + n;
    int x0 = k->r.x - now->dx - o->view.x, y0 = k->r.y - now->dy - o->view.y;
    for (int row = 0; row < k->r.h; row++)
        memcpy(k->was + 3 * (size_t)row * (size_t)k->r.w,
               o->frame.rgb + 3 * ((size_t)(y0 + row) * (size_t)o->frame.w + (size_t)x0), 3 * (size_t)k->r.w);
    k->a = (struct observed_area){.was = k->was,
                                  .is = k->is,
                                  .skip = k->skip,
                                  .w = k->r.w,
                                  .h = k->r.h,
                                  .x = x - k->r.x,
                                  .y = y - k->r.y,
                                  .frame = &o->frame,
                                  .x0 = x0,
                                  .y0 = y0};
}

static void skip_rect(struct area *k, struct screen_rect r)
{
    r = screen_rect_intersect(r, k->r);
    for (int y = r.y; y < r.y + r.h; y++)
        memset(k->skip + (size_t)(y - k->r.y) * (size_t)k->r.w + (r.x - k->r.x), 1, (size_t)r.w);
}

static bool in_core(const struct area *k, struct screen_rect r)
{
    struct screen_rect core = {k->r.x + k->a.x - CORE_X, k->r.y + k->a.y - CORE_Y, 2 * CORE_X + 1,
                               2 * CORE_Y + 1};
    return screen_rect_intersect(r, core).w > 0;
}

/* Returns whether a cell is busy, or (away from the target) near a busy cell whose animation may reach it. */
static bool is_busy(const struct area *k, const struct observed *o, int column, int row, int64_t time)
{
    struct screen_rect cell = {column * CELL, row * CELL, CELL, CELL};
    int reach = in_core(k, cell) ? 0 : BUSY_REACH;
    bool busy = false;
    for (int i = -reach; i <= reach; i++) {
        const struct observed_cell *c = cell_at(o, (column + i) * CELL, row * CELL);
        busy = busy || (c && c->busy > time);
    }
    return busy;
}

/* Marks ignored pixels: busy cells, carets, and areas covered by other windows then or now. */
static void find_skipped(struct area *k, const struct screen *s, const struct observed_now *now)
{
    const struct observed *o = s->observed;
    int64_t time = clock_ns();
    memset(k->skip, 0, (size_t)k->r.w * (size_t)k->r.h);
    for (int y = k->r.y / CELL; y <= (k->r.y + k->r.h - 1) / CELL; y++)
        for (int x = k->r.x / CELL; x <= (k->r.x + k->r.w - 1) / CELL; x++)
            if (is_busy(k, o, x, y, time))
                skip_rect(k, (struct screen_rect){x * CELL, y * CELL, CELL, CELL});
    for (int i = 0; i < MAX_BLINKERS; i++)
        if (s->blinkers[i].times > 2)
            skip_rect(k, s->blinkers[i].rect);
    /* otherwise the window lets the pointer through */
    for (int i = 0; i < now->n && now->tops[i].id != now->hit; i++)
        if (!(k->a.x + k->r.x >= now->tops[i].rect.x && k->a.y + k->r.y >= now->tops[i].rect.y &&
              k->a.x + k->r.x < now->tops[i].rect.x + now->tops[i].rect.w &&
              k->a.y + k->r.y < now->tops[i].rect.y + now->tops[i].rect.h))
            skip_rect(k, now->tops[i].rect);
    for (int i = 0; i < o->n && o->tops[i].id != now->hit; i++) {
        struct screen_rect r = o->tops[i].rect;
        r.x += now->dx;
        r.y += now->dy;
        struct screen_rect at = {k->r.x + k->a.x, k->r.y + k->a.y, 1, 1};
        if (!screen_rect_intersect(r, at).w)
            skip_rect(k, r);
    }
}

static bool area_changed(struct area *k, const struct screen *s, const struct observed_now *now)
{
    find_skipped(k, s, now);
    return observed_area_changed(&k->a, k->differs);
}

/* ---- monitoring a difference ------------------------------------------------------------------------- */

enum {
    SWAPS = 8,
    SOLID = 12 /* pixels in a row that change alike; a character has fewer */
};

/* Pairs of colours that replaced each other in solid runs of one row: an object that moves along the row, and
 * its background. */
struct swaps {
    uint8_t from[SWAPS][3], to[SWAPS][3];
    int n;
    int times; /* captures with such runs */
};

struct watched { /* change counts of the area, [h][w] */
    uint8_t *early, *late;
    uint8_t *last;      /* RGB */
    struct swaps *rows; /* [h] */
    bool clock;         /* something at the target changed: monitored longer */
    uint8_t *times;     /* [h / CELL + 2][w / CELL + 2]: captures in which the cell had changed */
};

/* Returns the index of a pixel's cell in watched.times. */
static int cell_of(const struct area *k, int i)
{
    int column = (k->r.x + i % k->r.w) / CELL - k->r.x / CELL,
        row = (k->r.y + i / k->r.w) / CELL - k->r.y / CELL;
    return row * (k->r.w / CELL + 2) + column;
}

static int cells_of(const struct area *k)
{
    return (k->r.w / CELL + 2) * (k->r.h / CELL + 2);
}

static bool is_swap(const struct swaps *s, const uint8_t *p, const uint8_t *q)
{
    for (int i = 0; i < s->n; i++)
        if ((observed_same_colour(s->from[i], p) && observed_same_colour(s->to[i], q)) ||
            (observed_same_colour(s->from[i], q) && observed_same_colour(s->to[i], p)))
            return true;
    return false;
}

static void note_swaps(struct swaps *s, const uint8_t *p, const uint8_t *q, int n)
{
    bool moved = false;
    for (int x = 0, run; x < n; x += run ? run : 1) {
        run = observed_solid_run(p + 3 * x, q + 3 * x, n - x);
        if (run < SOLID)
            continue;
        moved = true;
        if (s->n < SWAPS && !is_swap(s, p + 3 * x, q + 3 * x)) {
            memcpy(s->from[s->n], p + 3 * x, 3);
            memcpy(s->to[s->n++], q + 3 * x, 3);
        }
    }
    s->times += moved;
}

static void count_changes(const struct area *k, struct watched *w, bool late)
{
    size_t row = 3 * (size_t)k->r.w;
    bool *changed = xcalloc((unsigned long)cells_of(k), sizeof *changed);
    for (int i = 0; i < k->r.w * k->r.h; i++) {
        uint8_t *n = late ? w->late : w->early;
        if (observed_same_colour(w->last + 3 * i, k->is + 3 * i))
            continue;
        n[i] += n[i] < 255;
        changed[cell_of(k, i)] = true;
    }
    for (int i = 0; i < cells_of(k); i++)
        w->times[i] += changed[i];
    free(changed);
    for (int y = 0; y < k->r.h; y++)
        note_swaps(&w->rows[y], w->last + row * (size_t)y, k->is + row * (size_t)y, k->r.w);
    memcpy(w->last, k->is, row * (size_t)k->r.h);
}

static void mark_cells(const struct area *k, const struct screen *s, int x, int y, int n, int64_t until)
{
    for (int i = 0; i < n; i++) {
        struct observed_cell *c = cell_at(s->observed, k->r.x + x + i, k->r.y + y);
        if (c)
            c->busy = until;
    }
}

/* Marks cells as busy over which a moving object has passed that still moves along the same rows, like a
 * progress bar. */
static void mark_passed(const struct area *k, const struct screen *s, const struct watched *w, int64_t until)
{
    for (int y = 0; y < k->r.h; y++) {
        const uint8_t *p = k->was + 3 * y * k->r.w, *q = k->is + 3 * y * k->r.w;
        if (w->rows[y].times < 2)
            continue;
        for (int x = 0, run; x < k->r.w; x += run ? run : 1) {
            run = observed_solid_run(p + 3 * x, q + 3 * x, k->r.w - x);
            if (run >= SOLID && is_swap(&w->rows[y], p + 3 * x, q + 3 * x))
                mark_cells(k, s, x, y, run, until);
        }
    }
}

/* Returns whether only a small area at the target changes, like a clock. */
static bool clock_changes(const struct area *k, const struct watched *w)
{
    bool moves = false;
    int x0 = k->r.w, x1 = 0, y0 = k->r.h, y1 = 0;
    for (int i = 0; i < k->r.w * k->r.h; i++) {
        int x = i % k->r.w, y = i / k->r.w, dx = abs(x - k->a.x), dy = abs(y - k->a.y);
        if (!k->differs[i] || dx > 2 * CLOCK_W)
            continue;
        x0 = x < x0 ? x : x0, x1 = x > x1 ? x : x1;
        y0 = y < y0 ? y : y0, y1 = y > y1 ? y : y1;
        moves = moves || (w->early[i] + w->late[i] && dx <= CORE_X && dy <= CORE_Y);
    }
    return moves && x1 - x0 < CLOCK_W && y1 - y0 < CLOCK_H;
}

/* Marks cells as busy: those that changed continuously, and small areas away from the target that changed at
 * all. */
static void mark_busy(const struct area *k, const struct screen *s, const struct watched *w)
{
    int n = 0;
    bool clock = w->clock && clock_changes(k, w);
    int64_t until = clock_ns() + BUSY_MS * 1000000LL;
    for (int i = 0; i < k->r.w * k->r.h; i++)
        n += k->differs[i];
    for (int y = 0; y < k->r.h; y++)
        for (int x = 0; x < k->r.w; x++) {
            int i = y * k->r.w + x;
            struct observed_cell *c = cell_at(s->observed, k->r.x + x, k->r.y + y);
            bool core = abs(x - k->a.x) <= CORE_X && abs(y - k->a.y) <= CORE_Y;
            bool always = w->early[i] && w->late[i] && w->early[i] + w->late[i] >= 3;
            always = always || (clock && k->differs[i] && w->times[cell_of(k, i)] >= 3);
            if (c && (always || (n <= SMALL && !core && w->early[i] + w->late[i])))
                c->busy = until;
        }
}

static void note_differences(const struct area *k, struct observed *o)
{
    for (int i = 0; i < o->columns * o->rows; i++)
        o->cells[i].differs = false;
    for (int i = 0; i < k->r.w * k->r.h; i++) {
        struct observed_cell *c = cell_at(o, k->r.x + i % k->r.w, k->r.y + i / k->r.w);
        if (c && k->differs[i])
            c->differs = true;
    }
}

/* Captures the area every WATCH_POLL_MS for ms and counts changes; those after `late_ms` count as late. */
static int watch_for(struct area *k, struct watched *w, struct screen *s, const struct observed_now *now,
                     double ms, double late_ms, bool *changed, struct err *e)
{
    int64_t start = clock_ns();
    int rc = 0;
    while (*changed && rc == 0 && clock_ms_since(start) < ms) {
        rc = screen_wait(s, WATCH_POLL_MS, e) || s->ops->capture(s, k->r, k->is, e) ? -1 : 0;
        if (rc == 0) {
            count_changes(k, w, clock_ms_since(start) > late_ms);
            *changed = area_changed(k, s, now); /* false: a short flash is over */
        }
    }
    return rc;
}

static int watch(struct area *k, struct screen *s, const struct observed_now *now, bool *changed,
                 struct err *e)
{
    size_t n = (size_t)k->r.w * (size_t)k->r.h;
    struct watched w = {.early = xcalloc(5 * n + 1, 1)};
    w.late = w.early + n;
    w.last = w.late + n;
    memcpy(w.last, k->is, 3 * n);
    w.rows = xcalloc((unsigned long)k->r.h, sizeof *w.rows);
    w.times = xcalloc((unsigned long)cells_of(k), 1);
    int rc = watch_for(k, &w, s, now, WATCH_MS, WATCH_MS / 2.0, changed, e);
    if (*changed && rc == 0 && clock_changes(k, &w)) {
        w.clock = true;
        rc = watch_for(k, &w, s, now, CLOCK_MS, 0, changed, e);
    }
    if (*changed && rc == 0) {
        mark_busy(k, s, &w);
        mark_passed(k, s, &w, clock_ns() + BUSY_MS * 1000000LL);
        *changed = area_changed(k, s, now);
    }
    free(w.early);
    free(w.rows);
    free(w.times);
    return rc;
}

int observed_pixels_changed(struct screen *s, const struct observed_now *now, int x, int y, bool *changed,
                            struct err *e)
{
    struct area k;
    *changed = false;
    area_begin(&k, s, now, x, y);
    if (!k.was)
        return 0;
    int rc = s->ops->capture(s, k.r, k.is, e);
    *changed = rc == 0 && area_changed(&k, s, now);
    if (*changed)
        rc = watch(&k, s, now, changed, e);
    if (*changed)
        note_differences(&k, s->observed);
    area_free(&k);
    return rc;
}

int observed_under_changed(struct screen *s, const struct observed_now *now, int x, int y, bool *changed,
                           struct err *e)
{
    struct area k;
    *changed = false;
    area_begin(&k, s, now, x, y);
    if (!k.was)
        return 0;
    k.a.hovered = true;
    int rc = s->ops->capture(s, k.r, k.is, e);
    *changed = rc == 0 && area_changed(&k, s, now);
    area_free(&k);
    return rc;
}

bool observed_window_changed(struct screen *s, struct screen_rect r)
{
    const struct observed *o = s->observed;
    struct screen_rect view = {o->view.x, o->view.y, o->frame.w, o->frame.h};
    struct image was = {0}, is = {0};
    r = screen_rect_intersect(screen_rect_intersect(r, view), s->root_rect);
    bool changed = r.w > 0 && r.h > 0 &&
                   image_crop(&was, &o->frame, r.x - view.x, r.y - view.y, r.w, r.h, NULL) == 0 &&
                   image_alloc(&is, r.w, r.h, NULL) == 0 && s->ops->capture(s, r, is.rgb, NULL) == 0 &&
                   image_tiles_changed(&was, &is, IMAGE_EFFECT_LEVEL) > content_share;
    image_free(&was);
    image_free(&is);
    return changed;
}

void observed_note_stop(struct observed *o)
{
    int64_t now = clock_ns();
    for (int i = 0; i < o->columns * o->rows; i++) {
        struct observed_cell *c = &o->cells[i];
        if (!c->differs)
            continue;
        c->stops = now - c->stopped < STOPS_MS * 1000000LL ? c->stops + 1 : 1;
        c->stopped = now;
        if (c->stops >= 2)
            c->busy = now + STOPS_MS * 1000000LL;
    }
}
