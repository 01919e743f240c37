/* quantized.cu - quantized matrices on the GPU: packing on the host, upload, and dequantization on the
 * device.
 *
 * The layout is that of quant_formats.cuh. It is the same for all GPUs, so that a file can store it. For
 * products of many rows, a part of a matrix is dequantized to bf16 and multiplied like a bf16 matrix:
 *
 *     i8, f8   the codes, which is exact. A single scale, as in published f8 matrices, is a factor of the
 *              product. Row scales are applied to the f32 sums.
 *     f4       code times group scale: 2 and 4 significant bits give at most 6, which is exact in bf16's 8
 *     i4       code times group scale, rounded to bf16: up to 11 significant bits
 *
 * Only sums are therefore rounded, as in the reference, except for i4: its values differ by up to 2^-9 from
 * those that a product of few rows uses. */
#include "blocks.cuh"
#include "linear.cuh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- layout ---------------------------------------------------------------------------------------- */

struct bytes_of {
    int64_t tiles, blocks; /* blocks per tile */
    size_t scales, end;    /* offsets of the row scales and of the end */
};

static bytes_of layout(enum quant_format format, int64_t rows, int64_t cols)
{
    bytes_of l;
    l.tiles = (rows + TILE - 1) / TILE;
    l.blocks = (cols + format_span(format) - 1) / format_span(format);
    l.scales = static_cast<size_t>(l.tiles * l.blocks) * static_cast<size_t>(format_bytes(format));
    l.end = l.scales + static_cast<size_t>(l.tiles) * TILE * sizeof(float);
    return l;
}

size_t quantized_bytes(const struct backend *b, enum quant_format format, int64_t rows, int64_t cols)
{
    return format >= QUANT_F8_BLOCKS ? work_blocks(format, rows, cols).end : layout(format, rows, cols).end;
}

struct packing {
    uint8_t *bytes;
    enum quant_format format;
    const struct quant_source *source;
};

static void place_row(const struct packing *p, int64_t blocks, int64_t n, const struct quant_row *r)
{
    const struct quant_source *s = p->source;
    int span = format_span(p->format), size = static_cast<int>(quant_group(p->format)),
        row = static_cast<int>(n % TILE);
    for (int64_t k = 0; k < s->cols; k++) {
        uint8_t *block = p->bytes + block_at(p->format, blocks, n / TILE, row, k / span);
        code_place at = place_of(p->format, row, static_cast<int>(k % span));
        if (!is_packed4(p->format)) {
            block[at.code] = r->codes[k];
            continue;
        }
        block[at.code / 2] = static_cast<uint8_t>(block[at.code / 2] | r->codes[k] << 4 * (at.code % 2));
        if (k % size == 0 && p->format == QUANT_I4)
            memcpy(block + at.scale, r->groups + k / size, sizeof *r->groups);
        else if (k % size == 0)
            block[at.scale] = quant_f4_scale(s, n, k / size);
    }
}

static void pack_tiles(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct packing *p = static_cast<const struct packing *>(arg);
    const struct quant_source *s = p->source;
    bytes_of l = layout(p->format, s->rows, s->cols);
    float *scales = reinterpret_cast<float *>(p->bytes + l.scales);
    unsigned long cols = static_cast<unsigned long>(s->cols) + 1;
    struct quant_row r = {static_cast<uint8_t *>(xmalloc(cols, 1)), static_cast<uint16_t *>(xmalloc(cols, 2)),
                          0, static_cast<float *>(xmalloc(cols, 4))};
    for (int64_t n = begin * TILE; n < end * TILE && n < s->rows; n++) {
        quant_make_row(p->format, s, n, &r);
        place_row(p, l.blocks, n, &r);
        scales[n] = r.scale;
    }
    free(r.codes);
    free(r.groups);
    free(r.room);
}

void quantized_pack(struct backend *b, void *bytes, enum quant_format format, const struct quant_source *s)
{
    if (format >= QUANT_F8_BLOCKS)
        return blocks_pack(b, bytes, format, s);
    struct packing p = {static_cast<uint8_t *>(bytes), format, s};
    bytes_of l = layout(format, s->rows, s->cols);
    memset(bytes, 0, l.end);
    pool_for(b->pool, l.tiles, 1, pack_tiles, &p);
}

/* Returns the scale common to all rows, or NaN if they differ. */
static float common_scale(const float *scales, int64_t rows)
{
    for (int64_t n = 1; n < rows; n++)
        if (scales[n] != scales[0])
            return NAN;
    return scales[0];
}

