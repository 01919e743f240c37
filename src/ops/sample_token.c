/* sample_token.c - samples a token from a row of logits on the host (sampling.h).
 *
 * A token is sampled without sorting: a radix search over the keys of the candidates, most significant
 * digit first, descends into the bin in which the running sum of weights passes the target. */
#include "ops/sample_sums.h"
#include "ops/sampling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NEAR = 8 }; /* halvings: at temperature 1 a logit 5.5 below the largest */

struct candidates {
    uint64_t *keys, *buf; /* n each */
    int n;
    uint64_t mass;
};

/* Collects the ids whose weight is at least 2^-halvings. */
static struct candidates collect(const struct sample_sums *sums, const float *logits, int n,
                                 const struct sampler *how, float largest, int halvings)
{
    double rate = sampling_rate(how->temperature);
    uint64_t least = (uint64_t)halvings << SAMPLING_STEPS;
    float below = (float)((double)least / rate * 1.0001); /* slightly larger; the fall decides */
    autofree int32_t *ids = xmalloc((unsigned long)n, sizeof *ids);
    int some = sums->from(logits, n, how->known, how->allowed, nextafterf(largest - below, -INFINITY), ids);
    struct candidates c = {.keys = xmalloc(2 * (unsigned long)some + 1, sizeof *c.keys)};
    c.buf = c.keys + some;
    for (int k = 0; k < some; k++) {
        uint64_t fall = sampling_fall(largest - logits[ids[k]], rate);
        if (fall >= least)
            continue;
        c.keys[c.n++] = sampling_key(fall, ids[k]);
        c.mass += sampling_weight(fall);
    }
    return c;
}

/* Sums the weights of each bin of a digit, for keys that agree in all earlier digits. */
static void weigh(uint64_t bins[SAMPLING_BINS], const uint64_t *keys, int n, int shift)
{
    memset(bins, 0, SAMPLING_BINS * sizeof *bins);
    for (int i = 0; i < n; i++)
        bins[keys[i] >> shift & (SAMPLING_BINS - 1)] += sampling_key_weight(keys[i]);
}

/* Finds the key at which the running sum of weights passes t; *sum is the sum including it. The keys in
 * the bin into which the search descends, a small part after the first digit, are copied to c->buf. */
static uint64_t find(const struct candidates *c, uint64_t t, uint64_t *sum)
{
    uint64_t bins[SAMPLING_BINS], prefix = 0;
    const uint64_t *keys = c->keys;
    int n = c->n;
    *sum = 0;
    for (int shift = (SAMPLING_LEVELS - 1) * SAMPLING_DIGIT; shift >= 0; shift -= SAMPLING_DIGIT) {
        weigh(bins, keys, n, shift);
        uint64_t bin = 0;
        while (bin < SAMPLING_BINS - 1 && *sum + bins[bin] <= t)
            *sum += bins[bin++];
        prefix = prefix << SAMPLING_DIGIT | bin;
        int kept = 0;
        for (int i = 0; i < n; i++)
            if (keys[i] >> shift == prefix)
                c->buf[kept++] = keys[i];
        keys = c->buf;
        n = kept;
    }
    *sum += sampling_key_weight(prefix);
    return prefix;
}

/* Returns the mass of the candidates that have at least min_p of the largest weight; UINT64_MAX if
 * unknown, because more of them may exist than were collected. */
static uint64_t mass_above(const struct candidates *c, float min_p, int halvings)
{
    double most = -log2((double)min_p) * (double)(1 << SAMPLING_STEPS);
    uint64_t mass = 0;
    if (most >= (double)((uint64_t)halvings << SAMPLING_STEPS) && halvings < SAMPLING_DEPTH)
        return UINT64_MAX;
    for (int i = 0; i < c->n; i++)
        if ((double)(c->keys[i] >> SAMPLING_ID) <= most)
            mass += sampling_key_weight(c->keys[i]);
    return mass;
}

/* Samples among the collected candidates. The most probable come first: if the running sum passes its
 * target among those above 2^-halvings of the largest, the others are not needed. Returns -1 if it does
 * not. */
static int32_t draw_among(const struct candidates *c, const struct sampler *how, uint64_t mass, float min_p,
                          int halvings)
{
    uint64_t kept = mass, sum;
    if (how->top_p < 1) {
        uint64_t last = sampling_last(how->top_p, mass);
        if (last >= c->mass)
            return -1;
        find(c, last, &kept);
    }
    if (min_p > 0) {
        uint64_t above = mass_above(c, min_p, halvings);
        if (above == UINT64_MAX)
            return -1;
        kept = above < kept ? above : kept;
    }
    uint64_t t = sampling_drawn(how->random, kept);
    return t < c->mass ? sampling_key_id(find(c, t, &sum)) : -1;
}

static int32_t draw(const struct sample_sums *sums, const float *logits, int n, const struct sampler *how,
                    float largest, float min_p)
{
    static const int halvings[] = {NEAR, SAMPLING_DEPTH};
    double rate = sampling_rate(how->temperature);
    uint64_t mass = sums->mass(logits, n, how->known, how->allowed, largest, rate);
    int32_t id = -1;
    for (size_t k = 0; id < 0 && k < sizeof halvings / sizeof *halvings; k++) {
        struct candidates c = collect(sums, logits, n, how, largest, halvings[k]);
        id = draw_among(&c, how, mass, min_p, halvings[k]);
        free(c.keys);
    }
    return id;
}

static int32_t pick(const struct sample_sums *sums, const float *logits, int n, const struct sampler *how,
                    float largest, float min_p)
{
    if (n > 1 << SAMPLING_ID)
        bug("%d logits to choose from", n);
    return how->temperature > 0 ? draw(sums, logits, n, how, largest, min_p)
                                : sums->first(logits, n, how->known, how->allowed, largest);
}

int32_t sample_id(const float *logits, int n, const struct sampler *how, float min_p)
{
    const struct sample_sums *sums = sample_sums_here();
    float largest = sums->largest(logits, n, how->known, how->allowed);
    return isfinite(largest) ? pick(sums, logits, n, how, largest, min_p) : -1;
}

struct sampled sample_report(const float *logits, int n, const struct sampler *how, int32_t id)
{
    struct sampling_found f = {.id = -1};
    const struct sample_sums *sums = sample_sums_here();
    f.largest = f.largest_allowed = sums->largest(logits, n, how->known, NULL);
    if (how->allowed && isfinite(f.largest))
        f.largest_allowed = sums->largest(logits, n, how->known, how->allowed);
    if (!isfinite(f.largest) || !isfinite(f.largest_allowed))
        return sampling_result(&f);
    f.mass = f.mass_allowed = sums->mass(logits, n, how->known, NULL, f.largest, sampling_rate(1));
    if (how->allowed)
        f.mass_allowed = sums->mass(logits, n, how->known, how->allowed, f.largest_allowed, sampling_rate(1));
    f.id = id < 0 ? pick(sums, logits, n, how, f.largest_allowed, 0) : id;
    f.logit = logits[f.id];
    return sampling_result(&f);
}

struct sampled sample_token(const float *logits, int n, const struct sampler *how)
{
    return sample_report(logits, n, how, -1);
}
