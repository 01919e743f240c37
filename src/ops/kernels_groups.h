/* kernels_groups.h - inner loop of kernels_bytes.h for many rows: quantized rows times a panel, one group at
 * a time, with all sums in registers.
 *
 * A block has at most DIGITS rows of bytes: the two digits of six rows of x, or twelve coarse rows. Registers
 * hold the integer sums of a group, the f32 sums to which they are added, and the scales of the group, for
 * half a block. The scales of a panel are unpacked once for all blocks of a strip.
 */
#pragma once

#include "ops/kernels_blocks.h"
#include "ops/kernels_core.h"
#include "ops/kernels_dot.h"

enum {
    DIGIT_ROWS = REGISTERS == 32 ? 6 : 4, /* rows of x in a block, each with two digits */
    DIGITS = 2 * DIGIT_ROWS,              /* rows of bytes in a block, limited by the registers */
    SUMMED = DIGITS / 2,                  /* rows of bytes whose integer and f32 sums fit into registers */
    BYTES_MAX = 1 << 16,                  /* columns up to which no sum overflows: 255 * 128 * 2^16 < 2^31 */
};

/* Adds the products of row m of digits and the columns to acc[m][j]; pairs of vectors are `apart` bytes
 * apart. wide: 8-bit codes. */
ALWAYS_INLINE void bytes_multiply(ivec *acc, const int M, const int N, const uint32_t *x, int64_t step,
                                  const char *w, int64_t apart, int64_t words, const bool wide)
{
    int64_t k = 0;
#ifndef DOT_BYTES
    for (; k + 2 <= words; k += 2, x += 2 * step, w += 2 * NR * WORD) {
        uvec right[4][2];
        UNROLL for (int j = 0; j < 2 * N; j++) right[j / 2][j % 2] =
            *(const uvec_at *)(w + j % 2 * NR * WORD + (j / 4) * apart + j / 2 % 2 * VL * WORD);
        UNROLL for (int m = 0; m < M; m++)
        {
            UNROLL for (int j = 0; j < N; j++) acc[m * N + j] =
                dot_words(acc[m * N + j], right[j], x[m], x[step + m], wide);
        }
    }
#endif
    for (; k < words; k++, x += step, w += NR * WORD) {
        uvec right[4];
        UNROLL for (int j = 0; j < N; j++) right[j] =
            *(const uvec_at *)(w + (j / 2) * apart + j % 2 * VL * WORD);
        UNROLL for (int m = 0; m < M; m++)
        {
            UNROLL for (int j = 0; j < N; j++) acc[m * N + j] =
                dot_word(acc[m * N + j], right[j], x[m], wide);
        }
    }
}

/* Returns 256 hi + lo as f32. */
ALWAYS_INLINE vec joined(ivec hi, ivec lo)
{
    return __builtin_convertvector(hi, vec) * splat(256) + __builtin_convertvector(lo, vec);
}

enum scaling {
    UNSCALED, /* only the column's scale applies, at the end */
    SCALED,
    MINIMA, /* also subtracts a minimum times the sum of the activations */
};

struct scales {
    enum scaling kind;
    bool wide;          /* codes of 8 bits */
    float *scale, *low; /* [groups][NR] */
};

/* Unpacks the scales of n groups of a panel from its records, starting with group `first`. */
ALWAYS_INLINE void blocks_scales_any(const uint16_t *records, int64_t first, int64_t n, struct scales *out,
                                     const enum quant_format format)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t g = first + i;
        const uint16_t *of = records + g / block_groups(format) * block_record(format) * NR;
        for (int j = 0; j < NR; j += VL) {
            struct group_scales s = group_scales(of + j, (int)(g % block_groups(format)), format);
            *(vec_at *)(out->scale + i * NR + j) = s.scale;
            *(vec_at *)(out->low + i * NR + j) = s.low;
        }
    }
}

OWN_FUNCTION void blocks_scales(enum quant_format format, const uint16_t *records, int64_t first, int64_t n,
                                struct scales *out)
{
#define RUN(format) blocks_scales_any(records, first, n, out, format)
    EACH_BLOCKS(format, RUN)
#undef RUN
}

struct groups {
    const uint32_t *x; /* [words][step] */
    int64_t step;
    const int32_t *begin; /* [groups][step]: initial sums; with MINIMA, sums of x */
    const float *shares;  /* [groups][step]: scales of coarse rows; NULL: two digits per row */
    const char *w;
    const struct scales *scales;
    int64_t words, per; /* per: words of a group; the last group may be shorter */
};

