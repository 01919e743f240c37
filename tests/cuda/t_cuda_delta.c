/* t_cuda_delta.c - tests of the kernels of Qwen's hybrid layers, emulated by tests/emu: the gated delta
 * rule, its gates, head norms, rotary positions, SwiGLU and the vision tower's positions, compared with the
 * scalar reference at random sizes (lab.h).
 */
#include "check.h"
#include "lab.h"

#include "emu/emu.h"

#include <math.h>

/* ---- the delta rule -------------------------------------------------------------------------- */

struct rule {
    struct delta_shape s;
    struct tensor v, gates;
};

/* Gates have realistic values: the logarithm of the decay, at most 0 and sometimes so low that the state is
 * cleared, and a factor from 0 to 1. */
static struct rule rule_make(const struct lab *l, struct delta_shape s, int64_t T)
{
    struct rule r = {s, lab_make(l->mem, l->act, T, 2 * s.key_heads * s.key + s.value_heads * s.value, -1, 1),
                     lab_make(l->mem, DT_F32, T, 2 * (int64_t)s.value_heads, 0, 1)};
    float *g = r.gates.data;
    for (int64_t t = 0; t < T; t++)
        for (int h = 0; h < s.value_heads; h++) {
            float *one = &g[t * r.gates.stride + h];
            *one = *one > 0.95f ? -60.0f : -0.3f * *one;
        }
    return r;
}

static struct delta_shape shape_of(bool published)
{
    int key_heads = lab_between(1, 3), each = lab_between(1, 3);
    return (struct delta_shape){key_heads,
                                key_heads * each,
                                published ? 128 : lab_between(1, 40),
                                published ? 128 : lab_between(1, 90),
                                4,
                                64,
                                lab_between(0, 1)};
}

static double scan(const struct lab *l, bool published, int64_t T)
{
    struct rule r = rule_make(l, shape_of(published), T);
    const struct delta_shape *s = &r.s;
    struct tensor before = lab_make(l->mem, DT_F32, (int64_t)s->value_heads * s->key, s->value, -1, 1),
                  after = lab_twin(l->mem, before),
                  want = lab_make(l->mem, l->act, T, (int64_t)s->value_heads * s->value, 0, 0),
                  have = lab_twin(l->mem, want);
    lab_poison(have);
    l->ref->ops->delta_scan(l->ref, want, r.v, r.gates, before, s);
    l->fast->ops->delta_scan(l->fast, have, r.v, r.gates, after, s);
    double off = fmax(lab_worst(have, want), lab_worst(after, before));
    lab_drop(l->mem, 6, (struct tensor *const[]){&r.v, &r.gates, &before, &after, &want, &have});
    return off;
}

static void t_scan(void **state)
{
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct lab l = lab_open(bf16 ? DT_BF16 : DT_F32);
        for (int i = 0; i < 5; i++) {
            double off = scan(&l, i < 2, i ? lab_between(1, 40) : 33);
            check_note("%s %s: %.2f of the tolerance", dtype_name(l.act), i < 2 ? "128 x 128" : "others",
                       off);
            assert_true(off <= 1);
        }
        lab_close(&l);
    }
}

/* Scans rows [first, first + n) of a prompt. */
static void scan_rows(struct backend *b, const struct rule *r, struct tensor y, int64_t first, int64_t n,
                      struct tensor state)
{
    b->ops->delta_scan(b, tensor_rows(y, first, n), tensor_rows(r->v, first, n),
                       tensor_rows(r->gates, first, n), state, &r->s);
}

/* Scans a prompt in pieces: the first has `first` rows, the others `each`. */
static void scan_pieces(struct backend *b, const struct rule *r, struct tensor y, int64_t first, int64_t each,
                        struct tensor state)
{
    for (int64_t t = 0, n = first; t < y.rows; t += n, n = each)
        scan_rows(b, r, y, t, n = n < y.rows - t ? n : y.rows - t, state);
}

enum { CHUNK = 64, FEW = 8 /* rows; too few for the chunked kernel */ };

