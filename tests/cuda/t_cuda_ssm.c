/* t_cuda_ssm.c - tests of the Mamba-2 layer on the device (cuda/ssm.cu, scan.cu, mamba.cu).
 *
 * Results are compared with the scalar reference at random shapes and at those of Holotron (heads of 80 by
 * 128, eight per group, chunks of 128), with lengths around a chunk.  Other tests need no reference:
 * sequences that are cut, and sessions in a batch and alone.
 */
#include "check.h"
#include "lab.h"

#include "emu/emu.h"
#include "ops/work.h"

#include "src/ops/cuda.h"

#include <math.h>

static struct backend *ref, *gpu;

static void compare(lab_case *fn, int rounds)
{
    struct lab l = {.ref = ref, .fast = gpu, .mem = gpu};
    lab_compare(&l, fn, rounds);
}

static void same_bits(struct tensor have, struct tensor want)
{
    for (int64_t r = 0; r < want.rows; r++)
        assert_memory_equal((char *)have.data + (size_t)(r * have.stride) * dtype_size(have.dtype),
                            (char *)want.data + (size_t)(r * want.stride) * dtype_size(want.dtype),
                            (size_t)want.cols * dtype_size(want.dtype));
}

/* ---- convolution ----------------------------------------------------------------------------- */

/* Input and output are columns of wider matrices, aligned to 16 bytes or not. */
struct conv_case {
    struct tensor room, in, w, bias, state, v;
};

static struct conv_case conv_case(enum dtype act, int T, int C, int K, int begin, int sessions)
{
    struct conv_case k = {.room = lab_make(gpu, act, T, begin + C + 8 + C % 2, -2, 2),
                          .w = lab_make(gpu, DT_F32, C, K, -1, 1),
                          .bias = lab_make(gpu, DT_F32, 1, C, -1, 1),
                          .state = lab_make(gpu, act, (int64_t)(K - 1) * sessions, C, -2, 2),
                          .v = gpu->ops->alloc(gpu, act, T, C)};
    k.in = tensor_cols(k.room, begin, C);
    lab_poison(k.v);
    return k;
}

static void conv_drop(struct conv_case *k)
{
    lab_drop(gpu, 5, (struct tensor *const[]){&k->room, &k->w, &k->bias, &k->state, &k->v});
}

static void t_conv(void **state)
{
    static const int shapes[][4] = {/* T, C, K, first column */
                                    {1, 528, 4, 16}, {2, 96, 4, 8},  {3, 40, 4, 0},  {8, 64, 4, 8},
                                    {9, 64, 4, 24},  {33, 24, 4, 8}, {17, 24, 4, 3}, {40, 21, 4, 5},
                                    {50, 5, 16, 1},  {12, 5, 16, 1}, {4, 9, 2, 0}};
    compare(lab_conv, 20);
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
        const int *s = shapes[i / 2];
        struct conv_case k = conv_case(i % 2 ? DT_BF16 : DT_F32, s[0], s[1], s[2], s[3], 1);
        struct tensor want = lab_twin(gpu, k.v), s2 = lab_twin(gpu, k.state), none = {0};
        ref->ops->conv_tokens(ref, want, k.in, k.w, i % 3 ? k.bias : none, s2);
        gpu->ops->conv_tokens(gpu, k.v, k.in, k.w, i % 3 ? k.bias : none, k.state);
        assert_true(lab_worst(k.v, want) <= 1);
        same_bits(k.state, s2);
        lab_drop(gpu, 2, (struct tensor *const[]){&want, &s2});
        conv_drop(&k);
    }
}

static void t_conv_split(void **state)
{
    for (int round = 0; round < 20; round++) {
        int T = lab_between(2, 30), C = round % 2 ? 33 : 32, cut = lab_between(1, T - 1);
        struct conv_case k = conv_case(DT_BF16, T, C, 4, 8, 1);
        struct tensor s2 = lab_twin(gpu, k.state), parts = lab_twin(gpu, k.v);
        gpu->ops->conv_tokens(gpu, k.v, k.in, k.w, k.bias, k.state);
        gpu->ops->conv_tokens(gpu, tensor_rows(parts, 0, cut), tensor_rows(k.in, 0, cut), k.w, k.bias, s2);
        gpu->ops->conv_tokens(gpu, tensor_rows(parts, cut, T - cut), tensor_rows(k.in, cut, T - cut), k.w,
                              k.bias, s2);
        same_bits(parts, k.v);
        same_bits(s2, k.state);
        lab_drop(gpu, 2, (struct tensor *const[]){&s2, &parts});
        conv_drop(&k);
    }
}

