/* check.c - self-test of a backend against the scalar reference.
 *
 * GPU kernels may run on a GPU, driver or compiler on which they were never tested. Before their results
 * move a mouse, one small case of each kind of operation runs on both sides, with the head sizes of the
 * published models, so that the fast kernels are used: those of a prompt and those of decoding, with
 * weights, states and KV caches of all types, sampling, and a replayed graph. */
#include "ops/kv8.h"
#include "ops/ops_impl.h"
#include "ops/sampling.h"
#include "ops/synthetic.h"

#include <math.h>

enum { ROWS = 3, MANY = 24, LIBRARY = 72, D = 128, HEADS = 2, N = 128, GROUPS = 1, TAPS = 4, KEYS = 150 };
enum { TILES = 2, PATCHES = 20 };
enum { MIXED_HEADS = 8, SESSIONS = 5, IDS = 3000, PARTS = 2 };

struct side {
    struct backend *b;
    struct tensor out[PARTS]; /* f32 on the host: results of the last case */
    int parts;
    bool recurrence; /* computes the state space token by token: the reference's scan would take half a
                      * second */
};

struct variant { /* parameters of a case; their meaning depends on the case */
    int rows, type, head;
};

static float number(uint64_t i)
{
    i = (i + 1) * 0x9e3779b97f4a7c15u;
    i = (i ^ i >> 31) * 0xbf58476d1ce4e5b9u;
    return (float)(i >> 40) / 8388608.0f - 1;
}

static struct tensor host_tensor(enum dtype type, int64_t rows, int64_t cols)
{
    return (struct tensor){xcalloc((unsigned long)(rows * cols), dtype_size(type)), type, rows, cols, cols};
}

/* Returns a tensor with values in [-scale, scale) that are the same on every backend. */
static struct tensor random_tensor(struct backend *b, enum dtype type, int64_t rows, int64_t cols,
                                   uint64_t seed, float scale)
{
    struct tensor host = host_tensor(DT_F32, rows, cols), t = b->ops->alloc(b, type, rows, cols);
    for (int64_t i = 0; i < rows * cols; i++)
        ((float *)host.data)[i] = scale * number(seed << 32 | (uint64_t)i);
    b->ops->upload(b, t, host);
    free(host.data);
    return t;
}

static void forget(struct side *s)
{
    for (; s->parts > 0; s->parts--)
        free(s->out[s->parts - 1].data);
}

static void keep_result(struct side *s, struct tensor t)
{
    if (s->parts == PARTS)
        bug("a case of more than %d results", PARTS);
    struct tensor *to = &s->out[s->parts++];
    *to = host_tensor(DT_F32, t.rows, t.cols);
    s->b->ops->download(s->b, *to, t);
}

static void drop(struct backend *b, int n, struct tensor *const t[])
{
    for (int i = 0; i < n; i++)
        b->ops->free(b, t[i]);
}

/* ---- products and norms -------------------------------------------------------------------------------- */

static struct weight *some_weight(struct backend *b, enum quant_format format, int64_t rows, int64_t cols)
{
    const struct synthetic values = {.seed = 1, .spread = 1};
    return synthetic_weight(b, format, DT_BF16, rows, cols, &values);
}

/* Tests a product; with few rows, the columns suffice for every warp to loop and leave a remainder. */
static void product(struct side *s, struct variant v)
{
    enum { OUT = 48, LONG = 2304, SHORT = 256 };
    int64_t cols = v.rows == ROWS ? LONG : SHORT;
    struct backend *b = s->b;
    struct tensor x = random_tensor(b, DT_BF16, v.rows, cols, 2, 1),
                  y = b->ops->alloc(b, DT_BF16, v.rows, OUT);
    struct weight *w = some_weight(b, (enum quant_format)v.type, OUT, cols);
    b->ops->linear(b, y, x, w, (struct tensor){0}, EPI_NONE, SET);
    keep_result(s, y);
    b->ops->weight_free(b, w);
    drop(b, 2, (struct tensor *const[]){&x, &y});
}

static void norm(struct side *s, struct variant v)
{
    struct backend *b = s->b;
    struct tensor x = random_tensor(b, DT_BF16, ROWS, 4 * D, 3, 2),
                  w = random_tensor(b, DT_F32, 1, 4 * D, 4, 1);
    b->ops->rmsnorm(b, x, x, w, 1e-5f);
    keep_result(s, x);
    drop(b, 2, (struct tensor *const[]){&x, &w});
}

