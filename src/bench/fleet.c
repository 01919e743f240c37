/* fleet.c - one machine with one session and with a hundred: see bench.h.
 *
 * In the order of an agent's step: encoding and prefilling a screenshot, decoding after a long context, whole
 * steps, and the memory of a session.  Contexts are as long as the model allows, at most CONTEXT; rows that
 * do not fit in memory are reported and skipped.
 *
 * Time does not depend on the tokens of a reply: after each step a token is sampled for every session, as for
 * a real reply, and a given token is appended.  For a grammar's forced tokens only the number matters: they
 * are computed together with the token before them. */
#include "bench/subject.h"

#include "model/preprocess.h"

#include <stdio.h>
#include <stdlib.h>

enum { CONTEXT = 12288, HISTORY = 2048, REPLY = 100, MANY = 100, COPIES = 4 };
enum { GROUP = 20, FORCED = 7 };   /* 7 of 20 tokens of a reply are forced, similar to JSON */
enum { WIDE = 2048, HIGH = 1536 }; /* 4 x 3 tiles of 512, and the thumbnail */

static int64_t at_most(const struct subject *m, int64_t tokens)
{
    int64_t room = m->trial ? 64 : m->c->lm.max_tokens / 4;
    return tokens < room ? tokens : room;
}

/* ---- a screenshot -------------------------------------------------------------------------------------- */

static void append_new_screen(void *arg)
{
    struct subject *m = arg;
    subject_new_screen(m);
    subject_append_screen(m);
}

static void run_both(void *arg)
{
    struct subject *m = arg;
    append_new_screen(m);
    subject_sample(m, &m->s, 1);
}

static void screenshot(struct subject *m)
{
    struct err e = ERR_INIT;
    subject_need(subject_screen(m, m->trial ? 0 : WIDE, HIGH, &e), &e);
    int tiles = preprocess_grid(m->c, m->screen.w, m->screen.h).tiles;
    append_new_screen(m);
    m->n = session_length(m->s) - checkpoint_length(m->start);
    double tower = cost_tile_flop(m->c, 0) * tiles,
           text = cost_text_flop(m->c, m->n, checkpoint_length(m->start));
    const struct {
        const char *what;
        void (*fn)(void *);
        struct rate rate;
    } rows[] = {
        {"resize, tower, projector",
         append_new_screen,
         {.flop = tower, .count = tiles, .unit = "tiles", .factor = DT_BF16}},
        {"its tokens read",
         subject_run_prefill,
         {.flop = text, .count = (double)m->n, .unit = "tok", .factor = DT_BF16}},
        {"all of it", run_both, {.flop = tower + text, .count = 1, .unit = "shots", .factor = DT_BF16}},
    };
    if (m->n + checkpoint_length(m->start) > m->c->lm.max_tokens)
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *name =
            bench_name("screen, %d tiles, %lld tokens: %s", tiles, (long long)m->n, rows[i].what);
        if (bench_wants(m->k, name))
            bench_row(m->k, "fleet", name, bench_measure(m->k, rows[i].fn, m), rows[i].rate);
    }
    subject_need(subject_screen(m, 0, 0, &e), &e);
}

/* ---- steps of agents ------------------------------------------------------------------------- */

struct fleet {
    struct subject *m;
    struct session *s[MANY];
    struct checkpoint *from[MANY];
    int n;
    bool forced; /* some tokens of a reply are forced */
};

static int reply_of(const struct subject *m)
{
    return m->trial ? GROUP : REPLY;
}

static void reply(const struct fleet *f)
{
    const int32_t *ids = f->m->ids;
    for (int i = 0; i < reply_of(f->m);) {
        int n = f->forced && i % GROUP == GROUP - FORCED - 1 ? FORCED + 1 : 1;
        for (int k = 0; k < f->n; k++)
            subject_append(f->s[k], ids + i + k, n);
        subject_sample(f->m, f->s, f->n);
        i += n;
    }
}

