/* fill.c - the values that a task names for the lines of a form, by rules.
 *
 * An option, a tick or a row is meant if the task has all its words.  A field gets the words after its name
 * ("name is Ana", "4 nights"), or words of its kind: an address with @ for "Email", a name after "for" for
 * "Guest", a quoted text for the only field.  The button is the one that the task names, else the only one
 * that may end the form. */
#include "planner/fill.h"

#include "planner/fill_impl.h"

#include "plain/resolve.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define OFF "off|untick|uncheck|disable|deactivate|remove|drop|deselect|unselect"
#define CLOSING                                                                                              \
    "cancel|close|help|no|discard|reset|defaults|back|quit|abort|later|more|about|options|stay|keep"
#define ENDINGS "ok|apply|save|done|submit"
#define DELETES "delete|remove|erase|clear"
#define SHOWS   "show|use|enable|play|allow|print|display|activate" /* of "Show hidden files" */

void fill_words(const char *text, struct match_words *out)
{
    struct match_words all = {.n = 0};
    *out = (struct match_words){.n = 0};
    match_split(text, false, &all);
    for (int i = 0; i < all.n; i++) {
        const struct word w = {.text = all.w[i].text};
        bool ends = i == all.n - 1 && words_is((struct span){&w, 1}, 0, "in|on|out|up|with"); /* "log out" */
        if (!match_is_filler(all.w[i].text) || all.n == 1 || ends)
            out->w[out->n++] = all.w[i];
    }
}

float fill_alike(const struct filling *g, int i, const struct match_words *w)
{
    struct match_words q = {.n = 0};
    float least = 1;
    if (g->used >> i & 1)
        return 0;
    match_split(g->s.w[i].text, false, &q);
    for (int k = 0; k < q.n; k++) {
        float v = match_among(&q.w[k], w);
        least = v < least ? v : least;
    }
    return q.n ? least : 0;
}

/* Returns whether the task has all words, outside values; *at: the first of them. */
static bool has_all(const struct filling *g, const struct match_words *w, int *at)
{
    *at = g->s.n;
    for (int k = 0; k < w->n; k++) {
        struct match_words one = {.w = {w->w[k]}, .n = 1};
        int i = 0;
        while (i < g->s.n && fill_alike(g, i, &one) < 0.7F)
            i++;
        if (i == g->s.n)
            return false;
        *at = i < *at ? i : *at;
    }
    return w->n > 0;
}

/* ---- choices ------------------------------------------------------------------------------------------- */

/* Returns the value whose words the task has, the longest one; 0: none, or two. */
static int mentioned(const struct filling *g, const struct form_line *l)
{
    int found = 0, most = 0, at;
    bool two = false;
    for (int k = l->kind == LINE_LIST ? 0 : 1; k < l->n; k++) {
        struct match_words w;
        fill_words(l->kind == LINE_MENU && k ? l->v[k].c->name : l->v[k].text, &w);
        if (!has_all(g, &w, &at))
            continue;
        two = w.n == most ? true : w.n > most ? false : two;
        found = w.n >= most ? k : found;
        most = w.n > most ? w.n : most;
    }
    return two ? 0 : found;
}

/* Returns whether another list has the option too, and the task names neither. */
static bool is_ambiguous(const struct filling *g, int line, const char *option)
{
    struct match_words name;
    int at;
    fill_words(g->form->l[line].name, &name);
    for (int i = 0; i < g->form->n && !has_all(g, &name, &at); i++)
        for (int k = 0; k < g->form->l[i].n && g->form->l[i].kind == LINE_LIST && i != line; k++)
            if (!strcmp(g->form->l[i].v[k].text, option))
                return true;
    return false;
}

