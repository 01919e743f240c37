/* fill.c - the values that a task names for the lines of a form, by rules.
 *
 * Each option, tick, row, tab, menu item and button is a name.  Names whose words the task has are taken,
 * those with more words first; a word counts for one name only.  Verbs and fields must explain the other
 * words of the sentence (cover.c), so a name that is taken wrongly leaves words open. */
#include "planner/asked.h"
#include "planner/lexicon.h"

#include "plain/resolve.h"

#include <stdlib.h>
#include <string.h>

struct match_words fill_words(const char *text)
{
    struct match_words all = match_words_of(text), out = {.n = 0};
    for (int i = 0; i < all.n; i++) {
        bool ends = i == all.n - 1 && text_choice("in|on|out|up|with|as", all.w[i].text) >= 0; /* "log out" */
        if (!match_is_filler(all.w[i].text) || all.n == 1 || ends)
            out.w[out.n++] = all.w[i];
    }
    return out;
}

bool fill_has(const char *text, const char *any)
{
    struct match_words w = match_words_of(text);
    for (int i = 0; i < w.n; i++)
        if (text_choice(any, w.w[i].text) >= 0)
            return true;
    return false;
}

bool fill_leaves(const char *name)
{
    return fill_has(name, CLOSING);
}

bool fill_is_left(const struct asked *a, int i)
{
    const struct clause *k = asked_clause(a, i);
    bool mark = !k || !words_is(k->all, 0, "cancel|discard|abort|dismiss");
    for (const struct word *w = k ? k->all.w : NULL; w && w < &a->s.w[i]; w++)
        mark = mark || w->after;
    return !mark && words_is(a->s, i - 1, "the|my|our|this|that") &&
           words_is(a->s, i, "order|purchase|book|booking|reservation|registration|submission");
}

float fill_alike(const struct asked *a, int i, const struct match_words *w)
{
    float least = a->w[i].n > 0;
    bool denies = words_is(a->s, i, "not|nothing") && !words_is(a->s, i + 1, "now|today|yet");
    if (HAS(a->typed, i) || i == a->file || denies || fill_is_left(a, i) ||
        (words_is(a->s, i, "leave") && words_is(a->s, i + 1, PRONOUNS))) /* "leave it" is left as it is */
        return 0;
    for (int k = 0; k < a->w[i].n && least > 0; k++) {
        float v = match_among(&a->w[i].w[k], w);
        least = v < least ? v : least;
    }
    return least;
}

/* Returns the bits of the task's words that are like those of a name; 0 unless it has all of them. */
static uint64_t bits_of(const struct asked *a, const struct match_words *w, float least)
{
    uint64_t bits = 0;
    for (int k = 0; k < w->n; k++) {
        struct match_words one = {.w = {w->w[k]}, .n = 1};
        uint64_t found = 0;
        for (int i = 0; i < a->s.n; i++)
            found |= fill_alike(a, i, &one) >= least ? BIT(i) : 0;
        if (!found)
            return 0;
        bits |= found;
    }
    return bits;
}

/* Returns whether the clauses of some words turn things off. */
static bool turns_off(const struct asked *a, uint64_t bits)
{
    const struct clause *k = bits ? asked_clause(a, __builtin_ctzll(bits)) : NULL;
    for (int i = 0; k && i < k->all.n; i++)
        if (words_is(k->all, i, OFF))
            return true;
    return false;
}

/* ---- names --------------------------------------------------------------------------------------------- */

struct name { /* of a value whose words the task has */
    int value, words;
    uint64_t bits;
    bool two; /* another value of the line has as many */
};

/* Returns the name of value k of a line in the task: of a tick without its verb ("hidden files" of "Show
 * hidden files"), of rows the words that the task has. */
