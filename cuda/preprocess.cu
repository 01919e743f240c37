/* preprocess.cu - image preprocessing on the GPU: resizing, normalization and patches of a screenshot's
 * tiles.
 *
 * The upload is the image (6 MB for 1920 x 1080) and the coefficients of both filters. Patches made by the
 * host would be 40 MB. The results equal those of model/preprocess.c bit for bit: the same products and
 * sums in the same order, without fused multiply-add.
 *
 *     across   a thread computes one pixel of a row with the new width: bytes to f32 planes [3][h][width]
 *     down     a thread computes one pixel with the new height, normalizes it and stores it in its patch
 *     digest   hashes the patches of each tile for the cache: sums of mixed values, independent of the order
 *
 * Adjacent lanes process adjacent pixels of a row, so that they share reads and write contiguous runs (16
 * values of a patch in `down`). The operation is memory-bound: with w x h input pixels and W x H output
 * pixels it moves about 3 (w h + 8 W h + 12 W H) bytes. The overlapping reads of the filter come from the
 * cache. The vision encoder, which runs afterwards, takes far longer. */
#include "host.cuh"

#include <string.h>

enum { PATCH_THREADS = 256, DIGEST_BLOCKS = 64 };

typedef unsigned long long word; /* type required by the atomic functions */

struct line { /* struct resize_taps on the device */
    int out, most;
    const int *first, *count;
    const float *weight;
};

struct patching {
    int w, h, tile_w, tile_h, patch;
    bool round8;
    float mean[3], scale[3];
};

/* ---- kernels ------------------------------------------------------------------------------------------- */

/* Computes sum + weight * v, rounded twice as on the host. */
__device__ __forceinline__ float add_product(float sum, float weight, float v)
{
    return __fadd_rn(sum, __fmul_rn(weight, v));
}

/* Rounds to Pillow's 8-bit values, as fractions of 255. */
__device__ __forceinline__ float round_to_byte(float v)
{
    v = floorf(__fadd_rn(__fmul_rn(v, 255.0f), 0.5f));
    return (v < 0 ? 0 : v > 255 ? 255 : v) / 255.0f;
}

__global__ void across(float *wide, const uint8_t *rgb, patching c, line t)
{
    SHARED(float, value, 256);
    const int o = blockIdx.x * PATCH_THREADS + threadIdx.x;
    const int64_t y = blockIdx.y, plane = (int64_t)c.h * t.out;
    value[threadIdx.x] = (float)threadIdx.x / 255.0f;
    __syncthreads();
    if (o >= t.out)
        return;
    const uint8_t *in = rgb + 3 * (y * c.w + t.first[o]);
    const float *weight = t.weight + (int64_t)o * t.most;
    float sum[3] = {0, 0, 0};
    for (int j = 0; j < t.count[o]; j++)
        for (int ch = 0; ch < 3; ch++)
            sum[ch] = add_product(sum[ch], weight[j], value[in[3 * j + ch]]);
    for (int ch = 0; ch < 3; ch++)
        wide[ch * plane + y * t.out + o] = c.round8 ? round_to_byte(sum[ch]) : sum[ch];
}

__global__ void down(view<float> patches, const float *wide, patching c, line t, int width)
{
    const int x = blockIdx.x * PATCH_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= width)
        return;
    const int patch = c.patch, grid = c.tile_w / patch;
    const int tile = y / c.tile_h * (width / c.tile_w) + x / c.tile_w;
    const int line_of = tile * (c.tile_h / patch) + y % c.tile_h / patch;
    float *to = patches.row((int64_t)line_of * grid + x % c.tile_w / patch) + y % patch * patch + x % patch;
    const float *weight = t.weight + (int64_t)y * t.most;
    for (int ch = 0; ch < 3; ch++) {
        const float *in = wide + ((int64_t)ch * c.h + t.first[y]) * width + x;
        float sum = 0;
        for (int j = 0; j < t.count[y]; j++)
            sum = add_product(sum, weight[j], in[(int64_t)j * width]);
        if (c.round8)
            sum = round_to_byte(sum);
        to[ch * patch * patch] = (sum - c.mean[ch]) * c.scale[ch];
    }
}

