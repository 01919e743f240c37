/* threads.c - threads that share one engine, each with a session in which it generates a reply: see bench.h.
 *
 * Batches are formed only by the scheduler, as for tests that run in parallel in one process.  Each thread
 * rewinds to a checkpoint after BEFORE tokens and samples TOKENS greedily.  A second row has the mean number
 * of rows of a batch: the number of threads, if none was late. */
#include "bench/subject.h"

#include "ops/ops.h"
#include "session/generate.h"
#include "session/scheduler.h"
#include "text/tokenizer.h"

#include <pthread.h>
#include <stdlib.h>

enum { TOKENS = 200, BEFORE = 512, MOST = 64 };

struct writer {
    struct session *session;
    struct checkpoint *from;
    uint64_t *known;
    int tokens;
    pthread_t id;
};

struct thread_run {
    struct writer writers[MOST];
    int n;
};

static void *write_reply(void *arg)
{
    const struct writer *w = arg;
    struct err e = ERR_INIT;
    const struct sampler how = {.known = w->known, .top_p = 1};
    subject_need(session_rewind(w->session, w->from, &e), &e);
    session_append(w->session, &(int32_t){'a'}, 1, NULL);
    for (int i = 0; i < w->tokens; i++) {
        struct sampled c;
        subject_need(session_sample(w->session, &how, &c, &e), &e);
        subject_need(session_append(w->session, &c.id, 1, &e), &e);
    }
    return NULL;
}

static void run_threads(void *arg)
{
    struct thread_run *c = arg;
    for (int i = 0; i < c->n; i++)
        if (pthread_create(&c->writers[i].id, NULL, write_reply, &c->writers[i]))
            die(ERR_ENV, "cannot start a thread");
    for (int i = 0; i < c->n; i++)
        pthread_join(c->writers[i].id, NULL);
}

static void measure(struct subject *m, int n)
{
    struct thread_run c = {.n = n};
    int tokens = m->trial ? 8 : TOKENS, before = m->trial ? 64 : BEFORE;
    const char *name = bench_name("%d thread%s, %d tokens each", n, n > 1 ? "s" : "", tokens);
    if (m->c->lm.max_tokens < before + tokens + 1 || !subject_fits(m, n, before + tokens, n)) {
        bench_skip(m->k, "threads", name);
        return;
    }
    struct session *s[MOST];
    subject_fork(m, s, n, before);
    for (int i = 0; i < n; i++)
        c.writers[i] = (struct writer){s[i], session_checkpoint(s[i]), m->known, tokens, 0};
    struct scheduler_stats from = engine_scheduler_stats(m->g);
    struct timing t = bench_measure(m->k, run_threads, &c);
    struct scheduler_stats to = engine_scheduler_stats(m->g);
    for (int i = 0; i < n; i++)
        checkpoint_free(c.writers[i].from);
    subject_free_forks(s, n);
    bench_row(m->k, "threads", name, t, (struct rate){.count = (double)n * tokens, .unit = "tok"});
    bench_value(m->k, "threads", bench_name("%d thread%s: rows of a batch", n, n > 1 ? "s" : ""),
                (double)(to.rows - from.rows) / (double)(to.batches - from.batches), "");
}

void bench_threads(struct subject *m)
{
    static const int threads[] = {1, 4, 16, MOST};
    for (size_t i = 0; i < (m->trial ? 2 : sizeof threads / sizeof *threads); i++)
        measure(m, threads[i]);
}
