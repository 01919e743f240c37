/* values.c - frames with values: fields of a form, texts, sums. */
#include "planner/planner_impl.h"

#include "atspi/roles.h"
#include "plain/resolve.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EDITOR_HEIGHT = 60 }; /* px; fields of one line are lower */
#define JOINTS "to|is|as|with|by|at|be|="

bool frame_field(const struct frame *f, struct span name, struct pick *out)
{
    struct match_words q = {.n = 0};
    frame_query(f, name, false, &q);
    if (!q.n || !frame_find(f, &q, CANDIDATE_FIELD, 0, out))
        return false;
    bool all = true;
    for (int i = 0; i < q.n; i++)
        all = all && out->score.found >> i & 1;
    return all && out->score.score >= SCORE_LEAST && (out->lead >= LEAD_LEAST || !out->second);
}

/* Finds the option that a value names, in the list that `list` names (n 0: any). */
static bool find_option(const struct frame *f, struct span list, struct span value, struct pick *out)
{
    struct match_words v = {.n = 0}, l = {.n = 0};
    frame_query(f, value, false, &v);
    frame_query(f, list, false, &l);
    *out = (struct pick){0};
    for (int i = 0; i < f->all->n && v.n; i++) {
        const struct candidate *c = &f->all->c[i];
        struct match_words in = {.n = 0};
        match_split(c->list, false, &in);
        match_split(c->group, false, &in);
        bool fits = c->kind == CANDIDATE_OPTION && match_within(&v, &c->words) && match_within(&c->words, &v);
        for (int k = 0; k < l.n; k++)
            fits = fits && match_among(&l.w[k], &in) > 0;
        if (!fits)
            continue;
        if (out->best) /* in two lists */
            return false;
        *out = (struct pick){.best = c, .score = {.score = 1, .hard = true}, .lead = 1};
    }
    return out->best != NULL;
}

/* Chooses or enters a value.  Returns FRAME_NONE if nothing has the name. */
static enum framed assign_to(struct frame *f, struct span name, struct span value)
{
    struct pick k;
    if (!value.n || !name.n)
        return FRAME_NONE;
    if (find_option(f, name, value, &k))
        return frame_use(f, &k);
    if (!frame_field(f, name, &k))
        return FRAME_NONE;
    char *text = words_text(value);
    enum framed done = frame_enter(f, &k, text);
    free(text);
    return done;
}

static bool has_mail(struct span s)
{
    return s.n == 1 && strchr(s.w[0].text, '@');
}

static const struct word kinds_of_field[] = {
    {(char *)"email", false, 0}, {(char *)"city", false, 0}, {(char *)"name", false, 0}};

/* Assigns a value without the name of a field by its form: an address with @, "from Porto", a name. */
static enum framed assign_by_form(struct frame *f, struct span s)
{
    bool from = words_is(s, 0, "from|in");
    while (s.n > 1 && words_is(s, 0, "with|as|for|from|in|on|the|my|name|mail|email|address|is"))
        s = words_part(s, 1, s.n);
    bool names = true;
    for (int i = 0; i < s.n; i++)
        names = names && (isupper((unsigned char)s.w[i].text[0]) || s.w[i].quoted);
    struct pick k;
    if (find_option(f, words_part(s, 0, 0), s, &k))
        return frame_use(f, &k);
    if (f->k->deed != DEED_FILL) /* "choose Violet" is not the name of a person */
        return FRAME_NONE;
    if (has_mail(s))
        return assign_to(f, (struct span){&kinds_of_field[0], 1}, s);
    if (!names || !s.n)
        return FRAME_NONE;
    return assign_to(f, (struct span){&kinds_of_field[from ? 1 : 2], 1}, s);
}

