/* check.c - compares a backend with the scalar reference.
 *
 * GPU kernels may meet a card, a driver or a compiler they were never tried with.  Before a result moves
 * a mouse, one small case of each kind of operation runs on both sides, with the head sizes of the
 * published models, so that the fast kernels run.
 */
#include "ops/ops_impl.h"

#include <math.h>

enum { ROWS = 3, MANY = 24, D = 128, HEADS = 2, P = 64, N = 128, GROUPS = 1, TAPS = 4, KEYS = 150 };

struct side {
    struct backend *b;
    struct tensor out; /* f32 on the host: result of the last operation */
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

/* The same values on every backend, in [-scale, scale). */
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

static void keep_result(struct side *s, struct tensor t)
{
    free(s->out.data);
    s->out = host_tensor(DT_F32, t.rows, t.cols);
    s->b->ops->download(s->b, s->out, t);
}

static void drop(struct backend *b, int n, struct tensor *const t[])
{
    for (int i = 0; i < n; i++)
        b->ops->free(b, t[i]);
}

static void product(struct side *s, int rows)
{
    struct backend *b = s->b;
    struct tensor host = host_tensor(DT_F32, 2 * D, 4 * D), x = random_tensor(b, DT_BF16, rows, 4 * D, 2, 1),
                  y = b->ops->alloc(b, DT_BF16, rows, 2 * D);
    for (int64_t i = 0; i < host.rows * host.cols; i++)
        ((float *)host.data)[i] = number((uint64_t)1 << 32 | (uint64_t)i);
    struct weight *w = b->ops->pack(b, host, DT_BF16);
    b->ops->linear(b, y, x, w, (struct tensor){0}, EPI_NONE, SET);
    keep_result(s, y);
    b->ops->weight_free(b, w);
    drop(b, 2, (struct tensor *const[]){&x, &y});
    free(host.data);
}

static void norm(struct side *s, int any)
{
    struct backend *b = s->b;
    struct tensor x = random_tensor(b, DT_BF16, ROWS, 4 * D, 3, 2),
                  w = random_tensor(b, DT_F32, 1, 4 * D, 4, 1);
    b->ops->rmsnorm(b, x, x, w, 1e-5f);
    keep_result(s, x);
    drop(b, 2, (struct tensor *const[]){&x, &w});
}

/* Convolution and state space of a prompt and of one more token, with a state of this type. */
static void state_space(struct side *s, int type)
{
    static const uint32_t key = 1;
    struct backend *b = s->b;
    const struct ssm_shape shape = {HEADS, P, N, GROUPS, TAPS, 128, 0, INFINITY};
    int64_t inner = HEADS * P, channels = inner + 2 * GROUPS * N;
    struct tensor x = random_tensor(b, DT_BF16, KEYS, channels, 5, 1),
                  v = b->ops->alloc(b, DT_BF16, KEYS, channels),
                  w = random_tensor(b, DT_F32, channels, TAPS, 6, 0.5f),
                  bias = random_tensor(b, DT_F32, 1, channels, 7, 0.5f),
                  conv = b->ops->alloc(b, DT_BF16, TAPS - 1, channels),
                  dt = random_tensor(b, DT_BF16, KEYS, HEADS, 8, 1),
                  ssm = b->ops->alloc(b, (enum dtype)type, inner, N),
                  y = b->ops->alloc(b, DT_BF16, KEYS, inner), a = b->ops->alloc(b, DT_F32, 1, HEADS),
                  rest = random_tensor(b, DT_F32, 2, HEADS, 9, 1);
    static float decays[HEADS] = {-0.05f, -1};
    b->ops->upload(b, a, (struct tensor){decays, DT_F32, 1, HEADS, HEADS});
    const struct ssm_const c = {a.data, rest.data, tensor_rows(rest, 1, 1).data};
    b->ops->conv_tokens(b, tensor_rows(v, 0, KEYS - 1), tensor_rows(x, 0, KEYS - 1), w, bias, conv);
    b->ops->ssm_scan(b, tensor_rows(y, 0, KEYS - 1), tensor_rows(v, 0, KEYS - 1),
                     tensor_rows(dt, 0, KEYS - 1), ssm, 1, &shape, &c);
    b->ops->conv_batch(b, tensor_rows(v, KEYS - 1, 1), tensor_rows(x, KEYS - 1, 1), w, bias, &conv);
    b->ops->ssm_step_batch(b, tensor_rows(y, KEYS - 1, 1), tensor_rows(v, KEYS - 1, 1),
                           tensor_rows(dt, KEYS - 1, 1), &ssm, &key, &shape, &c);
    keep_result(s, y);
    drop(b, 10, (struct tensor *const[]){&x, &v, &w, &bias, &conv, &dt, &ssm, &y, &a, &rest});
}

/* A prompt over a KV cache, and one token over the same keys. */
static void attention(struct side *s, int any)
{
    struct backend *b = s->b;
    struct tensor q = random_tensor(b, DT_BF16, MANY, HEADS * D, 10, 1),
                  k = random_tensor(b, DT_BF16, KEYS, D, 11, 1),
                  v = random_tensor(b, DT_BF16, KEYS, D, 12, 1),
                  y = b->ops->alloc(b, DT_BF16, MANY + 1, HEADS * D);
    b->ops->attend_tokens(b, tensor_rows(y, 0, MANY), q, k, v, HEADS, 1, KEYS - MANY);
    b->ops->attend_batch(b, tensor_rows(y, MANY, 1), tensor_rows(q, 0, 1), &k, &v, HEADS, 1);
    keep_result(s, y);
    drop(b, 4, (struct tensor *const[]){&q, &k, &v, &y});
}

/* Largest difference, relative to the expected value plus the root mean square of all. */
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

int backend_check(struct backend *b, struct err *e)
{
    static const struct {
        const char *name;
        void (*run)(struct side *s, int what);
        int what; /* rows, or the type of a state */
    } cases[] = {{"a product of few rows", product, ROWS},
                 {"a product of many rows", product, MANY},
                 {"a norm", norm, 0},
                 {"the state space", state_space, DT_F32},
                 {"the state space in fp16", state_space, DT_F16},
                 {"attention", attention, 0}};
    static const double most = 0x1p-6; /* a bf16 rounding is 2^-9 */
    struct side ref = {backend_cpu("ref", NULL, NULL), {0}}, here = {b, {0}};
    int rc = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && rc == 0; i++) {
        cases[i].run(&ref, cases[i].what);
        cases[i].run(&here, cases[i].what);
        double off = apart(here.out, ref.out);
        if (!(off < most))
            rc = err_set(
                e, ERR_ENV,
                "%s computes %s wrong (off by %.2g): this GPU cannot be used, please tell us which one it is",
                b->ops->name, cases[i].name, off);
    }
    free(ref.out.data);
    free(here.out.data);
    backend_free(ref.b);
    return rc;
}
