/* quant.c - quantizes matrices and reads stored quantized ones (quant.h). */
#include "ops/quant.h"
#include "ops/f8.h"
#include "ops/gguf_rows.h"

#include <math.h>
#include <string.h>

const char *quant_name(enum quant_format format)
{
    static const char *const names[QUANT_FORMATS] = {
        "",     "i8",   "i4",   "f8",   "f4",   "f8 in blocks",  "Q8_0",
        "Q4_K", "Q5_K", "Q6_K", "Q4_1", "Q5_1", "4 bits in 16s", "8 bits in 16s",
        "GPTQ"};
    return names[format];
}

/* Returns whether two codes share a byte, the even k in the low half. */
static bool is_packed4(enum quant_format format)
{
    return format == QUANT_I4 || format == QUANT_F4;
}

int64_t quant_group(enum quant_format format)
{
    static const int64_t groups[QUANT_FORMATS] = {
        [QUANT_I4] = QUANT_I4_GROUP, [QUANT_F4] = QUANT_F4_GROUP, [QUANT_F8_BLOCKS] = QUANT_F8_BLOCK};
    return quant_is_blocks(format) ? blocks_span(format) : groups[format];
}

int64_t quant_groups(enum quant_format format, int64_t cols)
{
    int64_t g = quant_group(format);
    int64_t words = quant_is_blocks(format) ? blocks_words(format) : format == QUANT_F8_BLOCKS ? 2 : 1;
    return g ? (cols + g - 1) / g * words : 0;
}

double quant_size(enum quant_format format, int64_t rows, int64_t cols)
{
    if (quant_is_blocks(format))
        return (double)rows * (double)blocks_stored(format, cols);
    double code = is_packed4(format) ? 0.5 : 1, groups = (double)quant_groups(format, cols);
    return (double)rows * ((double)cols * code + groups * sizeof(uint16_t) + sizeof(float));
}

