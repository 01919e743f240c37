/* attend_split.cu - decode attention: few queries over many keys, split over blocks (flash decoding), for
 * one token of each session of a batch.
 *
 * The operation is memory-bound. K and V are read once, which is 4 D bytes per key and KV head; queries
 * and results are 4 D bytes per query head. The arithmetic is 4 D operations per key and query head, or
 * one operation per byte and query head of the group. Scalar arithmetic would need a third to a half of a
 * GPU's peak rate for groups of 5 heads. Tensor cores have ample reserve, even though they compute 8 heads
 * (or 16) whatever the size of the group is.
 *
 * The keys of a session are divided into splits, and each KV head gets one block per split. The length of
 * a split depends only on the session's own length, so that the bits of a result do not depend on the
 * batch. The four warps of a block take 16 keys each in turn. All operands stay in registers. Sums allow
 * any order that both operands share, so the meaning of the product indices (dimension of a head, key) is
 * chosen such that a lane reads 16 bytes of a row at a time and already has the operands that it needs:
 *
 *     S^T = K Q^T     lane (g, t) reads keys g and g + 8, dimensions 32 i + 8t..8t+7: A of two products
 *     P^T             S^T rounded and its 8 x 8 parts transposed: B of the next product
 *     O^T += V^T P^T  lane (g, t) reads keys 2t, 2t+1, 2t+8, 2t+9, dimensions 64 i + 8g..8g+7; half words of
 *                     adjacent keys, combined in one word, are A of four products
 *
 * An 8-bit KV cache (kv8.cuh) is also read 16 bytes at a time, which are twice as many dimensions, and
 * dequantized to the same words. It needs half the bytes plus a sixteenth for the scales, whose 32 bytes
 * per row are shared by the blocks of all heads.
 *
 * With heads of 256, K, V and O of eight heads take 192 registers. The queries are then in shared memory,
 * and a block processes at most eight query heads of a KV head. The next block processes the others and
 * finds K and V in the L2 cache.
 *
 * The next K is loaded while V is used, and the next V while K is used. At the end the results of the
 * warps are combined. If a session has several splits, they are written to scratch memory, (D + 2) * 4
 * bytes per query head, and a second kernel combines them. With 5 heads of 128 these are 4 % of the bytes
 * that a split of 128 keys reads, and 2 % for 256 keys.
 *
 * Sessions whose splits exceed the working memory run in several launches of thousands of blocks each.
 *
 * The host passes the addresses of the sessions as kernel arguments to a kernel that writes the table. A
 * copy would make the host wait. */
#include "attend_fragments.cuh"

enum {
    WARPS = 4,
    THREADS = WARPS * WARP,
    STEP = 16,        /* keys per warp and iteration */
    SPLIT_KEYS = 128, /* minimum keys per split */
    MOST_SPLITS = WORK_SPLITS,
    TABLE_ROWS = 96, /* sessions per launch as kernel arguments: 4 KiB */
    FEW = 16,        /* maximum number of queries of one sequence that are split */
    MANY_KEYS = 512,
};

__host__ __device__ static inline int split_length(int keys)
{
    int n = SPLIT_KEYS;
    while (keys > (int64_t)n * MOST_SPLITS)
        n *= 2;
    return n;
}

/* ---- table of sessions --------------------------------------------------------------------------- */

struct table_rows {
    session_keys s[TABLE_ROWS];
};

__global__ void table_write(session_keys *to, int *owner, int first, table_rows rows)
{
    overlap_wait();
    session_keys s = rows.s[blockIdx.x];
    int length = split_length(s.keys), splits = (s.keys + length - 1) / length;
    if (threadIdx.x == 0)
        to[first + blockIdx.x] = s;
    for (int i = threadIdx.x; i < splits; i += WARP)
        owner[s.split + i] = first + blockIdx.x;
}

