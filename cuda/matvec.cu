/* matvec.cu - matrix products of few rows (decode GEMV), limited by reading the weights.
 *
 * Each weight is read once for up to 16 rows of x (more rows read it again, while it is in the cache), in
 * units of 16 bytes, by asynchronous copies that are three blocks of k ahead (quant_formats.cuh: pipeline).
 * A block of eight warps has 16 rows of the weight. The bytes per weight are 2 in bf16, 1 in i8 and f8,
 * 0.5625 in i4 and f4. x is read from the cache, 2 bytes per 16 weights and row, and y is written once.
 * Even a single row uses tensor cores: seven of eight columns are zeros then, but a warp needs one
 * instruction for 256 weights. f32 arithmetic would need two instructions per weight (one for the
 * conversion), more than the GPU can issue while the bytes arrive.
 *
 * The first weights are requested before the preceding kernel has ended (device.cuh: overlap_wait).
 *
 * Measured on an H200 (27 Nov 2026, bench --section kernels) for one row in bf16, before x was loaded one
 * block ahead: 64.5 us for 22656 x 5120, which is 85 % of the copy rate, and 34.4 us for 5120 x 10240, 72 %.
 *
 * The bits of a row are the same for any number of rows. Formats with records, unaligned rows, and f32,
 * which is used in tests, have a scalar kernel: a warp computes one row of the weight and eight of x, with
 * eight codes per lane at once. Its speed was not measured. */
#include "blocks.cuh"
#include "linear.cuh"

enum { MOST_BLOCKS = 65535 }; /* in the second dimension of a grid */

/* ---- tensor cores -------------------------------------------------------------------------------------- */

template <int FORMAT, int NT>
__global__ __launch_bounds__(SUM_THREADS) void mma_gemv(output y, view<const bf16> x, matrix<FORMAT> w,
                                                        const float *bias, int epi, accumulate mode)
{
    SHARED(uint4, room, (sum_room<FORMAT, NT>::WORDS));
    int64_t first = (int64_t)blockIdx.x * 8 * NT, tile = blockIdx.y;
    columns<NT> c;
    c.cols = x.cols;
#pragma unroll
    for (int n = 0; n < NT; n++) {
        int64_t r = first + 8 * n + threadIdx.x % WARP / 4;
        c.row[n] = r < x.rows ? x.row(r) : nullptr;
    }
    const float *sums = sum_tile<NT>(room, w, tile, c);
    for (int i = threadIdx.x; i < 8 * NT * TILE; i += SUM_THREADS) {
        int64_t t = first + i / TILE, n = tile * TILE + i % TILE;
        if (t >= y.rows || n >= y.cols)
            continue;
        float v = sum_of_warps<NT>(sums, i) * w.scale(n) + (bias ? bias[n] : 0.0f);
        if (y.full)
            store_epilogue(static_cast<float *>(y.at) + t * y.stride + n, v, epi, mode);
        else
            store_epilogue(static_cast<bf16 *>(y.at) + t * y.stride + n, v, epi, mode);
    }
}

template <int FORMAT, int NT> static void launch_mma(struct backend *b, const struct product &p)
{
    const output y = output_of(p.y);
    dim3 grid = grid_of(blocks_for(p.y.rows, 8 * NT), blocks_for(p.y.cols, TILE));
    if (grid.y > MOST_BLOCKS)
        bug("a product with %lld rows of weights", (long long)p.y.cols);
    LAUNCH_OVERLAPPED((mma_gemv<FORMAT, NT>), grid, SUM_THREADS, 0, b, y, view_of<const bf16>(p.x),
                      matrix_of<FORMAT>(p.w), p.bias, (int)p.epi, p.mode);
    cuda_of(b)->after_product = true;
}

template <int FORMAT> static void dispatch_mma(struct backend *b, const struct product &p)
{
    (p.y.rows <= 8 ? launch_mma<FORMAT, 1> : launch_mma<FORMAT, 2>)(b, p);
}

/* ---- scalar kernel --------------------------------------------------------------------------------- */

enum { PLAIN_ROWS = 8, PLAIN_WARPS = 4 };

template <class X, class Y>
__global__ void scalar_gemv(view<Y> y, view<const X> x, any_matrix w, const float *bias, int epi,
                            accumulate mode)
{
    int lane = threadIdx.x % WARP, rows = (int)(y.rows - (int64_t)blockIdx.y * PLAIN_ROWS);
    int64_t n = (int64_t)blockIdx.x * PLAIN_WARPS + threadIdx.x / WARP,
            first = (int64_t)blockIdx.y * PLAIN_ROWS;
    float sum[PLAIN_ROWS] = {};
    if (n >= y.cols)
        return; /* safe: the whole warp returns, and no barrier follows */
    for (int64_t k = lane * RUN; k < x.cols; k += WARP * RUN) {
        float v[RUN];
        w.run(v, n, k);
#pragma unroll
        for (int r = 0; r < PLAIN_ROWS; r++)
            if (r < rows)
                sum[r] += w.dot(v, x.row(first + r), k);
    }
#pragma unroll
    for (int r = 0; r < PLAIN_ROWS; r++) {
        float v = warp_sum(sum[r]) * w.scale(n) + (bias ? bias[n] : 0.0f);
        if (r < rows && lane == 0)
            store_epilogue(y.row(first + r) + n, v, epi, mode);
    }
}

template <class X, class Y> static void launch_scalar(struct backend *b, const struct product &p)
{
    dim3 grid(blocks_for(p.y.cols, PLAIN_WARPS), blocks_for(p.y.rows, PLAIN_ROWS));
    LAUNCH((scalar_gemv<X, Y>), grid, PLAIN_WARPS * WARP, 0, b, view_of<Y>(p.y), view_of<const X>(p.x),
           any_matrix_of(p.w), p.bias, (int)p.epi, p.mode);
}

/* ---- selection of the kernel ----------------------------------------------------------------------- */

bool rows_aligned16(struct tensor x)
{
    int64_t numbers = 16 / static_cast<int64_t>(dtype_size(x.dtype));
    return reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && x.stride % numbers == 0 && x.cols % numbers == 0;
}

/* Selects the kernel for at most MOST_BLOCKS * PLAIN_ROWS rows of x, which the scalar kernel has in the
 * second dimension of its grid. The tensor cores' kernel has tiles of the weight there: a million rows at
 * most. */
static void dispatch(struct backend *b, const struct product &p)
{
    bool plain = p.w->format == QUANT_NONE;
    if (p.x.dtype != DT_BF16 || !rows_aligned16(p.x) || has_records(p.w) ||
        (plain && p.w->plain.dtype == DT_F32))
        WITH_TYPE(X, p.x.dtype, WITH_TYPE(Y, p.y.dtype, launch_scalar<X, Y>(b, p)));
    else if (plain)
        dispatch_mma<QUANT_NONE>(b, p);
    else
        WITH_FORMAT(F, p.w->format, dispatch_mma<F>(b, p));
}

void matvec(struct backend *b, const struct product &p)
{
    const int64_t most = int64_t{MOST_BLOCKS} * PLAIN_ROWS;
    for (int64_t t = 0; t < p.y.rows; t += most) {
        struct product part = p;
        int64_t n = least(p.y.rows - t, most);
        part.y = tensor_rows(p.y, t, n);
        part.x = tensor_rows(p.x, t, n);
        dispatch(b, part);
    }
}
