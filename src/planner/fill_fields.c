/* fill_fields.c - the texts that a task names for fields: see fill.c. */
#include "planner/asked.h"
#include "planner/lexicon.h"
#include "planner/quantity.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { PHONE_DIGITS = 5 /* at least: "for 4" gives none */, NUMBER_WORDS = 6, ALONE_WORDS = 3 };

/* A word with a capital inside a sentence, a digit or quotation marks, or one that follows "named". */
static bool is_value_word(const struct asked *a, int i)
{
    bool named = i && words_is(a->s, i - 1, "named|called|as|titled|labelled|saying") &&
                 !match_is_filler(a->s.w[i].text);
    bool first = i == 0 || (a->s.w[i - 1].after && a->s.w[i - 1].after != ',');
    if (HAS(a->typed, i) || (!a->s.w[i].quoted && match_is_filler(a->s.w[i].text)))
        return false;
    return named || clause_is_hard(words_part(a->s, i, a->s.n), 0, first);
}

/* Returns the end of the words with capitals, digits or quotation marks that begin at i, or of a number. */
static int value_end(const struct asked *a, int i)
{
    char number[MATCH_WORD];
    int to = i, n = HAS(a->typed, i) ? 0 : quantity_number(a->s, i, number);
    if (n > 1 || (n && !isdigit((unsigned char)*a->s.w[i].text) && !words_is(a->s, i, "one")))
        return i + n;
    while (to < a->s.n && is_value_word(a, to) &&
           !(to > i && ((a->s.w[to - 1].after && !quantity_is_year(a->s, to)) || a->s.w[to].quoted ||
                        *a->s.w[to].text == '(')))
        to++;
    return to;
}

static bool assign(struct asked *a, int line, int i, int to)
{
    autofree char *text = words_text(words_part(a->s, i, to));
    const char *name = a->form.l[line].name;
    if ((fill_has(name, "phone|telephone|mobile") && !strpbrk(text, "0123456789")) ||
        (fill_has(name, "email|mail|e-mail") && !strchr(text, '@')))
        return false;
    uint64_t words = 0;
    for (int k = i; k < to; k++) {
        words |= BIT(k);
        if (clause_is_negation(a->s, k))
            return false;
    }
    int v = words & ~a->typed ? form_part(&a->form.l[line], a->s, i, to) : 0;
    if (v <= 0 || (a->typed & words))
        return false;
    size_t n = strlen(text);
    if (!strcmp(a->form.l[line].of->e->role, "password text") && strchr("!?", text[n - 1]) &&
        !a->s.w[to - 1].quoted)
        a->doubt = "the last sign may be of the sentence";
    a->reply.value[line] = v;
    a->typed |= words;
    a->named[line] |= words;
    a->covered |= words;
    return true;
}

/* Assigns the value before the name of a field at word i: "Lisbon in the city field". */
static bool fill_before(struct asked *a, int line, int i)
{
    while (i && words_is(a->s, i - 1, "the|a|an|my|his|her|its|their"))
        i--;
    if (!i || !words_is(a->s, i - 1, "in|into|as|under|for|to"))
        return false;
    int to = i - 1, from = to;
    while (from && is_value_word(a, from - 1) && !a->s.w[from - 1].after)
        from--;
    return assign(a, line, from, to);
}

/* Returns whether word i begins the recipient of a text: "send a message to Ana". */
static bool is_recipient(const struct asked *a, int i)
{
    const struct clause *k = asked_clause(a, i);
    return k && words_is(a->s, i, "to") && words_is(k->all, 0, "write|send|type|give|submit|mail");
}

/* Returns whether word i is in the name of a line of kinds up to this one, but not of `except`. */
static bool is_in_name(const struct asked *a, int i, enum line_kind last, int except)
{
    bool in = false;
    for (int k = 0; k < a->form.n && i < a->s.n && !in; k++) {
        struct match_words name = fill_words(a->form.l[k].name);
        in = k != except && a->form.l[k].kind <= last && fill_alike(a, i, &name) >= 0.7F;
    }
    return in;
}

