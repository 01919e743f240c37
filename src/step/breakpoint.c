/* breakpoint.c - see private.h. */
#include "step/private.h"

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

struct breakpoint {
    char spec[128];
    enum when when;
    int step;
    enum action_kind kind;
    double p;
    struct regex *regex;
    struct policy *policy; /* the built-in rules */
};

static int compile_pattern(struct breakpoint *b, const char *pattern, struct err *e)
{
    b->regex = regex_new(pattern, true, e);
    return b->regex ? 0 : err_prefix(e, "breakpoint '%s'", b->spec);
}

static enum action_kind find_kind(const char *name)
{
    for (int k = ACT_NONE + 1; k < ACT_COUNT; k++)
        if (!strcmp(action_kind_name((enum action_kind)k), name))
            return (enum action_kind)k;
    return ACT_NONE;
}

static int read_value(struct breakpoint *b, const char *value, struct err *e)
{
    char *end = NULL;
    switch (b->when) {
    case WHEN_STEP:
        b->step = (int)strtol(value, &end, 10);
        if (end == value || *end || b->step < 1 || b->step > 1000000)
            return err_set(e, ERR_USAGE, "breakpoint '%s': a step is a number from 1", b->spec);
        return 0;
    case WHEN_KIND:
        b->kind = find_kind(value);
        if (b->kind == ACT_NONE)
            return err_set(e, ERR_USAGE,
                           "breakpoint '%s': there is no action '%s'; try click, type, key, answer", b->spec,
                           value);
        return 0;
    case WHEN_TEXT:
    case WHEN_WINDOW:
        if (!*value)
            return err_set(e, ERR_USAGE, "breakpoint '%s': a pattern is missing", b->spec);
        return compile_pattern(b, value, e);
    case WHEN_CONFIDENCE:
        b->p = strtod(value, &end);
        if (end == value || *end || !(b->p > 0 && b->p <= 1))
            return err_set(e, ERR_USAGE, "breakpoint '%s': a confidence is a number up to 1", b->spec);
        return 0;
    case WHEN_IRREVERSIBLE:
        b->policy = policy_builtin();
        __attribute__((fallthrough));
    case WHEN_NO_EFFECT:
        if (*value)
            return err_set(e, ERR_USAGE, "breakpoint '%s': '%s' takes no value", b->spec, words[b->when]);
        return 0;
    }
    return 0;
}

struct breakpoint *break_parse(const char *spec, struct err *e)
{
    struct breakpoint *b = xcalloc(1, sizeof *b);
    spec += strspn(spec, " \t");
    size_t len = strcspn(spec, " \t"), which = 0;
    while (which < WORDS && (strlen(words[which]) != len || strncmp(words[which], spec, len) != 0))
        which++;
    int rc = 0;
    if (strlen(spec) >= sizeof b->spec)
        rc = err_set(e, ERR_USAGE, "a breakpoint of more than %zu bytes", sizeof b->spec - 1);
    else if (which == WORDS)
        rc = err_set(e, ERR_USAGE,
                     "breakpoint '%s': one of step N, kind NAME, text PATTERN, window PATTERN, "
                     "irreversible, confidence P, no-effect",
                     spec);
    if (rc == 0) {
        snprintf(b->spec, sizeof b->spec, "%s", spec);
        b->when = (enum when)which;
        rc = read_value(b, spec + len + strspn(spec + len, " \t"), e);
    }
    if (rc == 0)
        return b;
    break_free(b);
    return NULL;
}

void break_free(struct breakpoint *b)
{
    if (!b)
        return;
    regex_free(b->regex);
    policy_free(b->policy);
    free(b);
}

const char *break_spec(const struct breakpoint *b)
{
    return b->spec;
}

/* A pattern that takes too long counts as a match, so that the run stops. */
static bool pattern_matches(const struct breakpoint *b, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    if (n == 0)
        return false;
    return regex_find(b->regex, text, n < MATCH_BYTES ? n : MATCH_BYTES) != 0;
}

static bool texts_match(const struct breakpoint *b, const struct step *s)
{
    bool hit = pattern_matches(b, s->thought) || pattern_matches(b, s->note);
    for (int i = 0; i < s->nactions && !hit; i++)
        hit = pattern_matches(b, s->actions[i].text) || pattern_matches(b, s->actions[i].element);
    return hit;
}

static bool has_kind(const struct breakpoint *b, const struct step *s)
{
    for (int i = 0; i < s->nactions; i++)
        if (s->actions[i].kind == b->kind)
            return true;
    return false;
}

/* Judges an action by the built-in rules as if its target were in the active window; only the gate looks
 * up the window under it. */
static bool rules_would_ask(const struct breakpoint *b, const struct step_view *v, const struct action *a)
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
    return policy_judge(b->policy, &subject.s).verdict == POLICY_CONFIRM;
}

static bool is_irreversible(const struct breakpoint *b, const struct step_view *v)
{
    bool hit = v->p->irreversible;
    for (int i = 0; i < v->step->nactions && !hit; i++)
        hit = rules_would_ask(b, v, &v->step->actions[i]);
    return hit;
}

bool break_hit(const struct breakpoint *b, const struct step_view *v)
{
    const struct proposal *p = v->p;
    switch (b->when) {
    case WHEN_STEP:
        return p->number == b->step;
    case WHEN_KIND:
        return has_kind(b, v->step);
    case WHEN_TEXT:
        return texts_match(b, v->step);
    case WHEN_WINDOW:
        return pattern_matches(b, p->title) || pattern_matches(b, p->class);
    case WHEN_IRREVERSIBLE:
        return is_irreversible(b, v);
    case WHEN_CONFIDENCE:
        return v->confidence >= 0 && v->confidence < b->p;
    case WHEN_NO_EFFECT:
        return p->judged && p->expected && !p->changed;
    }
    return false;
}
