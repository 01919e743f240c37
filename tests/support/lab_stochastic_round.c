/* lab_stochastic_round.c - f16 states; see lab.h. */
#include "check.h"
#include "lab.h"

#include "ops/stochastic_round.h"

#include <math.h>

enum { MOST = 140 };

static uint16_t half_at(struct tensor t, int64_t r, int64_t n)
{
    return ((const uint16_t *)t.data)[r * t.stride + n];
}

/* Checks that `half` is the stochastic rounding of `floats`; all NaN are equal. */
static void same_rounded(struct tensor half, struct tensor floats, uint32_t key)
{
    for (int64_t r = 0; r < half.rows; r++)
        for (int64_t n = 0; n < half.cols; n++) {
            float v = lab_at(floats, r, n);
            uint16_t have = half_at(half, r, n), want = stochastic_round_f16(v, key, r, n, half.cols);
            if (have != want && !(isnan(v) && isnan(f16_to_f32(have))))
                fail_msg("number %lld of row %lld: %g became %04x, not %04x", (long long)n, (long long)r,
                         (double)v, have, want);
        }
}

static void same_bits(struct tensor have, struct tensor want)
{
    for (int64_t r = 0; r < want.rows; r++)
        assert_memory_equal((char *)have.data + (size_t)(r * have.stride) * dtype_size(have.dtype),
                            (char *)want.data + (size_t)(r * want.stride) * dtype_size(want.dtype),
                            (size_t)want.cols * dtype_size(want.dtype));
}

/* A layer, the states of `count` sessions with equal numbers in both types, keys and outputs. */
struct pair {
    struct lab_ssm k;
    struct tensor floats, halves, y[2], each[2][MOST];
    uint32_t keys[MOST];
    int count;
};

static struct pair pair_make(struct backend *b, struct lab_stochastic s, int count)
{
    struct pair p = {.count = count};
    lab_ssm_of(&p.k, b, s.act, s.T, s.G, s.H, s.P, s.N);
    p.k.s.chunk = s.T > 40 ? 128 : p.k.s.chunk;
    int64_t rows = (int64_t)s.H * s.P;
    struct tensor wide[2] = {b->ops->alloc(b, DT_F32, rows * count, s.N + s.wide),
                             lab_make(b, DT_F16, rows * count, s.N + s.wide, -1, 1)};
    tensor_convert(wide[0], wide[1]);
    p.floats = wide[0], p.halves = wide[1];
    for (int i = 0; i < 2; i++) {
        p.y[i] = b->ops->alloc(b, s.act, s.T, p.k.inner);
        lab_poison(p.y[i]);
        for (int j = 0; j < count; j++)
            p.each[i][j] = tensor_rows(tensor_cols(wide[i], s.wide, s.N), rows * j, rows);
    }
    for (int j = 0; j < count; j++)
        p.keys[j] = stochastic_key(lab_between(1, 1 << 20), lab_between(0, 60));
    return p;
}

static void pair_check(struct pair *p, struct backend *b)
{
    same_bits(p->y[1], p->y[0]);
    for (int j = 0; j < p->count; j++)
        same_rounded(p->each[1][j], p->each[0][j], p->keys[j]);
    lab_ssm_drop(&p->k, b);
    lab_drop(b, 4, (struct tensor *const[]){&p->floats, &p->halves, &p->y[0], &p->y[1]});
}

void lab_stochastic_step(struct backend *b, struct lab_stochastic s)
{
    struct pair p = pair_make(b, s, s.T);
    for (int i = 0; i < 2; i++)
        b->ops->ssm_step_batch(b, p.y[i], p.k.v, p.k.dt, p.each[i], p.keys, &p.k.s, &p.k.c);
    pair_check(&p, b);
}

void lab_stochastic_scan(struct backend *b, struct lab_stochastic s)
{
    struct pair p = pair_make(b, s, 1);
    for (int i = 0; i < 2; i++)
        b->ops->ssm_scan(b, p.y[i], p.k.v, p.k.dt, p.each[i][0], p.keys[0], &p.k.s, &p.k.c);
    pair_check(&p, b);
}

/* S = 1 S + 1 x B with S = 0 and x = 1, 2^-8: time steps are clamped to 1, heads do not decay. */
void lab_stochastic_numbers(struct backend *b, const float *v, int N)
{
    static const float xs[2] = {1, 0x1p-8f};
    struct lab_ssm k;
    lab_ssm_of(&k, b, DT_F32, 1, 1, 1, 2, N);
    k.s.dt_min = k.s.dt_max = 1;
    ((float *)k.a.data)[0] = 0;
    memcpy(k.v.data, xs, sizeof xs);
    memcpy((float *)k.v.data + 2, v, (size_t)N * sizeof *v);
    struct tensor want = lab_make(b, DT_F32, 2, N, 0, 0), y = b->ops->alloc(b, DT_F32, 1, 2);
    for (int i = 0; i < 2 * N; i++)
        ((float *)want.data)[i] = 0.0f + v[i % N] * xs[i / N];
    for (int scan = 0; scan < 2; scan++) {
        struct tensor state = b->ops->alloc(b, DT_F16, 2, N);
        uint32_t key = stochastic_key(lab_between(1, 1 << 20), scan);
        lab_ssm_run(&k, b, !scan, y, 0, 1, state, key);
        same_rounded(state, want, key);
        lab_drop(b, 1, (struct tensor *const[]){&state});
    }
    lab_ssm_drop(&k, b);
    lab_drop(b, 2, (struct tensor *const[]){&want, &y});
}