/* Returns whether word i is the beginning of a name before a number: "temp 37.2". */
static bool is_short(const struct asked *a, int i, const char *name)
{
    return i + 1 < a->s.n && isdigit((unsigned char)*a->s.w[i + 1].text) && a->w[i].n == 1 &&
           strlen(a->w[i].w[0].text) >= 3 && text_starts(name, a->w[i].w[0].text);
}

/* Assigns the words after the name of a field, or a number before it. */
static void fill_line(struct asked *a, int line)
{
    autofree char *bare = xstrdup(a->form.l[line].name); /* without "(kg)" */
    char *unit = strchr(bare, '(');
    struct match_words units = match_words_of(unit ? unit : "");
    if (unit && unit > bare)
        *unit = 0;
    struct match_words name = fill_words(bare);
    char number[MATCH_WORD];
    for (int i = 0; i < a->s.n && !a->reply.value[line]; i++) {
        int at = i, joint = 0;
        for (int k = 0; k < name.n && at < a->s.n && k == at - i; k++) {
            struct match_words one = {.w = {name.w[k]}, .n = 1};
            at += fill_alike(a, at, &one) >= 0.7F || is_short(a, at, name.w[k].text);
        }
        bool numbered = at - i == 1 && name.n == 2 && text_choice("number|no|id|code", name.w[1].text) >= 0 &&
                        at < a->s.n && isdigit((unsigned char)*a->s.w[at].text); /* "book 30118-44" */
        bool of_unit = unit && at == i && fill_alike(a, i, &units) >= 0.7F;
        bool people = at == i && fill_has(bare, "guests|people|persons|adults") && words_is(a->s, i, "of") &&
                      words_is(a->s, i + 1, "us"); /* "four of us" */
        if ((at - i != name.n && !numbered && !of_unit && !people) || !name.n)
            continue;
        if (people)
            a->covered |= BIT(i);
        for (int k = i > NUMBER_WORDS ? i - NUMBER_WORDS : 0; k < i; k++)
            if (quantity_number(a->s, k, number) == i - k && strcmp(number, "1") != 0 &&
                assign(a, line, k, i))
                return;
        if (of_unit || people)
            continue;
        while (at < a->s.n &&
               words_is(a->s, at, JOINTS "|it's|that's|the|a|my|his|her|has|have|changed|moved|now") &&
               !is_recipient(a, at))
            joint = ++at;
        int to = value_end(a, at);
        if (to == at && !joint && at < a->s.n && fill_has(a->form.l[line].name, NAMES "|password") &&
            !match_is_filler(a->s.w[at].text) &&
            (at + 1 == a->s.n || a->s.w[at].after || words_is(a->s, at + 1, "and|with")))
            to = at + 1; /* "user ana with password x" */
        bool other = is_in_name(a, at, LINE_FIELD, line) || words_is(a->s, at, "down|away|again|back");
        if (to == at && joint && at < a->s.n && !match_is_filler(a->s.w[at].text) && !other)
            for (to = at + 1; to < a->s.n && !a->s.w[to - 1].after && !words_is(a->s, to, "and|with|for");)
                to++;
        if (assign(a, line, at, to) || fill_before(a, line, i))
            return;
    }
}

/* Returns whether another field differs only in brackets, which the task does not have: "Phone (home)". */
static bool is_one_of_two(const struct asked *a, int line)
{
    const char *name = a->form.l[line].name, *bracket = strchr(name, '(');
    struct match_words inside = match_words_of(bracket ? bracket : "");
    size_t n = bracket ? (size_t)(bracket - name) : 0;
    for (int i = 0; i < a->form.n && n; i++)
        if (i != line && a->form.l[i].kind == LINE_FIELD && !strncmp(a->form.l[i].name, name, n + 1) &&
            !asked_among(a, &inside, 0.9F))
            return true;
    return false;
}

void fill_by_name(struct asked *a)
{
    for (int i = 0; i < a->form.n; i++)
        if (a->form.l[i].kind == LINE_FIELD && !a->form.l[i].twin && !is_one_of_two(a, i))
            fill_line(a, i);
}

