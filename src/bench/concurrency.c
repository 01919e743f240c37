/* concurrency.c - sections concurrency and peers: see bench.h.
 *
 * Sessions are forks of one session.  A decode step appends a token to each and samples the next ones (on a
 * device without sampling: computes all logits): the weights are read once, all states are read and written.
 * The text grows by at most GROWN tokens during the measurement. */
#include "bench/subject.h"

#include <string.h>

enum { STEPS = 16, GROWN = 512, MOST = SUBJECT_MOST };

/* ---- concurrency ---------------------------------------------------------------------------------- */

struct batch_run {
    struct subject *m;
    struct session *s[MOST];
    int n, after; /* number of sessions, and their tokens at the start */
    int steps;    /* decode steps per run */
};

static void run_decode_steps(void *arg)
{
    struct batch_run *k = arg;
    if (session_length(k->s[0]) + k->steps > k->after + GROWN) {
        subject_free_forks(k->s, k->n);
        subject_fork(k->m, k->s, k->n, k->after);
    }
    for (int step = 0; step < k->steps; step++) {
        for (int i = 0; i < k->n; i++)
            subject_append(k->s[i], k->m->ids + step + i, 1);
        subject_sample(k->m, k->s, k->n);
    }
}

void bench_decode(struct subject *m, const char *section, int n, int after)
{
    struct batch_run k = {.m = m, .n = n, .after = after, .steps = m->trial ? 2 : STEPS};
    const char *name = bench_name("%d session%s after %d, one token each", n, n > 1 ? "s" : "", after);
    if (!bench_wants(m->k, name))
        return;
    if (m->c->lm.max_tokens < after + GROWN || !subject_fits(m, n, after + GROWN, 0)) {
        bench_skip(m->k, section, name);
        return;
    }
    subject_fork(m, k.s, n, after);
    struct timing t = bench_measure(m->k, run_decode_steps, &k);
    subject_free_forks(k.s, n);
    t.median /= k.steps;
    t.min /= k.steps;
    bench_row(m->k, section, name, t,
              (struct rate){.flop = n > 1 ? n * (cost_text_flop(m->c, 1, after) +
                                                 cost_head_flop(m->c, engine_vocab(m->g)))
                                          : 0,
                            .bytes = subject_decode_bytes(m, n, after),
                            .count = n,
                            .unit = "tok",
                            .factor = DT_BF16});
}

void bench_concurrency(struct subject *m)
{
    static const int sessions[] = {1, 4, 16, 64, MOST};
    for (size_t i = 0; i < (m->trial ? 2 : sizeof sessions / sizeof *sessions); i++)
        bench_decode(m, "concurrency", sessions[i], m->trial ? 64 : 512);
}

/* ---- peers ---------------------------------------------------------------------------------- */

static void run_tile(void *arg)
{
    struct subject *m = arg;
    subject_new_corner(m);
    subject_append_screen(m);
}

static void one_tile(struct subject *m)
{
    struct image screen = m->screen, tile = {0};
    struct err e = ERR_INIT;
    subject_need(image_alloc(&tile, m->c->vit.tile, m->c->vit.tile, &e), &e);
    m->screen = tile;
    struct timing t = bench_measure(m->k, run_tile, m);
    m->screen = screen;
    image_free(&tile);
    bench_row(m->k, "peers", "one tile through tower and projector", t,
              (struct rate){.flop = cost_tile_flop(m->c, 0), .count = 1, .unit = "tiles", .factor = DT_BF16});
}

static void prompts(struct subject *m)
{
    const int tokens[] = {m->trial ? 64 : 512, m->trial ? 128 : 3328};
    for (int i = 0; i < 2; i++) {
        m->n = tokens[i];
        bench_row(m->k, "peers", bench_name("prompt of %d tokens", tokens[i]),
                  bench_measure(m->k, subject_run_prefill, m),
                  (struct rate){.flop = cost_text_flop(m->c, m->n, 0),
                                .count = (double)m->n,
                                .unit = "tok",
                                .factor = DT_BF16});
    }
}

/* Measures the section peers.  Its parts are sections, too, so that runs of several programs can be
 * interleaved. */
void bench_peers(struct subject *m)
{
    static const int sessions[] = {1, 16, 100};
    const int rows = bench_on_gpu(m->k) ? 3 : 2;
    const char *part = strchr(m->k->section, '-');
    if (!part || !strcmp(part, "-prompt"))
        prompts(m);
    for (int i = 0; i < rows && (!part || !strcmp(part, "-decode")); i++)
        bench_decode(m, "peers", m->trial ? i + 1 : sessions[i], 128);
    if ((!part || !strcmp(part, "-tile")) && m->c->vision && !m->c->vit.max_patches)
        one_tile(m);
}
