/* moe.cu - mixture of experts: router, sorting of the choices by expert, and matrix products of the
 * selected experts.
 *
 * A choice is a pair of a row and one of its experts. The choices are sorted by expert, and by row within
 * an expert, so that the weights of an expert are read once for up to 16 of its rows. A block has 16 rows
 * of one expert's matrix, which it reads from the cache for further rows of x. The inner activations have
 * the order of the choices, and so do the f32 results. Finally each row gathers its own results in the
 * order of j. The sums of a row are those of matvec.cu, independent of the other rows: its bits do not
 * depend on them.
 *
 *     sort     one warp per expert scans all ids; the number of smaller ids is the offset of its choices
 *     up       x of a choice -> inner (squared), by expert; or up and gate -> inner, by SwiGLU
 *     down     inner -> results, by expert
 *     gather   y = sum of the results of a row multiplied by its weights
 *
 * With few choices, one block of up and down is assigned to each choice that is the first of its expert;
 * with many choices, one to each expert. A single row therefore starts k times as many blocks as one
 * matrix instead of E times as many. Rows are processed in parts whose results fit into the working memory
 * (ops/work.h). */
#include "blocks.cuh"
#include "linear.cuh"

#include <map>
#include <math.h>
#include <utility>
#include <vector>

/* ---- router -------------------------------------------------------------------------------------------- */

enum { MOST_EACH = 32, MOST_EXPERTS = MOST_EACH * WARP }; /* experts per lane: lane, lane + 32, ... */

/* Reduces over a warp to the largest value with the smallest index among equals, in all lanes. */
struct best {
    float value;
    int index;
};

__device__ __forceinline__ best warp_best(best b)
{
#pragma unroll
    for (int lane = WARP / 2; lane > 0; lane /= 2) {
        best o = {__shfl_xor_sync(ALL_LANES, b.value, lane), __shfl_xor_sync(ALL_LANES, b.index, lane)};
        if (o.value > b.value || (o.value == b.value && o.index < b.index))
            b = o;
    }
    return b;
}

/* Returns the maximum of v[first, first + n) in shared memory, except for index `but`. */
__device__ __forceinline__ best best_of(const float *v, int first, int n, int but)
{
    best b = {-INFINITY, 0x7fffffff};
    for (int i = first + (int)threadIdx.x; i < first + n; i += WARP)
        if (i != but && (v[i] > b.value || b.index == 0x7fffffff))
            b = best{v[i], i};
    return warp_best(b);
}

/* Keeps the groups with the largest sums of their two best scores, and sets the scores of the others to
 * -inf. */
__device__ void drop_groups(float *choice, float *sums, const route_shape &s)
{
    int size = s.experts / s.groups, lane = threadIdx.x;
    for (int g = 0; g < s.groups; g++) {
        best first = best_of(choice, g * size, size, -1),
             second = best_of(choice, g * size, size, first.index);
        if (lane == 0)
            sums[g] = first.value + second.value;
    }
    __syncwarp();
    for (int i = 0; i < s.groups_kept; i++) {
        best b = best_of(sums, 0, s.groups, -1);
        __syncwarp();
        if (lane == 0)
            sums[b.index] = -INFINITY;
        __syncwarp();
    }
    for (int e = lane; e < s.experts; e += WARP)
        if (sums[e / size] > -INFINITY)
            choice[e] = -INFINITY;
    __syncwarp();
}

