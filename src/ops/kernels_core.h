/* kernels_core.h - building blocks of the fast kernels: vectors, words, exponentials, and one matrix product.
 *
 * The including file defines
 *   VL        floats in a vector: 4 (NEON), 8 or 16 (AVX)
 *   MR        rows of the block of sums that multiply() keeps in registers, at most VL, the rows that
 *             pack_rows() takes
 *   DOT_BF16  optional, (acc, word, v): acc += the dot product of the two pairs of bf16, lane by lane
 *   VEC_BF16  optional, (v): VL floats rounded to bf16
 *   DOT_BYTES optional, (acc, u, word): integer acc += the dot product of four unsigned bytes of u and the
 *             four signed bytes of a word, lane by lane
 *   DOT_SIGNED optional, the same with signed bytes of u
 *
 * Word: 32 bits that are multiplied at once, one f32 or, where DOT_BF16 exists and both factors are
 * bf16, two neighbouring bf16.  Packing, blocking and loops are the same for both; only the innermost
 * line differs.
 *
 * Every sum over k runs k = 0, 1, 2, ... in one accumulator whatever the block sizes, so a row's result
 * does not depend on the number of rows, threads or strips.
 */
#pragma once

#include "ops/ops_impl.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { NR = 2 * VL, WORD = 4 };

typedef float vec __attribute__((vector_size(VL * 4), may_alias));
typedef uint32_t uvec __attribute__((vector_size(VL * 4), may_alias));
typedef int32_t ivec __attribute__((vector_size(VL * 4), may_alias));
typedef uint16_t pairvec __attribute__((vector_size(VL * 4), may_alias));
typedef int16_t wvec __attribute__((vector_size(VL * 4), may_alias));
typedef uint16_t hvec __attribute__((vector_size(VL * 2), may_alias));
typedef int16_t shvec __attribute__((vector_size(VL * 2), may_alias));
typedef uint8_t bytevec __attribute__((vector_size(16)));

/* The same in memory, at any address, because bf16 rows are aligned to 2 bytes only. gcc for ARM does not
 * accept such a type as a parameter. */
typedef vec vec_at __attribute__((aligned(2)));
typedef uvec uvec_at __attribute__((aligned(2)));
typedef ivec ivec_at __attribute__((aligned(2)));
typedef pairvec pairvec_at __attribute__((aligned(2)));
typedef hvec hvec_at __attribute__((aligned(2)));

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#ifdef __SANITIZE_ADDRESS__
#define UNROLL /* gcc 12 warns of loops that it cannot unroll with its checks in them */
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#ifdef __clang__
#define OWN_FUNCTION static __attribute__((noinline))
#else
#define OWN_FUNCTION static __attribute__((noinline, noclone)) /* nor specialised for constant arguments */
#endif

#if VL == 4
#include "ops/kernels_neon.h"
#else
#include "ops/kernels_avx.h"
#endif

#ifdef DOT_BF16
enum { HAS_DOT = 1 };
#else
enum { HAS_DOT = 0 };
#define DOT_BF16(acc, word, v) ((void)(word), (void)(v), (acc))
#endif

ALWAYS_INLINE int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

ALWAYS_INLINE int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

ALWAYS_INLINE vec splat(float x)
{
    return (vec){0} + x;
}

ALWAYS_INLINE vec vec_from_bf16(hvec h)
{
    return VEC_WIDEN(h);
}

/* Rounds to bf16, ties to even; NaN is preserved. */
ALWAYS_INLINE hvec vec_to_bf16(vec v)
{
#ifdef VEC_BF16
    return VEC_BF16(v);
#else
    uvec u = (uvec)v, r = (u + 0x7fff + (u >> 16 & 1)) >> 16, nan = (uvec)(v != v);
    return __builtin_convertvector((r & ~nan) | ((u >> 16 | 0x40) & nan), hvec);
#endif
}