struct weight *quantized_weight(struct backend *b, void *bytes, bool owned, enum quant_format format,
                                int64_t rows, int64_t cols)
{
    int64_t end = static_cast<int64_t>(quantized_bytes(b, format, rows, cols));
    struct weight *w = new weight();
    struct tensor host = {bytes, DT_U8, 1, end, end};
    struct tensor there = cuda_of(b)->ops.alloc(b, DT_U8, 1, host.cols);
    cuda_of(b)->ops.upload(b, there, host);
    w->rows = rows;
    w->cols = cols;
    w->format = format;
    w->bytes = there.data;
    if (has_records(w)) {
        w->stride = static_cast<int64_t>(work_blocks(format, rows, cols).line);
        w->scale = 1;
    } else {
        bytes_of l = layout(format, rows, cols);
        w->stride = l.blocks;
        w->scales = reinterpret_cast<const float *>(static_cast<char *>(there.data) + l.scales);
        w->scale = common_scale(reinterpret_cast<const float *>(static_cast<char *>(bytes) + l.scales), rows);
    }
    if (owned)
        free(bytes);
    return w;
}

/* ---- dequantization -------------------------------------------------------------------------------- */

/* Multiplies two values of one row, k and k + 1, by the scale of their group. */
__device__ __forceinline__ unsigned scaled(unsigned pair, float scale)
{
    return pack2(__uint_as_float(pair << 16) * scale, __uint_as_float(pair & 0xffff0000u) * scale);
}

/* Dequantizes tiles [first, first + gridDim.y) of w. A warp has a block of a tile, a lane 16 bytes of two
 * rows, and stores 16 bytes at once, or 8 of f4: four lanes fill a sector. `to` has space for whole
 * blocks. */
template <int FORMAT> __global__ void dequantize(view<bf16> to, matrix<FORMAT> w, int64_t first)
{
    enum { EACH = is_packed4(FORMAT) ? 4 : 2, PAIRS = 4 * EACH }; /* EACH: pairs per word */
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    int64_t block = (int64_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    if (block >= w.stride)
        return; /* safe: the whole warp returns, and no barrier follows */
    block_registers h = w.read(first + blockIdx.y, block);
    for (int half = 0; half < 2; half++) {
        bf16 *row =
            to.at + ((int64_t)blockIdx.y * TILE + g + 8 * half) * to.stride + block * format_span(FORMAT);
        unsigned v[16];
#pragma unroll
        for (int i = 0; i < PAIRS; i++) {
            v[i] = pair_at<FORMAT>(word_of(half ? h.high : h.low, i / EACH), i % EACH);
            if (is_packed4(FORMAT))
                v[i] = scaled(v[i], scale_at<FORMAT>(h.scales, half, FORMAT == QUANT_F4 ? i / 2 : i / 4));
        }
#pragma unroll
        for (int i = 0; i < PAIRS; i += FORMAT == QUANT_F4 ? 2 : 4) {
            if (FORMAT == QUANT_F4)
                *reinterpret_cast<uint2 *>(row + 8 * i + 4 * t) = uint2{v[i], v[i + 1]};
            else
                *reinterpret_cast<uint4 *>(row + (FORMAT == QUANT_I4 ? 8 * i + 8 * t : 16 * t + 2 * i)) =
                    uint4{v[i], v[i + 1], v[i + 2], v[i + 3]};
        }
    }
}

template <int FORMAT>
static void launch_dequantize(struct backend *b, struct tensor to, const struct weight *w, int64_t first)
{
    const int warps = 8;
    dim3 grid(blocks_for(w->stride, warps), blocks_for(to.rows, TILE));
    LAUNCH((dequantize<FORMAT>), grid, warps * WARP, 0, b, view_of<bf16>(to), matrix_of<FORMAT>(w),
           first / TILE);
}

int64_t quantized_padded(const struct weight *w)
{
    return has_records(w) ? (w->cols + RUN - 1) / RUN * RUN : w->stride * format_span(w->format);
}

void quantized_dequantize(struct backend *b, struct tensor to, const struct weight *w, int64_t first)
{
    if (has_records(w))
        return blocks_dequantize(b, to, w, first);
    WITH_FORMAT(F, w->format, if constexpr (F != QUANT_NONE) launch_dequantize<F>(b, to, w, first));
}
