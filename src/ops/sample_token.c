/* sample_token.c - one token out of a row of logits on the host: see sampling.h.
 *
 * A token is sampled without sorting: a radix search over the keys of the candidates, the most significant
 * digit first, that descends into the one bin where the running sum of weights passes the target.
 */
#include "ops/sample_sums.h"
#include "ops/sampling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct candidates {
    uint64_t *keys;
    int n;
    uint64_t mass;
};

static struct candidates collect(const float *logits, int n, const struct sampler *how, float largest)
{
    struct candidates c = {.keys = xmalloc(2 * (unsigned long)n, sizeof *c.keys)};
    double rate = sampling_rate(how->temperature);
    for (int i = 0; i < n; i++) {
        if (!sampling_has(how->known, i) || (how->allowed && !sampling_has(how->allowed, i)))
            continue;
        uint64_t fall = sampling_fall(largest - logits[i], rate);
        if (fall == SAMPLING_NOTHING)
            continue;
        c.keys[c.n++] = sampling_key(fall, i);
        c.mass += sampling_weight(fall);
    }
    return c;
}

/* The weight of each bin of a digit, of keys that agree in all digits before it. */
static void weigh(uint64_t bins[SAMPLING_BINS], const uint64_t *keys, int n, int shift)
{
    memset(bins, 0, SAMPLING_BINS * sizeof *bins);
    for (int i = 0; i < n; i++)
        bins[keys[i] >> shift & (SAMPLING_BINS - 1)] += sampling_key_weight(keys[i]);
}

/* The key at which the running sum of weights passes t, and the sum with it.  `room` has space for c->n keys:
 * those in the bin that the search descends into, a small part after the first digit. */
static uint64_t find(const struct candidates *c, uint64_t *room, uint64_t t, uint64_t *sum)
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
                room[kept++] = keys[i];
        keys = room;
        n = kept;
    }
    *sum += sampling_key_weight(prefix);
    return prefix;
}

static int32_t draw(const float *logits, int n, const struct sampler *how, float largest)
{
    struct candidates c = collect(logits, n, how, largest);
    uint64_t kept = c.mass, sum, *room = c.keys + c.n; /* collect() made it twice as long */
    if (how->top_p < 1)
        find(&c, room, sampling_last(how->top_p, c.mass), &kept);
    int32_t id = sampling_key_id(find(&c, room, sampling_drawn(how->random, kept), &sum));
    free(c.keys);
    return id;
}

struct sampled sample_token(const float *logits, int n, const struct sampler *how)
{
    struct sampling_found f = {.id = -1};
    const struct sample_sums *sums = sample_sums_here();
    if (n > 1 << SAMPLING_ID)
        bug("%d logits to choose from", n);
    f.largest = f.largest_allowed = sums->largest(logits, n, how->known, NULL);
    if (how->allowed && isfinite(f.largest))
        f.largest_allowed = sums->largest(logits, n, how->known, how->allowed);
    if (!isfinite(f.largest) || !isfinite(f.largest_allowed))
        return sampling_result(&f);
    f.mass = f.mass_allowed = sums->mass(logits, n, how->known, NULL, f.largest);
    if (how->allowed)
        f.mass_allowed = sums->mass(logits, n, how->known, how->allowed, f.largest_allowed);
    f.id = how->temperature > 0 ? draw(logits, n, how, f.largest_allowed)
                                : sums->first(logits, n, how->known, how->allowed, f.largest_allowed);
    f.logit = logits[f.id];
    return sampling_result(&f);
}
