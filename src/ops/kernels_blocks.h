/* kernels_blocks.h - vectors of codes and scales of GGUF blocks (quant.h).
 *
 * A panel stores the codes in words, ordered by blocks_put() on every instruction set, and NR 16-bit words
 * for each word of a record. With byte dot products the codes are multiplied directly, with a separate sum
 * per group (kernels_bytes.h); otherwise they are converted to f32 in cache-sized parts. */
#pragma once

#include "ops/kernels_core.h"
#include "ops/quant.h"

/* Returns the bits of a code. This function and those below are compile-time constants per format, for code
 * that is instantiated once per format. */
ALWAYS_INLINE int block_bits(const enum quant_format format)
{
    return format == QUANT_Q8_0 || format == QUANT_Q8_16  ? 8
           : format == QUANT_Q6_K                         ? 6
           : format == QUANT_Q5_K || format == QUANT_Q5_1 ? 5
                                                          : 4;
}

ALWAYS_INLINE bool blocks_few_bits(const enum quant_format format) /* the codes have fewer than 8 bits: four
                                                                    * low bits, and for some formats higher
                                                                    * ones */
{
    return format >= QUANT_Q8_0 && block_bits(format) < 8;
}

ALWAYS_INLINE bool has_minima(const enum quant_format format)
{
    return format >= QUANT_Q8_0 && block_bits(format) < 6;
}

ALWAYS_INLINE int bits_above(const enum quant_format format)
{
    return block_bits(format) - 4;
}

/* Return the words of four codes in a group, and the words of the panel that hold them. */
ALWAYS_INLINE int group_fours(const enum quant_format format)
{
    return format == QUANT_GPTQ                                                     ? QUANT_GPTQ_GROUP / 4
           : format == QUANT_Q6_K || format == QUANT_Q4_16 || format == QUANT_Q8_16 ? 4
                                                                                    : 8;
}

ALWAYS_INLINE int group_stored(const enum quant_format format)
{
    return group_fours(format) * block_bits(format) / 8;
}

/* Return the groups of a block, and the words of its record. */
ALWAYS_INLINE int block_groups(const enum quant_format format)
{
    return format == QUANT_Q6_K ? 16 : format == QUANT_Q4_K || format == QUANT_Q5_K ? 8 : 1;
}

ALWAYS_INLINE int block_record(const enum quant_format format)
{
    return format == QUANT_Q6_K                            ? 9
           : format == QUANT_Q4_K || format == QUANT_Q5_K  ? 10
           : format == QUANT_Q8_0 || format == QUANT_Q8_16 ? 1
                                                           : 2;
}

/* Unpacks words 2 i and 2 i + 1 of a group whose words are at w, NR columns apart; 8-bit codes are stored
 * + 128. */
ALWAYS_INLINE void group_pair(const char *w, int i, uvec out[2], const enum quant_format format)
{
    if (!blocks_few_bits(format)) {
        out[0] = *(const uvec_at *)(w + 2 * i * NR * WORD);
        out[1] = *(const uvec_at *)(w + (2 * i + 1) * NR * WORD);
        return;
    }
    uvec u = *(const uvec_at *)(w + i * NR * WORD);
    out[0] = u & 0x0f0f0f0fu;
    out[1] = u >> 4 & 0x0f0f0f0fu;
    if (bits_above(format)) {
        const int bits = bits_above(format);
        const uint32_t mask = bits == 1 ? 0x01010101u : 0x03030303u;
        uvec above = *(const uvec_at *)(w + (group_stored(format) - 1) * NR * WORD);
        out[0] |= (above >> (uint32_t)(2 * i * bits) & mask) << 4;
        out[1] |= (above >> (uint32_t)((2 * i + 1) * bits) & mask) << 4;
    }
}

/* Scales and minima of VL columns for one group. */
struct group_scales {
    vec scale, low;
};

ALWAYS_INLINE vec record_byte(const uint16_t *word, int g)
{
    uvec u = __builtin_convertvector(*(const hvec_at *)word, uvec);
    u = u >> (uint32_t)(g % 2 * 8) & 255;
    return __builtin_convertvector((ivec)u, vec);
}

ALWAYS_INLINE vec record_half(const uint16_t *word)
{
    return VEC_WIDEN_F16(*(const hvec_at *)word);
}

