/* model.c - sections vision, prefill and decode, see bench.h.
 *
 * Vision and prefill are bounded by arithmetic.  Decoding is bounded by memory, because every weight and the
 * whole state are read for each token; a model that fits in the caches exceeds that limit.
 *
 * Appended tokens stay pending, so that each timed operation ends with logits. */
#include "bench/subject.h"

#include "model/preprocess.h"
#include "session/drift.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DECODED = 16 };

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
    if (l->change)
        l->change(m);
    subject_append_screen(m);
}

static void vision(struct subject *m)
{
    struct tile_grid grid = preprocess_grid(m->c, m->screen.w, m->screen.h);
    struct screen_run l = {.m = m, .grid = grid};
    l.patches = xmalloc(preprocess_image_floats(m->c, &grid), sizeof *l.patches);
    const char *name =
        bench_name("resize %dx%d to tiles of %d: %d", m->screen.w, m->screen.h, m->c->vit.tile, grid.tiles);
    struct rate shots = {.count = 1, .unit = "shots"};
    bench_row(m->k, "vision", name, bench_measure(m->k, run_preprocess, &l), shots);
    free(l.patches);

    bench_row(m->k, "vision", "a screen, no tile changed", bench_measure(m->k, run_screen, &l), shots);
    shots.factor = DT_BF16;
    if (grid.tiles > 1) {
        int changed = 1 + m->c->thumbnail;
        shots.flop = cost_tile_flop(m->c, 0) * changed;
        l.change = subject_new_corner;
        name = bench_name("a screen, tiles changed: %d of %d", changed, grid.tiles);
        bench_row(m->k, "vision", name, bench_measure(m->k, run_screen, &l), shots);
    }
    shots.flop = cost_tile_flop(m->c, 0) * grid.tiles;
    l.change = subject_new_screen;
    name = bench_name("a screen, tiles changed: %d of %d", grid.tiles, grid.tiles);
    bench_row(m->k, "vision", name, bench_measure(m->k, run_screen, &l), shots);
}

/* ---- prefill and decode ------------------------------------------------------------------------------- */

static void run_decode(void *arg)
{
    struct subject *m = arg;
    subject_rewind(m);
    for (int i = 0; i < (m->trial ? 1 : DECODED); i++) {
        subject_append(m->s, m->ids + i, 1);
        subject_sample(m, &m->s, 1);
    }
}

/* Extends the session to `length` tokens, from the checkpoint at which runs start.  Returns false if `extra`
 * more tokens do not fit. */
static bool extend_to(struct subject *m, int64_t length, int64_t extra)
{
    if (length + extra > m->c->lm.max_tokens)
        return false;
    subject_rewind(m);
    subject_extend(m, m->s, length);
    if (session_length(m->s) > checkpoint_length(m->start))
        m->from = session_checkpoint(m->s);
    return true;
}

static void back_to_start(struct subject *m)
{
    if (m->from != m->start)
        checkpoint_free(m->from);
    m->from = m->start;
}

static void prefill(struct subject *m)
{
    static const struct {
        int tokens, past;
    } cases[] = {{64, 0}, {256, 0}, {512, 0}, {1024, 0}, {3328, 0}, {512, 4096}, {3328, 12288}};
    for (size_t i = 0; i < (m->trial ? 1 : sizeof cases / sizeof *cases); i++) {
        if (!extend_to(m, cases[i].past, cases[i].tokens + checkpoint_length(m->start)))
            continue;
        m->n = cases[i].tokens;
        const char *name = cases[i].past ? bench_name("%d tokens after %d", cases[i].tokens, cases[i].past)
                                         : bench_name("%d tokens", cases[i].tokens);
        bench_row(m->k, "prefill", name, bench_measure(m->k, subject_run_prefill, m),
                  (struct rate){.flop = cost_text_flop(m->c, m->n, cases[i].past),
                                .count = cases[i].tokens,
                                .unit = "tok",
                                .factor = DT_BF16});
        back_to_start(m);
    }
}

static void decode(struct subject *m)
{
    static const int contexts[] = {512, 4096, 12288};
    for (size_t i = 0; i < (m->trial ? 1 : sizeof contexts / sizeof *contexts); i++) {
        int past = m->trial ? 64 : contexts[i];
        if (!extend_to(m, past, DECODED))
            continue;
        struct timing ms = bench_measure(m->k, run_decode, m);
        ms.median /= m->trial ? 1 : DECODED;
        ms.min /= m->trial ? 1 : DECODED;
        bench_row(m->k, "decode", bench_name("one token after %d", past), ms,
                  (struct rate){.bytes = subject_decode_bytes(m, 1, past), .count = 1, .unit = "tok"});
        back_to_start(m);
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

/* Prints the drift that engine_open() measured for fp16 states. */
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
    static const struct {
        const char *name;
        void (*fn)(struct subject *m);
        bool in_all, vision;
    } sections[] = {{"vision", vision, true, true},           {"prefill", prefill, true, false},
                    {"decode", decode, true, false},          {"concurrency", bench_concurrency, true, false},
                    {"peers", bench_peers, false, false}, /* and its parts */
                    {"fleet", bench_fleet, false, false},     {"threads", bench_threads, false, false},
                    {"session", bench_sessions, true, false}, {"step", bench_step, true, true},
                    {"drift", bench_drift, true, false}};
    struct subject m;
    int rc = subject_open(&m, k, e);
    if (rc == 0)
        rc = check_vision(&m, "vision", e) || check_vision(&m, "step", e) ? -1 : 0;
    if (rc == 0)
        print_drift(&m);
    for (size_t i = 0; rc == 0 && i < sizeof sections / sizeof *sections; i++) {
        bool named = !strncmp(k->section, sections[i].name, strlen(sections[i].name));
        if ((named || (sections[i].in_all && !strcmp(k->section, "all"))) &&
            (m.c->vision || !sections[i].vision))
            sections[i].fn(&m);
    }
    subject_close(&m);
    return rc;
}
