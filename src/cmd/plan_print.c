/* plan_print.c - prints the results of `holorun plan` as tables; see cmd/plan.h.
 *
 * Verdict, notes and speeds are taken from the JSON object, not computed here. */
#include "cmd/plan.h"

#include <stdio.h>

static double mib(json_int_t bytes)
{
    return (double)bytes / (1 << 20);
}

static void print_parts(const struct planning *g)
{
    size_t i;
    json_t *part;
    printf("\n%-16s %8s %14s %14s %14s\n", "weights, MiB", "tensors", "in the files", "in memory",
           "read in place");
    json_array_foreach(json_object_get(g->root, "parts"), i, part)
    {
        json_int_t tensors, stored, own, mapped;
        const char *name;
        json_unpack(part, "{s:s, s:I, s:I, s:I, s:I}", "name", &name, "tensors", &tensors, "stored", &stored,
                    "own", &own, "mapped", &mapped);
        printf("  %-14s %8lld %14.2f %14.2f %14.2f\n", name, (long long)tensors, mib(stored), mib(own),
               mib(mapped));
    }
    const struct plan_part *all = &g->p.weights;
    printf("  %-14s %8d %14.2f %14.2f %14.2f\n", "together", all->tensors, mib((json_int_t)all->stored),
           mib((json_int_t)all->own), mib((json_int_t)all->mapped));
}

static void print_row(const char *what, size_t bytes, const char *remark)
{
    printf("  %-40s %10.2f%s%s\n", what, mib((json_int_t)bytes), *remark ? "  " : "", remark);
}

static void print_states(const struct planning *g)
{
    const json_t *o = json_object_get(g->root, "state_memory");
    char remark[96];
    snprintf(remark, sizeof remark, "room for %lld session%s of %lld tokens%s",
             json_integer_value(json_object_get(o, "sessions")),
             json_integer_value(json_object_get(o, "sessions")) == 1 ? "" : "s", (long long)g->context,
             g->set->state_memory ? "" : ", if they use all of it");
    print_row("state memory", (size_t)json_integer_value(json_object_get(o, "bound")), remark);
}

static void print_memory(const struct planning *g)
{
    const struct plan *p = &g->p;
    char remark[96];
    printf("\nmemory, MiB\n");
    print_row("weights", p->weights.own, p->weights.mapped ? "copied" : "");
    if (p->weights.mapped) {
        print_row("read in place and kept", p->resident, "not counted below: the system may reclaim it");
        print_row("read in place each time", p->streamed, "");
    }
    const struct plan_chunk *chunk = &p->chunks[p->chunk];
    char rows[64] = "", tiles[64] = "";
    if (chunk->prompt_rows)
        snprintf(rows, sizeof rows, "prompts in chunks of %d tokens", chunk->prompt_rows);
    if (chunk->prompt_rows && g->c.max_tiles > 1)
        snprintf(tiles, sizeof tiles, "images of %d tiles at once", chunk->picture_tiles);
    print_row("working memory of the language model", p->language, rows);
    if (g->c.vision)
        print_row("working memory of the vision encoder", p->vision, tiles);
    if (p->pinned)
        print_row("embeddings, in host memory", p->pinned,
                  "not on the GPU: it reads one row per token over the bus");
    if (p->work)
        print_row("working memory of kernels", p->work, "");
    if (p->picture)
        print_row("a screenshot being processed", p->picture, "");
    if (!g->set->gpu) {
        print_row("tokenizer", p->tokenizer, "");
        print_row("program", p->base, "");
    }
    print_row("session: SSM state", p->ssm, "");
    print_row("session: convolution state", p->conv, "");
    print_row("session: last row and logits", p->session, "");
    snprintf(remark, sizeof remark, "%.2f KiB per token", (double)(p->kv_token - PLAN_TOKEN_BYTES) / 1024);
    print_row("session: keys and values", (p->kv_token - PLAN_TOKEN_BYTES) * (size_t)g->context, remark);
    print_row("a checkpoint of a session", p->state, "each");
    print_states(g);
    if (g->c.vision)
        print_row("cache of earlier images", p->tile_cache, "at most");
    print_row("total at the start, one empty session", plan_own(p, 1, 0), "and the program's files");
    snprintf(remark, sizeof remark, "%d session%s of %lld tokens", g->set->sessions,
             g->set->sessions == 1 ? "" : "s", (long long)g->context);
    print_row("total in use", plan_own(p, g->set->sessions, g->context) + p->tile_cache, remark);
}

static void print_notes(const struct planning *g)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(g->root, "notes"), i, v) printf("  %s\n", json_string_value(v));
}