static void run_step(void *arg)
{
    const struct fleet *f = arg;
    struct err e = ERR_INIT;
    for (int i = 0; i < f->n; i++) {
        subject_need(session_rewind(f->s[i], f->from[i], &e), &e);
        subject_new_screen(f->m);
        subject_need(session_append_image(f->s[i], &f->m->screen, &e), &e);
        subject_need(session_prefill(f->s[i], &e), &e);
    }
    subject_sample(f->m, f->s, f->n);
    reply(f);
}

static void agents(struct subject *m, int n, bool forced)
{
    struct fleet f = {.m = m, .n = n, .forced = forced};
    int64_t history = at_most(m, HISTORY),
            seen = engine_image_tokens(m->g, m->screen.w, m->screen.h, NULL, NULL) + 2;
    int tokens = reply_of(m);
    char given[32] = "";
    if (forced)
        snprintf(given, sizeof given, ", %d forced", tokens / GROUP * FORCED);
    const char *name = bench_name("%d session%s: %dx%d screen, reply of %d%s", n, n > 1 ? "s" : "",
                                  m->screen.w, m->screen.h, tokens, given);
    if (!bench_wants(m->k, name))
        return;
    if (history + seen + tokens > m->c->lm.max_tokens || !subject_fits(m, n, history + seen + tokens, n)) {
        bench_skip(m->k, "fleet", name);
        return;
    }
    subject_fork(m, f.s, n, history);
    for (int i = 0; i < n; i++)
        f.from[i] = session_checkpoint(f.s[i]);
    int tiles = preprocess_grid(m->c, m->screen.w, m->screen.h).tiles;
    double flop = cost_tile_flop(m->c, 0) * tiles + cost_text_flop(m->c, seen + tokens, history) +
                  tokens * cost_head_flop(m->c, engine_vocab(m->g));
    bench_row(m->k, "fleet", name, bench_measure(m->k, run_step, &f),
              (struct rate){.flop = n * flop, .count = n, .unit = "steps", .factor = DT_BF16});
    for (int i = 0; i < n; i++)
        checkpoint_free(f.from[i]);
    subject_free_forks(f.s, n);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Returns the bytes of one further session of `length` tokens, averaged over COPIES sessions. */
static double session_bytes(const struct subject *m, int64_t length)
{
    struct session *s[COPIES + 1] = {session_new(m->g, 1)};
    subject_extend(m, s[0], length);
    double before = subject_memory_used(m);
    for (int i = 1; i <= COPIES; i++)
        session_logits(s[i] = session_fork(s[0]));
    double after = subject_memory_used(m);
    for (int i = 0; i <= COPIES; i++)
        session_free(s[i]);
    return (after - before) / COPIES;
}

static void memory(const struct subject *m)
{
    if (!bench_wants(m->k, "memory of a session"))
        return;
    int64_t brief = at_most(m, 512) / 2, longer = m->trial ? 256 : at_most(m, CONTEXT);
    if (!subject_fits(m, COPIES + 1, longer, 0)) {
        bench_skip(m->k, "fleet", "memory of a session");
        return;
    }
    double first = session_bytes(m, brief),
           each = (session_bytes(m, longer) - first) / (double)(longer - brief);
    bench_value(m->k, "fleet", "memory of a session, whatever its length",
                (first - (double)brief * each) / (1 << 20), "MiB");
    bench_value(m->k, "fleet", "memory per token", each / 1024, "KiB");
}

void bench_fleet(struct subject *m)
{
    const int sessions[] = {1, m->trial ? 2 : 16, m->trial ? 3 : MANY}, many = sessions[2];
    if (m->c->vision)
        screenshot(m);
    for (int i = 0; i < 3; i++)
        bench_decode(m, "fleet", sessions[i], (int)at_most(m, CONTEXT));
    if (m->c->vision) {
        struct err e = ERR_INIT;
        if (m->trial)
            subject_need(subject_screen(m, m->c->vit.tile, m->c->vit.tile, &e), &e);
        agents(m, 1, false);
        agents(m, 1, true);
        agents(m, many, false);
    }
    memory(m);
}
