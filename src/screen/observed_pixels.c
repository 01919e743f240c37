/* observed_pixels.c - compares the pixels around a target then and now.
 *
 * Both images become maps of shapes: pixels that differ from the most frequent brightness of their 16x16
 * block. A changed background (hover, focus, selection) does not change these maps; a changed text does.
 *
 *   near    72x20 pixels to each side of the target: a changed character counts, a caret or a frame does not
 *   line    the window's width, 12 rows up and down: counts if more than half of the shapes differ
 *   under   28x12 pixels, just before the press, when hovering may have added something: counts if 20 % of
 *           the edges have disappeared
 *   scroll  columns of 64 pixels whose rows near the target have changed and are found higher or lower in
 *           the old image */
#include "screen/private.h"

#include "base/number.h"

#include <stdlib.h>
#include <string.h>

enum {
    TOLERANCE = 24, /* per colour channel */
    CONTRAST = 40,  /* between a shape and its background */
    BLOCK = 16,
    NEAR_X = 72,
    NEAR_Y = 20,
    LINE_Y = 12,
    UNDER_X = 28, /* around the pointer */
    UNDER_Y = 12,
    DOT = 3,       /* smaller differences are antialiased edges */
    STRAIGHT = 16, /* pixels of a horizontal border */
    /* percent of the edges of a text: an inverted text loses at most 16, another text 21 to 53 */
    GONE = 20,
    LETTER = 8,      /* pixels of shapes that must differ */
    ANY_SHIFTED = 24 /* the same on another background, where edges are antialiased differently */
};

struct maps {
    const struct observed_area *a;
    uint8_t *raw, *was, *is, *other; /* [h][w]: colours differ; shapes then; shapes now; shapes differ */
};

static int brightness(const uint8_t *p)
{
    return (p[0] * 2 + p[1] * 5 + p[2]) / 8;
}

/* Returns the most frequent brightness of a block, in bins of 8 that overlap by half. */
static int background(const uint8_t *rgb, int w, int x0, int y0, int x1, int y1)
{
    int bins[34] = {0}, best = 0;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            bins[brightness(rgb + 3 * (y * w + x)) / 8]++;
    for (int i = 1; i < 33; i++)
        best = bins[i] + bins[i + 1] > bins[best] + bins[best + 1] ? i : best;
    return best * 8 + 8;
}

static void find_shapes(const uint8_t *rgb, int w, int h, uint8_t *out)
{
    for (int y0 = 0; y0 < h; y0 += BLOCK)
        for (int x0 = 0; x0 < w; x0 += BLOCK) {
            int x1 = int_min(x0 + BLOCK, w), y1 = int_min(y0 + BLOCK, h),
                b = background(rgb, w, x0, y0, x1, y1);
            for (int y = y0; y < y1; y++)
                for (int x = x0; x < x1; x++)
                    out[y * w + x] = abs(brightness(rgb + 3 * (y * w + x)) - b) > CONTRAST;
        }
}

/* Fills raw; returns the number of pixels set. */
static int find_differences(struct maps *m)
{
    const struct observed_area *a = m->a;
    int n = 0;
    for (int i = 0; i < a->w * a->h; i++) {
        m->raw[i] = !a->skip[i] && !observed_same_colour(a->was + 3 * i, a->is + 3 * i);
        n += m->raw[i];
    }
    return n;
}

/* ---- near the target ------------------------------------------------------------------------------ */

struct component { /* a connected component */
    int x0, y0, x1, y1, n;
};

/* Removes the component at x, y from map and returns its extent. stack: one int per pixel of the area. */
static struct component extract_component(uint8_t *map, int w, struct screen_rect r, int x, int y, int *stack)
{
    struct component p = {x, y, x, y, 0};
    int n = 0;
    stack[n++] = y * w + x;
    map[y * w + x] = 0;
    while (n) {
        int at = stack[--n], px = at % w, py = at / w;
        p = (struct component){int_min(p.x0, px), int_min(p.y0, py), int_max(p.x1, px), int_max(p.y1, py),
                               p.n + 1};
        for (int ny = int_max(py - 1, r.y); ny <= py + 1 && ny < r.y + r.h; ny++)
            for (int nx = int_max(px - 1, r.x); nx <= px + 1 && nx < r.x + r.w; nx++)
                if (map[ny * w + nx]) {
                    map[ny * w + nx] = 0;
                    stack[n++] = ny * w + nx;
                }
    }
    return p;
}

/* Returns whether the component looks like a text cursor: a thin bar or a filled block. */
static bool is_caret(const struct component *p)
{
    int w = p->x1 - p->x0 + 1, h = p->y1 - p->y0 + 1;
    return (w <= 3 && h >= 8 && h <= 48) || (w <= 16 && h >= 8 && h <= 48 && p->n >= 0.85 * w * h);
}

/* Returns whether the component has so few pixels for its size that it is an outline or a straight part of
 * one. */
