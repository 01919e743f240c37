/* language.c - see language.h for the equations. */
#include "model/layers.h"

#include "base/flag.h"
#include "base/number.h"
#include "model/rope.h"
#include "ops/quant.h"
#include "ops/work.h"

#include <stdlib.h>

/* ---- layers -------------------------------------------------------------------------------------------- */

/* h = h + W_down . max(0, W_up . u)^2 */
static void mlp_layer(struct language *m, const struct mlp_weights *w, int width, struct tensor h,
                      struct tensor u)
{
    struct tensor t = tensor_cols(tensor_rows(m->m, 0, h.rows), 0, width);
    project_relu2(m, t, w->up, u);
    project_add(m, h, w->down, t);
}

/* h = h + mixer_i(u) */
static void add_mixer(struct language *m, struct language_batch of, int i, struct tensor h, struct tensor u)
{
    const struct layer_weights *w = &m->weights->layers[i];
    switch (m->config->pattern[i]) {
    case LAYER_MAMBA:
        mamba_layer(m, &w->mamba, of, i, h, u);
        break;
    case LAYER_ATTENTION:
        attention_layer(m, &w->att, of, i, h, u);
        break;
    case LAYER_MOE:
        moe_layer(m, &w->moe, h, u);
        break;
    case LAYER_DELTA:
        gated_delta_layer(m, &w->delta, of, i, h, u);
        break;
    case LAYER_GATED_ATTENTION:
    case LAYER_ROTARY_ATTENTION:
        gated_attention_layer(m, &w->att, of, i, h, u);
        break;
    case LAYER_SWIGLU:
        swiglu_layer(m, &w->mlp, m->config->mlp[i], h, u);
        break;
    case LAYER_SWIGLU_MOE:
        swiglu_moe_layer(m, &w->moe, h, u);
        break;
    default:
        mlp_layer(m, &w->mlp, m->config->mlp[i], h, u);
    }
}

static void rmsnorm(struct language *m, struct tensor y, struct tensor x, struct tensor w)
{
    m->backend->ops->rmsnorm(m->backend, y, x, w, m->config->eps);
}

/* f = RMSNorm(h, norm_f) of the last row of each session, kept in its state: logits are computed from it. */
static void keep_last(struct language *m, struct language_batch of, struct tensor h)
{
    int64_t rows = m->every_row ? h.rows : of.sessions;
    struct tensor f = tensor_rows(m->u, 0, rows), last[LANGUAGE_SESSIONS];
    rmsnorm(m, f, last_rows(h, rows), m->weights->norm);
    if (of.in_turn || m->every_row) {
        m->backend->ops->copy(m->backend, tensor_rows(m->steps, 0, rows), f);
        m->backend->ops->scatter(m->backend, &of.states[0]->now.last, last_rows(f, 1));
        return;
    }
    for (int i = 0; i < of.sessions; i++)
        last[i] = of.states[i]->now.last;
    m->backend->ops->scatter(m->backend, last, f);
}

/* ---- rows of images -------------------------------------------------------------------------- */

/* The images of a pass, whose row 0 is token `first` of the call. */
struct pictures {
    const struct image_rows *images;
    int n;
    int64_t first;
};

/* Column block `part` of each image's rows and the rows of h at its positions; h holds the last of `rows`
 * rows of the pass. */
static void each_picture(struct language *m, const struct pictures *p, struct tensor h, int64_t rows,
                         int part, void (*fn)(struct backend *b, struct tensor to, struct tensor from))
{
    int64_t first = p->first + rows - h.rows, width = h.cols;
    for (int i = 0; i < p->n; i++) {
        const struct image_rows *im = &p->images[i];
        int64_t begin = im->at, end = begin + im->rows.rows;
        int64_t from = begin > first ? begin : first, to = end < first + h.rows ? end : first + h.rows;
        if (from < to && (part + 1) * width <= im->rows.cols)
            fn(m->backend, tensor_rows(h, from - first, to - from),
               tensor_cols(tensor_rows(im->rows, from - begin, to - from), part * width, width));
    }
}

/* ---- one pass through the layers ----------------------------------------------------------------------- */

