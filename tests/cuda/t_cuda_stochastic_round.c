/* t_cuda_stochastic_round.c - tests of f16 states on the device (cuda/ssm.cuh and its kernels). */
#include "check.h"
#include "lab.h"

#include "ops/stochastic_round.h"
#include "src/ops/cuda.h"

#include <math.h>

static struct backend *gpu;

static void t_steps(void **state)
{
    static const struct lab_stochastic cases[] = {
        {DT_BF16, 3, 1, 2, 80, 128, 0},  {DT_F32, 2, 1, 2, 64, 128, 0}, {DT_BF16, 2, 1, 1, 80, 128, 3},
        {DT_BF16, 131, 1, 2, 2, 3, 0},   {DT_F32, 2, 2, 4, 20, 130, 1}, {DT_BF16, 2, 1, 1, 7, 261, 0},
        {DT_BF16, 2, 1, 2, 80, 128, 16}, {DT_F32, 1, 1, 1, 9, 6, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        lab_stochastic_step(gpu, cases[i]);
}

/* Uses lengths at which f32 and f16 states run the same kernels. */
static void t_scans(void **state)
{
    static const struct lab_stochastic cases[] = {
        {DT_BF16, 128, 1, 2, 80, 128, 0}, {DT_BF16, 150, 1, 1, 64, 128, 0}, {DT_BF16, 9, 1, 2, 80, 128, 0},
        {DT_BF16, 40, 1, 1, 32, 128, 16}, {DT_BF16, 300, 1, 1, 48, 128, 0}, {DT_F32, 30, 1, 2, 80, 128, 0},
        {DT_BF16, 21, 2, 2, 7, 130, 1},   {DT_F32, 33, 1, 1, 5, 3, 0},      {DT_BF16, 20, 1, 1, 160, 128, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        lab_stochastic_scan(gpu, cases[i]);
}

/* With a rest after whole chunks, an f32 state is updated token by token; an f16 state is close to it and
 * rounded once. */
static void t_rest(void **state)
{
    enum { T = 133, P = 80, N = 128 };
    struct lab_ssm k;
    lab_ssm_of(&k, gpu, DT_BF16, T, 1, 1, P, N);
    struct tensor half = lab_make(gpu, DT_F16, P, N, -1, 1), y = gpu->ops->alloc(gpu, DT_BF16, T, P),
                  want = lab_twin(gpu, y);
    tensor_convert(k.state, half);
    gpu->ops->ssm_scan(gpu, want, k.v, k.dt, k.state, 0, &k.s, &k.c);
    gpu->ops->ssm_scan(gpu, y, k.v, k.dt, half, stochastic_key(T, 0), &k.s, &k.c);
    assert_true(lab_worst(y, want) <= 1);
    double twice = 0;
    for (int r = 0; r < P; r++)
        for (int n = 0; n < N; n++) {
            double v = (double)lab_at(k.state, r, n), step = fmax(0x1p-24, ldexp(1, ilogb(v) - 10)),
                   once = (double)f16_to_f32(stochastic_round_f16((float)v, stochastic_key(T, 0), r, n, N)),
                   off = fabs((double)lab_at(half, r, n) - once);
            assert_true(off <= 2 * step + 1e-5);
            twice += off > 0.5 * step;
        }
    check_note("%.0f of %d numbers fell to the other side", twice, P * N);
    assert_true(twice < 0.03 * P * N); /* with an intermediate rounding it would be a third */
    lab_ssm_drop(&k, gpu);
    lab_drop(gpu, 3, (struct tensor *const[]){&half, &y, &want});
}

static void t_numbers(void **state)
{
    float v[128] = {0, -0.0f, 0x1p-24f, 0x1p-25f, 65504, 65505, -65535, 65536, -3e38f, INFINITY, -INFINITY};
    for (int i = 11; i < 128; i++)
        v[i] = (float)(lab_uniform(-2, 2) * ldexp(1, lab_between(-30, 16)));
    lab_stochastic_numbers(gpu, v, 128);
    lab_stochastic_numbers(gpu, v, 53);
}

/* ---- fused operation between the projections ------------------------------------------------- */

struct mixer {
    struct lab_ssm k;
    struct tensor p, w, bias, norm, out[2], conv[2], ssm[2], convs[2][131], ssms[2][131];
    uint32_t keys[131];
};

/* Compares the fused operation with its parts, as in t_cuda_ssm.c, with f16 states. */
static void mix(enum dtype act, int B, int G, int H, int P, int N)
{
    struct mixer m;
    lab_ssm_of(&m.k, gpu, act, B, G, H, P, N);
    int inner = m.k.inner, channels = inner + 2 * G * N;
    m.p = lab_make(gpu, act, B, inner + channels + H, -2, 2);
    m.w = lab_make(gpu, DT_F32, channels, 4, -1, 1);
    m.bias = lab_make(gpu, DT_F32, 1, channels, -1, 1);
    m.norm = lab_make(gpu, DT_F32, 1, inner, 0.5, 2);
    for (int i = 0; i < 2; i++) {
        m.conv[i] = i ? lab_twin(gpu, m.conv[0]) : lab_make(gpu, act, B * 3, channels, -1, 1);
        m.ssm[i] = i ? lab_twin(gpu, m.ssm[0]) : lab_make(gpu, DT_F16, (int64_t)B * inner, N, -1, 1);
        m.out[i] = gpu->ops->alloc(gpu, act, B, inner);
        for (int s = 0; s < B; s++) {
            m.convs[i][s] = tensor_rows(m.conv[i], (int64_t)3 * s, 3);
            m.ssms[i][s] = tensor_rows(m.ssm[i], (int64_t)s * inner, inner);
            m.keys[s] = stochastic_key(7 * s + 1, G);
        }
    }
    struct tensor z = tensor_cols(m.p, 0, inner), xbc = tensor_cols(m.p, inner, channels),
                  dt = tensor_cols(m.p, inner + channels, H), v = gpu->ops->alloc(gpu, act, B, channels);
    struct mamba_batch e = {m.w, m.bias, m.norm, 1e-5f, m.convs[0], m.ssms[0], m.keys, &m.k.s, &m.k.c};
    gpu->ops->mamba_batch(gpu, m.out[0], z, xbc, dt, &e);
    gpu->ops->conv_batch(gpu, v, xbc, m.w, m.bias, m.convs[1]);
    gpu->ops->ssm_step_batch(gpu, m.out[1], v, dt, m.ssms[1], m.keys, &m.k.s, &m.k.c);
    gpu->ops->gated_norm(gpu, m.out[1], m.out[1], z, m.norm, G, 1e-5f);
    assert_memory_equal(m.out[0].data, m.out[1].data, (size_t)B * (size_t)inner * dtype_size(act));
    assert_memory_equal(m.ssm[0].data, m.ssm[1].data, (size_t)B * (size_t)inner * (size_t)N * 2);
    lab_drop(gpu, 11,
             (struct tensor *const[]){&m.p, &m.w, &m.bias, &m.norm, &m.out[0], &m.out[1], &m.conv[0],
                                      &m.conv[1], &m.ssm[0], &m.ssm[1], &v});
    lab_ssm_drop(&m.k, gpu);
}

static void t_fused(void **state)
{
    mix(DT_BF16, 1, 2, 16, 80, 128);
    mix(DT_BF16, 3, 1, 4, 64, 128);
    mix(DT_F32, 2, 1, 8, 80, 128);
    mix(DT_BF16, 131, 2, 4, 3, 5);
    mix(DT_BF16, 3, 1, 2, 70, 130);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a step with f16 states is an f32 step, rounded at its end", t_steps),
    CLAIM("a scan with an f16 state is an f32 scan, rounded once, at its end", t_scans),
    CLAIM("a scan with a rest after whole chunks rounds an f16 state once, too", t_rest),
    CLAIM("too large numbers become 65504; small ones and infinities are as on the host", t_numbers),
    CLAIM("one launch for all between the projections gives the bits of its operations in f16, too", t_fused),
};

CHECK_MAIN_WITH((lab_random = check_seed(), gpu = lab_gpu()), backend_free(gpu))