/* ---- Mamba-2 ------------------------------------------------------------------------------------------- */

struct mamba_layer { /* weights, and inputs of `rows` tokens */
    struct ssm_shape shape;
    int64_t inner, channels;
    struct tensor x, z, dt, taps, bias, norm, a, rest;
    struct ssm_const c;
};

static struct mamba_layer mamba_open(struct backend *b, int heads, int head, int64_t rows)
{
    struct mamba_layer l = {.shape = {heads, head, N, GROUPS, TAPS, 128, 0, INFINITY},
                            .inner = (int64_t)heads * head,
                            .channels = (int64_t)heads * head + 2 * GROUPS * N};
    static float decays[MIXED_HEADS] = {-0.05f, -1, -0.3f, -2, -0.01f, -0.7f, -0.1f, -1.5f};
    l.x = random_tensor(b, DT_BF16, rows, l.channels, 5, 1);
    l.taps = random_tensor(b, DT_F32, l.channels, TAPS, 6, 0.5f);
    l.bias = random_tensor(b, DT_F32, 1, l.channels, 7, 0.5f);
    l.dt = random_tensor(b, DT_BF16, rows, heads, 8, 1);
    l.rest = random_tensor(b, DT_F32, 2, heads, 9, 1);
    l.z = random_tensor(b, DT_BF16, rows, l.inner, 13, 1);
    l.norm = random_tensor(b, DT_F32, 1, l.inner, 14, 1);
    l.a = b->ops->alloc(b, DT_F32, 1, heads);
    b->ops->upload(b, l.a, (struct tensor){decays, DT_F32, 1, heads, heads});
    l.c = (struct ssm_const){l.a.data, l.rest.data, tensor_rows(l.rest, 1, 1).data};
    return l;
}

static void mamba_close(struct backend *b, struct mamba_layer *l)
{
    drop(b, 8, (struct tensor *const[]){&l->x, &l->z, &l->dt, &l->taps, &l->bias, &l->norm, &l->a, &l->rest});
}

/* Computes the first `rows` tokens: as a scan, or token by token with an f32 state. */
static void prompt(struct side *s, const struct mamba_layer *l, struct tensor y, struct tensor v,
                   struct tensor state, int64_t rows)
{
    struct backend *b = s->b;
    if (!s->recurrence) {
        b->ops->ssm_scan(b, tensor_rows(y, 0, rows), tensor_rows(v, 0, rows), tensor_rows(l->dt, 0, rows),
                         state, 1, &l->shape, &l->c);
        return;
    }
    for (int64_t t = 0; t < rows; t++)
        b->ops->ssm_step_batch(b, tensor_rows(y, t, 1), tensor_rows(v, t, 1), tensor_rows(l->dt, t, 1),
                               &state, NULL, &l->shape, &l->c);
}

/* Tests convolution and state space over a prompt and one more token. */
static void state_space(struct side *s, struct variant v)
{
    static const uint32_t key = 1;
    struct backend *b = s->b;
    enum dtype type = s->recurrence ? DT_F32 : (enum dtype)v.type;
    struct mamba_layer l = mamba_open(b, HEADS, v.head, KEYS);
    struct tensor c = b->ops->alloc(b, DT_BF16, KEYS, l.channels),
                  conv = b->ops->alloc(b, DT_BF16, TAPS - 1, l.channels),
                  ssm = b->ops->alloc(b, type, l.inner, N), y = b->ops->alloc(b, DT_BF16, KEYS, l.inner);
    b->ops->conv_tokens(b, tensor_rows(c, 0, KEYS - 1), tensor_rows(l.x, 0, KEYS - 1), l.taps, l.bias, conv);
    prompt(s, &l, y, c, ssm, KEYS - 1);
    b->ops->conv_batch(b, tensor_rows(c, KEYS - 1, 1), tensor_rows(l.x, KEYS - 1, 1), l.taps, l.bias, &conv);
    b->ops->ssm_step_batch(b, tensor_rows(y, KEYS - 1, 1), tensor_rows(c, KEYS - 1, 1),
                           tensor_rows(l.dt, KEYS - 1, 1), &ssm, &key, &l.shape, &l.c);
    keep_result(s, y);
    keep_result(s, ssm);
    drop(b, 4, (struct tensor *const[]){&c, &conv, &ssm, &y});
    mamba_close(b, &l);
}