/* Uses more sessions than one launch takes; one of them is unaligned. */
static void t_conv_each(void **state)
{
    enum { B = 131, C = 24 };
    struct conv_case k = conv_case(DT_BF16, B, C, 4, 8, B);
    struct tensor s2 = lab_twin(gpu, k.state), alone = lab_twin(gpu, k.v), each[B];
    struct tensor odd = lab_make(gpu, DT_BF16, 3, C + 1, -1, 1), odd2 = lab_twin(gpu, odd);
    for (int i = 0; i < B; i++)
        each[i] = i == 5 ? tensor_cols(odd, 1, C) : tensor_rows(k.state, 3 * i, 3);
    gpu->ops->conv_batch(gpu, k.v, k.in, k.w, k.bias, each);
    for (int i = 0; i < B; i++)
        gpu->ops->conv_tokens(gpu, tensor_rows(alone, i, 1), tensor_rows(k.in, i, 1), k.w, k.bias,
                              i == 5 ? tensor_cols(odd2, 1, C) : tensor_rows(s2, 3 * i, 3));
    same_bits(k.v, alone);
    same_bits(k.state, s2);
    same_bits(odd, odd2);
    lab_drop(gpu, 4, (struct tensor *const[]){&s2, &alone, &odd, &odd2});
    conv_drop(&k);
}

/* ---- state space ----------------------------------------------------------------------------- */

/* Input of the layer; x, B, C and dt are columns of wider matrices, as in the model. */
struct ssm_case {
    struct lab_ssm k;
    struct tensor y;
};

static struct ssm_case ssm_case(enum dtype act, int T, int G, int H, int P, int N)
{
    struct ssm_case c;
    lab_ssm_of(&c.k, gpu, act, T, G, H, P, N);
    c.k.s.chunk = 128;
    c.y = gpu->ops->alloc(gpu, act, T, c.k.inner);
    lab_poison(c.y);
    return c;
}

static void ssm_drop(struct ssm_case *c)
{
    lab_ssm_drop(&c->k, gpu);
    lab_drop(gpu, 1, (struct tensor *const[]){&c->y});
}

static void scan(struct backend *b, const struct ssm_case *c, struct tensor y, struct tensor state, int from,
                 int n)
{
    lab_ssm_run(&c->k, b, n == 1, y, from, n, state, 0);
}

static void t_ssm(void **state)
{
    compare(lab_ssm, 20);
}

/* Returns the largest difference from the reference's token-by-token recurrence, as a multiple of the
 * tolerance. */
static double off_recurrence(const struct ssm_case *c, struct tensor before, struct tensor after)
{
    struct tensor want = lab_twin(gpu, c->y), s2 = lab_twin(gpu, before);
    for (int t = 0; t < c->k.T; t++)
        scan(ref, c, want, s2, t, 1);
    /* a product of sums of two bf16 numbers loses 2^-18 of each term, and the state is a sum of many */
    double off = fmax(lab_worst(c->y, want), lab_worst_within(after, s2, 0x1p-14 * lab_largest(s2)));
    lab_drop(gpu, 2, (struct tensor *const[]){&want, &s2});
    return off;
}

static void t_true_sizes(void **state)
{
    static const int shapes[][5] = {/* T, G, H, P, N; with 4 heads of 64 a block has 64 rows */
                                    {1, 1, 8, 80, 128},   {5, 1, 2, 80, 128},   {127, 1, 1, 80, 128},
                                    {128, 1, 2, 80, 128}, {129, 2, 2, 80, 128}, {300, 1, 1, 80, 128},
                                    {150, 2, 4, 64, 128}, {70, 1, 1, 32, 128},  {40, 1, 2, 48, 128},
                                    {140, 1, 1, 80, 64},  {20, 1, 1, 20, 128},  {30, 2, 2, 7, 130}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int *s = shapes[i];
        double off = 0;
        for (int act = 0; act < 2; act++) {
            struct ssm_case c = ssm_case(act ? DT_BF16 : DT_F32, s[0], s[1], s[2], s[3], s[4]);
            struct tensor before = lab_twin(gpu, c.k.state);
            scan(gpu, &c, c.y, c.k.state, 0, c.k.T);
            off = fmax(off, off_recurrence(&c, before, c.k.state));
            lab_drop(gpu, 1, (struct tensor *const[]){&before});
            ssm_drop(&c);
        }
        check_note("%3d tokens, %d heads of %d by %d: %.2f of the tolerance", s[0], s[2], s[3], s[4], off);
        assert_true(off <= 1);
    }
}

