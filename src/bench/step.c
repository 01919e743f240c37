/* step.c - a step of the agent by its parts: see bench.h.
 *
 * The conversation is the agent's (agent/context.h): a new screenshot is added, an old one becomes a
 * placeholder, the model replies within the grammar, the reply is kept.  Settling, capture and actions need a
 * display; their times are in the record of every run.
 *
 * The session measures the time of its parts; the rest of observing and of replying has its own rows, so that
 * the parts add up to the step. */
#include "bench/subject.h"

#include "agent/context.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "llm/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 12, REPLY = 32 }; /* number of measured steps; maximum tokens of a reply */

enum part { PREPROCESS, VISION, PREFILL, REWIND, REPLYING, GRAMMAR, WHOLE, PARTS };

struct step_times {
    double ms[PARTS][STEPS];
    int64_t prefilled, reused, total; /* tokens of the last step */
    int reply, forced;
    int64_t tiles;
    int n;
};

/* Runs one step.  t NULL: the step is not counted.  Returns -1 with e. */
static int run_step(struct subject *m, struct context *c, struct llm *llm, const char *lead,
                    struct step_times *t, struct err *e)
{
    struct context_cost cost;
    struct generated g = {0};
    struct llm_request r = {.goal = GOAL_STEP, .sampling = {0, 1, REPLY}};
    subject_new_screen(m);
    struct session_stats s0 = llm->ops->stats(llm);
    int64_t start = clock_ns();
    if (context_observe(c, lead, &m->screen, &cost, e))
        return -1;
    double observed = clock_ms_since(start);
    struct session_stats s1 = llm->ops->stats(llm);
    int rc = context_think(c, &r, &g, e);
    if (rc == 0)
        rc = context_accept(c, g.text.data ? g.text.data : "", true, e);
    double whole = clock_ms_since(start);
    struct session_stats s2 = llm->ops->stats(llm);
    if (rc == 0 && t) {
        double part[PARTS] = {[PREPROCESS] = s1.preprocess_ms - s0.preprocess_ms,
                              [VISION] = s1.vision_ms - s0.vision_ms,
                              [PREFILL] = s1.prefill_ms - s0.prefill_ms,
                              [REPLYING] = s2.decode_ms - s1.decode_ms + s2.prefill_ms - s1.prefill_ms,
                              [WHOLE] = whole};
        part[REWIND] = observed - part[PREPROCESS] - part[VISION] - part[PREFILL];
        part[GRAMMAR] = whole - observed - part[REPLYING];
        for (int i = 0; i < PARTS; i++)
            t->ms[i][t->n] = part[i];
        t->n++;
        t->prefilled = cost.prefilled;
        t->reused = cost.reused;
        t->total = cost.total;
        t->reply = g.n;
        t->forced = g.forced;
        t->tiles = s1.tiles_computed - s0.tiles_computed;
    }
    generated_free(&g);
    return rc;
}

static void print(const struct subject *m, struct step_times *t)
{
    char reply[64], prefill[64], tiles[64];
    snprintf(tiles, sizeof tiles, "vision tower, %lld tiles", (long long)t->tiles);
    snprintf(prefill, sizeof prefill, "prefill, %lld tokens (%lld kept)", (long long)t->prefilled,
             (long long)t->reused);
    snprintf(reply, sizeof reply, "reply, %d tokens (%d forced)", t->reply, t->forced);
    double tower = cost_tile_flop(m->c, 0) * (double)t->tiles;
    double text = cost_text_flop(m->c, t->prefilled, t->reused);
    double bytes = subject_decode_bytes(m, 1, t->total);
    const struct {
        const char *name;
        struct rate rate;
    } rows[PARTS] = {
        [PREPROCESS] = {"preprocess: resize and cut", {0}},
        [VISION] = {tiles, {.flop = tower, .factor = DT_BF16}},
        [PREFILL] = {prefill,
                     {.flop = text, .count = (double)t->prefilled, .unit = "tok", .factor = DT_BF16}},
        [REWIND] = {"rewind, checkpoints, text", {0}},
        [REPLYING] = {reply, {.bytes = bytes * (t->reply - t->forced), .count = t->reply, .unit = "tok"}},
        [GRAMMAR] = {"grammar, sampling", {0}},
        [WHOLE] = {"one step without the display", {.count = 1, .unit = "steps"}},
    };
    for (int i = 0; i < PARTS; i++)
        bench_row(m->k, "step", rows[i].name, bench_timing(t->ms[i], t->n), rows[i].rate);
}

/* Cuts the system prompt to 41 % of its characters.  Words of a synthetic vocabulary have two letters; after
 * the cut the prompt has about as many tokens as with a trained vocabulary: 17,921 characters are 4,966
 * tokens of Qwen's published vocabulary, and 12,000 of this one. */
static void cut_synthetic(char *system)
{
    system[utf8_valid_prefix(system, (size_t)(0.41 * (double)strlen(system)))] = 0;
}

void bench_step(struct subject *m)
{
    static const char task[] = "Book the 9:40 flight from Paris to Lima for Ada Lovelace";
    struct err e = ERR_INIT;
    const struct dialect *d = m->dialect;
    struct step_times t = {.n = 0};
    struct prompt_vars w = {task, 100, m->screen.w, m->screen.h, 600};
    autofree char *system = prompt_system(d, &w, &e), *lead = prompt_task(d, task);
    if (system && m->synthetic)
        cut_synthetic(system);
    struct llm *llm = llm_local(m->g, d, 1);
    struct context *c = system ? context_new(llm, d, d->window, d->max_images, 0, system, &e) : NULL;
    int rc = c ? run_step(m, c, llm, lead, NULL, &e) : -1; /* the first step compiles the grammar */
    int steps = m->k->repeat < STEPS ? m->k->repeat : STEPS;
    while (rc == 0 && t.n < steps)
        rc = run_step(m, c, llm, "", &t, &e);
    subject_need(rc, &e);
    print(m, &t);
    context_free(c);
    llm_free(llm);
}
