/* blocks.cuh - elements of weights of any format, for products without tensor cores; and the layout of
 * formats with a record for each block: GGUF's, fp8 in blocks and GPTQ (ops/quant.h).
 *
 * A row has its codes in the order of blocks_put with adjacent words; codes of eight bits are in order. Rows
 * of codes are padded to 16 bytes. They are followed by the rows of records and, for GPTQ, by the order of
 * the columns (ops/work.h: work_blocks). */
#pragma once

#include "quant_formats.cuh"

#define BLOCK_FUNCTION __host__ __device__ __forceinline__
#define BLOCK_HALF     half_number
/* Returns an f16 that is finite as f32. */
BLOCK_FUNCTION float half_number(uint16_t h)
{
    union {
        uint32_t bits;
        float f;
    } v = {(uint32_t)(h & 0x7fff) << 13};
    return h & 0x8000 ? -v.f * 0x1p112f : v.f * 0x1p112f;
}
#include "ops/block_scale.h"

enum { RUN = 8 /* adjacent codes that a thread takes at once: those of a word of low halves */ };

static inline bool has_records(const struct weight *w)
{
    return w->format >= QUANT_F8_BLOCKS;
}

/* Sizes of a format with records. Powers of two are given by their exponents. */
struct block_shape {
    int bits, words;              /* of a code; of a record, in 16-bit words */
    int span, group, unit;        /* exponents: codes of a record, of a group, of a unit of blocks_put */
    int subtracted;               /* from each code */
    int64_t per_row;              /* 16-bit words of the records of a row */
    int64_t records_at, order_at; /* offsets in bytes; order_at 0: columns are in order */
};
struct block_shape block_shape_of(enum quant_format format, int64_t rows, int64_t cols);

/* A weight of any format. */
struct any_matrix {
    int format;
    bool full; /* f32 */
    const void *at;
    int64_t rows, cols, stride; /* stride: with records, bytes of a row of codes */
    const float *scales;
    struct block_shape b;

    /* Returns an element of a format without records. */
    __device__ __forceinline__ float value_at(int64_t n, int64_t k) const
    {
        if (format == QUANT_NONE)
            return full ? static_cast<const float *>(at)[n * stride + k]
                        : number(static_cast<const bf16 *>(at)[n * stride + k]);
        int span = format_span(format);
        code_place p = place_of(format, (int)(n % TILE), (int)(k % span));
        const uint8_t *block =
            static_cast<const uint8_t *>(at) + block_at(format, stride, n / TILE, (int)(n % TILE), k / span);
        unsigned v = is_packed4(format) ? block[p.code / 2] >> 4 * (p.code % 2) & 15u : block[p.code];
        unsigned pair;
        WITH_FORMAT(F, format, pair = pair_of<F>(v));
        float group = format == QUANT_I4   ? number(*reinterpret_cast<const bf16 *>(block + p.scale))
                      : format == QUANT_F4 ? e4m3(block[p.scale])
                                           : 1.0f;
        return __uint_as_float(pair << 16) * group;
    }

    /* Returns RUN codes of a row from k on, which is a multiple of RUN, without their sign. */
    __device__ __forceinline__ void codes_at(int out[RUN], const unsigned *row, int k) const
    {
        int more = b.bits - 4, words = more ? (1 << b.unit >> 3) + 1 : 1,
            run = (k & ((1 << b.unit) - 1)) / RUN;
        const unsigned *unit = row + (int64_t)(k >> b.unit) * words;
        unsigned low = unit[run], high = more ? unit[words - 1] >> 2 * run * more : 0;
#pragma unroll
        for (int i = 0; i < RUN; i++)
            out[i] = (int)((low >> (8 * (i % 4) + 4 * (i / 4)) & 15) |
                           (high >> (8 * (i % 4) + i / 4 * more) & ((1u << more) - 1)) << 4);
    }

    __device__ __forceinline__ void run_with_record(float out[RUN], int64_t n, int k) const
    {
        const char *bytes = static_cast<const char *>(at);
        const unsigned *row = reinterpret_cast<const unsigned *>(bytes + n * stride);
        const uint16_t *record = reinterpret_cast<const uint16_t *>(bytes + b.records_at) + n * b.per_row +
                                 (k >> b.span) * b.words;
        if (b.bits == 8) {
            const uint2 word = *reinterpret_cast<const uint2 *>(row + k / 4);
            bool floats = format == QUANT_F8_BLOCKS;
            float scale =
                floats ? __uint_as_float((unsigned)record[0] << 16 | record[1]) : half_number(record[0]);
#pragma unroll
            for (int i = 0; i < RUN; i++) {
                unsigned code = (i < 4 ? word.x : word.y) >> 8 * (i % 4) & 255;
                out[i] = (floats ? e4m3(code) : (float)(int8_t)code) * scale;
            }
            return;
        }
        struct blocks_scale s = block_scale(format, record, (k & ((1 << b.span) - 1)) >> b.group);
        int code[RUN];
        codes_at(code, row, k);
#pragma unroll
        for (int i = 0; i < RUN; i++)
            out[i] = (float)(code[i] - b.subtracted) * s.scale - s.low;
    }

    /* Returns RUN elements of a row from k on, a multiple of RUN, without the row's scale; zeros after the
     * last column. */
    __device__ __forceinline__ void run(float out[RUN], int64_t n, int64_t k) const
    {
        if (format >= QUANT_F8_BLOCKS)
            return run_with_record(out, n, (int)k);
#pragma unroll
        for (int i = 0; i < RUN; i++)
            out[i] = k + i < cols ? value_at(n, k + i) : 0.0f;
    }

    /* Adds the products of a run with the same columns of a row of x. */
    template <class X> __device__ __forceinline__ float dot(const float v[RUN], const X *x, int64_t k) const
    {
        float each[RUN], sum = 0;
        const int *order = reinterpret_cast<const int *>(static_cast<const char *>(at) + b.order_at);
        if (b.order_at || k + RUN > cols)
            for (int i = 0; i < RUN; i++)
                each[i] = k + i < cols ? number(x[b.order_at ? order[k + i] : k + i]) : 0.0f;
        else
            load8_any(each, x + k);
#pragma unroll
        for (int i = 0; i < RUN; i++)
            sum = fmaf(each[i], v[i], sum);
        return sum;
    }

    __device__ __forceinline__ float scale(int64_t n) const
    {
        return scales ? scales[n] : 1.0f;
    }
};

static inline any_matrix any_matrix_of(const struct weight *w)
{
    const void *at = w->format == QUANT_NONE ? w->plain.data : w->bytes;
    bool full = w->format == QUANT_NONE && w->plain.dtype == DT_F32;
    return any_matrix{
        w->format, full,
        at,        w->rows,
        w->cols,   w->stride,
        w->scales, has_records(w) ? block_shape_of(w->format, w->rows, w->cols) : block_shape{}};
}
