/* choose.c - a clause that the rules do not decide: a model chooses its steps among the likeliest candidates.
 *
 * The lines are those of the candidates with the best scores, and one for each value of the clause and each
 * field.  The model chooses a line for the words of the clause, then one for the words that this line does
 * not have, and so on.  A word that the first line does not have is understood if it makes the line much more
 * probable: "throw it away" for Discard, but not "with express delivery" for an order.  A word with a
 * capital, a digit or quotation marks must be in a line. */
#include "planner/planner_impl.h"

#include "atspi/roles.h"
#include "planner/chooser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATE_LINES = 15, VALUES = 4, QUESTIONS = 6, CLAUSE_WORDS = 64 };

struct choice {
    struct pick pick;
    char *value; /* for a field; NULL: none */
    char *line;
    bool twin; /* another element has the same line */
};

struct choices {
    struct choice c[CHOOSER_LINES];
    const char *lines[CHOOSER_LINES];
    int n;
    uint32_t used;           /* bits of the chosen lines, and of those that contradict them */
    int order[QUESTIONS], k; /* these lines, in order */
    bool open[CLAUSE_WORDS]; /* words of the clause that no chosen line covers */
    float least;             /* smallest probability of a chosen line */
};

static void free_choices(struct choices *l)
{
    for (int i = 0; i < l->n; i++) {
        free(l->c[i].value);
        free(l->c[i].line);
    }
}

/* ---- the lines ----------------------------------------------------------------------------------------- */

static void add_line(struct choices *l, const struct candidate *c, const char *value, char *line)
{
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->c[i].line, line)) {
            l->c[i].twin = l->c[i].twin || l->c[i].pick.best != c;
            free(line);
            return;
        }
    if (l->n == CHOOSER_LINES || strlen(line) >= CHOOSER_LINE || strchr(line, '\n')) {
        free(line);
        return;
    }
    l->lines[l->n] = line;
    l->c[l->n++] = (struct choice){.pick = {.best = c, .score = {.score = 1, .hard = true}, .lead = 1},
                                   .value = value ? xstrdup(value) : NULL,
                                   .line = line};
}

/* Returns whether a candidate is a line: the model sees no menu that only opens others. */
static bool is_line(const struct candidate *c)
{
    return c->kind != CANDIDATE_FIELD && !c->off && !(c->kind == CANDIDATE_MENU && c->levels < 2);
}

/* Adds the candidates with the best scores, in the order of the window. */
static void add_candidates(const struct frame *f, const struct match_words *q, struct choices *l)
{
    const struct candidates *all = f->all;
    float *scores = xcalloc((unsigned long)all->n + 1, sizeof *scores);
    for (int i = 0; i < all->n; i++)
        scores[i] = is_line(&all->c[i]) ? 0.01F + candidate_score(&all->c[i], q, 0).score : 0;
    for (int n = 0; n < CANDIDATE_LINES; n++) {
        int best = -1;
        for (int i = 0; i < all->n; i++)
            best = scores[i] > 0 && (best < 0 || scores[i] > scores[best]) ? i : best;
        if (best < 0)
            break;
        scores[best] = -1;
    }
    for (int i = 0; i < all->n; i++) {
        struct buf b;
        if (scores[i] >= 0)
            continue;
        buf_init(&b, PLANNER_TEXT);
        frame_describe(f, &all->c[i], &b);
        add_line(l, &all->c[i], NULL, buf_take(&b));
    }
    free(scores);
}

/* Returns the length of a value that begins at word i: quoted, words with capitals, or a number; 0: none. */
static int value_at(const struct frame *f, struct span s, int i)
{
    int n = 0;
    bool follows = i && words_is(s, i - 1, "is|to|as|into|called|named|saying|under|name");
    if (s.w[i].quoted)
        return 1;
    while (i + n < s.n && !s.w[i + n].quoted && (!n || !s.w[i + n - 1].after) &&
           clause_is_hard(words_part(s, i + n, s.n), 0, &s.w[i + n] == f->p->clauses.words.w))
        n++;
    if (!n && follows && !match_is_filler(s.w[i].text))
        n = 1;
    return n;
}

