/* sample.cu - sampling of the next token on the GPU, with temperature, top-p and token masks.
 *
 * A row of logits (512 KiB for 131072 tokens) stays on the GPU, and only a token and two sums are copied to
 * the host. All arithmetic is exact, on integers (ops/sampling.h). Blocks may therefore add in any order, and
 * the result has the same id and bits as on the host.
 *
 *     survey        finds the largest logit of the known and of the allowed ids, packed with the lower id
 *     weigh         sums their weights; a greedy choice is complete then
 *     select_digit  radix select: finds one digit of the key of the candidate at which the running sum passes
 *                   the drawn number, by a histogram of weights per digit. The last block to finish finds the
 *                   bin. Runs once per digit of a key; with top_p, as often before, to find the mass to keep
 *
 * Each kernel reads the row once: twice 4 V + V / 8 bytes (7 or 12 times with a temperature). All reads but
 * the first come from the cache, and V / SLICE blocks share a row.
 *
 * Masks are cached on the GPU by their hash: the mask of known ids never changes, and a grammar uses few
 * different masks in a text. A new mask is one copy of V / 8 bytes from pinned memory, which does not wait
 * for the preceding step. Data that differs between steps is copied to the GPU before a graph that samples,
 * and the results are copied back at its end. The host waits once for up to WORK_SAMPLED_ROWS rows. */
#include "host.cuh"

#include <math.h>
#include <string.h>

extern "C" {
#include "ops/sampling.h"
}

#include <xxhash.h>

enum { THREADS = 256, SLICE = 2048, EACH = SAMPLING_BINS / THREADS };

typedef unsigned long long sum; /* type required by the atomic functions */

struct sampling_row {
    const uint64_t *known, *allowed; /* allowed may be the same as known */
    double rate;                     /* 0: greedy */
    double random;
    float top_p;
    int searches; /* 0, 1, or 2 with top_p */
};

struct sampling_state { /* zero-initialized */
    sum best, best_allowed;
    sum mass, mass_allowed, mass_drawn;
    sum kept;               /* probability mass from which the token is drawn, once known */
    sum target, sum_before; /* target of the search; sum of the bins below the prefix */
    sum prefix;
    int searched, level;
    unsigned blocks_done;
    int id;
    float logit;
};

/* Data exchanged between host and device, with a copy on each side. Its addresses are the same in each
 * step, so that a replayed graph has unchanged arguments. */
struct exchange {
    sampling_row rows[WORK_SAMPLED_ROWS];     /* to the device */
    sampling_state states[WORK_SAMPLED_ROWS]; /* from the device */
};

struct masks {
    uint64_t *on_card, *staged; /* [WORK_MASKS][words]; staged: pinned */
    size_t words;
    struct exchange *there, *here; /* on the device; pinned */
    int rows, searches;            /* dimensions of the staged data */
    cudaEvent_t done;              /* signals that the results have arrived */
    struct {
        XXH128_hash_t hash;
        uint64_t used; /* 0: never */
    } slot[WORK_MASKS];
    uint64_t clock;
};

/* ---- kernels ------------------------------------------------------------------------------------------- */

/* Maps logits to integers with the same order, in which the lower id wins among equals. NaN counts as
 * +inf, and 0 is below all. */
__device__ __forceinline__ sum order_of(float v, int id)
{
    unsigned u = __float_as_uint(v == 0 ? 0.0f : v == v ? v : INFINITY);
    u = u & 0x80000000u ? ~u : u | 0x80000000u;
    return (sum)u << 32 | (0xffffffffu - (unsigned)id);
}

__host__ __device__ __forceinline__ int order_id(sum order)
{
    return (int)(0xffffffffu - (unsigned)(order & 0xffffffffu));
}