static bool is_frame(const struct component *p)
{
    int w = p->x1 - p->x0 + 1, h = p->y1 - p->y0 + 1;
    return w >= 24 && (h <= 3 || (h >= 14 && p->n <= 4 * (w + h)));
}

static struct screen_rect near_target(const struct observed_area *a, int dx, int dy)
{
    struct screen_rect all = {0, 0, a->w, a->h}, r = {a->x - dx, a->y - dy, 2 * dx + 1, 2 * dy + 1};
    return screen_rect_intersect(all, r);
}

/* Counts pixels of differing shapes, without frames and without up to two carets. */
static int count_other(const struct maps *m, struct screen_rect r)
{
    int n = 0, carets = 0, of_carets = 0, w = m->a->w;
    size_t size = (size_t)w * (size_t)m->a->h;
    uint8_t *left = xmalloc(size + 1, 1);
    int *stack = xmalloc(size + 1, sizeof *stack);
    memcpy(left, m->other, size);
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++) {
            if (!left[y * w + x])
                continue;
            struct component p = extract_component(left, w, r, x, y, stack);
            if (p.n < DOT || is_frame(&p))
                continue;
            if (is_caret(&p))
                carets++, of_carets += p.n;
            else
                n += p.n;
        }
    free(left);
    free(stack);
    return n + (carets > 2 ? of_carets : 0); /* a caret that has moved counts twice */
}

static bool near_changed(const struct maps *m)
{
    struct screen_rect r = near_target(m->a, NEAR_X, NEAR_Y);
    int raw = 0, raw_background = 0, shapes = 0, w = m->a->w;
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++) {
            int i = y * w + x;
            raw += m->raw[i];
            raw_background += m->raw[i] && !m->was[i] && !m->is[i];
            shapes += !m->a->skip[i] && (m->was[i] || m->is[i]);
        }
    if (!raw)
        return false;
    bool shifted = 2 * raw_background > raw;
    return count_other(m, r) >= (shifted ? int_max(ANY_SHIFTED, shapes * 35 / 100) : LETTER);
}

/* Marks pixels whose brightness differs from the pixel to the left or above. Straight horizontal runs are
 * ignored: they are borders of a highlight. */
static void find_edges(const uint8_t *rgb, int w, struct screen_rect r, uint8_t *out)
{
    for (int y = r.y; y < r.y + r.h; y++) {
        int run = 0;
        for (int x = r.x; x < r.x + r.w; x++) {
            const uint8_t *p = rgb + 3 * (y * w + x);
            int b = brightness(p);
            bool left = x > r.x && abs(b - brightness(p - 3)) > CONTRAST;
            bool above = y > r.y && abs(b - brightness(p - 3 * w)) > CONTRAST;
            out[y * w + x] = left || above;
            run = above && !left ? run + 1 : 0;
            if (run >= STRAIGHT)
                memset(out + y * w + x - run + 1, 0, (size_t)run);
        }
    }
}

/* Returns whether edges under the pointer have disappeared. Hovering changes colours and adds frames. */
static bool under_changed(const struct maps *m)
{
    struct screen_rect r = near_target(m->a, UNDER_X, UNDER_Y);
    int shown = 0, gone = 0, w = m->a->w;
    find_edges(m->a->was, w, r, m->was);
    find_edges(m->a->is, w, r, m->is);
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++) {
            bool edge = !m->a->skip[y * w + x] && m->was[y * w + x];
            shown += edge;
            gone += edge && !m->is[y * w + x];
        }
    return gone >= ANY_SHIFTED && gone * 100 >= shown * GONE;
}

/* ---- the line of the target -------------------------------------------------------------------------- */

static bool line_changed(const struct maps *m)
{
    struct screen_rect r = near_target(m->a, m->a->w, LINE_Y);
    int shown = 0, changed = 0, w = m->a->w;
    for (int x0 = r.x; x0 < r.x + r.w; x0 += BLOCK) {
        int shapes = 0, other = 0;
        for (int y = r.y; y < r.y + r.h; y++)
            for (int x = x0; x < int_min(x0 + BLOCK, r.x + r.w); x++) {
                int i = y * w + x;
                shapes += !m->a->skip[i] && (m->was[i] || m->is[i]);
                other += m->other[i];
            }
        shown += shapes >= 4;
        changed += shapes >= 4 && other >= 6 && other * 100 >= shapes * 35;
    }
    return shown >= 3 && 2 * changed > shown;
}

/* ---- scrolling --------------------------------------------------------------------------------------- */

enum { COLUMN = 64, REACH_ROWS = 400, LEAST_ROWS = 12, LEAST_UNLIKE = 6 };

struct pixel_row {
    uint32_t hash;
    bool flat;
};

