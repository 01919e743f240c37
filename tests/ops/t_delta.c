/* t_delta.c - compares the gated delta rule with transformers, token by token and in chunks
 * (tests/golden/delta, made by tests/reference/make_delta.py). */
#include "check.h"
#include "golden.h"

#include "ops/ops.h"

#include <math.h>
#include <stdlib.h>

enum { FORGETS = 1 };
static const char *const cases[] = {"plain", "forgets", "equal", "empty"};

static struct golden_array part(const struct golden *g, const char *name, const char *of)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s.%s", name, of);
    struct golden_array a = golden_find(g, whole);
    assert_non_null(a.data);
    return a;
}

/* Returns the largest difference as a fraction of the largest value. */
static double apart(const float *have, struct golden_array want)
{
    const float *w = want.data;
    double most = 0, off = 0;
    for (int64_t i = 0; i < want.rows * want.cols; i++) {
        most = fmax(most, fabs((double)w[i]));
        off = check_worse(off, fabs((double)have[i] - w[i]));
    }
    return off / most;
}

enum form { STEPS, SCAN };

struct inputs { /* arguments of the operation */
    struct tensor v, gates, state, y;
};

static struct inputs inputs_open(struct backend *b, const struct delta_shape *s, const struct golden *g,
                                 const char *name)
{
    struct golden_array q = part(g, name, "q"), k = part(g, name, "k"), v = part(g, name, "v"),
                        before = part(g, name, "before");
    const float *gate[2] = {part(g, name, "g").data, part(g, name, "beta").data},
                *from[3] = {q.data, k.data, v.data};
    int64_t width[3] = {q.cols, k.cols, v.cols}, at = 0;
    struct inputs x = {b->ops->alloc(b, DT_F32, q.rows, q.cols + k.cols + v.cols),
                       b->ops->alloc(b, DT_F32, q.rows, 2 * s->value_heads),
                       b->ops->alloc(b, DT_F32, before.rows, before.cols),
                       b->ops->alloc(b, DT_F32, v.rows, v.cols)};
    for (int i = 0; i < 3; at += width[i++])
        b->ops->upload(b, tensor_cols(x.v, at, width[i]),
                       (struct tensor){(void *)(uintptr_t)from[i], DT_F32, q.rows, width[i], width[i]});
    for (int i = 0; i < 2; i++)
        b->ops->upload(
            b, tensor_cols(x.gates, i * s->value_heads, s->value_heads),
            (struct tensor){(void *)(uintptr_t)gate[i], DT_F32, q.rows, s->value_heads, s->value_heads});
    b->ops->upload(
        b, x.state,
        (struct tensor){(void *)(uintptr_t)before.data, DT_F32, before.rows, before.cols, before.cols});
    return x;
}

/* Runs tokens [first, first + n). */
static void run_rows(struct backend *b, const struct delta_shape *s, const struct inputs *x, enum form form,
                     int64_t first, int64_t n)
{
    struct tensor y = tensor_rows(x->y, first, n), v = tensor_rows(x->v, first, n),
                  gates = tensor_rows(x->gates, first, n);
    if (form == SCAN)
        b->ops->delta_scan(b, y, v, gates, x->state, s);
    for (int64_t t = 0; form == STEPS && t < n; t++)
        b->ops->delta_step_batch(b, tensor_rows(y, t, 1), tensor_rows(v, t, 1), tensor_rows(gates, t, 1),
                                 &x->state, s);
}

/* Runs the first `cut` tokens, then the rest from the resulting state; compares with "step" or "scan" of
 * transformers. */
static double run(struct backend *b, const struct golden *g, const char *name, const char *of, enum form form,
                  int chunk, int64_t cut)
{
    struct delta_shape s = {(int)golden_number(g, "key_heads"),
                            (int)golden_number(g, "value_heads"),
                            (int)golden_number(g, "key"),
                            (int)golden_number(g, "value"),
                            4,
                            chunk};
    struct inputs x = inputs_open(b, &s, g, name);
    run_rows(b, &s, &x, form, 0, cut);
    run_rows(b, &s, &x, form, cut, x.y.rows - cut);
    char after[16];
    snprintf(after, sizeof after, "%s.after", of);
    double off = check_worse(apart(x.y.data, part(g, name, of)), apart(x.state.data, part(g, name, after)));
    struct tensor *all[] = {&x.v, &x.gates, &x.state, &x.y};
    for (int i = 0; i < 4; i++)
        b->ops->free(b, all[i]);
    return off;
}

