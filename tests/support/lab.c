/* lab.c - see lab.h. */
#include "lab.h"

#include "check.h"

#include "ops/stochastic_round.h"
#include "src/ops/cuda.h"

#include <math.h>

uint64_t lab_random;

double lab_uniform(double lo, double hi)
{
    return lo + (hi - lo) * check_random(&lab_random);
}

int lab_between(int lo, int hi)
{
    return lo + (int)(check_random(&lab_random) * (hi - lo + 1));
}

void lab_each_isa(void (*fn)(struct backend *b))
{
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    for (int i = 0; i < n; i++) {
        struct backend *b = backend_cpu(isa[i], NULL, NULL);
        fn(b);
        backend_free(b);
    }
}

void lab_each_fast(int threads, void (*fn)(const char *isa, struct backend *ref, struct backend *fast))
{
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    struct pool *pool = pool_new(threads);
    struct backend *ref = backend_cpu("ref", NULL, NULL);
    for (int i = 1; i < n; i++) {
        struct backend *fast = backend_cpu(isa[i], pool, NULL);
        fn(isa[i], ref, fast);
        backend_free(fast);
    }
    backend_free(ref);
    pool_free(pool);
}

void lab_each_threads(int threads, void (*fn)(struct backend *one, struct backend *many))
{
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    struct pool *pool = pool_new(threads);
    for (int i = 0; i < n; i++) {
        struct backend *one = backend_cpu(isa[i], NULL, NULL), *many = backend_cpu(isa[i], pool, NULL);
        fn(one, many);
        backend_free(one);
        backend_free(many);
    }
    pool_free(pool);
}

/* ---- tensors on the host ---------------------------------------------------------------------- */

float lab_at(struct tensor t, int64_t r, int64_t c)
{
    int64_t i = r * t.stride + c;
    return t.dtype == DT_BF16  ? bf16_to_f32(((uint16_t *)t.data)[i])
           : t.dtype == DT_F16 ? f16_to_f32(((uint16_t *)t.data)[i])
                               : ((float *)t.data)[i];
}

void lab_fill(struct tensor t, double lo, double hi)
{
    for (int64_t r = 0; r < t.rows; r++)
        for (int64_t c = 0; c < t.cols; c++) {
            float v = (float)lab_uniform(lo, hi);
            if (t.dtype == DT_BF16)
                ((uint16_t *)t.data)[r * t.stride + c] = bf16_from_f32(v);
            else if (t.dtype == DT_F16)
                ((uint16_t *)t.data)[r * t.stride + c] = f16_truncate(v);
            else
                ((float *)t.data)[r * t.stride + c] = v;
        }
}

struct tensor lab_make(struct backend *b, enum dtype d, int64_t rows, int64_t cols, double lo, double hi)
{
    struct tensor t = b->ops->alloc(b, d, rows, cols);
    lab_fill(t, lo, hi);
    return t;
}

struct tensor lab_twin(struct backend *b, struct tensor t)
{
    struct tensor c = b->ops->alloc(b, t.dtype, t.rows, t.cols);
    b->ops->copy(b, c, t);
    return c;
}

void lab_poison(struct tensor t)
{
    memset(t.data, 0xff, (size_t)t.rows * (size_t)t.stride * dtype_size(t.dtype)); /* NaN in both types */
}

double lab_largest(struct tensor t)
{
    double most = 0;
    for (int64_t r = 0; r < t.rows; r++)
        for (int64_t c = 0; c < t.cols; c++)
            most = fmax(most, fabs((double)lab_at(t, r, c)));
    return most;
}

double lab_worst_beside(struct tensor have, struct tensor want, double slack, struct tensor terms,
                        double share)
{
    double most = lab_largest(want), off = 0;
    for (int64_t r = 0; r < want.rows; r++)
        for (int64_t c = 0; c < want.cols; c++) {
            double w = lab_at(want, r, c),
                   allowed = 2e-5 * most + slack + 1e-6 + (want.dtype == DT_BF16 ? 0.01 * fabs(w) : 0);
            if (terms.data)
                allowed += share * lab_at(terms, r, c);
            double d = fabs(lab_at(have, r, c) - w) / allowed;
            off = d >= off ? d : off;
            if (isnan(d))
                return INFINITY;
        }
    return off;
}

double lab_worst_within(struct tensor have, struct tensor want, double slack)
{
    return lab_worst_beside(have, want, slack, (struct tensor){0}, 0);
}