/* In f32 the bits are those of single steps; in bf16 values are close, and every cut at chunk boundaries
 * has the same bits. */
static void t_cuts(void **state)
{
    for (int round = 0; round < 4; round++) {
        enum dtype act = round % 2 ? DT_BF16 : DT_F32;
        struct ssm_case c = ssm_case(act, 290, 1, 1, round / 2 ? 64 : 80, 128);
        struct tensor before = lab_twin(gpu, c.k.state), s2 = lab_twin(gpu, before), y2 = lab_twin(gpu, c.y);
        int cut = act == DT_BF16 && round / 2 ? 128 * lab_between(1, 2) : lab_between(1, 289);
        scan(gpu, &c, c.y, c.k.state, 0, 290);
        scan(gpu, &c, y2, s2, 0, cut);
        scan(gpu, &c, y2, s2, cut, 290 - cut);
        if (act == DT_F32 || cut % 128 == 0) {
            same_bits(y2, c.y);
            same_bits(s2, c.k.state);
        }
        struct ssm_case parts = c;
        parts.y = y2;
        assert_true(off_recurrence(&parts, before, s2) <= 1);
        lab_drop(gpu, 3, (struct tensor *const[]){&before, &s2, &y2});
        ssm_drop(&c);
    }
}

/* With slowly decaying heads, the error of the state in bf16 does not grow from chunk to chunk. */
static void t_drift(void **state)
{
    enum { CHUNKS = 5 };
    struct ssm_case c = ssm_case(DT_BF16, 128 * CHUNKS, 1, 1, 16, 128);
    ((float *)c.k.a.data)[0] = -0.002f;
    struct tensor want = lab_twin(gpu, c.y), s2 = lab_twin(gpu, c.k.state);
    double off[CHUNKS];
    for (int i = 0; i < CHUNKS; i++) {
        scan(gpu, &c, c.y, c.k.state, 128 * i, 128);
        scan(ref, &c, want, s2, 128 * i, 128);
        off[i] = 0;
        for (int64_t r = 0; r < s2.rows; r++)
            for (int64_t n = 0; n < s2.cols; n++)
                off[i] = check_worse(off[i], fabs((double)lab_at(c.k.state, r, n) - lab_at(s2, r, n)));
        off[i] /= lab_largest(s2);
    }
    check_note("relative difference after 1 chunk %.1e, after %d %.1e", off[0], CHUNKS, off[CHUNKS - 1]);
    assert_true(off[0] < 5e-6 && off[CHUNKS - 1] < 5e-6);
    lab_drop(gpu, 2, (struct tensor *const[]){&want, &s2});
    ssm_drop(&c);
}

/* Uses more sessions than one launch takes; one state is unaligned, one has another stride. */
static void t_ssm_each(void **state)
{
    static const int shapes[][3] = {{131, 2, 3}, {4, 80, 128}, {3, 64, 128}};
    for (int i = 0; i < 6; i++) {
        int B = shapes[i / 2][0], P = shapes[i / 2][1], N = shapes[i / 2][2];
        struct ssm_case c = ssm_case(i % 2 ? DT_BF16 : DT_F32, B, 1, 2, P, N);
        int64_t rows = c.k.state.rows;
        struct tensor all = lab_make(gpu, DT_F32, rows * B, N, -1, 1), all2 = lab_twin(gpu, all),
                      wide = lab_make(gpu, DT_F32, rows, N + 5, -1, 1), wide2 = lab_twin(gpu, wide),
                      alone = lab_twin(gpu, c.y), each[131];
        for (int s = 0; s < B; s++)
            each[s] = s == 1 ? tensor_cols(wide, 1, N) : tensor_rows(all, rows * s, rows);
        gpu->ops->ssm_step_batch(gpu, c.y, c.k.v, c.k.dt, each, NULL, &c.k.s, &c.k.c);
        for (int s = 0; s < B; s++)
            scan(gpu, &c, alone, s == 1 ? tensor_cols(wide2, 1, N) : tensor_rows(all2, rows * s, rows), s, 1);
        same_bits(c.y, alone);
        same_bits(all, all2);
        same_bits(wide, wide2);
        lab_drop(gpu, 5, (struct tensor *const[]){&all, &all2, &wide, &wide2, &alone});
        ssm_drop(&c);
    }
}