__host__ __device__ __forceinline__ float order_logit(sum order)
{
    unsigned u = (unsigned)(order >> 32);
    u = u & 0x80000000u ? u & 0x7fffffffu : ~u;
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* Returns whether at least one id is allowed and all logits are numbers. */
__host__ __device__ __forceinline__ bool can_sample(const sampling_state &s)
{
    const sum finite = (sum)0xff800000u << 32,
              numbers = (sum)0x00800000u << 32; /* above the key of +inf; the key of -inf */
    return s.best_allowed >= numbers && s.best < finite;
}

/* Calls f for the known ids of the block's slice. */
template <class F> __device__ __forceinline__ void each_known(const sampling_row &r, int64_t ids, F f)
{
    int end = min((int)ids, (int)(blockIdx.x + 1) * SLICE);
    for (int i = blockIdx.x * SLICE + threadIdx.x; i < end; i += THREADS)
        if (sampling_has(r.known, i))
            f(i);
}

__global__ void survey(view<const float> logits, const sampling_row *rows, sampling_state *states)
{
    const sampling_row r = rows[blockIdx.y];
    const float *row = logits.row(blockIdx.y);
    sum best = 0, best_allowed = 0;
    each_known(r, logits.cols, [&](int i) {
        sum order = order_of(row[i], i);
        best = max(best, order);
        if (sampling_has(r.allowed, i))
            best_allowed = max(best_allowed, order);
    });
    best = warp_max(best);
    best_allowed = warp_max(best_allowed);
    if (threadIdx.x % WARP == 0) {
        atomicMax(&states[blockIdx.y].best, best);
        atomicMax(&states[blockIdx.y].best_allowed, best_allowed);
    }
}

__global__ void weigh(view<const float> logits, const sampling_row *rows, sampling_state *states)
{
    const sampling_row r = rows[blockIdx.y];
    const float *row = logits.row(blockIdx.y);
    sampling_state *s = &states[blockIdx.y];
    if (!can_sample(*s))
        return;
    const float largest = order_logit(s->best), largest_allowed = order_logit(s->best_allowed);
    const double one = sampling_rate(1);
    sum mass = 0, mass_allowed = 0, mass_drawn = 0;
    each_known(r, logits.cols, [&](int i) {
        mass += sampling_weight(sampling_fall(largest - row[i], one));
        if (!sampling_has(r.allowed, i))
            return;
        mass_allowed += sampling_weight(sampling_fall(largest_allowed - row[i], one));
        if (r.searches)
            mass_drawn += sampling_weight(sampling_fall(largest_allowed - row[i], r.rate));
    });
    mass = warp_sum(mass);
    mass_allowed = warp_sum(mass_allowed);
    mass_drawn = warp_sum(mass_drawn);
    if (threadIdx.x % WARP == 0) {
        atomicAdd(&s->mass, mass);
        atomicAdd(&s->mass_allowed, mass_allowed);
        atomicAdd(&s->mass_drawn, mass_drawn);
    }
}

/* Computes the exclusive prefix sum over the block. */
__device__ __forceinline__ sum sums_before(sum v)
{
    sum all, before = sum_before(v, &all);
    const sum *of_warp = share_with_block(all);
    for (int w = 0; w < (int)threadIdx.x / WARP; w++)
        before += of_warp[w];
    return before;
}

/* Continues the search in the thread that found the digit: with the next digit, the next search, or the
 * end. */
__device__ __forceinline__ void found_digit(const sampling_row &r, const float *row, sampling_state *s,
                                            int bin, sum before)
{
    s->prefix = s->prefix << SAMPLING_DIGIT | (sum)bin;
    s->sum_before = before;
    if (++s->level < SAMPLING_LEVELS)
        return;
    if (++s->searched < r.searches) {
        s->kept = before + sampling_key_weight(s->prefix);
    } else {
        s->id = sampling_key_id(s->prefix);
        s->logit = row[s->id];
    }
    s->level = 0;
    s->prefix = s->sum_before = 0;
}

/* Finds the bin of the drawn number, in the last block to finish. */
__device__ __forceinline__ void find_bin(const sampling_row &r, const float *row, sampling_state *s,
                                         sum *bins)
{
    volatile sum *all = bins; /* other blocks wrote them in this launch */
    sum mine[EACH], total = 0, target = s->target, before = s->sum_before;
    if (s->level == 0)
        target = r.searches - s->searched == 2
                     ? sampling_last(r.top_p, s->mass_drawn)
                     : sampling_drawn(r.random, s->searched ? s->kept : s->mass_drawn);
    for (int k = 0; k < EACH; k++) {
        mine[k] = all[threadIdx.x * EACH + k];
        all[threadIdx.x * EACH + k] = 0;
        total += mine[k];
    }
    before += sums_before(total); /* contains a barrier: all threads have read the state */
    if (target < before || target >= before + total)
        return;
    s->target = target;
    int k = 0;
    while (before + mine[k] <= target)
        before += mine[k++];
    found_digit(r, row, s, (int)threadIdx.x * EACH + k, before);
}

__global__ void select_digit(view<const float> logits, const sampling_row *rows, sampling_state *states,
                             sum *all_bins)
{
    SHARED(sum, bins, SAMPLING_BINS);
    const sampling_row r = rows[blockIdx.y];
    const float *row = logits.row(blockIdx.y);
    sampling_state *s = &states[blockIdx.y];
    sum *row_bins = all_bins + (int64_t)blockIdx.y * SAMPLING_BINS;
    if (!can_sample(*s) || s->searched >= r.searches)
        return;
    for (int k = threadIdx.x; k < SAMPLING_BINS; k += THREADS)
        bins[k] = 0;
    __syncthreads();
    const float largest = order_logit(s->best_allowed);
    const int shift = (SAMPLING_LEVELS - 1 - s->level) * SAMPLING_DIGIT;
    each_known(r, logits.cols, [&](int i) {
        if (!sampling_has(r.allowed, i))
            return;
        uint64_t fall = sampling_fall(largest - row[i], r.rate), key = sampling_key(fall, i);
        if (fall < SAMPLING_NOTHING && key >> shift >> SAMPLING_DIGIT == s->prefix)
            atomicAdd(&bins[key >> shift & (SAMPLING_BINS - 1)], (sum)sampling_weight(fall));
    });
    __syncthreads();
    for (int k = threadIdx.x; k < SAMPLING_BINS; k += THREADS)
        if (bins[k])
            atomicAdd(&row_bins[k], bins[k]);
    if (last_of(&s->blocks_done, gridDim.x))
        find_bin(r, row, s, row_bins);
}

/* ---- token masks ----------------------------------------------------------------------------------- */

static struct masks *masks_of(struct cuda *c)
{
    if (!c->masks)
        c->masks = new masks();
    return c->masks;
}

static void masks_free(struct backend *b, struct masks *m)
{
    CUDA(cudaFree(m->there)); /* waits for pending users */
    CUDA(cudaFree(m->on_card));
    cuda_of(b)->ops.host_free(b, m->here);
    cuda_of(b)->ops.host_free(b, m->staged);
    if (m->done)
        CUDA(cudaEventDestroy(m->done));
    *m = masks{};
}

/* Allocates memory for masks of this many words; the masks stored before are lost. */
static int masks_resize(struct backend *b, size_t words, struct err *e)
{
    struct masks *m = masks_of(cuda_of(b));
    const size_t bytes = WORK_MASKS * words * sizeof *m->on_card;
    masks_free(b, m);
    m->on_card = static_cast<uint64_t *>(cuda_try_memory(b, bytes, e));
    m->there = static_cast<exchange *>(m->on_card ? cuda_try_memory(b, WORK_EXCHANGE, e) : nullptr);
    if (!m->there)
        return -1;
    m->staged = static_cast<uint64_t *>(cuda_of(b)->ops.host_alloc(b, bytes));
    m->here = static_cast<exchange *>(cuda_of(b)->ops.host_alloc(b, sizeof *m->here));
    if (!m->staged || !m->here)
        return err_set(e, ERR_ENV, "GPU: cannot allocate pinned host memory for sampling");
    CUDA(cudaEventCreateWithFlags(&m->done, cudaEventDisableTiming));
    m->words = words;
    return 0;
}

int masks_open(struct backend *b, int64_t ids, struct err *e)
{
    size_t words = static_cast<size_t>(ids + 63) / 64;
    return words == 0 || masks_of(cuda_of(b))->words == words ? 0 : masks_resize(b, words, e);
}

void masks_close(struct backend *b)
{
    struct cuda *c = cuda_of(b);
    if (c->masks)
        masks_free(b, c->masks);
    delete c->masks;
}

/* Returns the device copy of a mask. The rows of one result use only masks among the last WORK_MASKS
 * requested ones, so that neither a copy nor its staging memory is overwritten while it is needed. */
static const uint64_t *mask_on_card(struct cuda *c, const uint64_t *set)
{
    struct masks *m = c->masks;
    const size_t bytes = m->words * sizeof *set;
    XXH128_hash_t hash = XXH3_128bits(set, bytes);
    size_t oldest = 0;
    for (size_t i = 0; i < WORK_MASKS; i++) {
        if (m->slot[i].used && XXH128_isEqual(m->slot[i].hash, hash)) {
            m->slot[i].used = ++m->clock;
            return m->on_card + i * m->words;
        }
        if (m->slot[i].used < m->slot[oldest].used)
            oldest = i;
    }
    uint64_t *to = m->on_card + oldest * m->words, *staged = m->staged + oldest * m->words;
    memcpy(staged, set, bytes);
    CUDA(cudaMemcpyAsync(to, staged, bytes, cudaMemcpyHostToDevice, c->stream));
    m->slot[oldest] = {hash, ++m->clock};
    return to;
}

/* ---- operation ------------------------------------------------------------------------------------- */

static sampling_row row_for(struct cuda *c, const struct sampler *how)
{
    sampling_row r = {};
    r.known = mask_on_card(c, how->known);
    r.allowed = how->allowed ? mask_on_card(c, how->allowed) : r.known;
    if (how->temperature > 0) {
        r.rate = sampling_rate(how->temperature);
        r.searches = how->top_p < 1 ? 2 : 1;
    }
    r.top_p = how->top_p;
    r.random = how->random;
    return r;
}

static struct sampled result_of(const sampling_state &s, const struct sampler *how)
{
    struct sampling_found f = {};
    bool chosen = can_sample(s);
    f.id = chosen ? how->temperature > 0 ? s.id : order_id(s.best_allowed) : -1;
    f.logit = how->temperature > 0 ? s.logit : order_logit(s.best_allowed);
    f.largest = order_logit(s.best);
    f.largest_allowed = order_logit(s.best_allowed);
    f.mass = s.mass;
    f.mass_allowed = s.mass_allowed;
    return sampling_result(&f);
}

static int sample_stage(struct backend *b, const struct sampler *how, int n, int64_t ids)
{
    static_assert(sizeof(exchange) <= WORK_EXCHANGE, "see work_masks");
    struct err e = ERR_INIT;
    struct cuda *c = cuda_of(b);
    if (n < 1 || n > WORK_SAMPLED_ROWS || ids < 1 || ids > 1 << SAMPLING_ID)
        bug("sampling %d rows of %lld logits", n, (long long)ids);
    if (masks_open(b, ids, &e))
        die(e.kind, "%s", e.text);
    struct masks *m = c->masks;
    m->rows = n;
    m->searches = 0;
    for (int t = 0; t < n; t++) {
        m->here->rows[t] = row_for(c, &how[t]);
        m->searches = m->here->rows[t].searches > m->searches ? m->here->rows[t].searches : m->searches;
    }
    CUDA(cudaMemcpyAsync(m->there->rows, m->here->rows, static_cast<size_t>(n) * sizeof *m->here->rows,
                         cudaMemcpyHostToDevice, c->stream));
    return m->searches;
}

/* Work in stream order other than kernels, which is also part of a graph. */
static void fill_zeros(struct cuda *c, void *at, size_t bytes)
{
    const size_t what[] = {reinterpret_cast<size_t>(at), bytes};
    cuda_also(c, what, sizeof what, [=] { CUDA(cudaMemsetAsync(at, 0, bytes, c->stream)); });
}

static void fetch(struct cuda *c, void *to, const void *from, size_t bytes)
{
    const size_t what[] = {reinterpret_cast<size_t>(to), reinterpret_cast<size_t>(from), bytes};
    cuda_also(c, what, sizeof what,
              [=] { CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, c->stream)); });
}

