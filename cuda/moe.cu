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

/* Computes y[p] = epi(W_e x) for each choice p of the block's expert. */
template <int FORMAT, int NT>
__global__ __launch_bounds__(SUM_THREADS) void expert_rows(output y, view<const bf16> x, matrix<FORMAT> w,
                                                           int epi, choices c, chosen of)
{
    SHARED(uint4, room, (sum_room<FORMAT, NT>::WORDS));
    int e = expert_of(c);
    if (e < 0)
        return; /* safe: the whole block returns */
    w.at = of.table[e].at;
    w.scales = of.table[e].scales;
    for (int first = c.begin[e]; first < c.begin[e + 1]; first += 8 * NT) {
        multiply_tile<NT>(
            room, w, blockIdx.x, first, c.begin[e + 1],
            [&](int64_t p) { return x.row(of.row ? of.row[p] : p); },
            [&](int64_t p, int64_t n, float v) { y.put(p, n, v, epi, SET); });
        __syncthreads(); /* the sums are reused afterwards */
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

/* The matrices of a layer's experts, cached by the address of the host's list and compared with its
 * contents. */
struct table {
    std::vector<any_matrix> host;
    any_matrix *device;
    bool mixed; /* more than one format */
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

static table &table_for(struct backend *b, struct weight *const *list, int count)
{
    struct tables *&all = products_of(b)->tables;
    if (!all)
        all = new tables();
    table &t = all->of_list[{list, count}];
    size_t bytes = static_cast<size_t>(count) * sizeof(any_matrix);
    if (!t.device) {
        t.host.resize(static_cast<size_t>(count));
        CUDA(cudaMalloc(reinterpret_cast<void **>(&t.device), bytes));
    }
    const any_matrix first = any_matrix_of(list[0]);
    bool same = true;
    t.mixed = false;
    for (int i = 0; i < count; i++) {
        any_matrix &had = t.host[static_cast<size_t>(i)], now = any_matrix_of(list[i]);
        if (now.rows != first.rows || now.cols != first.cols)
            bug("the matrix of expert %d differs in shape from that of expert 0", i);
        t.mixed |= now.format != first.format || now.full != first.full;
        same &= had.at == now.at && had.scales == now.scales && had.format == now.format;
        had = now;
    }
    if (!same) {
        CUDA(cudaMemcpyAsync(t.device, t.host.data(), bytes, cudaMemcpyHostToDevice, cuda_of(b)->stream));
        CUDA(cudaStreamSynchronize(cuda_of(b)->stream));
    }
    return t;
}

/* ---- experts ------------------------------------------------------------------------------------------- */

template <int FORMAT>
static void launch_experts(struct backend *b, const struct product &p, const choices &c, const chosen &of)
{
    auto kernel = c.count < 4 * c.experts ? expert_rows<FORMAT, 1> : expert_rows<FORMAT, 2>;
    LAUNCH(kernel, grid_of(blocks_for(p.y.cols, TILE), least(c.count, c.experts)), SUM_THREADS, 0, b,
           output_of(p.y), view_of<const bf16>(p.x), matrix_of<FORMAT>(p.w), (int)p.epi, c, of);
}

/* Multiplies x by up, gate or down into y, which has a row for each choice. rows: see struct chosen. */
static void run_product(struct backend *b, struct tensor y, struct tensor x, const int32_t *rows,
                        struct weight *const *list, enum epilogue epi, const choices &c)
{
    const table &t = table_for(b, list, c.experts);
    const struct product p = {y, x, list[0], nullptr, epi, SET};
    const chosen of = {t.device, c.expert, rows};
    if (t.mixed || !suits_tensor_cores(p))
        scalar_product(b, p, of);
    else
        WITH_FORMAT(F, list[0]->format, launch_experts<F>(b, p, c, of));
}

/* Processes the rows in parts whose results fit into the working memory. */
static void run_part(struct backend *b, struct tensor y, struct tensor x, struct tensor ids,
                     struct tensor weights, const struct experts *e)
{
    int64_t count = ids.rows * ids.cols, width = e->up[0]->rows;
    const struct work_experts r = work_experts(count, e->count, width, y.cols, x.dtype);
    char *p = static_cast<char *>(cuda_scratch(b, r.all));
    auto list = [&](int i) { return reinterpret_cast<int32_t *>(p + static_cast<size_t>(i) * r.list); };
    choices c = {list(0), list(1), list(2), list(3), static_cast<int>(count), e->count};
    struct tensor inner = {p + 4 * r.list, x.dtype, count, width, width};
    struct tensor results = {p + 4 * r.list + r.inner, DT_F32, count, y.cols, y.cols};
    LAUNCH(sort_choices, grid_of(e->count), WARP, 0, b, c, view_of<const int32_t>(ids));
    run_product(b, inner, x, c.row, e->up, e->gate ? EPI_NONE : EPI_RELU2, c);
    if (e->gate) { /* memory that the results use afterwards */
        struct tensor gate = {results.data, x.dtype, count, width, width};
        run_product(b, gate, x, c.row, e->gate, EPI_NONE, c);
        b->ops->swiglu(b, inner, gate, inner);
    }
    run_product(b, results, inner, nullptr, e->down, EPI_NONE, c);
    WITH_TYPE(Y, y.dtype,
              LAUNCH((gather<Y>), grid_of(y.rows), 256, 0, b, view_of<Y>(y), view_of<const float>(weights),
                     static_cast<const float *>(results.data), c));
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
