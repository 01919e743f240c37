/* fill.c - the values that a task names for the lines of a form, by rules.
 *
 * An option, a tick or a row is meant if the task has all its words.  A field gets the words after its
 * name ("name is Ana", "4 nights"), or words of its kind: an address with @ for "Email", a name for
 * "Name" or "Guest", the only value for the only field.  The button is the one that the task names, else
 * the one that ends the form. */
#include "planner/fill.h"

#include "plain/resolve.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define JOINTS "is|are|=|to|as|should|be|called|named|name|id|number|address|of|will|shall|with|reads|says"
#define OFF    "off|untick|uncheck|disable|deactivate|remove|drop|deselect|unselect"
#define CLOSING                                                                                              \
    "cancel|close|help|no|discard|reset|defaults|back|quit|abort|later|more|about|options|stay|keep"
#define SHOWS "show|use|enable|play|allow|print|display|activate" /* of "Show hidden files" */
#define NAMES                                                                                                \
    "name|guest|customer|person|recipient|passenger|owner|author|contact|client|user|username|reader"
#define PLACES  "city|town|place|from|origin|location"
#define TARGETS "to|destination|city|town"

struct filling {
    const struct form *form;
    struct span s;
    const struct clauses *clauses;
    int *value;
    uint64_t used; /* bits of the words that are values of fields */
};

static void words_of(const char *text, struct match_words *out)
{
    struct match_words all = {.n = 0};
    *out = (struct match_words){.n = 0};
    match_split(text, false, &all);
    for (int i = 0; i < all.n; i++)
        if (!match_is_filler(all.w[i].text) || all.n == 1)
            out->w[out->n++] = all.w[i];
}

/* Returns how well word i of the task is one of these. */
static float alike(const struct filling *g, int i, const struct match_words *w)
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
        while (i < g->s.n && alike(g, i, &one) < 0.7F)
            i++;
        if (i == g->s.n)
            return false;
        *at = i < *at ? i : *at;
    }
    return w->n > 0;
}

/* ---- fields -------------------------------------------------------------------------------------------- */

/* Returns the value of a field's line that consists of words [i, to); 0: none. */
static int value_of(const struct filling *g, const struct form_line *l, int i, int to)
{
    char *text = words_text(words_part(g->s, i, to));
    size_t n = strlen(text);
    int found = 0;
    for (int k = 1; k < l->n && !found; k++)
        if (strlen(l->v[k].text) == n + 2 && !memcmp(l->v[k].text + 1, text, n))
            found = k;
    free(text);
    return found;
}

/* A word with a capital, a digit or quotation marks, or one that follows "named". */
static bool is_value_word(const struct filling *g, int i)
{
    bool named = i && words_is(g->s, i - 1, "named|called|as|titled|labelled|saying") &&
                 !match_is_filler(g->s.w[i].text);
    return !(g->used >> i & 1) && (named || clause_is_hard(words_part(g->s, i, g->s.n), 0, i == 0));
}

/* Returns the end of the words with capitals, digits or quotation marks that begin at i. */
static int value_end(const struct filling *g, int i)
{
    int to = i;
    while (to < g->s.n && is_value_word(g, to) && !(to > i && (g->s.w[to - 1].after || g->s.w[to].quoted)))
        to++;
    return to;
}

static bool assign(struct filling *g, int line, int i, int to)
{
    int v = to > i ? value_of(g, &g->form->l[line], i, to) : 0;
    uint64_t words = 0;
    for (int k = i; k < to; k++)
        words |= 1ULL << k;
    if (!v || (g->used & words))
        return false;
    g->value[line] = v;
    g->used |= words;
    return true;
}

static bool is_named(const struct form_line *l, const char *any)
{
    struct match_words name = {.n = 0};
    match_split(l->name, false, &name);
    for (int i = 0; i < name.n; i++) {
        const struct word w = {.text = name.w[i].text};
        if (words_is((struct span){&w, 1}, 0, any))
            return true;
    }
    return false;
}

