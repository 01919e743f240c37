/* flaky.c - see flaky.h. */
#include "qa/run/flaky.h"

#include "base/utf8.h"
#include "replay/diff.h"

#include <string.h>

struct divergence {
    enum flaky why; /* FLAKY_NOT: none so far */
    char *where;
};

static struct divergence diverged(enum flaky why, char *where)
{
    return (struct divergence){why, where};
}

/* ---- one step ------------------------------------------------------------------------------------ */

static struct divergence compare_screens(const struct diff_step *s)
{
    if (!(s->differs & DIFF_FRAME))
        return diverged(FLAKY_NOT, NULL);
    if (s->tiles < 0)
        return diverged(FLAKY_UNKNOWN, xasprintf("step %d: a screenshot is missing", s->number));
    return diverged(FLAKY_APPLICATION,
                    xasprintf("step %d: %.1f %% of the screen differs after the same actions", s->number,
                              100 * s->tiles));
}

static const char *action_text(const struct story_step *s, int i)
{
    return i < s->nactions && *s->actions[i].what ? s->actions[i].what : "nothing";
}

static int cut(const char *text)
{
    enum { SHOWN = 80 };
    size_t n = strlen(text);
    return (int)utf8_valid_prefix(text, n < SHOWN ? n : SHOWN);
}

static struct divergence compare_actions(const struct diff_step *s)
{
    const struct story_step *a = s->side[0], *b = s->side[1];
    bool same_pixels = *field_text(a->observe, "hash") &&
                       !strcmp(field_text(a->observe, "hash"), field_text(b->observe, "hash"));
    for (int i = 0; i < a->nactions || i < b->nactions; i++) {
        const char *x = action_text(a, i), *y = action_text(b, i);
        if (i >= a->nactions || i >= b->nactions || !json_equal(a->actions[i].action, b->actions[i].action))
            return diverged(
                FLAKY_MODEL,
                xasprintf("step %d: same screen%s, different action: failed with %.*s, passed with %.*s",
                          s->number, same_pixels ? "" : " except for a few pixels", cut(x), x, cut(y), y));
        bool failed = *a->actions[i].failure, failed_then = *b->actions[i].failure;
        if (failed != failed_then)
            return diverged(FLAKY_APPLICATION, xasprintf("step %d: %.*s succeeded only when the test %s",
                                                         s->number, cut(x), x, failed ? "passed" : "failed"));
    }
    return diverged(FLAKY_NOT, NULL);
}

static struct divergence compare_step(const struct diff_step *s)
{
    if (!s->side[0] || !s->side[1])
        return diverged(FLAKY_UNKNOWN,
                        xasprintf("step %d: only the run that %s has it, after the same actions", s->number,
                                  s->side[0] ? "failed" : "passed"));
    if (!s->side[0]->observe || !s->side[1]->observe)
        return diverged(FLAKY_UNKNOWN, xasprintf("step %d: one of the runs has no observation", s->number));
    struct divergence p = compare_screens(s);
    return p.why == FLAKY_NOT ? compare_actions(s) : p;
}

/* ---- both runs ----------------------------------------------------------------------------------- */

enum flaky flaky_cause(const char *failed, const char *passed, char **where)
{
    struct run_diff d;
    *where = NULL;
    if (!failed || !passed || diff_open(&d, failed, passed, NULL))
        return FLAKY_UNKNOWN;
    struct divergence p = {FLAKY_NOT, NULL};
    for (int i = 0; i < d.n && p.why == FLAKY_NOT; i++)
        p = compare_step(&d.steps[i]);
    if (p.why == FLAKY_NOT && d.n && d.record[0].skipped + d.record[1].skipped == 0)
        p = diverged(FLAKY_APPLICATION,
                     xasprintf("after step %d: same screens and actions, but the checks differ",
                               d.steps[d.n - 1].number));
    diff_free(&d);
    *where = p.where;
    return p.why == FLAKY_NOT ? FLAKY_UNKNOWN : p.why;
}