/* Which rows run through which layer, and when to stop. */
struct pass {
    struct language *m;
    int64_t tokens; /* of each session */
    int64_t wanted; /* last rows whose output is needed */
    int last_mixer; /* the last layer that mixes tokens: later ones see the wanted rows only */
    bool cancelled;
    int i;              /* layer */
    struct tensor in;   /* rows of h that layer i reads */
    struct tensor h, u; /* rows it writes, and scratch for RMSNorm(in) */
};

static struct pass pass_start(struct language *m, struct language_batch of, struct tensor h, bool want_last)
{
    struct pass p = {.m = m, .tokens = h.rows / of.sessions, .i = -1, .last_mixer = -1, .h = h};
    p.wanted = want_last ? (m->every_row ? h.rows : of.sessions) : 0;
    for (int i = 0; i < m->config->layers; i++)
        if (layer_mixes(m->config->pattern[i]))
            p.last_mixer = i;
    return p;
}

/* Moves on to the next layer.  false: no layer or no wanted row is left, or a prefill was cancelled. */
static bool pass_next(struct pass *p)
{
    struct language *m = p->m;
    if (m->watch && p->i >= 0)
        m->watch(m->watch_arg, p->i, p->h);
    if (++p->i == m->config->layers || p->h.rows == 0)
        return false;
    p->cancelled = p->tokens > 1 && (flag_up(m->cancel) || flag_up(m->session_cancel));
    if (p->cancelled)
        return false;
    p->in = p->h;
    if (!m->watch && p->i >= p->last_mixer)
        p->h = last_rows(p->h, p->wanted);
    if (p->i > p->last_mixer)
        p->in = p->h;
    p->u = tensor_rows(m->u, 0, p->in.rows);
    return true;
}

/* want_last: logits after the last token may be asked for.  -1: cancelled between two layers. */
static int run_layers(struct language *m, struct language_batch of, struct tensor h,
                      const struct pictures *im, bool want_last)
{
    const struct layer_weights *w = m->weights->layers;
    struct pass p = pass_start(m, of, h, want_last);
    while (pass_next(&p)) {
        rmsnorm(m, p.u, p.in, w[p.i].norm); /* u = RMSNorm(h, w_i) */
        add_mixer(m, of, p.i, p.h, p.u);    /* h = h + mixer_i(u) */
        if (im && p.i % 2)
            each_picture(m, im, p.h, h.rows, p.i / 2 + 1, m->backend->ops->add);
    }
    if (p.cancelled)
        return -1;
    for (int i = 0; i < of.sessions; i++) {
        of.states[i]->behind = mamba_behind(of, i, p.tokens);
        of.states[i]->length += p.tokens;
    }
    if (want_last)
        keep_last(m, of, p.h); /* f = RMSNorm(h, norm_f) */
    return 0;
}

/* ---- prefill and decode -------------------------------------------------------------------------------- */

/* Rows of the embedding: of a table of the backend, or of blocks in the file, a row at a time. */
static void embed_tokens(struct language *m, struct tensor h, const int32_t *ids)
{
    const struct quant_source *codes = &m->weights->embed_codes;
    if (!codes->rows) {
        m->backend->ops->embed(m->backend, h, m->weights->embed, ids);
        return;
    }
    for (int64_t i = 0; i < h.rows; i++) {
        quant_source_row(codes, ids[i], m->embed_row);
        m->backend->ops->upload(m->backend, tensor_rows(h, i, 1),
                                (struct tensor){m->embed_row, DT_F32, 1, codes->cols, codes->cols});
    }
}

/* The rotary table of rows that stand at m->places. */
static void set_positions(struct language *m, int64_t rows)
{
    const struct rope_shape *r = &m->config->rope;
    if (!m->angles)
        return;
    rope_table(m->angles, r, m->places, rows);
    m->backend->ops->upload(m->backend, tensor_rows(m->rope, 0, rows),
                            (struct tensor){m->angles, DT_F32, rows, r->dims, r->dims});
}

/* Tokens that a decode step samples; k = 0: none. */
struct sampling {
    int k, ids;
    const struct sampler *how;
    struct tensor logits; /* [k, ids] */
    int stage;            /* what sample_stage answered */
};