/* Assigns a name of two words to "First name" and "Last name". */
static bool fill_two(struct asked *a, int i, int to)
{
    int first = -1, last = -1;
    for (int k = 0; k < a->form.n; k++)
        if (a->form.l[k].kind == LINE_FIELD && !a->reply.value[k]) {
            first = fill_has(a->form.l[k].name, "first|given|forename") ? k : first;
            last = fill_has(a->form.l[k].name, "last|family|surname") ? k : last;
        }
    return first >= 0 && last >= 0 && to - i > 1 && assign(a, first, i, to - 1) &&
           assign(a, last, to - 1, to);
}

/* Returns whether the clause ends at word i, or continues with the place of a field: "in the field". */
static bool ends_at(const struct asked *a, int i)
{
    return i == a->s.n || a->s.w[i - 1].after || words_is(a->s, i, "in|into|as|here|and|then");
}

/* Assigns the value [i, to) by its kind: an address, a telephone number, a place, or a name after "for". */
static void fill_by_kind(struct asked *a, int i, int to)
{
    const char *text = a->s.w[i].text;
    bool address = strchr(text, '@'), number = isdigit((unsigned char)text[0]);
    bool follows = i && !a->s.w[i - 1].after && !words_is(a->s, i, DAYS);
    const struct clause *clause = asked_clause(a, i);
    if (!clause ||
        (follows && words_is(clause->all, 0, "write|talk|speak|reply|listen") && words_is(a->s, i - 1, "to")))
        return;
    const char *any =
        address                                                               ? "email|mail|e-mail"
        : number && to > i + 1 && isupper((unsigned char)*a->s.w[i + 1].text) ? "address|street"
        : number                                                              ? "phone|telephone|mobile"
        : !follows                                                            ? ""
        : words_is(a->s, i - 1, "from")                                       ? PLACES
        : words_is(a->s, i - 1, "to|towards|until")                           ? TARGETS
        : words_is(a->s, i - 1, NAMING)                                       ? NAMES
        : to > i + 1 && (words_is(a->s, i - 1, "i'm|im|register|enrol|enroll") ||
                         (words_is(a->s, i - 1, "is|am") && words_is(a->s, i - 2, "this|here|i")))
            ? NAMES
        : words_is(a->s, i - 1, "up|him|her|me") && to > i + 1 ? NAMES
                                                               : "";
    int found = -1, digits = 0, fields = 0, only = 0;
    for (int w = i; w < to; w++)
        for (const char *at = a->s.w[w].text; *at; at++)
            digits += isdigit((unsigned char)*at) != 0;
    for (int k = 0; k < a->form.n; k++)
        if (a->form.l[k].kind == LINE_FIELD && *a->form.l[k].of->name) { /* others are editors: edit.c */
            fields++;
            only = k;
        }
    if (words_is(a->s, i - 1, "as") && words_is(a->s, 0, "save|store|export") &&
        words_is(a->s, 1, "as|it|this|that") && !text_starts(a->f->all->title, "Save"))
        return; /* the name of a file */
    bool typed = a->s.w[i].quoted || (i && words_is(a->s, i - 1, "type|enter|write|input|put"));
    if (typed && ends_at(a, to) && fields == 1 && !a->reply.value[only] && assign(a, only, i, to))
        return;
    if (words_is(a->s, i - 1, ADDING) && to > i + 1 && fill_two(a, i, to))
        return;
    if (!*any || (number && !address && digits < PHONE_DIGITS && *any == 'p') ||
        (!strcmp(any, NAMES) && fill_two(a, i, to)))
        return;
    for (int k = 0; k < a->form.n; k++)
        if (a->form.l[k].kind == LINE_FIELD && !a->reply.value[k] && fill_has(a->form.l[k].name, any))
            found = found < 0 ? k : FORM_LINES;
    if (found >= 0 && found < FORM_LINES)
        assign(a, found, i, to);
}

