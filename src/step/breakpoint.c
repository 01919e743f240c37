/* breakpoint.c - parses breakpoints and evaluates their conditions; see private.h. */
#include "step/private.h"

#include "actions/registry.h"
#include "base/regex.h"
#include "gate/subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MATCH_BYTES = 64 << 10 };

/* clang-format off */
enum when {
    WHEN_STEP, WHEN_KIND, WHEN_TEXT, WHEN_WINDOW, WHEN_IRREVERSIBLE, WHEN_CONFIDENCE, WHEN_NO_EFFECT
};
static const char *const words[] = {
    "step", "kind", "text", "window", "irreversible", "confidence", "no-effect"
};
/* clang-format on */
enum { WORDS = sizeof words / sizeof *words };

enum { CLAUSES = 4, SPEC = 256 };

struct clause {
    enum when when;
    int step;
    enum action_kind kind;
    double p;
    struct regex *regex;
    struct policy *policy; /* the built-in rules */
};

struct breakpoint { /* hit if all its clauses hold */
    char spec[SPEC];
    struct clause clauses[CLAUSES];
    int n;
};

static int read_value(const char *spec, struct clause *c, const char *value, struct err *e)
{
    char *end = NULL;
    switch (c->when) {
    case WHEN_STEP:
        c->step = (int)strtol(value, &end, 10);
        if (end == value || *end || c->step < 1 || c->step > 1000000)
            return err_set(e, ERR_USAGE, "breakpoint '%s': the step must be a number from 1 to 1000000",
                           spec);
        return 0;
    case WHEN_KIND:
        c->kind = registry_kind(value);
        if (c->kind == ACT_NONE)
            return err_set(e, ERR_USAGE,
                           "breakpoint '%s': unknown action '%s'; examples: click, type, key, answer", spec,
                           value);
        return 0;
    case WHEN_TEXT:
    case WHEN_WINDOW:
        if (!*value)
            return err_set(e, ERR_USAGE, "breakpoint '%s': missing pattern", spec);
        c->regex = regex_new(value, true, e);
        return c->regex ? 0 : err_prefix(e, "breakpoint '%s'", spec);
    case WHEN_CONFIDENCE:
        c->p = strtod(value, &end);
        if (end == value || *end || !(c->p > 0 && c->p <= 1))
            return err_set(e, ERR_USAGE, "breakpoint '%s': the confidence must be above 0 and at most 1",
                           spec);
        return 0;
    case WHEN_IRREVERSIBLE:
        c->policy = policy_builtin();
        __attribute__((fallthrough));
    case WHEN_NO_EFFECT:
        if (*value)
            return err_set(e, ERR_USAGE, "breakpoint '%s': '%s' takes no value", spec, words[c->when]);
        return 0;
    }
    return 0;
}

/* Returns the condition at the beginning of s; WORDS: none. */
static size_t condition_at(const char *s, size_t *len)
{
    size_t which = 0;
    *len = strcspn(s, " \t");
    while (which < WORDS && (strlen(words[which]) != *len || strncmp(words[which], s, *len) != 0))
        which++;
    return which;
}

/* Returns the end of a value: " and " before another condition, or the end of the text. A pattern in double
 * quotes may contain " and ". */
static const char *value_end(const char *value)
{
    const char *close = *value == '"' ? strchr(value + 1, '"') : NULL;
    size_t len;
    for (const char *p = close ? close + 1 : value; (p = strstr(p, " and ")); p++)
        if (condition_at(p + 5 + strspn(p + 5, " \t"), &len) != WORDS)
            return p;
    return value + strlen(value);
}

/* Reads one condition. Returns the position of the next one, or NULL with e. */
static const char *read_clause(struct breakpoint *b, const char *s, struct err *e)
{
    char value[SPEC];
    size_t len, which = condition_at(s, &len);
    if (which == WORDS)
        err_set(e, ERR_USAGE,
                "breakpoint '%s': expected step N, kind NAME, text PATTERN, window PATTERN, "
                "irreversible, confidence P or no-effect; join several with 'and'",
                b->spec);
    else if (b->n == CLAUSES)
        err_set(e, ERR_USAGE, "breakpoint '%s': more than %d conditions", b->spec, CLAUSES);
    if (which == WORDS || b->n == CLAUSES)
        return NULL;
    const char *from = s + len + strspn(s + len, " \t"), *end = value_end(from), *next = end;
    while (end > from && strchr(" \t", end[-1]))
        end--;
    if (end - from >= 2 && *from == '"' && end[-1] == '"') {
        from++;
        end--;
    }
    snprintf(value, sizeof value, "%.*s", (int)(end - from), from);
    struct clause *c = &b->clauses[b->n++];
    c->when = (enum when)which;
    if (read_value(b->spec, c, value, e))
        return NULL;
    return *next ? next + 5 + strspn(next + 5, " \t") : next;
}

