/* ask.c - plans a task as the state of the window after it, which rules or a model write.
 *
 * The lines that differ are the steps.  They are performed only if they cover the task (cover.c). */
#include "planner/asked.h"

#include "plain/resolve.h"
#include "planner/lexicon.h"
#include "planner/quantity.h"

#include <stdlib.h>
#include <string.h>

/* ---- the plan ------------------------------------------------------------------------------------------ */

/* Returns the text of the window for the model; NULL: it is too long. */
static char *window_text(const struct asked *a)
{
    struct buf b = buf_of(PLANNER_TEXT);
    const struct planner *p = a->f->p;
    form_print(&a->form, a->f->all, &b);
    if (p->done.len)
        buf_printf(&b, "Done:\n%s", p->done.data);
    if (!b.full && !p->done.full)
        return buf_take(&b);
    buf_free(&b);
    return NULL;
}

static bool has_menus(const struct asked *a)
{
    for (int i = 0; i < a->form.n; i++)
        if (a->form.l[i].kind == LINE_MENU)
            return true;
    return false;
}

/* Returns whether the clause of all open words is for a window that these steps leave or open. */
static bool goes_on(const struct asked *a)
{
    struct plan *out = a->f->out;
    uint64_t open = asked_open(a);
    bool opens = out->steps.n && out->steps.s[out->steps.n - 1].verb == PLAIN_MENU;
    for (int i = 0; i < a->s.n; i++)
        if (HAS(open, i) && !(opens && (asked_is_later(a, i) || HAS(a->hard, i))))
            return false;
    return opens && open && (a->covered & a->content); /* not a dialog that no word names */
}

/* Appends the best readings of some words. */
static void put_nearest(const struct candidates *all, const struct match_words *q, struct buf *b)
{
    float below = 10;
    for (int n = 0; n < PLANNER_NEAREST; n++) {
        const struct candidate *best = NULL;
        float score = 0;
        for (int i = 0; i < all->n; i++) {
            float s = candidate_score(&all->c[i], q);
            best = s < below && s > score ? &all->c[i] : best;
            score = s < below && s > score ? s : score;
        }
        if (!best)
            break;
        buf_puts(b, n ? "; " : "; nearest: ");
        frame_describe(best, b);
        below = score;
    }
}

/* Names an open word: one that no element has in its name or around it, if there is one. */
static enum framed name_open(struct asked *a)
{
    const struct candidates *all = a->f->all;
    uint64_t open = asked_open(a);
    autobuf b = buf_of(PLANNER_TEXT);
    int named = __builtin_ctzll(open);
    for (int i = a->s.n - 1; i >= 0; i--) {
        int k = 0;
        while (k < all->n && candidate_score(&all->c[k], &a->w[i]) <= 0)
            k++;
        named = HAS(open, i) && k == all->n ? i : named;
    }
    buf_printf(&b, "nothing in this window is called '%.60s'", a->s.w[named].text);
    put_nearest(all, &a->all, &b);
    return frame_unsure(a->f, "%s", b.data);
}

/* Returns whether a field for a text is left empty, which a statement may be meant for. */
static bool has_empty(const struct asked *a)
{
    for (int i = 0; i < a->form.n; i++) {
        const struct form_line *l = &a->form.l[i];
        if (l->kind == LINE_FIELD && !a->reply.value[i] && !a->named[i] && !strcmp(l->v[0].text, "\"\""))
            return true;
    }
    return false;
}

/* Returns whether an open word names a thing that the window lacks: "a suite with a sea view".  Then nothing
 * is proposed. */
static bool lacks_thing(const struct asked *a)
{
    uint64_t open = asked_open(a);
    for (int i = 1; i < a->s.n; i++)
        for (int k = i - 1; k >= 0 && k >= i - 2 && HAS(open, i) && !a->s.w[k].after; k--)
            if (words_is(a->s, k, "a|an|the|my|your|our|his|her|with|as") ||
                (k == i - 1 && words_is(a->s, k, "choose|tick|select|pick|untick|check")))
                return true;
    return false;
}

