/* cover.c - which words of a task the steps of a window cover.
 *
 * By rules, each word that names a thing must be in the name or the value of a line that differs.  A word
 * with a capital, a digit or quotation marks, a number, a weak negation and a word of quantity must be there
 * also if a model writes the lines. */
#include "planner/asked.h"
#include "planner/lexicon.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *const commits[] = {COMMITS};

/* ---- words --------------------------------------------------------------------------------------------- */

const struct clause *asked_clause(const struct asked *a, int i)
{
    for (int c = 0; c < a->clauses; c++)
        if (&a->s.w[i] >= a->k[c].all.w && &a->s.w[i] < a->k[c].all.w + a->k[c].all.n)
            return &a->k[c];
    return NULL;
}

/* Returns the bits of the words of a clause. */
static uint64_t bits_of(const struct asked *a, const struct clause *k)
{
    uint64_t bits = 0;
    for (int i = 0; i < a->s.n; i++)
        bits |= asked_clause(a, i) == k ? BIT(i) : 0;
    return bits;
}

static bool is_filler(const struct word *w)
{
    return !w->quoted && match_is_filler(w->text);
}

/* Returns whether word i says nothing of the window: also a verb that only says that what its clause names is
 * pressed or chosen. */
static bool is_light(const struct asked *a, int i, const struct clause *k)
{
    bool names = false;
    if (!k->known || &a->s.w[i] != k->all.w || (k->deed != DEED_PRESS && k->deed != DEED_CHOOSE))
        return words_is(a->s, i, LIGHT) || (a->w[i].n && match_is_filler(a->w[i].w[0].text));
    for (int w = 1; w < k->all.n; w++)
        names = names || !is_filler(&k->all.w[w]);
    return names;
}

/* Returns whether a number of several words begins at word i, also with a unit: "a dozen", "one hour".  Times
 * may be in two lines, hours and minutes. */
static bool is_number(const struct asked *a, int i)
{
    const struct match_word *w = a->w[i].w;
    return i + 1 < a->s.n && HAS(a->joined, i + 1) && !HAS(a->joined, i) && a->w[i].n &&
           isdigit((unsigned char)*w[0].text) && (a->w[i].n == 1 || isalpha((unsigned char)*w[1].text));
}

void asked_read_words(struct asked *a)
{
    bool first = true, aside = false;
    struct match_words topic_words = a->f->all->topic;
    for (int i = 0; i < a->f->all->s->n && a->form.n == 1 && a->form.l[0].kind == LINE_BUTTON; i++)
        if (!strcmp(a->f->all->s->e[i].role, "label")) /* of a question */
            match_split(a->f->all->s->e[i].name, false, &topic_words);
    for (int i = 0; i < a->s.n; i++) {
        const struct word *w = &a->s.w[i];
        const struct clause *k = asked_clause(a, i);
        bool hard = clause_is_hard(words_part(a->s, i, a->s.n), 0, first) || words_is(a->s, i, NUMBERS) ||
                    clause_is_quantity(a->s, i) || (!a->rules && is_number(a, i)) ||
                    (words_is(a->s, i, "out|off") && k && words_is(k->all, 0, "log|sign"));
        first = w->after && w->after != ',';
        aside = (aside && !a->s.w[i - 1].after) || clause_is_idiom(a->s, i); /* "never mind the ticket" */
        a->said = a->said || (aside && clause_is_idiom(a->s, i) && !clause_is_polite(a->s, i));
        a->typed |= aside ? BIT(i) : 0;
        if (i == a->file || aside || !k || HAS(a->joined, i))
            continue;
        /* "cancel the account" does not only leave its window */
        bool topic = a->w[i].n && match_among(&a->w[i].w[0], &topic_words) >= 0.7F &&
                     !(k->known && w == k->all.w) && !words_is(k->all, 0, "cancel");
        hard = hard && !(words_is(a->s, i, "all|some|both|each|most") && words_is(a->s, i + 1, "of") &&
                         words_is(a->s, i + 2, "it|that|them|us|this"));
        hard = hard && !(words_is(a->s, i, "mr|mrs|ms|dr") && i + 1 < a->s.n && !w->quoted);
        a->hard |= hard ? BIT(i) : 0;
        a->content |= hard || (a->w[i].n && !topic && !is_light(a, i, k)) ? BIT(i) : 0;
    }
}