/* Assigns "X to V", "X: V", "V in X": the name of a field or list, and its value. */
static enum framed assign(struct frame *f, struct span s)
{
    enum framed done = FRAME_NONE;
    for (int i = s.n - 1; i > 0 && done == FRAME_NONE; i--) {
        if (words_is(s, i, JOINTS) && i + 1 < s.n)
            done = assign_to(f, words_part(s, 0, i), words_part(s, i + 1, s.n));
        if (words_is(s, i, "into|in|as|for|to|under") && i + 1 < s.n && done == FRAME_NONE)
            done = assign_to(f, words_part(s, i + 1, s.n), words_part(s, 0, i));
    }
    for (int i = s.n - 1; i > 0 && done == FRAME_NONE && !words_is(s, i, JOINTS "|into"); i--)
        done = assign_to(f, words_part(s, 0, i), words_part(s, i, s.n));
    return done;
}

/* Returns the end of the part of a list of values that begins at word i: "name Ana, city Porto and size L",
 * "user ana with password x". */
static int part_end(const struct frame *f, struct span s, int i)
{
    struct pick k;
    for (i++; i < s.n; i++)
        if (s.w[i - 1].after == ',' || (words_is(s, i, "and") && i + 1 < s.n) ||
            (words_is(s, i, "with") && i + 2 < s.n && frame_field(f, words_part(s, i + 1, i + 2), &k)))
            break;
    return i;
}

enum framed frame_fill(struct frame *f)
{
    struct span s = f->k->rest;
    int parts = 0;
    while (s.n && words_is(s, 0, "the|this|form|fields|out|in|with|me|us|up|it|details|following|as|for"))
        s = words_part(s, 1, s.n);
    for (int i = 0, end; i < s.n; i = end, parts++) {
        end = part_end(f, s, i);
        struct span part = words_part(s, i + words_is(s, i, "and|with"), end);
        struct span bare = words_bare(part);
        enum framed done = assign(f, bare);
        if (done == FRAME_NONE)
            done = assign_by_form(f, part);
        if (done == FRAME_NONE) {
            struct match_words q = {.n = 0};
            char *text = words_text(part);
            frame_query(f, part, false, &q);
            done = parts || f->k->deed == DEED_FILL ? frame_unknown(f, text, &q) : FRAME_NONE;
            free(text);
        }
        if (done != FRAME_DONE)
            return done;
    }
    return parts ? FRAME_DONE : FRAME_NONE;
}

/* ---- texts --------------------------------------------------------------------------------------------- */

/* Finds the field for a text without the name of one: the only field, or the one with the focus. */
static bool find_editor(const struct frame *f, struct pick *out)
{
    const struct candidate *only = NULL, *focused = NULL;
    int n = 0;
    for (int i = 0; i < f->all->n; i++) {
        const struct candidate *c = &f->all->c[i];
        if (c->kind != CANDIDATE_FIELD || c->closed || !state_in(c->e->states, STATE_EDITABLE))
            continue;
        n++;
        only = c;
        focused = state_in(c->e->states, STATE_FOCUSED) ? c : focused;
    }
    *out = (struct pick){.best = n == 1 ? only : focused, .score = {.score = 1, .hard = true}, .lead = 1};
    return out->best && (n == 1 || state_in(out->best->e->states, STATE_MULTI_LINE) ||
                         out->best->e->rect.h > EDITOR_HEIGHT);
}

static bool names_editor(struct span s)
{
    for (int i = 0; i < s.n; i++)
        if (!words_is(s, i, "document|editor|text|file|page|area|empty|note") &&
            !match_is_filler(s.w[i].text))
            return false;
    return true;
}

