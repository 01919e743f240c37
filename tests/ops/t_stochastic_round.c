/* t_stochastic_round.c - tests of f16 states (ops/stochastic_round.h): stochastic rounding, and its use in
 * every kernel. */
#include "check.h"
#include "lab.h"

#include "ops/stochastic_round.h"

#include <math.h>

/* Converts with the compiler's _Float16. */
static float from_compiler(uint16_t h)
{
    _Float16 f;
    memcpy(&f, &h, sizeof f);
    return (float)f;
}

static uint16_t to_compiler(float v)
{
    _Float16 f = (_Float16)v;
    uint16_t h;
    memcpy(&h, &f, sizeof h);
    return h;
}

static void t_conversions(void **state)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        float v = f16_to_f32((uint16_t)h), want = from_compiler((uint16_t)h);
        assert_true(isnan(want) ? isnan(v) : v == want && signbit(v) == signbit(want));
        if (isnan(v))
            assert_true(isnan(f16_to_f32(f16_truncate(v))));
        else
            assert_int_equal(f16_truncate(v), h);
    }
    for (int i = 0; i < 2000000; i++) { /* the nearest number, or the one before it */
        float v = bits_float((uint32_t)lab_between(0, 0x4780) << 16 | (uint32_t)lab_between(0, 0xffff));
        uint16_t cut = f16_truncate(v), near = to_compiler(v);
        if (v >= 65504)
            assert_int_equal(cut, 0x7bff);
        else
            assert_int_equal(cut, from_compiler(near) > v ? near - 1 : near);
        assert_int_equal(f16_truncate(-v), cut | 0x8000);
    }
}

/* Over all random bits the mean equals the number, exactly so in the normal range of f16 (11 bits). */
static void t_unbiased(void **state)
{
    enum { ALL = 1 << STOCHASTIC_BITS };
    for (int i = 0; i < 200; i++) {
        int exponent = lab_between(-26, 15);
        double v = (double)(float)(lab_uniform(1, i % 4 ? 2 : 1.98) * ldexp(i % 2 ? -1 : 1, exponent));
        if (fabs(v) >= 65504)
            continue;
        double sum = 0, least = INFINITY, most = -INFINITY;
        for (uint32_t r = 0; r < ALL; r++) {
            double one = (double)f16_to_f32(f16_truncate(stochastic_dither((float)v, r)));
            sum += one;
            least = fmin(least, one), most = fmax(most, one);
        }
        double step = exponent < -14 ? 0x1p-24 : ldexp(1, exponent - 10);
        assert_true(most - least <= step && least <= v && v <= most);
        assert_true(fabs(sum / ALL - v) <= (exponent < -14 ? step / ALL : 0));
    }
}

/* For each bit of a counter, position and layer the hash rounds up and down equally often, and neighbours are
 * independent. */
static void t_random(void **state)
{
    enum { KEYS = 400, NUMBERS = 128 };
    double sum = 0, together = 0, after = 0, down = 0, n = (double)KEYS * NUMBERS;
    float before[NUMBERS] = {0};
    for (int t = 0; t < KEYS; t++) {
        uint32_t key = stochastic_key(t + 1, 3), other = stochastic_key(t + 1, 4);
        for (int i = 0; i < NUMBERS; i++) { /* 1 + a quarter of a step */
            float v = (stochastic_round_f16(1 + 0x1p-12f, key, 0, i, NUMBERS) == 0x3c00 ? -0.25f : 0.75f),
                  w = (stochastic_round_f16(1 + 0x1p-12f, key, 0, i ^ 1, NUMBERS) == 0x3c00 ? -0.25f : 0.75f),
                  x = (stochastic_round_f16(1 + 0x1p-12f, other, 0, i, NUMBERS) == 0x3c00 ? -0.25f : 0.75f);
            sum += (double)v;
            together += (double)(v * w);
            after += (double)(v * before[i]);
            down += (double)(v * x);
            before[i] = v;
        }
    }
    double variance = 3.0 / 16;
    check_note("mean %.1e, with the neighbour %.1e, the token before %.1e, the next layer %.1e", sum / n,
               together / n, after / n, down / n);
    assert_true(fabs(sum) < 5 * sqrt(n * variance));
    assert_true(fmax(fabs(together), fmax(fabs(after), fabs(down))) < 5 * variance * sqrt(2 * n));
}