/* Computes the layer between its projections, in one operation if the backend has it. */
static void mix(struct backend *b, const struct mamba_layer *l, struct tensor y, const struct tensor *conv,
                const struct tensor *ssm)
{
    static const uint32_t keys[SESSIONS] = {1, 2, 3, 4, 5};
    const struct mamba_batch e = {l->taps, l->bias, l->norm, 1e-5f, conv, ssm, keys, &l->shape, &l->c};
    if (b->ops->mamba_batch) {
        b->ops->mamba_batch(b, y, l->z, l->x, l->dt, &e);
        return;
    }
    struct tensor c = b->ops->alloc(b, DT_BF16, SESSIONS, l->channels);
    b->ops->conv_batch(b, c, l->x, l->taps, l->bias, conv);
    b->ops->ssm_step_batch(b, y, c, l->dt, ssm, keys, &l->shape, &l->c);
    b->ops->gated_norm(b, y, y, l->z, l->norm, GROUPS, e.eps);
    b->ops->free(b, &c);
}

/* Tests two tokens of several sessions; the second uses the states and counters left by the first. */
static void mamba_step(struct side *s, struct variant v)
{
    struct backend *b = s->b;
    struct mamba_layer l = mamba_open(b, MIXED_HEADS, v.head, SESSIONS);
    struct tensor all = v.type == DT_F32 ? random_tensor(b, DT_F32, SESSIONS * l.inner, N, 15, 1)
                                         : b->ops->alloc(b, (enum dtype)v.type, SESSIONS * l.inner, N),
                  before = random_tensor(b, DT_BF16, (int64_t)SESSIONS * (TAPS - 1), l.channels, 16, 1),
                  y = b->ops->alloc(b, DT_BF16, SESSIONS, l.inner), conv[SESSIONS], ssm[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        ssm[i] = tensor_rows(all, i * l.inner, l.inner);
        conv[i] = tensor_rows(before, (int64_t)i * (TAPS - 1), TAPS - 1);
    }
    for (int token = 0; token < 2; token++)
        mix(b, &l, y, conv, ssm);
    keep_result(s, y);
    keep_result(s, all);
    drop(b, 3, (struct tensor *const[]){&all, &before, &y});
    mamba_close(b, &l);
}

/* ---- Qwen's hybrid layers ------------------------------------------------------------------------------ */

/* Tests the gated delta rule over several tokens and one more, its gates, and the norm after it. */
static void delta_rule(struct side *s, struct variant v)
{
    const struct delta_shape shape = {GROUPS, HEADS, D, D, TAPS, 64};
    struct backend *b = s->b;
    struct tensor x = random_tensor(b, DT_BF16, MANY, (2 + HEADS) * D, 40, 1),
                  raw = random_tensor(b, DT_BF16, MANY, 2 * HEADS, 41, 1),
                  a = random_tensor(b, DT_F32, 1, HEADS, 42, 0x1p-5f),
                  bias = random_tensor(b, DT_F32, 1, HEADS, 43, 1),
                  state = random_tensor(b, DT_F32, HEADS * D, D, 44, 1),
                  z = random_tensor(b, DT_BF16, MANY, HEADS * D, 45, 1),
                  w = random_tensor(b, DT_F32, 1, D, 46, 1),
                  gates = b->ops->alloc(b, DT_F32, MANY, 2 * HEADS),
                  y = b->ops->alloc(b, DT_BF16, MANY, HEADS * D), last = tensor_rows(y, MANY - 1, 1);
    b->ops->delta_gates(b, gates, tensor_cols(raw, 0, HEADS), tensor_cols(raw, HEADS, HEADS), a, bias);
    b->ops->delta_scan(b, tensor_rows(y, 0, MANY - 1), x, gates, state, &shape);
    b->ops->delta_step_batch(b, last, tensor_rows(x, MANY - 1, 1), tensor_rows(gates, MANY - 1, 1), &state,
                             &shape);
    b->ops->norm_gate(b, y, y, z, w, 1e-6f);
    keep_result(s, y);
    keep_result(s, state);
    drop(b, 9, (struct tensor *const[]){&x, &raw, &a, &bias, &state, &z, &w, &gates, &y});
}

/* Tests a decode layer between its projections: two tokens of several sessions, in one operation if the
 * backend has it. */