/* Uses one key for all tokens, no decay, and full updates, so that each update cancels almost exactly. */
static void make_stubborn(struct rule *r)
{
    const struct delta_shape *s = &r->s;
    uint16_t *v = r->v.data;
    float *g = r->gates.data;
    for (int64_t t = 0; t < r->v.rows; t++)
        for (int64_t c = 0; c < 2 * (int64_t)s->key_heads * s->key; c++)
            v[t * r->v.stride + c] = v[c];
    for (int64_t t = 0; t < r->gates.rows; t++)
        for (int h = 0; h < 2 * s->value_heads; h++)
            g[t * r->gates.stride + h] = h < s->value_heads ? 0 : 1;
}

/* Makes the first tokens decay by so much that the sum of all logarithms loses the other tokens in f32. */
static void make_forgetful(struct rule *r)
{
    float *g = r->gates.data;
    for (int64_t t = 0; t < 10 && t < r->gates.rows; t++)
        for (int h = 0; h < r->s.value_heads; h++)
            g[t * r->gates.stride + h] = -30000;
}

/* Returns the largest difference of both kernels from the reference.  Their results are not bit-identical. */
static double two_ways(const struct lab *l, struct delta_shape s, int64_t T, void (*make)(struct rule *r))
{
    struct rule r = rule_make(l, s, T);
    if (make)
        make(&r);
    struct tensor before = lab_make(l->mem, DT_F32, (int64_t)s.value_heads * s.key, s.value, -1, 1),
                  chunks = lab_twin(l->mem, before), tokens = lab_twin(l->mem, before),
                  want = lab_make(l->mem, l->act, T, (int64_t)s.value_heads * s.value, 0, 0),
                  one = lab_twin(l->mem, want), other = lab_twin(l->mem, want);
    lab_poison(one);
    lab_poison(other);
    scan_rows(l->ref, &r, want, 0, T, before);
    scan_rows(l->fast, &r, one, 0, T, chunks);
    scan_pieces(l->fast, &r, other, FEW, FEW, tokens);
    assert_true(memcmp(chunks.data, tokens.data, tensor_bytes(chunks)) != 0 ||
                memcmp(one.data, other.data, tensor_bytes(one)) != 0);
    double off = fmax(fmax(lab_worst(one, want), lab_worst(other, want)),
                      fmax(lab_worst(chunks, before), lab_worst(tokens, before)));
    lab_drop(l->mem, 8,
             (struct tensor *const[]){&r.v, &r.gates, &before, &chunks, &tokens, &want, &one, &other});
    return off;
}

/* With a single value head per key head, blocks have fewer columns. */
static struct delta_shape published_shape(int key_heads, int each, bool tiled)
{
    return (struct delta_shape){key_heads, key_heads * each, 128, 128, 4, 64, tiled};
}

static void t_ways(void **state)
{
    struct lab l = lab_open(DT_BF16);
    static const int rows[] = {FEW + 1, CHUNK - 1, CHUNK, CHUNK + FEW, CHUNK + FEW + 1, 2 * CHUNK + 33};
    for (int i = 0; i < 6; i++) {
        bool narrow = i % 2;
        struct delta_shape s =
            narrow ? published_shape(1, 1, false) : published_shape(2, lab_between(1, 2), lab_between(0, 1));
        double off = two_ways(&l, s, rows[i], i == 2 ? make_forgetful : i == 4 ? make_stubborn : NULL);
        check_note("%d tokens, %d heads: %.2f of the tolerance", rows[i], s.value_heads, off);
        assert_true(off <= 1);
    }
    lab_close(&l);
}

