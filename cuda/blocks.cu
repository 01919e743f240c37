/* blocks.cu - weights of formats with a record for each block (blocks.cuh): packing on the host, and
 * dequantization on the device.
 *
 * A thread dequantizes eight codes, whose words it reads from the cache after the first thread of their
 * sector, and stores 16 bytes. Values are rounded to bf16 there, by at most 2^-9 of themselves; products of
 * few rows multiply them unrounded (matvec.cu). The speed was not measured. */
#include "blocks.cuh"
#include "linear.cuh"

#include <stdlib.h>
#include <string.h>

static int exponent(int64_t power)
{
    int e = 0;
    while (int64_t{1} << e < power)
        e++;
    return e;
}

struct block_shape block_shape_of(enum quant_format format, int64_t rows, int64_t cols)
{
    const struct work_blocks at = work_blocks(format, rows, cols);
    bool floats = format == QUANT_F8_BLOCKS;
    struct block_shape s = {};
    s.bits = static_cast<int>(work_block_bits(format));
    s.words = floats ? 2 : static_cast<int>(blocks_words(format));
    s.span = exponent(quant_group(format));
    s.group = floats ? s.span : exponent(blocks_group(format));
    s.unit = exponent(s.bits > 4 ? 32 / (s.bits - 4) : RUN);
    s.subtracted = floats ? 0 : blocks_offset(format);
    s.per_row = quant_groups(format, cols);
    s.records_at = static_cast<int64_t>(at.records);
    s.order_at = format == QUANT_GPTQ ? static_cast<int64_t>(at.order) : 0;
    return s;
}

/* ---- packing --------------------------------------------------------------------------------------- */

struct block_packing {
    uint8_t *bytes;
    enum quant_format format;
    const struct quant_source *source;
};

static void pack_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct block_packing *p = static_cast<const struct block_packing *>(arg);
    const struct quant_source *s = p->source;
    const struct work_blocks at = work_blocks(p->format, s->rows, s->cols);
    unsigned long cols = static_cast<unsigned long>(s->cols);
    int64_t words = quant_groups(p->format, s->cols);
    struct quant_row r = {static_cast<uint8_t *>(xmalloc(cols, 1)), nullptr, 0,
                          static_cast<float *>(xmalloc(cols, sizeof(float)))};
    for (int64_t n = begin; n < end; n++) {
        uint8_t *row = p->bytes + static_cast<size_t>(n) * at.line;
        r.groups = reinterpret_cast<uint16_t *>(p->bytes + at.records) + n * words;
        quant_make_row(p->format, s, n, &r);
        if (work_block_bits(p->format) == 8)
            memcpy(row, r.codes, cols);
        else
            blocks_put(p->format, r.codes, s->cols, row, sizeof(uint32_t));
    }
    free(r.codes);
    free(r.room);
}

void blocks_pack(struct backend *b, void *bytes, enum quant_format format, const struct quant_source *s)
{
    const struct work_blocks at = work_blocks(format, s->rows, s->cols);
    struct block_packing p = {static_cast<uint8_t *>(bytes), format, s};
    memset(bytes, 0, at.end);
    for (int64_t k = 0; format == QUANT_GPTQ && k < s->cols; k++) {
        int32_t column = s->gptq->order ? s->gptq->order[k] : static_cast<int32_t>(k);
        memcpy(p.bytes + at.order + static_cast<size_t>(k) * sizeof column, &column, sizeof column);
    }
    pool_for(b->pool, s->rows, 1, pack_rows, &p);
}

/* ---- dequantization -------------------------------------------------------------------------------- */

enum { THREADS = 256 };

/* Dequantizes rows [first, first + to.rows), whose runs are numbered row by row: narrow matrices can have
 * more rows than a grid's second dimension. Columns of GPTQ are put back into the order of x. */
__global__ __launch_bounds__(THREADS) void dequantize_blocks(view<bf16> to, any_matrix w, unsigned runs,
                                                             int64_t first)
{
    unsigned at = blockIdx.x * THREADS + threadIdx.x, r = at / runs;
    int64_t n = first + r, k = (int64_t)(at % runs) * RUN;
    float v[RUN];
    if (r >= to.rows || n >= w.rows)
        return;
    w.run(v, n, k);
    bf16 *row = to.row(r);
    if (!w.b.order_at)
        return store8(row + k, v);
    const int *order = reinterpret_cast<const int *>(static_cast<const char *>(w.at) + w.b.order_at) + k;
#pragma unroll
    for (int i = 0; i < RUN; i++)
        store(row + order[i], v[i]);
}

void blocks_dequantize(struct backend *b, struct tensor to, const struct weight *w, int64_t first)
{
    unsigned runs = blocks_for(w->cols, RUN);
    LAUNCH(dequantize_blocks, blocks_for(to.rows * runs, THREADS), THREADS, 0, b, view_of<bf16>(to),
           any_matrix_of(w), runs, first);
}
