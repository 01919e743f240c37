/* kernels.c - every operation with the shapes of real models: see bench.h.
 *
 * One list of operations; the models are data: the tiny one with --random tiny, else two real ones.  A single
 * token is bounded by memory, because weights, state or keys are read once for it; everything else is bounded
 * by arithmetic.
 *
 * Only a quarter of Holotron's head is measured: its time is proportional to its size, and all of it would
 * need 3 GB. */
#include "bench/bench.h"

#include "ops/quant.h"
#include "ops/synthetic.h"

#include <string.h>

struct shapes {
    const char *name;
    int tile, vit_width, vit_mlp, vit_heads;  /* tile: tokens of a tile */
    int hidden, mlp, vocab;                   /* language model */
    int heads, head_dim, state, groups, scan; /* Mamba; scan: chunk length */
    int q_heads, kv_heads, d;                 /* attention */
    int prefill, context;                     /* tokens at once; tokens before the decoded one */
};

static const struct shapes models[] = {
    {"tiny", 20, 64, 128, 2, 64, 128, 96, 4, 16, 16, 2, 32, 4, 2, 16, 40, 40},
    {"Holotron", 1040, 1280, 5120, 16, 5120, 20480, 33024, 128, 80, 128, 8, 128, 40, 8, 128, 256, 4096},
    {"embedded", 1028, 128, 512, 2, 256, 768, 352, 8, 64, 64, 2, 64, 4, 2, 64, 350, 350},
};

struct operation { /* unused tensors stay empty */
    const struct bench *k;
    struct backend *b;
    const struct ops *o;
    struct tensor y, x, z, w, bias, state;
    struct weight *weight;
    enum epilogue epi;
    enum accumulate mode;
    int groups, heads, kv_heads;
    int64_t past;
    struct ssm_shape shape;
    struct ssm_const constants;
    void (*fn)(const struct operation *s);
    int times;
};

static struct operation begin(const struct bench *k)
{
    return (struct operation){.k = k, .b = k->b, .o = k->b->ops};
}

/* small values of both signs, different in every row and column */
static const struct synthetic values = {12345, 0, 0.05f};

static struct tensor filled(struct operation *s, enum dtype t, int64_t rows, int64_t cols)
{
    struct tensor x = s->o->alloc(s->b, t, rows, cols);
    s->o->fill_synthetic(s->b, x, &values);
    return x;
}

/* Calls the operation s->times times.  On a GPU one wait covers several calls, because waiting takes as long
 * as a small kernel. */
static void run_times(void *arg)
{
    struct operation *s = arg;
    for (int i = 0; i < s->times; i++)
        s->fn(s);
}

/* Measures an operation, prints its row and frees its tensors.  One token is limited by the bytes that it
 * reads, several by arithmetic (0: by neither). */
static void finish(struct operation *s, const char *what, void (*fn)(const struct operation *s), double flop,
                   double bytes)
{
    bool one = s->x.rows == 1;
    s->fn = fn;
    s->times = bench_on_gpu(s->k) ? 16 : 1;
    if (bench_wants(s->k, what)) {
        struct timing t = bench_measure(s->k, run_times, s);
        t.median /= s->times;
        t.min /= s->times;
        bench_row(s->k, "kernels", what, t,
                  (struct rate){.flop = one ? 0 : flop, .bytes = one ? bytes : 0, .factor = DT_BF16});
    }
    struct tensor *all[] = {&s->y, &s->x, &s->z, &s->w, &s->bias, &s->state};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        s->o->free(s->b, all[i]);
    if (s->weight)
        s->o->weight_free(s->b, s->weight);
}

/* ---- operations ------------------------------------------------------------------------------------- */

static void run_linear(const struct operation *s)
{
    s->o->linear(s->b, s->y, s->x, s->weight, s->bias, s->epi, s->mode);
}

static void linear(const struct bench *k, const struct shapes *m, const char *what, enum quant_format format,
                   int64_t T, int64_t N, int64_t K, enum epilogue epi, enum accumulate mode)
{
    struct operation s = begin(k);
    s.weight = s.o->make_synthetic_weight(s.b, format, DT_BF16, N, K, &values);
    s.x = filled(&s, DT_BF16, T, K);
    s.y = filled(&s, DT_BF16, T, N);
    s.epi = epi;
    s.mode = mode;
    if (epi == EPI_GELU)
        s.bias = filled(&s, DT_F32, 1, N);
    finish(&s,
           bench_name("%s: %s%s%s %lldx%lldx%lld", m->name, what, format ? ", " : "", quant_name(format),
                      (long long)T, (long long)N, (long long)K),
           run_linear, 2.0 * (double)(T * N * K),
           format ? (double)s.o->quant_bytes(s.b, format, N, K) : 2.0 * (double)(N * K));
}

