/* half.h - the numbers between the products of a training step, and vectors of them.
 *
 * Where the processor multiplies bf16 (amx.h) `half` is that; elsewhere it is a float, since a library that imitates bf16
 * products takes fifty times as long.  What is written in these words is the same code for both: a `vec` is as wide as the
 * processor's registers, and the compiler knows its + - * /.
 */
#ifndef POCKET_HALF_H
#define POCKET_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined __AVX512BF16__ || defined __AMX_BF16__
#include "amx.h"

enum { LANES = 16 };
typedef bf16 half;
typedef __m512 vec;

#define exp_of exp16

static inline float total(vec v)
{
    return _mm512_reduce_add_ps(v);
}

static inline vec least(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}

static inline vec most(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

/* The first n numbers, and zeros: n may be any. */
static inline vec first(vec v, int64_t n)
{
    return _mm512_maskz_mov_ps(n >= LANES ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1), v);
}

static inline float one(half h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline half back_to(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return (half)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
#else
enum { LANES = 8 };
typedef float half;
typedef float vec __attribute__((vector_size(LANES * 4)));
typedef int32_t ints __attribute__((vector_size(LANES * 4)));

#define wide   load
#define narrow store

static inline vec either(ints which, vec a, vec b)
{
    return (vec)((which & (ints)a) | (~which & (ints)b));
}

static inline vec least(vec a, vec b)
{
    return either(a < b, a, b);
}

static inline vec most(vec a, vec b)
{
    return either(a > b, a, b);
}

static inline vec first(vec v, int64_t n)
{
    const ints at = {0, 1, 2, 3, 4, 5, 6, 7};
    return (vec)((at < (int32_t)n) & (ints)v);
}

static inline float total(vec v)
{
    float sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += v[i];
    return sum;
}

/* e^x for x <= 88, relative error below 1e-6; far below zero it is 0. */
static inline vec exp_of(vec x)
{
    vec z = most(x * 1.44269504f, (vec){} - 126.f);
    ints n = __builtin_convertvector(z + either(z < 0, (vec){} - .5f, (vec){} + .5f), ints);
    vec f = (z - __builtin_convertvector(n, vec)) * 0.69314718f;
    vec p = 1 + f * (1 + f * (0.5f + f * (0.16666667f + f * (0.041666668f + f * 0.0083333f))));
    return (vec)((ints)p + (n << 23));
}

static inline float one(half h)
{
    return h;
}

static inline half back_to(float f)
{
    return f;
}
#endif

static inline vec load(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(float *p, vec v)
{
    memcpy(p, &v, sizeof v);
}

static inline vec all(float f)
{
    return (vec){} + f;
}

static inline vec sigmoid(vec x)
{
    return 1 / (1 + exp_of(-least(most(x, all(-80)), all(80))));
}

#endif