/* Decides on the values that the rules found: they must cover all words. */
static enum framed decide(struct asked *a)
{
    struct plan *out = a->f->out;
    asked_cover(a);
    if (asked_use(a) != FRAME_DONE)
        return FRAME_UNSURE;
    if (asked_open(a) & a->hard)
        return name_open(a);
    bool leaves = fill_leaves(a->button) && !a->values;
    out->sure = out->sure && out->steps.n && !a->doubt &&
                (leaves || !(a->said || (a->aside && (!a->values || has_empty(a)))));
    if (asked_open(a)) {
        name_open(a);
        if (!a->f->proposal || lacks_thing(a))
            return FRAME_UNSURE;
        out->sure = false;
    }
    if (!out->steps.n || (!out->sure && !a->f->proposal))
        return frame_unsure(a->f, "%s: '%.60s'", a->doubt ? a->doubt : "not sure", a->f->p->task);
    return a->file >= 0 ? FRAME_OPENS : FRAME_DONE;
}

/* ---- a model's values ---------------------------------------------------------------------------------- */

/* Returns whether a negation stands before the first of some words: "no sounds". */
static bool is_negated(const struct asked *a, uint64_t words)
{
    int i = __builtin_ctzll(words);
    for (int k = i - 1; k >= 0 && k >= i - 3 && !a->s.w[k].after; k--)
        if (clause_is_quantity(a->s, k) || clause_is_negation(a->s, k))
            return true;
    return false;
}

/* Takes values of the rules for lines that the model left as they are: small models overlook the second of
 * two things.  Returns a line whose name or option the task has, and which the model gives another value; -1:
 * none. */
static int merge(struct asked *a, const int rules[FORM_LINES])
{
    for (int i = 0; i < a->form.n; i++) {
        const struct form_line *l = &a->form.l[i];
        int *value = &a->reply.value[i];
        bool chosen = l->kind > LINE_FIELD, negated = a->named[i] && is_negated(a, a->named[i]);
        if (!a->named[i] || l->kind >= LINE_TAB)
            continue;
        if (chosen && *value && *value != rules[i] && !negated)
            return i;
        if (!*value && rules[i] && !negated) {
            *value = rules[i];
            a->reply.p[i] = 1;
        }
        a->covered |= *value == rules[i] ? a->named[i] : 0;
    }
    return -1;
}

static bool is_settable(const struct asked *a)
{
    for (int i = 0; i < a->form.n; i++)
        if (a->form.l[i].kind < LINE_TAB)
            return true;
    return false;
}

/* Returns whether the only step is a button, although the form has values that open words may mean: OK for
 * "add Mr Osei to the drivers". */
static bool is_bare(const struct asked *a)
{
    struct match_words button = match_words_of(a->button);
    bool settable = is_settable(a), leaves = fill_leaves(a->button) && asked_among(a, &button, 0.95F);
    return *a->button && !a->values && settable && asked_open(a) && !leaves;
}

/* Returns the bits of the words that share a part with a text, also beside its hyphens: "one side" and
 * One-sided, "quarter past six" and 06. */
static uint64_t shared_with(const struct asked *a, const char *text)
{
    autofree char *parts = xstrdup(text);
    struct match_words words = match_words_of(text);
    uint64_t bits = 0;
    for (char *c = parts; *c; c++)
        *c = *c == '-' ? ' ' : *c;
    match_split(parts, false, &words);
    for (int i = 0; i < a->s.n; i++)
        for (int k = 0; k < a->w[i].n; k++)
            if (match_number(a->w[i].w[k].text) > 0 || !match_is_filler(a->w[i].w[k].text))
                bits |= match_among(&a->w[i].w[k], &words) >= 0.7F ? BIT(i) : 0;
    return bits;
}

