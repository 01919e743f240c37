/* pick.c - the best candidate for some words, and whether it may be used. */
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

void frame_query(const struct frame *f, struct span s, bool verb, struct match_words *q)
{
    for (int i = 0; i < s.n; i++) {
        bool first = &s.w[i] == f->p->clauses.words.w || (i == 0 && s.w == f->k->all.w);
        bool hard = clause_is_hard(words_part(s, i, s.n), 0, first);
        int before = q->n;
        match_split(s.w[i].text, hard, q);
        bool pronoun = i && words_is(s, i, "one"); /* "the large one" */
        if (q->n == before + 1 && !hard && (pronoun || match_is_filler(q->w[before].text)))
            q->n--;
        else if (q->n > before && verb && i == 0)
            q->w[before].optional = true;
    }
}

bool frame_names_verb(const struct frame *f)
{
    enum deed d = f->k->deed;
    return d == DEED_OTHER || d == DEED_CLOSE || d == DEED_SAVE || d == DEED_REPLACE;
}

bool frame_find(const struct frame *f, const struct match_words *q, int kinds, int prefers, struct pick *out)
{
    *out = (struct pick){0};
    float second = 0;
    for (int i = 0; i < f->all->n; i++) {
        const struct candidate *c = &f->all->c[i];
        if (!(c->kind & kinds))
            continue;
        struct candidate_score s = candidate_score(c, q, prefers);
        if (s.score <= 0)
            continue;
        bool same = out->best && candidate_same_command(c, out->best);
        if (same && c->kind != CANDIDATE_MENU)
            continue;
        if (!out->best || s.score > out->score.score || same) {
            if (out->best && !same) {
                second = out->score.score;
                out->second = out->best;
            }
            out->best = c;
            out->score = s;
        } else if (s.score > second) {
            second = s.score;
            out->second = c;
        }
    }
    out->lead = out->score.score - second;
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
            float s = candidate_score(&f->all->c[i], q, 0).score;
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

/* Returns whether the title or a heading of the window has a word that no element covers: "shirt" in a window
 * that is called so. */
static bool is_topic(const struct frame *f, const struct match_word *w)
{
    return !w->hard && match_among(w, &f->all->topic) > 0.9F;
}

enum framed frame_accept(struct frame *f, const struct pick *k, const struct match_words *q)
{
    int missing = 0;
    const char *word = "";
    if (q->cut)
        return frame_unsure(f, "the clause is too long: '%.60s'", f->k->text);
    for (int i = 0; i < q->n; i++) {
        bool verb = i == 0 && frame_names_verb(f); /* in a heading it is not understood */
        bool found = k->score.found >> i & 1 || q->w[i].optional || (!verb && is_topic(f, &q->w[i]));
        missing += found ? 0 : 1;
        word = found || *word ? word : q->w[i].text;
        if (!found && q->w[i].hard)
            return frame_unknown(f, q->w[i].text, q);
    }
    if (!k->score.hard)
        return frame_unknown(f, *word ? word : f->k->text, q);
    bool twin = k->second && k->lead < 0.001F;
    if (twin && resolve_same(k->best->name, k->second->name))
        return frame_unsure(f, "several elements are called '%.60s'", k->best->name);
    bool close = k->lead < LEAD_LEAST && k->second;
    if (!missing && k->score.score >= SCORE_LEAST && !close)
        return FRAME_DONE;
    if (f->proposal && k->score.score >= SCORE_PROPOSED && missing <= 1 && !twin) {
        f->out->sure = false;
        return FRAME_DONE;
    }
    if (close && !missing)
        return frame_unsure(f, "'%.60s' may be '%.60s' or '%.60s'", f->k->text, k->best->name,
                            k->second->name);
    return frame_unknown(f, *word ? word : f->k->text, q);
}