/* Routes one row; the block is one warp. */
__global__ void route(view<int32_t> ids, view<float> weights, view<const float> logits, const float *bias,
                      route_shape s)
{
    DYNAMIC_SHARED(float, choice);
    float *score = choice + s.experts, *sums = score + s.experts, total = 0;
    int lane = threadIdx.x, found = 0;
    const float *from = logits.row(blockIdx.x);
    float most = -INFINITY, all = 0;
    for (int e = lane; e < s.experts; e += WARP)
        most = fmaxf(most, from[e]);
    most = warp_max(most);
    for (int e = lane; e < s.experts; e += WARP) {
        score[e] = s.softmax ? expf(from[e] - most) : 1.0f / (1.0f + expf(-from[e]));
        all += score[e];
    }
    all = warp_sum(all);
    for (int e = lane; e < s.experts; e += WARP) {
        score[e] /= s.softmax ? all : 1.0f;
        choice[e] = score[e] + (bias ? bias[e] : 0.0f);
        if (choice[e] != choice[e])
            choice[e] = -1e30f; /* prevents selecting an expert twice */
    }
    __syncwarp();
    if (s.groups > 1)
        drop_groups(choice, sums, s);
    unsigned mine = 0; /* which of this lane's experts are selected */
    for (int j = 0; j < s.chosen; j++) {
        best b = best_of(choice, 0, s.experts, -1);
        __syncwarp();
        if (b.index % WARP == lane) {
            choice[b.index] = -INFINITY;
            mine |= 1u << b.index / WARP;
        }
        __syncwarp();
    }
    int32_t *id = ids.row(blockIdx.x);
    for (int i = 0; i * WARP < s.experts; i++) { /* in ascending order */
        unsigned here = __ballot_sync(ALL_LANES, (int)(mine >> i & 1));
        if (mine >> i & 1)
            id[found + __popc(here & ((1u << lane) - 1))] = i * WARP + lane;
        for (unsigned left = here; left; left &= left - 1)
            total += score[i * WARP + __ffs((int)left) - 1];
        found += __popc(here);
    }
    __syncwarp();
    for (int j = lane; j < s.chosen; j += WARP)
        weights.row(blockIdx.x)[j] = score[id[j]] / (s.normalise ? total + 1e-20f : 1.0f) * s.scale;
}

static void cuda_route(struct backend *b, struct tensor ids, struct tensor weights, struct tensor logits,
                       struct tensor bias, const struct route_shape *s)
{
    if (s->experts > MOST_EXPERTS)
        bug("%d experts; at most %d are supported", s->experts, (int)MOST_EXPERTS);
    size_t bytes = (2 * static_cast<size_t>(s->experts) + static_cast<size_t>(s->groups)) * sizeof(float);
    LAUNCH(route, grid_of(logits.rows), WARP, bytes, b, view_of<int32_t>(ids), view_of<float>(weights),
           view_of<const float>(logits), static_cast<const float *>(bias.data), *s);
}

/* ---- sorting ---------------------------------------------------------------------------------------- */

struct choices {
    int32_t *begin;  /* [E + 1] */
    int32_t *expert; /* expert of entry p in the sorted order */
    int32_t *row;    /* its row of x */
    int32_t *place;  /* entry of choice t * k + j */
    int count, experts;
};

/* Sorts the choices of one expert; the block is one warp. */
__global__ void sort_choices(choices c, view<const int32_t> ids)
{
    int e = blockIdx.x, lane = threadIdx.x, k = (int)ids.cols, smaller = 0, at;
    for (int first = 0; first < c.count; first += WARP) {
        int i = first + lane, id = i < c.count ? ids.row(i / k)[i % k] : 0x7fffffff;
        smaller += __popc(__ballot_sync(ALL_LANES, id < e));
    }
    at = smaller;
    for (int first = 0; first < c.count; first += WARP) {
        int i = first + lane;
        bool is = i < c.count && ids.row(i / k)[i % k] == e;
        unsigned all = __ballot_sync(ALL_LANES, is);
        if (is) {
            int p = at + __popc(all & ((1u << lane) - 1));
            c.place[i] = p;
            c.row[p] = i / k;
            c.expert[p] = e;
        }
        at += __popc(all);
    }
    if (lane == 0) {
        c.begin[e] = smaller;
        if (e == c.experts - 1)
            c.begin[e + 1] = at;
    }
}