static void sample_run(struct backend *b, struct tensor logits)
{
    static_assert(sizeof(sampling_state) <= WORK_SAMPLING_STATE, "see work_masks");
    struct cuda *c = cuda_of(b);
    struct masks *m = c->masks;
    if (logits.dtype != DT_F32 || logits.rows != m->rows || (logits.cols + 63) / 64 != (int64_t)m->words)
        bug("sampling from %lld logits of %s", (long long)logits.cols, dtype_name(logits.dtype));
    const size_t n = static_cast<size_t>(m->rows);
    const view<const float> rows = {static_cast<const float *>(logits.data), logits.rows, logits.cols,
                                    logits.stride};
    sampling_state *states = m->there->states;
    const dim3 grid(blocks_for(logits.cols, SLICE), static_cast<unsigned>(n));
    fill_zeros(c, states, n * sizeof *states);
    LAUNCH(survey, grid, THREADS, 0, b, rows, m->there->rows, states);
    LAUNCH(weigh, grid, THREADS, 0, b, rows, m->there->rows, states);
    if (m->searches) {
        sum *bins = static_cast<sum *>(cuda_scratch(b, work_sampling(m->rows)));
        fill_zeros(c, bins, work_sampling(m->rows));
        for (int i = 0; i < m->searches * SAMPLING_LEVELS; i++)
            LAUNCH(select_digit, grid, THREADS, 0, b, rows, m->there->rows, states, bins);
    }
    fetch(c, m->here->states, states, n * sizeof *states);
}

static void sample_mark(struct backend *b)
{
    CUDA(cudaEventRecord(cuda_of(b)->masks->done, cuda_of(b)->stream));
}

static void sample_wait(struct backend *b, const struct sampler *how, struct sampled *out)
{
    struct masks *m = cuda_of(b)->masks;
    CUDA(cudaEventSynchronize(m->done));
    for (int t = 0; t < m->rows; t++)
        out[t] = result_of(m->here->states[t], &how[t]);
}

static void cuda_sample(struct backend *b, struct tensor logits, const struct sampler *how,
                        struct sampled *out)
{
    for (int64_t t = 0, n; t < logits.rows; t += n) {
        n = least(logits.rows - t, WORK_SAMPLED_ROWS);
        sample_stage(b, how + t, static_cast<int>(n), logits.cols);
        sample_run(b, tensor_rows(logits, t, n));
        sample_mark(b);
        sample_wait(b, how + t, out + t);
    }
}

void sample_fill(struct ops *o)
{
    o->sample = cuda_sample;
    o->sample_stage = sample_stage;
    o->sample_run = sample_run;
    o->sample_mark = sample_mark;
    o->sample_wait = sample_wait;
}
