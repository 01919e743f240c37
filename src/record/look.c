/* look.c - reduces windows and compares them; see look.h. */
#include "record/look.h"

#include <stdlib.h>

enum {
    PART = 8,                 /* pixels of the window per pixel of the look, each way */
    SIDE = IMAGE_TILE / PART, /* of a tile of the look */
    AROUND = 64,              /* around a target without an element */
};

void look_take(const struct image *im, int x0, int y0, struct screen_rect window, struct recording_look *out)
{
    struct screen_rect r = {window.x - x0, window.y - y0, window.w, window.h};
    struct screen_rect inside = screen_rect_intersect(r, (struct screen_rect){0, 0, im->w, im->h});
    struct image whole = {0};
    image_free(&out->image);
    out->w = r.w;
    out->h = r.h;
    if (!im->rgb || r.w < PART || r.h < PART || inside.w != r.w || inside.h != r.h)
        return;
    if (r.w / PART > RECORDING_SIDE || r.h / PART > RECORDING_SIDE) /* would not be read again */
        return;
    if (image_crop(&whole, im, r.x, r.y, r.w, r.h, NULL) == 0 &&
        image_shrink(&out->image, &whole, r.w / PART, r.h / PART, NULL))
        image_free(&out->image);
    image_free(&whole);
}

/* Returns the mean absolute channel difference of a tile. */
static double difference(const struct image *a, const struct image *b, int x0, int y0)
{
    int sum = 0, n = 0;
    for (int y = y0; y < y0 + SIDE && y < a->h; y++)
        for (int x = x0; x < x0 + SIDE && x < a->w; x++, n += 3)
            for (int c = 0; c < 3; c++)
                sum += abs(image_at(a, x, y)[c] - image_at(b, x, y)[c]);
    return n ? (double)sum / n : 0;
}

static bool touches(struct screen_rect tile, const struct screen_rect *areas, int n)
{
    for (int i = 0; i < n; i++) {
        struct screen_rect both = screen_rect_intersect(tile, areas[i]);
        if (both.w && both.h)
            return true;
    }
    return false;
}

bool look_same(const struct recording_look *a, const struct recording_look *b, const struct screen_rect *skip,
               int n)
{
    if (!a->image.rgb || !b->image.rgb || a->w != b->w || a->h != b->h || a->image.w != b->image.w ||
        a->image.h != b->image.h)
        return false;
    for (int y = 0; y < a->image.h; y += SIDE)
        for (int x = 0; x < a->image.w; x += SIDE) {
            struct screen_rect tile = {x * PART, y * PART, IMAGE_TILE, IMAGE_TILE};
            if (!touches(tile, skip, n) && difference(&a->image, &b->image, x, y) > IMAGE_EFFECT_LEVEL)
                return false;
        }
    return true;
}

struct screen_rect look_of_target(const struct recording_step *s)
{
    const struct recording_target *t = &s->target;
    int x = t->x - t->rect.x, y = t->y - t->rect.y;
    if (!s->has_target)
        return (struct screen_rect){0};
    if (*t->role && t->w && t->h)
        return (struct screen_rect){x - (int)(t->fx * t->w), y - (int)(t->fy * t->h), t->w, t->h};
    return (struct screen_rect){x - AROUND / 2, y - AROUND / 2, AROUND, AROUND};
}