/* Returns the f16 numbers at the start of a record: scale of the block and scale of its minima. */
ALWAYS_INLINE struct group_scales record_scales(const uint16_t *record, const enum quant_format format)
{
    struct group_scales s = {record_half(record), {0}};
    if (has_minima(format) && format != QUANT_GPTQ)
        s.low = record_half(record + NR);
    return s;
}

/* Returns the scales of group g of a block with scales `of`. */
ALWAYS_INLINE struct group_scales block_group_scales(struct group_scales of, const uint16_t *record, int g,
                                                     const enum quant_format format)
{
    if (format == QUANT_GPTQ) {
        uvec zero = __builtin_convertvector(*(const hvec_at *)(record + NR), uvec);
        of.low = of.scale * __builtin_convertvector((ivec)zero, vec);
    } else if (has_minima(format) && block_groups(format) > 1) {
        of.low *= record_byte(record + (6 + g / 2) * NR, g);
        of.scale *= record_byte(record + (2 + g / 2) * NR, g);
    } else if (format == QUANT_Q6_K) { /* signed */
        vec b = record_byte(record + (1 + g / 2) * NR, g);
        of.scale *= b - (vec)((uvec)(b > 127.5f) & (uvec)splat(256));
    }
    return of;
}

ALWAYS_INLINE struct group_scales group_scales(const uint16_t *record, int g, const enum quant_format format)
{
    return block_group_scales(record_scales(record, format), record, g, format);
}

/* Converts VL columns of a group to f32, [values of the group][NR] starting at `out`. */
ALWAYS_INLINE void group_values(const char *w, const uint16_t *record, int g, float *out,
                                const enum quant_format format)
{
    const float offset = block_bits(format) == 8 ? 128 : format == QUANT_Q6_K ? 32 : 0;
    struct group_scales s = group_scales(record, g, format);
    for (int i = 0; i < group_fours(format) / 2; i++) {
        uvec pair[2];
        group_pair(w, i, pair, format);
        for (int k = 0; k < 8; k++, out += NR) {
            ivec code = (ivec)(pair[k / 4] >> (uint32_t)(k % 4 * 8) & 255);
            *(vec_at *)out = (__builtin_convertvector(code, vec) - splat(offset)) * s.scale - s.low;
        }
    }
}

#define CASE_FORMAT(format, what)                                                                            \
    case format:                                                                                             \
        what(format);                                                                                        \
        break;

/* Instantiates `what` for each block format. */
#define EACH_BLOCKS(format, what)                                                                            \
    switch (format) {                                                                                        \
        CASE_FORMAT(QUANT_Q8_0, what)                                                                        \
        CASE_FORMAT(QUANT_Q4_K, what)                                                                        \
        CASE_FORMAT(QUANT_Q5_K, what)                                                                        \
        CASE_FORMAT(QUANT_Q4_1, what)                                                                        \
        CASE_FORMAT(QUANT_Q5_1, what)                                                                        \
        CASE_FORMAT(QUANT_Q4_16, what)                                                                       \
        CASE_FORMAT(QUANT_Q8_16, what)                                                                       \
        CASE_FORMAT(QUANT_GPTQ, what)                                                                        \
    default:                                                                                                 \
        what(QUANT_Q6_K);                                                                                    \
    }

/* Converts values [k, k + n) of a panel (whole blocks) to f32 [n][NR]. lines, records: of the panel. */
ALWAYS_INLINE void blocks_unpack_any(const char *lines, const uint16_t *records, int64_t k, int64_t n,
                                     float *out, const enum quant_format format)
{
    const int64_t group = 4 * group_fours(format), per = block_groups(format);
    for (int64_t g = k / group; g < (k + n) / group; g++, out += group * NR)
        for (int j = 0; j < NR; j += VL)
            group_values(lines + (g * group_stored(format) * NR + j) * WORD,
                         records + g / per * block_record(format) * NR + j, (int)(g % per), out + j, format);
}

OWN_FUNCTION void blocks_unpack(enum quant_format format, const char *lines, const uint16_t *records,
                                int64_t k, int64_t n, float *out)
{
#define RUN(format) blocks_unpack_any(lines, records, k, n, out, format)
    EACH_BLOCKS(format, RUN)
#undef RUN
}
