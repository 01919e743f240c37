/* attend_plain.cu - attention of any sizes in f32, for tests and for head sizes that the fast kernels do
 * not support.
 *
 * A block computes one query of one head. It processes as many keys at a time as it has threads: each
 * thread computes one score, then sums every THREADS-th channel. Each query reads all keys and values
 * again, without sharing. */
#include "attend.cuh"

enum { THREADS = 128 };

struct plain {
    const session_keys *sessions; /* KV cache of each query, or NULL: use `one` */
    session_keys one;             /* KV cache of all tiles */
    int n, past, group, d;
};

template <class T> __device__ __forceinline__ float key_value(const key_rows<T> &rows, int s, int c)
{
    return number(rows.row(s)[c]);
}

__device__ __forceinline__ float key_value(const key_rows<kv8> &rows, int s, int c)
{
    unsigned pair = kv8_pair(rows.row(s)[c].byte << 8, kv8_multiplier(rows.scale(s)));
    return __uint_as_float(pair << 16);
}

template <class T, class K> __global__ void attend_rows(view<T> y, view<T> q, plain a)
{
    DYNAMIC_SHARED(float, own);
    float *query = own, *out = query + a.d, *p = out + a.d;
    int row = blockIdx.x, head = blockIdx.y, tile = row / a.n, t = row % a.n;
    session_keys s = a.sessions ? a.sessions[row] : a.one;
    int64_t shift = a.sessions ? 0 : (int64_t)tile * s.keys;
    int stop = a.past < 0 ? s.keys : min(s.keys, a.past + t + 1);
    const int heads = gridDim.y / a.group, of = head / a.group;
    const key_rows<K> keys(static_cast<const K *>(s.k) + shift * s.k_stride, s.k_stride, heads, a.d, of),
        values(static_cast<const K *>(s.v) + shift * s.v_stride, s.v_stride, heads, a.d, of);
    for (int c = threadIdx.x; c < a.d; c += THREADS) {
        query[c] = number(q.row(row)[(int64_t)head * a.d + c]) / sqrtf((float)a.d);
        out[c] = 0;
    }
    __syncthreads();
    float most = -INFINITY, sum = 0;
    for (int first = 0; first < stop; first += THREADS) {
        int n = min(stop - first, (int)THREADS);
        float score = -INFINITY;
        if ((int)threadIdx.x < n) {
            score = 0;
            for (int c = 0; c < a.d; c++)
                score += query[c] * key_value(keys, first + threadIdx.x, c);
        }
        float now = fmaxf(most, block_max(score)), scale = expf(most - now);
        p[threadIdx.x] = expf(score - now); /* block_max has waited until the previous ones were read */
        sum = sum * scale + block_sum(p[threadIdx.x]);
        for (int c = threadIdx.x; c < a.d; c += THREADS) {
            float add = 0;
            for (int i = 0; i < n; i++)
                add += p[i] * key_value(values, first + i, c);
            out[c] = out[c] * scale + add;
        }
        most = now;
    }
    for (int c = threadIdx.x; c < a.d; c += THREADS)
        store(y.row(row) + (int64_t)head * a.d + c, out[c] / sum);
}

template <class T, class K>
static void launch(struct backend *b, const struct attention *a, const plain &p, size_t shared)
{
    dim3 grid = grid_of(a->q.rows, a->heads * a->group);
    LAUNCH((attend_rows<T, K>), grid, THREADS, shared, b, view_of<T>(a->y), view_of<T>(a->q), p);
}

void attend_plain(struct backend *b, const struct attention *a)
{
    const session_keys *sessions = a->ks ? attend_table(b, a, 0).sessions : nullptr;
    plain p = {sessions, session_keys{a->k.data, a->v.data, a->k.stride, a->v.stride, a->keys, 0},
               a->n,     a->past,
               a->group, a->d};
    size_t shared = (2 * static_cast<size_t>(a->d) + THREADS) * sizeof(float);
    if (shared > 48 << 10)
        bug("attention with heads of %d", a->d);
    WITH_TYPE(T, a->q.dtype, (a->k.dtype == DT_F8E4M3 ? launch<T, kv8> : launch<T, T>)(b, a, p, shared));
}