/* ---- fused operation between the projections ------------------------------------------------- */

struct mixer_case {
    struct ssm_case c;
    struct tensor p, w, bias, norm, conv, ssm; /* p: columns z, x B C, dt, as in the model */
    struct tensor convs[131], ssms[131];
    int sessions, channels;
};

static struct mixer_case mixer_case(enum dtype act, int B, int G, int H, int P, int N, int K)
{
    struct mixer_case m = {.c = ssm_case(act, B, G, H, P, N), .sessions = B};
    int inner = m.c.k.inner;
    m.channels = inner + 2 * G * N;
    m.p = lab_make(gpu, act, B, inner + m.channels + H, -2, 2);
    m.w = lab_make(gpu, DT_F32, m.channels, K, -1, 1);
    m.bias = lab_make(gpu, DT_F32, 1, m.channels, -1, 1);
    m.norm = lab_make(gpu, DT_F32, 1, inner, 0.5, 2);
    m.conv = lab_make(gpu, act, (int64_t)B * (K - 1), m.channels, -1, 1);
    m.ssm = lab_make(gpu, DT_F32, (int64_t)B * inner, N, -1, 1);
    return m;
}

/* Runs rows [from, from + n) by the fused operation or by its three parts. */
static void mix(struct backend *b, struct mixer_case *m, bool fused, struct tensor out, struct tensor conv,
                struct tensor ssm, int from, int n)
{
    const struct ssm_shape *s = &m->c.k.s;
    int keep = (int)m->w.cols - 1, inner = m->c.k.inner;
    for (int i = 0; i < n; i++) {
        m->convs[i] = tensor_rows(conv, (int64_t)(from + i) * keep, keep);
        m->ssms[i] = tensor_rows(ssm, (int64_t)(from + i) * inner, inner);
    }
    struct tensor p = tensor_rows(m->p, from, n), y = tensor_rows(out, from, n), z = tensor_cols(p, 0, inner),
                  xbc = tensor_cols(p, inner, m->channels),
                  dt = tensor_cols(p, inner + m->channels, s->heads);
    struct mamba_batch e = {m->w, m->bias, m->norm, 1e-5f, m->convs, m->ssms, NULL, s, &m->c.k.c};
    if (fused) {
        b->ops->mamba_batch(b, y, z, xbc, dt, &e);
        return;
    }
    struct tensor v = gpu->ops->alloc(gpu, p.dtype, n, m->channels);
    b->ops->conv_batch(b, v, xbc, m->w, m->bias, m->convs);
    b->ops->ssm_step_batch(b, y, v, dt, m->ssms, NULL, s, &m->c.k.c);
    b->ops->gated_norm(b, y, y, z, m->norm, s->groups, 1e-5f);
    gpu->ops->free(gpu, &v);
}

/* The fused operation has the bits of this backend's separate operations and of each session alone, and
 * agrees with the reference. */
static void t_fused(void **state)
{
    static const int shapes[][6] = {/* sessions, G, H, P, N, K; with 16 pairs of heads a block has one pair */
                                    {1, 2, 16, 80, 128, 4}, {8, 1, 4, 80, 128, 4}, {8, 2, 4, 64, 128, 4},
                                    {131, 2, 4, 3, 5, 3},   {9, 1, 3, 20, 128, 2}, {5, 1, 2, 70, 130, 4}};
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
        const int *s = shapes[i / 2];
        struct mixer_case m = mixer_case(i % 2 ? DT_BF16 : DT_F32, s[0], s[1], s[2], s[3], s[4], s[5]);
        struct tensor out[4], conv[4], ssm[4]; /* fused, separate, reference, fused one by one */
        for (int j = 0; j < 4; j++) {
            out[j] = lab_twin(gpu, m.c.y), conv[j] = lab_twin(gpu, m.conv), ssm[j] = lab_twin(gpu, m.ssm);
            for (int from = 0, n = j == 3 ? 1 : s[0]; from < s[0]; from += n)
                mix(j == 2 ? ref : gpu, &m, j == 0 || j == 3, out[j], conv[j], ssm[j], from, n);
        }
        /* x, B or C may round the other way, by one step, before they update the state */
        double step = i % 2 ? 0x1p-7 : 0,
               off = fmax(lab_worst_within(out[0], out[2], step * lab_largest(out[2])),
                          lab_worst_within(ssm[0], ssm[2], step * lab_largest(ssm[2])));
        check_note("%3d sessions, %d heads of %d by %d, %s: %.2f of the tolerance", s[0], s[2], s[3], s[4],
                   dtype_name(m.p.dtype), off);
        assert_true(off <= 1);
        for (int j = 1; j < 4; j++) {
            same_bits(conv[0], conv[j]);
            if (j == 2)
                continue;
            same_bits(out[0], out[j]);
            same_bits(ssm[0], ssm[j]);
        }
        for (int j = 0; j < 4; j++)
            lab_drop(gpu, 3, (struct tensor *const[]){&out[j], &conv[j], &ssm[j]});
        lab_drop(gpu, 6, (struct tensor *const[]){&m.p, &m.w, &m.bias, &m.norm, &m.conv, &m.ssm});
        ssm_drop(&m.c);
    }
}