static void delta_decode(struct side *s, struct variant v)
{
    enum { C = (2 + HEADS) * D, H = HEADS };
    const struct delta_shape shape = {GROUPS, HEADS, D, D, TAPS, 64};
    struct backend *b = s->b;
    struct tensor x = random_tensor(b, DT_BF16, SESSIONS, C, 60, 1),
                  ab = random_tensor(b, DT_BF16, SESSIONS, 2 * H, 61, 1),
                  z = random_tensor(b, DT_BF16, SESSIONS, H * D, 62, 1),
                  taps = random_tensor(b, DT_F32, C, TAPS, 63, 0.5f),
                  w = random_tensor(b, DT_F32, 3, D, 64, 1),
                  before = random_tensor(b, DT_BF16, (int64_t)SESSIONS * (TAPS - 1), C, 65, 1),
                  all = random_tensor(b, DT_F32, (int64_t)SESSIONS * H * D, D, 66, 1),
                  c = b->ops->alloc(b, DT_BF16, SESSIONS, C),
                  gates = b->ops->alloc(b, DT_F32, SESSIONS, 2 * H),
                  y = b->ops->alloc(b, DT_BF16, SESSIONS, H * D), conv[SESSIONS], states[SESSIONS];
    const struct delta_batch e = {taps,
                                  tensor_cols(tensor_rows(w, 1, 1), 0, H),
                                  tensor_cols(tensor_rows(w, 2, 1), 0, H),
                                  tensor_rows(w, 0, 1),
                                  1e-6f,
                                  conv,
                                  states,
                                  &shape};
    for (int i = 0; i < SESSIONS; i++) {
        conv[i] = tensor_rows(before, (int64_t)i * (TAPS - 1), TAPS - 1);
        states[i] = tensor_rows(all, (int64_t)i * H * D, (int64_t)H * D);
    }
    for (int token = 0; token < 2; token++) {
        if (b->ops->delta_batch) {
            b->ops->delta_batch(b, y, z, x, ab, &e);
            continue;
        }
        b->ops->conv_batch(b, c, x, e.conv, (struct tensor){0}, conv);
        b->ops->delta_gates(b, gates, tensor_cols(ab, 0, H), tensor_cols(ab, H, H), e.a, e.dt_bias);
        b->ops->delta_step_batch(b, y, c, gates, states, &shape);
        b->ops->norm_gate(b, y, y, z, e.norm, e.eps);
    }
    keep_result(s, y);
    keep_result(s, all);
    drop(b, 10, (struct tensor *const[]){&x, &ab, &z, &taps, &w, &before, &all, &c, &gates, &y});
}

/* Tests normed, rotated and gated heads, and the gate of an MLP. */
static void turned_heads(struct side *s, struct variant v)
{
    struct backend *b = s->b;
    struct tensor p = random_tensor(b, DT_BF16, MANY, 2 * HEADS * D, 50, 1),
                  w = random_tensor(b, DT_F32, 1, D, 51, 1),
                  table = random_tensor(b, DT_F32, MANY, D / 2, 52, 1),
                  whole = random_tensor(b, DT_F32, MANY, D, 53, 1),
                  u = random_tensor(b, DT_BF16, MANY, HEADS * D, 54, 1),
                  y = b->ops->alloc(b, DT_BF16, MANY, HEADS * D);
    b->ops->norm_rotate(b, y, p, w, table, HEADS, 1e-6f);
    b->ops->rotate(b, y, whole, HEADS);
    b->ops->gate_heads(b, y, p, HEADS);
    b->ops->swiglu(b, y, y, u);
    keep_result(s, y);
    drop(b, 6, (struct tensor *const[]){&p, &w, &table, &whole, &u, &y});
}

/* ---- attention ----------------------------------------------------------------------------------------- */

/* Returns keys or values in the KV cache type of the case. */
static struct tensor cached(struct backend *b, struct variant v, uint64_t seed)
{
    struct tensor t = random_tensor(b, DT_BF16, KEYS, v.head, seed, 1);
    if (v.type == DT_BF16)
        return t;
    struct tensor codes = b->ops->alloc(b, (enum dtype)v.type, KEYS, kv8_cols(1, v.head));
    b->ops->kv_quantize(b, codes, t, 1);
    b->ops->free(b, &t);
    return codes;
}