/* Prints the verdict, its reasons, and what would fit. */
static void print_fit(const struct planning *g)
{
    int n = g->set->sessions, most = g->c.lm.max_tokens;
    long long sessions = json_integer_value(json_object_get(g->root, "most_sessions")),
              tokens = json_integer_value(json_object_get(g->root, "most_context"));
    bool fits = json_is_true(json_object_get(g->root, "fits"));
    printf("\n%s: %d session%s of %lld tokens\n", fits ? "fits" : "does not fit", n, n == 1 ? "" : "s",
           (long long)g->context);
    if (!fits) /* print the reasons directly after the verdict */
        print_notes(g);
    printf("  %.2f GiB needed, %.2f GiB usable (%s %.2f GiB, a %s reserved for %s)\n",
           planning_gib((size_t)json_integer_value(json_object_get(g->root, "in_use_own"))),
           planning_gib(g->usable),
           g->set->gpu      ? "the GPU has"
           : g->set->memory ? "free as given"
                            : "free now",
           planning_gib(g->memory), g->set->gpu ? "twentieth" : "quarter",
           g->set->gpu ? "its driver" : "the system");
    if (fits)
        print_notes(g);
    if (g->context <= most && sessions)
        printf("  at most %lld session%s of %lld tokens\n", sessions, sessions == 1 ? "" : "s",
               (long long)g->context);
    if (tokens)
        printf("  at most %lld tokens in %s%s\n", tokens, n == 1 ? "the session" : "each session",
               tokens == most ? ", the model's maximum" : "");
}

static double rate(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static void print_work(const char *what, double gflop, double gb, double per_second, const char *unit)
{
    printf("  %-30s %12.3f GFLOP", what, gflop);
    if (gb > 0)
        printf(" %9.3f GB", gb);
    else if (per_second > 0)
        printf("%13s", "");
    if (per_second > 0)
        printf(" %12.*f %s/s", per_second < 100 ? 2 : 0, per_second, unit);
    putchar('\n');
}

static void print_limits(const struct planning *g)
{
    const json_t *o = json_object_get(g->root, "limits");
    const struct plan_settings *s = g->set;
    bool timed = rate(o, "flops") > 0;
    char what[64];
    printf("\n%s, for sessions of %lld tokens\n", timed ? "work, and upper limits of speed" : "work",
           (long long)g->context);
    if (timed)
        printf("  with %.1f GB/s (%s) and %.3f TFLOP/s (%s); real runs reach a part of these limits\n",
               g->bandwidth * 1e-9,
               s->bandwidth > 0 ? "given"
               : s->card        ? "the card's"
                                : "measured now",
               g->flops * 1e-12,
               s->flops > 0 ? "given"
               : s->card    ? "the card's"
                            : "measured now");
    print_work("a generated token", rate(o, "flop_token") * 1e-9, rate(o, "bytes_step") * 1e-9,
               rate(o, "decode"), "tokens");
    if (s->sessions > 1) {
        snprintf(what, sizeof what, "one in each of %d sessions", s->sessions);
        print_work(what, s->sessions * rate(o, "flop_token") * 1e-9, rate(o, "bytes_step_sessions") * 1e-9,
                   rate(o, "decode_sessions"), "tokens");
    }
    print_work("a token of a prompt", rate(o, "flop_prompt_token") * 1e-9, 0, rate(o, "prefill"), "tokens");
    if (rate(o, "flop_tile") > 0)
        print_work(g->c.vit.max_patches ? "the largest image" : "a tile of an image",
                   rate(o, "flop_tile") * 1e-9, 0, rate(o, "tiles"),
                   g->c.vit.max_patches ? "images" : "tiles");
    if (rate(o, "steps") > 0)
        printf("  steps of the agent: at most %.2f per second, reading %s (%d tile%s, %d tokens), writing "
               "%d tokens\n",
               rate(o, "steps"), s->screen, (int)rate(o, "screen_tiles"),
               rate(o, "screen_tiles") > 1 ? "s" : "", (int)rate(o, "screen_tokens"), s->generated);
}

/* Prints each prediction with its parts, whose sum it is. */
static void print_predictions(const struct planning *g)
{
    size_t i;
    json_t *row, *part;
    const char *key;
    json_t *list = json_object_get(g->root, "predictions");
    if (!list)
        return;
    const struct roofline_card *card = g->set->card;
    printf("\nexpected on an %s, from rates measured on ", card->words);
    if (card->seen)
        printf("%s\n", card->seen);
    else
        printf("an H200, as no such GPU was measured\n");
    json_array_foreach(list, i, row)
    {
        printf("  %-48s %10.2f ms %9.3g %s/s %4.0f %% of the limit\n",
               json_string_value(json_object_get(row, "name")), rate(row, "ms"), rate(row, "rate"),
               json_string_value(json_object_get(row, "unit")),
               100 * rate(row, "limit_ms") / rate(row, "ms"));
        printf("   ");
        json_object_foreach(json_object_get(row, "parts"), key, part)
            printf(" %s %.2f", key, json_real_value(part));
        putchar('\n');
    }
}

void planning_print(const struct planning *g)
{
    printf("%s\n%d tensors, %.2f GB in files; weights %s, %.1f bits each in the language model\n", g->dir,
           g->p.weights.tensors, (double)g->p.weights.stored * 1e-9,
           g->p.weights.mapped ? "read in place" : "packed in memory", 8 * g->p.number);
    print_parts(g);
    print_memory(g);
    print_limits(g);
    print_predictions(g);
    print_fit(g);
}
