/* model.c - sections vision, prefill and decode, see bench.h.
 *
 * Vision and prefill are bounded by arithmetic.  Decoding is bounded by memory, since every weight and the
 * whole state are read for each token; a model that fits in the caches exceeds that limit.
 *
 * Appended tokens stay pending, so that whatever is timed ends with logits.
 */
#include "bench/subject.h"

#include "model/preprocess.h"
#include "session/drift.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 512, DECODED = 16 };

/* ---- vision ------------------------------------------------------------------------------------------- */

struct screen_run {
    struct subject *m;
    void (*change)(struct subject *m); /* changes the screen before each run; may be NULL */
    struct tile_grid grid;
    float *patches;
};

static void run_preprocess(void *arg)
{
    struct screen_run *l = arg;
    preprocess_image(l->m->c, &l->m->screen, &l->grid, false, l->m->k->pool, l->patches);
}

static void run_screen(void *arg)
{
    struct screen_run *l = arg;
    struct subject *m = l->m;
    struct err e = ERR_INIT;
    if (l->change)
        l->change(m);
    subject_need(session_rewind(m->s, m->start, &e), &e);
    subject_need(session_append_image(m->s, &m->screen, &e), &e);
}

static void vision(struct subject *m)
{
    char name[80];
    struct tile_grid grid = preprocess_grid(m->c, m->screen.w, m->screen.h);
    struct screen_run l = {.m = m, .grid = grid};
    l.patches = xmalloc(preprocess_image_floats(m->c, &grid), sizeof *l.patches);
    snprintf(name, sizeof name, "resize %dx%d to tiles of %d: %d", m->screen.w, m->screen.h, m->c->vit.tile,
             grid.tiles);
    struct rate shots = {.count = 1, .unit = "shots"};
    bench_row(m->k, "vision", name, bench_measure(m->k, run_preprocess, &l), shots);
    free(l.patches);

    bench_row(m->k, "vision", "a screen, no tile changed", bench_measure(m->k, run_screen, &l), shots);
    shots.factor = DT_BF16;
    if (grid.tiles > 1) {
        int changed = 1 + m->c->thumbnail;
        shots.flop = cost_tile_flop(m->c, 0) * changed;
        l.change = subject_new_corner;
        snprintf(name, sizeof name, "a screen, tiles changed: %d of %d", changed, grid.tiles);
        bench_row(m->k, "vision", name, bench_measure(m->k, run_screen, &l), shots);
    }
    shots.flop = cost_tile_flop(m->c, 0) * grid.tiles;
    l.change = subject_new_screen;
    snprintf(name, sizeof name, "a screen, tiles changed: %d of %d", grid.tiles, grid.tiles);
    bench_row(m->k, "vision", name, bench_measure(m->k, run_screen, &l), shots);
}

/* ---- prefill and decode ------------------------------------------------------------------------------- */

struct timed {
    struct subject *m;
    struct checkpoint *from;
};

static void rewind_to_start(const struct timed *t)
{
    struct err e = ERR_INIT;
    subject_need(session_rewind(t->m->s, t->from, &e), &e);
}

static void append(struct subject *m, int64_t at, int64_t n)
{
    struct err e = ERR_INIT;
    subject_need(session_append(m->s, m->ids + at, n, &e), &e);
}

static void run_prefill(void *arg)
{
    const struct timed *t = arg;
    rewind_to_start(t);
    append(t->m, 0, t->m->n);
    session_logits(t->m->s);
}

static void run_decode(void *arg)
{
    const struct timed *t = arg;
    rewind_to_start(t);
    for (int i = 0; i < (t->m->trial ? 1 : DECODED); i++) {
        append(t->m, i, 1);
        session_logits(t->m->s);
    }
}

/* Extends the session to `length` tokens; false when `extra` more do not fit. */
static bool extend_to(struct timed *t, int64_t length, int64_t extra)
{
    struct subject *m = t->m;
    if (length + extra > m->c->lm.max_tokens)
        return false;
    *t = (struct timed){m, m->start};
    rewind_to_start(t);
    while (session_length(m->s) < length) {
        int64_t left = length - session_length(m->s);
        append(m, 0, left < CHUNK ? left : CHUNK);
        session_logits(m->s);
    }
    if (session_length(m->s) > checkpoint_length(m->start))
        t->from = session_checkpoint(m->s);
    return true;
}