/* ---- deferred state updates ------------------------------------------------------------------ */

/* Sessions whose state and ring are in one allocation, as in the model; those of the last session are laid
 * out differently. */
struct ring_case {
    struct tensor blocks, ins[24], dts[24], ssms[24], convs[24];
    int behind[24];
};

static size_t ring_part(struct tensor *t, char *at, enum dtype type, int64_t rows, int64_t cols)
{
    *t = (struct tensor){at, type, rows, cols, cols};
    return ((size_t)(rows * cols) * dtype_size(type) + 255) / 256 * 256;
}

static struct ring_case ring_open(const struct mixer_case *m, struct tensor conv, struct tensor ssm)
{
    struct ring_case r = {0};
    const struct ssm_shape *s = &m->c.k.s;
    int64_t inner = m->c.k.inner, inputs = inner + (int64_t)s->groups * s->state,
            bytes = inner * s->state * 4 + WORK_RING * (inputs + s->heads) * 4 + 4 * 256;
    r.blocks = gpu->ops->alloc(gpu, DT_U8, m->sessions, bytes);
    for (int i = 0; i < m->sessions; i++) {
        char *at = (char *)r.blocks.data + i * bytes / 256 * 256;
        struct tensor from = tensor_rows(ssm, i * inner, inner);
        if (i == m->sessions - 1)
            at += 128;
        at += ring_part(&r.ssms[i], at, DT_F32, inner, s->state);
        at += ring_part(&r.ins[i], at, m->p.dtype, WORK_RING, inputs);
        ring_part(&r.dts[i], i == m->sessions - 1 ? at + 64 : at, DT_F32, WORK_RING, s->heads);
        gpu->ops->copy(gpu, r.ssms[i], from);
        r.convs[i] = tensor_rows(conv, i * (m->w.cols - 1), m->w.cols - 1);
    }
    return r;
}

/* Runs one token of each session; some states are written before their ring is full. */
static void ring_step(struct mixer_case *m, struct ring_case *r, struct tensor out)
{
    int inner = m->c.k.inner;
    bool write[24];
    struct tensor z = tensor_cols(m->p, 0, inner), xbc = tensor_cols(m->p, inner, m->channels),
                  dt = tensor_cols(m->p, inner + m->channels, m->c.k.s.heads);
    for (int i = 0; i < m->sessions; i++)
        write[i] = r->behind[i] == WORK_RING || lab_between(0, 9) == 0;
    const struct ssm_ring ring = {r->ins, r->dts, r->behind, write};
    const struct mamba_batch e = {m->w,    m->bias, m->norm,   1e-5f,     r->convs,
                                  r->ssms, NULL,    &m->c.k.s, &m->c.k.c, &ring};
    gpu->ops->mamba_batch(gpu, out, z, xbc, dt, &e);
    for (int i = 0; i < m->sessions; i++)
        r->behind[i] = write[i] ? 0 : r->behind[i] + 1;
}

