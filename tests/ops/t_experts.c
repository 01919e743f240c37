/* t_experts.c - tests of the mixture of experts and of images of any size: the router, the experts, the
 * position table.  The reference is compared with formulas in double precision, every instruction set with
 * the reference, and threads and rows with each other.
 *
 * Tolerances are those of t_ops.c: 2e-5 of the largest value in f32.  In bf16, one rounding of intermediate
 * values (counted twice if squared) and one of the result, 2 % of the largest value. */
#include "check.h"
#include "lab.h"

#include "model/weights.h"
#include "ops/ops.h"

#include <math.h>

enum { MAX_EXPERTS = 40 };

/* Returns the largest difference relative to the largest value, or to 1 if that is larger. */
static double largest_difference(struct tensor have, struct tensor want)
{
    double most = 1, off = 0;
    for (int64_t r = 0; r < want.rows; r++)
        for (int64_t c = 0; c < want.cols; c++) {
            most = fmax(most, fabs((double)lab_at(want, r, c)));
            off = check_worse(off, fabs((double)lab_at(have, r, c) - lab_at(want, r, c)));
        }
    return off / most;
}

/* ---- router ------------------------------------------------------------------------------------------- */

struct routing {
    struct route_shape s;
    struct tensor logits, bias, ids, weights;
};

static void routing_make(struct routing *k, struct backend *b, int rows)
{
    int groups = 1 << lab_between(0, 3), size = lab_between(2, MAX_EXPERTS / 8),
        kept = lab_between(1, groups);
    k->s = (struct route_shape){groups * size, lab_between(1, kept * size), groups,
                                kept,          lab_between(0, 1),           2.5f};
    k->logits = lab_make(b, DT_F32, rows, k->s.experts, -4, 4);
    k->bias = lab_make(b, DT_F32, 1, k->s.experts, -0.5, 0.5);
    k->ids = b->ops->alloc(b, DT_I32, rows, k->s.chosen);
    k->weights = b->ops->alloc(b, DT_F32, rows, k->s.chosen);
}

static void routing_free(struct routing *k, struct backend *b)
{
    b->ops->free(b, &k->logits);
    b->ops->free(b, &k->bias);
    b->ops->free(b, &k->ids);
    b->ops->free(b, &k->weights);
}

/* Returns the number of values in v[0..n) that are larger than v[i], or equal with a lower index. */
static int rank_of(const double *v, int n, int i)
{
    int rank = 0;
    for (int j = 0; j < n; j++)
        rank += v[j] > v[i] || (v[j] == v[i] && j < i);
    return rank;
}

/* Checks that the chosen experts of a row have a rank below k within the chosen groups. */
static void check_row(const struct routing *k, int64_t t)
{
    const struct route_shape *s = &k->s;
    int size = s->experts / s->groups, j = 0;
    double choice[MAX_EXPERTS], sums[8], total = 0;
    for (int e = 0; e < s->experts; e++)
        choice[e] = (float)(1 / (1 + exp(-(double)lab_at(k->logits, t, e)))) + lab_at(k->bias, 0, e);
    for (int g = 0; g < s->groups; g++) {
        sums[g] = 0;
        for (int i = 0; i < size; i++)
            sums[g] += rank_of(choice + (ptrdiff_t)g * size, size, i) < 2 ? choice[g * size + i] : 0;
    }
    for (int e = 0; e < s->experts; e++)
        if (rank_of(sums, s->groups, e / size) >= s->groups_kept)
            choice[e] = -1e9;
    const int32_t *ids = (const int32_t *)k->ids.data + t * k->ids.stride;
    for (int e = 0; e < s->experts; e++)
        if (rank_of(choice, s->experts, e) < s->chosen) {
            assert_int_equal(ids[j++], e);
            total += 1 / (1 + exp(-(double)lab_at(k->logits, t, e)));
        }
    assert_int_equal(j, s->chosen);
    for (j = 0; j < s->chosen; j++) {
        double want = 2.5 / (1 + exp(-(double)lab_at(k->logits, t, ids[j]))) / (s->normalise ? total : 1);
        if (fabs(lab_at(k->weights, t, j) - want) >= 1e-5)
            fail_msg("row %d: %.9g instead of %.9g, logit %.9g, sum %.9g, %d of %d", (int)t,
                     lab_at(k->weights, t, j), want, (double)lab_at(k->logits, t, ids[j]), total, s->chosen,
                     s->experts);
    }
}