static struct session_keys session_of(const struct attention *a, int i)
{
    struct tensor k = a->ks ? a->ks[i] : a->k, v = a->ks ? a->vs[i] : a->v;
    int keys = a->ks ? static_cast<int>(k.rows) : a->past + i + 1;
    return session_keys{k.data, v.data, k.stride, v.stride, keys, 0};
}

struct attention_table attend_table(struct backend *b, const struct attention *a, int64_t floats_each)
{
    static_assert(sizeof(session_keys) == WORK_KEYS, "size assumed by work_attend");
    struct attention_table t = {};
    int n = static_cast<int>(a->q.rows), split = 0;
    for (int i = 0; i < n; i++) {
        int keys = session_of(a, i).keys;
        if (keys < 1)
            bug("attention over no keys");
        t.splits += static_cast<int>(blocks_for(keys, split_length(keys)));
    }
    const struct work_attend w = work_attend(n, t.splits, floats_each);
    char *at = static_cast<char *>(cuda_scratch(b, w.all));
    t.sessions = reinterpret_cast<session_keys *>(at);
    t.owner = reinterpret_cast<int *>(at + w.queries);
    t.partial = reinterpret_cast<float *>(at + w.queries + w.owners);
    for (int first = 0; first < n; first += TABLE_ROWS) {
        table_rows rows = {};
        int m = n - first < TABLE_ROWS ? n - first : static_cast<int>(TABLE_ROWS);
        for (int i = 0; i < m; i++) {
            rows.s[i] = session_of(a, first + i);
            rows.s[i].split = split;
            split += static_cast<int>(blocks_for(rows.s[i].keys, split_length(rows.s[i].keys)));
        }
        LAUNCH_OVERLAPPED(table_write, grid_of(m), WARP, 0, b, t.sessions, t.owner, first, rows);
    }
    return t;
}

/* ---- one split ----------------------------------------------------------------------------------- */

struct split_args {
    const session_keys *sessions;
    const int *owner;
    const bf16 *q;
    bf16 *y;
    int64_t q_stride, y_stride;
    float *partial; /* [splits][heads][group] of D sums, then the maximum score and the sum of weights of
                     * each */
    int group;
    float by; /* log2(e) / sqrt(d) */
};

/* Queries of a block: in registers, or, for heads of 256, in shared memory as [D / 32][WARP]. */
template <class K, int D, int NQ> struct split_queries {
    enum { BYTES = 0 };
    uint4 q[NQ][D / 32];

    __device__ __forceinline__ void fetch(const bf16 *at, int heads)
    {
        int lane = threadIdx.x % WARP;
#pragma unroll
        for (int n = 0; n < NQ; n++)
#pragma unroll
            for (int i = 0; i < D / 32; i++) {
                int head = 8 * n + lane / 4;
                q[n][i] = *reinterpret_cast<const uint4 *>(at + (int64_t)min(head, heads - 1) * D +
                                                           key_fragments<K, D>::place(i, lane % 4));
            }
    }
    __device__ __forceinline__ uint4 part(int n, int i) const
    {
        return q[n][i];
    }
};

template <class K> struct split_queries<K, 256, 1> {
    enum { PARTS = 256 / 32, BYTES = PARTS * WARP * 16 };
    const uint4 *q;

    __device__ __forceinline__ void fetch(const bf16 *at, int heads)
    {
        SHARED(uint4, all, PARTS * WARP);
        int lane = threadIdx.x % WARP;
        for (int i = threadIdx.x / WARP; i < PARTS; i += WARPS)
            all[i * WARP + lane] = *reinterpret_cast<const uint4 *>(
                at + (int64_t)min(lane / 4, heads - 1) * 256 + key_fragments<K, 256>::place(i, lane % 4));
        q = all + lane;
        __syncthreads(); /* all queries are stored */
    }
    __device__ __forceinline__ uint4 part(int, int i) const
    {
        int at = i * WARP;
#ifndef CUDA_EMULATED
        asm volatile(""
                     : "+r"(at)); /* prevents the compiler from reading all of it into registers before
                                      * the loop */
#endif
        return q[at];
    }
};

