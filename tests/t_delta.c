/* t_delta.c - the gated delta rule against transformers, token by token and in chunks (tests/golden/delta,
 * made by tests/reference/make_delta.py). */
#include "check.h"
#include "golden.h"

#include "model/delta.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* Largest difference as a fraction of the largest value. */
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

typedef void rule(const struct delta_shape *s, const struct delta_rows *x, float *S, float *y);

/* The first `cut` tokens, then the rest from the state they leave; beside transformers' "step" or "scan". */
static double run(const struct golden *g, const char *name, const char *of, rule *fn, int chunk, int64_t cut)
{
    struct delta_shape s = {(int)golden_number(g, "key_heads"),
                            (int)golden_number(g, "value_heads"),
                            (int)golden_number(g, "key"),
                            (int)golden_number(g, "value"),
                            4,
                            chunk};
    struct golden_array q = part(g, name, "q"), v = part(g, name, "v"), before = part(g, name, "before");
    struct delta_rows x = {
        q.rows, q.data, part(g, name, "k").data, v.data, part(g, name, "g").data, part(g, name, "beta").data};
    float *S = malloc((size_t)(before.rows * before.cols) * sizeof *S),
          *y = malloc((size_t)(v.rows * v.cols) * sizeof *y);
    memcpy(S, before.data, (size_t)(before.rows * before.cols) * sizeof *S);
    struct delta_rows rest = {x.tokens - cut,     x.q + cut * q.cols,        x.k + cut * q.cols,
                              x.v + cut * v.cols, x.g + cut * s.value_heads, x.beta + cut * s.value_heads};
    x.tokens = cut;
    fn(&s, &x, S, y);
    fn(&s, &rest, S, y + cut * v.cols);
    char after[16];
    snprintf(after, sizeof after, "%s.after", of);
    double off = check_worse(apart(y, part(g, name, of)), apart(S, part(g, name, after)));
    free(S);
    free(y);
    return off;
}

static void t_rules(void **state)
{
    (void)state;
    static const int chunks[] = {1, 2, 7, 64, 100};
    struct golden g;
    golden_open(&g, "delta");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t n = part(&g, cases[i], "q").rows;
        double steps = run(&g, cases[i], "step", delta_steps, 1, 0), scan = 0;
        for (size_t k = 0; k < sizeof chunks / sizeof *chunks; k++)
            for (int64_t cut = 0; cut <= n; cut += n / 3)
                scan = check_worse(scan, run(&g, cases[i], "step", delta_scan, chunks[k], cut));
        double theirs = run(&g, cases[i], "scan", delta_scan, 64, 0);
        check_note("%-8s token by token %.1e, in chunks %.1e of the largest value; their chunks %.1e",
                   cases[i], steps, scan, theirs);
        assert_true(steps < 3e-6 && scan < 3e-6);
        assert_true(theirs < (i == FORGETS ? 1e-4 : 3e-6)); /* theirs are of f32 sums */
    }
    golden_close(&g);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the delta rule equals transformers', token by token, in chunks of any size, cut anywhere",
          t_rules),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
