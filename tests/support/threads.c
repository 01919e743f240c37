/* threads.c - see threads.h. */
#include "threads.h"

#include "check.h"

#include "base/clock.h"
#include "session/generate.h"
#include "session/session_impl.h"

#include <pthread.h>
#include <sched.h>
#include <xxhash.h>

struct engine *threads_engine(const struct tiny *t, const char *device, size_t bound, bool shared,
                              int threads)
{
    struct err e = ERR_INIT;
    struct engine_options o = {
        .dir = t->dir, .device = device, .threads = threads, .state_memory = bound, .shared = shared};
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    return g;
}

/* ---- script ---------------------------------------------------------------------------------- */

struct play {
    const struct threads *c;
    struct engine *engine;
    struct session *s;
    struct grammar *grammar;
    bool hurried; /* other threads run, too: sometimes yields to them */
    uint64_t rng, pace;
    struct played *out;
};

static int rng(struct play *p, int n)
{
    return (int)(check_random(&p->rng) * n);
}

static void failed(struct play *p)
{
    if (!p->out->err.kind)
        err_set(&p->out->err, ERR_FAILED, "a step went wrong");
}

static void give_way(struct play *p)
{
    if (p->hurried)
        clock_sleep_ms(check_random(&p->pace) * 0.3);
}

static int prompt(struct play *p)
{
    int n = 1 + (rng(p, 3) ? rng(p, 20) : rng(p, p->c->longest));
    for (int i = 0; i < n; i++) {
        int32_t id = 16 + rng(p, 256);
        if (session_append(p->s, &id, 1, &p->out->err))
            return -1;
    }
    return 0;
}

/* Appends one of a few images, so that some are already cached. */
static int picture(struct play *p)
{
    struct image im = tiny_image(40 + 10 * rng(p, 12), 40 + 10 * rng(p, 8), (uint64_t)rng(p, 6));
    int rc = session_append_image(p->s, &im, &p->out->err);
    image_free(&im);
    return rc;
}

static int reply(struct play *p)
{
    struct generation how = {.sampling = {.max_tokens = 1 + rng(p, 9), .top_p = 1}};
    switch (rng(p, 3)) {
    case 0:
        how.grammar = p->grammar;
        break;
    case 1:
        how.sampling.temperature = 0.9f;
        how.sampling.top_p = 0.95f;
        break;
    default:
        break;
    }
    struct generated g;
    int rc = generate(p->s, &how, &g, &p->out->err);
    for (int i = 0; rc == 0 && i < g.n && p->out->n < THREADS_TOKENS; i++)
        p->out->tokens[p->out->n++] = g.choices[i].id;
    p->out->hash = p->out->hash * 31 + g.logits_hash;
    generated_free(&g);
    return rc;
}

/* Generates a reply in a fork and discards it. */
static int aside(struct play *p)
{
    struct session *main = p->s, *copy = session_try_fork(main, &p->out->err);
    if (!copy)
        return -1;
    p->s = copy;
    int rc = reply(p);
    p->s = main;
    session_free(copy);
    return rc;
}

/* Appends a text with a common beginning and one of three continuations, through the prefix cache. */
static int system_text(struct play *p)
{
    int way = rng(p, 3);
    for (int i = 0; i < 70; i++) {
        int32_t id = 16 + (i < 40 ? i * 7 : way * 50 + i) % 256;
        if (session_append(p->s, &id, 1, &p->out->err))
            return -1;
    }
    return session_reuse_prefix(p->s, &p->out->err);
}

static int one_round(struct play *p)
{
    struct err *e = &p->out->err;
    if (prompt(p) || (rng(p, 3) == 0 && picture(p)) || (rng(p, 4) == 0 && prompt(p)))
        return -1;
    give_way(p);
    struct checkpoint *mark = session_try_checkpoint(p->s, e);
    int rc = mark ? reply(p) : -1;
    for (int again = rng(p, 3); again > 0 && rc == 0; again--) {
        give_way(p);
        rc = session_rewind(p->s, mark, e) || prompt(p) || reply(p) ? -1 : 0;
    }
    if (rc == 0 && rng(p, 3) == 0)
        rc = aside(p);
    checkpoint_free(mark);
    return rc;
}

static struct grammar *grammar_of(struct engine *g)
{
    struct gx *x = gx_new();
    gx_node root = GX_SEQ(x, gx_lit(x, "{\"x\":"), gx_int(x, 0, 999), gx_lit(x, ",\"s\":"),
                          gx_json_string(x, 1, 8), gx_lit(x, "}"));
    struct grammar *made = grammar_compile(x, root, engine_tokenizer(g), NULL);
    gx_free(x);
    return made;
}

static void play(const struct threads *c, struct engine *g, int i, bool hurried, struct played *out)
{
    struct play p = {.c = c, .engine = g, .hurried = hurried, .out = out, .grammar = grammar_of(g)};
    p.rng = c->seed * 7919 + (uint64_t)i * 104729 + 1;
    p.pace = c->seed + (uint64_t)i + 1;
    p.s = session_new(g, p.rng);
    *out = (struct played){.n = 0};
    int rc = system_text(&p);
    for (int round = 0; round < c->rounds && rc == 0; round++)
        rc = one_round(&p);
    if (rc)
        failed(&p);
    session_free(p.s);
    grammar_free(p.grammar);
}

/* ---- threads --------------------------------------------------------------------------------- */

void threads_alone(const struct threads *c, struct engine *g, int i, struct played *out)
{
    play(c, g, i, false, out);
    if (out->err.kind)
        fail_msg("script %d alone: %s", i, out->err.text);
}

struct one {
    const struct threads *c;
    struct engine *engine;
    int i;
    struct played out;
};

static void *run_one(void *arg)
{
    struct one *o = arg;
    play(o->c, o->engine, o->i, true, &o->out);
    return NULL;
}

static void compare(const struct threads *c, const struct one *o, const struct played *alone)
{
    if (o->out.err.kind)
        fail_msg("script %d: %s", o->i, o->out.err.text);
    assert_int_equal(o->out.n, alone->n);
    for (int k = 0; k < alone->n; k++)
        if (o->out.tokens[k] != alone->tokens[k])
            fail_msg("script %d writes %d at %d, alone %d", o->i, o->out.tokens[k], k, alone->tokens[k]);
    if (!c->loose && o->out.hash != alone->hash)
        fail_msg("script %d: other logits than alone", o->i);
}

void threads_play(const struct threads *c, struct engine *g, int n, const struct played *alone)
{
    pthread_t ids[THREADS_MOST];
    struct one *all = xcalloc((unsigned long)n, sizeof *all);
    engine_enter(g, NULL); /* until all are waiting */
    int waiting = engine_scheduler_stats(g).waiting;
    for (int i = 0; i < n; i++) {
        all[i] = (struct one){.c = c, .engine = g, .i = i};
        assert_int_equal(pthread_create(&ids[i], NULL, run_one, &all[i]), 0);
    }
    while (engine_scheduler_stats(g).waiting < waiting + n)
        sched_yield();
    engine_leave(g);
    for (int i = 0; i < n; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < n; i++)
        compare(c, &all[i], &alone[i]);
    free(all);
}

void threads_wait(const struct scheduler *t, int n)
{
    while (scheduler_stats((struct scheduler *)(uintptr_t)t).waiting < n)
        sched_yield();
}
