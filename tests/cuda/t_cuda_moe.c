/* t_cuda_moe.c - tests of the mixture of experts on the device: the router's choice and the experts'
 * results, with every weight format, compared with the scalar reference (see t_cuda_ops.c).
 *
 * The router must choose exactly the same experts.  lab_worst (lab.h) explains the tolerance of results; in
 * bf16 values inside an expert are rounded once more.
 */
#include "check.h"
#include "lab.h"

#include <math.h>

enum { MOST_EXPERTS = 80 };

struct mixture {
    struct route_shape s;
    struct tensor logits, bias, ids, weights;
    bool gated;
    struct lab_weights up[MOST_EXPERTS], down[MOST_EXPERTS], gate[MOST_EXPERTS];
};

static void mixture_make(struct mixture *m, const struct lab *l, int64_t rows)
{
    int groups = 1 << lab_between(0, 3), size = lab_between(2, MOST_EXPERTS / 8),
        kept = lab_between(1, groups);
    if (rows > 50) /* many rows for each expert */
        groups = kept = 1, size = 3;
    int chosen = lab_between(1, kept * size < 9 ? kept * size : 9);
    m->s =
        (struct route_shape){groups * size, chosen, groups, kept, lab_between(0, 1), 2.5f, lab_between(0, 1)};
    m->gated = lab_between(0, 1);
    m->logits = lab_make(l->mem, DT_F32, rows, m->s.experts, -4, 4);
    m->bias = lab_make(l->mem, DT_F32, 1, m->s.experts, -0.5, 0.5);
    m->ids = l->mem->ops->alloc(l->mem, DT_I32, rows, chosen);
    m->weights = lab_make(l->mem, DT_F32, rows, chosen, 0, 0);
}

static void mixture_drop(struct mixture *m, const struct lab *l)
{
    lab_drop(l->mem, 4, (struct tensor *const[]){&m->logits, &m->bias, &m->ids, &m->weights});
}

static void t_route(void **state)
{
    struct lab l = lab_open(DT_F32);
    for (int round = 0; round < 40; round++) {
        struct mixture m;
        int64_t T = lab_between(1, 5);
        mixture_make(&m, &l, T);
        float *logits = m.logits.data;
        if (round % 4 == 0) /* all equal: the lowest indices are chosen */
            for (int64_t i = 0; i < T * m.s.experts; i++)
                logits[i] = (float)lab_between(-1, 1), ((float *)m.bias.data)[i % m.s.experts] = 0;
        if (round % 7 == 0)
            for (int64_t i = 0; i < m.s.experts; i++)
                logits[i] = NAN;
        struct tensor ids = l.mem->ops->alloc(l.mem, DT_I32, T, m.s.chosen),
                      weights = lab_twin(l.mem, m.weights);
        struct tensor none = {0}, bias = round % 3 ? m.bias : none;
        l.ref->ops->route(l.ref, m.ids, m.weights, m.logits, bias, &m.s);
        l.fast->ops->route(l.fast, ids, weights, m.logits, bias, &m.s);
        assert_memory_equal(ids.data, m.ids.data, (size_t)(T * m.s.chosen) * sizeof(int32_t));
        int64_t first = round % 7 == 0; /* skips the row with NaN */
        if (T > first)
            assert_true(lab_worst(tensor_rows(weights, first, T - first),
                                  tensor_rows(m.weights, first, T - first)) <= 1);
        lab_drop(l.mem, 2, (struct tensor *const[]){&ids, &weights});
        mixture_drop(&m, &l);
    }
    lab_close(&l);
}

enum { MIXED = -1 }; /* instead of a format */

/* Returns the format of an expert's matrix. */
static enum quant_format format_of(int format, int expert, bool down)
{
    static const enum quant_format all[] = {QUANT_F4, QUANT_NONE, QUANT_I8, QUANT_I4, QUANT_F8};
    return format == MIXED ? all[(expert + (down ? expert / 2 : 0)) % 5] : (enum quant_format)format;
}