/* Returns whether word i may describe the thing after it: not "learn" in "to learn Japanese", "Ms" or
 * "I've". */
static bool describes(const struct asked *a, int i)
{
    return !words_is(a->s, i - 1,
                     "to|i|we|you|i'd|i'll|we'd|we'll|would|will|can|could|should|must|please") &&
           !words_is(a->s, i, "mr|mrs|ms|miss|dr|prof|sir|madam") && !strchr(a->s.w[i].text, '\'');
}

/* Returns whether ticks may be taken away without their name: another one is set, or the task has "only". */
static bool has_contrast(const struct asked *a)
{
    bool found = a->ticked;
    for (int i = 0; i < a->s.n; i++)
        found = found || words_is(a->s, i, "only|just");
    return found;
}

/* Returns whether no word of the task is in a new choice, or an open word stands before one that is: Small
 * for "extra small". */
static bool is_guess(const struct asked *a, int i)
{
    const struct form_line *l = &a->form.l[i];
    const struct form_value *v = asked_new(a, i);
    if (!v || l->kind == LINE_FIELD || l->kind >= LINE_TAB || (asked_is_off(l, v) && has_contrast(a)))
        return false;
    uint64_t open = asked_open(a), have = shared_with(a, l->kind == LINE_TICK ? l->name : v->text);
    for (int k = 1; k < a->s.n; k++)
        if (HAS(have, k) && HAS(open, k - 1) && !a->s.w[k - 1].after && describes(a, k - 1))
            return true;
    return !have;
}

/* Returns the bits of the words that name the button. */
static uint64_t button_words(const struct asked *a)
{
    struct match_words words = match_words_of(a->button);
    uint64_t bits = asked_among(a, &words, 0.7F);
    for (int i = 0; i < a->s.n; i++)
        bits |= asked_commits(a, i, a->button) ? BIT(i) : 0;
    return bits;
}

/* Returns whether words [from, to) may be a wish that is in no step: no word of them is in a value, or only
 * one of the button, with a thing beside it ("send him the photo too"). */
static bool is_open_part(const struct asked *a, int from, int to)
{
    uint64_t part = asked_bits(from, to), open = asked_open(a) & part, done = a->covered & a->content & part;
    bool things = false;
    for (int i = from + 1; i < to; i++)
        things = things || (HAS(open, i) && words_is(a->s, i - 1, "a|an|the|my|our|your|his|her|their"));
    return open && (!done || (things && !(done & ~button_words(a))));
}

/* Returns whether a part of the task is in no step.  A reason looks the same: it needs a user, too. */
static bool is_left_out(const struct asked *a)
{
    for (int from = 0, to; from < a->s.n; from = to) {
        int end = asked_part_end(a, from);
        for (to = from + 1; to < end && !words_is(a->s, to, "and|then|&|+");)
            to++;
        if (is_open_part(a, from, to))
            return true;
    }
    return false;
}

/* Covers words that the window's title and texts have, and those of values that are replaced. */
static void cover_texts(struct asked *a)
{
    struct match_words words = match_words_of(a->f->all->title);
    for (int i = 0; i < a->f->all->s->n; i++)
        if (!strcmp(a->f->all->s->e[i].role, "label") || !strcmp(a->f->all->s->e[i].role, "static"))
            match_split(a->f->all->s->e[i].name, false, &words);
    for (int i = 0; i < a->form.n; i++)
        if (a->reply.value[i] && a->form.l[i].kind <= LINE_LIST)
            match_split(a->form.l[i].v[0].text, false, &words);
    a->covered |= asked_among(a, &words, 0.95F) & ~a->typed;
}

