/* sample_filter.c - repetition penalties, top_k and min_p (sample_filter.h). */
#include "ops/sample_filter.h"

#include "ops/sample_sums.h"
#include "ops/sampling.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- penalties ----------------------------------------------------------------------------------------- */

static bool has_penalty(const struct sample_filter *f)
{
    bool repeats = f->repetition > 0 && (f->repetition < 1 || f->repetition > 1);
    return repeats || f->presence < 0 || f->presence > 0 || f->frequency < 0 || f->frequency > 0;
}

bool sample_filter_is_on(const struct sample_filter *f)
{
    return f->top_k > 0 || f->min_p > 0 || has_penalty(f);
}

static float repeated(float logit, float penalty)
{
    return penalty > 0 ? logit < 0 ? logit * penalty : logit / penalty : logit;
}

/* Returns a copy of the logits with penalties applied; the caller frees it. */
static float *penalised(const float *logits, int n, const struct sample_filter *f)
{
    float *row = xmalloc((unsigned long)n, sizeof *row);
    autofree int32_t *counts =
        xcalloc((unsigned long)n, sizeof *counts); /* occurrences in the reply; -1: only in
                                                                  * the prompt */
    memcpy(row, logits, (size_t)n * sizeof *row);
    for (int64_t i = 0; i < f->n_tokens; i++) {
        int32_t id = f->tokens[i];
        if (id < 0 || id >= n)
            continue;
        if (i >= f->reply)
            counts[id] = counts[id] < 0 ? 1 : counts[id] + 1;
        else
            counts[id] = -1;
    }
    for (int id = 0; id < n; id++) {
        if (!counts[id])
            continue;
        row[id] = repeated(row[id], f->repetition);
        if (counts[id] > 0)
            row[id] -= f->frequency * (float)counts[id] + f->presence;
    }
    return row;
}

/* ---- the k largest ------------------------------------------------------------------------------------- */

/* Maps floats to unsigned numbers of the same order; -0 equals 0. */
static uint32_t ordered(float v)
{
    uint32_t bits;
    v += 0.0f;
    memcpy(&bits, &v, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static float unordered(uint32_t key)
{
    float v;
    uint32_t bits = key & 0x80000000u ? key & 0x7fffffffu : ~key;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Returns the k-th largest of n >= k keys, by radix search from the most significant digit. */
static uint32_t kth_key(const uint32_t *keys, int n, int k)
{
    enum { DIGIT = 8, BINS = 1 << DIGIT };
    uint32_t prefix = 0;
    int left = k;
    for (int shift = 32 - DIGIT; shift >= 0; shift -= DIGIT) {
        int bins[BINS] = {0}, bin = BINS - 1;
        for (int i = 0; i < n; i++)
            if (shift == 32 - DIGIT || keys[i] >> (shift + DIGIT) == prefix)
                bins[keys[i] >> shift & (BINS - 1)]++;
        while (bins[bin] < left)
            left -= bins[bin--];
        prefix = prefix << DIGIT | (uint32_t)bin;
    }
    return prefix;
}

/* Collects only logits near the largest, and widens the range until there are k. */
float sample_kth_largest(const float *logits, int n, const uint64_t *known, const uint64_t *allowed, int k)
{
    const struct sample_sums *sums = sample_sums_here();
    float largest = sums->largest(logits, n, known, allowed), least = -INFINITY;
    autofree int32_t *ids = xmalloc((unsigned long)n + 1, sizeof *ids);
    int some = 0;
    for (float below = 8; some < k && below < 1e6f; below *= 4)
        some = sums->from(logits, n, known, allowed, largest - below, ids);
    if (some < k)
        some = sums->from(logits, n, known, allowed, -FLT_MAX, ids);
    if (some >= k) {
        uint32_t *keys = xmalloc((unsigned long)some, sizeof *keys);
        for (int i = 0; i < some; i++)
            keys[i] = ordered(logits[ids[i]]);
        least = unordered(kth_key(keys, some, k));
        free(keys);
    }
    return least;
}

/* Returns the set of ids that top_k keeps, or NULL for all allowed ids; the caller frees it. */
static uint64_t *cut_to_largest(const float *row, int n, const struct sampler *how, int k)
{
    if (k <= 0 || k >= n)
        return NULL;
    float least = sample_kth_largest(row, n, how->known, how->allowed, k);
    if (!(least > -INFINITY))
        return NULL;
    uint64_t *set = xcalloc(((unsigned long)n + 63) / 64, sizeof *set);
    autofree int32_t *ids = xmalloc((unsigned long)n, sizeof *ids);
    int some = sample_sums_here()->from(row, n, how->known, how->allowed, least, ids);
    for (int i = 0; i < some; i++)
        set[ids[i] / 64] |= 1ull << (ids[i] % 64);
    return set;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

struct sampled sample_filtered(const float *logits, int n, const struct sampler *how,
                               const struct sample_filter *f)
{
    autofree float *own = has_penalty(f) ? penalised(logits, n, f) : NULL;
    const float *row = own ? own : logits;
    autofree uint64_t *set = how->temperature > 0 ? cut_to_largest(row, n, how, f->top_k) : NULL;
    struct sampler cut = *how;
    cut.allowed = set ? set : how->allowed;
    int32_t id = sample_id(row, n, &cut, f->min_p);
    if (id < 0)
        return (struct sampled){.id = -1};
    return sample_report(logits, n, how, id);
}