/* Decode steps with equal keys run the same operations: as many sessions, as many of them with f16 states,
 * as many that are sampled in the same way, with or without rings. */
static uint64_t graph_key(struct language_batch of, const struct sampling *next)
{
    bool behind = false;
    uint64_t key = (uint64_t)of.sessions | (uint64_t)next->k << 10 | (uint64_t)next->stage << 20 |
                   (uint64_t)of.in_turn << 50;
    for (int i = 0; i < of.sessions; i++) {
        key += (uint64_t)(of.states[i]->now.types.ssm == DT_F16) << 32;
        behind |= of.states[i]->behind > 0;
    }
    return key | (uint64_t)(of.replay || behind) << 48;
}

/* Logits of the first sessions from what keep_last has left in u, and a token of each. */
static void sample_step(struct language *m, const struct sampling *next)
{
    project(m, tensor_rows(m->logits, 0, next->k), m->weights->head, tensor_rows(m->u, 0, next->k));
    m->backend->ops->sample_run(m->backend, next->logits);
}

/* One token of each session, as a graph where the backend has them. */
static void decode_step(struct language *m, struct language_batch of, const int32_t *ids,
                        const struct sampling *next)
{
    struct backend *b = m->backend;
    struct tensor h = tensor_rows(m->h, 0, of.sessions);
    bool graph = b->ops->graph_begin && !m->watch;
    for (int i = 0; i < of.sessions && m->angles; i++)
        of.states[i]->position = rope_walk(&m->places[i], of.states[i]->position, 0, 1, NULL, 0);
    set_positions(m, of.sessions);
    if (graph)
        b->ops->graph_begin(b, graph_key(of, next));
    embed_tokens(m, h, ids);
    run_layers(m, of, h, NULL, true);
    if (next->k)
        sample_step(m, next);
    if (graph)
        b->ops->graph_end(b);
}

static const struct sampling no_sampling;
/* Rows of sessions with a token each. */
static struct language_batch batch_of(struct lm_state *const *s, int n)
{
    struct language_batch of = {s, n, n >= LANGUAGE_REPLAYS};
    for (int i = 0; i < n; i++)
        of.replay &= s[i]->now.types.ring > 0;
    return of;
}

void language_flush(struct language *m, struct lm_state *s)
{
    for (int i = 0; s->behind && i < m->config->layers; i++)
        if (m->config->pattern[i] == LAYER_MAMBA)
            mamba_flush(m, &m->weights->layers[i].mamba, s, i);
    s->behind = 0;
}

/* A one-token chunk would take the decode path, which rounds differently: never let chunk boundaries
 * produce one, or results would depend on where they fall. */
int64_t language_chunk(const struct language *m, int64_t done, int64_t n)
{
    int64_t most = done < m->rows && LANGUAGE_ROWS < m->rows ? LANGUAGE_ROWS : m->rows,
            chunk = config_chunk(m->config);
    if (n == most + 1)
        return most - (chunk < most ? chunk : 1);
    return n < most ? n : most;
}

int language_forward(struct language *m, struct lm_state *s, const int32_t *ids, int64_t n,
                     const struct image_rows *images, int n_images)
{
    state_reserve(s, m->config, m->backend, s->length + n);
    if (n == 1 && n_images == 0 && !m->every_row) {
        decode_step(m, batch_of(&s, 1), ids, &no_sampling);
        return 0;
    }
    for (int64_t first = 0, rows; first < n; first += rows) {
        rows = language_chunk(m, s->length, n - first);
        if (m->angles)
            s->position = rope_walk(m->places, s->position, first, rows, images, n_images);
        set_positions(m, rows);
        struct tensor h = tensor_rows(m->h, 0, rows);
        embed_tokens(m, h, ids + first);
        struct pictures im = {images, n_images, first};
        each_picture(m, &im, h, rows, 0, m->backend->ops->copy);
        if (run_layers(m, (struct language_batch){&s, 1, false}, h, &im, first + rows == n))
            return -1;
    }
    return 0;
}

void language_decode_batch(struct language *m, struct lm_state *const *s, int n, const int32_t *ids)
{
    for (int i = 0; i < n; i++)
        state_reserve(s[i], m->config, m->backend, s[i]->length + 1);
    decode_step(m, batch_of(s, n), ids, &no_sampling);
}