double lab_worst(struct tensor have, struct tensor want)
{
    return lab_worst_within(have, want, 0);
}

/* ---- every operation on every instruction set ------------------------------------------------------ */

void lab_drop(struct backend *b, int n, struct tensor *const t[])
{
    for (int i = 0; i < n; i++)
        b->ops->free(b, t[i]);
}

double lab_linear(const struct lab *l)
{
    static const int rows[] = {1, 2, 3, 5, 13, 64, 200, 400};
    int T = rows[lab_between(0, 7)], N = lab_between(1, 150), K = lab_between(1, 200);
    enum epilogue epi = (enum epilogue)lab_between(0, 2);
    enum accumulate add = lab_between(0, 1) ? ADD : SET;
    int biased = lab_between(0, 1);
    struct tensor x = lab_make(l->mem, l->act, T, K, -1, 1), host = lab_make(l->mem, DT_F32, N, K, -1, 1);
    struct tensor bias = lab_make(l->mem, DT_F32, 1, N, -1, 1), none = {0};
    struct tensor want = lab_make(l->mem, lab_between(0, 3) ? l->act : DT_F32, T, N, -1, 1),
                  have = lab_twin(l->mem, want);
    if (!add)
        lab_poison(have);
    struct weight *wr = l->ref->ops->pack(l->ref, host, l->act),
                  *wf = l->fast->ops->pack(l->fast, host, l->act);
    l->ref->ops->linear(l->ref, want, x, wr, biased ? bias : none, epi, add);
    l->fast->ops->linear(l->fast, have, x, wf, biased ? bias : none, epi, add);
    /* a product is rounded before it is added to a value of at most 1 */
    double off =
        lab_worst_within(have, want, add && l->act == DT_BF16 ? 0x1p-7 * (1 + lab_largest(want)) : 0);
    l->ref->ops->weight_free(l->ref, wr);
    l->fast->ops->weight_free(l->fast, wf);
    lab_drop(l->mem, 5, (struct tensor *const[]){&x, &host, &bias, &want, &have});
    return epi == EPI_RELU2 ? off / 2 : off;
}

double lab_norms(const struct lab *l)
{
    int T = lab_between(1, 40), groups = lab_between(1, 4),
        D = groups * lab_between(1, lab_between(0, 2) ? 60 : 300), gap = lab_between(0, 5);
    /* columns of wider matrices */
    struct tensor X = lab_make(l->mem, l->act, T, D + gap, -3, 3), x = tensor_cols(X, gap, D);
    struct tensor Z = lab_make(l->mem, l->act, T, D + 2 * gap, -3, 3), z = tensor_cols(Z, gap, D);
    struct tensor w = lab_make(l->mem, DT_F32, 1, D, 0.5, 2), bias = lab_make(l->mem, DT_F32, 1, D, -1, 1);
    struct tensor want = lab_twin(l->mem, x), H = lab_make(l->mem, l->act, T, D + 3 * gap, 0, 0),
                  have = tensor_cols(H, 0, D);
    double off = 0;
    for (int which = 0; which < 4; which++) {
        struct tensor pair[2] = {want, have};
        lab_poison(want);
        lab_poison(H);
        for (int side = 0; side < 2; side++) {
            struct backend *b = side ? l->fast : l->ref;
            if (which == 0)
                b->ops->rmsnorm(b, pair[side], x, w, 1e-5f);
            else if (which == 1)
                b->ops->layernorm(b, pair[side], x, w, bias, 1e-6f);
            else if (which == 2)
                b->ops->gated_norm(b, pair[side], x, z, w, groups, 1e-5f);
            else {
                b->ops->copy(b, pair[side], z);
                b->ops->add(b, pair[side], x);
            }
        }
        off = fmax(off, lab_worst(have, want));
    }
    lab_drop(l->mem, 6, (struct tensor *const[]){&X, &Z, &w, &bias, &want, &H});
    return off;
}

double lab_conv(const struct lab *l)
{
    int T = lab_between(1, 30), C = lab_between(1, 80), K = lab_between(2, 5);
    struct tensor x = lab_make(l->mem, l->act, T, C, -2, 2), w = lab_make(l->mem, DT_F32, C, K, -1, 1);
    struct tensor bias = lab_make(l->mem, DT_F32, 1, C, -1, 1);
    struct tensor s1 = lab_make(l->mem, l->act, K - 1, C, -2, 2), s2 = lab_twin(l->mem, s1),
                  want = lab_twin(l->mem, x), have = lab_twin(l->mem, x);
    lab_poison(have);
    l->ref->ops->conv_tokens(l->ref, want, x, w, bias, s1);
    l->fast->ops->conv_tokens(l->fast, have, x, w, bias, s2);
    double off = fmax(lab_worst(have, want), lab_worst(s2, s1));
    lab_drop(l->mem, 7, (struct tensor *const[]){&x, &w, &bias, &s1, &s2, &want, &have});
    return off;
}