static void add_values(const struct frame *f, struct choices *l)
{
    struct span s = f->k->all;
    int values = 0;
    for (int i = 0, n; i < s.n && values < VALUES; i += n ? n : 1) {
        n = value_at(f, s, i);
        char *value = n ? words_text(words_part(s, i, i + n)) : NULL;
        values += n > 0;
        for (int k = 0; k < f->all->n && n; k++) {
            const struct candidate *c = &f->all->c[k];
            if (c->kind != CANDIDATE_FIELD || c->closed || !*c->name)
                continue;
            struct plain_step step = {
                .verb = PLAIN_ENTER, .what = (char *)(uintptr_t)c->name, .value = value};
            struct buf b;
            buf_init(&b, PLANNER_TEXT);
            plain_print(&step, &b);
            add_line(l, c, value, buf_take(&b));
        }
        free(value);
    }
}

/* ---- words --------------------------------------------------------------------------------------------- */

/* Returns the words of the clause that are open, without those from `from` to `to`; the caller frees it. */
static char *open_words(const struct frame *f, const bool *open, int from, int to)
{
    struct buf b;
    buf_init(&b, PLANNER_TEXT);
    buf_puts(&b, "");
    for (int i = 0; i < f->k->all.n; i++)
        if ((i < from || i >= to) && open[i])
            buf_printf(&b, b.len ? " %s" : "%s", f->k->all.w[i].text);
    return buf_take(&b);
}

/* Returns whether word i needs no line: an article, "please", "choose", a word of the title.  *hard: it must
 * be found literally. */
static bool is_idle(const struct frame *f, int i, bool *hard)
{
    struct match_words q = {.n = 0};
    frame_query(f, words_part(f->k->all, i, i + 1), false, &q);
    bool idle = true;
    *hard = false;
    if (i == 0 && f->k->known && !frame_names_verb(f))
        return true;
    for (int k = 0; k < q.n; k++) {
        *hard = *hard || q.w[k].hard;
        idle = idle && !q.w[k].hard && match_among(&q.w[k], &f->all->labels) > 0.9F;
    }
    return idle;
}

static int count_open(const struct frame *f, const struct choices *l)
{
    int n = 0;
    bool hard;
    for (int i = 0; i < f->k->all.n; i++)
        n += l->open[i] && !is_idle(f, i, &hard);
    return n;
}

/* Closes the words that a line has. */
static void close_named(const struct frame *f, struct choices *l, const struct choice *c)
{
    struct match_words have = {.n = 0};
    match_split(c->pick.best->name, false, &have);
    match_split(c->pick.best->row, false, &have);
    match_split(c->pick.best->list, false, &have);
    match_split(c->value ? c->value : "", false, &have);
    for (int i = 0; i < f->k->all.n; i++) {
        struct match_words q = {.n = 0};
        frame_query(f, words_part(f->k->all, i, i + 1), false, &q);
        bool all = q.n > 0;
        for (int k = 0; k < q.n; k++)
            all = all && match_among(&q.w[k], &have) > 0;
        l->open[i] = l->open[i] && !all;
    }
}

/* Closes each group of open words that makes the line more probable.  asked: the words that were open when it
 * was chosen. */
static void close_gained(struct frame *f, struct chooser *m, struct choices *l, int line, const bool *asked)
{
    struct err e = ERR_INIT;
    bool hard = false;
    char *words = open_words(f, asked, 0, 0);
    for (int i = 0, to; i < f->k->all.n; i = to) {
        double gain = 0;
        for (to = i; to < f->k->all.n && l->open[to] && !is_idle(f, to, &hard) && !hard;)
            to++;
        if (to == i) {
            to++;
            continue;
        }
        char *fewer = open_words(f, asked, i, to);
        int rc = chooser_gain(m, line, words, fewer, &gain, &e);
        for (int k = i; k < to && rc == 0 && gain >= GAIN_LEAST; k++)
            l->open[k] = false;
        free(fewer);
    }
    free(words);
}

/* ---- choosing ------------------------------------------------------------------------------------------ */

/* Excludes a chosen line, the other options of its list, other values for its field, and its value for other
 * fields. */
static void exclude(struct choices *l, int line)
{
    const struct choice *a = &l->c[line];
    for (int i = 0; i < l->n; i++) {
        const struct choice *b = &l->c[i];
        bool list = a->pick.best->list_of && a->pick.best->list_of == b->pick.best->list_of;
        bool same = a->value && b->value && !strcmp(a->value, b->value);
        if (list || same || a->pick.best == b->pick.best)
            l->used |= 1U << i;
    }
}

