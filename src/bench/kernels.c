/* kernels.c - every operation at the shapes of real models: see bench.h.
 *
 * One list of operations; the models are data: the tiny one with --random tiny, else two real ones.  A
 * single token is bounded by memory, since weights, state or keys are read once for it, everything else by
 * arithmetic.
 *
 * Only a quarter of Holotron's head is measured: its time is proportional to its size, and all of it would
 * need 3 GB.
 */
#include "bench/bench.h"

#include "ops/quant.h"
#include "ops/synthetic.h"

#include <stdio.h>
#include <string.h>

struct shapes {
    const char *name;
    int tile, vit_width, vit_mlp, vit_heads;  /* tokens of a tile */
    int hidden, mlp, vocab;                   /* language model */
    int heads, head_dim, state, groups, scan; /* Mamba; scan: chunk length */
    int q_heads, kv_heads, d;                 /* attention */
    int prefill, context;                     /* tokens at once; tokens before the one decoded */
};

static const struct shapes models[] = {
    {"tiny", 20, 64, 128, 2, 64, 128, 96, 4, 16, 16, 2, 32, 4, 2, 16, 40, 40},
    {"embedded", 1028, 128, 512, 2, 256, 768, 352, 8, 64, 64, 2, 64, 4, 2, 64, 350, 350},
    {"Holotron", 1040, 1280, 5120, 16, 5120, 20480, 33024, 128, 80, 128, 8, 128, 40, 8, 128, 256, 4096},
};

struct operation { /* unused tensors stay empty */
    const struct bench *k;
    struct backend *b;
    const struct ops *o;
    struct tensor y, x, z, w, bias, state;
    struct weight *weight;
    enum epilogue epi;
    int add, groups, heads, kv_heads;
    int64_t past;
    struct ssm_shape shape;
    struct ssm_const constants;
    void (*fn)(void *);
    int times;
};

static struct operation begin(const struct bench *k)
{
    return (struct operation){.k = k, .b = k->b, .o = k->b->ops};
}

/* Small values of both signs, different in every row and column. */
static const struct made values = {12345, 0, 0.05f};

static struct tensor filled(struct operation *s, enum dtype t, int64_t rows, int64_t cols)
{
    struct tensor x = s->o->alloc(s->b, t, rows, cols);
    s->o->make(s->b, x, &values);
    return x;
}

/* On a GPU one wait is for several calls: waiting takes as long as a small kernel. */
static void run_times(void *arg)
{
    struct operation *s = arg;
    for (int i = 0; i < s->times; i++)
        s->fn(s);
}

static void finish(struct operation *s, const char *model, const char *what, void (*fn)(void *), double flop,
                   double bytes)
{
    char name[96];
    snprintf(name, sizeof name, "%s: %s", model, what);
    s->fn = fn;
    s->times = bench_on_gpu(s->k) ? 16 : 1;
    struct timing t = bench_measure(s->k, run_times, s);
    t.median /= s->times;
    t.min /= s->times;
    bench_row(s->k, "kernels", name, t, (struct rate){.flop = flop, .bytes = bytes, .factor = DT_BF16});
    struct tensor *all[] = {&s->y, &s->x, &s->z, &s->w, &s->bias, &s->state};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        s->o->free(s->b, all[i]);
    if (s->weight)
        s->o->unpack_free(s->b, s->weight);
}

/* ---- operations ------------------------------------------------------------------------------------- */

static void run_linear(void *arg)
{
    struct operation *s = arg;
    s->o->linear(s->b, s->y, s->x, s->weight, s->bias, s->epi, s->add);
}