void lab_ssm_make(struct lab_ssm *k, struct backend *b, enum dtype act, int T, int P, int N)
{
    int G = 1 << lab_between(0, 1);
    lab_ssm_of(k, b, act, T, G, G * lab_between(1, 3), P, N);
}

void lab_ssm_of(struct lab_ssm *k, struct backend *b, enum dtype act, int T, int G, int H, int P, int N)
{
    k->s = (struct ssm_shape){H, P, N, G, 4, lab_between(2, 40), 0, INFINITY};
    struct tensor *constants[] = {&k->a, &k->dt_bias, &k->d};
    for (int i = 0; i < 3; i++)
        *constants[i] = b->ops->alloc(b, DT_F32, 1, H);
    k->c = (struct ssm_const){k->a.data, k->dt_bias.data, k->d.data};
    k->T = T;
    k->inner = H * P;
    for (int h = 0; h < H; h++) {
        ((float *)k->a.data)[h] = (float)-exp(lab_uniform(-2, 2));
        ((float *)k->dt_bias.data)[h] = (float)lab_uniform(-4, 1);
        ((float *)k->d.data)[h] = (float)lab_uniform(-1, 1);
    }
    k->v = lab_make(b, act, T, k->inner + 2 * G * N, -1, 1);
    k->dt = lab_make(b, act, T, H, -2, 2);
    k->state = lab_make(b, DT_F32, k->inner, N, -1, 1);
}

void lab_ssm_drop(struct lab_ssm *k, struct backend *b)
{
    lab_drop(b, 6, (struct tensor *const[]){&k->v, &k->dt, &k->state, &k->a, &k->dt_bias, &k->d});
}

void lab_ssm_run(const struct lab_ssm *k, struct backend *b, bool step, struct tensor y, int64_t first,
                 int64_t n, struct tensor state, uint32_t key)
{
    struct tensor to = tensor_rows(y, first, n), v = tensor_rows(k->v, first, n),
                  dt = tensor_rows(k->dt, first, n);
    if (step)
        b->ops->ssm_step_batch(b, to, v, dt, &state, &key, &k->s, &k->c);
    else
        b->ops->ssm_scan(b, to, v, dt, state, key, &k->s, &k->c);
}

/* Returns the absolute values of t. */
static struct tensor magnitudes(struct backend *b, struct tensor t)
{
    struct tensor m = lab_twin(b, t);
    for (int64_t i = 0; i < m.rows * m.stride; i++)
        if (m.dtype == DT_BF16)
            ((uint16_t *)m.data)[i] &= 0x7fff;
        else
            ((float *)m.data)[i] = fabsf(((float *)m.data)[i]);
    return m;
}

/* In a bf16 scan one factor of each term may be rounded. Run on magnitudes, the reference returns the sum of
 * all terms. */
static const double factor_rounded = 0x1p-8;

double lab_ssm(const struct lab *l)
{
    struct lab_ssm k;
    int step = lab_between(0, 1);
    lab_ssm_make(&k, l->mem, l->act, step ? 1 : lab_between(1, 70), lab_between(1, 80), lab_between(1, 70));
    struct tensor s2 = lab_twin(l->mem, k.state), want = l->mem->ops->alloc(l->mem, l->act, k.T, k.inner),
                  have = lab_twin(l->mem, want), terms = lab_twin(l->mem, want),
                  v_terms = magnitudes(l->mem, k.v), s_terms = magnitudes(l->mem, k.state),
                  d_terms = magnitudes(l->mem, k.d);
    lab_poison(have);
    l->ref->ops->ssm_scan(l->ref, terms, v_terms, k.dt, s_terms, 0, &k.s,
                          &(struct ssm_const){k.c.a, k.c.dt_bias, d_terms.data});
    lab_ssm_run(&k, l->ref, step, want, 0, k.T, k.state, 0);
    lab_ssm_run(&k, l->fast, step, have, 0, k.T, s2, 0);
    double share = !step && l->act == DT_BF16 ? factor_rounded : 0;
    double off =
        fmax(lab_worst_beside(have, want, 0, terms, share), lab_worst_beside(s2, k.state, 0, s_terms, share));
    lab_ssm_drop(&k, l->mem);
    lab_drop(l->mem, 7, (struct tensor *const[]){&s2, &want, &have, &terms, &v_terms, &s_terms, &d_terms});
    return off;
}