static struct name name_of(const struct asked *a, const struct form_line *l, int k)
{
    const char *text = l->kind == LINE_TICK        ? l->name
                       : l->kind == LINE_MENU && k ? l->v[k].c->name
                                                   : l->v[k].text;
    struct match_words w = fill_words(text);
    struct name n = {.value = k};
    if (l->kind == LINE_TICK && w.n > 1 && text_choice(SHOWS, w.w[0].text) >= 0)
        memmove(w.w, w.w + 1, (size_t)--w.n * sizeof *w.w);
    if (l->kind == LINE_TICK &&
        fill_has(l->name, CONSENT)) /* "I agree" for "I have read the rules and agree" */
        for (int i = 0; i < w.n; i++)
            if (text_choice(CONSENT, w.w[i].text) >= 0) {
                w.w[0] = w.w[i];
                w.n = 1;
            }
    for (int i = 0; i < a->s.n && l->kind == LINE_ROW; i++)
        n.bits |= !match_is_filler(a->s.w[i].text) && fill_alike(a, i, &w) >= 0.9F ? BIT(i) : 0;
    if (l->kind != LINE_ROW)
        n.bits = bits_of(a, &w, l->of && l->of->kind == CANDIDATE_ROW ? 0.9F : 0.7F); /* rows are data */
    n.words = l->kind == LINE_ROW ? __builtin_popcountll(n.bits) : n.bits ? w.n : 0;
    if (l->kind == LINE_TICK) /* values: now, other */
        n.value = strcmp(l->v[0].text, turns_off(a, n.bits) ? "no" : "yes") != 0;
    return n;
}

/* Returns the longest name of a line's values that has words beside `used` (bits). */
static struct name longest(const struct asked *a, const struct form_line *l, uint64_t used)
{
    struct name best = {.words = 0};
    int last = l->kind == LINE_TICK ? 1 : l->n;
    for (int k = l->kind == LINE_LIST || l->kind == LINE_TICK ? 0 : 1; k < last; k++) {
        struct name n = name_of(a, l, k);
        if (!(n.bits & ~used) || (l->kind == LINE_BUTTON && !*l->v[k].c->row))
            continue;
        best.two = n.words == best.words || (n.words < best.words && best.two);
        best = n.words > best.words ? n : best;
    }
    return best;
}

/* Returns whether another list has the option too, and the task names neither. */
static bool is_ambiguous(const struct asked *a, int line, int value)
{
    const struct form *form = &a->form;
    struct match_words name = fill_words(form->l[line].name);
    for (int i = 0; i < form->n && form->l[line].kind == LINE_LIST && !bits_of(a, &name, 0.7F); i++)
        for (int k = 0; k < form->l[i].n && form->l[i].kind == LINE_LIST && i != line; k++)
            if (!strcmp(form->l[i].v[k].text, form->l[line].v[value].text))
                return true;
    return false;
}

/* Turns the other ticks of a list off after "only" at word i: "just ham and olives". */
static void fill_others(struct asked *a, int i)
{
    int next = i + 1, by = -1;
    while (next < a->s.n && match_is_filler(a->s.w[next].text))
        next++;
    for (int l = 0; l < a->form.n && next < a->s.n; l++)
        if (a->form.l[l].kind == LINE_TICK && a->form.l[l].of->kind == CANDIDATE_ROW &&
            HAS(a->named[l], next))
            by = l;
    for (int l = 0; l < a->form.n && by >= 0; l++) {
        const struct form_line *o = &a->form.l[l];
        if (o->kind != LINE_TICK || a->named[l] || o->of->e->parent != a->form.l[by].of->e->parent)
            continue;
        a->doubt = o->cut ? "the list has other rows" : a->doubt;
        a->reply.value[l] = !strcmp(o->v[0].text, "yes");
    }
    for (int k = 0; k < a->s.n && by >= 0; k++)
        if (k == i || (words_is(a->s, k, "others|other|rest|else|stuff|not|but|nothing") && k > next))
            a->covered |= BIT(k);
}