/* Hashes the edges of each row; edges do not change when a row is highlighted. */
static void hash_rows(const uint8_t *rgb, int stride, int w, int h, struct pixel_row *out)
{
    for (int y = 0; y < h; y++) {
        const uint8_t *p = rgb + 3 * (size_t)y * (size_t)stride;
        out[y] = (struct pixel_row){2166136261u, true};
        for (int x = 1; x < w; x++) {
            bool edge = abs(brightness(p + 3 * x) - brightness(p + 3 * (x - 1))) > CONTRAST;
            out[y].hash = (out[y].hash ^ edge) * 16777619u;
            out[y].flat = out[y].flat && !edge;
        }
    }
}

/* Returns whether the rows of `is` are found in `was`, `by` rows away. Many equal rows, like those of a
 * border, match everywhere and do not count. */
static bool found_shifted(const struct pixel_row *was, int n_was, const struct pixel_row *is, int n_is,
                          int by)
{
    int seen = 0, same = 0, unlike = 0;
    for (int y = 0; y < n_is; y++) {
        if (is[y].flat || y + by < 0 || y + by >= n_was)
            continue;
        seen++;
        same += is[y].hash == was[y + by].hash;
        unlike += y && is[y].hash == was[y + by].hash && is[y].hash != is[y - 1].hash;
    }
    return seen >= LEAST_ROWS && same * 10 >= seen * 9 && unlike >= LEAST_UNLIKE;
}

static bool column_scrolled(const struct observed_area *a, int x0, int w)
{
    struct pixel_row was[2 * REACH_ROWS + 1], is[2 * OBSERVED_REACH_Y + 1];
    int top = int_max(0, a->y0 - REACH_ROWS), bottom = int_min(a->frame->h, a->y0 + a->h + REACH_ROWS);
    int n = int_min(bottom - top, 2 * REACH_ROWS + 1), at = a->y0 - top;
    hash_rows(a->frame->rgb + 3 * ((size_t)top * (size_t)a->frame->w + (size_t)(a->x0 + x0)), a->frame->w, w,
              n, was);
    hash_rows(a->is + (size_t)3 * (size_t)x0, a->w, w, a->h, is);
    if (found_shifted(was, n, is, a->h, at)) /* not scrolled */
        return false;
    for (int by = 1; by < REACH_ROWS; by++)
        if (found_shifted(was, n, is, a->h, at - by) || found_shifted(was, n, is, a->h, at + by))
            return true;
    return false;
}

static bool scrolled(const struct maps *m)
{
    const struct observed_area *a = m->a;
    struct screen_rect r = near_target(a, a->w, LINE_Y);
    for (int x0 = 0; x0 + COLUMN / 2 < a->w; x0 += COLUMN) {
        bool changed = false;
        for (int y = r.y; y < r.y + r.h; y++)
            for (int x = x0; x < int_min(x0 + COLUMN, a->w) && !changed; x++)
                changed = m->raw[y * a->w + x];
        if (changed && column_scrolled(a, x0, int_min(COLUMN, a->w - x0)))
            return true;
    }
    return false;
}

/* ---- colours ----------------------------------------------------------------------------------------- */

bool observed_same_colour(const uint8_t *p, const uint8_t *q)
{
    return abs(p[0] - q[0]) <= TOLERANCE && abs(p[1] - q[1]) <= TOLERANCE && abs(p[2] - q[2]) <= TOLERANCE;
}

int observed_solid_run(const uint8_t *p, const uint8_t *q, int n)
{
    int i = 0;
    if (observed_same_colour(p, q))
        return 0;
    while (i < n && observed_same_colour(p + 3 * i, p) && observed_same_colour(q + 3 * i, q))
        i++;
    return i;
}

/* ---- interface --------------------------------------------------------------------------------------- */

bool observed_block_differs(const struct observed_area *a, uint8_t *where)
{
    struct screen_rect all = {0, 0, a->w, a->h};
    int *stack = xmalloc((size_t)a->w * (size_t)a->h + 1, sizeof *stack);
    bool found = false;
    for (int i = 0; i < a->w * a->h && !found; i++)
        if (where[i]) {
            struct component p = extract_component(where, a->w, all, i % a->w, i / a->w, stack);
            found = is_caret(&p);
        }
    free(stack);
    return found;
}

bool observed_area_changed(const struct observed_area *a, uint8_t *where)
{
    size_t size = (size_t)a->w * (size_t)a->h;
    uint8_t *room = xcalloc(3 * size + 1, 1);
    struct maps m = {a, where, room, room + size, room + 2 * size};
    bool changed = false;
    if (find_differences(&m)) {
        find_shapes(a->was, a->w, a->h, m.was);
        find_shapes(a->is, a->w, a->h, m.is);
        for (size_t i = 0; i < size; i++)
            m.other[i] = m.was[i] != m.is[i] && !a->skip[i];
        changed = (a->hovered ? under_changed(&m) : near_changed(&m) || line_changed(&m)) || scrolled(&m);
    }
    free(room);
    return changed;
}
