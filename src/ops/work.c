/* work.c - working memory of GPU operations (work.h). */
#include "ops/work.h"

#include "base/number.h"
#include "ops/sampling.h"

enum {
    ALIGN = 256,
    PAGE = 2 << 20 /* unit of allocations above half of it */,
    TILE = 16 /* rows per quantized block */
};

const struct work_parts work_parts_usual = {
    .dequantized = 64 << 20, .sums = 32 << 20, .experts = 256 << 20, .splits = 32 << 20, .library = 32 << 20};

static size_t padded(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- products ------------------------------------------------------------------------------------------ */

size_t work_tensor(size_t bytes)
{
    return bytes > PAGE / 2 ? (bytes + PAGE - 1) / PAGE * PAGE : padded(bytes);
}

size_t work_matrix(enum dtype t, int64_t rows, int64_t cols)
{
    return work_tensor((size_t)rows * (size_t)((cols + 7) / 8 * 8) * dtype_size(t));
}

int64_t work_block_bits(enum quant_format format)
{
    return format == QUANT_F8_BLOCKS ? 8 : blocks_bits(format);
}

static size_t padded16(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

struct work_blocks work_blocks(enum quant_format format, int64_t rows, int64_t cols)
{
    struct work_blocks w = {.line = padded16((size_t)(cols * work_block_bits(format) + 7) / 8)};
    w.records = (size_t)rows * w.line;
    w.order = w.records + padded16((size_t)(rows * quant_groups(format, cols)) * sizeof(uint16_t));
    w.end = w.order + (format == QUANT_GPTQ ? (size_t)cols * sizeof(int32_t) : 0);
    return w;
}

size_t work_quantized_matrix(enum quant_format format, int64_t rows, int64_t cols)
{
    if (format >= QUANT_F8_BLOCKS)
        return work_tensor(work_blocks(format, rows, cols).end);
    enum { CODES = 1024, SCALES = 128 }; /* bytes of a block, and of its group scales */
    bool packed4 = format == QUANT_I4 || format == QUANT_F4;
    int64_t tiles = (rows + TILE - 1) / TILE, blocks = work_room(format, cols) / (packed4 ? 128 : 64);
    return work_tensor((size_t)(tiles * blocks) * (CODES + (packed4 ? SCALES : 0)) +
                       (size_t)tiles * TILE * sizeof(float));
}

size_t work_sums(const struct work_parts *p, int64_t cols)
{
    return size_max(p->sums, ((size_t)cols + 3) * sizeof(float));
}

int64_t work_room(enum quant_format format, int64_t cols)
{
    int64_t span = format == QUANT_I4 || format == QUANT_F4 ? 128 : format >= QUANT_F8_BLOCKS ? 8 : 64;
    return (cols + span - 1) / span * span;
}

struct work_dequantized work_dequantized(const struct work_parts *p, int64_t room)
{
    int64_t rows = (int64_t)p->dequantized / 2 / room / TILE * TILE;
    rows = rows < TILE ? TILE : rows;
    return (struct work_dequantized){rows, (size_t)(rows * room) * sizeof(uint16_t)};
}

int64_t work_rounded_rows(const struct work_parts *p, int64_t room)
{
    int64_t codes = (int64_t)work_dequantized(p, room).bytes / (room + (int64_t)sizeof(float)),
            sums = (int64_t)(p->sums / (TILE * sizeof(float)));
    return codes < sums ? codes : sums;
}

size_t work_quantized(const struct work_parts *p, int64_t room)
{
    struct work_dequantized w = work_dequantized(p, room);
    return w.bytes + work_sums(p, w.rows);
}

struct work_experts work_experts(int64_t choices, int64_t experts, int64_t inner, int64_t out, enum dtype t)
{
    size_t n = (size_t)choices;
    struct work_experts w = {.list = padded((n + (size_t)experts + 1) * sizeof(int32_t)),
                             .inner = padded(n * (size_t)inner * dtype_size(t)),
                             .results =
                                 n * size_max((size_t)out * sizeof(float), (size_t)inner * dtype_size(t))};
    w.all = 4 * w.list + w.inner + w.results;
    return w;
}

int64_t work_expert_rows(const struct work_parts *p, int64_t chosen, int64_t inner, int64_t out, enum dtype t)
{
    return (int64_t)(p->experts / work_experts(chosen, 0, inner, out, t).all) + 1;
}

/* ---- attention, sampling, images ----------------------------------------------------------------------- */

struct work_attend work_attend(int64_t queries, int64_t splits, int64_t floats_each)
{
    struct work_attend w = {.queries = padded((size_t)queries * WORK_KEYS),
                            .owners = padded((size_t)splits * sizeof(int))};
    w.all = w.queries + w.owners + (size_t)(splits * floats_each) * sizeof(float);
    return w;
}

size_t work_sampling(int rows)
{
    return (size_t)rows * SAMPLING_BINS * sizeof(uint64_t);
}

size_t work_masks(int64_t ids)
{
    return work_tensor((size_t)WORK_MASKS * ((size_t)(ids + 63) / 64) * sizeof(uint64_t)) +
           work_tensor(WORK_EXCHANGE);
}

size_t work_counts(int64_t groups)
{
    return (size_t)(WORK_SESSIONS * groups) * sizeof(unsigned);
}

static size_t taps_bytes(const struct resize_taps *t)
{
    size_t n = (size_t)t->out;
    return 2 * padded(n * sizeof(int)) + padded(n * (size_t)t->most * sizeof(float));
}

size_t work_picture(const struct picture *p, int tiles)
{
    size_t most = 0;
    for (int i = 0; i < p->sizes; i++) {
        const struct resize_taps *across = &p->size[i].across, *down = &p->size[i].down;
        size_t wide = 3 * sizeof(float) * (size_t)p->h * (size_t)across->out;
        most = size_max(most, taps_bytes(across) + taps_bytes(down) + padded(wide));
    }
    return padded((size_t)tiles * 2 * sizeof(uint64_t)) + padded(3 * (size_t)p->w * (size_t)p->h) + most;
}
