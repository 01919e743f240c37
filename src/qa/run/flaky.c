/* flaky.c - finds out why a test failed and then passed: because of the application or the model.
 *
 * The two runs are compared step by step up to their first difference:
 *
 *   different screens after the same actions       the application
 *   different actions on the same screen           the model
 *   an action that succeeded in only one run       the application
 *   no difference, but the checks differ           the application, in state that the screen does not show
 *   a run that cannot be read that far             unknown
 *
 * Thoughts may differ; only actions count. */
#include "qa/run/workers.h"

#include "base/utf8.h"
#include "replay/diff.h"

#include <string.h>

/* Returns the cause and sets *where, which is owned. */
static enum flaky diverged(enum flaky why, char **where, char *text)
{
    *where = text;
    return why;
}

/* ---- one step ------------------------------------------------------------------------------------ */

static enum flaky compare_screens(const struct diff_step *s, char **where)
{
    if (!(s->differs & DIFF_FRAME))
        return FLAKY_NOT;
    if (s->tiles < 0)
        return diverged(FLAKY_UNKNOWN, where, xasprintf("step %d: a screenshot is missing", s->number));
    return diverged(FLAKY_APPLICATION, where,
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

static enum flaky compare_actions(const struct diff_step *s, char **where)
{
    const struct story_step *a = s->side[0], *b = s->side[1];
    bool same_pixels = *field_text(a->observe, "hash") &&
                       !strcmp(field_text(a->observe, "hash"), field_text(b->observe, "hash"));
    for (int i = 0; i < a->nactions || i < b->nactions; i++) {
        const char *x = action_text(a, i), *y = action_text(b, i);
        if (i >= a->nactions || i >= b->nactions || !json_equal(a->actions[i].action, b->actions[i].action))
            return diverged(
                FLAKY_MODEL, where,
                xasprintf("step %d: same screen%s, different action: failed with %.*s, passed with %.*s",
                          s->number, same_pixels ? "" : " except for a few pixels", cut(x), x, cut(y), y));
        bool failed = *a->actions[i].failure, failed_then = *b->actions[i].failure;
        if (failed != failed_then)
            return diverged(FLAKY_APPLICATION, where,
                            xasprintf("step %d: %.*s succeeded only when the test %s", s->number, cut(x), x,
                                      failed ? "passed" : "failed"));
    }
    return FLAKY_NOT;
}

static enum flaky compare_step(const struct diff_step *s, char **where)
{
    if (!s->side[0] || !s->side[1])
        return diverged(FLAKY_UNKNOWN, where,
                        xasprintf("step %d: only the run that %s has it, after the same actions", s->number,
                                  s->side[0] ? "failed" : "passed"));
    if (!s->side[0]->observe || !s->side[1]->observe)
        return diverged(FLAKY_UNKNOWN, where,
                        xasprintf("step %d: one of the runs has no observation", s->number));
    enum flaky why = compare_screens(s, where);
    return why == FLAKY_NOT ? compare_actions(s, where) : why;
}

/* ---- both runs ----------------------------------------------------------------------------------- */

enum flaky flaky_cause(const char *failed, const char *passed, char **where)
{
    struct run_diff d;
    *where = NULL;
    if (!failed || !passed || diff_open(&d, failed, passed, NULL))
        return FLAKY_UNKNOWN;
    enum flaky why = FLAKY_NOT;
    for (int i = 0; i < d.n && why == FLAKY_NOT; i++)
        why = compare_step(&d.steps[i], where);
    if (why == FLAKY_NOT && d.n && d.record[0].skipped + d.record[1].skipped == 0)
        why = diverged(FLAKY_APPLICATION, where,
                       xasprintf("after step %d: same screens and actions, but the checks differ",
                                 d.steps[d.n - 1].number));
    diff_free(&d);
    return why == FLAKY_NOT ? FLAKY_UNKNOWN : why;
}
