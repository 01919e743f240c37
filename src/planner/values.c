/* values.c - frames with values: texts and sums. */
#include "planner/planner_impl.h"

#include "atspi/roles.h"
#include "plain/resolve.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EDITOR_HEIGHT = 60 }; /* px; fields of one line are lower */

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
    *out = (struct pick){.best = n == 1 ? only : focused, .p = 1};
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
    if (after.n && !names_editor(after))
        return FRAME_NONE;
    if (s.n > 1 && words_is(s, 0, "a|an|the|my|your|some|our"))
        return frame_unsure(f, "'%.60s' may describe the text or be it; quote the text", f->k->text);
    if (!s.w[0].quoted && !words_is(f->k->all, 0, "write|type|jot") &&
        !(words_is(f->k->all, 0, "enter|input") && clause_is_hard(s, 0, false)))
        return frame_unsure(f, "'%.60s' may be a command; quote a text", f->k->text); /* "insert table" */
    if (!find_editor(f, &k))
        return frame_unsure(f, "'%.60s' does not say into which field", f->k->text);
    char *text = words_text(s);
    enum framed done = frame_enter(f, &k, text);
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
        struct pick k = {.best = found, .p = 1};
        if (!found)
            return frame_unsure(f, "this window has no button '%s'", key);
        if (frame_use(f, &k) != FRAME_DONE)
            return FRAME_UNSURE;
    }
    return FRAME_DONE;
}