void language_steps(struct language *m, struct lm_state *s, const int32_t *ids, int n)
{
    struct lm_state *states[LANGUAGE_STEPS];
    for (int i = 0; i < n; i++)
        states[i] = s;
    state_reserve(s, m->config, m->backend, s->length + n);
    language_flush(m, s);
    decode_step(m, (struct language_batch){.states = states, .sessions = n, .in_turn = true}, ids,
                &no_sampling);
}

/* Rows of logits that fit in memory at once, n at most and one at least. */
static int logits_rows(struct language *m, int n)
{
    const struct ops *ops = m->backend->ops;
    if (m->logits.rows < n) {
        struct tensor more = ops->try_alloc(m->backend, DT_F32, n, m->weights->vocab);
        if (!more.data)
            return (int)m->logits.rows;
        ops->free(m->backend, &m->logits);
        m->logits = more;
    }
    return n;
}

/* logits = f . lm_headT: [n, V] on the backend, valid until the next call. */
static struct tensor logits_of(struct language *m, struct lm_state *const *s, int n)
{
    struct tensor logits = tensor_rows(m->logits, 0, n), f = s[0]->now.last, last[LANGUAGE_SESSIONS];
    if (n > 1) {
        f = tensor_rows(m->u, 0, n);
        for (int i = 0; i < n; i++)
            last[i] = s[i]->now.last;
        m->backend->ops->gather(m->backend, f, last);
    }
    project(m, logits, m->weights->head, f);
    return logits;
}

static void to_host(struct language *m, float *logits, struct tensor row)
{
    m->backend->ops->download(m->backend, (struct tensor){logits, DT_F32, 1, row.cols, row.cols}, row);
}

void language_logits(struct language *m, struct lm_state *s, float *logits)
{
    to_host(m, logits, logits_of(m, &s, 1));
}

void language_logits_batch(struct language *m, struct lm_state *const *s, int n, float *const *logits)
{
    for (int first = 0, some = logits_rows(m, n); first < n; first += some) {
        int k = n - first < some ? n - first : some;
        struct tensor y = logits_of(m, s + first, k);
        for (int i = 0; i < k; i++)
            to_host(m, logits[first + i], tensor_rows(y, i, 1));
    }
}

void language_sample_batch(struct language *m, struct lm_state *const *s, int n, int ids,
                           const struct sampler *how, struct sampled *out)
{
    for (int first = 0, some = logits_rows(m, n); first < n; first += some) {
        int k = n - first < some ? n - first : some;
        struct tensor y = logits_of(m, s + first, k);
        m->backend->ops->sample(m->backend, tensor_cols(y, 0, ids), how + first, out + first);
    }
}

void language_decode_sample_batch(struct language *m, struct lm_state *const *s, int n, const int32_t *fed,
                                  int k, int ids, const struct sampler *how, struct sampled *out)
{
    const struct ops *ops = m->backend->ops;
    if (!ops->sample_stage || k > WORK_SAMPLED_ROWS || logits_rows(m, k) < k) {
        language_decode_batch(m, s, n, fed);
        language_sample_batch(m, s, k, ids, how, out);
        return;
    }
    for (int i = 0; i < n; i++)
        state_reserve(s[i], m->config, m->backend, s[i]->length + 1);
    struct sampling next = {k, ids, how, tensor_cols(tensor_rows(m->logits, 0, k), 0, ids), 0};
    next.stage = ops->sample_stage(m->backend, how, k, ids);
    decode_step(m, batch_of(s, n), fed, &next);
    ops->sample_mark(m->backend);
    ops->sample_wait(m->backend, how, out);
}

/* Logits of n rows of language_steps or language_rows from row `first` on. */
static struct tensor steps_logits(struct language *m, int first, int n)
{
    struct tensor y = tensor_rows(m->logits, 0, n);
    project(m, y, m->weights->head, tensor_rows(m->steps, first, n));
    return y;
}

void language_steps_logits(struct language *m, int start, int n, float *const *logits)
{
    for (int first = 0, some = logits_rows(m, n), k; first < n; first += k) {
        k = n - first < some ? n - first : some;
        struct tensor y = steps_logits(m, start + first, k);
        for (int i = 0; i < k; i++)
            to_host(m, logits[first + i], tensor_rows(y, i, 1));
    }
}

