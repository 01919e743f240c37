/* pick.c - candidates by name, and the nearest ones of some words. */
#include "planner/planner_impl.h"

#include "plain/resolve.h"

#include <stdio.h>
#include <string.h>

enum framed frame_unsure(struct frame *f, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(f->out->why, sizeof f->out->why, fmt, args);
    va_end(args);
    return FRAME_UNSURE;
}

/* Returns whether a name has the words, and only others that say nothing: "Save file", but not "Don't
 * save". */
static bool is_named(const struct candidate *c, const struct match_words *q)
{
    for (int i = 0; i < c->words.n; i++) {
        const struct word w = {.text = (char *)(uintptr_t)c->words.w[i].text};
        if (match_among(&c->words.w[i], q) < 0.9F &&
            !words_is((struct span){&w, 1}, 0,
                      "the|this|file|document|text|note|changes|program|application"))
            return false;
    }
    return match_within(q, &c->words);
}

bool frame_find(const struct frame *f, const char *name, int kinds, struct pick *out)
{
    struct match_words q = {.n = 0};
    *out = (struct pick){.p = 1};
    match_split(name, false, &q);
    for (int i = 0; i < f->all->n; i++) {
        const struct candidate *c = &f->all->c[i], *best = out->best;
        if (!(c->kind & kinds) || !is_named(c, &q))
            continue;
        bool same = best && candidate_same_command(c, best);
        if (!best || c->words.n < best->words.n || (same && c->kind == CANDIDATE_MENU)) {
            out->best = c;
            out->twin = false;
        } else if (!same && c->words.n == best->words.n) {
            out->twin = true;
        }
    }
    return out->best != NULL;
}

/* Appends the best readings of some words. */
static void put_nearest(struct frame *f, const struct match_words *q, struct buf *b)
{
    float below = 10;
    for (int n = 0; n < PLANNER_NEAREST; n++) {
        const struct candidate *best = NULL;
        float score = 0;
        for (int i = 0; i < f->all->n; i++) {
            float s = candidate_score(&f->all->c[i], q);
            if (s < below && s > score) {
                score = s;
                best = &f->all->c[i];
            }
        }
        if (!best)
            break;
        buf_puts(b, n ? "; " : "; nearest: ");
        frame_describe(f, best, b);
        below = score;
    }
}

enum framed frame_unknown(struct frame *f, const char *word, const struct match_words *q)
{
    struct buf b;
    buf_init(&b, PLANNER_TEXT);
    buf_printf(&b, "nothing in this window is called '%.60s'", word);
    put_nearest(f, q, &b);
    frame_unsure(f, "%s", b.data ? b.data : "");
    buf_free(&b);
    return FRAME_UNSURE;
}
