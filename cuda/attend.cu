/* attend.cu - attention operations: causal attention over a KV cache, and full attention within image
 * tiles.
 *
 * Three kernels serve them: flash.cuh for many queries, attend_split.cu for few queries over many keys,
 * attend_plain.cu for other sizes.
 *
 * Prefill of Holotron with T queries and heads of 128 needs 4 * 40 * 128 operations per visible pair of
 * query and key: 20480 (T past + T^2 / 2) in total. The 5 query heads of a KV head are rows of one block.
 * The block reads its visible keys once for its 128 rows, which are 25 positions. A tile in the vision
 * encoder has 1040 queries and keys and 16 heads of 80, which is 5.5 GFLOP. Blocks of 96 rows give 11
 * blocks, and the last one is nearly full. With 128 rows, most of one in nine blocks would be empty. */
#include "attend.cuh"

/* ---- many queries -------------------------------------------------------------------------------------- */

template <class K, int D, int M, int WARPS, int W = D>
static void launch(struct backend *b, const struct attention *a)
{
    using shape = flash_shape<K, D, M, WARPS, W>;
    auto at = [](struct tensor t) { return static_cast<bf16 *>(t.data); };
    flash f = {};
    f.q = at(a->q), f.y = at(a->y), f.k = a->k.data, f.v = a->v.data;
    f.q_stride = a->q.stride, f.y_stride = a->y.stride, f.k_stride = a->k.stride, f.v_stride = a->v.stride;
    f.n = a->n, f.keys = a->keys, f.past = a->past, f.group = a->group;
    f.by = 1.44269504f / sqrtf(static_cast<float>(a->d));
    dim3 grid = grid_of(blocks_for(static_cast<int64_t>(a->n) * a->group, shape::ROWS), a->heads, a->tiles);
    allow_shared(flash_attention<K, D, M, WARPS, W>, shape::BYTES);
    LAUNCH((flash_attention<K, D, M, WARPS, W>), grid, shape::THREADS, shape::BYTES, b, f);
}

/* Uses blocks of 64 rows if blocks of 128 would be fewer than the multiprocessors. */
template <class K, int D> static void launch_causal(struct backend *b, const struct attention *a)
{
    int64_t blocks = static_cast<int64_t>(blocks_for(static_cast<int64_t>(a->n) * a->group, 128)) * a->heads;
    if (blocks >= cuda_of(b)->processors)
        launch<K, D, 2, 4>(b, a);
    else
        launch<K, D, 1, 4>(b, a);
}

/* Runs the flash kernel if the types and alignment allow it; returns false otherwise. It is instantiated
 * only for the head sizes of known models, because each instance is compiled for every GPU architecture. */
static bool attend_flash(struct backend *b, const struct attention *a)
{
    bool causal = a->past >= 0, quantized = a->k.dtype == DT_F8E4M3;
    if (a->q.dtype != DT_BF16 || !aligned(a->q) || !aligned(a->k) || !aligned(a->v) || !aligned(a->y))
        return false;
    if (causal && a->d == 256)
        (quantized ? launch<kv8, 256, 1, 3> : launch<bf16, 256, 1, 4>)(b, a);
    else if (causal && a->d == 128)
        (quantized ? launch_causal<kv8, 128> : launch_causal<bf16, 128>)(b, a);
    else if (causal && a->d == 64)
        (quantized ? launch_causal<kv8, 64> : launch_causal<bf16, 64>)(b, a);
    else if (!causal && a->d == 80)
        launch<bf16, 80, 2, 3>(b, a);
    else if (!causal && a->d == 72)
        launch<bf16, 80, 2, 3, 72>(b, a);
    else if (!causal && a->d == 64)
        launch<bf16, 64, 2, 3>(b, a);
    else
        return false;
    return true;
}

/* ---- the operations ------------------------------------------------------------------------------------ */

static int whole(int64_t n)
{
    if (n < 0 || n > 1 << 30)
        bug("attention over %lld positions", (long long)n);
    return static_cast<int>(n);
}

static struct attention attention_of(struct tensor y, struct tensor q, struct tensor k, struct tensor v,
                                     int tiles, int64_t n, int64_t keys, int64_t past, int heads, int group)
{
    struct attention a = {};
    a.y = y, a.q = q, a.k = k, a.v = v;
    a.tiles = tiles, a.heads = heads, a.group = group;
    a.n = whole(n), a.keys = whole(keys);
    a.past = past < 0 ? -1 : whole(past);
    a.d = static_cast<int>(y.cols / (heads * group));
    bool quantized = k.dtype == DT_F8E4M3 && k.cols == kv8_cols(heads, a.d);
    if ((k.dtype != q.dtype && !quantized) || v.dtype != k.dtype || y.dtype != q.dtype)
        bug("attention of %s over keys of %s", dtype_name(q.dtype), dtype_name(k.dtype));
    return a;
}

static void cuda_attend_tokens(struct backend *b, struct tensor y, struct tensor q, struct tensor k,
                               struct tensor v, int q_heads, int kv_heads, int64_t past)
{
    struct attention a =
        attention_of(y, q, k, v, 1, q.rows, past + q.rows, past, kv_heads, q_heads / kv_heads);
    if (q.rows && !attend_split(b, &a) && !attend_flash(b, &a))
        attend_plain(b, &a);
}

static void cuda_attend_batch(struct backend *b, struct tensor y, struct tensor q, const struct tensor *k,
                              const struct tensor *v, int q_heads, int kv_heads)
{
    if (q.rows == 0)
        return;
    struct attention a =
        attention_of(y, q, k[0], v[0], whole(q.rows), 1, 0, -1, kv_heads, q_heads / kv_heads);
    a.ks = k;
    a.vs = v;
    if (!attend_split(b, &a))
        attend_plain(b, &a);
}

static void cuda_attend_tiles(struct backend *b, struct tensor y, struct tensor qkv, int heads, int tiles)
{
    int64_t n = y.rows / tiles, width = y.cols;
    struct attention a = attention_of(y, tensor_cols(qkv, 0, width), tensor_cols(qkv, width, width),
                                      tensor_cols(qkv, 2 * width, width), tiles, n, n, -1, heads, 1);
    if (n && !attend_flash(b, &a))
        attend_plain(b, &a);
}

void attend_fill(struct ops *o)
{
    o->attend_tokens = cuda_attend_tokens;
    o->attend_batch = cuda_attend_batch;
    o->attend_tiles = cuda_attend_tiles;
}