/* Returns the row that has the most words of the task, if no other one has as many; 0: none. */
static int best_row(const struct filling *g, const struct form_line *l)
{
    int best = 0, most = 0;
    bool two = false;
    for (int k = 1; k < l->n; k++) {
        struct match_words w;
        int n = 0;
        fill_words(l->v[k].text, &w);
        for (int i = 0; i < g->s.n; i++)
            n += !match_is_filler(g->s.w[i].text) && fill_alike(g, i, &w) >= 0.9F;
        two = n == most ? true : n > most ? false : two;
        best = n > most ? k : best;
        most = n > most ? n : most;
    }
    return two ? 0 : best;
}

/* Returns the clause of word `at`; n 0: none. */
static struct span clause_at(const struct filling *g, int at)
{
    for (int c = 0; c < g->clauses->n; c++) {
        struct span k = g->clauses->c[c].all;
        if (&g->s.w[at] >= k.w && &g->s.w[at] < k.w + k.n)
            return k;
    }
    return (struct span){.n = 0};
}

/* Returns whether the clause of word `at` turns things off. */
static bool turns_off(const struct filling *g, int at)
{
    struct span k = clause_at(g, at);
    for (int i = 0; i < k.n; i++)
        if (words_is(k, i, OFF))
            return true;
    return false;
}

/* Returns the words of a tick's name: "hidden files" of "Show hidden files". */
static void tick_words(const struct form_line *l, struct match_words *name)
{
    fill_words(l->name, name);
    const struct word verb = {.text = name->w[0].text};
    if (name->n > 1 && words_is((struct span){&verb, 1}, 0, SHOWS))
        memmove(name->w, name->w + 1, (size_t)--name->n * sizeof *name->w);
}

/* Doubts a clause that turns something off and names two ticks: the word may be meant for one of them. */
static void doubt_ticks(struct filling *g)
{
    const struct word *off = NULL;
    for (int i = 0; i < g->form->n; i++) {
        struct match_words name;
        int at;
        if (g->form->l[i].kind != LINE_TICK)
            continue;
        tick_words(&g->form->l[i], &name);
        if (!has_all(g, &name, &at) || !turns_off(g, at))
            continue;
        if (off == clause_at(g, at).w)
            g->doubt = "a clause turns one of two things off";
        off = clause_at(g, at).w;
    }
}

/* Returns the bits of the words of a choice, which are not values of fields. */
static uint64_t words_in(const struct filling *g, const char *text)
{
    struct match_words w;
    uint64_t bits = 0;
    fill_words(text, &w);
    for (int i = 0; i < g->s.n; i++)
        bits |= fill_alike(g, i, &w) >= 0.9F ? 1ULL << i : 0;
    return bits;
}

/* Turns the ticks that the task names on or off.  Returns the bits of their words. */
static uint64_t fill_ticks(struct filling *g)
{
    uint64_t ticked = 0;
    int keys = 0;
    doubt_ticks(g);
    for (int i = 0; i < g->form->n; i++) {
        const struct form_line *l = &g->form->l[i];
        struct match_words name;
        int at;
        if (l->kind != LINE_TICK)
            continue;
        tick_words(l, &name);
        if (!has_all(g, &name, &at))
            continue;
        keys += !strcmp(l->of->e->role, "toggle button");
        if (keys > 1) /* keys of a calculator */
            g->doubt = "two keys are pressed, and their order counts";
        g->value[i] = strcmp(l->v[0].text, turns_off(g, at) ? "no" : "yes") != 0;
        ticked |= words_in(g, l->name);
    }
    return ticked;
}

/* Chooses the button of a row: "open 2026-105". */
static void fill_row_buttons(struct filling *g)
{
    for (int i = 0; i < g->form->n; i++)
        for (int k = 1; k < g->form->l[i].n && g->form->l[i].kind == LINE_BUTTON; k++) {
            const struct form_value *v = &g->form->l[i].v[k];
            struct match_words w;
            int at;
            fill_words(v->text, &w);
            if (*v->c->row && has_all(g, &w, &at)) {
                g->value[i] = k;
                g->used |= words_in(g, v->text);
            }
        }
}

