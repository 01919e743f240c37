/* emptied.c - detects that a page shows placeholders: grey blocks, empty rows, or nothing.
 *
 * Detail is measured as edges: pixels that differ clearly from their left or upper neighbour. Straight runs
 * are left out, because the sides of placeholders, cards and tables have them too; letters and pictures
 * keep most of their edges. Cells of 16x16 pixels with a difference are compared:
 *
 *   emptied    had detail, and has lost three quarters of it
 *   gained     edges where none were. A new text means that the content has been replaced, and is there.
 *
 * Two ordinary ways to lose detail are recognized. A window that closes uncovers those below it; its
 * rectangle is left out. A menu or dialog drawn by a page, or a section that is folded, restores pixels of an
 * earlier screenshot, content included. Blank cells alone are not enough, because a list may be blank before
 * each search. */
#include "screen/emptied.h"

#include "base/number.h"
#include "screen/observed_impl.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    CELL = 16,
    CONTRAST = 40, /* between neighbours, of 255 */
    STRAIGHT = 16, /* pixels of a run */
    DETAIL = 8,    /* edges in a cell; a character has 10 to 30 */
    LEAST_CELLS = 24,
    LEAST_ROWS = 4,    /* of cells: more than a field with one line */
    KEPT = 4,          /* an emptied cell has at most this part of its edges */
    GAINED = 16,       /* the new edges are at most this part of the lost ones, ... */
    GAINED_LEAST = 64, /* ... or this many: rounded corners, a frame around the pressed element */
    RESTORED = 8, /* cells with content that show an earlier screenshot again, as part of the emptied ones */
};

struct emptied {
    struct screen_top tops[SCREEN_TOPS];
    int n_tops;
    int w, h;                     /* of the screenshots */
    uint64_t *past[EMPTIED_PAST]; /* hashes of their cells; NULL: none yet */
    int next;
};

struct area_map { /* a value for each pixel of r, without padding */
    struct screen_rect r;
    uint8_t *at;
};

struct emptied_cells { /* a comparison */
    const struct image *before, *now;
    struct area_map was, is; /* edges then and now */
    uint8_t *changed;        /* [rows][columns] */
    int columns, rows;
};

static int columns_of(int w)
{
    return (w + CELL - 1) / CELL;
}

static struct screen_rect cell_rect(const struct image *im, int column, int row)
{
    return (struct screen_rect){column * CELL, row * CELL, int_min(CELL, im->w - column * CELL),
                                int_min(CELL, im->h - row * CELL)};
}

/* ---- edges ------------------------------------------------------------------------------------------- */

enum { LEFT = 1, ABOVE = 2 };

/* Allocates *out, which the caller frees. */
static void find_brightness(const struct image *im, struct screen_rect r, struct area_map *out)
{
    *out = (struct area_map){r, xmalloc((size_t)r.w + 1, (size_t)r.h)};
    for (int y = 0; y < r.h; y++) {
        const uint8_t *p = image_at(im, r.x, r.y + y);
        uint8_t *to = out->at + (size_t)y * (size_t)r.w;
        for (int x = 0; x < r.w; x++)
            to[x] = (uint8_t)((p[3 * x] * 2 + p[3 * x + 1] * 5 + p[3 * x + 2]) / 8);
    }
}

/* Clears marks of a row that are in runs of at least STRAIGHT equal to ABOVE. */
static void clear_row(uint8_t *row, int w)
{
    for (int x = 0, run = 0; x <= w; x++) {
        if (x < w && row[x] == ABOVE) {
            run++;
            continue;
        }
        if (run >= STRAIGHT)
            memset(row + x - run, 0, (size_t)run);
        run = 0;
    }
}

/* Clears marks that are in vertical runs of at least STRAIGHT equal to LEFT. */
static void clear_columns(struct area_map *m)
{
    size_t w = (size_t)m->r.w;
    int *run = xcalloc(w + 1, sizeof *run);
    for (int y = 0; y <= m->r.h; y++)
        for (size_t x = 0; x < w; x++) {
            uint8_t *p = m->at + (size_t)y * w + x;
            if (y < m->r.h && *p == LEFT) {
                run[x]++;
                continue;
            }
            for (int k = 1; run[x] >= STRAIGHT && k <= run[x]; k++)
                *(p - (size_t)k * w) = 0;
            run[x] = 0;
        }
    free(run);
}