struct breakpoint *break_parse(const char *spec, struct err *e)
{
    struct breakpoint *b = xcalloc(1, sizeof *b);
    spec += strspn(spec, " \t");
    const char *at = b->spec;
    if (strlen(spec) >= sizeof b->spec) {
        err_set(e, ERR_USAGE, "the breakpoint is longer than %zu bytes", sizeof b->spec - 1);
        at = NULL;
    } else {
        snprintf(b->spec, sizeof b->spec, "%s", spec);
        do
            at = read_clause(b, at, e);
        while (at && *at);
    }
    if (at)
        return b;
    break_free(b);
    return NULL;
}

void break_free(struct breakpoint *b)
{
    for (int i = 0; b && i < b->n; i++) {
        regex_free(b->clauses[i].regex);
        policy_free(b->clauses[i].policy);
    }
    free(b);
}

const char *break_spec(const struct breakpoint *b)
{
    return b->spec;
}

/* Returns whether the pattern matches. A pattern that exceeds its limit counts as a match, so that the run
 * stops. */
static bool pattern_matches(const struct clause *c, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    if (n == 0)
        return false;
    return regex_find(c->regex, text, n < MATCH_BYTES ? n : MATCH_BYTES) != 0;
}

static bool texts_match(const struct clause *c, const struct step *s)
{
    bool hit = pattern_matches(c, s->thought) || pattern_matches(c, s->note);
    for (int i = 0; i < s->nactions && !hit; i++)
        hit = pattern_matches(c, s->actions[i].text) || pattern_matches(c, s->actions[i].element);
    return hit;
}

static bool has_kind(const struct clause *c, const struct step *s)
{
    for (int i = 0; i < s->nactions; i++)
        if (s->actions[i].kind == c->kind)
            return true;
    return false;
}

/* Judges an action by the built-in rules as if its target were in the active window; only the gate looks up
 * the window at the target. */
static bool rules_would_ask(const struct clause *c, const struct step_view *v, const struct action *a)
{
    const struct proposal *p = v->p;
    const struct subject_root root = {(int)(p->place.ox + p->frame->w * p->place.sx),
                                      (int)(p->place.oy + p->frame->h * p->place.sy), NULL};
    struct subject subject;
    subject_build(&subject, a, &p->place, &root);
    for (int i = 0; i < subject.s.n_targets; i++) {
        struct screen_window *w = &subject.s.targets[i].window;
        snprintf(w->title, sizeof w->title, "%s", p->title);
        snprintf(w->class, sizeof w->class, "%s", p->class);
    }
    return policy_judge(c->policy, &subject.s).verdict == POLICY_CONFIRM;
}

static bool is_irreversible(const struct clause *c, const struct step_view *v)
{
    bool hit = v->p->irreversible;
    for (int i = 0; i < v->step->nactions && !hit; i++)
        hit = rules_would_ask(c, v, &v->step->actions[i]);
    return hit;
}

static bool clause_holds(const struct clause *c, const struct step_view *v)
{
    const struct proposal *p = v->p;
    switch (c->when) {
    case WHEN_STEP:
        return p->number == c->step;
    case WHEN_KIND:
        return has_kind(c, v->step);
    case WHEN_TEXT:
        return texts_match(c, v->step);
    case WHEN_WINDOW:
        return pattern_matches(c, p->title) || pattern_matches(c, p->class);
    case WHEN_IRREVERSIBLE:
        return is_irreversible(c, v);
    case WHEN_CONFIDENCE:
        return v->confidence >= 0 && v->confidence < c->p;
    case WHEN_NO_EFFECT:
        return p->judged && p->expected && !p->changed;
    }
    return false;
}

bool break_hit(const struct breakpoint *b, const struct step_view *v)
{
    bool hit = true;
    for (int i = 0; i < b->n && hit; i++)
        hit = clause_holds(&b->clauses[i], v);
    return hit;
}
