/* sessions.c - what going back, copying and keeping a session cost, and how far bf16 drifts: see bench.h.
 *
 * The recurrent state has one size whatever the length; keys and values grow with every token.  The two
 * parts are read off the file of a saved session at two lengths.
 */
#include "bench/subject.h"

#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHORT = 512, LONG = 2048, AFTER = 64, DRIFT_TOKENS = 2048, DRIFT_TRIAL = 64 };

struct kept {
    struct subject *m;
    struct session *s;
    struct checkpoint *mark;
    char *path;
};

static void run_checkpoint(void *arg)
{
    const struct kept *k = arg;
    checkpoint_free(session_checkpoint(k->s));
}

static void run_rewind(void *arg)
{
    const struct kept *k = arg;
    struct err e = ERR_INIT;
    subject_need(session_rewind(k->s, k->mark, &e), &e);
}

static void run_fork(void *arg)
{
    const struct kept *k = arg;
    session_free(session_fork(k->s));
}

static void run_save(void *arg)
{
    const struct kept *k = arg;
    struct err e = ERR_INIT;
    subject_need(session_save(k->s, k->path, &e), &e);
}

static void run_load(void *arg)
{
    const struct kept *k = arg;
    struct err e = ERR_INIT;
    struct session *s = session_load(k->m->g, k->path, &e);
    subject_need(s ? 0 : -1, &e);
    session_free(s);
}

static void append(struct session *s, const int32_t *ids, int64_t n)
{
    struct err e = ERR_INIT;
    subject_need(session_append(s, ids, n, &e), &e);
    session_logits(s);
}

/* Bytes of the file once the session has `length` tokens. */
static double saved_bytes(struct kept *k, int64_t length)
{
    struct stat st = {0};
    append(k->s, k->m->ids, length - session_length(k->s));
    run_save(k);
    if (stat(k->path, &st))
        die(ERR_ENV, "cannot look at '%s', which was just written", k->path);
    return (double)st.st_size;
}

/* Largest difference between logits after a detour and back, and the same tokens without it. */
static double detour(const struct subject *m)
{
    struct err e = ERR_INIT;
    struct session *straight = session_new(m->g, 1), *s = session_new(m->g, 1);
    append(s, m->ids, SHORT);
    struct checkpoint *mark = session_checkpoint(s);
    append(s, m->ids + 1, AFTER);
    subject_need(session_rewind(s, mark, &e), &e);
    append(s, m->ids, AFTER);
    append(straight, m->ids, SHORT);
    append(straight, m->ids, AFTER);
    double most = 0;
    const float *x = session_logits(s), *y = session_logits(straight);
    for (int i = 0; i < engine_vocab(m->g); i++)
        most = fmax(most, fabs((double)x[i] - (double)y[i]));
    checkpoint_free(mark);
    session_free(s);
    session_free(straight);
    return most;
}

void bench_sessions(struct subject *m)
{
    static const struct {
        const char *name;
        void (*fn)(void *);
    } rows[] = {{"mark after 512 tokens", run_checkpoint},
                {"go back to the mark", run_rewind},
                {"copy of the session", run_fork},
                {"write to a file", run_save},
                {"read from the file", run_load}};
    struct err e = ERR_INIT;
    char *dir = file_place(PLACE_RUNTIME, &e);
    subject_need(dir ? 0 : -1, &e);
    struct kept k = {.m = m, .s = session_new(m->g, 1)};
    k.path = xasprintf("%s/bench-%d.session", dir, (int)getpid());
    append(k.s, m->ids, SHORT);
    k.mark = session_checkpoint(k.s);
    double first = saved_bytes(&k, SHORT);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct timing t = bench_measure(m->k, rows[i].fn, &k);
        bench_row(
            m->k, "session", rows[i].name, t,
            (struct rate){.bytes = rows[i].fn == run_rewind || rows[i].fn == run_checkpoint ? 0 : first});
    }
    double each = (saved_bytes(&k, LONG) - first) / (LONG - SHORT);
    bench_value(m->k, "session", "state, whatever the length", (first - SHORT * each) / 1024, "KiB");
    bench_value(m->k, "session", "and for each token", each, "bytes");
    bench_value(m->k, "session", "logits after a detour differ by at most", detour(m), "logit");
    unlink(k.path);
    checkpoint_free(k.mark);
    session_free(k.s);
    free(k.path);
    free(dir);
}

/* ---- drift -------------------------------------------------------------------------------------------- */

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

/* Both read the same text one token at a time, so that errors gather in the state. */
void bench_drift(struct subject *m)
{
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = m->dir, .isa = m->k->isa, .threads = m->k->threads, .f32 = true};
    struct engine *exact = engine_open(&o, &e);
    subject_need(exact ? 0 : -1, &e);
    struct session *a = session_new(m->g, 1), *b = session_new(exact, 1);
    int steps = m->k->repeat > 1 ? DRIFT_TOKENS : DRIFT_TRIAL;
    if (steps > m->c->lm.max_tokens)
        steps = m->c->lm.max_tokens;
    double sum = 0, most = 0, last = 0;
    for (int i = 0; i < steps; i++) {
        append(a, m->ids + i, 1);
        append(b, m->ids + i, 1);
        double kl = divergence(session_logits(b), session_logits(a), engine_vocab(exact));
        sum += kl;
        most = fmax(most, kl);
        last += i >= steps - steps / 4 ? kl : 0;
    }
    char name[80];
    snprintf(name, sizeof name, "bf16 from f32, mean KL over %d tokens", steps);
    bench_value(m->k, "drift", name, sum / steps, "nat");
    bench_value(m->k, "drift", "bf16 from f32, mean KL over the last quarter", 4 * last / steps, "nat");
    bench_value(m->k, "drift", "bf16 from f32, largest KL", most, "nat");
    session_free(a);
    session_free(b);
    engine_close(exact);
}
