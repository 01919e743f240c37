/* sample.c - see sample.h. */
#include "model/sample.h"

#include <math.h>
#include <stdlib.h>

struct candidate {
    int32_t id;
    float p;
};

static bool in_set(const uint64_t *set, int id)
{
    return set[id / 64] >> (id % 64) & 1;
}

/* Largest logit of a set, its lowest id, and log(sum(exp)). `also` may be NULL. */
static int32_t summarise(const float *logits, int n, const uint64_t *set, const uint64_t *also,
                         double *log_sum)
{
    int32_t best = -1;
    for (int i = 0; i < n; i++)
        if (in_set(set, i) && (!also || in_set(also, i)) && (best < 0 || logits[i] > logits[best]))
            best = i;
    if (best < 0 || !isfinite(logits[best]))
        return -1;
    double sum = 0;
    for (int i = 0; i < n; i++)
        if (in_set(set, i) && (!also || in_set(also, i)))
            sum += expf(logits[i] - logits[best]);
    *log_sum = (double)logits[best] + log(fmax(sum, 1)); /* the best alone adds 1 */
    return isfinite(sum) ? best : -1;
}

static int by_probability(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->p != y->p ? (x->p < y->p) - (x->p > y->p) : (x->id > y->id) - (x->id < y->id);
}

/* The id at which the running sum of the sorted candidates passes random times the kept mass. */
static int32_t pick(const struct candidate *c, int n, double mass, double top_p, double random)
{
    double kept = 0;
    int last = 0;
    for (; last < n; last++)
        if ((kept += c[last].p) >= top_p * mass)
            break;
    double target = random * kept, sum = 0;
    for (int i = 0; i < n && i <= last; i++)
        if ((sum += c[i].p) > target)
            return c[i].id;
    return c[0].id;
}

static int32_t draw(const float *logits, int n, const uint64_t *known, const uint64_t *allowed, int32_t best,
                    const struct sampling *p, double random)
{
    struct candidate *c = xmalloc((unsigned long)n, sizeof *c);
    int count = 0;
    double mass = 0;
    for (int i = 0; i < n; i++) {
        if (!in_set(known, i) || (allowed && !in_set(allowed, i)))
            continue;
        c[count] = (struct candidate){i, expf((logits[i] - logits[best]) / p->temperature)};
        mass += c[count++].p;
    }
    double top_p = p->top_p < 1 ? p->top_p : 1;
    int kept = 0; /* all that is left out here weighs less than 1 - top_p together */
    for (int i = 0; i < count; i++)
        if (c[i].p >= (1 - top_p) * mass / count)
            c[kept++] = c[i];
    qsort(c, (size_t)kept, sizeof *c, by_probability);
    int32_t id = pick(c, kept, mass, top_p, random);
    free(c);
    return id;
}

int sample_token(const float *logits, int n, const uint64_t *known, const uint64_t *allowed,
                 const struct sampling *p, double random, struct token_choice *out)
{
    double all = 0, masked = 0;
    int32_t best = summarise(logits, n, known, NULL, &all);
    if (best < 0)
        return -1;
    masked = all;
    if (allowed && (best = summarise(logits, n, known, allowed, &masked)) < 0)
        return -1;
    int32_t id = p->temperature > 0 ? draw(logits, n, known, allowed, best, p, random) : best;
    *out = (struct token_choice){
        .id = id, .logprob = (float)(logits[id] - all), .logprob_masked = (float)(logits[id] - masked)};
    return 0;
}