/* Cuts a prompt at chunk boundaries and at other positions. */
static void t_cut(void **state)
{
    struct lab l = lab_open(DT_BF16);
    enum { T = 3 * CHUNK + 20 };
    struct delta_shape s = published_shape(1, lab_between(1, 2), false);
    struct rule r = rule_make(&l, s, T);
    struct tensor whole = lab_make(l.mem, DT_F32, (int64_t)s.value_heads * s.key, s.value, -1, 1),
                  cut = lab_twin(l.mem, whole), anywhere = lab_twin(l.mem, whole),
                  want = lab_make(l.mem, l.act, T, (int64_t)s.value_heads * s.value, 0, 0),
                  have = lab_twin(l.mem, want);
    int first = lab_between(1, T - 1);
    scan_rows(l.fast, &r, want, 0, T, whole);
    lab_poison(have);
    scan_pieces(l.fast, &r, have, (int64_t)CHUNK * lab_between(1, 3), CHUNK, cut);
    assert_memory_equal(have.data, want.data, tensor_bytes(have));
    assert_memory_equal(cut.data, whole.data, tensor_bytes(cut));
    lab_poison(have);
    scan_pieces(l.fast, &r, have, first, lab_between(1, T), anywhere);
    double off = fmax(lab_worst(have, want), lab_worst(anywhere, whole));
    check_note("cut behind %d tokens: %.2f of the tolerance", first, off);
    assert_true(off <= 1);
    lab_drop(l.mem, 7, (struct tensor *const[]){&r.v, &r.gates, &whole, &cut, &anywhere, &want, &have});
    lab_close(&l);
}

/* Rows that are not aligned for vector loads are processed token by token, with the bits of pieces. */
static void t_loose(void **state)
{
    struct lab l = lab_open(DT_BF16);
    enum { T = CHUNK + 3 };
    struct rule r = rule_make(&l, published_shape(1, 1, false), T);
    struct tensor wide = lab_make(l.mem, l.act, T, r.v.cols + 1, 0, 0),
                  one = lab_make(l.mem, DT_F32, 128, 128, -1, 1), other = lab_twin(l.mem, one),
                  want = lab_make(l.mem, l.act, T, 128, 0, 0), have = lab_twin(l.mem, want);
    struct rule loose = r;
    loose.v = tensor_cols(wide, 1, r.v.cols);
    l.mem->ops->copy(l.mem, loose.v, r.v);
    scan_pieces(l.fast, &r, want, FEW, FEW, one);
    scan_rows(l.fast, &loose, have, 0, T, other);
    assert_memory_equal(have.data, want.data, tensor_bytes(have));
    assert_memory_equal(other.data, one.data, tensor_bytes(one));
    lab_drop(l.mem, 7, (struct tensor *const[]){&r.v, &r.gates, &wide, &one, &other, &want, &have});
    lab_close(&l);
}

/* Runs a step for each of n sessions.  The bits are those of each session alone, as a step or a scan of one
 * token. */
static void batch(const struct lab *l, bool published)
{
    enum { N = 4 };
    struct rule r = rule_make(l, shape_of(published), N);
    const struct delta_shape *s = &r.s;
    int64_t width = (int64_t)s->value_heads * s->value, rows = (int64_t)s->value_heads * s->key;
    struct tensor want = lab_make(l->mem, l->act, N, width, 0, 0), have = lab_twin(l->mem, want),
                  one = lab_twin(l->mem, want), before[N], after[N], alone[N];
    for (int i = 0; i < N; i++) {
        before[i] = lab_make(l->mem, DT_F32, rows, s->value, -1, 1);
        after[i] = lab_twin(l->mem, before[i]);
        alone[i] = lab_twin(l->mem, before[i]);
    }
    l->ref->ops->delta_step_batch(l->ref, want, r.v, r.gates, before, s);
    l->fast->ops->delta_step_batch(l->fast, have, r.v, r.gates, after, s);
    assert_true(lab_worst(have, want) <= 1);
    for (int i = 0; i < N; i++) {
        struct tensor y = tensor_rows(one, i, 1), v = tensor_rows(r.v, i, 1), g = tensor_rows(r.gates, i, 1);
        if (i % 2)
            l->fast->ops->delta_step_batch(l->fast, y, v, g, &alone[i], s);
        else
            l->fast->ops->delta_scan(l->fast, y, v, g, alone[i], s);
        assert_true(lab_worst(after[i], before[i]) <= 1);
        assert_memory_equal(after[i].data, alone[i].data, tensor_bytes(after[i]));
        lab_drop(l->mem, 3, (struct tensor *const[]){&before[i], &after[i], &alone[i]});
    }
    assert_memory_equal(have.data, one.data, tensor_bytes(have));
    lab_drop(l->mem, 5, (struct tensor *const[]){&r.v, &r.gates, &want, &have, &one});
}