/* Covers negations, which the model reads, and "only" if no ticks are taken away by it. */
static void cover_nots(struct asked *a)
{
    bool ticks = false;
    for (int i = 0; i < a->form.n; i++)
        ticks = ticks || (a->form.l[i].kind == LINE_TICK && a->form.l[i].of->kind == CANDIDATE_ROW);
    for (int i = 0; i < a->s.n; i++)
        if (clause_is_negation(a->s, i) || words_is(a->s, i, UNDERSTOOD) ||
            (!ticks && words_is(a->s, i, "only|just")))
            a->covered |= BIT(i);
}

/* Decides on the values that the model wrote.  It understands words that no name has, but invents values for
 * what the window lacks: names and numbers of the task must be in the steps, and it must say itself that it
 * leaves nothing out.  With menus it is not good enough for that: all words count. */
static enum framed decide_written(struct asked *a, const int rules[FORM_LINES])
{
    struct plan *out = a->f->out;
    int other = merge(a, rules);
    asked_cover(a);
    cover_texts(a);
    bool leaves = fill_leaves(a->button) && !a->values;
    bool left = is_settable(a) && !leaves && (is_left_out(a) || (has_empty(a) && lacks_thing(a)));
    cover_nots(a);
    a->covered |= out->at.covered;
    if (other >= 0)
        return frame_unsure(a->f, "the model and the words disagree on '%.60s'", a->form.l[other].name);
    if (a->values && fill_leaves(a->button))
        return frame_unsure(a->f, "the model fills the form and leaves it");
    for (int i = 0; i < a->form.n; i++)
        if (is_guess(a, i))
            return frame_unsure(a->f, "the model guesses '%.60s'", asked_new(a, i)->text);
    if (is_bare(a))
        return name_open(a);
    if (asked_use(a) != FRAME_DONE)
        return FRAME_UNSURE;
    bool later = goes_on(a);
    if (!later && (asked_open(a) & (has_menus(a) ? ~0ULL : a->hard)))
        return name_open(a);
    if (left && !later && asked_open(a)) {
        name_open(a);
        if (!a->f->proposal)
            return FRAME_UNSURE;
        out->sure = false;
    }
    out->sure = out->sure && out->steps.n && a->least >= P_LEAST && a->reply.whole >= WHOLE_LEAST;
    if (!out->steps.n || a->least < P_PROPOSED || (!out->sure && !a->f->proposal))
        return frame_unsure(a->f,
                            a->reply.whole < WHOLE_LEAST ? "the window may lack: %.60s" : "not sure: '%.60s'",
                            a->reply.whole < WHOLE_LEAST ? a->reply.cannot : a->f->p->task);
    out->at.covered = a->covered;
    return later ? FRAME_OPENS : FRAME_DONE;
}

/* Plans the values that the rules find, unless the task names a line that has a namesake. */
static enum framed fill(struct asked *a)
{
    for (int i = 0; i < FORM_LINES; i++)
        a->reply.p[i] = 1;
    for (int i = 0; i < a->form.n; i++) {
        struct match_words name = match_words_of(a->form.l[i].name);
        if (a->form.l[i].twin && match_within(&name, &a->all))
            return frame_unsure(a->f, "several elements are called '%.60s'", a->form.l[i].name);
    }
    asked_read_parts(a);
    return asked_fill(a) ? decide(a) : frame_unsure(a->f, "'%.60s' is not understood", a->f->p->task);
}

/* Plans the values that the model writes. */
static enum framed write_lines(struct asked *a)
{
    struct err e = ERR_INIT;
    int rules[FORM_LINES];
    autofree char *task = asked_request(a), *window = window_text(a);
    if (!window)
        return frame_unsure(a->f, "the window has too much text for the model");
    asked_read_parts(a);
    uint64_t covered = a->covered;
    asked_fill(a);
    a->covered = covered;
    memcpy(rules, a->reply.value, sizeof rules);
    const struct planner *p = a->f->p;
    if (p->model.write ? p->model.write(p->model.arg, window, task, &a->form, &a->reply, &e)
                       : writer_write(p->writer, window, task, &a->form, &a->reply, &e))
        return frame_unsure(a->f, "the model failed: %s", e.text);
    return decide_written(a, rules);
}