ALWAYS_INLINE float sum_lanes(vec v)
{
    float lane[VL];
    memcpy(lane, &v, sizeof lane);
    for (int half = VL / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

ALWAYS_INLINE float max_lanes(vec v)
{
    float lane[VL];
    memcpy(lane, &v, sizeof lane);
    for (int half = VL / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] = lane[i] > lane[i + half] ? lane[i] : lane[i + half];
    return lane[0];
}

/* Returns 2^f = 1 + f q(f) for |f| <= 1/2, with a relative error of 1e-7, or 3e-6 if `rough`, for results
 * that are rounded to bf16. */
ALWAYS_INLINE vec small_power(vec f, const bool rough)
{
    vec q;
    if (rough) {
        q = f * splat(0.00958285317f) + splat(0.055906425f);
        q = q * f + splat(0.240240986f);
        q = q * f + splat(0.693124193f);
    } else {
        q = f * splat(0.00132647272f) + splat(0.00967151269f);
        q = q * f + splat(0.0555073374f);
        q = q * f + splat(0.240222421f);
        q = q * f + splat(0.693146978f);
    }
    return q * f + splat(1.0f);
}

#ifdef VEC_SCALE
/* 2^x for x <= 127 */
ALWAYS_INLINE vec exp2_vec(vec x, const bool rough)
{
    vec f = VEC_LESS(x);
    return VEC_SCALE(small_power(f, rough), x - f);
}

/* Returns e^x for x <= 88. log2 e is split into two parts to keep the precision for large |x|. */
ALWAYS_INLINE vec exp_vec(vec x)
{
    vec y = x * splat(1.44269502f), n = y - VEC_LESS(y);
    vec f = x * splat(1.44269502f) - n + x * splat(1.92596303e-8f);
    return VEC_SCALE(small_power(f, false), n);
}
#else
/* 1.5 * 2^23: after adding it, the low bits of the sum are round(x). With n = -127 the factor 2^n is zero. */
#define ROUNDING 12582912.0f

/* Returns 2^x for x <= 127; 0 if the result is below 2^-126. */
ALWAYS_INLINE vec exp2_vec(vec x, const bool rough)
{
    x = VEC_MAX(splat(-127.0f), x);
    vec shifted = x + splat(ROUNDING);
    return small_power(x - (shifted - splat(ROUNDING)), rough) * (vec)(((uvec)shifted + 127) << 23);
}

/* Returns e^x for x <= 88. log2 e is split into two parts to keep the precision for large |x|. */
ALWAYS_INLINE vec exp_vec(vec x)
{
    x = VEC_MAX(splat(-88.0f), x);
    vec shifted = x * splat(1.44269502f) + splat(ROUNDING);
    vec f = x * splat(1.44269502f) - (shifted - splat(ROUNDING));
    return small_power(f + x * splat(1.92596303e-8f), false) * (vec)(((uvec)shifted + 127) << 23);
}
#endif

ALWAYS_INLINE vec silu_vec(vec x)
{
    return x / (splat(1.0f) + exp_vec(-VEC_MAX(splat(-88.0f), x)));
}

/* Returns v/2 (1 + erf(v / sqrt 2)) = max(v, 0) - |v|/2 erfc(|v| / sqrt 2), with erfc from Abramowitz and
 * Stegun 7.1.26, whose absolute error is below 2e-7. */
ALWAYS_INLINE vec gelu_vec(vec v)
{
    vec x = (vec)((uvec)v & 0x7fffffff) * splat(0.70710678118654752f);
    vec t = splat(1.0f) / (splat(1.0f) + splat(0.3275911f) * x);
    vec p = t * splat(1.061405429f) + splat(-1.453152027f);
    p = p * t + splat(1.421413741f);
    p = p * t + splat(-0.284496736f);
    p = p * t + splat(0.254829592f);
    vec erfc = p * t * exp_vec(-(x * x));
    return VEC_MAX(splat(0.0f), v) - (vec)((uvec)v & 0x7fffffff) * splat(0.5f) * erfc;
}

/* Returns v/2 (1 + tanh u) = v sigmoid(2u), u = sqrt(2 / pi) (v + 0.044715 v^3) */
ALWAYS_INLINE vec gelu_tanh_vec(vec v)
{
    vec u = splat(1.5957691216057308f) * v * (splat(1.0f) + splat(0.044715f) * v * v);
    return v / (splat(1.0f) + exp_vec(-VEC_MAX(splat(-88.0f), u)));
}

/* ---- rows in and out ----------------------------------------------------------------------------------- */

ALWAYS_INLINE char *element(struct tensor t, int64_t r, int64_t c)
{
    return (char *)t.data + (r * t.stride + c) * (t.dtype == DT_BF16 ? 2 : 4);
}

ALWAYS_INLINE float load_value(struct tensor t, int64_t r, int64_t c)
{
    const char *p = element(t, r, c);
    return t.dtype == DT_BF16 ? bf16_to_f32(*(const uint16_t *)(const void *)p)
                              : *(const float *)(const void *)p;
}

/* Prefetches columns [c, c + n) of row r, which may lie after the last row. */
ALWAYS_INLINE void prefetch_columns(struct tensor t, int64_t r, int64_t c, int64_t n)
{
    const char *p = element(t, r, c);
    for (int64_t at = 0; at < n * (t.dtype == DT_BF16 ? 2 : 4); at += 64)
        __builtin_prefetch(p + at);
}

/* Loads VL values at p. */
ALWAYS_INLINE vec load_vec(const void *p, const bool bf16)
{
    return bf16 ? vec_from_bf16(*(const hvec_at *)p) : *(const vec_at *)p;
}

ALWAYS_INLINE void store_vec(void *p, const bool bf16, vec v)
{
    if (bf16)
        *(hvec_at *)p = vec_to_bf16(v);
    else
        *(vec_at *)p = v;
}

/* Loads n < VL values at p, zero-padded. */
ALWAYS_INLINE vec load_part(const void *p, const bool bf16, int64_t n)
{
    uint32_t room[VL] = {0};
    memcpy(room, p, (size_t)n * (bf16 ? 2 : 4));
    return load_vec(room, bf16);
}

ALWAYS_INLINE void store_part(void *p, const bool bf16, int64_t n, vec v)
{
    uint32_t room[VL];
    store_vec(room, bf16, v);
    memcpy(p, room, (size_t)n * (bf16 ? 2 : 4));
}

/* Loads columns [c, c + n) of row r as f32 into `out`, zero-padded to whole vectors. */
static void load_row(struct tensor t, int64_t r, int64_t c, int64_t n, float *out)
{
    const char *p = element(t, r, c);
    const int64_t size = t.dtype == DT_BF16 ? 2 : 4;
    int64_t i = 0;
    if (t.dtype == DT_BF16)
        for (; i + VL <= n; i += VL)
            *(vec_at *)(out + i) = load_vec(p + i * 2, true);
    else
        for (; i + VL <= n; i += VL)
            *(vec_at *)(out + i) = load_vec(p + i * 4, false);
    if (i < n)
        *(vec_at *)(out + i) = load_part(p + i * size, t.dtype == DT_BF16, n - i);
}

static void store_row(struct tensor t, int64_t r, int64_t c, int64_t n, const float *in)
{
    char *p = element(t, r, c);
    const int64_t size = t.dtype == DT_BF16 ? 2 : 4;
    int64_t i = 0;
    if (t.dtype == DT_BF16)
        for (; i + VL <= n; i += VL)
            store_vec(p + i * 2, true, *(const vec_at *)(in + i));
    else
        for (; i + VL <= n; i += VL)
            store_vec(p + i * 4, false, *(const vec_at *)(in + i));
    if (i < n)
        store_part(p + i * size, t.dtype == DT_BF16, n - i, *(const vec_at *)(in + i));
}

/* Returns n rounded up to whole vectors, the size of a row in scratch memory. */
ALWAYS_INLINE int64_t padded(int64_t n)
{
    return ceil_div(n, VL) * VL;
}

/* ---- packing ------------------------------------------------------------------------------------------- */

/* Loads VL words of row r, starting with word k; zeros after the row's end. */
ALWAYS_INLINE uvec load_words(struct tensor t, int64_t r, int64_t k, const bool pair)
{
    const char *p = element(t, r, pair ? 2 * k : k);
    int64_t left = t.cols - (pair ? 2 * k : k);
    if (pair) {
        if (left >= 2 * VL)
            return *(const uvec_at *)p;
        uint32_t room[VL] = {0};
        memcpy(room, p, (size_t)left * 2);
        return *(const uvec_at *)room;
    }
    bool bf16 = t.dtype == DT_BF16;
    return (uvec)(left >= VL ? load_vec(p, bf16) : load_part(p, bf16, left));
}

/* ROUND(s) exchanges the blocks of s lanes of rows i and i + s: one of the log2(VL) rounds of a
 * transposition. */
#if VL == 16
#define LANES_1(o)                                                                                           \
    0 + (o), 16 + (o), 2 + (o), 18 + (o), 4 + (o), 20 + (o), 6 + (o), 22 + (o), 8 + (o), 24 + (o), 10 + (o), \
        26 + (o), 12 + (o), 28 + (o), 14 + (o), 30 + (o)
#define LANES_2(o)                                                                                           \
    0 + (o), 1 + (o), 16 + (o), 17 + (o), 4 + (o), 5 + (o), 20 + (o), 21 + (o), 8 + (o), 9 + (o), 24 + (o),  \
        25 + (o), 12 + (o), 13 + (o), 28 + (o), 29 + (o)
#define LANES_4(o)                                                                                           \
    0 + (o), 1 + (o), 2 + (o), 3 + (o), 16 + (o), 17 + (o), 18 + (o), 19 + (o), 8 + (o), 9 + (o), 10 + (o),  \
        11 + (o), 24 + (o), 25 + (o), 26 + (o), 27 + (o)
#define LANES_8(o)                                                                                           \
    0 + (o), 1 + (o), 2 + (o), 3 + (o), 4 + (o), 5 + (o), 6 + (o), 7 + (o), 16 + (o), 17 + (o), 18 + (o),    \
        19 + (o), 20 + (o), 21 + (o), 22 + (o), 23 + (o)
#elif VL == 8
#define LANES_1(o) 0 + (o), 8 + (o), 2 + (o), 10 + (o), 4 + (o), 12 + (o), 6 + (o), 14 + (o)
#define LANES_2(o) 0 + (o), 1 + (o), 8 + (o), 9 + (o), 4 + (o), 5 + (o), 12 + (o), 13 + (o)
#define LANES_4(o) 0 + (o), 1 + (o), 2 + (o), 3 + (o), 8 + (o), 9 + (o), 10 + (o), 11 + (o)
#else
#define LANES_1(o) 0 + (o), 4 + (o), 2 + (o), 6 + (o)
#define LANES_2(o) 0 + (o), 1 + (o), 4 + (o), 5 + (o)
#endif
#define ROUND(s)                                                                                             \
    UNROLL for (int i = 0; i < VL; i++) if (!(i & (s)))                                                      \
    {                                                                                                        \
        uvec a = r[i], b = r[i + (s)];                                                                       \
        r[i] = __builtin_shufflevector(a, b, LANES_##s(0));                                                  \
        r[i + (s)] = __builtin_shufflevector(a, b, LANES_##s(s));                                            \
    }

/* Transposes r. */
ALWAYS_INLINE void transpose(uvec r[VL])
{
    ROUND(1)
    ROUND(2)
#if VL > 4
    ROUND(4)
#endif
#if VL == 16
    ROUND(8)
#endif
}

/* transpose over VL rows of whole vectors; returns the words done of each. */
ALWAYS_INLINE int64_t pack_whole(uint32_t *out, int64_t ld, const char *at, int64_t row_bytes, int64_t words)
{
    int64_t k = 0;
    for (; k + VL <= words; k += VL, at += VL * WORD) {
        uvec r[VL];
        UNROLL for (int i = 0; i < VL; i++) r[i] = *(const uvec_at *)(at + i * row_bytes);
        transpose(r);
        UNROLL for (int i = 0; i < VL; i++)
        {
            *(uvec_at *)(out + (k + i) * ld) = r[i];
        }
    }
    return k;
}

/* Sets out[k * ld + i] to word k of row i of t, which has at most VL rows; lanes of missing rows are zero.
 * Each k stores VL words: with ld < VL the next k overwrites the surplus, and `out` needs space for a whole
 * vector at the last k. */
static void pack_rows(uint32_t *out, int64_t ld, struct tensor t, const bool pair)
{
    int64_t words = pair ? ceil_div(t.cols, 2) : t.cols, k = 0;
    if (t.rows == VL && (pair || t.dtype == DT_F32))
        k = pack_whole(out, ld, t.data, t.stride * (pair ? 2 : 4), pair ? t.cols / 2 : t.cols);
    for (; k < words; k += VL) {
        uvec r[VL];
        for (int i = 0; i < VL; i++)
            r[i] = i < t.rows ? load_words(t, i, k, pair) : (uvec){0};
        transpose(r);
        int64_t n = least(VL, words - k);
        for (int64_t i = 0; i < n; i++)
            *(uvec_at *)(out + (k + i) * ld) = r[i];
    }
}

#if VL == 16
#define LOW_PAIRS                                                                                            \
    0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45,    \
        14, 46, 15, 47
#define HIGH_PAIRS                                                                                           \
    16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60,  \
        29, 61, 30, 62, 31, 63
#elif VL == 8
#define LOW_PAIRS  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_PAIRS 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#else
#define LOW_PAIRS  0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_PAIRS 4, 12, 5, 13, 6, 14, 7, 15
#endif

/* Interleaves two rows of bf16 into pairs, whole vectors only; returns the number of columns processed. */
ALWAYS_INLINE int64_t pair_rows(uint32_t *out, const char *a, const char *b, int64_t cols)
{
    int64_t c = 0;
    for (; c + 2 * VL <= cols; c += 2 * VL, out += 2 * VL) {
        pairvec x = *(const pairvec_at *)(a + 2 * c), y = *(const pairvec_at *)(b + 2 * c);
        *(pairvec_at *)out = __builtin_shufflevector(x, y, LOW_PAIRS);
        *(pairvec_at *)(out + VL) = __builtin_shufflevector(x, y, HIGH_PAIRS);
    }
    return c;
}

/* Sets out[w * ld + c] to column c of row w or, with `pair`, of rows 2w and 2w + 1 (zero if the latter is
 * missing). ld >= padded(cols). */
static void pack_columns(uint32_t *out, int64_t ld, struct tensor t, const bool pair)
{
    for (int64_t r = 0; r < t.rows; r += pair ? 2 : 1) {
        int64_t c = 0;
        if (pair && r + 1 < t.rows)
            c = pair_rows(out + r / 2 * ld, element(t, r, 0), element(t, r + 1, 0), t.cols);
        for (; c < t.cols; c += VL) {
            int64_t n = least(VL, t.cols - c);
            bool bf16 = t.dtype == DT_BF16, lone = r + 1 == t.rows;
            uvec a =
                (uvec)(n == VL ? load_vec(element(t, r, c), bf16) : load_part(element(t, r, c), bf16, n));
            if (pair) {
                uvec b = {0};
                if (!lone)
                    b = (uvec)(n == VL ? load_vec(element(t, r + 1, c), bf16)
                                       : load_part(element(t, r + 1, c), bf16, n));
                a = a >> 16 | b;
            }
            *(uvec_at *)(out + (pair ? r / 2 : r) * ld + c) = a;
        }
    }
}

/* ---- the multiplication -------------------------------------------------------------------------------- */

enum factor {
    F32,  /* a word is an f32 */
    PAIR, /* a word is two bf16 on both sides, for the dot instruction */
    WIDE, /* left: two f32; right: two bf16, converted on the way */
};

ALWAYS_INLINE vec multiply_word(vec acc, const char *a, uvec b, const enum factor kind)
{
    uint32_t word;
    float x[2];
    if (kind == PAIR) {
        memcpy(&word, a, 4);
        return DOT_BF16(acc, word, b);
    }
    if (kind == F32) {
        memcpy(x, a, 4);
        return acc + x[0] * (vec)b;
    }
    memcpy(x, a, 8);
    acc += x[0] * (vec)(b << 16);
    return acc + x[1] * (vec)(b & 0xffff0000u);
}

/* Computes acc[m][j] += sum_k a(m, k) b(k, j) for m < M and N vectors j. Word (m, k) of a is at a + m * row +
 * k * step bytes; vector j of b's row k is at b + k * ld, two vectors adjacent, pairs of vectors `apart`
 * bytes from each other. */
ALWAYS_INLINE void multiply(vec *acc, const int M, const int N, const enum factor kind, const char *a,
                            int64_t row, int64_t step, const char *b, int64_t ld, int64_t apart,
                            int64_t depth)
{
    const char *rows[4] = {a, a + 4 * row, a + 8 * row, a + 12 * row}; /* more would not fit in registers */
    for (int64_t k = 0; k < depth; k++, b += ld) {
        uvec right[8];
        UNROLL for (int j = 0; j < N; j++) right[j] =
            *(const uvec_at *)(b + (j / 2) * apart + (j % 2) * VL * 4);
        UNROLL for (int m = 0; m < M; m++)
        {
            UNROLL for (int j = 0; j < N; j++) acc[m * N + j] =
                multiply_word(acc[m * N + j], rows[m / 4] + m % 4 * row, right[j], kind);
        }
        UNROLL for (int i = 0; 4 * i < M; i++) rows[i] += step;
    }
}

/* The left factor of a product; strides in words. */
struct matrix {
    const void *at;
    int64_t row, step; /* distance between rows, and between adjacent k */
};

enum start { FROM_ZERO, FROM_SUM, FROM_SUM_TRIANGLE };

ALWAYS_INLINE void product_block(float *c, int64_t ldc, struct matrix a, const void *b, int64_t ldb,
                                 int64_t depth, bool fresh, const int M, const int N, const enum factor kind)
{
    vec acc[MR * 2];
    UNROLL for (int m = 0; m < M; m++)
    {
        UNROLL for (int j = 0; j < N; j++) acc[m * N + j] =
            fresh ? (vec){0} : *(const vec_at *)(c + m * ldc + j * VL);
    }
    multiply(acc, M, N, kind, a.at, a.row * WORD, a.step * WORD, b, ldb * WORD, 0, depth);
    UNROLL for (int m = 0; m < M; m++)
    {
        UNROLL for (int j = 0; j < N; j++) * (vec_at *)(c + m * ldc + j * VL) = acc[m * N + j];
    }
}

ALWAYS_INLINE void product_rows(float *c, int64_t ldc, struct matrix a, const char *b, int64_t ldb,
                                int64_t depth, int64_t cols, bool fresh, const int M, const enum factor kind)
{
    int64_t n = 0;
    for (; n + NR <= cols; n += NR)
        product_block(c + n, ldc, a, b + n * WORD, ldb, depth, fresh, M, 2, kind);
    if (n < cols)
        product_block(c + n, ldc, a, b + n * WORD, ldb, depth, fresh, M, 1, kind);
}

ALWAYS_INLINE void product(float *c, int64_t ldc, struct matrix a, const void *b, int64_t ldb, int64_t rows,
                           int64_t depth, int64_t cols, enum start start, const enum factor kind)
{
    for (int64_t i = 0; i < rows;) {
        int64_t left = rows - i, m = left >= MR ? MR : left > 8 ? 8 : left == 7 ? 6 : left;
        int64_t k = start != FROM_SUM_TRIANGLE ? depth : least(depth, kind == PAIR ? (i + m + 1) / 2 : i + m);
        struct matrix at = {(const char *)a.at + i * a.row * WORD, a.row, a.step};
        float *to = c + i * ldc;
        bool fresh = start == FROM_ZERO;
        if (m == MR)
            product_rows(to, ldc, at, b, ldb, k, cols, fresh, MR, kind);
        else if (MR > 8 && m == 8)
            product_rows(to, ldc, at, b, ldb, k, cols, fresh, 8, kind);
        else if (MR > 6 && m == 6)
            product_rows(to, ldc, at, b, ldb, k, cols, fresh, 6, kind);
        else if (m == 5)
            product_rows(to, ldc, at, b, ldb, k, cols, fresh, 5, kind);
        else if (m == 4)
            product_rows(to, ldc, at, b, ldb, k, cols, fresh, 4, kind);
        else if (m == 3)
            product_rows(to, ldc, at, b, ldb, k, cols, fresh, 3, kind);
        else if (m == 2)
            product_rows(to, ldc, at, b, ldb, k, cols, fresh, 2, kind);
        else
            product_rows(to, ldc, at, b, ldb, k, cols, fresh, 1, kind);
        i += m;
    }
}

/* Computes c[m][n] (+)= sum_k a(m, k) b[k][n]; cols is a multiple of VL, ldb is in words. A lower triangle
 * needs zeros only as far as a block of MR rows reads. These are separate functions because inlined code
 * would need too many registers for the sums. */
#define PRODUCT(name, kind)                                                                                  \
    OWN_FUNCTION void name(float *c, int64_t ldc, struct matrix a, const void *b, int64_t ldb, int64_t rows, \
                           int64_t depth, int64_t cols, enum start start)                                    \
    {                                                                                                        \
        product(c, ldc, a, b, ldb, rows, depth, cols, start, kind);                                          \
    }
PRODUCT(product_f32, F32)
PRODUCT(product_pair, PAIR)
PRODUCT(product_wide, WIDE)
