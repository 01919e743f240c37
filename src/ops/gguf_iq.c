/* gguf_iq.c - dequantizes the IQ formats of GGUF with a grid: blocks of 256 values, 8 or 4 values per grid
 * row.
 *
 *     IQ2_XXS  d f16; for 32 numbers 4 rows u8, then u32: 4 signs of 7 bits, a scale of 4
 *     IQ2_XS   d f16; 32 u16: a row of 9 bits, signs of 7; 16 scales of 4 bits
 *     IQ2_S    d f16; 32 rows u8, 32 signs u8, bits 8 and 9 of rows, 16 scales of 4 bits
 *     IQ3_XXS  d f16; 64 rows u8; for 32 numbers u32 as in IQ2_XXS
 *     IQ3_S    d f16; 64 rows u8, their bits 8, 32 signs u8, 8 scales of 4 bits
 *     IQ1_S    d f16; 32 rows u8; for 32 numbers u16: bits 8 to 10 of 4 rows, a scale of 3 bits, a sign
 *     IQ1_M    32 rows u8; for 8 numbers 4 bits: bits 8 to 10 of the row, a sign; 16 scales of 3 bits and d
 *
 * Eight signs are stored in 7 bits; the last one makes the number of minus signs even. */
#include "base/embed.h"
#include "ops/gguf_rows.h"

#include <string.h>

/* Grids, written by tests/reference/make_gguf_grids.py. A word of 16 bits holds a grid row: 8 indices of 2
 * bits, or 4 indices of 4 bits. */
EMBED(gguf_grids, "src/ops/gguf_grids.bin");

/* First row of each grid. */
enum { IQ2_XXS = 0, IQ2_XS = 256, IQ2_S = 768, IQ3_XXS = 1792, IQ3_S = 2048, IQ1 = 2560 };

static unsigned word_at(const uint8_t *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

static uint32_t long_at(const uint8_t *p)
{
    return word_at(p) | (uint32_t)word_at(p + 2) << 16;
}

static unsigned grid_row(unsigned row)
{
    return word_at((const uint8_t *)gguf_grids + 2 * (size_t)row);
}

static uint8_t even_signs(unsigned seven)
{
    return (uint8_t)(seven | (unsigned)(__builtin_popcount(seven) & 1) << 7);
}

/* Returns element i of a list of 4-bit values. */
static int four_bits(const uint8_t *list, int i)
{
    return list[i / 2] >> i % 2 * 4 & 15;
}

static void put_eight(float *out, unsigned row, uint8_t signs, float d)
{
    static const float size[4] = {8, 25, 43, 0};
    for (int i = 0; i < 8; i++) {
        float v = d * size[row >> 2 * i & 3];
        out[i] = signs >> i & 1 ? -v : v;
    }
}

static void put_four(float *out, unsigned row, unsigned signs, float d, const float *size)
{
    for (int i = 0; i < 4; i++) {
        float v = d * size[row >> 4 * i & 15];
        out[i] = signs >> i & 1 ? -v : v;
    }
}

static void put_ones(float *out, unsigned row, float d, float off)
{
    for (int i = 0; i < 8; i++)
        out[i] = d * ((float)(int)(row >> 2 * i & 3) - 1 + off);
}

float gguf_iq_base(const uint8_t *b)
{
    uint16_t h = 0;
    for (int i = 0; i < 4; i++)
        h |= (uint16_t)(word_at(b + 48 + 2 * (ptrdiff_t)i) >> 12 << 4 * i);
    return f16_to_f32(h);
}

float gguf_iq_scale(uint32_t type, const uint8_t *b, int g)
{
    float d = gguf_half(b);
    switch (type) {
    case GGML_IQ2_XXS:
        return d * (0.5f + (float)(long_at(b + 6 + g / 2 * 8) >> 28)) * 0.25f;
    case GGML_IQ2_XS:
        return d * (0.5f + (float)four_bits(b + 66, g)) * 0.25f;
    case GGML_IQ2_S:
        return d * (0.5f + (float)four_bits(b + 74, g)) * 0.25f;
    case GGML_IQ3_XXS:
        return d * (0.5f + (float)(long_at(b + 66 + g / 2 * 4) >> 28)) * 0.5f;
    case GGML_IQ3_S:
        return d * (float)(1 + 2 * four_bits(b + 106, g / 2));
    case GGML_IQ1_S:
        return d * (float)(2 * (word_at(b + 34 + g / 2 * 2) >> 12 & 7) + 1);
    default:
        return gguf_iq_base(b) * (float)(2 * (word_at(b + 48 + g / 4 * 2) >> g % 4 * 3 & 7) + 1);
    }
}

/* Dequantizes row j of 8 values. */
static void take_row(uint32_t type, const uint8_t *b, int j, float *out)
{
    const uint8_t *at = b + 2 + j / 4 * 8;
    float d = gguf_iq_scale(type, b, j / 2);
    unsigned word, row = b[2 + j];
    switch (type) {
    case GGML_IQ2_XXS:
        put_eight(out, grid_row(IQ2_XXS + at[j % 4]), even_signs(long_at(at + 4) >> j % 4 * 7 & 127), d);
        break;
    case GGML_IQ2_XS:
        word = word_at(b + 2 + 2 * (ptrdiff_t)j);
        put_eight(out, grid_row(IQ2_XS + (word & 511)), even_signs(word >> 9), d);
        break;
    case GGML_IQ2_S:
        row |= (unsigned)(b[66 + j / 4] >> j % 4 * 2 & 3) << 8;
        put_eight(out, grid_row(IQ2_S + row), b[34 + j], d);
        break;
    case GGML_IQ1_S:
        word = word_at(b + 34 + j / 4 * 2);
        put_ones(out, grid_row(IQ1 + (row | (word >> j % 4 * 3 & 7) << 8)), d, word >> 15 ? -0.125f : 0.125f);
        break;
    default:
        word = (unsigned)four_bits(b + 32, j);
        put_ones(out, grid_row(IQ1 + (b[j] | (word & 7) << 8)), d, word & 8 ? -0.125f : 0.125f);
    }
}

/* Dequantizes two rows of 4 values, starting with row 2 j. */
static void take_pair(uint32_t type, const uint8_t *b, int j, float *out)
{
    static const float eighths[16] = {4, 12, 20, 28, 36, 44, 52, 62}, odd[16] = {1, 3, 5, 7, 9, 11, 13, 15};
    const bool small = type == GGML_IQ3_S;
    float d = gguf_iq_scale(type, b, j / 2);
    unsigned signs = small ? b[74 + j] : even_signs(long_at(b + 66 + j / 4 * 4) >> j % 4 * 7 & 127);
    for (int i = 2 * j; i < 2 * j + 2; i++, signs >>= 4, out += 4)
        if (small)
            put_four(out, grid_row(IQ3_S + (b[2 + i] | (unsigned)(b[66 + i / 8] >> i % 8 & 1) << 8)), signs,
                     d, odd);
        else
            put_four(out, grid_row(IQ3_XXS + b[2 + i]), signs, d, eighths);
}

void gguf_iq_block(uint32_t type, const uint8_t *block, float *out)
{
    const bool fours = type == GGML_IQ3_XXS || type == GGML_IQ3_S;
    for (int j = 0; j < 32; j++)
        (fours ? take_pair : take_row)(type, block, j, out + 8 * (ptrdiff_t)j);
}
