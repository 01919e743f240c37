/* kernels_moe.h - mixture of experts: rows are grouped by expert, multiplied, and scattered back.
 *
 * Every chosen expert runs its rows through the ordinary matrix products, which read its weights once for
 * all of them; a single row is not gathered. Experts run in ascending order, so the sum of a row does not
 * depend on the other rows. */
#pragma once

#include "ops/kernels_bytes.h"
#include "ops/kernels_core.h"
#include "ops/kernels_gates.h"
#include "ops/kernels_rows.h"

struct moe {
    struct backend *b;
    const struct experts *e;
    struct tensor x, y;
    int64_t *begin;      /* [E + 1], offsets into the two lists */
    int32_t *rows;       /* rows of x, ordered by expert */
    float *shares;       /* their routing weights */
    struct tensor in;    /* [T, K] rows of one expert */
    struct tensor inner; /* [T, M] */
    struct tensor gate;  /* [T, M], SwiGLU experts only */
    struct tensor out;   /* [T, N] f32 */
    float *sum;          /* [T][N] */
};

/* Sorts the choices by expert (counting sort); the rows of an expert ascend. */
static void sort_choices(struct moe *m, struct tensor ids, struct tensor weights)
{
    int64_t *at = m->begin;
    memset(at, 0, ((size_t)m->e->count + 1) * sizeof *at);
    for (int64_t t = 0; t < ids.rows; t++)
        for (int64_t j = 0; j < ids.cols; j++) {
            int32_t id = ((const int32_t *)ids.data)[t * ids.stride + j];
            if (id < 0 || id >= m->e->count)
                bug("expert %d of %d", id, m->e->count);
            at[id + 1]++;
        }
    for (int i = 0; i < m->e->count; i++)
        at[i + 1] += at[i];
    for (int64_t t = 0; t < ids.rows; t++)
        for (int64_t j = 0; j < ids.cols; j++) {
            int64_t place = at[((const int32_t *)ids.data)[t * ids.stride + j]]++;
            m->rows[place] = (int32_t)t;
            m->shares[place] = *(const float *)(const void *)element(weights, t, j);
        }
    for (int i = m->e->count; i > 0; i--) /* each begin has moved to its end */
        at[i] = at[i - 1];
    at[0] = 0;
}

/* Allocates the scratch of a call: the lists, then tensors aligned to cache lines. */
static void moe_scratch(struct moe *m, int64_t choices)
{
    int64_t T = m->x.rows, N = m->y.cols, E = m->e->count + 1;
    enum { PARTS = 4 };
    struct tensor *const of_rows[PARTS] = {&m->in, &m->inner, &m->gate, &m->out};
    int64_t width[PARTS] = {m->x.cols, m->e->up[0]->rows, m->e->gate ? m->e->up[0]->rows : 0, N};
    enum dtype type[PARTS] = {m->x.dtype, m->x.dtype, m->x.dtype, DT_F32};
    size_t bytes = 0,
           lists = (size_t)E * sizeof *m->begin + (size_t)choices * (sizeof(int32_t) + sizeof(float));
    lists = (lists + 63) / 64 * 64;
    for (int i = 0; i < PARTS; i++)
        bytes += ((size_t)(T * width[i]) * dtype_size(type[i]) + 63) / 64 * 64;
    char *p = cpu_scratch(m->b, OUTER_SCRATCH, lists + bytes + (size_t)(T * padded(N)) * sizeof(float));
    m->begin = (int64_t *)(void *)p;
    m->rows = (int32_t *)(m->begin + E);
    m->shares = (float *)(m->rows + choices);
    p += lists;
    for (int i = 0; i < PARTS; i++) {
        *of_rows[i] = (struct tensor){p, type[i], T, width[i], width[i]};
        p += ((size_t)(T * width[i]) * dtype_size(type[i]) + 63) / 64 * 64;
    }
    m->sum = (float *)(void *)p;
    memset(m->sum, 0, (size_t)(T * padded(N)) * sizeof *m->sum);
}

struct scatter_task {
    struct moe *m;
    const int32_t *rows;
    const float *shares;
};

/* Adds share * out[i] to sum[row]. */
static void scatter_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct scatter_task *g = arg;
    int64_t n = g->m->y.cols;
    for (int64_t i = begin; i < end; i++) {
        const float *from = (const float *)(const void *)element(g->m->out, i, 0);
        float *to = g->m->sum + g->rows[i] * padded(n);
        vec share = splat(g->shares[i]);
        for (int64_t c = 0; c < n; c += VL)
            *(vec_at *)(to + c) += share * weights_at(from, c, n);
    }
}

static void finish_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct moe *m = arg;
    for (int64_t t = begin; t < end; t++)
        store_row(m->y, t, 0, m->y.cols, m->sum + t * padded(m->y.cols));
}

static void run_expert(struct moe *m, int e)
{
    static const struct tensor none = {0};
    int64_t first = m->begin[e], n = m->begin[e + 1] - first;
    struct tensor in = tensor_rows(m->in, 0, n), inner = tensor_rows(m->inner, 0, n);
    struct scatter_task g = {m, m->rows + first, m->shares + first};
    if (m->x.rows == 1)
        in = m->x;
    else
        fast_embed(m->b, in, m->x, g.rows);
    if (m->e->gate) {
        struct tensor gate = tensor_rows(m->gate, 0, n);
        any_linear(m->b, gate, in, m->e->gate[e], none, EPI_NONE, SET);
        any_linear(m->b, inner, in, m->e->up[e], none, EPI_NONE, SET);
        fast_swiglu(m->b, inner, gate, inner);
    } else {
        any_linear(m->b, inner, in, m->e->up[e], none, EPI_RELU2, SET);
    }
    any_linear(m->b, tensor_rows(m->out, 0, n), inner, m->e->down[e], none, EPI_NONE, SET);
    pool_for(m->b->pool, n, 1 + SMALL_ROWS / (m->y.cols + 1), scatter_range, &g);
}

static void fast_experts(struct backend *b, struct tensor y, struct tensor x, struct tensor ids,
                         struct tensor weights, const struct experts *e)
{
    struct moe m = {.b = b, .e = e, .x = x, .y = y};
    moe_scratch(&m, ids.rows * ids.cols);
    sort_choices(&m, ids, weights);
    for (int i = 0; i < e->count; i++)
        if (m.begin[i + 1] > m.begin[i])
            run_expert(&m, i);
    pool_for(b->pool, x.rows, 1 + SMALL_ROWS / (y.cols + 1), finish_range, &m);
}