/* Adds the scaled sums of all groups of a slice to tile[M / digits][NR]. */
ALWAYS_INLINE void groups_rows(float *tile, const struct groups *g, const int M, const int digits,
                               const enum scaling kind, const bool wide)
{
    const uint32_t *x = g->x;
    const char *w = g->w;
    const int32_t *begin = g->begin;
    const float *scale = g->scales->scale, *low = g->scales->low, *shares = g->shares;
    vec sums[SUMMED * 2];
    UNROLL for (int i = 0; i < 2 * M / digits; i++) sums[i] =
        *(const vec_at *)(tile + i / 2 * NR + i % 2 * VL);
    for (int64_t k = 0; k < g->words; k += g->per) {
        int64_t n = least(g->per, g->words - k);
        ivec acc[SUMMED * 2];
        UNROLL for (int i = 0; i < 2 * M; i++) acc[i] = (ivec){0} + (kind == MINIMA ? 0 : begin[i / 2]);
        bytes_multiply(acc, M, 2, x, g->step, w, 0, n, wide);
        UNROLL for (int i = 0; i < 2 * M / digits; i++)
        {
            const int row = i / 2;
            vec by = kind == UNSCALED ? splat(1) : *(const vec_at *)(scale + i % 2 * VL);
            if (digits == 2) {
                const int m = row * 2;
                sums[i] += joined(acc[m * 2 + i % 2], acc[m * 2 + 2 + i % 2]) * by;
                if (kind == MINIMA)
                    sums[i] -=
                        splat((float)(256 * begin[m] + begin[m + 1])) * *(const vec_at *)(low + i % 2 * VL);
            } else {
                vec v = __builtin_convertvector(acc[i], vec);
                if (kind != UNSCALED)
                    v *= by;
                if (kind == MINIMA)
                    v -= splat((float)begin[row]) * *(const vec_at *)(low + i % 2 * VL);
                sums[i] += v * splat(shares[row]);
            }
        }
        x += n * g->step;
        w += n * NR * WORD;
        begin += g->step;
        shares += digits == 1 ? g->step : 0;
        scale += NR;
        low += NR;
    }
    UNROLL for (int i = 0; i < 2 * M / digits; i++) * (vec_at *)(tile + i / 2 * NR + i % 2 * VL) = sums[i];
}

#define GROUPS_ROWS(M)                                                                                       \
    OWN_FUNCTION void groups_rows_##M(float *tile, const struct groups *g)                                   \
    {                                                                                                        \
        const enum scaling kind = g->scales->kind;                                                           \
        if (HAS_DIGITS && !g->shares && kind == SCALED)                                                      \
            groups_rows(tile, g, M, 2, SCALED, false);                                                       \
        else if (HAS_DIGITS && !g->shares)                                                                   \
            groups_rows(tile, g, M, 2, MINIMA, false);                                                       \
        else if (kind == UNSCALED)                                                                           \
            groups_rows(tile, g, M, 1, UNSCALED, true);                                                      \
        else if (kind == SCALED && g->scales->wide && BYTES_CENTRED)                                         \
            groups_rows(tile, g, M, 1, SCALED, true);                                                        \
        else if (kind == SCALED)                                                                             \
            groups_rows(tile, g, M, 1, SCALED, false);                                                       \
        else                                                                                                 \
            groups_rows(tile, g, M, 1, MINIMA, false);                                                       \
    }
GROUPS_ROWS(2)
GROUPS_ROWS(4)
#if REGISTERS == 32
GROUPS_ROWS(6)
#endif

/* Runs the variant for this number of rows of x. */
static void groups_block(int rows, float *tile, const struct groups *g)
{
    static void (*const each[])(float *, const struct groups *) = {
        groups_rows_2,
        groups_rows_4,
#if REGISTERS == 32
        groups_rows_6,
#endif
    };
    const int digits = g->shares ? 1 : 2, all = g->shares ? (rows + 1) / 2 * 2 : 2 * rows;
    for (int at = 0; at < all; at += SUMMED) {
        struct groups some = *g;
        some.x += at;
        some.begin += at;
        some.shares += g->shares ? at : 0;
        each[(all - at < SUMMED ? all - at : SUMMED) / 2 - 1](tile + at / digits * NR, &some);
    }
}