/* Assigns a value to the only empty field whose name ends with the word before it: "Assigned to". */
static void fill_after(struct asked *a, int i, int to)
{
    int found = -1;
    const struct clause *clause = asked_clause(a, i);
    if (!clause || words_is(clause->all, 0, "write|talk|speak|reply|listen|mail|send"))
        return;
    for (int k = 0; k < a->form.n && i && !a->s.w[i - 1].after; k++) {
        struct match_words all = match_words_of(a->form.l[k].name);
        if (a->form.l[k].kind == LINE_FIELD && !a->reply.value[k] && all.n > 1 &&
            words_is(a->s, i - 1, "to|from|by|for|with|at") && words_is(a->s, i - 1, all.w[all.n - 1].text))
            found = found < 0 ? k : FORM_LINES;
    }
    if (found >= 0 && found < FORM_LINES)
        assign(a, found, i, to);
}

/* Assigns a colour to the only field for one, but not that of "the purple size". */
static void fill_colour(struct asked *a)
{
    for (int k = 0; k < a->form.n; k++)
        for (int i = 0; i < a->s.n && a->form.l[k].kind == LINE_FIELD && !a->form.l[k].twin; i++)
            if (!a->reply.value[k] && words_is(a->s, i, COLOURS) && !clause_is_hard(a->s, i, false) &&
                fill_has(a->form.l[k].name, "colour|color") && !is_in_name(a, i + 1, LINE_TICK, k))
                assign(a, k, i, i + 1);
}

/* Assigns a date to the only field that has one. */
static void fill_date(struct asked *a)
{
    char date[MATCH_WORD];
    for (int i = 0; i < a->s.n; i++) {
        int found = -1, n = 0, now;
        for (int k = 0; k < a->form.n; k++)
            if (a->form.l[k].kind == LINE_FIELD && !a->reply.value[k] && !a->form.l[k].twin &&
                (now = quantity_date(a->s, i, a->form.l[k].of->e->value, date)) > 0) {
                found = found < 0 ? k : FORM_LINES;
                n = now;
            }
        if (found >= 0 && found < FORM_LINES)
            assign(a, found, i, i + n);
    }
}

static bool is_of_button(const struct asked *a, int i)
{
    struct match_words word = match_words_of(a->s.w[i].text);
    for (int c = 0; c < a->f->all->n; c++)
        if (a->f->all->c[c].kind != CANDIDATE_FIELD && match_among(&word.w[0], &a->f->all->c[c].words) > 0)
            return true;
    return !word.n || words_is(a->s, i, LIGHT "|" NEGATIONS "|" QUANTITIES "|bye|hello|help|stop");
}

/* Assigns the value in a statement about the only field: "the passphrase is tulip-9". */
static void fill_only(struct asked *a)
{
    int only = -1, fields = 0;
    for (int k = 0; k < a->form.n; k++) {
        fields += a->form.l[k].kind <= LINE_TAB;
        only = a->form.l[k].kind == LINE_FIELD ? k : only;
    }
    if (only < 0 || fields != 1 || a->reply.value[only])
        return;
    bool alone =
        a->clauses == 1 && a->s.n <= ALONE_WORDS && isupper((unsigned char)*a->s.w[0].text) && !a->k[0].known;
    for (int i = 0; i < a->s.n && alone; i++) /* "Maribor" */
        alone = isupper((unsigned char)*a->s.w[i].text) && !is_in_name(a, i, LINE_BUTTON, -1) &&
                !a->s.w[i].after && !match_is_filler(a->s.w[i].text) && !is_of_button(a, i);
    if (alone && assign(a, only, 0, a->s.n))
        return;
    struct match_words name = fill_words(a->form.l[only].name);
    for (int i = 1; i < a->s.n; i++) {
        int head = i - 1 - words_is(a->s, i - 1, "shall|should|will|must");
        if (words_is(a->s, i, "is|be|are") && head > 0 && words_is(a->s, head - 1, "my|the|our") &&
            fill_alike(a, head, &name) >= 0.7F && assign(a, only, i + 1, value_end(a, i + 1))) {
            a->covered |= BIT(head);
            return;
        }
    }
}

void fill_unnamed(struct asked *a)
{
    fill_colour(a);
    fill_date(a);
    fill_only(a);
    for (int i = 0, to; i < a->s.n; i = to) {
        to = value_end(a, i);
        if (to > i && !is_in_name(a, i, LINE_FIELD, -1))
            fill_by_kind(a, i, to), fill_after(a, i, to);
        to = to > i ? to : i + 1;
    }
}