/* Takes names of options, ticks, rows, pages and buttons of rows: those with more words first. */
static void fill_choices(struct asked *a)
{
    const struct clause *off = NULL;
    uint64_t used = 0;
    int keys = 0;
    for (int words = MATCH_WORDS; words; words--) {
        uint64_t now = 0;
        for (int i = 0; i < a->form.n; i++) {
            const struct form_line *l = &a->form.l[i];
            if (l->kind == LINE_FIELD || l->kind == LINE_MENU || a->named[i])
                continue;
            struct name n = longest(a, l, used);
            if (n.words != words || n.two || is_ambiguous(a, i, n.value))
                continue;
            const struct clause *k = asked_clause(a, __builtin_ctzll(n.bits));
            if (l->kind == LINE_TICK && turns_off(a, n.bits)) { /* one "off" for two */
                a->doubt = off && off == k ? "a clause turns one of two things off" : a->doubt;
                off = k;
            }
            bool toggle = l->kind == LINE_TICK && !strcmp(l->of->e->role, "toggle button");
            keys += toggle;
            if (keys > 1 || (toggle && !l->name[1])) /* of a calculator */
                a->doubt = "keys are pressed, and their order and number count";
            if (!(n.bits & ~now))
                a->doubt = "two elements have the same words";
            a->named[i] = n.bits;
            a->reply.value[i] = n.value;
            now |= n.bits;
        }
        used |= now;
    }
    for (int i = 0; i < a->s.n; i++)
        if (words_is(a->s, i, "only|just"))
            fill_others(a, i);
    for (int i = 0; i < a->form.n; i++) /* two radio buttons */
        for (int k = 0; k < i; k++) {
            const struct form_line *l = &a->form.l[i], *o = &a->form.l[k];
            if (l->kind == LINE_TICK && o->kind == LINE_TICK && l->of->kind == CANDIDATE_OPTION &&
                o->of->kind == l->of->kind && a->named[i] && a->named[k] &&
                l->of->e->parent == o->of->e->parent)
                a->doubt = "two of these exclude each other";
        }
    for (int i = 0; i < a->form.n; i++)
        if (a->reply.value[i] || a->form.l[i].kind == LINE_TICK)
            a->typed |= a->named[i];
}

/* ---- buttons ------------------------------------------------------------------------------------------- */

/* Returns whether word i has the meaning of a button in other words: "make a reservation" for Book. */
static bool commits(const struct asked *a, int i, const char *name)
{
    const struct clause *k = asked_clause(a, i);
    bool cart =
        words_is(a->s, i - 2, "to|in|into") && words_is(a->s, i - 1, "the|my|our"); /* "to the order" */
    return asked_commits(a, i, name) && k && words_is(k->all, 0, cart ? ORDERS "|add|put" : ORDERS);
}

/* Returns whether the task asks for something, and is not only a statement. */
static bool asks(const struct asked *a)
{
    bool found = false;
    for (int c = 0; c < a->clauses && !found; c++)
        found = (a->k[c].known && !words_is(a->k[c].all, 0, "call|name|rename")) ||
                words_is(a->k[c].all, 0, "have|get|bring|vote");
    for (int i = 0; i < a->s.n && !found; i++)
        found = words_is(a->s, i,
                         "please|i'd|we'd|i'll|we'll|i'm|im|we're|i|we|me|us|my|our|must|should|" WANTS) ||
                (words_is(a->s, i, "has|have") && words_is(a->s, i + 1, "to"));
    return found;
}

