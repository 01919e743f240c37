/* kernels_bytes.h - products with integer codes by the dot product of bytes, four multiplications a lane.
 *
 * A row of x becomes 16-bit integers with one scale, finer than bf16 where it matters: an error of
 * 1/65000 of the row's largest value.  They are split into two signed digits, x = 256 hi + lo, and each
 * digit is a row of its own of the product.  Weights are unsigned bytes with an offset, which is
 * subtracted beforehand: a sum begins at minus the offset times the sum of its digits.  Integer sums are
 * exact, so nothing depends on how the work is split.
 *
 *   i8   byte: code + 128
 *   i4   half a byte: code + 8
 *   f4   half a byte: the e2m1 code; a table maps it to twice the value + 12, the column's scale halves it
 *
 * Words hold four neighbouring k of a column, or eight (in_words).  e4m3 spans too many magnitudes for a
 * byte and stays with kernels_quant.h.
 */
#ifndef HOLORUN_OPS_KERNELS_BYTES_H
#define HOLORUN_OPS_KERNELS_BYTES_H

#include "ops/kernels_quant.h"
#include "ops/kernels_rows.h"

enum {
    DIGIT_ROWS = 6,          /* rows of x in a block: twice as many of digits */
    DIGITS = 2 * DIGIT_ROWS, /* as many sums as registers allow */
    DIGIT_MOST = 127 * 256 + 127,
    BYTES_MAX = 1 << 16, /* columns up to which no sum overflows: 255 * 128 * 2^16 < 2^31 */
};

#ifdef DOT_BYTES

/* Splits a word of 4-bit codes into two words of four k. */
ALWAYS_INLINE void split_word(uvec u, uvec out[2], const enum quant_format format)
{
    out[0] = u & 0x0f0f0f0fu;
    out[1] = u >> 4 & 0x0f0f0f0fu;
    if (format == QUANT_F4) {
        const __m512i table =
            _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
        for (int i = 0; i < 2; i++)
            out[i] = (uvec)_mm512_shuffle_epi8(table, (__m512i)out[i]);
    }
}

/* ---- rows of x become digits --------------------------------------------------------------------------- */

struct digits {
    struct tensor x;
    int64_t words, groups; /* words of four k; groups of the weight, at least one */
    int64_t size;          /* k of a group */
    int offset;
    int64_t step;       /* words from one k to the next: two for each row of a block */
    uint32_t *out;      /* [blocks][words][step] */
    int32_t *begin;     /* [blocks][groups][step]: initial values of the sums */
    float *scale;       /* [rows] */
    struct backend *b;  /* for scratch memory */
    int64_t block_rows; /* of x */
};

/* Splits n values into hi and lo digits; returns the scale. */
static float make_digits(const float *x, int64_t n, int8_t *hi, int8_t *lo)
{
    vec most = {0}, odd = {0};
    for (int64_t k = 0; k < n; k += VL) {
        vec v = *(const vec *)(x + k);
        most = VEC_MAX((vec)((uvec)v & 0x7fffffffu), most);
        odd += v * 0; /* NaN where v is not finite */
    }
    float far = max_lanes(most), scale = far / DIGIT_MOST;
    vec each = splat(far > 1e-30f ? DIGIT_MOST / far : 0);
    for (int64_t k = 0; k < n; k += VL) {
        __m512i v = _mm512_cvtps_epi32((__m512)(*(const vec *)(x + k) * each));
        __m512i low = _mm512_srai_epi32(_mm512_slli_epi32(v, 24), 24);
        __m512i high = _mm512_srai_epi32(_mm512_sub_epi32(v, low), 8);
        _mm_storeu_si128((__m128i *)(void *)(lo + k), _mm512_cvtepi32_epi8(low));
        _mm_storeu_si128((__m128i *)(void *)(hi + k), _mm512_cvtepi32_epi8(high));
    }
    return scale + sum_lanes(odd);
}

static int32_t digit_sum(const int8_t *p, int64_t n)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += p[i];
    return sum;
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

/* ---- products ------------------------------------------------------------------------------------------ */

/* acc[m][j] += digit row m times the columns; pairs of vectors are `apart` bytes apart. */
ALWAYS_INLINE void bytes_multiply(ivec *acc, const int M, const int N, const uint32_t *x, int64_t step,
                                  const char *w, int64_t apart, int64_t words)
{
    for (int64_t k = 0; k < words; k++, x += step, w += NR * WORD) {
        uvec right[4];
        UNROLL for (int j = 0; j < N; j++) right[j] =
            *(const uvec *)(w + (j / 2) * apart + j % 2 * VL * WORD);
        UNROLL for (int m = 0; m < M; m++)
        {
            UNROLL for (int j = 0; j < N; j++) acc[m * N + j] = DOT_BYTES(acc[m * N + j], right[j], x[m]);
        }
    }
}