/* Returns whether lines are left. */
static bool has_more(const struct choices *l)
{
    for (int i = 0; i < l->n; i++)
        if (!(l->used >> i & 1))
            return true;
    return false;
}

/* Decides about a line that has no word of the clause and that no word makes more probable: only a user can
 * tell whether it is meant. */
static enum framed guess(struct frame *f, struct choices *l, double p, const char *words)
{
    bool hard = false, any = false;
    for (int i = 0; i < f->k->all.n; i++) {
        is_idle(f, i, &hard);
        any = any || (l->open[i] && hard);
    }
    if (any || !f->proposal || p < P_GUESSED || l->k > 1)
        return frame_unsure(f, "nothing in this window is called '%.60s'", words);
    f->out->sure = false;
    memset(l->open, 0, sizeof l->open);
    return FRAME_DONE;
}

/* Asks for one line.  Returns FRAME_DONE if it covers any of the open words. */
static enum framed ask(struct frame *f, struct chooser *m, struct choices *l)
{
    struct err e = ERR_INIT;
    double p = 0;
    int before = count_open(f, l);
    bool asked[CLAUSE_WORDS];
    memcpy(asked, l->open, sizeof asked);
    char *words = open_words(f, asked, 0, 0);
    int i = chooser_choose(m, words, l->used, &p, &e);
    enum framed done = FRAME_DONE;
    if (i < 0) {
        done = frame_unsure(f, "the model failed: %s", e.text);
    } else {
        l->c[i].pick.score.score = l->c[i].pick.lead = (float)p;
        l->least = p < (double)l->least ? (float)p : l->least;
        exclude(l, i);
        l->order[l->k++] = i;
        close_named(f, l, &l->c[i]);
        if (count_open(f, l) && l->k == 1)
            close_gained(f, m, l, i, asked);
        if (count_open(f, l) == before)
            done = guess(f, l, p, words);
    }
    free(words);
    return done;
}

static enum framed use(struct frame *f, const struct choice *c)
{
    if (c->twin)
        return frame_unsure(f, "several elements are called '%.60s'", c->pick.best->name);
    return c->value ? frame_enter(f, &c->pick, c->value) : frame_use(f, &c->pick);
}

/* Uses the chosen lines, buttons and menus last. */
static enum framed use_all(struct frame *f, struct choices *l)
{
    enum framed done = FRAME_DONE;
    int presses = 0;
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < l->k && done == FRAME_DONE; i++) {
            const struct choice *c = &l->c[l->order[i]];
            bool press = c->pick.best->kind & (CANDIDATE_PRESS | CANDIDATE_MENU);
            if (press != last)
                continue;
            presses += press;
            done = presses > 1 ? frame_unsure(f, "'%.60s' has several deeds", f->k->text) : use(f, c);
        }
    return done;
}

static enum framed choose(struct frame *f, struct chooser *m, struct choices *l)
{
    struct err e = ERR_INIT;
    if (f->k->all.n > CLAUSE_WORDS || !l->n)
        return frame_unsure(f, l->n ? "the clause is too long" : "the window has nothing to choose");
    if (chooser_ask(m, f->all->title, l->lines, l->n, &e))
        return frame_unsure(f, "the model cannot be asked: %s", e.text);
    for (int i = 0; i < f->k->all.n; i++)
        l->open[i] = true;
    for (l->least = 1; count_open(f, l) && l->k < QUESTIONS && has_more(l);)
        if (ask(f, m, l) != FRAME_DONE)
            return FRAME_UNSURE;
    return count_open(f, l) ? frame_unsure(f, "'%.60s' is not understood", f->k->text) : use_all(f, l);
}

enum framed frame_choose(struct frame *f, struct chooser *m)
{
    struct choices l = {.n = 0};
    struct match_words q = {.n = 0};
    frame_query(f, f->k->all, false, &q);
    add_values(f, &l);
    add_candidates(f, &q, &l);
    enum framed done = choose(f, m, &l);
    if (done == FRAME_DONE && l.least < P_LEAST) {
        f->out->sure = false;
        if (l.least < P_PROPOSED || !f->proposal)
            done = frame_unsure(f, "the model is not sure about '%.60s'", f->k->text);
    }
    free_choices(&l);
    return done;
}
