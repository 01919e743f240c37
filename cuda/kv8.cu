/* kv8.cu - quantization of rows of an 8-bit KV cache (ops/kv8.h). It uses the functions of the host and
 * gives the same bits.
 *
 * A block processes a row, and each of its warps several heads: one pass for the maximum magnitude, by its
 * bits, and one for the codes. A row of Holotron has 2048 bytes, which are read, the second time from the
 * L1 cache, and 1032 bytes are written. With 6 layers that is a 500th of the KV cache that a token reads at 4
 * K tokens, and negligible compared with the weights. */
#include "kv8.cuh"

#include "host.cuh"

enum { THREADS = 256, WARPS = THREADS / WARP, MOST_ROWS = 128 };

struct row_places {
    uint8_t *at[MOST_ROWS];
};

template <class T>
__device__ __forceinline__ void kv_quantize_head(uint8_t *row, const T *from, int heads, int head, int d)
{
    int lane = threadIdx.x % WARP;
    from += (int64_t)head * d;
    unsigned most = 0;
    for (int c = lane; c < d; c += WARP)
        most = max(most, __float_as_uint(number(from[c])) & 0x7fffffffu);
    unsigned scale = kv8_scale(warp_max(most));
    for (int c = lane; c < d; c += WARP)
        row[(int64_t)head * d + c] = kv8_code(number(from[c]), scale);
    if (lane == 0)
        row[(int64_t)heads * d + head] = (uint8_t)scale;
}

/* Quantizes one row per block into the rows of dst, or, if these are NULL, into places. */
template <class T>
__global__ void kv_quantize(view<uint8_t> dst, row_places places, view<const T> src, int heads)
{
    overlap_wait();
    uint8_t *row = dst.at ? dst.row(blockIdx.x) : places.at[blockIdx.x];
    for (int head = threadIdx.x / WARP; head < heads; head += WARPS)
        kv_quantize_head(row, src.row(blockIdx.x), heads, head, (int)(src.cols / heads));
}

static void check(struct tensor dst, struct tensor src, int heads)
{
    if (dst.dtype != DT_F8E4M3 || src.cols % heads || dst.cols != kv8_cols(heads, src.cols / heads))
        bug("%d heads, %lld columns in all, as rows of %s of %lld", heads, (long long)src.cols,
            dtype_name(dst.dtype), (long long)dst.cols);
}

static void quantize(struct backend *b, view<uint8_t> dst, const row_places &to, struct tensor src, int heads)
{
    WITH_TYPE(T, src.dtype,
              LAUNCH_OVERLAPPED((kv_quantize<T>), grid_of(src.rows), THREADS, 0, b, dst, to,
                                view_of<const T>(src), heads));
}

static void cuda_kv_quantize(struct backend *b, struct tensor dst, struct tensor src, int heads)
{
    check(dst, src, heads);
    quantize(b, view_of<uint8_t>(dst), row_places{}, src, heads);
}

static void cuda_kv_quantize_batch(struct backend *b, const struct tensor *dst, struct tensor src, int heads)
{
    for (int64_t r = 0; r < src.rows; r += MOST_ROWS) {
        row_places to = {};
        int64_t n = least(src.rows - r, MOST_ROWS);
        for (int64_t i = 0; i < n; i++) {
            check(dst[r + i], src, heads);
            to.at[i] = static_cast<uint8_t *>(dst[r + i].data);
        }
        quantize(b, view<uint8_t>{}, to, tensor_rows(src, r, n), heads);
    }
}

void kv8_fill(struct ops *o)
{
    o->kv_quantize = cuda_kv_quantize;
    o->kv_quantize_batch = cuda_kv_quantize_batch;
}