/* 256 hi + lo as f32. */
ALWAYS_INLINE vec joined(ivec hi, ivec lo)
{
    return __builtin_convertvector(hi, vec) * splat(256) + __builtin_convertvector(lo, vec);
}

/* Integer tile [M][NR]: starts from `begin`, or (NULL) from what it holds. */
ALWAYS_INLINE void bytes_rows(int32_t *tile, const int32_t *begin, const uint32_t *x, int64_t step,
                              const char *w, int64_t words, const int M)
{
    ivec acc[DIGITS * 2];
    UNROLL for (int i = 0; i < 2 * M; i++)
    {
        if (begin)
            acc[i] = (ivec){0} + begin[i / 2];
        else
            acc[i] = *(const ivec *)(tile + i / 2 * NR + i % 2 * VL);
    }
    bytes_multiply(acc, M, 2, x, step, w, 0, words);
    UNROLL for (int i = 0; i < 2 * M; i++) * (ivec *)(tile + i / 2 * NR + i % 2 * VL) = acc[i];
}

#define BYTES_ROWS(rows)                                                                                     \
    OWN_FUNCTION void bytes_rows_##rows(int32_t *tile, const int32_t *begin, const uint32_t *x,              \
                                        int64_t step, const char *w, int64_t words)                          \
    {                                                                                                        \
        bytes_rows(tile, begin, x, step, w, words, 2 * (rows));                                              \
    }
BYTES_ROWS(1)
BYTES_ROWS(2)
BYTES_ROWS(3)
BYTES_ROWS(4)
BYTES_ROWS(5)
BYTES_ROWS(6)

static void bytes_block(int rows, int32_t *tile, const int32_t *begin, const uint32_t *x, int64_t step,
                        const char *w, int64_t words)
{
    static void (*const each[DIGIT_ROWS])(int32_t *, const int32_t *, const uint32_t *, int64_t, const char *,
                                          int64_t) = {bytes_rows_1, bytes_rows_2, bytes_rows_3,
                                                      bytes_rows_4, bytes_rows_5, bytes_rows_6};
    each[rows - 1](tile, begin, x, step, w, words);
}

/* ---- one row ------------------------------------------------------------------------------------------- */

struct bytes {
    struct quantized_product s; /* x, row, step and block are not used */
    struct digits d;
    int64_t words; /* of four k */
};

/* N vectors of 4-bit codes, two for each panel: words [k, end) of eight k. */
ALWAYS_INLINE void packed4_run(ivec *hi, ivec *lo, const int N, const uint32_t *x, const char *w,
                               int64_t apart, int64_t k, int64_t end, const enum quant_format format)
{
    for (; k < end; k++)
        UNROLL for (int j = 0; j < N; j++)
        {
            uvec word[2];
            split_word(*(const uvec *)(w + k * NR * WORD + (j / 2) * apart + j % 2 * VL * WORD), word,
                       format);
            UNROLL for (int i = 0; i < 2; i++)
            {
                hi[j] = DOT_BYTES(hi[j], word[i], x[4 * k + 2 * i]);
                lo[j] = DOT_BYTES(lo[j], word[i], x[4 * k + 2 * i + 1]);
            }
        }
}

ALWAYS_INLINE void bytes_vector(const struct bytes *p, int64_t panel, const int N,
                                const enum quant_format format)
{
    const int64_t apart = p->s.shape.lines * NR,
                  per = format == QUANT_I4 ? QUANT_I4_GROUP / 8 : QUANT_F4_GROUP / 8;
    const char *w = quantized_lines(&p->s, panel);
    const int32_t *begin = p->d.begin;
    ivec acc[2 * 4];
    vec sums[4];
    if (format == QUANT_I8) {
        UNROLL for (int i = 0; i < 2 * N; i++) acc[i] = (ivec){0} + begin[i / N];
        bytes_multiply(acc, 2, N, p->d.out, 2, w, apart, p->words);
        UNROLL for (int j = 0; j < N; j++) sums[j] = joined(acc[j], acc[N + j]);
    } else {
        UNROLL for (int j = 0; j < N; j++) sums[j] = (vec){0};
        for (int64_t g = 0; g < p->d.groups; g++) {
            UNROLL for (int i = 0; i < 2 * N; i++) acc[i] = (ivec){0} + begin[2 * g + i / N];
            packed4_run(acc, acc + N, N, p->d.out, w, apart, g * per, (g + 1) * per, format);
            UNROLL for (int j = 0; j < N; j++) sums[j] +=
                joined(acc[j], acc[N + j]) *
                group_scale(quantized_groups(&p->s, panel + j / 2) + g * NR + j % 2 * VL);
        }
    }
    for (int j = 0; j < N; j++)
        sums[j] *= splat(p->d.scale[0]);
    for (int j = 0; j < N; j += 2)
        quantized_finish(&p->s, 0, panel + j / 2, sums + j, 1);
}