/* Mixes the bits: each output bit depends on all bits of z (Steele, Lea, Flood: SplitMix64). */
__device__ __forceinline__ word mixed(word z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* Computes out[2 tile + k] += sum over a tile's values of a word that depends on their bits and position. */
__global__ void digest(word *out, view<float> patches, int64_t rows_each)
{
    const int64_t n = rows_each * patches.cols, first = blockIdx.y * rows_each;
    word a = 0, b = 0;
    for (int64_t i = (int64_t)blockIdx.x * PATCH_THREADS + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * PATCH_THREADS) {
        const float v = patches.row(first + i / patches.cols)[i % patches.cols];
        const word z = mixed((word)__float_as_uint(v) + (word)(i + 1) * 0x9e3779b97f4a7c15ull);
        a += z;
        b += mixed(z ^ 0xd1b54a32d192ed03ull);
    }
    a = warp_sum(a);
    b = warp_sum(b);
    if (threadIdx.x % WARP == 0) {
        atomicAdd(&out[2 * blockIdx.y], a);
        atomicAdd(&out[2 * blockIdx.y + 1], b);
    }
}

/* ---- operation ------------------------------------------------------------------------------------- */

/* Working memory, divided into blocks in sequence. */
struct arena {
    char *at;
    cudaStream_t stream;
};

static void *take(struct arena *p, size_t bytes)
{
    void *block = p->at;
    p->at += (bytes + 255) / 256 * 256;
    return block;
}

static void *take_copy(struct arena *p, const void *host, size_t bytes)
{
    void *block = take(p, bytes);
    CUDA(cudaMemcpyAsync(block, host, bytes, cudaMemcpyHostToDevice, p->stream));
    return block;
}

static line line_on_card(struct arena *p, const struct resize_taps *t)
{
    size_t n = static_cast<size_t>(t->out);
    line l = {t->out, t->most, nullptr, nullptr, nullptr};
    l.first = static_cast<const int *>(take_copy(p, t->first, n * sizeof(int)));
    l.count = static_cast<const int *>(take_copy(p, t->count, n * sizeof(int)));
    l.weight =
        static_cast<const float *>(take_copy(p, t->weight, n * static_cast<size_t>(t->most) * sizeof(float)));
    return l;
}

static patching patching_of(const struct picture *p)
{
    patching c = {p->w, p->h, p->tile_w, p->tile_h, p->patch, p->round8, {}, {}};
    memcpy(c.mean, p->mean, sizeof c.mean);
    memcpy(c.scale, p->scale, sizeof c.scale);
    return c;
}

static size_t wide_bytes(const struct picture *p, int size)
{
    return 3 * sizeof(float) * static_cast<size_t>(p->h) * static_cast<size_t>(p->size[size].across.out);
}

/* Computes the tiles of one size in the first rows of `patches`. Returns the number of rows. */
static int64_t patches_of_size(struct backend *b, struct tensor patches, const struct picture *p, int size,
                               const uint8_t *rgb, struct arena arena)
{
    const patching cut = patching_of(p);
    const line wide = line_on_card(&arena, &p->size[size].across),
               high = line_on_card(&arena, &p->size[size].down);
    float *middle = static_cast<float *>(take(&arena, wide_bytes(p, size)));
    LAUNCH(across, dim3(blocks_for(wide.out, PATCH_THREADS), static_cast<unsigned>(p->h)), PATCH_THREADS, 0,
           b, middle, rgb, cut, wide);
    LAUNCH(down, dim3(blocks_for(wide.out, PATCH_THREADS), static_cast<unsigned>(high.out)), PATCH_THREADS, 0,
           b, view_of<float>(patches), middle, cut, high, wide.out);
    return (int64_t)(wide.out / p->patch) * (high.out / p->patch);
}

static int cuda_make_patches(struct backend *b, struct tensor patches, uint64_t (*out)[2],
                             const struct picture *p, struct err *e)
{
    struct cuda *c = cuda_of(b);
    const int64_t each = (int64_t)(p->tile_w / p->patch) * (p->tile_h / p->patch);
    const unsigned tiles = static_cast<unsigned>(patches.rows / each);
    const size_t digests = tiles * sizeof *out;
    const size_t pixels = 3 * static_cast<size_t>(p->w) * static_cast<size_t>(p->h);
    struct arena arena = {
        static_cast<char *>(cuda_try_scratch(b, work_picture(p, static_cast<int>(tiles)), e)), c->stream};
    if (!arena.at)
        return -1;
    word *sums = static_cast<word *>(take(&arena, digests));
    const uint8_t *rgb = static_cast<const uint8_t *>(take_copy(&arena, p->rgb, pixels));
    CUDA(cudaMemsetAsync(sums, 0, digests, c->stream));
    int64_t done = 0;
    for (int i = 0; i < p->sizes; i++)
        done += patches_of_size(b, tensor_rows(patches, done, patches.rows - done), p, i, rgb, arena);
    if (done != patches.rows || patches.dtype != DT_F32 || patches.cols != 3 * p->patch * p->patch)
        bug("%lld patches of a picture that has %lld", (long long)patches.rows, (long long)done);
    LAUNCH(digest, dim3(DIGEST_BLOCKS, tiles), PATCH_THREADS, 0, b, sums, view_of<float>(patches), each);
    CUDA(cudaMemcpyAsync(out, sums, digests, cudaMemcpyDeviceToHost, c->stream));
    CUDA(cudaStreamSynchronize(c->stream));
    return 0;
}

void preprocess_fill(struct ops *o)
{
    o->make_patches = cuda_make_patches;
}