static void fill_choices(struct filling *g)
{
    fill_row_buttons(g);
    uint64_t ticked = fill_ticks(g), used;
    for (int i = 0; i < g->form->n; i++) {
        const struct form_line *l = &g->form->l[i];
        used = g->used;
        int k = l->kind == LINE_LIST ? mentioned(g, l) : 0;
        if (l->kind == LINE_LIST && !k) { /* "make it dark, with the night light" */
            g->used |= ticked;
            k = mentioned(g, l);
            g->used = used;
        }
        if (l->kind == LINE_LIST)
            g->value[i] = is_ambiguous(g, i, l->v[k].text) ? 0 : k;
        else if (l->kind == LINE_ROW)
            g->value[i] = best_row(g, l);
        if (l->kind != LINE_TICK && l->kind != LINE_BUTTON && g->value[i])
            g->used |= words_in(g, l->v[g->value[i]].text);
    }
    g->used |= ticked; /* "first class" and "first aid" may share a word, but not with a field */
}

/* ---- the button ---------------------------------------------------------------------------------------- */

static bool has_word(const char *name, const char *any)
{
    struct match_words w = {.n = 0};
    match_split(name, false, &w);
    for (int i = 0; i < w.n; i++) {
        const struct word one = {.text = w.w[i].text};
        if (words_is((struct span){&one, 1}, 0, any))
            return true;
    }
    return false;
}

bool fill_leaves(const char *name)
{
    return has_word(name, CLOSING);
}

bool fill_is_left(struct span s, struct span clause, int i)
{
    bool mark = false;
    for (const struct word *w = clause.w; clause.n && w < &s.w[i]; w++)
        mark = mark || w->after;
    return clause.n && !mark && words_is(clause, 0, "cancel|discard|abort|dismiss") && i &&
           words_is(s, i - 1, "the|my|our|this|that") &&
           words_is(s, i, "order|purchase|book|booking|reservation|registration|submission");
}

/* Returns whether a button that the task does not name may end the form: OK, or one that begins with a verb
 * of the task, but none that deletes or opens a dialog. */
static bool may_end(const struct filling *g, const char *name)
{
    struct match_words w = {.n = 0};
    match_split(name, false, &w);
    if (!w.n || has_word(name, DELETES) || strstr(name, "...") || strstr(name, "\xe2\x80\xa6"))
        return false;
    const struct word first = {.text = w.w[0].text};
    if (words_is((struct span){&first, 1}, 0, ENDINGS))
        return true;
    for (int c = 0; c < g->clauses->n; c++) {
        struct match_words verb = {.n = 0};
        match_split(g->clauses->c[c].all.w[0].text, false, &verb);
        if (g->clauses->c[c].known && verb.n && match_alike(verb.w[0].text, w.w[0].text) >= 0.95F)
            return true;
    }
    return false;
}

/* Returns whether a clause has words of a button and those of another line: "cancel the newsletter". */
static bool means_line(const struct filling *g, const char *button, bool rows)
{
    struct match_words name;
    fill_words(button, &name);
    for (int i = 0; i < g->s.n; i++) {
        struct span k = clause_at(g, i);
        if (fill_alike(g, i, &name) < 0.7F)
            continue;
        for (int w = 0; w < k.n; w++) {
            int at = (int)(k.w + w - g->s.w);
            struct match_words word = {.n = 0};
            match_split(k.w[w].text, false, &word);
            bool means = g->used >> at & 1;
            for (int l = 0; l < g->form->n && word.n && !match_is_filler(k.w[w].text); l++) {
                const struct form_line *line = &g->form->l[l];
                struct match_words have = {.n = 0};
                if (line->kind > LINE_ROW || (line->kind == LINE_ROW && !rows))
                    continue;
                match_split(line->kind == LINE_ROW ? "" : line->name, false, &have);
                for (int v = 0; v < line->n && line->kind != LINE_FIELD && line->kind != LINE_TICK; v++) {
                    struct match_words value = {.n = 0};
                    match_split(line->v[v].text, false, &value);
                    means = means || match_among(&word.w[0], &value) > 0;
                }
                means = means || match_among(&word.w[0], &have) > 0;
            }
            if (means && fill_alike(g, at, &name) < 0.7F)
                return true;
        }
    }
    return false;
}