/* Returns whether the task only names the wanted things: "a suite with breakfast please". */
static bool is_fragment(const struct asked *a)
{
    for (int c = 0; c < a->clauses; c++)
        if (a->k[c].known || words_is(a->k[c].all, 0, STATES))
            return false;
    for (int l = 0; l < a->form.n; l++) /* "from Bern", without the other town */
        if (a->form.l[l].kind == LINE_FIELD && !a->reply.value[l] && !strcmp(a->form.l[l].v[0].text, "\"\""))
            return false;
    for (int i = 0; i < a->s.n; i++)
        if (words_is(a->s, i,
                     BE "|be|been|has|had|" DO "|" SUBJECTS
                        "|it|this|that|there|too|enough|less|stay|let|get|give|bring|take|come|" WANTS
                        "|" STATES "|my") &&
            !(words_is(a->s, i, "to|my") && i && !words_is(a->s, i, "i")))
            return false;
    return true;
}

/* Returns whether a button that the task does not name may end the form: OK, one that begins with a verb of
 * the task or has its meaning, or one that orders the wanted goods, but none that deletes, or opens a
 * dialog. */
static bool may_end(const struct asked *a, const char *name)
{
    struct match_words w = match_words_of(name);
    if (!w.n || fill_has(name, DELETES "|and|or|without") || strstr(name, "...") ||
        strstr(name, "\xe2\x80\xa6"))
        return false;
    bool may = text_choice(ENDINGS, w.w[0].text) >= 0, goods = fill_has(name, GOODS);
    may = may || a->f->proposal || (asks(a) && !fill_has(name, SERIOUS)) ||
          (is_fragment(a) && (goods || !fill_has(name, SERIOUS)));
    for (int i = 0; i < a->s.n && !may; i++) {
        const struct clause *k = asked_clause(a, i);
        bool verb = k && k->known && k->all.w == &a->s.w[i] && a->w[i].n;
        may = (verb && match_alike(a->w[i].w[0].text, w.w[0].text) >= 0.95F) || commits(a, i, name) ||
              (goods && ((words_is(a->s, i, WANTS) && words_is(a->s, i - 1, "i|we|he|she|they")) ||
                         (words_is(a->s, i, "i'd|we'd") && words_is(a->s, i + 1, "like|love")) ||
                         (words_is(a->s, i, "i'll|we'll") && words_is(a->s, i + 1, "have|take")) ||
                         (words_is(a->s, i - 1, "can|could") && words_is(a->s, i + 1, "get"))));
    }
    return may;
}

/* Doubts a button that leaves or deletes, if its words are beside those of another element, or after another
 * verb: "cancel the newsletter", "give the payment back". */
static void doubt_leaving(struct asked *a, const char *name, uint64_t bits)
{
    const struct clause *k = asked_clause(a, __builtin_ctzll(bits));
    bool leaves = fill_leaves(name);
    if (!k || (!leaves && !fill_has(name, DELETES)))
        return;
    for (int i = 0; i < a->s.n; i++)
        for (int l = 0; l < a->form.n; l++)
            if (asked_clause(a, i) == k && a->named[l] & ~bits & BIT(i) &&
                (leaves || a->form.l[l].kind != LINE_ROW))
                a->doubt = "a button or another element of the form may be meant";
    bool verb = bits & BIT(k->all.w - a->s.w) || !k->known || k->deed == DEED_PRESS || k->deed == DEED_CHOOSE;
    if (leaves && !verb && !words_is(k->all, 0, "go|take|bring|put|ask|let|show|open"))
        a->doubt = "the button may be a word of another command";
}

/* Returns whether a clause begins with the name of a button. */
static bool is_verb(const struct asked *a, const char *name)
{
    for (int c = 0; c < a->clauses; c++)
        if (resolve_same(name, a->k[c].all.w[0].text))
            return true;
    return false;
}