static void linear(const struct bench *k, const char *model, const char *what, int64_t T, int64_t N,
                   int64_t K, enum epilogue epi, int add)
{
    struct operation s = begin(k);
    s.weight = s.o->make_synthetic_weight(s.b, QUANT_NONE, DT_BF16, N, K, &values);
    s.x = filled(&s, DT_BF16, T, K);
    s.y = filled(&s, DT_BF16, T, N);
    s.epi = epi;
    s.add = add;
    if (epi == EPI_GELU)
        s.bias = filled(&s, DT_F32, 1, N);
    char name[64];
    snprintf(name, sizeof name, "%s %lldx%lldx%lld", what, (long long)T, (long long)N, (long long)K);
    bool one = T == 1;
    finish(&s, model, name, run_linear, one ? 0 : 2.0 * (double)(T * N * K), one ? 2.0 * (double)(N * K) : 0);
}

/* The same with a quantized matrix. */
static void quantized_linear(const struct bench *k, const char *model, const char *what,
                             enum quant_format format, int64_t T, int64_t N, int64_t K)
{
    struct operation s = begin(k);
    double bytes = (double)s.o->quant_bytes(s.b, format, N, K);
    s.weight = s.o->make_synthetic_weight(s.b, format, DT_BF16, N, K, &values);
    s.x = filled(&s, DT_BF16, T, K);
    s.y = filled(&s, DT_BF16, T, N);
    char name[64];
    snprintf(name, sizeof name, "%s, %s %lldx%lldx%lld", what, quant_name(format), (long long)T, (long long)N,
             (long long)K);
    finish(&s, model, name, run_linear, T == 1 ? 0 : 2.0 * (double)(T * N * K), T == 1 ? bytes : 0);
}

static void run_rmsnorm(void *arg)
{
    struct operation *s = arg;
    s->o->rmsnorm(s->b, s->y, s->x, s->w, 1e-5f);
}

static void run_layernorm(void *arg)
{
    struct operation *s = arg;
    s->o->layernorm(s->b, s->y, s->x, s->w, s->bias, 1e-6f);
}

static void run_gated_norm(void *arg)
{
    struct operation *s = arg;
    s->o->gated_norm(s->b, s->y, s->x, s->z, s->w, s->groups, 1e-5f);
}

static void norm(const struct bench *k, const char *model, const char *what, int64_t T, int64_t D, int groups,
                 void (*fn)(void *))
{
    struct operation s = begin(k);
    s.y = filled(&s, DT_BF16, T, D);
    s.x = filled(&s, DT_BF16, T, D);
    s.z = filled(&s, DT_BF16, T, D);
    s.w = filled(&s, DT_F32, 1, D);
    s.bias = filled(&s, DT_F32, 1, D);
    s.groups = groups;
    char name[64];
    snprintf(name, sizeof name, "%s %lldx%lld", what, (long long)T, (long long)D);
    finish(&s, model, name, fn, 0, 0);
}

static void run_conv(void *arg)
{
    struct operation *s = arg;
    s->o->conv(s->b, s->y, s->x, s->w, s->bias, s->state);
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
    char name[64];
    snprintf(name, sizeof name, "conv %lldx%lld", (long long)T, (long long)C);
    finish(&s, m->name, name, run_conv, 0, 0);
}

static void run_scan(void *arg)
{
    struct operation *s = arg;
    s->o->ssm_scan(s->b, s->y, s->x, s->z, s->state, 0, &s->shape, &s->constants);
}

static void run_step(void *arg)
{
    struct operation *s = arg;
    s->o->ssm_step(s->b, s->y, s->x, s->z, s->state, 0, &s->shape, &s->constants);
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
    s.o->make(s.b, tensor_rows(s.w, 0, 1), &(struct made){1, -20, 0.05f}); /* about -1 */
    s.shape = (struct ssm_shape){m->heads, m->head_dim, m->state, m->groups, 4, m->scan, 0, 1e30f};
    s.constants =
        (struct ssm_const){s.w.data, (float *)s.w.data + m->heads, (float *)s.w.data + 2 * m->heads};
    char name[64];
    snprintf(name, sizeof name, "%s %lld tokens%s", T == 1 ? "ssm step" : "ssm scan", (long long)T,
             type == DT_F32 ? "" : ", fp16");
    /* M x over half a triangle, S C, and the new state; C B^T for each group */
    double scan = (double)T * (double)inner * (double)(Q + 4LL * m->state) +
                  (double)T * (double)Q * 2.0 * m->groups * m->state;
    double state = 2 * (double)dtype_size(type) * (double)inner * m->state;
    finish(&s, m->name, name, T == 1 ? run_step : run_scan, T == 1 ? 0 : scan, T == 1 ? state : 0);
}