/* State of a warp. The columns of fragments are query heads, 8 NQ of them; this lane has heads 8 n + 2t
 * and 8 n + 2t + 1. */
template <class K, int D, int NQ> struct split_state {
    split_queries<K, D, NQ> q;
    key_fragments<K, D> k;
    value_fragments<K, D> v;
    float out[NQ][D / 16][4] = {};
    float most[NQ][2], sum[NQ][2] = {}; /* sum: over this lane's keys */

    __device__ __forceinline__ split_state()
    {
#pragma unroll
        for (int n = 0; n < NQ; n++)
            most[n][0] = most[n][1] = -INFINITY;
    }

    /* Computes S^T of 16 keys; s is zero before. */
    __device__ __forceinline__ void scores(float s[NQ][4]) const
    {
#pragma unroll
        for (int i = 0; i < D / 32; i++) {
            const uint4 a = k.part(0, i), c = k.part(1, i);
            const unsigned left[8] = {a.x, c.x, a.y, c.y, a.z, c.z, a.w, c.w};
#pragma unroll
            for (int n = 0; n < NQ; n++) {
                const uint4 part = q.part(n, i);
                const unsigned right[4] = {part.x, part.y, part.z, part.w};
                mma_16816(s[n], left, right);
                mma_16816(s[n], left + 4, right + 2);
            }
        }
    }

    /* Updates the online softmax with the first `some` of 16 keys, and rescales earlier sums. */
    __device__ __forceinline__ void softmax(float s[4], unsigned p[2], int n, int some, float by)
    {
        float scale[2], weight[4];
        int key = threadIdx.x % WARP / 4;
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (key + i / 2 * 8 >= some)
                s[i] = -INFINITY;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float now = fmaxf(most[n][i], warp_max<4>(fmaxf(s[i], s[i + 2]))), at = now * by;
            scale[i] = power2((most[n][i] - now) * by);
            most[n][i] = now;
            weight[i] = power2(s[i] * by - at);
            weight[i + 2] = power2(s[i + 2] * by - at);
            sum[n][i] = sum[n][i] * scale[i] + weight[i] + weight[i + 2];
        }
#pragma unroll
        for (int m = 0; m < D / 16; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                out[n][m][i] *= scale[i % 2];
        p[0] = transposed(pack2(weight[0], weight[1]));
        p[1] = transposed(pack2(weight[2], weight[3]));
    }

    /* Computes O^T += V^T P^T. */
    __device__ __forceinline__ void add_values(const unsigned p[NQ][2])
    {
#pragma unroll
        for (int m = 0; m < D / 16; m++) {
            unsigned a[4];
            v.fragment(a, m);
#pragma unroll
            for (int n = 0; n < NQ; n++)
                mma_16816(out[n][m], a, p[n]);
        }
    }
};

/* Combines the results of the warps for each head. Writes to y if the session has one split, otherwise to
 * scratch memory. */