enum framed frame_write(struct frame *f)
{
    struct span s = f->k->rest, after = {0};
    struct pick k;
    if (s.n > 1 && words_is(s, 0, "text|word|words|line|number|sentence|down|in") &&
        (s.w[1].quoted || words_is(s, 0, "down|in")))
        s = words_part(s, 1, s.n);
    if (s.n && s.w[0].quoted) {
        after = words_part(s, 1, s.n);
        s = words_part(s, 0, 1);
    }
    if (!s.n)
        return FRAME_NONE;
    if (after.n && !names_editor(after)) {
        struct span name = words_part(after, words_is(after, 0, "in|into|as|to|for|at") ? 1 : 0, after.n);
        enum framed done = assign_to(f, name, s);
        struct match_words q = {.n = 0};
        frame_query(f, name, false, &q);
        return done == FRAME_NONE ? frame_unknown(f, q.n ? q.w[0].text : f->k->text, &q) : done;
    }
    enum framed done = after.n || s.w[0].quoted ? FRAME_NONE : frame_fill(f);
    if (done == FRAME_DONE)
        return done;
    if (s.n > 1 && words_is(s, 0, "a|an|the|my|your|some|our"))
        return frame_unsure(f, "'%.60s' may describe the text or be it; quote the text", f->k->text);
    if (!s.w[0].quoted && !words_is(f->k->all, 0, "write|type|jot") &&
        !(words_is(f->k->all, 0, "enter|input") && clause_is_hard(s, 0, false)))
        return frame_unsure(f, "'%.60s' may be a command; quote a text", f->k->text); /* "insert table" */
    if (!find_editor(f, &k))
        return frame_unsure(f, "'%.60s' does not say into which field", f->k->text);
    char *text = words_text(s);
    done = frame_enter(f, &k, text);
    free(text);
    return done;
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

/* Writes the keys of a sum, "12*7": words and signs.  Returns false for other words. */
static bool read_sum(struct span s, char *out, size_t size)
{
    static const char *const signs[][2] = {{"plus", "+"},       {"minus", "-"},   {"times", "*"}, {"x", "*"},
                                           {"multiplied", "*"}, {"divided", "/"}, {"over", "/"},  {"by", ""},
                                           {"the", ""},         {"result", ""},   {"of", ""},     {"sum", ""},
                                           {"out", ""}};
    size_t n = 0;
    bool digit = false, sign = false;
    for (int i = 0; i < s.n; i++) {
        const char *text = s.w[i].text;
        for (size_t k = 0; k < sizeof signs / sizeof *signs; k++)
            if (words_is(s, i, signs[k][0]))
                text = signs[k][1];
        for (; *text; text++) {
            if (!strchr("0123456789.+-*/()", *text) || n + 1 >= size)
                return false;
            digit = digit || isdigit((unsigned char)*text);
            sign = sign || strchr("+-*/", *text);
            out[n++] = *text;
        }
    }
    out[n] = 0;
    return digit && sign;
}

/* Writes the keys of "multiply 6 by 9", "subtract 15 from 40". */
static bool read_verb(struct span s, char *out, size_t size)
{
    static const char *const verbs[][3] = {{"add", "+", "and|to|plus"},
                                           {"multiply", "*", "by|with|times|and"},
                                           {"divide", "/", "by|through"},
                                           {"subtract", "-", "from"},
                                           {"deduct", "-", "from"}};
    char *end;
    for (size_t k = 0; k < sizeof verbs / sizeof *verbs && s.n == 4; k++) {
        if (!words_is(s, 0, verbs[k][0]) || !words_is(s, 2, verbs[k][2]))
            continue;
        bool swap = *verbs[k][1] == '-';
        double a = strtod(s.w[1].text, &end), b = *end ? -1 : strtod(s.w[3].text, &end);
        if (*end || a < 0 || b < 0)
            return false;
        snprintf(out, size, "%s%s%s", s.w[swap ? 3 : 1].text, verbs[k][1], s.w[swap ? 1 : 3].text);
        return true;
    }
    return false;
}

enum framed frame_calculate(struct frame *f)
{
    char sum[32];
    if (!read_verb(f->k->all, sum, sizeof sum - 1) &&
        (f->k->deed != DEED_CALCULATE || !read_sum(f->k->rest, sum, sizeof sum - 1)))
        return FRAME_NONE;
    snprintf(sum + strlen(sum), 2, "=");
    for (const char *at = sum; *at; at++) {
        char key[2] = {*at, 0};
        const struct candidate *found = NULL;
        for (int i = 0; i < f->all->n && !found; i++)
            if (f->all->c[i].kind & (CANDIDATE_PRESS | CANDIDATE_TICK) &&
                resolve_same(f->all->c[i].name, key))
                found = &f->all->c[i];
        struct pick k = {.best = found, .score = {.score = 1, .hard = true}, .lead = 1};
        if (!found)
            return frame_unsure(f, "this window has no button '%s'", key);
        if (frame_use(f, &k) != FRAME_DONE)
            return FRAME_UNSURE;
    }
    return FRAME_DONE;
}