/* Tests a prompt over a KV cache, and one token over the same keys. */
static void attention(struct side *s, struct variant v)
{
    struct backend *b = s->b;
    struct tensor q = random_tensor(b, DT_BF16, MANY, (int64_t)HEADS * v.head, 10, 1),
                  keys = cached(b, v, 11), values = cached(b, v, 12),
                  y = b->ops->alloc(b, DT_BF16, MANY + 1, (int64_t)HEADS * v.head);
    b->ops->attend_tokens(b, tensor_rows(y, 0, MANY), q, keys, values, HEADS, 1, KEYS - MANY);
    b->ops->attend_batch(b, tensor_rows(y, MANY, 1), tensor_rows(q, 0, 1), &keys, &values, HEADS, 1);
    keep_result(s, y);
    drop(b, 4, (struct tensor *const[]){&q, &keys, &values, &y});
}

static void tower_attention(struct side *s, struct variant v)
{
    struct backend *b = s->b;
    struct tensor qkv = random_tensor(b, DT_BF16, TILES * PATCHES, 3 * (int64_t)HEADS * v.head, 17, 1),
                  y = b->ops->alloc(b, DT_BF16, TILES * PATCHES, (int64_t)HEADS * v.head);
    b->ops->attend_tiles(b, y, qkv, HEADS, TILES);
    keep_result(s, y);
    drop(b, 2, (struct tensor *const[]){&qkv, &y});
}

/* ---- the next token ------------------------------------------------------------------------------------ */

/* Tests greedy sampling, sampling at random, and top_p sampling with a mask; compares ids and
 * log-probabilities. */
static void sampling(struct side *s, struct variant v)
{
    uint64_t known[(IDS + 63) / 64], allowed[(IDS + 63) / 64];
    memset(known, 0xff, sizeof known);
    memset(allowed, 0xa5, sizeof allowed);
    const struct sampler how[ROWS] = {
        {known, NULL, 0, 1, 0}, {known, NULL, 1, 1, 0.6}, {known, allowed, 0.7f, 0.9f, 0.3}};
    struct backend *b = s->b;
    struct tensor logits = random_tensor(b, DT_F32, ROWS, IDS, 18, 6), host = host_tensor(DT_F32, ROWS, IDS),
                  found = host_tensor(DT_F32, ROWS, 2);
    struct sampled out[ROWS];
    b->ops->download(b, host, logits);
    if (b->ops->sample)
        b->ops->sample(b, logits, how, out);
    for (int t = 0; t < ROWS; t++) {
        if (!b->ops->sample)
            out[t] = sample_token((const float *)host.data + (size_t)t * IDS, IDS, &how[t]);
        ((float *)found.data)[2 * t] = (float)out[t].id;
        ((float *)found.data)[2 * t + 1] = 1000 * out[t].logprob;
    }
    s->out[s->parts++] = found;
    free(host.data);
    b->ops->free(b, &logits);
}

/* ---- graphs -------------------------------------------------------------------------------------------- */

/* Tests one decode step run directly, recorded, and replayed twice, each time with other ids and targets. */
static void replay(struct side *s, struct variant v)
{
    enum { STEPS = 4, TOKENS = 2, VOCAB = 50 };
    static const uint64_t key = UINT64_MAX; /* not the key of a decode step */
    struct backend *b = s->b;
    struct tensor table = random_tensor(b, DT_BF16, VOCAB, 4 * D, 19, 2),
                  gain = random_tensor(b, DT_F32, 1, 4 * D, 4, 1),
                  h = b->ops->alloc(b, DT_BF16, TOKENS, 4 * D), y = b->ops->alloc(b, DT_BF16, TOKENS, D),
                  all = b->ops->alloc(b, DT_BF16, STEPS * TOKENS, D);
    struct weight *w = some_weight(b, QUANT_NONE, D, 4 * D);
    for (int i = 0; i < STEPS; i++) {
        const int32_t ids[TOKENS] = {7 * i + 3, 49 - 5 * i};
        const struct tensor to[TOKENS] = {tensor_rows(all, 2 * STEPS - 1 - i, 1), tensor_rows(all, i, 1)};
        if (b->ops->graph_begin)
            b->ops->graph_begin(b, key);
        b->ops->embed(b, h, table, ids);
        b->ops->rmsnorm(b, h, h, gain, 1e-5f);
        b->ops->linear(b, y, h, w, (struct tensor){0}, EPI_NONE, SET);
        b->ops->scatter(b, to, y);
        if (b->ops->graph_end)
            b->ops->graph_end(b);
    }
    keep_result(s, all);
    b->ops->weight_free(b, w);
    drop(b, 5, (struct tensor *const[]){&table, &gain, &h, &y, &all});
}

