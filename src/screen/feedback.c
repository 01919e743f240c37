/* feedback.c - whether all that a press has changed is the feedback of the pressed element.
 *
 * The tiles that changed must be connected to the pressed position, and their shapes (observed_pixels.c) must
 * be the same: a button gets another colour or border while the pointer is on it. The mark of a check box and
 * the text cursor of a field are effects of the press. */
#include "screen/private.h"

#include "base/number.h"

#include <stdlib.h>
#include <string.h>

enum { SHARE = 8 }; /* an element is smaller than this part of the screenshot */

struct tiles {
    uint8_t *changed; /* [rows][columns] */
    int columns, rows;
};

/* Removes the changed tiles next to (column, row) and those next to them; extends *all to them. */
static void take_connected(struct tiles *t, int column, int row, struct screen_rect *all)
{
    for (int y = int_max(row - 1, 0); y <= row + 1 && y < t->rows; y++)
        for (int x = int_max(column - 1, 0); x <= column + 1 && x < t->columns; x++) {
            if (!t->changed[y * t->columns + x])
                continue;
            t->changed[y * t->columns + x] = 0;
            const struct screen_rect one = {x * IMAGE_TILE, y * IMAGE_TILE, IMAGE_TILE, IMAGE_TILE};
            *all = all->w ? screen_rect_join(*all, one) : one;
            take_connected(t, x, y, all);
        }
}

/* Finds the changed part of the screenshots around a position, its w is 0 if there is none. Returns false if
 * something else has changed too. */
static bool find_part(const struct image *a, const struct image *b, int x, int y, struct screen_rect *all)
{
    struct tiles t = {NULL, (a->w + IMAGE_TILE - 1) / IMAGE_TILE, (a->h + IMAGE_TILE - 1) / IMAGE_TILE};
    int n = t.columns * t.rows;
    t.changed = xcalloc((size_t)n + 1, 1);
    for (int i = 0; i < n; i++)
        t.changed[i] = image_tile_difference(a, b, i % t.columns, i / t.columns) > IMAGE_EFFECT_LEVEL;
    *all = (struct screen_rect){0};
    take_connected(&t, x / IMAGE_TILE, y / IMAGE_TILE, all);
    bool whole = !memchr(t.changed, 1, (size_t)n);
    free(t.changed);
    return whole;
}

/* Copies a part of an image; the caller frees it. */
static uint8_t *copy_part(const struct image *im, struct screen_rect r)
{
    size_t row = 3 * (size_t)r.w;
    uint8_t *out = xmalloc(row + 1, (size_t)r.h);
    for (int y = 0; y < r.h; y++)
        memcpy(out + (size_t)y * row, im->rgb + 3 * ((size_t)(r.y + y) * (size_t)im->w + (size_t)r.x), row);
    return out;
}

bool screen_only_feedback(const struct image *before, const struct image *now, int x, int y)
{
    struct screen_rect part, all = {0, 0, now->w, now->h};
    if (!before->rgb || !now->rgb || before->w != now->w || before->h != now->h ||
        !screen_rect_contains(all, x, y) || !find_part(before, now, x, y, &part))
        return false;
    if (!part.w)
        return true;
    const struct screen_rect at = {x, y, 1, 1};
    part = screen_rect_intersect(screen_rect_join(part, at), all);
    if ((int64_t)part.w * part.h * SHARE > (int64_t)now->w * now->h)
        return false;
    uint8_t *was = copy_part(before, part), *is = copy_part(now, part);
    uint8_t *skip = xcalloc(2 * (size_t)part.w + 1, (size_t)part.h),
            *where = skip + (size_t)part.w * (size_t)part.h;
    const struct observed_area a = {was,        is,     skip,   part.w, part.h, x - part.x,
                                    y - part.y, before, part.x, part.y, false};
    bool other = observed_area_changed(&a, where) || observed_block_differs(&a, where);
    free(was);
    free(is);
    free(skip);
    return !other;
}