/* Gives words [i, to) the meaning of a text: their first one has it, the others count for nothing. */
static void join_words(struct asked *a, int i, int to, const char *text)
{
    a->w[i] = match_words_of(text);
    match_split(text, false, &a->all);
    for (int k = i + 1; k < to; k++) {
        a->w[k].n = 0;
        a->joined |= BIT(k);
    }
}

static bool is_in_names(const struct asked *a, const char *word)
{
    for (int i = 0; i < a->f->all->n; i++)
        if (fill_has(a->f->all->c[i].name, word))
            return true;
    return false;
}

/* Reads "every month" as monthly and "an hour" as 60 minutes, in windows that have no such words. */
static void read_units(struct asked *a)
{
    static const struct {
        const char *unit, *units, *often, *length;
    } units[] = {{"day", "day|days", "daily", NULL},
                 {"week", "week|weeks", "weekly", "7 nights"},
                 {"month", "month|months", "monthly", NULL},
                 {"year", "year|years", "yearly", "12 months"},
                 {"hour", "hour|hours", "hourly", "60 minutes"}};
    for (int i = 0; i + 1 < a->s.n; i++)
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            bool once = words_is(a->s, i, "once") && words_is(a->s, i + 1, "a|every|per") &&
                        words_is(a->s, i + 2, units[u].unit);
            bool often = once || (words_is(a->s, i, "every|each") && words_is(a->s, i + 1, units[u].unit));
            bool length = words_is(a->s, i, "a|an|one") && words_is(a->s, i + 1, units[u].unit) &&
                          units[u].length && !words_is(a->s, i - 1, "once|twice|times|per");
            if ((often || length) && !is_in_names(a, units[u].units))
                join_words(a, i, i + 2 + once, often ? units[u].often : units[u].length);
        }
}

/* Reads numbers and times of several words. */
static void read_quantities(struct asked *a)
{
    char text[MATCH_WORD];
    read_units(a);
    for (int i = 0, n; i < a->s.n; i += n ? n : 1) {
        n = quantity_time(a->s, i, text);
        n = n ? n : quantity_number(a->s, i, text);
        if (n > 1 && !(a->joined >> i & 3))
            join_words(a, i, i + n, text);
    }
}

enum framed frame_ask(struct frame *f, int from, int n, bool rules)
{
    struct span all = {f->p->clauses.words.w, f->p->clauses.words.n};
    const struct clause *k = &f->p->clauses.c[from], *saves;
    int first = from ? (int)(k->all.w - all.w) : 0, file = rules ? file_word(f->p) : -1;
    int end = from + n < f->p->clauses.n ? (int)(k[n - 1].all.w - all.w) + k[n - 1].all.n : all.n;
    struct asked a = {.f = f, .rules = rules, .k = k, .clauses = n, .least = 1, .file = -1, .button = ""};
    a.s = words_part(all, first, end);
    if (a.s.n > TASK_WORDS || strlen(f->p->task) > PLANNER_TEXT / 2)
        return frame_unsure(f, "the task is too long");
    for (int i = 0; i < a.s.n; i++) {
        match_split(a.s.w[i].text, false, &a.w[i]);
        match_split(a.s.w[i].text, false, &a.all);
    }
    read_quantities(&a);
    saves = file >= first && file < end && find_save_as(f) ? asked_clause(&a, file - first) : NULL;
    if (saves && words_is(saves->all, 0, "save|store|keep|put|name|call"))
        a.file = file - first;
    form_read(f->all, a.s, f->p->done.data, &a.form);
    asked_read_words(&a);
    enum framed done = !a.form.n ? frame_unsure(f, "the window has nothing that can be changed")
                       : rules   ? fill(&a)
                                 : write_lines(&a);
    written_free(&a.reply);
    form_free(&a.form);
    return done;
}