static float e2m1(int code)
{
    static const float size[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    return code & 8 ? -size[code & 7] : size[code & 7];
}

float quant_value(enum quant_format format, int code)
{
    switch (format) {
    case QUANT_I8:
        return (float)(int8_t)code;
    case QUANT_I4:
        return (float)((code & 15) - (code & 8) * 2);
    case QUANT_F8:
    case QUANT_F8_BLOCKS:
        return f8e4m3_to_f32((uint8_t)code);
    case QUANT_F4:
        return e2m1(code);
    default:
        bug("no codes of format %d", (int)format);
    }
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static const uint8_t *stored_row(const struct quant_source *s, int64_t n)
{
    return (const uint8_t *)s->stored.data + (size_t)(n * s->stored.stride) * dtype_size(s->stored.dtype);
}

static int stored_nibble(const uint8_t *row, int64_t k)
{
    return row[k / 2] >> (k % 2 ? 4 : 0) & 15;
}

static float f8_scale(const struct quant_source *s, int64_t n)
{
    return s->scales ? s->scales[n] : s->scale;
}

/* Returns the scales of the blocks that row n crosses. */
static const float *block_scales(const struct quant_source *s, int64_t n)
{
    return s->blocks + n / QUANT_F8_BLOCK * ((s->cols + QUANT_F8_BLOCK - 1) / QUANT_F8_BLOCK);
}

static void read_f8_blocks(const struct quant_source *s, int64_t n, float *out)
{
    const uint8_t *row = stored_row(s, n);
    for (int64_t k = 0; k < s->cols; k++)
        out[k] = f8e4m3_to_f32(row[k]) * block_scales(s, n)[k / QUANT_F8_BLOCK];
}

static void read_f8(const struct quant_source *s, int64_t n, float *out)
{
    float value[256], scale = f8_scale(s, n);
    const uint8_t *row = stored_row(s, n);
    for (int i = 0; i < 256; i++)
        value[i] = f8e4m3_to_f32((uint8_t)i) * scale;
    for (int64_t k = 0; k < s->cols; k++)
        out[k] = value[row[k]];
}

static void read_f4(const struct quant_source *s, int64_t n, float *out)
{
    const uint8_t *row = stored_row(s, n), *groups = s->groups + n * quant_groups(QUANT_F4, s->cols);
    for (int64_t k = 0; k < s->cols; k++)
        out[k] = e2m1(stored_nibble(row, k)) * f8e4m3_to_f32(groups[k / QUANT_F4_GROUP]) * s->scale;
}

void quant_source_row(const struct quant_source *s, int64_t n, float *out)
{
    const uint16_t *half = (const uint16_t *)(const void *)stored_row(s, n);
    if (s->gptq) {
        gptq_row(s, n, out);
        return;
    }
    if (s->gguf) {
        gguf_row(s->gguf, stored_row(s, n), s->cols, out);
        for (int64_t k = 0; s->gguf == GGML_NVFP4 && s->scale != 1 && k < s->cols; k++)
            out[k] *= s->scale;
        return;
    }
    switch (s->stored.dtype) {
    case DT_F32:
        memcpy(out, half, (size_t)s->cols * sizeof *out);
        break;
    case DT_BF16:
        for (int64_t k = 0; k < s->cols; k++)
            out[k] = bf16_to_f32(half[k]);
        break;
    case DT_F16:
        for (int64_t k = 0; k < s->cols; k++)
            out[k] = f16_to_f32(half[k]);
        break;
    case DT_F8E4M3:
        (s->blocks ? read_f8_blocks : read_f8)(s, n, out);
        break;
    default:
        read_f4(s, n, out);
    }
}

/* ---- quantizing ---------------------------------------------------------------------------------- */

/* Four values at a time: the same result on every machine, and a quarter of the instructions. */
typedef float four __attribute__((vector_size(16), may_alias));
typedef four four_at __attribute__((aligned(4))); /* in memory */
typedef int32_t mask __attribute__((vector_size(16)));

static inline four splat(float x)
{
    return (four){x, x, x, x};
}

static inline four choose(mask m, four a, four b)
{
    return (four)((m & (mask)a) | (~m & (mask)b));
}

/* Rounds to integers in [lo, hi], ties to even; NaN becomes lo. Adding 1.5 * 2^23 rounds. */
static inline four nearest(four x, float lo, float hi)
{
    x = choose(x > splat(lo), x, splat(lo));
    x = choose(x < splat(hi), x, splat(hi));
    return (x + splat(12582912.0f)) - splat(12582912.0f);
}

/* Rounds n values times `each` to the low `bits` of bytes. */
static void round_to(uint8_t *out, const float *x, int64_t n, float each, float lo, float hi, int bits)
{
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        four near = nearest(*(const four_at *)(x + k) * splat(each), lo, hi);
        mask v = __builtin_convertvector(near, mask) & bits;
        for (int i = 0; i < 4; i++)
            out[k + i] = (uint8_t)v[i];
    }
    for (; k < n; k++)
        out[k] = (uint8_t)((int)nearest(splat(x[k] * each), lo, hi)[0] & bits);
}

/* Returns the largest magnitude, ignoring NaN. */
static float furthest(const float *x, int64_t n)
{
    const mask size = {0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff};
    four lane = splat(0);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        four a = (four)((mask) * (const four_at *)(x + k) & size);
        lane = choose(a > lane, a, lane);
    }
    for (; k < n; k++)
        lane[0] = fabsf(x[k]) > lane[0] ? fabsf(x[k]) : lane[0];
    for (int i = 1; i < 4; i++)
        lane[0] = lane[i] > lane[0] ? lane[i] : lane[0];
    return lane[0];
}

/* Rounds n values times `each` to e4m3 as in f8.h; NaN becomes the lowest value. */
static void round_f8(uint8_t *out, const float *x, int64_t n, float each)
{
    const mask size = {0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff};
    for (int64_t k = 0; k < n; k += 4) {
        four v = {0};
        memcpy(&v, x + k, (size_t)(n - k < 4 ? n - k : 4) * sizeof *x);
        v *= splat(each);
        v = choose(v > splat(-448), v, splat(-448));
        v = choose(v < splat(448), v, splat(448));
        mask u = (mask)v & size, whole = ((u + 0x7ffff + (u >> 20 & 1)) >> 20) - (127 - 7) * 8,
             small = (mask)((four)u + splat(16384.0f)) - (mask)splat(16384.0f);
        mask code = (mask)choose(u < 0x3c800000, (four)small, (four)whole) | ((mask)v >> 24 & 0x80);
        for (int i = 0; i < 4 && k + i < n; i++)
            out[k + i] = (uint8_t)code[i];
    }
}

