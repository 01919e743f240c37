/* sessions.c - the cost of checkpoint, rewind, fork, save and load: see bench.h.
 *
 * The recurrent state has a fixed size; keys and values grow with every token.  The sizes of a saved session
 * at two lengths give both parts. */
#include "bench/subject.h"

#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHORT = 512, LONG = 2048, TRIAL = 32, AFTER = 64 };

static int64_t brief(const struct subject *m)
{
    return m->trial ? TRIAL : SHORT;
}

struct session_run {
    struct subject *m;
    struct session *s;
    struct checkpoint *mark;
    char *path;
};

static void run_checkpoint(void *arg)
{
    const struct session_run *k = arg;
    checkpoint_free(session_checkpoint(k->s));
}

static void run_rewind(void *arg)
{
    const struct session_run *k = arg;
    struct err e = ERR_INIT;
    subject_need(session_rewind(k->s, k->mark, &e), &e);
}

static void run_fork(void *arg)
{
    const struct session_run *k = arg;
    session_free(session_fork(k->s));
}

static void run_save(void *arg)
{
    const struct session_run *k = arg;
    struct err e = ERR_INIT;
    subject_need(session_save(k->s, k->path, &e), &e);
}

static void run_load(void *arg)
{
    const struct session_run *k = arg;
    struct err e = ERR_INIT;
    struct session *s = session_load(k->m->g, k->path, &e);
    subject_need(s ? 0 : -1, &e);
    session_free(s);
}

static void append(struct session *s, const int32_t *ids, int64_t n)
{
    subject_append(s, ids, n);
    session_logits(s);
}

/* Returns the bytes of the file of the session after extending the session to `length` tokens. */
static double saved_bytes(struct session_run *k, int64_t length)
{
    struct stat st = {0};
    append(k->s, k->m->ids, length - session_length(k->s));
    run_save(k);
    if (stat(k->path, &st))
        die(ERR_ENV, "cannot stat '%s', which was just written", k->path);
    return (double)st.st_size;
}

/* Returns the largest difference between logits after a rewind and those without one. */
static double rewind_error(const struct subject *m)
{
    struct err e = ERR_INIT;
    struct session *straight = session_new(m->g, 1), *s = session_new(m->g, 1);
    append(s, m->ids, brief(m));
    struct checkpoint *mark = session_checkpoint(s);
    append(s, m->ids + 1, AFTER);
    subject_need(session_rewind(s, mark, &e), &e);
    append(s, m->ids, AFTER);
    append(straight, m->ids, brief(m));
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
    } rows[] = {{"checkpoint after 512 tokens", run_checkpoint},
                {"rewind", run_rewind},
                {"fork", run_fork},
                {"save to a file", run_save},
                {"load from the file", run_load}};
    struct err e = ERR_INIT;
    autofree char *dir = file_place(PLACE_RUNTIME, &e);
    subject_need(dir ? 0 : -1, &e);
    struct session_run k = {.m = m, .s = session_new(m->g, 1)};
    k.path = xasprintf("%s/bench-%d.session", dir, (int)getpid());
    bench_temp_file(k.path);
    append(k.s, m->ids, brief(m));
    k.mark = session_checkpoint(k.s);
    double first = saved_bytes(&k, brief(m));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct timing t = bench_measure(m->k, rows[i].fn, &k);
        bench_row(
            m->k, "session", rows[i].name, t,
            (struct rate){.bytes = rows[i].fn == run_rewind || rows[i].fn == run_checkpoint ? 0 : first});
    }
    int64_t longer = m->trial ? 3 * TRIAL : LONG;
    double each = (saved_bytes(&k, longer) - first) / (double)(longer - brief(m));
    bench_value(m->k, "session", "state, whatever the length", (first - (double)brief(m) * each) / 1024,
                "KiB");
    bench_value(m->k, "session", "memory per token", each, "bytes");
    bench_value(m->k, "session", "largest difference of logits after a rewind", rewind_error(m), "logit");
    unlink(k.path);
    checkpoint_free(k.mark);
    session_free(k.s);
    free(k.path);
}