/* Returns the expert of a block from its grid row, or -1 if it has no work. */
__device__ __forceinline__ int expert_of(const choices &c)
{
    int i = blockIdx.y;
    if ((int)gridDim.y == c.experts)
        return i;
    return c.begin[c.expert[i]] == i ? c.expert[i] : -1;
}

/* ---- products ------------------------------------------------------------------------------------------ */

struct pointers { /* matrix of an expert */
    const void *at;
    const float *scales;
};

enum result { SQUARED, ROUNDED, SUMS /* f32 */ };

/* Computes out[p] = W_e x for each choice p of the block's expert. The row of x is that of the choice, or
 * p if `rows` is NULL. out has the type of x or f32. */
template <int FORMAT, int NT>
__global__ __launch_bounds__(SUM_THREADS) void expert_rows(void *out, view<const bf16> x, const int32_t *rows,
                                                           choices c, matrix<FORMAT> w, const pointers *table,
                                                           result as)
{
    SHARED(uint4, room, (sum_room<FORMAT, NT>::WORDS));
    int e = expert_of(c);
    int64_t tile = blockIdx.x;
    if (e < 0)
        return; /* safe: the whole block returns */
    w.at = table[e].at;
    w.scales = table[e].scales;
    for (int first = c.begin[e]; first < c.begin[e + 1]; first += 8 * NT) {
        int end = first + 8 * NT < c.begin[e + 1] ? first + 8 * NT : c.begin[e + 1];
        columns<NT> cols;
        cols.cols = x.cols;
#pragma unroll
        for (int n = 0; n < NT; n++) {
            int p = first + 8 * n + threadIdx.x % WARP / 4;
            cols.row[n] = p < end ? x.row(rows ? rows[p] : p) : nullptr;
        }
        const float *sums = sum_tile<NT>(room, w, tile, cols);
        for (int i = threadIdx.x; i < 8 * NT * TILE; i += SUM_THREADS) {
            int64_t p = first + i / TILE, n = tile * TILE + i % TILE;
            if (p >= end || n >= w.rows)
                continue;
            float v = sum_of_warps<NT>(sums, i) * w.scale(n);
            if (as == SUMS)
                static_cast<float *>(out)[p * w.rows + n] = v;
            else
                store_epilogue(static_cast<bf16 *>(out) + p * w.rows + n, v,
                               as == SQUARED ? EPI_RELU2 : EPI_NONE, SET);
        }
        __syncthreads(); /* the sums are reused afterwards */
    }
}

/* Computes the same for formats with records, unaligned rows and f32: one warp per row of a matrix and NEAR
 * choices. Codes are read again only if the next choice has another expert. */
enum { NEAR = 8, PLAIN_WARPS = 4 };