static void t_batch(void **state)
{
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct lab l = lab_open(bf16 ? DT_BF16 : DT_F32);
        for (int i = 0; i < 4; i++)
            batch(&l, i < 2);
        lab_close(&l);
    }
}

/* ---- fused layers ---------------------------------------------------------------------------- */

enum { SESSIONS = 3, TAPS = 4 };

struct layer {
    struct delta_batch e;
    struct tensor x, z, ab, w, all, before, out, conv[SESSIONS], states[SESSIONS];
};

static void layer_states(struct layer *y)
{
    const struct delta_shape *s = y->e.shape;
    int64_t rows = (int64_t)s->value_heads * s->key, size = rows * s->value,
            loose = y->all.cols - SESSIONS * size;
    for (int i = 0; i < SESSIONS; i++) {
        y->conv[i] = tensor_rows(y->before, i * (TAPS - 1), TAPS - 1);
        y->states[i] =
            (struct tensor){(float *)y->all.data + loose + i * size, DT_F32, rows, s->value, s->value};
    }
}

/* Tensors are columns of wider matrices; states are unaligned if loose is set. */
static void layer_make(struct layer *y, const struct lab *l, const struct delta_shape *s, bool loose)
{
    int64_t C = 2 * s->key_heads * s->key + s->value_heads * s->value, H = s->value_heads,
            size = H * s->key * s->value;
    y->x = lab_make(l->mem, l->act, SESSIONS, C + 3, -2, 2);
    y->z = lab_make(l->mem, l->act, SESSIONS, H * s->value, -3, 3);
    y->ab = lab_make(l->mem, l->act, SESSIONS, 2 * H, -3, 3);
    y->out = lab_make(l->mem, l->act, SESSIONS, H * s->value, 0, 0);
    y->w = lab_make(l->mem, DT_F32, C, TAPS, -1, 1);
    y->before = lab_make(l->mem, l->act, SESSIONS * (TAPS - 1), C, -2, 2);
    y->all = lab_make(l->mem, DT_F32, 1, SESSIONS * size + loose, -1, 1);
    struct tensor a = lab_make(l->mem, DT_F32, 1, H, -4, 0), dt = lab_make(l->mem, DT_F32, 1, H, -1, 1),
                  norm = lab_make(l->mem, DT_F32, 1, s->value, 0, 2);
    y->e = (struct delta_batch){y->w, a, dt, norm, 1e-6f, y->conv, y->states, s};
    layer_states(y);
}

/* Copies a layer, with its own output and states, for another backend or kernel. */
static void layer_twin(struct layer *y, const struct lab *l, const struct layer *of)
{
    *y = *of;
    y->out = lab_twin(l->mem, of->out);
    y->before = lab_twin(l->mem, of->before);
    y->all = lab_twin(l->mem, of->all);
    y->e.conv_states = y->conv;
    y->e.states = y->states;
    layer_states(y);
}

static void layer_drop(const struct lab *l, struct layer *y, bool twin)
{
    lab_drop(l->mem, 3, (struct tensor *const[]){&y->out, &y->before, &y->all});
    if (!twin)
        lab_drop(l->mem, 7,
                 (struct tensor *const[]){&y->x, &y->z, &y->ab, &y->w, &y->e.a, &y->e.dt_bias, &y->e.norm});
}