char *asked_request(const struct asked *a)
{
    struct buf b = buf_of(PLANNER_TEXT);
    buf_puts(&b, "");
    for (int i = 0; i < a->s.n; i++) {
        const struct word *w = &a->s.w[i];
        buf_printf(&b, w->quoted ? "%s\"%s\"" : "%s%s", b.len ? " " : "", w->text);
        if (w->after == ',' || w->after == '.')
            buf_putc(&b, w->after);
    }
    return buf_take(&b);
}

uint64_t asked_among(const struct asked *a, const struct match_words *name, float least)
{
    uint64_t bits = 0;
    for (int i = 0; i < a->s.n; i++) {
        bool all = a->w[i].n > 0;
        for (int k = 0; k < a->w[i].n && all; k++)
            all = match_among(&a->w[i].w[k], name) >= (HAS(a->hard, i) ? 0.9F : least);
        bits |= all ? BIT(i) : 0;
    }
    return bits;
}

/* ---- coverage ------------------------------------------------------------------------------------------ */

static void add_names(const struct candidate *c, struct match_words *have)
{
    match_split(c->name, false, have);
    match_split(c->list, false, have);
    match_split(c->row, false, have);
    match_split(c->tab, false, have);
    for (int i = 0; i < c->levels; i++)
        match_split(c->path[i], false, have);
}

/* Returns the bits of words after "of": "the sides of the paper". */
static uint64_t parts_of(const struct asked *a)
{
    uint64_t bits = 0;
    for (int i = 1; i < a->s.n; i++)
        if (words_is(a->s, i - 1 - words_is(a->s, i - 1, "the"), "of"))
            bits |= BIT(i);
    return bits;
}

/* Covers the words of the lines that differ, and of those that already have what the task asks for. */
static void cover_lines(struct asked *a)
{
    for (int i = 0; i < a->form.n; i++) {
        const struct form_line *l = &a->form.l[i];
        const struct form_value *v = &l->v[a->reply.value[i]];
        struct match_words name = match_words_of(l->name), have = match_words_of(v->text);
        bool differs = a->reply.value[i] != 0, named = differs || match_within(&name, &a->all);
        bool there = l->kind == LINE_TICK ? !strcmp(v->text, "yes") && match_within(&name, &a->all)
                                          : l->kind <= LINE_LIST && match_within(&have, &a->all);
        if (!differs && (!there || l->twin)) { /* "both sides of the paper" */
            if (l->kind <= LINE_LIST && !l->twin)
                a->covered |= asked_among(a, &name, 0.1F) & parts_of(a) & ~a->hard;
            continue;
        }
        if (l->kind == LINE_FIELD && differs &&
            a->rules) /* the typed words alone: "Main Street into the street" */
            have.n = 0;
        if (l->kind <= LINE_TICK)
            match_split(l->name, false, &have);
        if (v->c)
            add_names(v->c, &have);
        a->covered |= asked_among(a, &have, 0.1F) & (named ? ~0ULL : ~a->hard);
        if (differs)
            a->least = a->reply.p[i] < a->least ? a->reply.p[i] : a->least;
    }
}

bool asked_is_empty(struct span s)
{
    bool empty = words_is(s, 0, ASIDES);
    for (int i = 0; i < s.n && empty; i++)
        empty = words_is(s, i, LIGHT) || is_filler(&s.w[i]);
    return empty;
}

bool asked_commits(const struct asked *a, int i, const char *name)
{
    for (size_t g = 0; g < sizeof commits / sizeof *commits; g++)
        if (words_is(a->s, i, commits[g]) && fill_has(name, commits[g]))
            return true;
    return false;
}

