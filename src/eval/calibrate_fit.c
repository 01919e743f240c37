/* calibrate_fit.c - a robust line fit. */
#include "eval/calibrate.h"

#include <math.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_size);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

struct line line_fit(const double *x, const double *y, int n, double tolerance)
{
    struct line l = {.n = n};
    size_t m = (size_t)n, k = 0;
    if (n < 3)
        return l;
    double *v = xmalloc(m * m, sizeof *v);
    for (size_t i = 0; i < m; i++)
        for (size_t j = i + 1; j < m; j++)
            if (fabs(x[i] - x[j]) > 1e-9)
                v[k++] = (y[i] - y[j]) / (x[i] - x[j]);
    if (k >= 2) {
        l.a = median(v, k);
        for (size_t i = 0; i < m; i++)
            v[i] = y[i] - l.a * x[i];
        l.b = median(v, m);
        for (size_t i = 0; i < m; i++)
            l.near += fabs(l.a * x[i] + l.b - y[i]) <= tolerance;
    }
    free(v);
    return l;
}

struct line line_of_space(enum coord_space space, int size)
{
    double top = space == COORD_NORM1000 ? 1000 : space == COORD_NORM1 ? 1 : space == COORD_PIXEL ? size : 64;
    return (struct line){.a = top / size, .b = space == COORD_BIN64 ? -0.5 : 0};
}