/* Quantizes a row to i8 or f8, with a scale that maps its largest value to the format's largest. */
static void make_row(struct quant_row *r, int64_t cols, enum quant_format format)
{
    const float top = format == QUANT_I8 ? 127 : 448;
    float most = furthest(r->room, cols), each = most > 0 ? top / most : 0;
    if (!(each < INFINITY)) /* a row of subnormal numbers, which become zero */
        each = 0;
    if (format == QUANT_I8)
        round_to(r->codes, r->room, cols, each, -127, 127, 255);
    else
        round_f8(r->codes, r->room, cols, each);
    r->scale = each > 0 ? most / top : 0;
}

/* Returns the squared error of a group quantized with this step. */
static float group_error(const float *x, float step)
{
    four lane = splat(0), each = splat(1 / step);
    for (int k = 0; k < QUANT_I4_GROUP; k += 4) {
        four v = *(const four_at *)(x + k), off = v - splat(step) * nearest(v * each, -8, 7);
        lane += off * off;
    }
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

/* Finds the step with the smallest error. The first candidate maps the value of largest magnitude to -8;
 * smaller steps clip it and are finer for the others. The step is signed, so that the side with the larger
 * magnitude gets the eighth level. */
static uint16_t best_step(const float *x)
{
    static const float divisors[] = {-8.0f, -7.4f, -8.7f, -9.4f, -10.2f};
    float far = furthest(x, QUANT_I4_GROUP), least = INFINITY;
    uint16_t best = 0;
    bool positive = false;
    for (int k = 0; k < QUANT_I4_GROUP; k++)
        positive |= x[k] == far;
    for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++) {
        uint16_t step = bf16_from_f32((positive ? far : -far) / divisors[i]);
        float error = fabsf(bf16_to_f32(step)) > 1e-37f ? group_error(x, bf16_to_f32(step)) : INFINITY;
        if (error < least) {
            least = error;
            best = step;
        }
    }
    return best;
}

/* Quantizes a row to i4. Codes of Q4_0 are kept; its scales are rounded to bf16. */
static void make_i4(struct quant_row *r, const struct quant_source *s, int64_t n)
{
    int64_t cols = s->cols;
    for (int64_t g = 0; g < quant_groups(QUANT_I4, cols); g++) {
        float x[QUANT_I4_GROUP] = {0};
        int64_t first = g * QUANT_I4_GROUP,
                some = cols - first < QUANT_I4_GROUP ? cols - first : QUANT_I4_GROUP;
        float step = s->gguf == GGML_Q4_0 ? gguf_group(s->gguf, stored_row(s, n), first).scale : 0;
        memcpy(x, r->room + first, (size_t)some * sizeof *x);
        r->groups[g] = step != 0 ? bf16_from_f32(step) : best_step(x);
        float each = step != 0 ? 1 / step : r->groups[g] ? 1 / bf16_to_f32(r->groups[g]) : 0;
        round_to(r->codes + first, x, some, each, -8, 7, 15);
    }
    r->scale = 1;
}

uint16_t quant_half(float x)
{
    uint32_t bits, sign;
    float size = fabsf(x) < 65504.0f ? fabsf(x) : 65504.0f;
    memcpy(&bits, &x, sizeof bits);
    sign = bits >> 16 & 0x8000;
    if (size < 0x1p-14f) /* a multiple of 2^-24 */
        return (uint16_t)(sign | (uint32_t)(size * 0x1p24f + 0x1p23f - 0x1p23f));
    memcpy(&bits, &size, sizeof bits);
    bits += 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | ((bits >> 13) - (112 << 10)));
}

