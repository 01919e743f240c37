/* sight.c - compares edges; see sight.h. */
#include "record/sight.h"

#include <stdlib.h>

/* An edge is a difference between neighbouring pixels in one channel. Each strong edge of a picture must be
 * at least a weak one at the same pixels of the other. Limits are parts of the strongest edge, since colours
 * of a highlight have less contrast. */
enum {
    PLAIN_MAX = 24, /* the strongest edge of a plain area: gradients of buttons */
    STRONG_PART = 5,
    WEAK_PART = 16,
    WEAK_LEAST = 3,
    MAY_DIFFER = 2, /* edges */
};

struct area {
    const struct image *a, *b;
    struct screen_rect r, except;
};

static int difference(const uint8_t *p, const uint8_t *q)
{
    int most = 0;
    for (int c = 0; c < 3; c++)
        most = abs(p[c] - q[c]) > most ? abs(p[c] - q[c]) : most;
    return most;
}

/* Returns the edge between a pixel and its right (right) or lower neighbour. */
static int edge(const struct image *im, int x, int y, bool right)
{
    return difference(image_at(im, x, y), right ? image_at(im, x + 1, y) : image_at(im, x, y + 1));
}

static bool counts(const struct area *q, int x, int y, bool right)
{
    return (right ? x + 1 < q->r.x + q->r.w : y + 1 < q->r.y + q->r.h) &&
           !screen_rect_contains(q->except, x, y) && !screen_rect_contains(q->except, x + right, y + !right);
}

static void find_strongest(const struct area *q, int *in_a, int *in_b)
{
    *in_a = *in_b = 0;
    for (int y = q->r.y; y < q->r.y + q->r.h; y++)
        for (int x = q->r.x; x < q->r.x + q->r.w; x++)
            for (int right = 0; right < 2; right++)
                if (counts(q, x, y, right)) {
                    int a = edge(q->a, x, y, right), b = edge(q->b, x, y, right);
                    *in_a = a > *in_a ? a : *in_a;
                    *in_b = b > *in_b ? b : *in_b;
                }
}

double sight_difference(const struct image *a, const struct image *b, struct screen_rect area)
{
    int64_t sum = 0, n = 0;
    if (!a->rgb || !b->rgb || a->w != b->w || a->h != b->h)
        return 255;
    struct screen_rect r = screen_rect_intersect(area, (struct screen_rect){0, 0, a->w, a->h});
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++, n += 3)
            for (int c = 0; c < 3; c++)
                sum += abs(image_at(a, x, y)[c] - image_at(b, x, y)[c]);
    return n ? (double)sum / (double)n : 0;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

enum sight sight_compare(const struct image *a, const struct image *b, struct screen_rect area,
                         struct screen_rect except)
{
    int in_a, in_b, differ = 0;
    if (!a->rgb || !b->rgb || a->w != b->w || a->h != b->h)
        return SIGHT_OTHER;
    struct area q = {a, b, screen_rect_intersect(area, (struct screen_rect){0, 0, a->w, a->h}), except};
    find_strongest(&q, &in_a, &in_b);
    if (in_a <= PLAIN_MAX && in_b <= PLAIN_MAX)
        return SIGHT_PLAIN;
    int strong_a = larger(PLAIN_MAX, in_a / STRONG_PART), strong_b = larger(PLAIN_MAX, in_b / STRONG_PART),
        weak_a = larger(WEAK_LEAST, in_a / WEAK_PART), weak_b = larger(WEAK_LEAST, in_b / WEAK_PART);
    for (int y = q.r.y; y < q.r.y + q.r.h; y++)
        for (int x = q.r.x; x < q.r.x + q.r.w; x++)
            for (int right = 0; right < 2; right++) {
                if (!counts(&q, x, y, right))
                    continue;
                int ea = edge(a, x, y, right), eb = edge(b, x, y, right);
                differ += (ea > strong_a && eb <= weak_b) || (eb > strong_b && ea <= weak_a);
            }
    return differ > MAY_DIFFER ? SIGHT_OTHER : SIGHT_SAME;
}
