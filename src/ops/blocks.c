/* blocks.c - layouts of GGUF quantization blocks, and their conversion to kernel order (quant.h).
 *
 *     Q8_0  d f16, 32 codes i8
 *     Q4_K  d f16, m f16, 8 scales and 8 minima of six bits in 12 bytes, 128 bytes of codes
 *     Q5_K  as Q4_K, with 32 bytes of fifth bits before the codes
 *     Q4_1  d f16, m f16, 16 bytes of codes
 *     Q5_1  d f16, m f16, 4 bytes of fifth bits, 16 bytes of codes
 *     Q6_K  128 bytes of low halves, 64 of the upper two bits, 16 scales i8, d f16
 *
 * In Q4_1 and Q5_1 m is added, so their records store -m. Two formats with groups of 16 do not exist in
 * files; quant.c fills their records: d, and with 4 bits the minimum, as f16. GPTQ groups, whose parts are
 * stored separately in the file (gptq.c), have the same kind of record. */
#include "ops/block_scale.h"

#include <string.h>

static const struct blocks {
    int64_t span;  /* values per block */
    int64_t bytes; /* bytes per block in the file */
    int64_t bits;  /* bits per code in memory */
    int words;     /* 16-bit words per record */
    int64_t group; /* values that share a scale */
} shapes[QUANT_FORMATS] = {
    [QUANT_Q8_0] = {32, 34, 8, 1, 32},
    [QUANT_Q4_K] = {256, 144, 4, 10, 32},
    [QUANT_Q5_K] = {256, 176, 5, 10, 32},
    [QUANT_Q6_K] = {256, 210, 6, 9, 16},
    [QUANT_Q4_1] = {32, 20, 4, 2, 32},
    [QUANT_Q5_1] = {32, 24, 5, 2, 32},
    [QUANT_Q4_16] = {16, 12, 4, 2, 16},
    [QUANT_Q8_16] = {16, 18, 8, 1, 16},
    [QUANT_GPTQ] = {QUANT_GPTQ_GROUP, QUANT_GPTQ_GROUP / 2 + 4, 4, 2, QUANT_GPTQ_GROUP},
};

int64_t blocks_span(enum quant_format format)
{
    return shapes[format].span;
}

int64_t blocks_stored(enum quant_format format, int64_t cols)
{
    return cols / shapes[format].span * shapes[format].bytes;
}

int64_t blocks_bits(enum quant_format format)
{
    return shapes[format].bits;
}

int64_t blocks_lines(enum quant_format format, int64_t cols)
{
    return cols * shapes[format].bits / 8;
}

int64_t blocks_words(enum quant_format format)
{
    return shapes[format].words;
}

int64_t blocks_group(enum quant_format format)
{
    return shapes[format].group;
}

/* ---- reading a block ----------------------------------------------------------------------------------- */

/* Reads the six-bit scale and minimum of group i of 8: the first four are in the low bits of bytes 0..7,
 * the others in halves of bytes 8..11 and the upper bits of bytes 0..7. */
static void read_six(const uint8_t *s, int i, uint8_t out[2])
{
    if (i < 4) {
        out[0] = s[i] & 63;
        out[1] = s[i + 4] & 63;
    } else {
        out[0] = (uint8_t)((s[i + 4] & 15) | s[i - 4] >> 6 << 4);
        out[1] = (uint8_t)(s[i + 4] >> 4 | s[i] >> 6 << 4);
    }
}

/* Reads a block of Q4_K (high NULL) or Q5_K. */
static void take_fours(const uint8_t *block, const uint8_t *high, const uint8_t *low, uint8_t *codes,
                       uint16_t *record)
{
    uint8_t pairs[2][8];
    memcpy(record, block, 4);
    for (int i = 0; i < 8; i++) {
        uint8_t six[2];
        read_six(block + 4, i, six);
        pairs[0][i] = six[0];
        pairs[1][i] = six[1];
    }
    memcpy(record + 2, pairs, sizeof pairs);
    for (int k = 0; k < 256; k++) {
        int group = k / 32, at = k % 32, code = low[group / 2 * 32 + at] >> group % 2 * 4 & 15;
        codes[k] = (uint8_t)(code | (high ? (high[at] >> group & 1) << 4 : 0));
    }
}