static void check_rules(const char *isa)
{
    static const int chunks[] = {1, 2, 7, 64, 100};
    struct golden g;
    struct backend *b = backend_cpu(isa, NULL, NULL);
    golden_open(&g, "delta");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t n = part(&g, cases[i], "q").rows;
        double steps = run(b, &g, cases[i], "step", STEPS, 1, 0), scan = 0;
        for (size_t k = 0; k < sizeof chunks / sizeof *chunks; k++)
            for (int64_t cut = 0; cut <= n; cut += n / 3)
                scan = check_worse(scan, run(b, &g, cases[i], "step", SCAN, chunks[k], cut));
        double theirs = run(b, &g, cases[i], "scan", SCAN, 64, 0);
        check_note("%-10s %-8s token by token %.1e, in chunks %.1e of the largest value; their chunks %.1e",
                   isa, cases[i], steps, scan, theirs);
        assert_true(steps < 3e-6 && scan < 3e-6);
        assert_true(theirs < (i == FORGETS ? 1e-4 : 3e-6)); /* transformers sums in f32 */
    }
    golden_close(&g);
    backend_free(b);
}

static void t_rules(void **state)
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    for (int i = 0; i < n; i++)
        check_rules(names[i]);
}

/* ---- at the published size ------------------------------------------------------------------- */

static const struct delta_shape published = {2, 4, 128, 128, 4, 64};

/* Returns random inputs for T tokens that depend on the seed only; flat: equal keys and a beta of 1. */
static struct inputs random_inputs(struct backend *b, const struct delta_shape *s, enum dtype act, int64_t T,
                                   bool flat)
{
    struct inputs x = {b->ops->alloc(b, act, T, 2 * s->key_heads * s->key + s->value_heads * s->value),
                       b->ops->alloc(b, DT_F32, T, 2 * s->value_heads),
                       b->ops->alloc(b, DT_F32, (int64_t)s->value_heads * s->key, s->value),
                       b->ops->alloc(b, act, T, (int64_t)s->value_heads * s->value)};
    uint64_t seed = (uint64_t)T + flat;
    struct tensor *parts[] = {&x.v, &x.gates, &x.state};
    for (int p = 0; p < 3; p++)
        for (int64_t r = 0; r < parts[p]->rows; r++)
            for (int64_t c = 0; c < parts[p]->cols; c++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                float v = (float)(seed >> 40) / 8388608.0f - 1;
                if (p == 0 && r % 5 == 4)
                    v *= 1e-3f; /* so short that the epsilon of the norm matters */
                if (p == 1)
                    v = c < s->value_heads ? (v > 0.9f ? -60.0f : -0.2f * (v + 1)) : flat ? 1 : (v + 1) / 2;
                if (p == 0 && flat && r)
                    tensor_convert(tensor_cols(tensor_rows(x.v, r, 1), c, 1),
                                   tensor_cols(tensor_rows(x.v, 0, 1), c, 1));
                else
                    tensor_convert(tensor_cols(tensor_rows(*parts[p], r, 1), c, 1),
                                   (struct tensor){&v, DT_F32, 1, 1, 1});
            }
    return x;
}

static double tensors_apart(struct tensor have, struct tensor want)
{
    size_t n = (size_t)(want.rows * want.cols);
    float *a = malloc(n * sizeof *a), *w = malloc(n * sizeof *w);
    tensor_convert((struct tensor){a, DT_F32, have.rows, have.cols, have.cols}, have);
    tensor_convert((struct tensor){w, DT_F32, want.rows, want.cols, want.cols}, want);
    double off = apart(a, (struct golden_array){w, want.rows, want.cols, NULL});
    free(a);
    free(w);
    return off;
}

static void inputs_free(struct backend *b, struct inputs *x)
{
    struct tensor *all[] = {&x->v, &x->gates, &x->state, &x->y};
    for (int i = 0; i < 4; i++)
        b->ops->free(b, all[i]);
}

static void check_size(const char *isa, enum dtype act)
{
    static const int64_t lengths[] = {1, 3, 64, 65, 200};
    struct backend *b = backend_cpu(isa, NULL, NULL), *ref = backend_cpu("ref", NULL, NULL);
    double worst[2] = {0};
    for (int k = 0; k < 20; k++) {
        int64_t T = lengths[k / 4];
        enum form form = k % 2 ? SCAN : STEPS;
        struct inputs x = random_inputs(b, &published, act, T, k % 4 / 2),
                      want = random_inputs(ref, &published, act, T, k % 4 / 2);
        run_rows(b, &published, &x, form, 0, T);
        run_rows(ref, &published, &want, STEPS, 0, T);
        worst[0] = check_worse(worst[0], tensors_apart(x.y, want.y));
        worst[1] = check_worse(worst[1], tensors_apart(x.state, want.state));
        inputs_free(b, &x);
        inputs_free(ref, &want);
    }
    check_note("%-10s %s: outputs %.1e, states %.1e of the largest value", isa, dtype_name(act), worst[0],
               worst[1]);
    assert_true(worst[0] < (act == DT_F32 ? 1e-5 : 8e-3) && worst[1] < 1e-5);
    backend_free(b);
    backend_free(ref);
}

static void t_sizes(void **state)
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    for (int i = 0; i < n; i++) {
        check_size(names[i], DT_F32);
        check_size(names[i], DT_BF16);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("the delta rule equals transformers', token by token, in chunks of any size, cut anywhere",
          t_rules),
    CLAIM("with heads of 128, flat keys and strong decay every instruction set equals the reference",
          t_sizes),
};

CHECK_MAIN()