/* Returns the button whose words the task has, else with new values the only one that ends the form. */
static int find_button(struct asked *a, const struct form_line *l, bool changed)
{
    struct name best = {.words = 0};
    int end = 0, other = 0; /* buttons that do not leave, and those whose deed the task has in other words */
    for (int k = 1; k < l->n; k++) {
        struct name n = name_of(a, l, k);
        bool same = n.bits && n.words == best.words && n.bits == best.bits, exact = is_verb(a, l->v[k].text);
        if ((n.bits & ~best.bits && best.bits & ~n.bits) ||
            (same && exact == is_verb(a, l->v[best.value].text)))
            a->doubt = "two buttons may be meant";
        best = n.words > best.words || (same && exact) ? n : best;
        int i = 0;
        while (i < a->s.n && !commits(a, i, l->v[k].text))
            i++;
        other = i == a->s.n ? other : other ? -1 : k;
        end = fill_leaves(l->v[k].text) ? end : end ? -1 : k;
    }
    bool only = a->form.n == 1 && end > 0; /* a question */
    end = other ? other : end;
    if (!best.bits && only && !changed && end > 0 && !fill_has(l->v[end].text, DELETES) &&
        (other || words_is(a->s, 0, "yes|yeah|yep")))
        return end;
    if (best.bits)
        doubt_leaving(a, l->v[best.value].text, best.bits);
    for (int i = 0; i < a->s.n; i++) /* "I have booked a suite" */
        if (HAS(best.bits, i) && text_ends(a->s.w[i].text, "ed") &&
            !fill_has(l->v[best.value].text, a->w[i].w[0].text))
            a->doubt = "the button's words may describe something";
    if (best.bits &&
        words_is(a->s, 64 - __builtin_clzll(best.bits), "is|are|was|were|has|had|will|should|came"))
        a->doubt = "the button's words may describe something"; /* "my order was large" */
    return best.bits ? best.value : changed && end > 0 && may_end(a, l->v[end].text) ? end : 0;
}

/* Returns the menu item whose words the task has; 0: none. */
static int find_item(const struct asked *a, const struct form_line *l)
{
    for (int c = 0; c < a->clauses; c++)
        if (a->k[c].deed == DEED_CLOSE) /* the item Close closes a tab only */
            return 0;
    struct name n = longest(a, l, 0);
    return n.two ? 0 : n.value;
}

/* Doubts plans for the past: "I voted for it", "the project is done". */
static void doubt_past(struct asked *a, bool values)
{
    for (int i = 0; i < a->s.n; i++) {
        const char *text = a->s.w[i].text;
        if (values && fill_has(text, CONSENT) && words_is(a->s, i - 1, "they|he|she|who|nobody|everybody"))
            a->doubt = "the task may be the opinion of others";
        if (words_is(a->s, i, "say|says|said|think|thinks|told") && words_is(a->s, i - 1, "they|he|she"))
            a->doubt = "the task may be the opinion of others";
        bool past = text_ends(text, "ed") && !text_ends(text, "eed") &&
                    words_is(a->s, i - 1, "i|we|he|she|they|have|has|i've|we've|already");
        if ((past && !HAS(a->typed, i) && !words_is(a->s, i + 1, "to")) ||
            (values && words_is(a->s, i, "done|finished")))
            a->doubt = "the task may describe the past";
    }
}

bool asked_fill(struct asked *a)
{
    bool changed = a->file >= 0, menu = changed; /* Save As is used */
    int *value = a->reply.value;
    for (int c = 0; c < a->clauses; c++)
        if (words_is(a->k[c].all, 0, FIELD_VERBS)) /* "mail ana@lima.pt" */
            a->doubt = "the name of a field may be a verb";
    fill_by_name(a);
    fill_choices(a);
    fill_unnamed(a);
    for (int i = 0; i < a->form.n; i++)
        changed = changed || value[i];
    for (int i = 0; i < a->form.n; i++) {
        const struct form_line *l = &a->form.l[i];
        if (l->kind == LINE_MENU && !menu)
            menu = (value[i] = find_item(a, l)) != 0;
        if (l->kind == LINE_BUTTON && !menu && !value[i])
            value[i] = find_button(a, l, changed);
        changed = changed || value[i];
    }
    doubt_past(a, changed && !menu);
    return changed;
}