int language_rows(struct language *m, struct lm_state *s, const int32_t *ids, int n)
{
    if (n > language_chunk(m, s->length, n))
        bug("%d rows are more than a chunk", n);
    if (m->steps.rows < n) {
        m->backend->ops->free(m->backend, &m->steps);
        m->steps = m->backend->ops->alloc(m->backend, m->act, n, m->config->hidden);
    }
    m->every_row = true;
    int rc = language_forward(m, s, ids, n, NULL, 0);
    m->every_row = false;
    return rc;
}

void language_steps_sample(struct language *m, int n, int ids, const struct sampler *how, struct sampled *out)
{
    for (int first = 0, some = logits_rows(m, n), k; first < n; first += k) {
        k = n - first < some ? n - first : some;
        m->backend->ops->sample(m->backend, tensor_cols(steps_logits(m, first, k), 0, ids), how + first,
                                out + first);
    }
}

static int64_t widest_mlp(const struct lm_config *c)
{
    int64_t widest = c->moe.shared;
    for (int i = 0; i < c->layers; i++)
        widest = int64_max(widest, c->mlp[i]);
    return widest;
}

void language_init(struct language *m, const struct lm_config *c, const struct model_weights *w,
                   struct backend *b, enum dtype act)
{
    *m = (struct language){.config = c, .weights = w, .backend = b, .act = act};
    m->rows = b->prompt_rows ? b->prompt_rows : LANGUAGE_ROWS;
    int64_t rows = int64_max(m->rows, LANGUAGE_SESSIONS);
    int64_t q = (int64_t)c->q_heads * c->head_dim, H = c->delta.value_heads;
    bool qwen = c->rope.dims > 0;
    const struct {
        struct tensor *t;
        int64_t cols;
        enum dtype type;
    } scratch[] = {
        {&m->h, c->hidden, act},
        {&m->u, c->hidden, act},
        {&m->p, qwen ? int64_max(2 * q, config_conv_dim(c)) : config_proj_rows(c), act},
        {&m->v, config_conv_dim(c), act},
        {&m->y, config_inner(c), act},
        {&m->q, q, act},
        {&m->a, q, act},
        {&m->m, widest_mlp(c), act},
        {&m->m2, qwen ? widest_mlp(c) : 0, act},
        {&m->z, qwen ? config_inner(c) : 0, act},
        {&m->ab, 2 * H, act},
        {&m->gates, 2 * H, DT_F32},
        {&m->kv, qwen ? 2 * (int64_t)c->kv_heads * c->head_dim : 0, act},
        {&m->rope, c->rope.dims, DT_F32},
    };
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++)
        if (scratch[i].cols)
            *scratch[i].t = b->ops->alloc(b, scratch[i].type, rows, scratch[i].cols);
    if (w->embed_codes.rows)
        m->embed_row = xmalloc((unsigned long)c->hidden, sizeof *m->embed_row);
    if (qwen) {
        m->angles = xmalloc((unsigned long)rows * (unsigned long)c->rope.dims, sizeof *m->angles);
        m->places = xmalloc((unsigned long)rows, sizeof *m->places);
    }
    m->steps = b->ops->alloc(b, act, LANGUAGE_STEPS, c->hidden);
    m->logits = b->ops->alloc(b, DT_F32, 1, w->vocab);
    if (c->moe.width)
        moe_init(m);
}

void language_free(struct language *m)
{
    struct moe_scratch *e = &m->moe;
    struct tensor *scratch[] = {&m->h,       &m->u,     &m->p,     &m->v,      &m->y,      &m->z,
                                &m->ab,      &m->gates, &m->kv,    &m->rope,   &m->q,      &m->a,
                                &m->m,       &m->m2,    &m->steps, &m->logits, &e->logits, &e->ids,
                                &e->weights, &e->in,    &e->out,   &e->sum,    &e->shared, &e->gate};
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++)
        if (scratch[i]->data)
            m->backend->ops->free(m->backend, scratch[i]);
    free(m->embed_row);
    free(m->angles);
    free(m->places);
}
