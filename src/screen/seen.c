/* seen.c - the pictures that the view has shown since the beginning of a wait, in tiles of 32 x 32 pixels.
 *
 * A redraw does not count as a change if it repeats. Two kinds of repetition are recognized by the exact
 * pixels:
 *
 *   caret       a bar at most 4 pixels wide returns to the pixels before it
 *   animation   all tiles that differ return to an earlier picture, not for the first time
 *
 * The first return of anything else is a change: a message that disappears restores the pixels below it, and
 * the page may draw its content after that. */
#include "screen/private.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    TILE = 32,
    STATES = 32, /* pictures of a tile that are remembered */
    CARET_W = 4,
    CARET_H = 40,
};

struct seen_tile {
    uint64_t state[STATES]; /* hashes; a new one replaces the oldest */
    int n, next;
    bool returned; /* an earlier picture has come back */
};

struct box { /* pixels that differ */
    int x0, y0, x1, y1;
};

static uint64_t hash_tile(const struct image *im, int x, int y)
{
    int w = im->w - x < TILE ? im->w - x : TILE;
    uint64_t h = 0;
    for (int i = y; i < y + TILE && i < im->h; i++)
        h = XXH3_64bits_withSeed(image_at(im, x, i), 3 * (size_t)w, h);
    return h;
}

/* Adds a picture to those of the tile. Returns whether it was among them. */
static bool add_state(struct seen_tile *t, uint64_t hash)
{
    for (int i = 0; i < t->n; i++)
        if (t->state[i] == hash)
            return true;
    t->state[t->next] = hash;
    t->next = (t->next + 1) % STATES;
    t->n += t->n < STATES;
    return false;
}

void seen_begin(struct seen *v, struct screen *s)
{
    seen_end(v);
    if (screen_capture(s, &v->shown, NULL))
        return;
    v->view = s->view;
    v->columns = (v->shown.w + TILE - 1) / TILE;
    v->rows = (v->shown.h + TILE - 1) / TILE;
    v->tiles = xcalloc((unsigned long)v->columns * (unsigned long)v->rows, sizeof *v->tiles);
    for (int i = 0; i < v->columns * v->rows; i++)
        add_state(&v->tiles[i], hash_tile(&v->shown, i % v->columns * TILE, i / v->columns * TILE));
}

void seen_end(struct seen *v)
{
    image_free(&v->shown);
    free(v->tiles);
    *v = (struct seen){0};
}

/* Copies the captured rows of r into v->shown, and finds the pixels that differ. Returns false if none do. */
static bool copy_area(struct seen *v, struct screen_rect r, const uint8_t *rgb, struct box *b)
{
    *b = (struct box){v->shown.w, v->shown.h, -1, -1};
    for (int y = r.y; y < r.y + r.h; y++, rgb += 3 * (size_t)r.w) {
        uint8_t *to = image_at(&v->shown, r.x, y);
        int first = 0, last = r.w - 1;
        if (!memcmp(to, rgb, 3 * (size_t)r.w))
            continue;
        while (!memcmp(to + 3 * (size_t)first, rgb + 3 * (size_t)first, 3))
            first++;
        while (!memcmp(to + 3 * (size_t)last, rgb + 3 * (size_t)last, 3))
            last--;
        b->x0 = r.x + first < b->x0 ? r.x + first : b->x0;
        b->x1 = r.x + last > b->x1 ? r.x + last : b->x1;
        b->y0 = y < b->y0 ? y : b->y0;
        b->y1 = y;
        memcpy(to, rgb, 3 * (size_t)r.w);
    }
    return b->x1 >= 0;
}

/* Returns whether the tiles of the box show something else than before, and do not just repeat. */
static bool tiles_differ(struct seen *v, const struct box *b)
{
    bool caret = b->x1 - b->x0 < CARET_W && b->y1 - b->y0 < CARET_H, news = false;
    for (int row = b->y0 / TILE; row <= b->y1 / TILE; row++)
        for (int column = b->x0 / TILE; column <= b->x1 / TILE; column++) {
            struct seen_tile *t = &v->tiles[row * v->columns + column];
            bool known = add_state(t, hash_tile(&v->shown, column * TILE, row * TILE));
            news = news || !known || !(caret || t->returned);
            t->returned = t->returned || known;
        }
    return news;
}

enum seen_kind seen_look(struct seen *v, struct screen *s, struct screen_rect area,
                         struct screen_rect *differs)
{
    struct box b;
    struct screen_rect r = screen_rect_intersect(area, s->view);
    *differs = area;
    if (!v->tiles || memcmp(&v->view, &s->view, sizeof v->view) != 0) {
        seen_begin(v, s);
        return SEEN_NEW;
    }
    uint8_t *rgb = xmalloc((unsigned long)r.w * (unsigned long)r.h, 3);
    bool captured = s->ops->capture(s, r, rgb, NULL) == 0;
    r.x -= s->view.x;
    r.y -= s->view.y;
    bool differ = captured && copy_area(v, r, rgb, &b);
    free(rgb);
    if (!differ)
        return captured ? SEEN_SAME : SEEN_NEW;
    *differs = (struct screen_rect){b.x0 + s->view.x, b.y0 + s->view.y, b.x1 - b.x0 + 1, b.y1 - b.y0 + 1};
    return tiles_differ(v, &b) ? SEEN_NEW : SEEN_REPEATED;
}