/* Converts 256 values of a GGUF type to Q6_K, which has integer scales, too. */
static void make_six(struct quant_row *r, uint32_t type, const uint8_t *row, int64_t k)
{
    enum { GROUP = 16, SPAN = 256 };
    float base = gguf_base(type, row, k);
    uint16_t *record = r->groups + k / SPAN * blocks_words(QUANT_Q6_K);
    int8_t scales[SPAN / GROUP];
    for (int64_t g = 0; g < SPAN / GROUP; g++) {
        float scale = gguf_group(type, row, k + g * GROUP).scale, each = scale != 0 ? 1 / scale : 0;
        uint8_t *codes = r->codes + k + g * GROUP;
        round_to(codes, r->room + k + g * GROUP, GROUP, fabsf(each) < INFINITY ? each : 0, -32, 31, 255);
        for (int i = 0; i < GROUP; i++)
            codes[i] = (uint8_t)(codes[i] + blocks_offset(QUANT_Q6_K));
        scales[g] = (int8_t)(base != 0 ? lrintf(scale / base) : 0);
    }
    record[0] = quant_half(base);
    memcpy(record + 1, scales, sizeof scales);
}

/* Converts a row of a GGUF type to the format that keeps its codes unchanged, with scales in f16. */
static void make_kept(enum quant_format format, struct quant_row *r, const struct quant_source *s, int64_t n)
{
    const int64_t span = blocks_span(format), words = blocks_words(format);
    const bool eight = words == 1;
    const float lo = eight ? -128 : 0, hi = eight ? 127 : format == QUANT_Q5_1 ? 31 : 15;
    r->scale = 1;
    for (int64_t k = 0; k < s->cols; k += span) {
        if (format == QUANT_Q6_K) {
            make_six(r, s->gguf, stored_row(s, n), k);
            continue;
        }
        struct blocks_scale g = gguf_group(s->gguf, stored_row(s, n), k);
        float *x = r->room + k, each = g.scale != 0 ? 1 / g.scale : 0;
        for (int64_t i = 0; i < span; i++)
            x[i] += g.low;
        round_to(r->codes + k, x, span, fabsf(each) < INFINITY ? each : 0, lo, hi, 255);
        r->groups[k / span * words] = quant_half(g.scale);
        if (!eight)
            r->groups[k / span * words + 1] = quant_half(g.low);
    }
}

static void take_f8(const struct quant_source *s, int64_t n, struct quant_row *r)
{
    memcpy(r->codes, stored_row(s, n), (size_t)s->cols);
    r->scale = f8_scale(s, n);
}

static void take_f8_blocks(const struct quant_source *s, int64_t n, struct quant_row *r)
{
    memcpy(r->codes, stored_row(s, n), (size_t)s->cols);
    for (int64_t g = 0; g < quant_groups(QUANT_F8_BLOCKS, s->cols); g += 2) {
        uint32_t bits;
        memcpy(&bits, block_scales(s, n) + g / 2, sizeof bits);
        r->groups[g] = (uint16_t)(bits >> 16);
        r->groups[g + 1] = (uint16_t)bits;
    }
    r->scale = 1;
}

uint8_t quant_f4_scale(const struct quant_source *s, int64_t n, int64_t g)
{
    return s->gguf ? gguf_nvfp4_scale(stored_row(s, n), g)
                   : s->groups[n * quant_groups(QUANT_F4, s->cols) + g];
}

static void take_f4(const struct quant_source *s, int64_t n, struct quant_row *r)
{
    const uint8_t *row = stored_row(s, n);
    int64_t groups = quant_groups(QUANT_F4, s->cols);
    for (int64_t k = 0; k < s->cols; k++)
        r->codes[k] = (uint8_t)stored_nibble(row, k);
    for (int64_t g = 0; g < groups; g++)
        r->groups[g] = bf16_from_f32(f8e4m3_to_f32(s->groups[n * groups + g]));
    r->scale = s->scale;
}

/* Reads a row of NVFP4 from a GGUF file, whose group scales are positive. */
static void take_nvfp4(const struct quant_source *s, int64_t n, struct quant_row *r)
{
    const uint8_t *row = stored_row(s, n);
    for (int64_t k = 0; k < s->cols; k++)
        r->codes[k] = gguf_nvfp4_code(row, k);
    r->scale = s->scale;
    for (int64_t g = 0; g < quant_groups(QUANT_F4, s->cols); g++) {
        uint8_t u = gguf_nvfp4_scale(row, g);
        r->groups[g] = bf16_from_f32(u == 127 ? 480 : f8e4m3_to_f32(u)); /* 127 is a number here */
    }
}