/* Marks the edges of an area; the caller frees out->at. */
static void find_edges(const struct image *im, struct screen_rect r, struct area_map *out)
{
    struct area_map b;
    size_t w = (size_t)r.w;
    find_brightness(im, r, &b);
    *out = (struct area_map){r, xcalloc(w + 1, (size_t)r.h)};
    for (int y = 0; y < r.h; y++) {
        const uint8_t *p = b.at + (size_t)y * w, *over = y ? p - w : p;
        uint8_t *to = out->at + (size_t)y * w;
        for (size_t x = 0; x < w; x++)
            to[x] = abs(p[x] - over[x]) > CONTRAST ? ABOVE : 0;
        for (size_t x = 1; x < w; x++)
            to[x] |= abs(p[x] - p[x - 1]) > CONTRAST ? LEFT : 0;
        clear_row(to, r.w);
    }
    clear_columns(out);
    free(b.at);
}

static bool cell_differs(const struct emptied_cells *c, struct screen_rect r)
{
    for (int y = r.y; y < r.y + r.h; y++)
        if (memcmp(image_at(c->before, r.x, y), image_at(c->now, r.x, y), 3 * (size_t)r.w) != 0)
            return true;
    return false;
}

/* Finds the changed cells outside the closed windows, and the edges then and now. Returns false if there are
 * fewer than LEAST_CELLS. */
static bool compare(struct emptied_cells *c, const struct screen_rect *closed, int n_closed)
{
    struct screen_rect all = {0};
    int n = 0;
    for (int i = 0; i < c->columns * c->rows; i++) {
        struct screen_rect r = cell_rect(c->now, i % c->columns, i / c->columns);
        c->changed[i] = cell_differs(c, r);
        for (int k = 0; k < n_closed && c->changed[i]; k++)
            c->changed[i] = screen_rect_intersect(r, closed[k]).w == 0;
        if (c->changed[i])
            all = all.w ? screen_rect_join(all, r) : r;
        n += c->changed[i];
    }
    if (n < LEAST_CELLS)
        return false;
    const struct screen_rect wider = {all.x - STRAIGHT, all.y - STRAIGHT, all.w + 2 * STRAIGHT,
                                      all.h + 2 * STRAIGHT};
    all = screen_rect_intersect(wider, (struct screen_rect){0, 0, c->now->w, c->now->h});
    find_edges(c->before, all, &c->was);
    find_edges(c->now, all, &c->is);
    return true;
}

/* ---- earlier screenshots ----------------------------------------------------------------------------- */

static uint64_t hash_cell(const struct image *im, struct screen_rect r)
{
    uint64_t h = 0;
    for (int y = r.y; y < r.y + r.h; y++)
        h = XXH3_64bits_withSeed(image_at(im, r.x, y), 3 * (size_t)r.w, h);
    return h;
}

static void forget(struct emptied *m)
{
    for (int i = 0; i < EMPTIED_PAST; i++) {
        free(m->past[i]);
        m->past[i] = NULL;
    }
}

void emptied_note_shown(struct emptied *m, const struct image *shown)
{
    int columns = columns_of(shown->w), n = columns * columns_of(shown->h);
    if (!shown->rgb)
        return;
    if (shown->w != m->w || shown->h != m->h)
        forget(m);
    m->w = shown->w;
    m->h = shown->h;
    uint64_t **to = &m->past[m->next];
    m->next = (m->next + 1) % EMPTIED_PAST;
    *to = *to ? *to : xmalloc((size_t)n + 1, sizeof **to);
    for (int i = 0; i < n; i++)
        (*to)[i] = hash_cell(shown, cell_rect(shown, i % columns, i / columns));
}

/* Returns whether cell i looks the same as in an earlier screenshot. */
static bool is_restored(const struct emptied *m, const struct emptied_cells *c, int i)
{
    if (m->w != c->now->w || m->h != c->now->h)
        return false;
    uint64_t hash = hash_cell(c->now, cell_rect(c->now, i % c->columns, i / c->columns));
    for (int k = 0; k < EMPTIED_PAST; k++)
        if (m->past[k] && m->past[k][i] == hash)
            return true;
    return false;
}