static void run_rmsnorm(const struct operation *s)
{
    s->o->rmsnorm(s->b, s->y, s->x, s->w, 1e-5f);
}

static void run_layernorm(const struct operation *s)
{
    s->o->layernorm(s->b, s->y, s->x, s->w, s->bias, 1e-6f);
}

static void run_gated_norm(const struct operation *s)
{
    s->o->gated_norm(s->b, s->y, s->x, s->z, s->w, s->groups, 1e-5f);
}

static void norm(const struct bench *k, const struct shapes *m, const char *what, int64_t T, int64_t D,
                 int groups, void (*fn)(const struct operation *s))
{
    struct operation s = begin(k);
    s.y = filled(&s, DT_BF16, T, D);
    s.x = filled(&s, DT_BF16, T, D);
    s.z = filled(&s, DT_BF16, T, D);
    s.w = filled(&s, DT_F32, 1, D);
    s.bias = filled(&s, DT_F32, 1, D);
    s.groups = groups;
    finish(&s, bench_name("%s: %s %lldx%lld", m->name, what, (long long)T, (long long)D), fn, 0, 0);
}

static void run_conv(const struct operation *s)
{
    s->o->conv_tokens(s->b, s->y, s->x, s->w, s->bias, s->state);
}

static void conv(const struct bench *k, const struct shapes *m, int64_t T)
{
    struct operation s = begin(k);
    int64_t C = (int64_t)m->heads * m->head_dim + 2LL * m->groups * m->state;
    s.y = filled(&s, DT_BF16, T, C);
    s.x = filled(&s, DT_BF16, T, C);
    s.w = filled(&s, DT_F32, C, 4);
    s.bias = filled(&s, DT_F32, 1, C);
    s.state = filled(&s, DT_BF16, 3, C);
    finish(&s, bench_name("%s: conv %lldx%lld", m->name, (long long)T, (long long)C), run_conv, 0, 0);
}

static void run_scan(const struct operation *s)
{
    s->o->ssm_scan(s->b, s->y, s->x, s->z, s->state, 0, &s->shape, &s->constants);
}

static void run_step(const struct operation *s)
{
    static const uint32_t key = 0;
    s->o->ssm_step_batch(s->b, s->y, s->x, s->z, &s->state, &key, &s->shape, &s->constants);
}

static void ssm(const struct bench *k, const struct shapes *m, int64_t T, enum dtype type)
{
    struct operation s = begin(k);
    int64_t inner = (int64_t)m->heads * m->head_dim, C = inner + 2LL * m->groups * m->state, Q = m->scan;
    s.y = filled(&s, DT_BF16, T, inner);
    s.x = filled(&s, DT_BF16, T, C);
    s.z = filled(&s, DT_BF16, T, m->heads);
    s.state = type == DT_F32 ? filled(&s, type, inner, m->state) : s.o->alloc(s.b, type, inner, m->state);
    s.w = filled(&s, DT_F32, 3, m->heads);
    s.o->fill_synthetic(s.b, tensor_rows(s.w, 0, 1), &(struct synthetic){1, -20, 0.05f}); /* about -1 */
    s.shape = (struct ssm_shape){m->heads, m->head_dim, m->state, m->groups, 4, m->scan, 0, 1e30f};
    s.constants =
        (struct ssm_const){s.w.data, (float *)s.w.data + m->heads, (float *)s.w.data + 2 * m->heads};
    /* M x over half a triangle, S C, and the new state; C B^T for each group */
    double scan = (double)T * (double)inner * (double)(Q + 4LL * m->state) +
                  (double)T * (double)Q * 2.0 * m->groups * m->state;
    double state = 2 * (double)dtype_size(type) * (double)inner * m->state;
    finish(&s,
           bench_name("%s: ssm %s %lld tokens%s", m->name, T == 1 ? "step" : "scan", (long long)T,
                      type == DT_F32 ? "" : ", fp16"),
           T == 1 ? run_step : run_scan, scan, state);
}

static void run_attend(const struct operation *s)
{
    s->o->attend_tokens(s->b, s->y, s->x, s->z, s->w, s->heads, s->kv_heads, s->past);
}

