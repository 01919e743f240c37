/* score.c - scores a reply against its target; confidence interval of a rate.
 *
 * The position is given by the model's numbers, not by the pixel that would be clicked, because rounding is
 * not the model's error.  A reply without a position, although there is a target, is wrong but in the right
 * format. */
#include "eval/eval.h"

#include "actions/place.h"

#include <math.h>
#include <string.h>

/* Returns the square of the distance from a point to a segment. */
static double to_segment(const double *a, const double *b, double x, double y)
{
    double dx = b[0] - a[0], dy = b[1] - a[1], length = dx * dx + dy * dy;
    double t = length > 0 ? ((x - a[0]) * dx + (y - a[1]) * dy) / length : 0;
    t = fmin(fmax(t, 0), 1);
    double ex = x - (a[0] + t * dx), ey = y - (a[1] + t * dy);
    return ex * ex + ey * ey;
}

/* Returns the square of the distance to the nearest edge; *inside: a ray to the right crosses an odd number
 * of edges. */
static double to_edges(const struct target *t, double x, double y, bool *inside)
{
    double least = INFINITY;
    *inside = false;
    for (int i = 0, j = t->corners - 1; i < t->corners; j = i++) {
        const double *a = t->at + 2 * (size_t)i, *b = t->at + 2 * (size_t)j;
        least = fmin(least, to_segment(a, b, x, y));
        if ((a[1] > y) != (b[1] > y) && x < (b[0] - a[0]) * (y - a[1]) / (b[1] - a[1]) + a[0])
            *inside = !*inside;
    }
    return least;
}

double target_distance(const struct target *t, double x, double y)
{
    if (t->kind == TARGET_NONE)
        return INFINITY;
    if (t->kind == TARGET_BOX)
        return hypot(fmax(fmax(t->at[0] - x, x - t->at[2]), 0), fmax(fmax(t->at[1] - y, y - t->at[3]), 0));
    bool inside;
    double least = to_edges(t, x, y, &inside);
    /* A point that misses an edge by a rounding error is on the edge. */
    return inside || least < 1e-18 ? 0 : sqrt(least);
}

bool target_holds(const struct target *t, double x, double y)
{
    return target_distance(t, x, y) <= 0;
}

void eval_place(const struct target *t, double x, double y, int w, int h, struct eval_answer *a)
{
    a->placed = true;
    a->x = t->w > 0 ? x * t->w / w : x;
    a->y = t->h > 0 ? y * t->h / h : y;
    a->distance = target_distance(t, a->x, a->y);
    a->correct = target_holds(t, a->x, a->y);
}

void eval_missing(const struct target *t, struct eval_answer *a)
{
    a->placed = false;
    a->correct = t->kind == TARGET_NONE;
}

void eval_score(const struct target *t, const struct dialect *d, const char *reply, int w, int h,
                struct eval_answer *a)
{
    struct place at;
    double x, y;
    snprintf(a->raw, sizeof a->raw, "%s", reply);
    a->wrong_format = dialect_read_place(d, reply, strlen(reply), &at, NULL) ||
                      (!at.absent && dialect_place_position(d, &at, w, h, &x, &y, NULL));
    if (a->wrong_format)
        return;
    if (at.absent)
        eval_missing(t, a);
    else
        eval_place(t, x, y, w, h, a);
}

void wilson(int hits, int n, double *low, double *high)
{
    const double z = 1.959963984540054; /* 97.5 % quantile of the normal distribution */
    *low = 0;
    *high = 1;
    if (n <= 0)
        return;
    double p = (double)hits / n, z2 = z * z / n;
    double centre = (p + z2 / 2) / (1 + z2);
    double half = z / (1 + z2) * sqrt(p * (1 - p) / n + z2 / (4 * n));
    *low = hits == 0 ? 0 : centre - half;
    *high = hits == n ? 1 : centre + half;
}