/* Returns the results of rows [first, first + n). */
static struct tensor run_experts(const struct lab *l, struct backend *b, const struct mixture *m,
                                 struct tensor x, int format, int64_t first, int64_t n)
{
    struct weight *up[MOST_EXPERTS], *down[MOST_EXPERTS], *gate[MOST_EXPERTS];
    struct experts e = {m->s.experts, up, down, m->gated ? gate : NULL};
    struct tensor y = l->mem->ops->alloc(l->mem, x.dtype, n, m->down[0].source.rows);
    for (int i = 0; i < e.count; i++) {
        up[i] = lab_weights_pack(b, format_of(format, i, false), &m->up[i], x.dtype);
        down[i] = lab_weights_pack(b, format_of(format, i, true), &m->down[i], x.dtype);
        gate[i] = m->gated ? lab_weights_pack(b, format_of(format, i, false), &m->gate[i], x.dtype) : NULL;
    }
    lab_poison(y);
    b->ops->experts(b, y, tensor_rows(x, first, n), tensor_rows(m->ids, first, n),
                    tensor_rows(m->weights, first, n), &e);
    for (int i = 0; i < e.count; i++) {
        b->ops->weight_free(b, up[i]);
        b->ops->weight_free(b, down[i]);
        if (m->gated)
            b->ops->weight_free(b, gate[i]);
    }
    return y;
}

/* Returns the largest relative difference from the reference; checks that pieces have the same bits as the
 * whole. */
static double experts(const struct lab *l, int format, int64_t T, bool whole)
{
    struct mixture m;
    int unit = whole ? 8 : 1;
    int64_t K = unit * lab_between(1, 40 / unit), M = unit * lab_between(1, 40 / unit),
            N = lab_between(1, 40);
    mixture_make(&m, l, T);
    l->ref->ops->route(l->ref, m.ids, m.weights, m.logits, m.bias, &m.s);
    for (int i = 0; i < m.s.experts; i++) {
        m.up[i] = lab_weights_make(format_of(format, i, false), M, K);
        m.gate[i] = lab_weights_make(format_of(format, i, false), M, K);
        m.down[i] = lab_weights_make(format_of(format, i, true), N, M);
    }
    struct tensor x = lab_make(l->mem, l->act, T, K, -1, 1);
    struct tensor want = run_experts(l, l->ref, &m, x, format, 0, T),
                  have = run_experts(l, l->fast, &m, x, format, 0, T);
    double off = lab_worst_within(have, want, l->act == DT_BF16 ? 0x1p-7 * lab_largest(want) : 0);
    struct tensor last = run_experts(l, l->fast, &m, x, format, T - 1, 1);
    size_t bytes = (size_t)N * dtype_size(l->act);
    assert_memory_equal(last.data, (char *)have.data + (size_t)(T - 1) * bytes, bytes);
    for (int i = 0; i < m.s.experts; i++) {
        lab_weights_drop(&m.up[i]);
        lab_weights_drop(&m.gate[i]);
        lab_weights_drop(&m.down[i]);
    }
    lab_drop(l->mem, 4, (struct tensor *const[]){&x, &want, &have, &last});
    mixture_drop(&m, l);
    return off;
}

static void t_experts(void **state)
{
    for (int act = 0; act < 2; act++) {
        struct lab l = lab_open(act ? DT_BF16 : DT_F32);
        double off = 0;
        for (int whole = 0; whole < 2; whole++) {
            for (enum quant_format f = QUANT_NONE; f <= QUANT_F4; f++)
                off = fmax(off, experts(&l, f, lab_between(1, 6), whole));
            off = fmax(off, experts(&l, QUANT_NONE, 1, whole));
            off = fmax(off, experts(&l, MIXED, lab_between(1, 12), whole));
            off = fmax(off, experts(&l, act ? QUANT_F4 : QUANT_NONE, 100, whole));
        }
        check_note("%-4s worst difference %.2f of the tolerance", dtype_name(l.act), off);
        assert_true(off <= 1);
        lab_close(&l);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("the router chooses the experts of the reference, also with equal logits and NaN", t_route),
    CLAIM("experts equal the reference, and a row has the same bits alone and among others", t_experts),
};

CHECK_MAIN(lab_random = check_seed())