static void steps(struct backend *b)
{
    for (int i = 0; i < 30; i++) {
        int G = lab_between(1, 2), wide = i % 2 ? lab_between(0, 3) : 0;
        lab_stochastic_step(b, (struct lab_stochastic){i % 3 ? DT_BF16 : DT_F32, lab_between(1, 4), G,
                                                       G * lab_between(1, 3), lab_between(1, 40),
                                                       lab_between(1, 70), wide});
    }
    lab_stochastic_step(b, (struct lab_stochastic){DT_BF16, 2, 1, 2, 80, 128, 0});
}

static void scans(struct backend *b)
{
    for (int i = 0; i < 15; i++) {
        int G = lab_between(1, 2);
        lab_stochastic_scan(b, (struct lab_stochastic){i % 3 ? DT_BF16 : DT_F32, lab_between(1, 90), G,
                                                       G * lab_between(1, 3), lab_between(1, 40),
                                                       lab_between(1, 70), i % 2 ? lab_between(0, 3) : 0});
    }
    lab_stochastic_scan(b, (struct lab_stochastic){DT_BF16, 130, 1, 2, 80, 128, 0});
}

static void t_steps(void **state)
{
    lab_each_isa(steps);
}

static void t_scans(void **state)
{
    lab_each_isa(scans);
}

/* Tests tiny, huge, infinite and NaN values. */
static void numbers(struct backend *b)
{
    float v[61] = {0,        -0.0f,           0x1p-24f, -0x1p-24f, 0x1p-25f,  0x1.8p-20f, 0x1.ffcp-15f,
                   0x1p-14f, 0x1.fffffep-15f, 65504,    65505,     65520,     -65535,     65536,
                   -1e6f,    3e38f,           -3e38f,   INFINITY,  -INFINITY, 0x1p-126f,  1e-30f,
                   0x1p-37f, -0x1p-38f};
    for (int i = 23; i < 61; i++)
        v[i] = (float)(lab_uniform(-2, 2) * ldexp(1, lab_between(-30, 16)));
    lab_stochastic_numbers(b, v, 61);
    v[7] = NAN;
    lab_stochastic_numbers(b, v, 8);
}

static void t_numbers(void **state)
{
    lab_each_isa(numbers);
}

/* 4096 tokens that each add a quarter of a step to 1: rounded to nearest, the state would remain 1. */
static void gathers(struct backend *b)
{
    enum { N = 64, TOKENS = 4096 };
    struct lab_ssm k;
    lab_ssm_of(&k, b, DT_F32, 1, 1, 1, 1, N);
    k.s.dt_min = k.s.dt_max = 1;
    ((float *)k.a.data)[0] = 0;
    for (int i = 0; i <= 2 * N; i++)
        ((float *)k.v.data)[i] = i ? 0x1p-12f : 1;
    struct tensor state = lab_make(b, DT_F16, 1, N, 1, 1), y = b->ops->alloc(b, DT_F32, 1, 1);
    for (int t = 1; t <= TOKENS; t++)
        b->ops->ssm_step_batch(b, y, k.v, k.dt, &state, &(uint32_t){stochastic_key(t, 0)}, &k.s, &k.c);
    double mean = 0;
    for (int i = 0; i < N; i++)
        mean += (double)lab_at(state, 0, i) / N;
    check_note("%-10s 1 + %d 2^-12 is %.4f", b->ops->name, TOKENS, mean);
    assert_true(fabs(mean - 2) < 0.02); /* mean of 64 numbers, each with an error of 0.03 */
    lab_ssm_drop(&k, b);
    lab_drop(b, 2, (struct tensor *const[]){&state, &y});
}

static void t_gathers(void **state)
{
    lab_each_isa(gathers);
}

static const struct CMUnitTest tests[] = {
    CLAIM("f16 to f32 and truncation back agree with the compiler", t_conversions),
    CLAIM("the mean of a rounded number over all random bits is the number", t_unbiased),
    CLAIM("random bits of neighbours, tokens and layers are independent", t_random),
    CLAIM("a step with f16 states is an f32 step, rounded at its end, on every instruction set", t_steps),
    CLAIM("a scan with an f16 state is an f32 scan, rounded once, at its end", t_scans),
    CLAIM("too large numbers become 65504, infinities and NaN stay, on every instruction set", t_numbers),
    CLAIM("many additions, each less than half a step, are not lost", t_gathers),
};

CHECK_MAIN(lab_random = check_seed())
