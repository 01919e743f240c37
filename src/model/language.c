/* language.c - passes of the language model: prefill, decode, draft verification, logits (language.h). */
#include "model/layers.h"

#include "base/flag.h"
#include "base/number.h"
#include "model/rope.h"
#include "ops/quant.h"
#include "ops/work.h"

#include <stdlib.h>

/* ---- layers -------------------------------------------------------------------------------------------- */

/* Computes h = h + W_down . max(0, W_up . u)^2. */
static void mlp_layer(struct language *m, const struct mlp_weights *w, int width, struct tensor h,
                      struct tensor u)
{
    struct tensor t = tensor_cols(tensor_rows(m->m, 0, h.rows), 0, width);
    project_relu2(m, t, w->up, u);
    project_add(m, h, w->down, t);
}

/* Computes h = h + mixer_i(u). */
static void add_mix(struct language *m, struct language_batch batch, int i, struct tensor h, struct tensor u)
{
    const struct layer_weights *w = &m->weights->layers[i];
    switch (m->config->pattern[i]) {
    case LAYER_MAMBA:
        mamba_layer(m, &w->mamba, batch, i, h, u);
        break;
    case LAYER_ATTENTION:
        attention_layer(m, &w->att, batch, i, h, u);
        break;
    case LAYER_MOE:
        moe_layer(m, &w->moe, h, u);
        break;
    case LAYER_DELTA:
        gated_delta_layer(m, &w->delta, batch, i, h, u);
        break;
    case LAYER_GATED_ATTENTION:
    case LAYER_ROTARY_ATTENTION:
        gated_attention_layer(m, &w->att, batch, i, h, u);
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

/* Stores f = RMSNorm(h, norm_f) of each session's last row in its state, for logits on request. */
static void keep_last(struct language *m, struct language_batch batch, struct tensor h)
{
    int64_t rows = m->every_row ? h.rows : batch.sessions;
    struct tensor f = tensor_rows(m->u, 0, rows), last[LANGUAGE_SESSIONS];
    rmsnorm(m, f, last_rows(h, rows), m->weights->norm);
    if (batch.sequential || m->every_row) {
        m->backend->ops->copy(m->backend, tensor_rows(m->outputs, 0, rows), f);
        m->backend->ops->scatter(m->backend, &batch.states[0]->now.last, last_rows(f, 1));
        return;
    }
    for (int i = 0; i < batch.sessions; i++)
        last[i] = batch.states[i]->now.last;
    m->backend->ops->scatter(m->backend, last, f);
}

/* ---- image rows ------------------------------------------------------------------------------ */

/* Images in a pass. `first`: token index of the pass in the call. */
struct pass_images {
    const struct image_rows *images;
    int n;
    int64_t first;
};

/* Calls fn with column block `part` of each image's rows and the rows of h at the same positions: part 0
 * replaces the embeddings, parts 1 and up are DeepStack rows. h holds the last of `rows` rows of the pass. */
static void apply_image_rows(struct language *m, const struct pass_images *p, struct tensor h, int64_t rows,
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

/* Progress through the layers: the rows each layer reads and writes. */
struct pass {
    struct language *m;
    int64_t tokens; /* per session */
    int64_t wanted; /* last rows whose output is needed */
    int last_mixer; /* the last layer that mixes tokens; later layers compute the wanted rows only */
    bool cancelled;
    int i;              /* layer */
    struct tensor in;   /* rows of h that layer i reads */
    struct tensor h, u; /* rows it writes; scratch for RMSNorm(in) */
};

static struct pass pass_init(struct language *m, struct language_batch batch, struct tensor h, bool want_last)
{
    struct pass p = {.m = m, .tokens = h.rows / batch.sessions, .i = -1, .last_mixer = -1, .h = h};
    p.wanted = want_last ? (m->every_row ? h.rows : batch.sessions) : 0;
    for (int i = 0; i < m->config->layers; i++)
        if (layer_mixes(m->config->pattern[i]))
            p.last_mixer = i;
    return p;
}

/* Advances to the next layer. Returns false after the last layer or wanted row, or if cancelled. */
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

/* Runs all layers over h. want_last: logits may be requested. Returns -1 if cancelled between two layers. */
static int run_layers(struct language *m, struct language_batch batch, struct tensor h,
                      const struct pass_images *im, bool want_last)
{
    const struct layer_weights *w = m->weights->layers;
    struct pass p = pass_init(m, batch, h, want_last);
    while (pass_next(&p)) {
        rmsnorm(m, p.u, p.in, w[p.i].norm); /* u = RMSNorm(h, w_i) */
        add_mix(m, batch, p.i, p.h, p.u);   /* h = h + mixer_i(u) */
        if (im && p.i % 2)
            apply_image_rows(m, im, p.h, h.rows, p.i / 2 + 1, m->backend->ops->add);
    }
    if (p.cancelled)
        return -1;
    for (int i = 0; i < batch.sessions; i++) {
        batch.states[i]->lag = mamba_lag(batch, i, p.tokens);
        batch.states[i]->length += p.tokens;
    }
    if (want_last)
        keep_last(m, batch, p.h); /* f = RMSNorm(h, norm_f) */
    return 0;
}

/* ---- prefill and decode -------------------------------------------------------------------------------- */

/* Looks up token embeddings: in the backend's table, or one row at a time in GGUF blocks of the file. */
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

/* Uploads the rotary table of rows at m->positions. */
static void set_positions(struct language *m, int64_t rows)
{
    const struct rope_shape *r = &m->config->rope;
    if (!m->angles)
        return;
    rope_table(m->angles, r, m->positions, rows);
    m->backend->ops->upload(m->backend, tensor_rows(m->rope, 0, rows),
                            (struct tensor){m->angles, DT_F32, rows, r->dims, r->dims});
}

/* Sampling fused into a decode step; k = 0: none. */
struct sampling {
    int k, ids;
    const struct sampler *how;
    struct tensor logits; /* [k, ids] */
    int stage;            /* return value of sample_stage */
};

/* Returns a key that is equal for decode steps that run the same operations: the same number of sessions,
 * of f16 states, of sampled rows and kind of sampling, and the same use of delayed state write-back. */
static uint64_t graph_key(struct language_batch batch, const struct sampling *next)
{
    bool lag = false;
    uint64_t key = (uint64_t)batch.sessions | (uint64_t)next->k << 10 | (uint64_t)next->stage << 20 |
                   (uint64_t)batch.sequential << 50;
    for (int i = 0; i < batch.sessions; i++) {
        key += (uint64_t)(batch.states[i]->now.types.ssm == DT_F16) << 32;
        lag |= batch.states[i]->lag > 0;
    }
    return key | (uint64_t)(batch.replay || lag) << 48;
}

/* Computes logits of the first k sessions from the rows of keep_last() in u, and samples a token of each. */
static void sample_step(struct language *m, const struct sampling *next)
{
    project(m, tensor_rows(m->logits, 0, next->k), m->weights->head, tensor_rows(m->u, 0, next->k));
    m->backend->ops->sample_run(m->backend, next->logits);
}

/* Computes one token of each session, as a graph if the backend supports graphs. */
static void decode_step(struct language *m, struct language_batch batch, const int32_t *ids,
                        const struct sampling *next)
{
    struct backend *b = m->backend;
    struct tensor h = tensor_rows(m->h, 0, batch.sessions);
    bool graph = b->ops->graph_begin && !m->watch;
    for (int i = 0; i < batch.sessions && m->angles; i++)
        batch.states[i]->position = rope_walk(&m->positions[i], batch.states[i]->position, 0, 1, NULL, 0);
    set_positions(m, batch.sessions);
    if (graph)
        b->ops->graph_begin(b, graph_key(batch, next));
    embed_tokens(m, h, ids);
    run_layers(m, batch, h, NULL, true);
    if (next->k)
        sample_step(m, next);
    if (graph)
        b->ops->graph_end(b);
}

static const struct sampling no_sampling;
/* Returns a batch with one token per session. */
static struct language_batch batch_of(struct lm_state *const *s, int n)
{
    struct language_batch batch = {s, n, n >= LANGUAGE_REPLAYS};
    for (int i = 0; i < n; i++)
        batch.replay &= s[i]->now.types.ring > 0;
    return batch;
}

void language_flush(struct language *m, struct lm_state *s)
{
    for (int i = 0; s->lag && i < m->config->layers; i++)
        if (m->config->pattern[i] == LAYER_MAMBA)
            mamba_flush(m, &m->weights->layers[i].mamba, s, i);
    s->lag = 0;
}

/* Avoids chunks of one token: their decode path rounds differently, and results would depend on chunks. */
int64_t language_chunk(const struct language *m, int64_t done, int64_t n, int64_t text)
{
    bool small = done < m->rows && LANGUAGE_ROWS < m->rows && text >= LANGUAGE_ROWS;
    int64_t most = small ? LANGUAGE_ROWS : m->rows, chunk = config_chunk(m->config);
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
        rows = language_chunk(m, s->length, n - first, language_text(images, n_images, first, n));
        if (m->angles)
            s->position = rope_walk(m->positions, s->position, first, rows, images, n_images);
        set_positions(m, rows);
        struct tensor h = tensor_rows(m->h, 0, rows);
        embed_tokens(m, h, ids + first);
        struct pass_images im = {images, n_images, first};
        apply_image_rows(m, &im, h, rows, 0, m->backend->ops->copy);
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

void language_verify_drafts(struct language *m, struct lm_state *s, const int32_t *ids, int n)
{
    struct lm_state *states[LANGUAGE_MAX_VERIFY];
    for (int i = 0; i < n; i++)
        states[i] = s;
    state_reserve(s, m->config, m->backend, s->length + n);
    language_flush(m, s);
    decode_step(m, (struct language_batch){.states = states, .sessions = n, .sequential = true}, ids,
                &no_sampling);
}

/* Returns the number of rows of logits that fit in memory at once, from 1 to n. */
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

/* Computes logits = f . lm_headT [n, V] on the backend, valid until the next call. */
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

/* Computes the logits of n rows of language_verify_drafts() or language_rows(), starting with row `first`. */
static struct tensor verify_logits(struct language *m, int first, int n)
{
    struct tensor y = tensor_rows(m->logits, 0, n);
    project(m, y, m->weights->head, tensor_rows(m->outputs, first, n));
    return y;
}

void language_verify_logits(struct language *m, int start, int n, float *const *logits)
{
    for (int first = 0, some = logits_rows(m, n), k; first < n; first += k) {
        k = n - first < some ? n - first : some;
        struct tensor y = verify_logits(m, start + first, k);
        for (int i = 0; i < k; i++)
            to_host(m, logits[first + i], tensor_rows(y, i, 1));
    }
}

int language_rows(struct language *m, struct lm_state *s, const int32_t *ids, int n)
{
    if (n > language_chunk(m, s->length, n, n))
        bug("%d rows are more than a chunk", n);
    if (m->outputs.rows < n) {
        m->backend->ops->free(m->backend, &m->outputs);
        m->outputs = m->backend->ops->alloc(m->backend, m->act, n, m->config->hidden);
    }
    m->every_row = true;
    int rc = language_forward(m, s, ids, n, NULL, 0);
    m->every_row = false;
    return rc;
}

void language_verify_sample(struct language *m, int n, int ids, const struct sampler *how,
                            struct sampled *out)
{
    for (int first = 0, some = logits_rows(m, n), k; first < n; first += k) {
        k = n - first < some ? n - first : some;
        m->backend->ops->sample(m->backend, tensor_cols(verify_logits(m, first, k), 0, ids), how + first,
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
        m->positions = xmalloc((unsigned long)rows, sizeof *m->positions);
    }
    m->outputs = b->ops->alloc(b, act, LANGUAGE_MAX_VERIFY, c->hidden);
    m->logits = b->ops->alloc(b, DT_F32, 1, w->vocab);
    if (c->moe.width)
        moe_init(m);
}

void language_free(struct language *m)
{
    struct moe_scratch *e = &m->moe;
    struct tensor *scratch[] = {&m->h,       &m->u,     &m->p,       &m->v,      &m->y,      &m->z,
                                &m->ab,      &m->gates, &m->kv,      &m->rope,   &m->q,      &m->a,
                                &m->m,       &m->m2,    &m->outputs, &m->logits, &e->logits, &e->ids,
                                &e->weights, &e->in,    &e->out,     &e->sum,    &e->shared, &e->gate};
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++)
        if (scratch[i]->data)
            m->backend->ops->free(m->backend, scratch[i]);
    free(m->embed_row);
    free(m->angles);
    free(m->positions);
}
