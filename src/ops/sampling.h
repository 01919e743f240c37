/* sampling.h - integer arithmetic for sampling the next token, bit-identical on every machine.
 *
 * A floating-point softmax differs between machines: exponentials differ in the last bit, as do sums in
 * another order, and a random number occasionally falls in between. Here both are integers:
 *
 *     fall(l)  = (largest - l) * log2(e) / temperature, in steps of 2^-28   f32 difference, f64 product
 *     weight   = 2^-fall, in steps of 2^-40                                 products of 32 bits
 *     mass     = sum of weights                                             the same in any order
 *
 * The error of a weight is at most 2^-28 of itself or 2^-40, less than the error of an f32 logit. A fall
 * of SAMPLING_DEPTH halvings or more has weight 0. Candidates are ordered by key = fall, then id: the most
 * probable first, the lowest id first among equals, all keys different. A number t below the mass selects
 * the candidate at which the running sum passes t. */
#pragma once

#include "ops/ops.h"

#include <math.h>

#ifdef __CUDACC__
#define SAMPLING_FN static __host__ __device__ inline
#else
#define SAMPLING_FN static inline
#endif

enum {
    SAMPLING_DEPTH = 41,
    SAMPLING_STEPS = 28, /* fractional bits of a fall */
    SAMPLING_ID = 21,    /* bits of an id: a sum of 2^21 weights of at most 2^40 fits in 64 bits */
    SAMPLING_DIGIT = 11, /* bits of each of a key's SAMPLING_LEVELS digits */
    SAMPLING_LEVELS = (6 + SAMPLING_STEPS + SAMPLING_ID) / SAMPLING_DIGIT,
    SAMPLING_BINS = 1 << SAMPLING_DIGIT,
};

#define SAMPLING_NOTHING ((uint64_t)SAMPLING_DEPTH << SAMPLING_STEPS) /* smallest fall with weight 0 */

SAMPLING_FN int sampling_has(const uint64_t *set, int64_t id)
{
    return (int)(set[id / 64] >> (id % 64) & 1);
}

/* Returns the steps of fall for a logit difference of 1. */
SAMPLING_FN double sampling_rate(float temperature)
{
    return 1.4426950408889634 * (double)(1 << SAMPLING_STEPS) / (double)temperature;
}

/* Returns the fall of a logit that is `below` less than the largest. */
SAMPLING_FN uint64_t sampling_fall(float below, double rate)
{
    double fall = (double)below * rate;
    return fall < (double)SAMPLING_NOTHING ? (uint64_t)fall : SAMPLING_NOTHING;
}

SAMPLING_FN uint32_t sampling_part(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

/* Returns 2^-f = 1 - f q(f): a polynomial through Chebyshev nodes, in steps of 2^-32. */
SAMPLING_FN uint64_t sampling_weight(uint64_t fall)
{
    uint32_t f = (uint32_t)fall << (32 - SAMPLING_STEPS);
    uint32_t q = 639488 - sampling_part(f, 48550);
    q = 5712048 - sampling_part(f, q);
    q = 41304489 - sampling_part(f, q);
    q = 238387495 - sampling_part(f, q);
    q = 1031764939 - sampling_part(f, q);
    q = 2977044471u - sampling_part(f, q);
    return fall < SAMPLING_NOTHING
               ? (((uint64_t)1 << 32) - sampling_part(f, q)) << 8 >> (fall >> SAMPLING_STEPS)
               : 0;
}

SAMPLING_FN uint64_t sampling_key(uint64_t fall, int64_t id)
{
    return fall << SAMPLING_ID | (uint64_t)id;
}

SAMPLING_FN int32_t sampling_key_id(uint64_t key)
{
    return (int32_t)(key & (((uint64_t)1 << SAMPLING_ID) - 1));
}

SAMPLING_FN uint64_t sampling_key_weight(uint64_t key)
{
    return sampling_weight(key >> SAMPLING_ID);
}

/* Returns the position in the running sum for a random number in [0, 1). */
SAMPLING_FN uint64_t sampling_drawn(double random, uint64_t mass)
{
    uint64_t t = (uint64_t)(random * (double)mass);
    return t < mass ? t : mass - 1;
}

/* Returns the position of the last candidate kept by top_p, where the running sum reaches top_p of the
 * mass. */
SAMPLING_FN uint64_t sampling_last(float top_p, uint64_t mass)
{
    double share = (double)top_p * (double)mass;
    uint64_t t = share > 0 ? (uint64_t)share : 0;
    t -= t > 0 && (double)t == share; /* reaching top_p exactly suffices */
    return t < mass ? t : mass - 1;
}

/* The search result of a backend; both masses at temperature 1. */
struct sampling_found {
    int32_t id; /* -1: nothing could be sampled */
    float logit, largest, largest_allowed;
    uint64_t mass, mass_allowed;
};

static inline float sampling_logprob(float logit, float largest, uint64_t mass)
{
    return (float)(0 - ((double)largest - (double)logit + log(ldexp((double)mass, -40)))); /* never -0 */
}

static inline struct sampled sampling_result(const struct sampling_found *f)
{
    struct sampled c = {f->id, 0, 0};
    if (f->id < 0)
        return c;
    c.logprob = sampling_logprob(f->logit, f->largest, f->mass);
    c.logprob_masked = sampling_logprob(f->logit, f->largest_allowed, f->mass_allowed);
    return c;
}

/* Samples a token from a row of logits on the host, among the ids below n: greedily, or from
 * softmax(logits / temperature), restricted by top_p. */
struct sampled sample_token(const float *logits, int n, const struct sampler *how);

/* The two parts of sample_token(), for sample_filter.c. sample_id() returns an id, or -1 if none can be
 * sampled; min_p > 0: after top_p, only ids with at least this fraction of the largest probability.
 * sample_report() returns the log-probabilities of an id, or for -1 of the one that `how` samples; its id
 * is -1 if a logit is NaN. */
int32_t sample_id(const float *logits, int n, const struct sampler *how, float min_p);
struct sampled sample_report(const float *logits, int n, const struct sampler *how, int32_t id);
