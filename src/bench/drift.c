/* drift.c - how far rounding leads from f32, for every choice of numbers: see bench.h.
 *
 * Two engines read the same text one token at a time, so that errors gather in the state: one computes in f32 with
 * the weights as they are stored, the other in bf16 with weights in the numbers chosen.  What they say comes next
 * is compared after every token: the Kullback-Leibler divergence, whether the likeliest token is the same, and
 * the largest difference of two logits.
 */
#include "bench/subject.h"

#include <math.h>
#include <stdio.h>

enum { TOKENS = 2048, TRIAL = 64 };

struct drift {
    int steps, same;
    double sum, last, most,
        logit; /* of divergence: all, the last quarter, the largest; of logits the largest */
};

static double log_sum(const float *x, int n)
{
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, (double)x[i]);
    for (int i = 0; i < n; i++)
        sum += exp((double)x[i] - most);
    return most + log(fmax(sum, 1)); /* the largest alone gives 1 */
}

/* Kullback-Leibler divergence of what q says comes next from what p says. */
static double divergence(const float *p, const float *q, int n)
{
    double zp = log_sum(p, n), zq = log_sum(q, n), kl = 0;
    for (int i = 0; i < n; i++)
        kl += exp((double)p[i] - zp) * ((double)p[i] - zp - (double)q[i] + zq);
    return kl;
}

static int likeliest(const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

static void compare(struct drift *d, const float *exact, const float *x, int n, bool late)
{
    double kl = divergence(exact, x, n);
    d->sum += kl;
    d->last += late ? kl : 0;
    d->most = fmax(d->most, kl);
    d->same += likeliest(exact, n) == likeliest(x, n);
    for (int i = 0; i < n; i++)
        d->logit = fmax(d->logit, fabs((double)exact[i] - (double)x[i]));
}

static struct engine *open(const struct subject *m, bool f32, enum weight_numbers numbers)
{
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = m->dir,
                               .device = m->k->device,
                               .isa = m->k->isa,
                               .threads = m->k->threads,
                               .f32 = f32,
                               .weights = numbers,
                               .cache = m->k->weight_cache,
                               .random = m->made};
    struct engine *g = engine_open(&o, &e);
    subject_need(g ? 0 : -1, &e);
    return g;
}

static struct drift measure(const struct subject *m, struct engine *exact, enum weight_numbers numbers)
{
    struct err e = ERR_INIT;
    struct engine *g = open(m, false, numbers);
    struct session *a = session_new(exact, 1), *b = session_new(g, 1);
    struct drift d = {.steps = m->trial ? TRIAL / 16 : m->k->repeat > 1 ? TOKENS : TRIAL};
    if (d.steps > m->c->lm.max_tokens)
        d.steps = m->c->lm.max_tokens;
    for (int i = 0; i < d.steps; i++) {
        subject_need(session_append(a, m->ids + i, 1, &e), &e);
        subject_need(session_append(b, m->ids + i, 1, &e), &e);
        compare(&d, session_logits(a), session_logits(b), engine_vocab(exact), i >= d.steps - d.steps / 4);
    }
    session_free(a);
    session_free(b);
    engine_close(g);
    return d;
}

void bench_drift(struct subject *m)
{
    static const struct {
        const char *name;
        enum weight_numbers numbers;
    } choices[] = {
        {"as stored", WEIGHTS_AUTO}, {"int8", WEIGHTS_INT8}, {"int4", WEIGHTS_INT4}, {"fp8", WEIGHTS_FP8}};
    struct engine *exact = open(m, true, WEIGHTS_AUTO);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        struct drift d = measure(m, exact, choices[i].numbers);
        const struct {
            const char *what, *unit;
            double value;
        } rows[] = {{"mean KL from f32", "nat", d.sum / d.steps},
                    {"mean KL, the last quarter", "nat", 4 * d.last / d.steps},
                    {"largest KL", "nat", d.most},
                    {"same likeliest token", "%", 100.0 * d.same / d.steps},
                    {"largest difference of logits", "logit", d.logit}};
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            char name[96];
            snprintf(name, sizeof name, "weights %s: %s%s", choices[i].name, rows[k].what,
                     k                   ? ""
                     : d.steps == TOKENS ? ", 2048 tokens"
                                         : ", fewer tokens");
            bench_value(m->k, "drift", name, rows[k].value, rows[k].unit);
        }
    }
    engine_close(exact);
}