/* ---- the result -------------------------------------------------------------------------------------- */

struct emptied_count {
    int cells, rows;     /* emptied */
    int restored;        /* ... of these */
    int restored_detail; /* other changed cells with detail that are restored */
    int64_t lost, gained;
};

static void count_cell(struct emptied_count *n, const struct emptied *m, const struct emptied_cells *c,
                       int column, int row, bool *in_row)
{
    struct screen_rect r = cell_rect(c->now, column, row);
    int was = 0, is = 0, came = 0, i = row * c->columns + column;
    for (int y = r.y; y < r.y + r.h; y++) {
        size_t at = (size_t)(y - c->is.r.y) * (size_t)c->is.r.w + (size_t)(r.x - c->is.r.x);
        for (int x = 0; x < r.w; x++) {
            was += c->was.at[at + (size_t)x] != 0;
            is += c->is.at[at + (size_t)x] != 0;
            came += c->is.at[at + (size_t)x] && !c->was.at[at + (size_t)x];
        }
    }
    bool emptied = was >= DETAIL && is * KEPT <= was;
    bool restored = (emptied || is >= DETAIL) && is_restored(m, c, i);
    n->gained += came;
    n->lost += emptied ? was - is : 0;
    n->cells += emptied;
    n->restored += emptied && restored;
    n->restored_detail += is >= DETAIL && restored;
    *in_row = *in_row || emptied;
}

static bool is_emptied(const struct emptied *m, const struct emptied_cells *c)
{
    struct emptied_count n = {0};
    for (int row = 0; row < c->rows; row++) {
        bool in_row = false;
        for (int column = 0; column < c->columns; column++)
            if (c->changed[row * c->columns + column])
                count_cell(&n, m, c, column, row, &in_row);
        n.rows += in_row;
    }
    if (n.restored_detail * RESTORED >= n.cells)
        n.cells -= n.restored;
    return n.cells >= LEAST_CELLS && n.rows >= LEAST_ROWS &&
           n.gained <= int64_max(n.lost / GAINED, GAINED_LEAST);
}

/* Lists the windows that were visible before the action and are not now, relative to the view. */
static int closed_windows(const struct emptied *m, struct screen *s, struct screen_rect out[SCREEN_TOPS])
{
    struct screen_top tops[SCREEN_TOPS];
    int n = 0, n_now = m->n_tops && !s->lost ? s->ops->tops(s, tops) : 0;
    for (int i = 0; i < m->n_tops; i++) {
        bool there = false;
        for (int k = 0; k < n_now && !there; k++)
            there = tops[k].id == m->tops[i].id;
        const struct screen_rect *r = &m->tops[i].rect;
        if (!there)
            out[n++] = (struct screen_rect){r->x - s->view.x, r->y - s->view.y, r->w, r->h};
    }
    return n;
}

bool emptied_since(const struct emptied *m, struct screen *s, const struct image *before,
                   const struct image *now)
{
    struct emptied_cells c = {.before = before, .now = now};
    struct screen_rect closed[SCREEN_TOPS];
    if (!before->rgb || !now->rgb || before->w != now->w || before->h != now->h)
        return false;
    c.columns = columns_of(now->w);
    c.rows = columns_of(now->h);
    c.changed = xcalloc((size_t)c.columns + 1, (size_t)c.rows);
    bool emptied = compare(&c, closed, closed_windows(m, s, closed)) && is_emptied(m, &c);
    free(c.was.at);
    free(c.is.at);
    free(c.changed);
    return emptied;
}

void emptied_note_windows(struct emptied *m, const struct screen *s)
{
    m->n_tops = s->observed ? s->observed->n : 0;
    memcpy(m->tops, s->observed ? s->observed->tops : m->tops, (size_t)m->n_tops * sizeof *m->tops);
}

struct emptied *emptied_new(void)
{
    return xcalloc(1, sizeof(struct emptied));
}

void emptied_free(struct emptied *m)
{
    if (!m)
        return;
    forget(m);
    free(m);
}