template <class X>
__global__ __launch_bounds__(PLAIN_WARPS *WARP) void expert_plain(void *out, view<const X> x,
                                                                  const int32_t *rows, choices c,
                                                                  any_matrix w, const pointers *table,
                                                                  result as)
{
    int64_t n = (int64_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP, first = blockIdx.y * NEAR;
    if (n >= w.rows)
        return; /* safe: the whole warp returns, and no barrier follows */
    for (; first < c.count; first += gridDim.y * NEAR) {
        int some = c.count - first < NEAR ? (int)(c.count - first) : (int)NEAR;
        float sum[NEAR] = {}, v[RUN];
        for (int64_t k = threadIdx.x % WARP * RUN; k < x.cols; k += WARP * RUN)
#pragma unroll
            for (int i = 0; i < NEAR; i++) {
                int64_t p = first + i;
                if (i >= some)
                    break;
                w.at = table[c.expert[p]].at;
                if (i == 0 || c.expert[p] != c.expert[p - 1])
                    w.run(v, n, k);
                sum[i] += w.dot(v, x.row(rows ? rows[p] : p), k);
            }
#pragma unroll
        for (int i = 0; i < NEAR; i++) {
            int64_t p = first + i;
            if (i >= some)
                break;
            w.scales = table[c.expert[p]].scales;
            float all = warp_sum(sum[i]) * w.scale(n);
            if (threadIdx.x % WARP == 0 && as == SUMS)
                static_cast<float *>(out)[p * w.rows + n] = all;
            else if (threadIdx.x % WARP == 0)
                store_epilogue(static_cast<X *>(out) + p * w.rows + n, all,
                               as == SQUARED ? EPI_RELU2 : EPI_NONE, SET);
        }
    }
}

template <class Y>
__global__ void gather(view<Y> y, view<const float> weights, const float *results, choices c)
{
    const int32_t *place = c.place + (int64_t)blockIdx.x * weights.cols;
    const float *share = weights.row(blockIdx.x);
    for (int64_t n = threadIdx.x; n < y.cols; n += blockDim.x) {
        float sum = 0;
        for (int64_t j = 0; j < weights.cols; j++)
            sum += share[j] * results[place[j] * y.cols + n];
        store(y.row(blockIdx.x) + n, sum);
    }
}

/* ---- tables on the device ------------------------------------------------------------------------------ */

/* Pointers to the experts of a layer, cached by the address of the host's list and compared with its
 * contents. */
struct table {
    std::vector<pointers> host;
    pointers *device;
};

struct tables {
    std::map<std::pair<struct weight *const *, int>, table> of_list;
};

void tables_close(struct tables *t)
{
    if (t)
        for (auto &each : t->of_list)
            cudaFree(each.second.device);
    delete t;
}

static table &table_of(struct backend *b, struct weight *const *list, int count)
{
    struct tables *&all = products_of(b)->tables;
    if (!all)
        all = new tables();
    table &t = all->of_list[{list, count}];
    if (!t.device) {
        t.host.resize(static_cast<size_t>(count));
        CUDA(cudaMalloc(reinterpret_cast<void **>(&t.device), t.host.size() * sizeof(pointers)));
    }
    return t;
}

static const pointers *pointers_of(struct backend *b, struct weight *const *list, int count)
{
    table &t = table_of(b, list, count);
    const struct weight *w = list[0];
    bool same = true;
    for (int i = 0; i < count; i++) {
        const struct weight *v = list[i];
        const pointers p = {v->format == QUANT_NONE ? v->plain.data : v->bytes, v->scales};
        if (v->format != w->format || v->rows != w->rows || v->cols != w->cols ||
            v->plain.dtype != w->plain.dtype)
            bug("the matrix of expert %d differs in format or shape from that of expert 0", i);
        same &= t.host[i].at == p.at && t.host[i].scales == p.scales;
        t.host[i] = p;
    }
    if (!same) {
        CUDA(cudaMemcpyAsync(t.device, t.host.data(), static_cast<size_t>(count) * sizeof(pointers),
                             cudaMemcpyHostToDevice, cuda_of(b)->stream));
        CUDA(cudaStreamSynchronize(cuda_of(b)->stream));
    }
    return t.device;
}

/* ---- experts ------------------------------------------------------------------------------------------- */

struct expert_product { /* up, gate or down */
    void *out;
    struct tensor x;
    const int32_t *rows;
    const struct weight *w; /* any of them: all have its shape */
    const pointers *table;
    result as;
};

template <int FORMAT, int NT>
static void launch_experts(struct backend *b, const expert_product &s, const choices &c)
{
    unsigned groups = static_cast<unsigned>(c.count < c.experts ? c.count : c.experts);
    dim3 grid(blocks_for(s.w->rows, TILE), groups);
    LAUNCH((expert_rows<FORMAT, NT>), grid, SUM_THREADS, 0, b, s.out, view_of<const bf16>(s.x), s.rows, c,
           matrix_of<FORMAT>(s.w), s.table, s.as);
}

template <int FORMAT> static void launch_width(struct backend *b, const expert_product &s, const choices &c)
{
    (c.count < 4 * c.experts ? launch_experts<FORMAT, 1> : launch_experts<FORMAT, 2>)(b, s, c);
}

template <class X> static void launch_plain(struct backend *b, const expert_product &s, const choices &c)
{
    dim3 grid = grid_of(blocks_for(s.w->rows, PLAIN_WARPS), least((c.count + NEAR - 1) / NEAR, 65535));
    LAUNCH((expert_plain<X>), grid, PLAIN_WARPS * WARP, 0, b, s.out, view_of<const X>(s.x), s.rows, c,
           any_matrix_of(s.w), s.table, s.as);
}

static void run_product(struct backend *b, const expert_product &s, const choices &c)
{
    bool plain = s.w->format == QUANT_NONE;
    if (s.x.dtype != DT_BF16 || !rows_aligned16(s.x) || has_records(s.w) ||
        (plain && s.w->plain.dtype == DT_F32))
        WITH_TYPE(X, s.x.dtype, launch_plain<X>(b, s, c));
    else if (plain)
        launch_width<QUANT_NONE>(b, s, c);
    else
        WITH_FORMAT(F, s.w->format, launch_width<F>(b, s, c));
}

/* Processes the rows in parts whose results fit into the working memory. */
static void run_part(struct backend *b, struct tensor y, struct tensor x, struct tensor ids,
                     struct tensor weights, const struct experts *e)
{
    int64_t count = ids.rows * ids.cols, width = e->up[0]->rows;
    const struct work_experts r = work_experts(count, e->count, width, y.cols, x.dtype);
    char *p = static_cast<char *>(cuda_scratch(b, r.all));
    choices c = {reinterpret_cast<int32_t *>(p),
                 reinterpret_cast<int32_t *>(p + r.list),
                 reinterpret_cast<int32_t *>(p + 2 * r.list),
                 reinterpret_cast<int32_t *>(p + 3 * r.list),
                 static_cast<int>(count),
                 e->count};
    struct tensor inner = {p + 4 * r.list, x.dtype, count, width, width};
    float *results = reinterpret_cast<float *>(p + 4 * r.list + r.inner);
    LAUNCH(sort_choices, grid_of(e->count), WARP, 0, b, c, view_of<const int32_t>(ids));
    result as = e->gate ? ROUNDED : SQUARED;
    run_product(b, expert_product{inner.data, x, c.row, e->up[0], pointers_of(b, e->up, e->count), as}, c);
    if (e->gate) { /* memory that the results use afterwards */
        struct tensor gate = {results, x.dtype, count, width, width};
        run_product(b, expert_product{results, x, c.row, e->gate[0], pointers_of(b, e->gate, e->count), as},
                    c);
        b->ops->swiglu(b, inner, gate, inner);
    }
    run_product(
        b, expert_product{results, inner, nullptr, e->down[0], pointers_of(b, e->down, e->count), SUMS}, c);
    WITH_TYPE(Y, y.dtype,
              LAUNCH((gather<Y>), grid_of(y.rows), 256, 0, b, view_of<Y>(y), view_of<const float>(weights),
                     static_cast<const float *>(results), c));
}

static void cuda_experts(struct backend *b, struct tensor y, struct tensor x, struct tensor ids,
                         struct tensor weights, const struct experts *e)
{
    int64_t rows = work_expert_rows(cuda_work_parts(), ids.cols, e->up[0]->rows, y.cols, x.dtype);
    for (int64_t t = 0; t < x.rows; t += rows) {
        int64_t n = least(x.rows - t, rows);
        run_part(b, tensor_rows(y, t, n), tensor_rows(x, t, n), tensor_rows(ids, t, n),
                 tensor_rows(weights, t, n), e);
    }
}

void moe_fill(struct ops *o)
{
    o->route = cuda_route;
    o->experts = cuda_experts;
}