static void t_ring(void **state)
{
    static const int shapes[][6] = {/* sessions, G, H, P, N, K; as above */
                                    {3, 2, 4, 80, 128, 4},
                                    {16, 1, 2, 64, 128, 4},
                                    {5, 1, 3, 20, 128, 2},
                                    {4, 2, 4, 3, 5, 3},
                                    {3, 1, 2, 70, 130, 4}};
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
        const int *s = shapes[i / 2];
        struct mixer_case m = mixer_case(i % 2 ? DT_BF16 : DT_F32, s[0], s[1], s[2], s[3], s[4], s[5]);
        struct tensor out = lab_twin(gpu, m.c.y), conv = lab_twin(gpu, m.conv);
        struct ring_case r = ring_open(&m, conv, m.ssm);
        int64_t inner = m.c.k.inner;
        for (int token = 0; token < 2 * WORK_RING + 5; token++) {
            struct tensor fresh = lab_make(gpu, m.p.dtype, m.p.rows, m.p.cols, -2, 2);
            gpu->ops->copy(gpu, m.p, fresh);
            mix(gpu, &m, true, m.c.y, m.conv, m.ssm, 0, s[0]);
            ring_step(&m, &r, out);
            same_bits(out, m.c.y);
            same_bits(conv, m.conv);
            gpu->ops->free(gpu, &fresh);
        }
        for (int k = 0; k < s[0]; k++) {
            const struct ssm_ring ring = {&r.ins[k], &r.dts[k], &r.behind[k], NULL};
            gpu->ops->ssm_flush(gpu, r.ssms[k], &ring, &m.c.k.s, &m.c.k.c);
            same_bits(r.ssms[k], tensor_rows(m.ssm, k * inner, inner));
        }
        lab_drop(gpu, 3, (struct tensor *const[]){&out, &conv, &r.blocks});
        lab_drop(gpu, 6, (struct tensor *const[]){&m.p, &m.w, &m.bias, &m.norm, &m.conv, &m.ssm});
        ssm_drop(&m.c);
    }
}

/* After a matrix product a layer may read its states before the product has ended.  After itself it may
 * not, because it writes them: a read that is too early stops the kernel (emu/watch.h). */
static void t_early(void **state)
{
    struct mixer_case m = mixer_case(DT_BF16, 2, 1, 8, 80, 128, 4);
    struct tensor out[2], conv[2], ssm[2], host = lab_make(gpu, DT_F32, 16, 64, -1, 1),
                                           x = lab_make(gpu, DT_BF16, 1, 64, -1, 1),
                                           y = lab_make(gpu, DT_BF16, 1, 16, -1, 1), none = {0};
    struct weight *w = gpu->ops->pack(gpu, host, DT_BF16);
    for (int j = 0; j < 2; j++) {
        out[j] = lab_twin(gpu, m.c.y), conv[j] = lab_twin(gpu, m.conv), ssm[j] = lab_twin(gpu, m.ssm);
        for (int token = 0; token < 3; token++) {
            if (token != 1)
                gpu->ops->linear(gpu, y, x, w, none, EPI_NONE, SET);
            long before = &emu_card ? emu_card.early : 0;
            mix(gpu, &m, j == 0, out[j], conv[j], ssm[j], 0, 2);
            if (&emu_card && j == 0)
                assert_true((emu_card.early > before) == (token != 1));
        }
    }
    same_bits(out[0], out[1]);
    same_bits(ssm[0], ssm[1]);
    gpu->ops->weight_free(gpu, w);
    for (int j = 0; j < 2; j++)
        lab_drop(gpu, 3, (struct tensor *const[]){&out[j], &conv[j], &ssm[j]});
    lab_drop(gpu, 3, (struct tensor *const[]){&host, &x, &y});
    lab_drop(gpu, 6, (struct tensor *const[]){&m.p, &m.w, &m.bias, &m.norm, &m.conv, &m.ssm});
    ssm_drop(&m.c);
}

static const struct CMUnitTest tests[] = {
    CLAIM("states may be read before the previous product has ended, but not before their writer has",
          t_early),
    CLAIM("states that are written seldom have the same bits as those written at each step", t_ring),
    CLAIM("the convolution and its state equal the reference, at any address and width", t_conv),
    CLAIM("a convolution cut anywhere equals an uncut one, bit for bit", t_conv_split),
    CLAIM("convolutions of many sessions together give the bits of each alone", t_conv_each),
    CLAIM("the state space step and scan equal the reference", t_ssm),
    CLAIM("with true sizes a scan equals the recurrence of the reference, token by token", t_true_sizes),
    CLAIM("a scan, cut anywhere, equals the recurrence; cut at chunks, itself bit for bit", t_cuts),
    CLAIM("the state of a scan in bf16 stays equally close to the recurrence in all chunks", t_drift),
    CLAIM("one launch for all between the projections gives the bits of its operations", t_fused),
    CLAIM("steps of many sessions together give the bits of each alone", t_ssm_each),
};

CHECK_MAIN_WITH((lab_random = check_seed(), ref = backend_cpu("ref", NULL, NULL), gpu = lab_gpu()),
                backend_free(gpu);
                backend_free(ref))