/* Runs one token of each session, fused or as four operations. */
static void layer_run(struct backend *b, const struct lab *l, const struct layer *y, bool fused)
{
    const struct delta_shape *s = y->e.shape;
    struct tensor x = tensor_cols(y->x, 3, y->x.cols - 3);
    if (fused) {
        b->ops->delta_batch(b, y->out, y->z, x, y->ab, &y->e);
        return;
    }
    struct tensor v = lab_make(l->mem, l->act, SESSIONS, x.cols, 0, 0),
                  gates = lab_make(l->mem, DT_F32, SESSIONS, 2 * s->value_heads, 0, 0);
    b->ops->conv_batch(b, v, x, y->e.conv, (struct tensor){0}, y->e.conv_states);
    b->ops->delta_gates(b, gates, tensor_cols(y->ab, 0, s->value_heads),
                        tensor_cols(y->ab, s->value_heads, s->value_heads), y->e.a, y->e.dt_bias);
    b->ops->delta_step_batch(b, y->out, v, gates, y->e.states, s);
    b->ops->norm_gate(b, y->out, y->out, y->z, y->e.norm, y->e.eps);
    lab_drop(l->mem, 2, (struct tensor *const[]){&v, &gates});
}

static double fused(const struct lab *l, struct delta_shape s, bool loose)
{
    struct layer have, plain, want;
    layer_make(&have, l, &s, loose);
    layer_twin(&plain, l, &have);
    layer_twin(&want, l, &have);
    for (int token = 0; token < 2; token++) {
        layer_run(l->ref, l, &want, false);
        layer_run(l->fast, l, &plain, false);
        layer_run(l->fast, l, &have, true);
    }
    assert_memory_equal(have.out.data, plain.out.data, tensor_bytes(have.out));
    assert_memory_equal(have.before.data, plain.before.data, tensor_bytes(have.before));
    assert_memory_equal(have.all.data, plain.all.data, tensor_bytes(have.all));
    /* in bf16 the convolution may round the other way, which changes a column of the state by one step */
    double slack = l->act == DT_BF16 ? 0x1p-6 : 0,
           off = lab_worst_within(have.out, want.out, slack * lab_largest(want.out));
    off = fmax(off, lab_worst_within(have.all, want.all, slack * lab_largest(want.all)));
    off = fmax(off, lab_worst(have.before, want.before));
    layer_drop(l, &plain, true);
    layer_drop(l, &want, true);
    layer_drop(l, &have, false);
    return off;
}

static void t_fused(void **state)
{
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct lab l = lab_open(bf16 ? DT_BF16 : DT_F32);
        for (int i = 0; i < 6; i++) {
            double off = fused(
                &l, i < 3 ? published_shape(lab_between(1, 2), lab_between(1, 3), i == 1) : shape_of(false),
                i % 3 == 2);
            check_note("%s %s: %.2f of the tolerance", dtype_name(l.act), i < 3 ? "128 x 128" : "others",
                       off);
            assert_true(off <= 1);
        }
        lab_close(&l);
    }
}

/* After a matrix product a layer may read its states before the product has ended.  After itself it may
 * not, because it writes them: a read that is too early stops the kernel (emu/watch.h). */
static void t_early(void **state)
{
    struct lab l = lab_open(DT_BF16);
    struct delta_shape s = published_shape(1, 2, false);
    struct layer have, plain;
    layer_make(&have, &l, &s, false);
    layer_twin(&plain, &l, &have);
    struct tensor host = lab_make(l.mem, DT_F32, 16, 64, -1, 1), x = lab_make(l.mem, DT_BF16, 1, 64, -1, 1),
                  y = lab_make(l.mem, DT_BF16, 1, 16, -1, 1), none = {0};
    struct weight *w = l.fast->ops->pack(l.fast, host, DT_BF16);
    for (int token = 0; token < 3; token++) {
        if (token != 1)
            l.fast->ops->linear(l.fast, y, x, w, none, EPI_NONE, SET);
        long before = &emu_card ? emu_card.early : 0;
        layer_run(l.fast, &l, &have, true);
        if (&emu_card)
            assert_true((emu_card.early > before) == (token != 1));
    }
    for (int token = 0; token < 3; token++)
        layer_run(l.fast, &l, &plain, false);
    assert_memory_equal(have.out.data, plain.out.data, tensor_bytes(have.out));
    assert_memory_equal(have.all.data, plain.all.data, tensor_bytes(have.all));
    l.fast->ops->weight_free(l.fast, w);
    layer_drop(&l, &plain, true);
    layer_drop(&l, &have, false);
    lab_drop(l.mem, 3, (struct tensor *const[]){&host, &x, &y});
    lab_close(&l);
}

