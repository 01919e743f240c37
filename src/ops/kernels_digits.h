/* kernels_digits.h - quantization of activation rows to integers, for kernels_bytes.h. A row becomes 16-bit
 * integers, each split into two signed digits of 8 bits, with one scale per row; or, for a `coarse` weight,
 * 8-bit integers with one scale per group. */
#pragma once

#include "ops/kernels_core.h"
#include "ops/kernels_dot.h"
#include "ops/kernels_rows.h"

enum { DIGIT_MOST = 127 * 256 + 127 };

struct digits {
    struct tensor x;
    int64_t words, groups; /* words of four k; groups of the weight, at least one */
    int64_t size;          /* k of a group */
    int offset;
    bool coarse;
    int64_t step;       /* words from one k to the next: two per row of a block, or one if coarse */
    uint32_t *out;      /* [blocks][words][step] */
    int32_t *begin;     /* [blocks][groups][step]: initial values of the sums */
    float *scale;       /* [rows], or [blocks][groups][step] */
    struct backend *b;  /* for scratch memory */
    int64_t block_rows; /* rows of x in a block; with `coarse` rounded up to an even number */
};

/* Quantizes n values (a multiple of VL) to [-127, 127]; returns the scale. */
static float make_coarse(const float *x, int64_t n, int8_t *out)
{
    vec most = {0}, odd = {0};
    for (int64_t k = 0; k < n; k += VL) {
        vec v = *(const vec_at *)(x + k);
        most = VEC_MAX((vec)((uvec)v & 0x7fffffffu), most);
        odd += v * 0; /* NaN where v is not finite */
    }
    float far = max_lanes(most);
    vec each = splat(far > 1e-30f ? 127 / far : 0);
    for (int64_t k = 0; k < n; k += VL)
        STORE_BYTES(out + k, IVEC_ROUND(*(const vec_at *)(x + k) * each));
    return far / 127 + sum_lanes(odd);
}

static int32_t digit_sum(const int8_t *p, int64_t n)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += p[i];
    return sum;
}

static void coarse_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct digits *d = arg;
    const int64_t cols = d->words * 4, wide = ceil_div(cols, VL) * VL;
    float *row = cpu_scratch(d->b, thread, (size_t)wide * (sizeof(float) + 1));
    int8_t *digit = (int8_t *)(row + wide);
    for (int64_t r = begin; r < end; r++) {
        memset(row, 0, (size_t)wide * sizeof *row);
        load_row(d->x, r, 0, d->x.cols, row);
        int64_t block = r / d->block_rows, place = r % d->block_rows;
        uint32_t *out = d->out + block * d->words * d->step + place;
        int64_t at = block * d->groups * d->step + place;
        for (int64_t g = 0; g < d->groups; g++, at += d->step) {
            int64_t first = g * d->size, n = least(d->size, cols - first);
            d->scale[at] = make_coarse(row + first, ceil_div(n, VL) * VL, digit + first);
            d->begin[at] = -d->offset * digit_sum(digit + first, n);
        }
        for (int64_t k = 0; k < d->words; k++)
            memcpy(out + k * d->step, digit + 4 * k, WORD);
    }
}

#ifdef DOT_BYTES

/* Splits n values into hi and lo digits; returns the scale. */
static float make_digits(const float *x, int64_t n, int8_t *hi, int8_t *lo)
{
    vec most = {0}, odd = {0};
    for (int64_t k = 0; k < n; k += VL) {
        vec v = *(const vec_at *)(x + k);
        most = VEC_MAX((vec)((uvec)v & 0x7fffffffu), most);
        odd += v * 0; /* NaN where v is not finite */
    }
    float far = max_lanes(most), scale = far / DIGIT_MOST;
    vec each = splat(far > 1e-30f ? DIGIT_MOST / far : 0);
    for (int64_t k = 0; k < n; k += VL) {
        ivec v = IVEC_ROUND(*(const vec_at *)(x + k) * each), low = v << 24 >> 24;
        STORE_BYTES(lo + k, low);
        STORE_BYTES(hi + k, (v - low) >> 8);
    }
    return scale + sum_lanes(odd);
}

static void digits_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct digits *d = arg;
    const int64_t cols = d->words * 4, wide = ceil_div(cols, VL) * VL;
    float *row = cpu_scratch(d->b, thread, (size_t)wide * (sizeof(float) + 2));
    int8_t *digit[2] = {(int8_t *)(row + wide), (int8_t *)(row + wide) + wide};
    for (int64_t r = begin; r < end; r++) {
        memset(row, 0, (size_t)wide * sizeof *row);
        load_row(d->x, r, 0, d->x.cols, row);
        d->scale[r] = make_digits(row, wide, digit[0], digit[1]);
        int64_t block = r / d->block_rows, place = 2 * (r % d->block_rows);
        uint32_t *out = d->out + block * d->words * d->step + place;
        int32_t *start = d->begin + block * d->groups * d->step + place;
        for (int i = 0; i < 2; i++) {
            for (int64_t k = 0; k < d->words; k++)
                memcpy(out + k * d->step + i, digit[i] + 4 * k, WORD);
            for (int64_t g = 0; g < d->groups; g++)
                start[g * d->step + i] = -d->offset * digit_sum(digit[i] + g * d->size, d->size);
        }
    }
}

#else

/* Never called, because without DOT_BYTES every row is coarse. */
static void digits_range(void *arg, int64_t begin, int64_t end, int thread)
{
}

#endif