template <class K, int D, int NQ>
__device__ __forceinline__ void split_store(const split_state<K, D, NQ> &w, const split_args &a, int session,
                                            bool alone)
{
    enum { HEADS = 8 * NQ };
    DYNAMIC_SHARED(float, out); /* [WARPS][HEADS][D] */
    SHARED(float, most, WARPS *HEADS);
    SHARED(float, sum, WARPS *HEADS);
    const int warp = threadIdx.x / WARP, g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < NQ; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int head = warp * HEADS + 8 * n + 2 * t + i;
            float total = warp_sum<4>(w.sum[n][i]); /* over the lanes with the same t */
            if (g == 0) {
                most[head] = w.most[n][i];
                sum[head] = total;
            }
#pragma unroll
            for (int m = 0; m < D / 16; m++)
                *reinterpret_cast<float2 *>(out + head * D + value_fragments<K, D>::place(m, g)) =
                    float2{w.out[n][m][i], w.out[n][m][i + 2]};
        }
    __syncthreads();
    const int octet = blockIdx.z * HEADS, mine = min((int)HEADS, a.group - octet);
    for (int i = threadIdx.x; i < mine * D; i += THREADS) {
        int head = i / D, c = i % D;
        float top = most[head], total = 0, value = 0;
        for (int j = 1; j < WARPS; j++)
            top = fmaxf(top, most[j * HEADS + head]);
        for (int j = 0; j < WARPS; j++) {
            float scale = power2((most[j * HEADS + head] - top) * a.by);
            total += sum[j * HEADS + head] * scale;
            value += out[(j * HEADS + head) * D + c] * scale;
        }
        int64_t row = (int64_t)blockIdx.y * a.group + octet + head; /* row of the query's heads */
        if (alone) {
            store(a.y + session * a.y_stride + row * D + c, value / total);
            continue;
        }
        row += (int64_t)blockIdx.x * gridDim.y * a.group;
        a.partial[row * D + c] = value;
        float *of = a.partial + (int64_t)gridDim.x * gridDim.y * a.group * D + 2 * row;
        if (c == 0) {
            of[0] = top;
            of[1] = total;
        }
    }
}

template <class K, int D, int NQ> __global__ void __launch_bounds__(THREADS) attend_one_split(split_args a)
{
    overlap_wait();
    const int session = a.owner[blockIdx.x], head = blockIdx.y;
    const session_keys s = a.sessions[session];
    const int length = split_length(s.keys), begin = ((int)blockIdx.x - s.split) * length,
              stop = min(begin + length, s.keys);
    const key_rows<K> keys(s.k, s.k_stride, gridDim.y, D, head), values(s.v, s.v_stride, gridDim.y, D, head);
    int first = begin + (int)threadIdx.x / WARP * STEP;
    split_state<K, D, NQ> w;
    w.k.fetch(keys, first, stop);
    w.v.fetch(values, first, stop);
    const int octet = blockIdx.z * 8 * NQ;
    w.q.fetch(a.q + session * a.q_stride + ((int64_t)head * a.group + octet) * D, a.group - octet);
    for (; first < stop; first += WARPS * STEP) {
        float score[NQ][4] = {};
        unsigned p[NQ][2];
        w.scores(score);
        w.k.fetch(keys, first + WARPS * STEP, stop);
#pragma unroll
        for (int n = 0; n < NQ; n++)
            w.softmax(score[n], p[n], n, stop - first, a.by);
        w.add_values(p);
        w.v.fetch(values, first + WARPS * STEP, stop);
    }
    split_store<K, D, NQ>(w, a, session, s.keys <= length);
}

/* Combines the splits of a session. */
template <int D> __global__ void __launch_bounds__(D) attend_combine(split_args a, int all_splits)
{
    overlap_wait();
    const int session = blockIdx.x, row = blockIdx.y, rows = gridDim.y;
    const session_keys s = a.sessions[session];
    const int length = split_length(s.keys), n = (s.keys + length - 1) / length;
    const float *of = a.partial + (int64_t)all_splits * rows * D;
    float top = -INFINITY, total = 0, value = 0;
    if (n == 1)
        return;
    for (int i = 0; i < n; i++)
        top = fmaxf(top, of[2 * ((int64_t)(s.split + i) * rows + row)]);
    for (int i = 0; i < n; i++) {
        int64_t at = (int64_t)(s.split + i) * rows + row;
        float scale = power2((of[2 * at] - top) * a.by);
        total += of[2 * at + 1] * scale;
        value += a.partial[at * D + threadIdx.x] * scale;
    }
    store(a.y + session * a.y_stride + (int64_t)row * D + threadIdx.x, value / total);
}

/* ---- host ---------------------------------------------------------------------------------------- */