ALWAYS_INLINE void bytes_vectors(const struct bytes *p, int64_t begin, int64_t end,
                                 const enum quant_format format)
{
    int64_t panel = begin;
    for (; panel + 2 <= end; panel += 2)
        bytes_vector(p, panel, 4, format);
    if (panel < end)
        bytes_vector(p, panel, 2, format);
}

static void bytes_vector_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct bytes *p = arg;
    if (p->s.w->format == QUANT_I8)
        bytes_vectors(p, begin, end, QUANT_I8);
    else if (p->s.w->format == QUANT_I4)
        bytes_vectors(p, begin, end, QUANT_I4);
    else
        bytes_vectors(p, begin, end, QUANT_F4);
}

/* ---- many rows ----------------------------------------------------------------------------------------- */

enum {
    BYTES_DEPTH = 128,                /* words of a slice */
    BYTES_STRIP = 16 * DIGIT_ROWS,    /* rows of x that share a slice */
    BYTES_TILE = BYTES_STRIP * 2 * NR /* sums of a strip and a panel, in words */
};

/* Words [k, k + n) of four k, from 4-bit codes. */
OWN_FUNCTION void split_words(const struct bytes *p, int64_t panel, int64_t k, int64_t n, uint32_t *out)
{
    const char *w = quantized_lines(&p->s, panel) + k / 2 * NR * WORD;
    for (int64_t i = 0; i < n; i += 2, w += NR * WORD, out += 2 * NR)
        for (int j = 0; j < NR; j += VL) {
            uvec word[2], u = *(const uvec *)(w + j * WORD);
            if (p->s.w->format == QUANT_I4)
                split_word(u, word, QUANT_I4);
            else
                split_word(u, word, QUANT_F4);
            *(uvec *)(out + j) = word[0];
            *(uvec *)(out + NR + j) = word[1];
        }
}

/* sums [rows][NR] += 256 hi + lo of tile [2 rows][NR], times the scales of a group. */
static void bytes_gather(float *sums, const int32_t *tile, const uint16_t *scales, int rows)
{
    for (int j = 0; j < NR; j += VL) {
        vec scale = group_scale(scales + j);
        for (int m = 0; m < rows; m++) {
            const int32_t *at = tile + 2 * m * NR + j;
            *(vec *)(sums + m * NR + j) += joined(*(const ivec *)at, *(const ivec *)(at + NR)) * scale;
        }
    }
}

static void bytes_end(const struct bytes *p, int64_t row, int64_t panel, const void *tile, int rows)
{
    vec sums[2 * DIGIT_ROWS];
    for (int i = 0; i < 2 * rows; i++) {
        const int32_t *at = (const int32_t *)tile + i / 2 * 2 * NR + i % 2 * VL;
        vec sum = p->s.shape.packed4 ? *(const vec *)((const float *)tile + i / 2 * NR + i % 2 * VL)
                                     : joined(*(const ivec *)at, *(const ivec *)(at + NR));
        sums[i] = sum * splat(p->d.scale[row + i / 2]);
    }
    quantized_finish(&p->s, row, panel, sums, rows);
}

/* A block of rows against words [k, k + n) of a panel at w; tile: integers, or sums of groups. */
static void bytes_slice(const struct bytes *p, int64_t row, int64_t panel, int64_t k, int64_t n,
                        const char *w, int32_t *tile)
{
    const struct digits *d = &p->d;
    int64_t block = row / d->block_rows, per = d->size / 4;
    int rows = (int)least(d->block_rows, p->s.out.rows - row);
    const uint32_t *x = d->out + (block * p->words + k) * d->step;
    const int32_t *begin = d->begin + block * d->groups * d->step;
    if (!p->s.shape.packed4) {
        bytes_block(rows, tile, k ? NULL : begin, x, d->step, w, n);
    } else {
        int32_t sums[DIGITS * NR] __attribute__((aligned(64)));
        if (k == 0)
            memset(tile, 0, (size_t)rows * NR * sizeof *tile);
        for (int64_t g = 0; g < n; g += per) {
            int64_t group = (k + g) / per;
            bytes_block(rows, sums, begin + group * d->step, x + g * d->step, d->step, w + g * NR * WORD,
                        per);
            bytes_gather((float *)tile, sums, quantized_groups(&p->s, panel) + group * NR, rows);
        }
    }
    if (k + n == p->words)
        bytes_end(p, row, panel, tile, rows);
}

