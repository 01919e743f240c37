/* concurrency.c - sections concurrency and peers: see bench.h.
 *
 * Sessions are forks of one.  A decode step appends a token to each and asks for all logits: the weights
 * are read once, all states are read and written.  The text grows by at most GROWN tokens while it is
 * measured.
 */
#include "bench/subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 16, GROWN = 512, MOST = 128 };

/* ---- concurrency ---------------------------------------------------------------------------------- */

struct batch_run {
    struct subject *m;
    struct session *s[MOST];
    int n, after; /* sessions, and their tokens at the start */
    int steps;    /* decode steps of one run */
};

static void drop(struct batch_run *k)
{
    for (int i = 0; i < k->n; i++) {
        session_free(k->s[i]);
        k->s[i] = NULL;
    }
}

static void append(struct session *s, const int32_t *ids, int64_t n)
{
    struct err e = ERR_INIT;
    subject_need(session_append(s, ids, n, &e), &e);
}

static void make(struct batch_run *k)
{
    k->s[0] = session_new(k->m->g, 1);
    for (int left = k->after; left > 0; left -= SUBJECT_IDS) {
        append(k->s[0], k->m->ids, left < SUBJECT_IDS ? left : SUBJECT_IDS);
        session_logits(k->s[0]);
    }
    for (int i = 1; i < k->n; i++)
        k->s[i] = session_fork(k->s[0]);
}

static void run_decode_steps(void *arg)
{
    struct batch_run *k = arg;
    if (session_length(k->s[0]) + k->steps > k->after + GROWN) {
        drop(k);
        make(k);
    }
    for (int step = 0; step < k->steps; step++) {
        for (int i = 0; i < k->n; i++)
            append(k->s[i], k->m->ids + step + i, 1);
        session_decode_batch(k->s, k->n);
    }
}

/* At most half of what is free on the host: the rest is for other programs. */
bool bench_fits(const struct subject *m, int n, int64_t tokens)
{
    double room = bench_memory_free(m->k) * (bench_on_gpu(m->k) ? 0.95 : 0.5);
    return n == 1 || room == 0 ||
           cost_session_bytes(m->c, state_types(false, engine_state_storage(m->g), engine_kv_storage(m->g)),
                              tokens) *
                   n <
               room;
}

void bench_decode(struct subject *m, const char *section, int n, int after)
{
    struct batch_run k = {.m = m, .n = n, .after = after, .steps = m->trial ? 2 : STEPS};
    char name[80];
    snprintf(name, sizeof name, "%d session%s after %d, one token each", n, n > 1 ? "s" : "", after);
    if (m->c->lm.max_tokens < after + GROWN || !bench_fits(m, n, after + GROWN)) {
        bench_skip(m->k, section, name);
        return;
    }
    make(&k);
    struct timing t = bench_measure(m->k, run_decode_steps, &k);
    drop(&k);
    t.median /= k.steps;
    t.min /= k.steps;
    bench_row(
        m->k, section, name, t,
        (struct rate){
            .flop =
                n > 1 ? n * (cost_text_flop(m->c, 1, after) + cost_head_flop(m->c, engine_vocab(m->g))) : 0,
            .bytes =
                cost_weight_bytes(m->c, engine_vocab(m->g), n, engine_bytes_per_weight(m->g)) +
                n * cost_session_bytes(
                        m->c, state_types(false, engine_state_storage(m->g), engine_kv_storage(m->g)), after),
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

static void run_prefill(void *arg)
{
    struct subject *m = arg;
    struct err e = ERR_INIT;
    subject_need(session_rewind(m->s, m->start, &e), &e);
    append(m->s, m->ids, m->n);
    session_logits(m->s);
}

static void run_tile(void *arg)
{
    struct subject *m = arg;
    struct err e = ERR_INIT;
    subject_new_corner(m);
    subject_need(session_rewind(m->s, m->start, &e), &e);
    subject_need(session_append_image(m->s, &m->screen, &e), &e);
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
        char name[80];
        m->n = tokens[i];
        snprintf(name, sizeof name, "prompt of %d tokens", tokens[i]);
        bench_row(m->k, "peers", name, bench_measure(m->k, run_prefill, m),
                  (struct rate){.flop = cost_text_flop(m->c, m->n, 0),
                                .count = (double)m->n,
                                .unit = "tok",
                                .factor = DT_BF16});
    }
}

/* Its parts are sections, too, so that runs of several programs can be interleaved. */
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