static void run_attend(void *arg)
{
    struct operation *s = arg;
    s->o->attend(s->b, s->y, s->x, s->z, s->w, s->heads, s->kv_heads, s->past);
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
    char name[64];
    snprintf(name, sizeof name, "attend %lld after %lld", (long long)T, (long long)past);
    double seen = (double)T * (double)past + 0.5 * (double)T * (double)(T + 1);
    finish(&s, m->name, name, run_attend, T == 1 ? 0 : 4.0 * seen * m->q_heads * m->d,
           T == 1 ? 4.0 * (double)(keys * kv) : 0);
}

static void run_attend_tiles(void *arg)
{
    struct operation *s = arg;
    s->o->attend_tiles(s->b, s->y, s->x, s->heads, 1);
}

static void attend_tiles(const struct bench *k, const struct shapes *m)
{
    struct operation s = begin(k);
    s.heads = m->vit_heads;
    s.y = filled(&s, DT_BF16, m->tile, m->vit_width);
    s.x = filled(&s, DT_BF16, m->tile, 3LL * m->vit_width);
    char name[64];
    snprintf(name, sizeof name, "attend tile %d, %d heads of %d", m->tile, m->vit_heads,
             m->vit_width / m->vit_heads);
    finish(&s, m->name, name, run_attend_tiles, 4.0 * m->tile * m->tile * m->vit_width, 0);
}

/* ---- the list ---------------------------------------------------------------------------------------- */

static void vision(const struct bench *k, const struct shapes *m)
{
    int n = m->tile, w = m->vit_width;
    norm(k, m->name, "ViT layer norm", n, w, 1, run_layernorm);
    linear(k, m->name, "ViT qkv", n, 3LL * w, w, EPI_NONE, 0);
    attend_tiles(k, m);
    linear(k, m->name, "ViT proj", n, w, w, EPI_NONE, 1);
    linear(k, m->name, "ViT fc1, GELU", n, m->vit_mlp, w, EPI_GELU, 0);
    linear(k, m->name, "ViT fc2", n, w, m->vit_mlp, EPI_NONE, 1);
}

static void language(const struct bench *k, const struct shapes *m, int64_t T)
{
    int64_t inner = (int64_t)m->heads * m->head_dim, bc = 2LL * m->groups * m->state;
    norm(k, m->name, "RMS norm", T, m->hidden, 1, run_rmsnorm);
    linear(k, m->name, "Mamba in", T, 2 * inner + bc + m->heads, m->hidden, EPI_NONE, 0);
    conv(k, m, T);
    ssm(k, m, T, DT_F32);
    ssm(k, m, T, DT_F16);
    norm(k, m->name, "gated norm", T, inner, m->groups, run_gated_norm);
    linear(k, m->name, "Mamba out", T, m->hidden, inner, EPI_NONE, 1);
    attend(k, m, T, T == 1 ? m->context : 0);
    linear(k, m->name, "MLP up", T, m->mlp, m->hidden, EPI_RELU2, 0);
    linear(k, m->name, "MLP down", T, m->hidden, m->mlp, EPI_NONE, 1);
    if (T == 1)
        linear(k, m->name, "head", 1, m->vocab, m->hidden, EPI_NONE, 0);
}

static void quantized(const struct bench *k, const struct shapes *m)
{
    static const enum quant_format formats[] = {QUANT_I8, QUANT_F8, QUANT_I4};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        quantized_linear(k, m->name, "MLP up", formats[i], m->prefill, m->mlp, m->hidden);
        quantized_linear(k, m->name, "MLP up", formats[i], 1, m->mlp, m->hidden);
        quantized_linear(k, m->name, "MLP down", formats[i], 1, m->hidden, m->mlp);
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
