/* expected.c - compares the screen with a recorded screenshot, tile by tile; see expected.h. */
#include "replay/expected.h"

static bool same_size(const struct image *a, const struct image *b)
{
    return a->rgb && b->rgb && a->w == b->w && a->h == b->h;
}

static bool changed(const struct image *a, const struct image *b, int x, int y)
{
    return image_tile_difference(a, b, x, y) > IMAGE_EFFECT_LEVEL;
}

static int tiles_of(int side)
{
    return (side + IMAGE_TILE - 1) / IMAGE_TILE;
}

void expected_free(struct expected *x)
{
    image_free(&x->before);
    image_free(&x->then);
}

void expected_next(struct expected *x, struct image *next)
{
    image_free(&x->before);
    x->before = x->then;
    x->then = *next;
    *next = (struct image){0};
}

bool expected_tells(const struct expected *x)
{
    return x->then.rgb &&
           (!x->before.rgb || image_tiles_changed(&x->before, &x->then, IMAGE_EFFECT_LEVEL) > 0);
}

bool expected_shown(void *arg, struct image *now)
{
    const struct expected *x = arg;
    bool acted = same_size(&x->before, &x->then);
    if (!same_size(&x->then, now))
        return false;
    if (x->gate)
        gate_redact(x->gate, now);
    int cols = tiles_of(now->w), rows = tiles_of(now->h), n = 0;
    for (int i = 0; i < cols * rows; i++) {
        bool differs = changed(&x->then, now, i % cols, i / cols);
        n += differs;
        if (differs && (!acted || changed(&x->before, &x->then, i % cols, i / cols)))
            return false;
    }
    return n <= x->threshold * cols * rows;
}

struct expected_differences expected_compare(const struct expected *x, const struct image *now)
{
    struct expected_differences d = {.fraction = 1, .area = {0, 0, now->w, now->h}};
    int cols = tiles_of(now->w), rows = tiles_of(now->h);
    bool comparable = same_size(&x->then, now);
    for (int i = 0; i < cols * rows; i++) {
        int left = i % cols * IMAGE_TILE, top = i / cols * IMAGE_TILE;
        struct screen_rect tile = {left, top, IMAGE_TILE, IMAGE_TILE};
        if (comparable && !changed(&x->then, now, i % cols, i / cols))
            continue;
        d.area = d.tiles++ ? screen_rect_join(d.area, tile) : tile;
    }
    d.area = screen_rect_intersect(d.area, (struct screen_rect){0, 0, now->w, now->h});
    d.fraction = (double)d.tiles / (cols * rows);
    return d;
}