static void take_blocks(enum quant_format format, const struct quant_source *s, int64_t n,
                        struct quant_row *r)
{
    const uint8_t *at = stored_row(s, n);
    int64_t span = blocks_span(format), bytes = blocks_stored(format, span), words = blocks_words(format);
    for (int64_t b = 0; b < s->cols / span; b++)
        blocks_take(format, at + b * bytes, r->codes + b * span, r->groups + b * words);
    r->scale = 1;
}

void quant_make_row(enum quant_format format, const struct quant_source *s, int64_t n, struct quant_row *out)
{
    bool gptq = format == QUANT_GPTQ && s->gptq, stored = format && gguf_kernels(s->gguf) == format,
         kept = s->gguf && !stored && quant_is_blocks(format) && gguf_kept(s->gguf) == format;
    if ((format == QUANT_F4 && (s->stored.dtype != DT_U8 || (s->gguf && s->gguf != GGML_NVFP4))) ||
        (quant_is_blocks(format) && !stored && !kept && !gptq))
        bug("a matrix of %s as %s", dtype_name(s->stored.dtype), quant_name(format));
    if (format == QUANT_F4) {
        (s->gguf ? take_nvfp4 : take_f4)(s, n, out);
        return;
    }
    if (format == QUANT_F8_BLOCKS) {
        take_f8_blocks(s, n, out);
        return;
    }
    if (gptq) {
        gptq_take(s, n, out->codes, out->groups);
        out->scale = 1;
        return;
    }
    if (stored) {
        take_blocks(format, s, n, out);
        return;
    }
    if (format == QUANT_F8 && s->stored.dtype == DT_F8E4M3 && !s->blocks) {
        take_f8(s, n, out);
        return;
    }
    quant_source_row(s, n, out->room);
    if (format == QUANT_I4)
        make_i4(out, s, n);
    else if (kept)
        make_kept(format, out, s, n);
    else
        make_row(out, s->cols, format);
}

/* ---- activations --------------------------------------------------------------------------------------- */

int64_t quant_activation_group(enum quant_format format)
{
    int64_t group = quant_is_blocks(format) ? blocks_group(format) : quant_group(format);
    return group ? group : 128;
}

void quant_round_row(float *row, int64_t n, int64_t group)
{
    for (int64_t first = 0; first < n; first += group) {
        int64_t size = n - first < group ? n - first : group;
        float far = furthest(row + first, size), each = far > 1e-30f ? 127 / far : 0, scale = far / 127;
        for (int64_t k = first; k < first + size; k++)
            row[k] = isfinite(row[k]) ? nearest(splat(row[k] * each), -127, 127)[0] * scale : NAN;
    }
}

float quant_f8_row(uint8_t *codes, const float *row, int64_t n)
{
    uint32_t most = 0, bits; /* bits of the largest magnitude; infinity and NaN have the largest bits */
    float far;
    for (int64_t k = 0; k < n; k++) {
        memcpy(&bits, row + k, sizeof bits);
        most = (bits & 0x7fffffffu) > most ? bits & 0x7fffffffu : most;
    }
    memcpy(&far, &most, sizeof far);
    struct f8_row r = f8_row_of(far);
    for (int64_t k = 0; k < n; k++)
        codes[k] = r.each > 0 ? f8_of(row[k] * r.each) : 0;
    return r.scale;
}

/* ---- panels -------------------------------------------------------------------------------------------- */

static int64_t up_to(int64_t n, int64_t whole)
{
    return (n + whole - 1) / whole * whole;
}

struct quant_panels quant_panels(enum quant_format format, int64_t rows, int64_t cols, int64_t columns)
{
    int64_t n = up_to(rows, columns), size = quant_group(format) ? quant_group(format) : 4;
    struct quant_panels p = {.packed4 = is_packed4(format), .panels = n / columns};
    p.wide = up_to(cols, size);
    p.lines = quant_is_blocks(format) ? blocks_lines(format, p.wide) : p.wide / (p.packed4 ? 2 : 1);
    p.groups = quant_groups(format, cols);
    p.groups_at = (size_t)up_to(n * p.lines, 64);
    p.scales_at = p.groups_at + (size_t)up_to(n * p.groups * (int64_t)sizeof(uint16_t), 64);
    p.order_at = p.scales_at + (size_t)n * sizeof(float);
    p.end = p.order_at + (format == QUANT_GPTQ ? (size_t)cols * sizeof(int32_t) : 0);
    return p;
}
