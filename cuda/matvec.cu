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
    multiply_tile<NT>(
        room, w, blockIdx.y, (int64_t)blockIdx.x * 8 * NT, y.rows, [&](int64_t t) { return x.row(t); },
        [&](int64_t t, int64_t n, float v) { y.put(t, n, v + (bias ? bias[n] : 0.0f), epi, mode); });
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

/* One warp per row of a matrix and up to PLAIN_ROWS rows of the result that have the same matrix. EXPERTS:
 * the rows have one of several matrices each. Seven blocks per multiprocessor would spill in f32, and on
 * sm_80 in bf16. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 900
enum { SEVEN_IN_BF16 = 0 };
#else
enum { SEVEN_IN_BF16 = 1 };
#endif
template <class X, bool EXPERTS>
__global__ void __launch_bounds__(PLAIN_WARPS *WARP, EXPERTS ? 4 : 6 + (SEVEN_IN_BF16 && sizeof(X) == 2))
    scalar_gemv(output y, view<const X> x, any_matrix w, const float *bias, int epi, accumulate mode,
                chosen of)
{
    int lane = threadIdx.x % WARP;
    int64_t n = (int64_t)blockIdx.x * PLAIN_WARPS + threadIdx.x / WARP, first = blockIdx.y * PLAIN_ROWS;
    if (n >= y.cols)
        return; /* safe: the whole warp returns, and no barrier follows */
    for (; first < y.rows; first += gridDim.y * PLAIN_ROWS) {
        const int64_t end = min(first + PLAIN_ROWS, y.rows);
        for (int64_t p = first, next; p < end; p = next) {
            float sum[PLAIN_ROWS] = {}, v[RUN];
            next = EXPERTS ? p + 1 : end;
            while (EXPERTS && next < end && of.expert[next] == of.expert[p])
                next++;
            if (EXPERTS)
                w = of.table[of.expert[p]];
            for (int64_t k = lane * RUN; k < x.cols; k += WARP * RUN) {
                w.run(v, n, k);
#pragma unroll
                for (int r = 0; r < PLAIN_ROWS; r++)
                    if (p + r < next)
                        sum[r] += w.dot(v, x.row(EXPERTS && of.row ? of.row[p + r] : p + r), k);
            }
#pragma unroll
            for (int r = 0; r < PLAIN_ROWS; r++) {
                float all = warp_sum(sum[r]) * w.scale(n) + (bias ? bias[n] : 0.0f);
                if (p + r < next && lane == 0)
                    y.put(p + r, n, all, epi, mode);
            }
        }
    }
}

void scalar_product(struct backend *b, const struct product &p, const struct chosen &of)
{
    dim3 grid = grid_of(blocks_for(p.y.cols, PLAIN_WARPS),
                        least(blocks_for(p.y.rows, PLAIN_ROWS), int64_t{MOST_BLOCKS}));
    WITH_TYPE(X, p.x.dtype,
              LAUNCH((of.expert ? scalar_gemv<X, true> : scalar_gemv<X, false>), grid, PLAIN_WARPS * WARP, 0,
                     b, output_of(p.y), view_of<const X>(p.x), any_matrix_of(p.w), p.bias, (int)p.epi, p.mode,
                     of));
}

/* ---- selection of the kernel ----------------------------------------------------------------------- */

bool rows_aligned16(struct tensor x)
{
    return aligned(x) && static_cast<size_t>(x.cols) * dtype_size(x.dtype) % 16 == 0;
}

bool suits_tensor_cores(const struct product &p)
{
    return p.x.dtype == DT_BF16 && rows_aligned16(p.x) && !has_records(p.w) &&
           (p.w->format != QUANT_NONE || p.w->plain.dtype != DT_F32);
}

void matvec(struct backend *b, const struct product &p)
{
    if (!suits_tensor_cores(p))
        scalar_product(b, p, chosen{});
    else
        WITH_FORMAT(F, p.w->format, dispatch_mma<F>(b, p));
}