static void t_route(void **state)
{
    struct backend *b = backend_cpu(NULL, NULL, NULL);
    for (int round = 0; round < 200; round++) {
        struct routing k;
        routing_make(&k, b, 7);
        b->ops->route(b, k.ids, k.weights, k.logits, k.bias, &k.s);
        for (int t = 0; t < 7; t++)
            check_row(&k, t);
        routing_free(&k, b);
    }
    backend_free(b);
}

/* With NaN logits the chosen experts are still distinct, so that no memory is overwritten. */
static void t_route_nan(void **state)
{
    struct backend *b = backend_cpu(NULL, NULL, NULL);
    for (int round = 0; round < 50; round++) {
        struct routing k;
        routing_make(&k, b, 3);
        for (int64_t i = 0; i < k.logits.cols; i++)
            ((float *)k.logits.data)[i] = NAN;
        b->ops->route(b, k.ids, k.weights, k.logits, k.bias, &k.s);
        const int32_t *ids = k.ids.data;
        for (int j = 0; j < k.s.chosen; j++)
            assert_true(ids[j] >= 0 && ids[j] < k.s.experts && (j == 0 || ids[j] > ids[j - 1]));
        routing_free(&k, b);
    }
    backend_free(b);
}

/* ---- experts --------------------------------------------------------------------------------- */

struct moe {
    struct routing r;
    struct tensor x, up[MAX_EXPERTS], down[MAX_EXPERTS];
};

static void moe_make(struct moe *l, struct backend *b, enum dtype act, int rows, int K, int M, int N)
{
    routing_make(&l->r, b, rows);
    b->ops->route(b, l->r.ids, l->r.weights, l->r.logits, l->r.bias, &l->r.s);
    l->x = lab_make(b, act, rows, K, -1, 1);
    for (int e = 0; e < l->r.s.experts; e++) {
        l->up[e] = lab_make(b, act, M, K, -1, 1);
        l->down[e] = lab_make(b, act, N, M, -0.5, 0.5);
    }
}

static void moe_free(struct moe *l, struct backend *b)
{
    for (int e = 0; e < l->r.s.experts; e++) {
        b->ops->free(b, &l->up[e]);
        b->ops->free(b, &l->down[e]);
    }
    b->ops->free(b, &l->x);
    routing_free(&l->r, b);
}

/* Returns the results of a backend for rows [first, first + rows). */
static struct tensor run_experts(struct backend *b, const struct moe *l, int64_t first, int64_t rows)
{
    struct weight *up[MAX_EXPERTS], *down[MAX_EXPERTS];
    struct experts e = {l->r.s.experts, up, down};
    struct tensor y = b->ops->alloc(b, l->x.dtype, rows, l->down[0].rows);
    for (int i = 0; i < e.count; i++) {
        up[i] = b->ops->pack(b, l->up[i], l->x.dtype);
        down[i] = b->ops->pack(b, l->down[i], l->x.dtype);
    }
    b->ops->experts(b, y, tensor_rows(l->x, first, rows), tensor_rows(l->r.ids, first, rows),
                    tensor_rows(l->r.weights, first, rows), &e);
    for (int i = 0; i < e.count; i++) {
        b->ops->weight_free(b, up[i]);
        b->ops->weight_free(b, down[i]);
    }
    return y;
}

/* Computes the formula in double precision, with intermediate values rounded as documented for the
 * operation. */
static double formula(const struct moe *l, int64_t t, int64_t n)
{
    double sum = 0;
    for (int64_t j = 0; j < l->r.ids.cols; j++) {
        int e = ((const int32_t *)l->r.ids.data)[t * l->r.ids.stride + j];
        double out = 0;
        for (int64_t m = 0; m < l->up[e].rows; m++) {
            double v = 0;
            for (int64_t k = 0; k < l->x.cols; k++)
                v += (double)lab_at(l->x, t, k) * lab_at(l->up[e], m, k);
            out += v > 0 ? v * v * lab_at(l->down[e], n, m) : 0;
        }
        sum += out * lab_at(l->r.weights, t, j);
    }
    return sum;
}

