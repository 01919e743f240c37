/* coverage.c - finds task items that a small model's reply omits or repeats, and resamples the reply.
 *
 * A small model that copies names from the task character by character sometimes skips one: it presses the
 * last button, or reports that it is done, while a checkbox or field is still open, or it types the
 * previous field's text again.  Machine translation has the same problem and adds a coverage penalty to
 * decoding (Tu et al. 2016; Wu et al. 2016, section 7).  Here the items to cover are names in the task:
 * phrases that label an element on the screenshot, according to the pointer head, and that no reply has
 * mentioned.
 *
 * An uncovered item causes a second reply, forced to begin with an action on that element.  It replaces the
 * first if the model finds the prefix probable enough.  Repeated texts are handled next (repeated_texts.c).
 * Tasks with negations or conditions are left to the model: they name
 * elements that must not be touched.
 */
#include "pocket/coverage.h"

#include "base/err.h"
#include "pocket/private.h"

#include <stdlib.h>
#include <string.h>

/* Minimum log-probabilities of a forced prefix (verb and name).  On the development forms and flights correct
 * prefixes had -13 and more, wrong ones mostly -17 and less. */
static const double min_omission = -15; /* prefix for an omitted element */
static const double probable = -4;      /* above this value no other action is tried */

const struct action *last_action(const struct review *v)
{
    const struct step *step = v->s->step;
    return step->nactions ? &step->actions[step->nactions - 1] : NULL;
}

bool named_element(const struct review *v, const char *name, struct thing *out)
{
    return thing_of_name(&v->seen->map, &v->seen->text, name, false, LOCATE_CLICK, out);
}

/* Returns whether actions of this kind are checked. */
static bool is_reviewed(const struct action *last)
{
    return last && (last->kind == ACT_ANSWER || last->kind == ACT_INFEASIBLE || last->kind == ACT_CLICK ||
                    last->kind == ACT_TYPE);
}

/* Returns the earlier replies to this task without tags, separated by newlines; the caller frees them. */
static char *replies_before(const struct assist_step *s)
{
    char *all = xstrdup("");
    for (int i = 0; i < s->n_earlier; i++) {
        char *one = reply_words(s->earlier[i] ? s->earlier[i] : ""), *longer = xasprintf("%s%s\n", all, one);
        free(all);
        free(one);
        all = longer;
    }
    return all;
}

/* Tries this action on this element, if the dialect can write it. */
static int try_action(const struct review *v, enum action_kind kind, const char *name, double *min_logprob,
                      struct err *e)
{
    autofree char *begins = dialect_step_begin(v->s->dialect, kind, name);
    return begins ? v->s->resample(v->s, "omission", begins, min_logprob, e) : 0;
}

bool is_repeated(const struct review *v)
{
    autofree char *now = reply_words(v->s->text);
    return strstr(v->before, now);
}

/* Returns the task offset before which everything must be covered: the end if the reply finishes the task or
 * repeats itself, the last mention of the button if it presses one, else 0. */
static int must_be_done(const struct review *v)
{
    const struct action *last = last_action(v);
    const char *task = v->s->task;
    struct thing is;
    if (last->kind == ACT_ANSWER || last->kind == ACT_INFEASIBLE ||
        (last->kind == ACT_TYPE && is_repeated(v)))
        return (int)strlen(task);
    if (last->kind != ACT_CLICK || !named_element(v, last->element, &is) || is.field)
        return 0;
    if (!is.button)
        return is_repeated(v) ? (int)strlen(task) : 0;
    const char *at = words_find_last(task, last->element);
    return at ? (int)(at - task) : 0;
}

/* Acts on an omitted element: types into a field or clicks anything else, then tries the other action unless
 * the first is probable. */
static int act_on_omitted(const struct review *v, const char *name, bool field, struct err *e)
{
    double min_logprob = min_omission;
    enum action_kind first = field ? ACT_TYPE : ACT_CLICK;
    if (try_action(v, first, name, &min_logprob, e))
        return -1;
    return min_logprob < probable
               ? try_action(v, first == ACT_TYPE ? ACT_CLICK : ACT_TYPE, name, &min_logprob, e)
               : 0;
}

static int fix_omissions(const struct review *v, struct err *e)
{
    const struct action *last = last_action(v);
    const char *task = v->s->task;
    struct thing thing = {.p = 0};
    char name[TASK_NAME];
    autofree char *now = reply_words(last->kind == ACT_INFEASIBLE ? "" : v->s->text);
    autofree char *said = xasprintf("%s\n%s", v->before, now);
    bool omitted = task_unmentioned(task, must_be_done(v), said, v->seen, name, &thing);
    return omitted ? act_on_omitted(v, name, thing.field, e) : 0;
}

int pocket_correct_reply(struct assist *assist, struct assist_step *s, struct err *e)
{
    struct pocket *x = (struct pocket *)assist;
    struct review v = {.s = s};
    if (!is_reviewed(last_action(&v)) || task_has_conditions(s->task))
        return 0;
    if (pocket_look(x, s->frame, &v.seen, e))
        return -1;
    v.before = replies_before(s);
    v.writes = writes_before(s);
    int (*const fixes[])(const struct review *v, struct err *e) = {fix_omissions, fix_repeated_text};
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0 && v.seen->map.patches; i++)
        if (!(pocket_without & (unsigned)WITHOUT_OMISSIONS << i))
            rc = fixes[i](&v, e);
    free(v.before);
    free(v.writes.all);
    return rc;
}