/* ---- other kernels --------------------------------------------------------------------------- */

static double gates(const struct lab *l)
{
    int64_t T = lab_between(1, 9), H = lab_between(1, 300);
    struct tensor x = lab_make(l->mem, l->act, T, H, -30, 30), z = lab_make(l->mem, l->act, T, H, -5, 5),
                  a = lab_make(l->mem, DT_F32, 1, H, -4, 0), dt = lab_make(l->mem, DT_F32, 1, H, -1, 1),
                  want = lab_make(l->mem, DT_F32, T, 2 * H, 0, 0), have = lab_twin(l->mem, want);
    l->ref->ops->delta_gates(l->ref, want, x, z, a, dt);
    l->fast->ops->delta_gates(l->fast, have, x, z, a, dt);
    double off = lab_worst(have, want);
    lab_drop(l->mem, 6, (struct tensor *const[]){&x, &z, &a, &dt, &want, &have});
    return off;
}

static double heads_gated(const struct lab *l)
{
    int heads = lab_between(1, 5);
    int64_t T = lab_between(1, 9), d = lab_between(1, 70);
    struct tensor p = lab_make(l->mem, l->act, T, 2 * heads * d, -4, 4),
                  want = lab_make(l->mem, l->act, T, heads * d, -2, 2), have = lab_twin(l->mem, want);
    l->ref->ops->gate_heads(l->ref, want, p, heads);
    l->fast->ops->gate_heads(l->fast, have, p, heads);
    double off = lab_worst(have, want);
    lab_drop(l->mem, 3, (struct tensor *const[]){&p, &want, &have});
    return off;
}

/* SwiGLU into a third matrix and in place; the gate of a shared expert. */
static double rows_gated(const struct lab *l)
{
    int64_t T = lab_between(1, 9), C = lab_between(1, 600);
    struct tensor g = lab_make(l->mem, l->act, T, C, -4, 4), u = lab_make(l->mem, l->act, T, C, -2, 2),
                  gate = lab_make(l->mem, l->act, T, 1, -2, 2), want = lab_make(l->mem, l->act, T, C, 0, 0),
                  have = lab_twin(l->mem, want);
    l->ref->ops->swiglu(l->ref, want, g, u);
    l->fast->ops->swiglu(l->fast, have, g, u);
    double off = lab_worst(have, want);
    l->fast->ops->swiglu(l->fast, g, g, u);
    off = fmax(off, lab_worst(g, want));
    l->ref->ops->add_gated(l->ref, want, u, gate);
    l->mem->ops->copy(l->mem, have, g);
    l->fast->ops->add_gated(l->fast, have, u, gate);
    off = fmax(off, lab_worst_within(have, want, l->act == DT_BF16 ? 0x1p-7 * lab_largest(want) : 0));
    lab_drop(l->mem, 5, (struct tensor *const[]){&g, &u, &gate, &want, &have});
    return off;
}

static double norms_gated(const struct lab *l)
{
    int parts = lab_between(1, 12);
    int64_t T = lab_between(1, 5), d = lab_between(1, 140);
    struct tensor y = lab_make(l->mem, l->act, T, parts * d, -2, 2),
                  z = lab_make(l->mem, l->act, T, parts * d, -3, 3), w = lab_make(l->mem, DT_F32, 1, d, 0, 2),
                  want = lab_make(l->mem, l->act, T, parts * d, 0, 0), have = lab_twin(l->mem, want);
    l->ref->ops->norm_gate(l->ref, want, y, z, w, 1e-6f);
    l->fast->ops->norm_gate(l->fast, have, y, z, w, 1e-6f);
    double off = lab_worst(have, want);
    l->fast->ops->norm_gate(l->fast, y, y, z, w, 1e-6f);
    off = fmax(off, lab_worst(y, want));
    lab_drop(l->mem, 5, (struct tensor *const[]){&y, &z, &w, &want, &have});
    return off;
}