static void attend(const struct bench *k, const struct shapes *m, int64_t T, int64_t past)
{
    struct operation s = begin(k);
    int64_t kv = (int64_t)m->kv_heads * m->d, keys = past + T;
    s.heads = m->q_heads;
    s.kv_heads = m->kv_heads;
    s.past = past;
    s.y = filled(&s, DT_BF16, T, (int64_t)m->q_heads * m->d);
    s.x = filled(&s, DT_BF16, T, (int64_t)m->q_heads * m->d);
    s.z = filled(&s, DT_BF16, keys, kv);
    s.w = filled(&s, DT_BF16, keys, kv);
    double seen = (double)T * (double)past + 0.5 * (double)T * (double)(T + 1);
    finish(&s, bench_name("%s: attend %lld after %lld", m->name, (long long)T, (long long)past), run_attend,
           4.0 * seen * m->q_heads * m->d, 4.0 * (double)(keys * kv));
}

static void run_attend_tiles(const struct operation *s)
{
    s->o->attend_tiles(s->b, s->y, s->x, s->heads, 1);
}

static void attend_tiles(const struct bench *k, const struct shapes *m)
{
    struct operation s = begin(k);
    s.heads = m->vit_heads;
    s.y = filled(&s, DT_BF16, m->tile, m->vit_width);
    s.x = filled(&s, DT_BF16, m->tile, 3LL * m->vit_width);
    finish(&s,
           bench_name("%s: attend tile %d, %d heads of %d", m->name, m->tile, m->vit_heads,
                      m->vit_width / m->vit_heads),
           run_attend_tiles, 4.0 * m->tile * m->tile * m->vit_width, 0);
}

/* ---- the list ---------------------------------------------------------------------------------------- */

static void vision(const struct bench *k, const struct shapes *m)
{
    int n = m->tile, w = m->vit_width;
    norm(k, m, "ViT layer norm", n, w, 1, run_layernorm);
    linear(k, m, "ViT qkv", QUANT_NONE, n, 3LL * w, w, EPI_NONE, SET);
    attend_tiles(k, m);
    linear(k, m, "ViT proj", QUANT_NONE, n, w, w, EPI_NONE, ADD);
    linear(k, m, "ViT fc1, GELU", QUANT_NONE, n, m->vit_mlp, w, EPI_GELU, SET);
    linear(k, m, "ViT fc2", QUANT_NONE, n, w, m->vit_mlp, EPI_NONE, ADD);
}

static void language(const struct bench *k, const struct shapes *m, int64_t T)
{
    int64_t inner = (int64_t)m->heads * m->head_dim, bc = 2LL * m->groups * m->state;
    norm(k, m, "RMS norm", T, m->hidden, 1, run_rmsnorm);
    linear(k, m, "Mamba in", QUANT_NONE, T, 2 * inner + bc + m->heads, m->hidden, EPI_NONE, SET);
    conv(k, m, T);
    ssm(k, m, T, DT_F32);
    ssm(k, m, T, DT_F16);
    norm(k, m, "gated norm", T, inner, m->groups, run_gated_norm);
    linear(k, m, "Mamba out", QUANT_NONE, T, m->hidden, inner, EPI_NONE, ADD);
    attend(k, m, T, T == 1 ? m->context : 0);
    linear(k, m, "MLP up", QUANT_NONE, T, m->mlp, m->hidden, EPI_RELU2, SET);
    linear(k, m, "MLP down", QUANT_NONE, T, m->hidden, m->mlp, EPI_NONE, ADD);
    if (T == 1)
        linear(k, m, "head", QUANT_NONE, 1, m->vocab, m->hidden, EPI_NONE, SET);
}

static void quantized(const struct bench *k, const struct shapes *m)
{
    static const enum quant_format formats[] = {QUANT_I8, QUANT_F8, QUANT_I4};
    /* as in cuda/linear.cu: bf16 uses the library from 17 rows on, codes from 65 on */
    static const int rows[] = {16, 17, 32, 64, 128};
    for (int i = 0; i < 5; i++)
        for (int f = 0; f < 2; f++)
            linear(k, m, "MLP up", f ? QUANT_F8 : QUANT_NONE, rows[i], m->mlp, m->hidden, EPI_NONE, SET);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        linear(k, m, "MLP up", formats[i], m->prefill, m->mlp, m->hidden, EPI_NONE, SET);
        linear(k, m, "MLP up", formats[i], 1, m->mlp, m->hidden, EPI_NONE, SET);
        linear(k, m, "MLP down", formats[i], 1, m->hidden, m->mlp, EPI_NONE, SET);
    }
}

void bench_kernels(const struct bench *k)
{
    bool tiny = k->random && !strcmp(k->random, models[0].name);
    for (size_t i = !tiny; i < (tiny ? 1 : sizeof models / sizeof *models); i++) {
        vision(k, &models[i]);
        language(k, &models[i], models[i].prefill);
        language(k, &models[i], 1);
        quantized(k, &models[i]);
    }
}
