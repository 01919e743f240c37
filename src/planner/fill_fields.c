/* fill_fields.c - the texts that a task names for fields: see fill.c. */
#include "planner/fill_impl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define JOINTS "is|are|=|to|as|should|be|called|named|name|id|number|address|of|will|shall|with|reads|says"
#define NAMING "for|under|by|as|of|named|called"
#define DAYS                                                                                                 \
    "monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|may|june|july|"   \
    "august|september|october|november|december|christmas|easter"
#define NAMES                                                                                                \
    "name|guest|customer|person|recipient|passenger|owner|author|contact|client|user|username|reader"
#define PLACES  "city|town|place|from|origin|location"
#define TARGETS "to|destination|city|town"

enum { PHONE_DIGITS = 5 }; /* at least: "for 4" gives none */

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

/* A word with a capital inside a sentence, a digit or quotation marks, or one that follows "named". */
static bool is_value_word(const struct filling *g, int i)
{
    bool named = i && words_is(g->s, i - 1, "named|called|as|titled|labelled|saying") &&
                 !match_is_filler(g->s.w[i].text);
    bool first = i == 0 || (g->s.w[i - 1].after && g->s.w[i - 1].after != ',');
    if ((g->used >> i & 1) || (!g->s.w[i].quoted && match_is_filler(g->s.w[i].text)))
        return false;
    return named || clause_is_hard(words_part(g->s, i, g->s.n), 0, first);
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

/* Returns whether word i begins the recipient of a text: "send a message to Ana". */
static bool is_recipient(const struct filling *g, int i)
{
    for (int c = 0; c < g->clauses->n; c++) {
        struct span k = g->clauses->c[c].all;
        if (&g->s.w[i] >= k.w && &g->s.w[i] < k.w + k.n)
            return words_is(g->s, i, "to") && words_is(k, 0, "write|send|type|give|submit|mail");
    }
    return false;
}

void fill_by_name(struct filling *g, int line)
{
    struct match_words name;
    fill_words(g->form->l[line].name, &name);
    for (int i = 0; i < g->s.n && !g->value[line]; i++) {
        int at = i, joint = 0;
        for (int k = 0; k < name.n && at < g->s.n && k == at - i; k++) {
            struct match_words one = {.w = {name.w[k]}, .n = 1};
            at += fill_alike(g, at, &one) >= 0.7F;
        }
        if (at - i != name.n || !name.n)
            continue;
        if (i && isdigit((unsigned char)g->s.w[i - 1].text[0]) && assign(g, line, i - 1, i))
            return;
        while (at < g->s.n && words_is(g->s, at, JOINTS "|the|a|my|his|her") && !is_recipient(g, at))
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

/* Returns whether the clause ends at word i, or continues with the place of a field: "in the field". */
static bool ends_at(const struct filling *g, int i)
{
    return i == g->s.n || g->s.w[i - 1].after || words_is(g->s, i, "in|into|as|here|and|then");
}

/* Assigns the value [i, to) by its kind: an address, a telephone number, a place, or a name after "for". */
static void fill_by_kind(struct filling *g, int i, int to)
{
    const char *text = g->s.w[i].text;
    bool address = strchr(text, '@'), number = isdigit((unsigned char)text[0]);
    bool follows = i && !g->s.w[i - 1].after && !words_is(g->s, i, DAYS);
    const char *any = address                                     ? "email|mail|e-mail"
                      : number                                    ? "phone|telephone|mobile"
                      : !follows                                  ? ""
                      : words_is(g->s, i - 1, "from|in")          ? PLACES
                      : words_is(g->s, i - 1, "to|towards|until") ? TARGETS
                      : words_is(g->s, i - 1, NAMING)             ? NAMES
                                                                  : "";
    int found = -1, digits = 0, fields = 0, only = 0;
    for (int w = i; w < to; w++)
        for (const char *at = g->s.w[w].text; *at; at++)
            digits += isdigit((unsigned char)*at) != 0;
    for (int k = 0; k < g->form->n; k++)
        if (g->form->l[k].kind == LINE_FIELD) {
            fields++;
            only = k;
        }
    bool typed = g->s.w[i].quoted || (i && words_is(g->s, i - 1, "type|enter|write|input|put"));
    if (typed && ends_at(g, to) && fields == 1 && !g->value[only] && assign(g, only, i, to))
        return;
    if (!*any || (number && !address && digits < PHONE_DIGITS) || (!strcmp(any, NAMES) && fill_two(g, i, to)))
        return;
    for (int k = 0; k < g->form->n; k++)
        if (g->form->l[k].kind == LINE_FIELD && !g->value[k] && is_named(&g->form->l[k], any))
            found = found < 0 ? k : FORM_LINES;
    if (found >= 0 && found < FORM_LINES)
        assign(g, found, i, to);
}

/* Returns whether a field is called so. */
static bool names_field(const struct filling *g, int i)
{
    for (int k = 0; k < g->form->n; k++) {
        struct match_words name;
        fill_words(g->form->l[k].name, &name);
        if (g->form->l[k].kind == LINE_FIELD && fill_alike(g, i, &name) >= 0.7F)
            return true;
    }
    return false;
}

void fill_unnamed(struct filling *g)
{
    for (int i = 0, to; i < g->s.n; i = to) {
        to = value_end(g, i);
        if (to > i && !names_field(g, i))
            fill_by_kind(g, i, to);
        to = to > i ? to : i + 1;
    }
}