static void free_start(struct timed *t)
{
    if (t->from != t->m->start)
        checkpoint_free(t->from);
}

static void prefill(struct subject *m)
{
    static const struct {
        int tokens, past;
    } cases[] = {{64, 0}, {256, 0}, {512, 0}, {1024, 0}, {3328, 0}, {512, 4096}, {3328, 12288}};
    for (size_t i = 0; i < (m->trial ? 1 : sizeof cases / sizeof *cases); i++) {
        struct timed t = {.m = m};
        if (!extend_to(&t, cases[i].past, cases[i].tokens + checkpoint_length(m->start)))
            continue;
        m->n = cases[i].tokens;
        char name[80];
        if (cases[i].past)
            snprintf(name, sizeof name, "%d tokens after %d", cases[i].tokens, cases[i].past);
        else
            snprintf(name, sizeof name, "%d tokens", cases[i].tokens);
        bench_row(m->k, "prefill", name, bench_measure(m->k, run_prefill, &t),
                  (struct rate){.flop = cost_text_flop(m->c, m->n, cases[i].past),
                                .count = cases[i].tokens,
                                .unit = "tok",
                                .factor = DT_BF16});
        free_start(&t);
    }
}

static void decode(struct subject *m)
{
    static const int contexts[] = {512, 4096, 12288};
    for (size_t i = 0; i < (m->trial ? 1 : sizeof contexts / sizeof *contexts); i++) {
        struct timed t = {.m = m};
        int past = m->trial ? 64 : contexts[i];
        if (!extend_to(&t, past, DECODED))
            continue;
        char name[80];
        struct timing ms = bench_measure(m->k, run_decode, &t);
        ms.median /= m->trial ? 1 : DECODED;
        ms.min /= m->trial ? 1 : DECODED;
        snprintf(name, sizeof name, "one token after %d", past);
        bench_row(
            m->k, "decode", name, ms,
            (struct rate){
                .bytes =
                    cost_weight_bytes(m->c, engine_vocab(m->g), 1, engine_bytes_per_weight(m->g)) +
                    cost_session_bytes(
                        m->c, state_types(false, engine_state_storage(m->g), engine_kv_storage(m->g)), past),
                .count = 1,
                .unit = "tok"});
        free_start(&t);
    }
}

/* ---- sections ---------------------------------------------------------------------------------------- */

static int check_vision(const struct subject *m, const char *section, struct err *e)
{
    if (m->c->vision || strcmp(m->k->section, section) != 0)
        return 0;
    return err_set(e, ERR_USAGE, "section '%s' needs a model with a vision tower; '%s' has none", section,
                   m->dir);
}

/* What engine_open measured for fp16 states. */
static void print_drift(const struct subject *m)
{
    const struct drift *d = engine_drift(m->g);
    if (d->steps == 0)
        return;
    bench_value(m->k, "drift", "--state fp16 at the start: mean KL from fp32", d->sum / d->steps, "nat");
    bench_value(m->k, "drift", "--state fp16 at the start: same likeliest token", 100.0 * d->same / d->steps,
                "%");
}

int bench_model(const struct bench *k, struct err *e)
{
    struct subject m;
    int rc = subject_open(&m, k, e);
    if (rc == 0)
        rc = check_vision(&m, "vision", e) || check_vision(&m, "step", e) ? -1 : 0;
    if (rc == 0) {
        print_drift(&m);
        if (bench_has_section(k, "vision") && m.c->vision)
            vision(&m);
        if (bench_has_section(k, "prefill"))
            prefill(&m);
        if (bench_has_section(k, "decode"))
            decode(&m);
        if (bench_has_section(k, "concurrency"))
            bench_concurrency(&m);
        if (!strncmp(k->section, "peers", strlen("peers")))
            bench_peers(&m);
        if (!strcmp(k->section, "fleet"))
            bench_fleet(&m);
        if (!strcmp(k->section, "threads"))
            bench_threads(&m);
        if (bench_has_section(k, "session"))
            bench_sessions(&m);
        if (bench_has_section(k, "step") && m.c->vision)
            bench_step(&m);
        if (bench_has_section(k, "drift"))
            bench_drift(&m);
    }
    subject_close(&m);
    return rc;
}