static struct attention queries_of(const struct attention *a, int first, int n)
{
    struct attention some = *a;
    some.q = tensor_rows(a->q, first, n);
    some.y = tensor_rows(a->y, first, n);
    some.ks = a->ks ? a->ks + first : nullptr;
    some.vs = a->vs ? a->vs + first : nullptr;
    some.past = a->ks ? a->past : a->past + first;
    return some;
}

/* Returns the queries from `first` on whose splits fit into the working memory; at least one. */
static struct attention queries_that_fit(const struct attention *a, int first, int64_t floats_each)
{
    int n = 0;
    for (int64_t splits = 0; first + n < a->q.rows; n++) {
        int keys = session_of(a, first + n).keys;
        splits += blocks_for(keys, split_length(keys));
        if (n && work_attend(n + 1, splits, floats_each).all > cuda_work_parts()->splits)
            break;
    }
    return queries_of(a, first, n);
}

template <class K, int D, int NQ> static void launch_some(struct backend *b, const struct attention *a)
{
    struct attention_table t = attend_table(b, a, int64_t{a->heads} * a->group * (D + 2));
    split_args p = {};
    p.sessions = t.sessions, p.owner = t.owner;
    p.q = static_cast<const bf16 *>(a->q.data), p.q_stride = a->q.stride;
    p.y = static_cast<bf16 *>(a->y.data), p.y_stride = a->y.stride;
    p.partial = t.partial, p.group = a->group;
    p.by = 1.44269504f / sqrtf(static_cast<float>(a->d));
    size_t shared = WARPS * 8 * NQ * D * sizeof(float);
    allow_shared(attend_one_split<K, D, NQ>, shared);
    LAUNCH_OVERLAPPED((attend_one_split<K, D, NQ>), grid_of(t.splits, a->heads, blocks_for(a->group, 8 * NQ)),
                      THREADS, shared, b, p);
    if (t.splits == a->q.rows)
        return;
    LAUNCH_OVERLAPPED((attend_combine<D>), grid_of(a->q.rows, a->heads * a->group), D, 0, b, p, t.splits);
}

template <class K, int D, int NQ> static void launch(struct backend *b, const struct attention *a)
{
    for (int first = 0; first < a->q.rows;) {
        struct attention some = queries_that_fit(a, first, int64_t{a->heads} * a->group * (D + 2));
        launch_some<K, D, NQ>(b, &some);
        first += static_cast<int>(some.q.rows);
    }
}

template <class K> static void launch_sizes(struct backend *b, const struct attention *a)
{
    if (a->d == 256)
        launch<K, 256, 1>(b, a);
    else if (a->d == 128)
        (a->group <= 8 ? launch<K, 128, 1> : launch<K, 128, 2>)(b, a);
    else
        (a->group <= 8 ? launch<K, 64, 1> : launch<K, 64, 2>)(b, a);
}

static bool keys_aligned(const struct attention *a)
{
    if (!a->ks)
        return aligned(a->k) && aligned(a->v);
    for (int64_t i = 0; i < a->q.rows; i++)
        if (!aligned(a->ks[i]) || !aligned(a->vs[i]))
            return false;
    return true;
}

bool attend_split(struct backend *b, const struct attention *a)
{
    bool few = a->ks || a->q.rows == 1 || (a->q.rows <= FEW && a->past >= MANY_KEYS);
    if (!few || a->q.dtype != DT_BF16 || (a->d != 64 && a->d != 128 && a->d != 256) || a->group > 16 ||
        !aligned(a->q))
        return false;
    if (keys_aligned(a))
        return (a->k.dtype == DT_F8E4M3 ? launch_sizes<kv8> : launch_sizes<bf16>)(b, a), true;
    if (!a->ks || a->q.rows == 1)
        return false;
    for (int i = 0; i < a->q.rows; i++) { /* the bits of a session must not depend on the others' alignment */
        const struct attention one = queries_of(a, i, 1);
        if (!attend_split(b, &one))
            attend_plain(b, &one);
    }
    return true;
}