/* Counts the lines that differ, by kind. */
static void count_lines(struct asked *a)
{
    for (int i = 0; i < a->form.n; i++) {
        const struct form_line *l = &a->form.l[i];
        const struct form_value *v = asked_new(a, i);
        const struct candidate *c = l->kind == LINE_TICK ? l->of : v ? v->c : NULL;
        bool tick = v && (l->kind == LINE_TICK || (c && text_starts(c->e->role, "check menu")));
        a->rows = a->rows || (v && l->kind == LINE_ROW);
        a->values += v && (tick || l->kind <= LINE_ROW);
        a->presses += v && l->kind >= LINE_TAB;
        a->ticks += tick;
        a->ticked = a->ticked || (tick && !c->on);
        a->unticked = a->unticked || (tick && c->on);
        a->entered = a->entered || (v && l->kind == LINE_FIELD);
        a->called = a->called || (v && l->kind == LINE_FIELD && fill_has(l->name, NAMES "|title|folder"));
        a->button = v && l->kind == LINE_BUTTON ? v->text : a->button;
    }
}

/* Covers verbs by the kind of step, "reserve" by a button, "add" by a field, and the object of a button:
 * "cancel the order", "reset everything". */
static void cover_verbs(struct asked *a)
{
    bool leaves = fill_leaves(a->button), resets = fill_has(a->button, "reset|defaults");
    for (int i = 0; i < a->s.n; i++) {
        const struct clause *k = asked_clause(a, i);
        bool noun = i && !a->s.w[i - 1].after && words_is(a->s, i - 1, "a|an|the|my|with|of"); /* "a view" */
        bool state = words_is(a->s, i, STATES) && words_is(a->s, i - 1, SUBJECTS) &&
                     (!k || !k->known || k->all.w != &a->s.w[i]);
        if (asked_commits(a, i, a->button) ||
            (a->values && ((words_is(a->s, i, SETS) && !noun) || state) &&
             !(a->rows && words_is(a->s, i, "print|play|view"))) ||
            (a->entered && words_is(a->s, i, ENTERS)) || (a->called && words_is(a->s, i, CALLS)) ||
            (a->ticked && words_is(a->s, i, TICKS)) || (a->unticked && words_is(a->s, i, UNTICKS)) ||
            (a->file >= 0 && words_is(a->s, i, SAVES)) || (a->ticks == 2 && words_is(a->s, i, "both")) ||
            (a->values && words_is(a->s, i, "changed|moved|postponed") && words_is(a->s, i + 1, "to")) ||
            (a->ticks && words_is(a->s, i, "some") && a->covered >> i & 2) || words_is(a->s, i, "rather") ||
            (leaves && i == 0 && a->s.w[0].after && words_is(a->s, 0, "no|nope|nah")) ||
            (leaves && (words_is(a->s, i, "back|away") || fill_is_left(a, i))) ||
            (resets && words_is(a->s, i, "everything|all|put")))
            a->covered |= BIT(i);
        /* "unlock it" in "Unlock the archive", "those two" */
        bool topic = k && k->all.w == &a->s.w[i] && *a->button && !leaves && a->w[i].n &&
                     text_choice(CLOSING "|" DELETES, a->w[i].w[0].text) < 0;
        if ((topic && match_among(&a->w[i].w[0], &a->f->all->topic) >= 0.9F) ||
            (a->ticks > 1 && match_number(a->s.w[i].text) == a->ticks &&
             words_is(a->s, i - 1, "those|these|the")))
            a->covered |= BIT(i);
    }
}

/* Covers the headers of a table that has a chosen row: "the red team". */
static void cover_headers(struct asked *a)
{
    bool row = false;
    for (int i = 0; i < a->form.n; i++) {
        const struct form_line *l = &a->form.l[i];
        row = row || (asked_new(a, i) &&
                      (l->kind == LINE_ROW || (l->kind == LINE_TICK && l->of->kind == CANDIDATE_ROW)));
    }
    for (int i = 0; i < a->f->all->n && row; i++)
        if (text_ends(a->f->all->c[i].e->role, "column header"))
            a->covered |= asked_among(a, &a->f->all->c[i].words, 0.7F) & ~a->hard;
}

uint64_t asked_open(const struct asked *a)
{
    return a->content & ~a->covered;
}

void asked_cover(struct asked *a)
{
    count_lines(a);
    cover_lines(a);
    cover_verbs(a);
    cover_headers(a);
}

bool asked_is_later(const struct asked *a, int i)
{
    const struct clause *k = asked_clause(a, i);
    return k && k->known && !(a->covered & a->content & bits_of(a, k));
}