/* ---- all of them --------------------------------------------------------------------------------------- */

/* Returns the largest difference, relative to the expected value plus the root mean square of all. */
static double apart(struct tensor have, struct tensor want)
{
    const float *x = have.data, *y = want.data;
    double sum = 0, most = 0;
    int64_t n = want.rows * want.cols;
    for (int64_t i = 0; i < n; i++)
        sum += (double)y[i] * y[i];
    for (int64_t i = 0; i < n; i++) {
        double off = fabs((double)x[i] - y[i]) / (fabs((double)y[i]) + sqrt(sum / (double)n));
        most = off > most || isnan(off) ? off : most;
    }
    return most;
}

static double worst(const struct side *have, const struct side *want)
{
    double most = 0;
    for (int i = 0; i < want->parts; i++) {
        double off = apart(have->out[i], want->out[i]);
        most = off > most || isnan(off) ? off : most;
    }
    return most;
}

static const double rounded = 0x1p-6 /* a bf16 rounding is 2^-9 */, exact = 1e-6;

static const struct {
    const char *name;
    void (*run)(struct side *s, struct variant v);
    struct variant v;
    const double *most;
} cases[] = {
    {"a product of few rows", product, {ROWS, QUANT_NONE, 0}, &rounded},
    {"a product of many rows", product, {MANY, QUANT_NONE, 0}, &rounded},
    {"a product of few rows in int8", product, {ROWS, QUANT_I8, 0}, &rounded},
    {"a product of some rows in int8", product, {MANY, QUANT_I8, 0}, &rounded},
    {"a product of many rows in int8", product, {LIBRARY, QUANT_I8, 0}, &rounded},
    {"a product of few rows in int4", product, {ROWS, QUANT_I4, 0}, &rounded},
    {"a product of many rows in int4", product, {LIBRARY, QUANT_I4, 0}, &rounded},
    {"a product of few rows in fp8", product, {ROWS, QUANT_F8, 0}, &rounded},
    {"a product of many rows in fp8", product, {LIBRARY, QUANT_F8, 0}, &rounded},
    {"a product of few rows in fp4", product, {ROWS, QUANT_F4, 0}, &rounded},
    {"a product of many rows in fp4", product, {LIBRARY, QUANT_F4, 0}, &rounded},
    {"a norm", norm, {0}, &rounded},
    {"the state space", state_space, {0, DT_F32, 64}, &rounded},
    {"the state space with heads of 80", state_space, {0, DT_F32, 80}, &rounded},
    {"the state space in fp16", state_space, {0, DT_F16, 80}, &rounded},
    {"Mamba's decode step", mamba_step, {0, DT_F32, 80}, &rounded},
    {"Mamba's decode step with heads of 64", mamba_step, {0, DT_F32, 64}, &rounded},
    {"Mamba's decode step in fp16", mamba_step, {0, DT_F16, 80}, &rounded},
    {"the delta rule", delta_rule, {0}, &rounded},
    {"Qwen's decode step", delta_decode, {0}, &rounded},
    {"rotary positions and gates", turned_heads, {0}, &rounded},
    {"attention", attention, {0, DT_BF16, 128}, &rounded},
    {"attention over 8-bit keys", attention, {0, DT_F8E4M3, 128}, &rounded},
    {"attention with heads of 256", attention, {0, DT_BF16, 256}, &rounded},
    {"attention with heads of 256 over 8-bit keys", attention, {0, DT_F8E4M3, 256}, &rounded},
    {"the tower's attention", tower_attention, {0, DT_BF16, 80}, &rounded},
    {"the tower's attention with heads of 72", tower_attention, {0, DT_BF16, 72}, &rounded},
    {"sampling", sampling, {0}, &exact},
    {"a replayed graph", replay, {0}, &rounded},
};

int backend_check(struct backend *b, struct err *e)
{
    struct side ref = {.b = backend_cpu("ref", NULL, NULL), .recurrence = true}, here = {.b = b};
    int rc = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && rc == 0; i++) {
        cases[i].run(&ref, cases[i].v);
        cases[i].run(&here, cases[i].v);
        double off = worst(&here, &ref);
        if (!(off < *cases[i].most))
            rc = err_set(
                e, ERR_ENV,
                "%s computes %s incorrectly (error %.2g): this GPU cannot be used; please report its model",
                b->ops->name, cases[i].name, off);
        forget(&ref);
        forget(&here);
    }
    backend_free(ref.b);
    return rc;
}
