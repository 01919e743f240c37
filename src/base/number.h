/* number.h - minimum, maximum and clamping of integers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline int int_min(int a, int b)
{
    return a < b ? a : b;
}

static inline int int_max(int a, int b)
{
    return a > b ? a : b;
}

/* Returns the number in min..max that is closest to v. */
static inline int int_clamp(int v, int min, int max)
{
    return v < min ? min : v > max ? max : v;
}

static inline int64_t int64_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline size_t size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Returns the index of the largest of n numbers, the first among equals. */
static inline int floats_argmax(const float *v, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        best = v[i] > v[best] ? i : best;
    return best;
}