/* Head norms and rotary positions into another matrix or in place; all or a part of each head is rotated. */
static double heads_turned(const struct lab *l)
{
    int heads = lab_between(1, 11), wide = lab_between(1, 2);
    int64_t T = lab_between(1, 5), d = 2 * lab_between(1, 70), dims = 2 * lab_between(1, (int)d / 2);
    struct tensor x = lab_make(l->mem, l->act, T, wide * heads * d, -2, 2),
                  w = lab_make(l->mem, DT_F32, 1, d, 0, 2), table = lab_make(l->mem, DT_F32, T, dims, -1, 1),
                  whole = lab_make(l->mem, DT_F32, T, d, -1, 1),
                  want = lab_make(l->mem, l->act, T, heads * d, 0, 0), have = lab_twin(l->mem, want);
    l->ref->ops->norm_rotate(l->ref, want, x, w, table, heads, 1e-6f);
    l->fast->ops->norm_rotate(l->fast, have, x, w, table, heads, 1e-6f);
    double off = lab_worst(have, want), slack = l->act == DT_BF16 ? 0x1p-7 * lab_largest(want) : 0;
    if (wide == 1) {
        l->fast->ops->norm_rotate(l->fast, x, x, w, table, heads, 1e-6f);
        off = fmax(off, lab_worst(x, want));
    }
    l->mem->ops->copy(l->mem, have, want);
    l->ref->ops->rotate(l->ref, want, whole, heads);
    l->fast->ops->rotate(l->fast, have, whole, heads);
    off = fmax(off, lab_worst_within(have, want, slack));
    lab_drop(l->mem, 6, (struct tensor *const[]){&x, &w, &table, &whole, &want, &have});
    return off;
}

static double positions(const struct lab *l)
{
    int merge = lab_between(1, 2), cols = merge * lab_between(1, 9), side = lab_between(2, 12);
    int64_t rows = merge * lab_between(1, 9), C = lab_between(1, 300);
    struct tensor table = lab_make(l->mem, DT_F32, (int64_t)side * side, C, -1, 1),
                  want = lab_make(l->mem, l->act, rows * cols, C, 0, 0), have = lab_twin(l->mem, want);
    l->ref->ops->sample_grid(l->ref, want, table, cols, merge);
    l->fast->ops->sample_grid(l->fast, have, table, cols, merge);
    double off = lab_worst(have, want);
    lab_drop(l->mem, 3, (struct tensor *const[]){&table, &want, &have});
    return off;
}

static void compare(lab_case *fn)
{
    struct lab l = lab_open(DT_F32);
    lab_compare(&l, fn, 12);
    lab_close(&l);
}

static void t_gates(void **state)
{
    compare(gates);
    compare(heads_gated);
    compare(rows_gated);
    compare(norms_gated);
}

static void t_positions(void **state)
{
    compare(heads_turned);
    compare(positions);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the delta rule over many tokens equals the reference, with heads of 128 and of any size", t_scan),
    CLAIM("a prompt equals the reference in chunks and token by token, with few heads and with many", t_ways),
    CLAIM("a prompt cut at chunk boundaries has the same bits, cut anywhere the same values", t_cut),
    CLAIM("rows that are not aligned are processed token by token", t_loose),
    CLAIM("a batch step equals the reference, and has the bits of a single session and of a scan", t_batch),
    CLAIM("a layer fused into one operation has the bits of its four operations, states included", t_fused),
    CLAIM("states may be read before the previous product has ended, but not before their writer has",
          t_early),
    CLAIM("gates and gated norms equal the reference, in place too", t_gates),
    CLAIM("rotary positions and the tower's position table equal the reference", t_positions),
};

CHECK_MAIN(lab_random = check_seed())
