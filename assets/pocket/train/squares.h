/* squares.h - products of 64 x 64 numbers: by tiles of bf16 (amx.h), or in fp32 by vectors.
 *
 * A product takes a left side, as it lies (rows_of) or transposed (turned), and a right side, as it lies (plain) or
 * transposed (across); what has to be laid out anew for it goes into a `struct packed`.
 */
#ifndef POCKET_SQUARES_H
#define POCKET_SQUARES_H

#include "half.h"

enum { Q = 64, SQUARE = Q * Q };

#if defined __AVX512BF16__ || defined __AMX_BF16__
struct packed {
    word w[8 * TILE];
};

struct left { /* tile (i, s) begins at `at` + i * down + s * right, rows `stride` bytes apart */
    const bf16 *at;
    int64_t down, right, stride;
};

typedef const word *right; /* 8 tiles, (s, j) at s * 4 + j */

static inline struct left rows_of(const bf16 *a, int64_t ld)
{
    return (struct left){a, T * ld, 32, ld * 2};
}

static inline struct left turned(const bf16 *a, int64_t ld, struct packed *to)
{
    word x[TILE], y[TILE];
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < 4; i += 2) {
            pair(a + s * 32 * ld + i * T, ld, x, y);
            turn(x, T, to->w + (i * 2 + s) * TILE, T);
            turn(y, T, to->w + ((i + 1) * 2 + s) * TILE, T);
        }
    return (struct left){(bf16 *)to->w, 4 * TILE, 2 * TILE, 64};
}

static inline right plain(const bf16 *b, int64_t ld, struct packed *to)
{
    for (int s = 0; s < 2; s++)
        for (int j = 0; j < 4; j += 2)
            pair(b + s * 32 * ld + j * T, ld, to->w + (s * 4 + j) * TILE, to->w + (s * 4 + j + 1) * TILE);
    return to->w;
}

static inline right across(const bf16 *b, int64_t ld, struct packed *to)
{
    for (int s = 0; s < 2; s++)
        for (int j = 0; j < 4; j++)
            turn((const word *)(b + j * T * ld) + s * T, ld / 2, to->w + (s * 4 + j) * TILE, T);
    return to->w;
}

/* out [64][64] fp32 = a b, or += . */
static inline void product(struct left a, right b, float *out, int add)
{
    for (int i = 0; i < 4; i += 2)
        for (int j = 0; j < 4; j += 2) {
            float *to = out + i * T * Q + j * T;
            if (add) {
                tile_load(0, to, Q * 4);
                tile_load(1, to + T, Q * 4);
                tile_load(2, to + T * Q, Q * 4);
                tile_load(3, to + T * Q + T, Q * 4);
            } else {
                tile_zero(0);
                tile_zero(1);
                tile_zero(2);
                tile_zero(3);
            }
            for (int s = 0; s < 2; s++) {
                tile_load(4, a.at + i * a.down + s * a.right, a.stride);
                tile_load(5, a.at + (i + 1) * a.down + s * a.right, a.stride);
                tile_load(6, b + (s * 4 + j) * TILE, 64);
                tile_load(7, b + (s * 4 + j + 1) * TILE, 64);
                tile_product(0, 4, 6);
                tile_product(1, 4, 7);
                tile_product(2, 5, 6);
                tile_product(3, 5, 7);
            }
            tile_store(0, to, Q * 4);
            tile_store(1, to + T, Q * 4);
            tile_store(2, to + T * Q, Q * 4);
            tile_store(3, to + T * Q + T, Q * 4);
        }
}
#else
struct config {
    int none;
};

struct packed {
    float f[SQUARE];
};

struct left { /* number (i, k) is at[i * down + k * right] */
    const float *at;
    int64_t down, right;
};

typedef struct {
    const float *at;
    int64_t ld;
} right;

static inline void enter(struct config *old)
{
    old->none = 0;
}

static inline void leave(const struct config *old)
{
    (void)old;
}

static inline struct left rows_of(const float *a, int64_t ld)
{
    return (struct left){a, ld, 1};
}

static inline struct left turned(const float *a, int64_t ld, struct packed *to)
{
    (void)to; /* its numbers are taken one by one */
    return (struct left){a, 1, ld};
}

static inline right plain(const float *b, int64_t ld, struct packed *to)
{
    (void)to;
    return (right){b, ld};
}

static inline right across(const float *b, int64_t ld, struct packed *to)
{
    for (int j = 0; j < Q;
         j += LANES) /* reads LANES rows at once: each line of them is in cache until it is used up */
        for (int k = 0; k < Q; k++)
            for (int l = 0; l < LANES; l++)
                to->f[k * Q + j + l] = b[(j + l) * ld + k];
    return (right){to->f, Q};
}

/* Four rows and two vectors of columns. */
static inline void part_of_product(struct left a, right b, float *out, int add)
{
    vec sum[4][2];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++)
            sum[i][j] = add ? load(out + i * Q + j * LANES) : all(0);
    for (int64_t k = 0; k < Q; k++) {
        vec x = load(b.at + k * b.ld), y = load(b.at + k * b.ld + LANES);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            vec f = all(a.at[i * a.down + k * a.right]);
            sum[i][0] += f * x;
            sum[i][1] += f * y;
        }
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++)
            store(out + i * Q + j * LANES, sum[i][j]);
}

/* out [64][64] = a b, or += . */
static inline void product(struct left a, right b, float *out, int add)
{
    for (int j = 0; j < Q; j += 2 * LANES)
        for (int i = 0; i < Q; i += 4)
            part_of_product((struct left){a.at + i * a.down, a.down, a.right}, (right){b.at + j, b.ld},
                            out + i * Q + j, add);
}
#endif

#endif
