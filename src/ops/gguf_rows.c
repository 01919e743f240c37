/* gguf_rows.c - dequantizes rows of GGUF tensors (gguf_rows.h); formats with grids are in gguf_iq.c.
 *
 * Offsets are those of ggml's blocks. In most of them a byte holds the codes of values that are 16 or 32
 * apart. */
#include "ops/gguf_rows.h"

#include "ops/quant.h"

#include <math.h>
#include <string.h>

static int nibble(const uint8_t *codes, int k, int apart)
{
    return codes[k / (2 * apart) * apart + k % apart] >> (k / apart % 2 * 4) & 15;
}

/* ---- 32 numbers with one scale ------------------------------------------------------------------------- */

static const int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};
/* twice the e2m1 values */
static const int8_t e2m1_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static void take_q4(const uint8_t *b, float *out, const int8_t *values, int codes, float d)
{
    for (int k = 0; k < 32; k++)
        out[k] = d * (float)values[nibble(b + codes, k, 16)];
}

static void take_q4_0(const uint8_t *b, float *out)
{
    static const int8_t values[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    take_q4(b, out, values, 2, gguf_half(b));
}

static void take_iq4_nl(const uint8_t *b, float *out)
{
    take_q4(b, out, iq4_values, 2, gguf_half(b));
}

/* Returns 2^(e - 128), half of the scale, because the values are doubled. */
static float power_of(uint8_t e)
{
    return ldexpf(1, (int)e - 128);
}

static void take_mxfp4(const uint8_t *b, float *out)
{
    take_q4(b, out, e2m1_values, 1, power_of(*b));
}

/* Returns code k of five bits; the halves follow a word with the upper bits. */
static int five_bits(const uint8_t *high, int k)
{
    return nibble(high + 4, k, 16) | (high[k / 8] >> k % 8 & 1) << 4;
}

static void take_q5_0(const uint8_t *b, float *out)
{
    for (int k = 0; k < 32; k++)
        out[k] = gguf_half(b) * (float)(five_bits(b + 2, k) - 16);
}

static void take_q8_1(const uint8_t *b, float *out)
{
    for (int k = 0; k < 32; k++)
        out[k] = gguf_half(b) * (float)(int8_t)b[4 + k];
}

/* ---- 256 numbers --------------------------------------------------------------------------------------- */

/* Returns code k of two bits: the lowest bits of each 32 bytes are the first 32 values. */
static int two_bits(const uint8_t *codes, int k)
{
    return codes[k / 128 * 32 + k % 32] >> (k / 32 % 4 * 2) & 3;
}

static void take_q2_k(const uint8_t *b, float *out)
{
    float d = gguf_half(b + 80), m = gguf_half(b + 82);
    for (int k = 0; k < 256; k++) {
        float scale = d * (float)(b[k / 16] & 15), low = m * (float)(b[k / 16] >> 4);
        out[k] = scale * (float)two_bits(b + 16, k) - low;
    }
}

static int q3_k_scale(const uint8_t *b, int g)
{
    const uint8_t *scales = b + 96;
    int low = scales[g % 8] >> g / 8 * 4 & 15, high = scales[8 + g % 4] >> g / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

static void take_q3_k(const uint8_t *b, float *out)
{
    float d = gguf_half(b + 108);
    for (int k = 0; k < 256; k++) {
        int code = two_bits(b + 32, k) - (b[k % 32] >> k / 32 & 1 ? 0 : 4);
        out[k] = d * (float)q3_k_scale(b, k / 16) * (float)code;
    }
}

static void take_q8_k(const uint8_t *b, float *out)
{
    float d;
    memcpy(&d, b, sizeof d);
    for (int k = 0; k < 256; k++)
        out[k] = d * (float)(int8_t)b[4 + k];
}

/* Returns the scale of group g of 32 values. */
static int iq4_xs_scale(const uint8_t *b, int g)
{
    int high = b[2 + g / 4] >> g % 4 * 2 & 3;
    return ((b[4 + g / 2] >> g % 2 * 4 & 15) | high << 4) - 32;
}

static void take_iq4_xs(const uint8_t *b, float *out)
{
    for (int g = 0; g < 8; g++)
        take_q4(b + 8 + 16 * (ptrdiff_t)g, out + 32 * (ptrdiff_t)g, iq4_values, 0,
                gguf_half(b) * (float)iq4_xs_scale(b, g));
}

/* Dequantizes bytes that hold five base-3 digits as fractions of 256, in order of digits. */
static float *take_threes(const uint8_t *codes, int bytes, int digits, float d, float *out)
{
    uint8_t power = 1;
    for (int i = 0; i < digits; i++, power = (uint8_t)(power * 3), out += bytes)
        for (int k = 0; k < bytes; k++)
            out[k] = d * (float)(((uint8_t)(codes[k] * power) * 3 >> 8) - 1);
    return out;
}

static void take_tq1_0(const uint8_t *b, float *out)
{
    float d = gguf_half(b + 52);
    out = take_threes(b, 32, 5, d, out);
    out = take_threes(b + 32, 16, 5, d, out);
    take_threes(b + 48, 4, 4, d, out);
}

static void take_tq2_0(const uint8_t *b, float *out)
{
    for (int k = 0; k < 256; k++)
        out[k] = gguf_half(b + 64) * (float)(two_bits(b, k) - 1);
}

/* ---- others -------------------------------------------------------------------------------------------- */

uint8_t gguf_nvfp4_scale(const uint8_t *row, int64_t g)
{
    uint8_t u = row[g / 4 * 36 + g % 4];
    return u == 127 ? 0 : u & 127;
}

uint8_t gguf_nvfp4_code(const uint8_t *row, int64_t k)
{
    const uint8_t *codes = row + k / 64 * 36 + 4 + k / 16 % 4 * 8;
    return (uint8_t)nibble(codes, (int)(k % 16), 8);
}

static void take_nvfp4(const uint8_t *b, float *out)
{
    for (int k = 0; k < 64; k++) {
        int u = gguf_nvfp4_scale(b, k / 16);
        float d = u >> 3 ? ldexpf(1 + (float)(u & 7) / 8, (u >> 3) - 8) : ldexpf((float)u, -10);
        out[k] = d * (float)e2m1_values[gguf_nvfp4_code(b, k)];
    }
}

static void take_f64(const uint8_t *b, float *out)
{
    double d;
    memcpy(&d, b, sizeof d);
    *out = (float)d;
}

/* ---- all ----------------------------------------------------------------------------------------------- */

enum { ELSEWHERE = -1, NO_HALF = -2 };

static const struct kind {
    void (*take)(const uint8_t *block, float *out); /* NULL: in blocks.c or gguf_iq.c */
    short half, second;                             /* offsets of f16 scales; the second may be NO_HALF */
    enum quant_format kept;                         /* format in memory on a CPU */
} kinds[GGML_TYPES] = {
    [GGML_Q4_0] = {take_q4_0, 0, NO_HALF, QUANT_Q4_1},
    [GGML_Q4_1] = {NULL, 0, 2, QUANT_Q4_1},
    [GGML_Q5_0] = {take_q5_0, 0, NO_HALF, QUANT_Q5_1},
    [GGML_Q5_1] = {NULL, 0, 2, QUANT_Q5_1},
    [GGML_Q8_0] = {NULL, 0, NO_HALF, QUANT_Q8_0},
    [GGML_Q8_1] = {take_q8_1, 0, NO_HALF, QUANT_Q8_0},
    [GGML_Q2_K] = {take_q2_k, 80, 82, QUANT_Q4_16},
    [GGML_Q3_K] = {take_q3_k, 108, NO_HALF, QUANT_Q6_K},
    [GGML_Q4_K] = {NULL, 0, 2, QUANT_Q4_K},
    [GGML_Q5_K] = {NULL, 0, 2, QUANT_Q5_K},
    [GGML_Q6_K] = {NULL, 208, NO_HALF, QUANT_Q6_K},
    [GGML_Q8_K] = {take_q8_k, ELSEWHERE, NO_HALF, QUANT_Q8_0},
    [GGML_IQ2_XXS] = {NULL, 0, NO_HALF, QUANT_Q8_0},
    [GGML_IQ2_XS] = {NULL, 0, NO_HALF, QUANT_Q8_16},
    [GGML_IQ3_XXS] = {NULL, 0, NO_HALF, QUANT_Q6_K},
    [GGML_IQ1_S] = {NULL, 0, NO_HALF, QUANT_Q6_K},
    [GGML_IQ4_NL] = {take_iq4_nl, 0, NO_HALF, QUANT_Q8_0},
    [GGML_IQ3_S] = {NULL, 0, NO_HALF, QUANT_Q6_K},
    [GGML_IQ2_S] = {NULL, 0, NO_HALF, QUANT_Q8_16},
    [GGML_IQ4_XS] = {take_iq4_xs, 0, NO_HALF, QUANT_Q8_0},
    [GGML_F64] = {take_f64, ELSEWHERE, NO_HALF, QUANT_NONE},
    [GGML_IQ1_M] = {NULL, ELSEWHERE, NO_HALF, QUANT_Q6_K},
    [GGML_TQ1_0] = {take_tq1_0, 52, NO_HALF, QUANT_Q6_K},
    [GGML_TQ2_0] = {take_tq2_0, 64, NO_HALF, QUANT_Q6_K},
    [GGML_MXFP4] = {take_mxfp4, ELSEWHERE, NO_HALF, QUANT_Q8_0},
    [GGML_NVFP4] = {take_nvfp4, ELSEWHERE, NO_HALF, QUANT_F4},
};

bool gguf_is_coded(uint32_t type)
{
    return type < GGML_TYPES && kinds[type].second != 0;
}

size_t gguf_row_bytes(uint32_t type, int64_t cols)
{
    return (size_t)(cols / ggml_block(type)) * (size_t)ggml_block_bytes(type);
}

enum quant_format gguf_kept(uint32_t type)
{
    return type < GGML_TYPES ? kinds[type].kept : QUANT_NONE;
}

enum quant_format gguf_kernels(uint32_t type)
{
    bool stored = type == GGML_Q8_0 || type == GGML_Q4_1 || type == GGML_Q5_1 || type == GGML_Q4_K ||
                  type == GGML_Q5_K || type == GGML_Q6_K;
    return stored ? kinds[type].kept : QUANT_NONE;
}

uint32_t gguf_of_format(enum quant_format format)
{
    if (format == QUANT_Q4_16 || format == QUANT_Q8_16)
        return format == QUANT_Q4_16 ? GGML_Q2_K : GGML_IQ2_XS;
    for (uint32_t type = 1; format && type < GGML_TYPES; type++)
        if (gguf_kernels(type) == format)
            return type;
    return 0;
}

void gguf_row(uint32_t type, const uint8_t *row, int64_t cols, float *out)
{
    const struct kind *kind = &kinds[type];
    int span = ggml_block(type), bytes = ggml_block_bytes(type);
    if (gguf_kernels(type)) {
        blocks_row(gguf_kernels(type), row, cols, out);
        return;
    }
    for (; cols > 0; cols -= span, row += bytes, out += span)
        if (kind->take)
            kind->take(row, out);
        else
            gguf_iq_block(type, row, out);
}

bool gguf_finite(uint32_t type, const uint8_t *block)
{
    const struct kind *kind = &kinds[type];
    float numbers[256] = {0};
    bool finite = true;
    if (kind->half >= 0)
        return isfinite(gguf_half(block + kind->half)) &&
               (kind->second < 0 || isfinite(gguf_half(block + kind->second)));
    gguf_row(type, block, ggml_block(type), numbers);
    for (int k = 0; k < ggml_block(type); k++)
        finite = finite && isfinite(numbers[k]);
    return finite;
}

struct blocks_scale gguf_group(uint32_t type, const uint8_t *row, int64_t k)
{
    const uint8_t *b = row + gguf_row_bytes(type, k / ggml_block(type) * ggml_block(type));
    int g = (int)(k % ggml_block(type) / 16);
    float d = kinds[type].half >= 0 ? gguf_half(b + kinds[type].half) : 0;
    switch (type) {
    case GGML_Q4_0:
        return (struct blocks_scale){d, 8 * d};
    case GGML_Q5_0:
        return (struct blocks_scale){d, 16 * d};
    case GGML_Q2_K:
        return (struct blocks_scale){d * (float)(b[g] & 15), gguf_half(b + 82) * (float)(b[g] >> 4)};
    case GGML_Q3_K:
        return (struct blocks_scale){d * (float)q3_k_scale(b, g), 0};
    case GGML_Q8_K:
        memcpy(&d, b, sizeof d);
        return (struct blocks_scale){d, 0};
    case GGML_MXFP4:
        return (struct blocks_scale){power_of(*b), 0};
    case GGML_Q8_1:
    case GGML_IQ4_NL:
    case GGML_TQ1_0:
    case GGML_TQ2_0:
        return (struct blocks_scale){d, 0};
    case GGML_IQ4_XS:
        return (struct blocks_scale){d * (float)iq4_xs_scale(b, g / 2), 0};
    case GGML_IQ3_XXS: /* grid values are even */
        return (struct blocks_scale){2 * gguf_iq_scale(type, b, g), 0};
    case GGML_IQ1_S:
    case GGML_IQ1_M: /* grid values are multiples of 1/8 */
        return (struct blocks_scale){gguf_iq_scale(type, b, g) / 8, 0};
    default:
        return (struct blocks_scale){gguf_iq_scale(type, b, g), 0};
    }
}

float gguf_base(uint32_t type, const uint8_t *row, int64_t k)
{
    const uint8_t *b = row + gguf_row_bytes(type, k);
    if (type == GGML_IQ1_M)
        return gguf_iq_base(b) / 8;
    float d = gguf_half(b + kinds[type].half);
    return type == GGML_IQ3_XXS ? d / 2 : type == GGML_IQ1_S ? d / 8 : d;
}