/* Assigns the value before the name of a field at word i: "Lisbon in the city field". */
static bool fill_before(struct filling *g, int line, int i)
{
    while (i && words_is(g->s, i - 1, "the|a|an|my|his|her|its|their"))
        i--;
    if (!i || !words_is(g->s, i - 1, "in|into|as|under|for|to"))
        return false;
    int to = i - 1, from = to;
    while (from && is_value_word(g, from - 1) && !g->s.w[from - 1].after)
        from--;
    return assign(g, line, from, to);
}

/* Assigns the words after the name of a field, or a number before it. */
static void fill_by_name(struct filling *g, int line)
{
    struct match_words name;
    words_of(g->form->l[line].name, &name);
    for (int i = 0; i < g->s.n && !g->value[line]; i++) {
        int at = i, joint = 0;
        for (int k = 0; k < name.n && at < g->s.n && k == at - i; k++) {
            struct match_words one = {.w = {name.w[k]}, .n = 1};
            at += alike(g, at, &one) >= 0.7F;
        }
        if (at - i != name.n || !name.n)
            continue;
        if (i && isdigit((unsigned char)g->s.w[i - 1].text[0]) && assign(g, line, i - 1, i))
            return;
        while (at < g->s.n && words_is(g->s, at, JOINTS "|the|a|my|his|her"))
            joint = ++at;
        int to = value_end(g, at);
        if (to == at && !joint && at < g->s.n && is_named(&g->form->l[line], NAMES "|password") &&
            !match_is_filler(g->s.w[at].text) &&
            (at + 1 == g->s.n || g->s.w[at].after || words_is(g->s, at + 1, "and|with")))
            to = at + 1; /* "user ana with password x" */
        if (to == at && joint && at < g->s.n && !match_is_filler(g->s.w[at].text))
            for (to = at + 1; to < g->s.n && !g->s.w[to - 1].after && !words_is(g->s, to, "and|with|for");)
                to++;
        if (assign(g, line, at, to) || fill_before(g, line, i))
            return;
    }
}

/* Assigns a name of two words to "First name" and "Last name". */
static bool fill_two(struct filling *g, int i, int to)
{
    int first = -1, last = -1;
    for (int k = 0; k < g->form->n; k++)
        if (g->form->l[k].kind == LINE_FIELD && !g->value[k]) {
            first = is_named(&g->form->l[k], "first|given|forename") ? k : first;
            last = is_named(&g->form->l[k], "last|family|surname") ? k : last;
        }
    return first >= 0 && last >= 0 && to - i > 1 && assign(g, first, i, to - 1) &&
           assign(g, last, to - 1, to);
}

/* Assigns the value [i, to) by its kind. */
static void fill_by_kind(struct filling *g, int i, int to)
{
    const char *text = g->s.w[i].text;
    const char *any = strchr(text, '@')                                ? "email|mail|e-mail"
                      : isdigit((unsigned char)text[0])                ? "phone|number|telephone|mobile"
                      : i && words_is(g->s, i - 1, "from|in")          ? PLACES
                      : i && words_is(g->s, i - 1, "to|towards|until") ? TARGETS
                                                                       : NAMES;
    int found = -1, fields = 0, only = -1;
    if (isupper((unsigned char)text[0]) && fill_two(g, i, to))
        return;
    for (int k = 0; k < g->form->n; k++) {
        const struct form_line *l = &g->form->l[k];
        if (l->kind != LINE_FIELD)
            continue;
        fields++;
        only = k;
        found = !g->value[k] && is_named(l, any) ? (found < 0 ? k : FORM_LINES) : found;
    }
    if (fields == 1 && !g->value[only])
        found = only;
    if (found >= 0 && found < FORM_LINES)
        assign(g, found, i, to);
}

/* Returns whether a field is called so. */
static bool names_field(const struct filling *g, int i)
{
    for (int k = 0; k < g->form->n; k++) {
        struct match_words name;
        words_of(g->form->l[k].name, &name);
        if (g->form->l[k].kind == LINE_FIELD && alike(g, i, &name) >= 0.7F)
            return true;
    }
    return false;
}

/* Assigns the values that stand without the name of a field. */
static void fill_unnamed(struct filling *g)
{
    for (int i = 0, to; i < g->s.n; i = to) {
        to = value_end(g, i);
        if (to > i && !names_field(g, i))
            fill_by_kind(g, i, to);
        to = to > i ? to : i + 1;
    }
}