/* Returns whether the words follow a verb of another deed: "give the payment back". */
static bool is_object(const struct filling *g, const struct match_words *words)
{
    for (int c = 0; c < g->clauses->n; c++) {
        const struct clause *k = &g->clauses->c[c];
        int from = (int)(k->all.w - g->s.w);
        bool other = k->known && k->deed != DEED_PRESS && k->deed != DEED_CHOOSE &&
                     !words_is(k->all, 0, "go|show|open|display|view|use") &&
                     fill_alike(g, from, words) < 0.7F;
        for (int i = from + 1; other && i < from + k->all.n; i++)
            if (fill_alike(g, i, words) >= 0.7F)
                return true;
    }
    return false;
}

/* Returns whether the task may mean another button than that of its words: "help me order", "send it
 * back". */
static bool means_other(const struct filling *g, const struct form_line *l, int named)
{
    struct match_words own, other;
    int left = 0, at;
    fill_words(l->v[named].text, &own);
    if (fill_leaves(l->v[named].text) && is_object(g, &own))
        return true;
    for (int k = 1; k < l->n; k++) {
        fill_words(l->v[k].text, &other);
        if (k == named || (!fill_leaves(l->v[named].text) && !has_all(g, &other, &at)))
            continue;
        for (int i = 0; i < g->s.n; i++) {
            if (fill_alike(g, i, &other) < 0.7F || fill_alike(g, i, &own) >= 0.7F)
                continue;
            if (other.n > 1 || !fill_is_left(g->s, clause_at(g, i), i) || left++)
                return true;
        }
    }
    return false;
}

/* Returns the button whose words the task has, else with new values the only one that ends the form. */
static int find_button(struct filling *g, const struct form_line *l, bool changed)
{
    int named = mentioned(g, l), end = 0;
    for (int c = 0; c < g->clauses->n && !named; c++) /* "cancel the order" does not press Order */
        for (int k = 1; k < l->n; k++)
            named = resolve_same(l->v[k].text, g->clauses->c[c].all.w[0].text) ? k : named;
    const char *name = l->v[named].text;
    bool leaves = named && fill_leaves(name), deletes = named && has_word(name, DELETES);
    if (named && (((leaves || deletes) && means_line(g, name, leaves)) || means_other(g, l, named)))
        g->doubt = "a button or another element of the form may be meant";
    for (int k = 1; k < l->n && !named; k++)
        if (!fill_leaves(l->v[k].text))
            end = end ? -1 : k;
    return named ? named : changed && end > 0 && may_end(g, l->v[end].text) ? end : 0;
}

bool form_fill(const struct form *form, struct span s, const struct clauses *clauses, int *value,
               const char **doubt)
{
    struct filling g = {.form = form, .s = s, .clauses = clauses, .value = value};
    bool changed = false, menu = false, closes = false;
    for (int c = 0; c < clauses->n; c++)
        closes = closes || clauses->c[c].deed == DEED_CLOSE;
    memset(value, 0, FORM_LINES * sizeof *value);
    for (int i = 0; i < form->n; i++)
        if (form->l[i].kind == LINE_FIELD && !form->l[i].twin)
            fill_by_name(&g, i);
    fill_choices(&g);
    fill_unnamed(&g);
    for (int i = 0; i < form->n; i++)
        changed = changed || value[i];
    for (int i = 0; i < form->n; i++) {
        if (form->l[i].kind == LINE_MENU)
            value[i] = closes ? 0 : mentioned(&g, &form->l[i]); /* the item Close closes a tab only */
        menu = menu || (form->l[i].kind == LINE_MENU && value[i]);
        if (form->l[i].kind == LINE_BUTTON && !menu && !value[i])
            value[i] = find_button(&g, &form->l[i], changed);
        changed = changed || value[i];
    }
    *doubt = g.doubt ? g.doubt : *doubt;
    return changed;
}