/* Attention is a mean of values of at most 1 with weights rounded to bf16: half a step each. */
static const double weights_rounded = 0x1p-8;

double lab_attend(const struct lab *l)
{
    int kv = lab_between(1, 3), group = lab_between(1, 3), d = lab_between(1, 90), T = lab_between(1, 70),
        past = lab_between(0, 130);
    struct tensor q = lab_make(l->mem, l->act, T, (int64_t)kv * group * d, -1, 1);
    struct tensor k = lab_make(l->mem, l->act, past + T, (int64_t)kv * d, -1, 1),
                  v = lab_make(l->mem, l->act, past + T, (int64_t)kv * d, -1, 1);
    struct tensor want = lab_twin(l->mem, q), have = lab_twin(l->mem, q);
    lab_poison(have);
    l->ref->ops->attend_tokens(l->ref, want, q, k, v, kv * group, kv, past);
    l->fast->ops->attend_tokens(l->fast, have, q, k, v, kv * group, kv, past);
    double off = lab_worst_within(have, want, l->act == DT_BF16 ? weights_rounded : 0);
    lab_drop(l->mem, 5, (struct tensor *const[]){&q, &k, &v, &want, &have});
    return off;
}

double lab_tiles(const struct lab *l)
{
    int heads = lab_between(1, 3), d = lab_between(1, 90), tiles = lab_between(1, 3), n = lab_between(1, 90);
    struct tensor qkv = lab_make(l->mem, l->act, (int64_t)tiles * n, 3 * (int64_t)heads * d, -1, 1);
    struct tensor want = lab_make(l->mem, l->act, qkv.rows, (int64_t)heads * d, 0, 0),
                  have = lab_twin(l->mem, want);
    lab_poison(have);
    l->ref->ops->attend_tiles(l->ref, want, qkv, heads, tiles);
    l->fast->ops->attend_tiles(l->fast, have, qkv, heads, tiles);
    double off = lab_worst_within(have, want, l->act == DT_BF16 ? weights_rounded : 0);
    lab_drop(l->mem, 3, (struct tensor *const[]){&qkv, &want, &have});
    return off;
}

/* ---- two backends ---------------------------------------------------------------------------- */

struct backend *lab_gpu(void)
{
    struct err e = ERR_INIT;
    struct backend *gpu = backend_cuda(0, NULL, &e);
    if (!gpu)
        die(e.kind, "%s", e.text);
    return gpu;
}

struct lab lab_open(enum dtype act)
{
    struct backend *gpu = lab_gpu();
    return (struct lab){.ref = backend_cpu("ref", NULL, NULL), .fast = gpu, .mem = gpu, .act = act};
}

void lab_close(struct lab *l)
{
    backend_free(l->fast);
    backend_free(l->ref);
}

void lab_compare(struct lab *l, lab_case *fn, int rounds)
{
    for (int act = 0; act < 2; act++) {
        l->act = act ? DT_BF16 : DT_F32;
        double off = 0;
        for (int r = 0; r < rounds; r++)
            off = fmax(off, fn(l));
        check_note("%-4s %d cases, worst difference %.2f of the tolerance", dtype_name(l->act), rounds, off);
        assert_true(off <= 1);
    }
}

struct weight *lab_rounded(const struct lab *l, struct weight *w, int64_t N, int64_t K)
{
    struct tensor one = lab_make(l->mem, DT_F32, K, K, 0, 0), none = {0},
                  values = lab_make(l->mem, DT_F32, K, N, 0, 0),
                  turned = lab_make(l->mem, DT_F32, N, K, 0, 0);
    for (int64_t k = 0; k < K; k++)
        ((float *)one.data)[k * K + k] = 1;
    l->ref->ops->linear(l->ref, values, one, w, none, EPI_NONE, SET);
    for (int64_t i = 0; i < N * K; i++)
        ((float *)turned.data)[i] = lab_at(values, i % K, i / K);
    struct weight *rounded = l->ref->ops->pack(l->ref, turned, DT_BF16);
    l->ref->ops->weight_free(l->ref, w);
    lab_drop(l->mem, 3, (struct tensor *const[]){&one, &values, &turned});
    return rounded;
}