static void bytes_product_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct bytes *p = arg;
    const int64_t step = p->d.block_rows;
    const size_t slice_bytes = (size_t)BYTES_DEPTH * NR * WORD;
    char *room = cpu_scratch(p->s.out.b, thread, slice_bytes + (size_t)QUANTIZED_PANELS * BYTES_TILE * WORD);
    int32_t *tiles = (int32_t *)(void *)(room + slice_bytes);
    for (int64_t item = begin; item < end; item++) {
        int64_t p0 = item / p->s.out.strips * p->s.out.group,
                p1 = least(p0 + p->s.out.group, p->s.shape.panels);
        int64_t r0 = item % p->s.out.strips * BYTES_STRIP, r1 = least(r0 + BYTES_STRIP, p->s.out.rows);
        for (int64_t k = 0; k < p->words; k += BYTES_DEPTH) {
            int64_t n = least(BYTES_DEPTH, p->words - k);
            for (int64_t panel = p0; panel < p1; panel++) {
                const char *w = room;
                if (p->s.shape.packed4)
                    split_words(p, panel, k, n, (uint32_t *)(void *)room);
                else
                    w = quantized_lines(&p->s, panel) + k * NR * WORD;
                for (int64_t r = r0; r < r1; r += step)
                    bytes_slice(p, r, panel, k, n, w, tiles + (panel - p0) * BYTES_TILE + (r - r0) * 2 * NR);
            }
        }
    }
}

/* ---- the operation ------------------------------------------------------------------------------------- */

static void bytes_pack_rows(struct bytes *p, struct tensor x)
{
    struct digits *d = &p->d;
    const enum quant_format format = p->s.w->format;
    d->x = x;
    d->words = p->words;
    d->groups = p->s.shape.groups ? p->s.shape.groups : 1;
    d->size = p->s.shape.groups ? quant_group(format) : p->words * 4;
    d->offset = format == QUANT_I8 ? 128 : format == QUANT_I4 ? 8 : 12;
    d->block_rows = least(DIGIT_ROWS, x.rows);
    d->step = 2 * d->block_rows;
    d->b = p->s.out.b;
    int64_t blocks = ceil_div(x.rows, d->block_rows);
    size_t words = (size_t)(blocks * d->words * d->step) * WORD,
           begins = (size_t)(blocks * d->groups * d->step) * sizeof(int32_t);
    char *room =
        cpu_scratch(d->b, SHARED_SCRATCH, words + begins + (size_t)(blocks * d->block_rows) * sizeof(float));
    d->out = (uint32_t *)(void *)room;
    d->begin = (int32_t *)(void *)(room + words);
    d->scale = (float *)(void *)(room + words + begins);
    p->s.out.rows = x.rows;
    pool_for(d->b->pool, x.rows, 1 + SMALL_ROWS / (x.cols + 1), digits_range, d);
}

static void bytes_linear(struct backend *b, struct tensor y, struct tensor x, const struct weight *w,
                         struct tensor bias, enum epilogue epi, enum accumulate mode)
{
    struct bytes p = {.s = quantized_begin(b, y, w, bias, epi, mode)};
    p.words = p.s.pairs / 2;
    int64_t chunk = ceil_div(SMALL_CHUNK / WORD / p.s.pairs, BYTES_STRIP) * BYTES_STRIP;
    for (int64_t r = 0; r < x.rows; r += chunk) {
        p.s.out.row0 = r;
        bytes_pack_rows(&p, tensor_rows(x, r, least(chunk, x.rows - r)));
        spread_chunk(&p.s.out, BYTES_STRIP, QUANTIZED_PANELS, bytes_vector_range, bytes_product_range, &p);
    }
}

#endif

/* ---- any matrix ---------------------------------------------------------------------------------------- */

static void any_linear(struct backend *b, struct tensor y, struct tensor x, const struct weight *w,
                       struct tensor bias, enum epilogue epi, enum accumulate mode)
{
    if (x.cols != w->cols || y.cols != w->rows || x.rows != y.rows)
        bug("linear %lldx%lld with a matrix %lldx%lld into %lldx%lld", (long long)x.rows, (long long)x.cols,
            (long long)w->rows, (long long)w->cols, (long long)y.rows, (long long)y.cols);
    if (w->format == QUANT_NONE)
        fast_linear(b, y, x, w, bias, epi, mode);
#ifdef DOT_BYTES
    else if (in_words(w->format) && x.dtype == DT_BF16 && x.cols <= BYTES_MAX)
        bytes_linear(b, y, x, w, bias, epi, mode);
#endif
    else
        quantized_linear(b, y, x, w, bias, epi, mode);
}

#endif
