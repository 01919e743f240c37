/* score.c - is the point in the target, how far from it, and how sure a share is. */
#include "eval/eval.h"

#include <math.h>

/* Nearest place of a segment to p: the square of its distance. */
static double to_segment(const double *a, const double *b, double x, double y)
{
    double dx = b[0] - a[0], dy = b[1] - a[1], length = dx * dx + dy * dy;
    double t = length > 0 ? ((x - a[0]) * dx + (y - a[1]) * dy) / length : 0;
    t = fmin(fmax(t, 0), 1);
    double ex = x - (a[0] + t * dx), ey = y - (a[1] + t * dy);
    return ex * ex + ey * ey;
}

/* The square of the distance to the nearest edge, and whether an odd number of edges is crossed on the way
 * to the right. */
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
    /* An edge is a line without width: what misses it by a rounding error lies on it. */
    return inside || least < 1e-18 ? 0 : sqrt(least);
}

bool target_holds(const struct target *t, double x, double y)
{
    return target_distance(t, x, y) <= 0;
}

void wilson(int hits, int n, double *low, double *high)
{
    const double z = 1.959963984540054; /* leaves 2.5 % of a normal distribution on each side */
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