static void take_six(const uint8_t *block, uint8_t *codes, uint16_t *record)
{
    const uint8_t *high = block + 128;
    memcpy(record, block + 208, 2);
    memcpy(record + 1, block + 192, 16);
    for (int k = 0; k < 256; k++) {
        int half = k / 128, quarter = k / 32 % 4, at = k % 32;
        int low = block[half * 64 + quarter % 2 * 32 + at] >> quarter / 2 * 4 & 15;
        codes[k] = (uint8_t)(low | (high[half * 32 + at] >> quarter * 2 & 3) << 4);
    }
}

/* Reads a block of Q4_1 (high NULL) or Q5_1. */
static void take_ones(const uint8_t *block, const uint8_t *high, const uint8_t *low, uint8_t *codes,
                      uint16_t *record)
{
    memcpy(record, block, 4);
    record[1] ^= 0x8000;
    for (int k = 0; k < 32; k++) {
        int code = low[k % 16] >> k / 16 * 4 & 15;
        codes[k] = (uint8_t)(code | (high ? (high[k / 8] >> k % 8 & 1) << 4 : 0));
    }
}

void blocks_take(enum quant_format format, const uint8_t *block, uint8_t *codes, uint16_t *record)
{
    switch (format) {
    case QUANT_Q8_0:
        memcpy(record, block, 2);
        memcpy(codes, block + 2, 32);
        break;
    case QUANT_Q4_K:
        take_fours(block, NULL, block + 16, codes, record);
        break;
    case QUANT_Q5_K:
        take_fours(block, block + 16, block + 48, codes, record);
        break;
    case QUANT_Q4_1:
        take_ones(block, NULL, block + 4, codes, record);
        break;
    case QUANT_Q5_1:
        take_ones(block, block + 4, block + 8, codes, record);
        break;
    default:
        take_six(block, codes, record);
    }
}

struct blocks_scale blocks_scale(enum quant_format format, const uint16_t *record, int64_t group)
{
    return block_scale((int)format, record, (int)group);
}

int blocks_offset(enum quant_format format)
{
    return format == QUANT_Q6_K ? 32 : 0;
}

float blocks_value(enum quant_format format, int code, const uint16_t *record, int64_t k)
{
    struct blocks_scale s = blocks_scale(format, record, k / shapes[format].group);
    int number = shapes[format].bits == 8 ? (int8_t)code : code - blocks_offset(format);
    return (float)number * s.scale - s.low;
}

void blocks_row(enum quant_format format, const uint8_t *row, int64_t cols, float *out)
{
    const struct blocks *b = &shapes[format];
    uint8_t codes[256];
    uint16_t record[10];
    for (int64_t first = 0; first < cols; first += b->span, row += b->bytes) {
        blocks_take(format, row, codes, record);
        for (int64_t g = 0; g < b->span / b->group; g++) {
            struct blocks_scale s = blocks_scale(format, record, g);
            for (int64_t k = g * b->group; k < (g + 1) * b->group; k++) {
                int number = b->bits == 8 ? (int8_t)codes[k] : codes[k] - blocks_offset(format);
                out[first + k] = (float)number * s.scale - s.low;
            }
        }
    }
}

/* ---- kernel order -------------------------------------------------------------------------------------- */

/* Stores codes in units: the words of low halves of a unit's codes, then one word of the bits above them. */
void blocks_put(enum quant_format format, const uint8_t *codes, int64_t cols, uint8_t *to, int64_t step)
{
    const int high = (int)shapes[format].bits - 4,
              unit = high > 0 ? 32 / high : 8; /* bits above the low half */
    const int64_t words = unit / 8 + (high > 0);
    if (shapes[format].bits == 8) {
        for (int64_t k = 0; k < cols; k++)
            to[(k >> 2) * step + (k & 3)] = codes[k] ^ 0x80;
        return;
    }
    for (int64_t of = 0; of < cols; of += unit, codes += unit, to += words * step)
        for (int k = 0; k < unit; k++) {
            to[(k >> 3) * step + (k & 3)] |= (uint8_t)((codes[k] & 15) << (k & 4));
            if (high)
                to[(words - 1) * step + (k & 3)] |= (uint8_t)(codes[k] >> 4 << (k >> 2) * high);
        }
}