/* ---- choices ------------------------------------------------------------------------------------------- */

/* Returns the value whose words the task has, the longest one; 0: none, or two. */
static int mentioned(const struct filling *g, const struct form_line *l)
{
    int found = 0, most = 0, at;
    bool two = false;
    for (int k = l->kind == LINE_LIST ? 0 : 1; k < l->n; k++) {
        struct match_words w;
        words_of(l->v[k].text, &w);
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
    words_of(g->form->l[line].name, &name);
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
        words_of(l->v[k].text, &w);
        for (int i = 0; i < g->s.n; i++)
            n += !match_is_filler(g->s.w[i].text) && alike(g, i, &w) >= 0.9F;
        two = n == most ? true : n > most ? false : two;
        best = n > most ? k : best;
        most = n > most ? n : most;
    }
    return two ? 0 : best;
}

/* Returns whether the clause of word `at` turns things off. */
static bool turns_off(const struct filling *g, int at)
{
    for (int c = 0; c < g->clauses->n; c++) {
        struct span k = g->clauses->c[c].all;
        bool has = false;
        for (int i = 0; i < k.n; i++)
            has = has || words_is(k, i, OFF);
        if (&g->s.w[at] >= k.w && &g->s.w[at] < k.w + k.n)
            return has;
    }
    return false;
}

/* Marks the words of a chosen option, which are not values of fields. */
static void use_words(struct filling *g, const char *text)
{
    struct match_words w;
    uint64_t used = 0;
    words_of(text, &w);
    for (int i = 0; i < g->s.n; i++)
        used |= alike(g, i, &w) >= 0.9F ? 1ULL << i : 0;
    g->used |= used;
}

static void fill_choices(struct filling *g)
{
    for (int i = 0; i < g->form->n; i++) {
        const struct form_line *l = &g->form->l[i];
        struct match_words name;
        int at;
        words_of(l->name, &name);
        int k = l->kind == LINE_LIST ? mentioned(g, l) : 0;
        const struct word verb = {.text = name.w[0].text};
        if (l->kind == LINE_TICK && name.n > 1 && words_is((struct span){&verb, 1}, 0, SHOWS))
            memmove(name.w, name.w + 1, (size_t)--name.n * sizeof *name.w);
        if (l->kind == LINE_LIST)
            g->value[i] = is_ambiguous(g, i, l->v[k].text) ? 0 : k;
        else if (l->kind == LINE_ROW)
            g->value[i] = best_row(g, l);
        else if (l->kind == LINE_TICK && has_all(g, &name, &at))
            g->value[i] = strcmp(l->v[0].text, turns_off(g, at) ? "no" : "yes") != 0;
        if (g->value[i] && l->kind != LINE_TICK)
            use_words(g, l->v[g->value[i]].text);
    }
}

/* ---- the button ---------------------------------------------------------------------------------------- */

bool fill_leaves(const char *name)
{
    struct match_words w = {.n = 0};
    match_split(name, false, &w);
    for (int i = 0; i < w.n; i++) {
        const struct word one = {.text = w.w[i].text};
        if (words_is((struct span){&one, 1}, 0, CLOSING))
            return true;
    }
    return false;
}

/* Returns the button whose words the task has, else with new values the only one that ends the form. */
static int find_button(const struct filling *g, const struct form_line *l, bool changed)
{
    int named = mentioned(g, l), end = 0;
    for (int k = 1; k < l->n && !named; k++)
        if (!fill_leaves(l->v[k].text))
            end = end ? -1 : k;
    return named ? named : changed && end > 0 ? end : 0;
}

bool form_fill(const struct form *form, struct span s, const struct clauses *clauses, int *value)
{
    struct filling g = {.form = form, .s = s, .clauses = clauses, .value = value};
    bool changed = false;
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
            return false; /* a program, not a form */
        if (form->l[i].kind == LINE_BUTTON)
            value[i] = find_button(&g, &form->l[i], changed);
        changed = changed || value[i];
    }
    return changed;
}