static void t_formula(void **state)
{
    struct backend *b = backend_cpu("ref", NULL, NULL);
    struct moe l;
    moe_make(&l, b, DT_F32, 5, 9, 7, 11);
    struct tensor y = run_experts(b, &l, 0, 5);
    double off = 0;
    for (int64_t t = 0; t < 5; t++)
        for (int64_t n = 0; n < 11; n++)
            off = check_worse(off, fabs(lab_at(y, t, n) - formula(&l, t, n)));
    assert_true(off < 1e-4);
    b->ops->free(b, &y);
    moe_free(&l, b);
    backend_free(b);
}

static void compare_experts(struct backend *ref, struct backend *fast, enum dtype act, double *worst)
{
    static const int rows[] = {1, 1, 2, 9, 60};
    struct moe l;
    int T = rows[lab_between(0, 4)];
    moe_make(&l, ref, act, T, lab_between(1, 70), lab_between(1, 60), lab_between(1, 70));
    struct tensor want = run_experts(ref, &l, 0, T), have = run_experts(fast, &l, 0, T);
    *worst = check_worse(*worst, largest_difference(have, want));
    ref->ops->free(ref, &want);
    fast->ops->free(fast, &have);
    moe_free(&l, ref);
}

static void compare_all(const char *isa, struct backend *ref, struct backend *fast)
{
    for (int act = 0; act < 2; act++) {
        double worst = 0;
        for (int round = 0; round < 25; round++)
            compare_experts(ref, fast, act ? DT_BF16 : DT_F32, &worst);
        check_note("%-10s %-4s worst difference %.1e of the largest value", isa, act ? "bf16" : "f32", worst);
        assert_true(worst < (act ? 2e-2 : 2e-5));
    }
}

static void t_experts(void **state)
{
    lab_each_fast(2, compare_all);
}

/* Rows alone, in pieces and all together, on one thread and on three, have the same bits. */
static void compare_pieces(struct backend *one, struct backend *three)
{
    for (int act = 0; act < 2; act++) {
        struct moe l;
        int T = 37, N = lab_between(1, 60);
        moe_make(&l, one, act ? DT_BF16 : DT_F32, T, lab_between(1, 80), lab_between(1, 60), N);
        struct tensor all = run_experts(one, &l, 0, T), threads = run_experts(three, &l, 0, T);
        size_t row = (size_t)N * dtype_size(all.dtype);
        assert_memory_equal(all.data, threads.data, row * (size_t)T);
        for (int64_t first = 0, size = 1; first < T; first += size, size = lab_between(1, 9)) {
            size = size < T - first ? size : T - first;
            struct tensor part = run_experts(one, &l, first, size);
            assert_memory_equal(part.data, (char *)all.data + row * (size_t)first, row * (size_t)size);
            one->ops->free(one, &part);
        }
        one->ops->free(one, &all);
        one->ops->free(one, &threads);
        moe_free(&l, one);
    }
}

static void t_together(void **state)
{
    lab_each_threads(3, compare_pieces);
}

/* ---- positions ----------------------------------------------------------------------------------------- */

static void compare_positions(struct backend *b)
{
    for (int round = 0; round < 40; round++) {
        int side = lab_between(1, 12), rows = lab_between(1, 20), cols = lab_between(1, 20),
            width = lab_between(1, 40);
        int square = rows > cols ? rows : cols;
        struct tensor table = lab_make(b, DT_F32, (int64_t)side * side, width, -1, 1);
        struct tensor want = lab_make(b, DT_F32, (int64_t)square * square, width, 0, 0);
        struct tensor have = lab_make(b, DT_F32, (int64_t)rows * cols, width, 0, 0);
        tensor_resize_grid(want, table, square, square);
        b->ops->resize_grid(b, have, table, rows, cols);
        for (int r = 0; r < rows; r++)
            assert_true(largest_difference(tensor_rows(have, (int64_t)r * cols, cols),
                                           tensor_rows(want, (int64_t)r * square, cols)) < 1e-5);
        b->ops->free(b, &table);
        b->ops->free(b, &want);
        b->ops->free(b, &have);
    }
}

static void t_positions(void **state)
{
    lab_each_isa(compare_positions);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the router chooses the experts of a ranking in double precision", t_route),
    CLAIM("the router chooses different experts even if scores are NaN", t_route_nan),
    CLAIM("the reference of the experts equals their formula in double precision", t_formula),
    CLAIM("the experts equal the reference on every instruction set", t_experts),
    CLAIM("experts give a row the same bits alone, among others and on three threads", t_together),
    CLAIM("the position table of any canvas is cut from that of the enclosing square", t_positions),
};

CHECK_MAIN(lab_random = check_seed())
