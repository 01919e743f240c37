/* coverage.c - what a small model leaves out of a task, repeats, or calls by a name that is not there.
 *
 * A small language model that copies words from the task letter by letter passes over a name now and then:
 * it presses the last button, or says that it is done, while a tick or a field is still to be seen to; or
 * the text of the field before is typed again.  In translation the same faults are met by a coverage
 * penalty in decoding (Tu et al. 2016; Wu et al. 2016, section 7).  Here what is to be covered are pieces
 * of the task.  A name of the task is one if it names a thing on the screenshot, as the tower's pointer
 * says, and no reply has spoken of it.
 *
 * The reply at hand then gives way to one that begins with that name, if the model finds that likely enough
 * itself.  Texts that were lost, and wrong words, are seen to after that (lost_texts.c, other_words.c).  A
 * task that says what is not to be done, or under which condition, names things that are to be left alone:
 * there the model is followed.
 */
#include "agent/coverage.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

/* Logarithms of the probability of a verb and a name.  On looked-at forms and flights right beginnings had
 * -13 and more, wrong ones mostly -17 and less. */
static const double likely_enough = -15, likely = -6, surely = -4;

const struct action *reviewed_action(const struct agent *a)
{
    const struct step *step = &a->reply.step;
    return step->nactions ? &step->actions[step->nactions - 1] : NULL;
}

static bool is_reviewed(const struct action *last)
{
    return last && (last->kind == ACT_ANSWER || last->kind == ACT_INFEASIBLE || last->kind == ACT_CLICK ||
                    last->kind == ACT_TYPE);
}

static char *replies_before(const struct agent *a)
{
    char *all = xstrdup("");
    for (int i = a->run.turns_before; i + 1 < context_turns(a->run.context); i++) {
        const char *reply = context_reply(a->run.context, i);
        char *one = reply_words(reply ? reply : ""), *longer = xasprintf("%s%s\n", all, one);
        free(all);
        free(one);
        all = longer;
    }
    return all;
}

/* ---- other replies ---------------------------------------------------------------------------------- */

double logprob_of(const struct generated *g, size_t bytes)
{
    double sum = 0;
    for (int i = 0; i < g->n && g->choices[i].end <= bytes; i++)
        sum += g->choices[i].forced ? 0 : (double)g->choices[i].logprob;
    return sum;
}

static int record_cover(struct agent *a, const char *begins, double logprob, bool taken, struct err *e)
{
    struct trace *t = a->o->trace;
    trace_begin(t, a->step.number, "cover");
    trace_text(t, "begins", begins);
    trace_number(t, "logprob", logprob);
    trace_bool(t, "taken", taken);
    return trace_end(t, e);
}

int try_instead(struct agent *a, const char *begins, double *least, struct err *e)
{
    struct agent_reply was = a->reply;
    a->reply = (struct agent_reply){0};
    a->step.begins = begins;
    enum attempt got = agent_attempt(a, a->step.resamples + 1, 0, e);
    a->step.begins = NULL;
    bool read = got == ATTEMPT_READ && a->reply.fault == FAULT_NONE;
    double logprob = read ? logprob_of(&a->reply.raw, strlen(begins)) : 0;
    bool taken = read && logprob > *least;
    if (taken) {
        *least = logprob;
        agent_reply_free(&was);
    } else {
        agent_reply_free(&a->reply);
        a->reply = was;
        a->reply.as_said = false; /* the session holds the other one */
    }
    return got == ATTEMPT_FAILED ? -1 : record_cover(a, begins, logprob, taken, e);
}

static int try_step(struct agent *a, enum action_kind kind, const char *name, double *least, struct err *e)
{
    char *begins = dialect_step_begin(a->o->dialect, kind, name);
    int rc = begins ? try_instead(a, begins, least, e) : 0;
    free(begins);
    return rc;
}

/* ---- what is left out ------------------------------------------------------------------------------- */

bool is_repeated(const struct review *v)
{
    char *now = reply_words(v->a->reply.text);
    bool found = strstr(v->before, now);
    free(now);
    return found;
}

/* Up to where in the task all must be done before the reply at hand: its end, or the name of the button
 * that is pressed.  0: it ends nothing. */
static int must_be_done(const struct review *v)
{
    const struct action *last = reviewed_action(v->a);
    const char *task = v->a->run.task;
    struct thing is;
    if (last->kind == ACT_ANSWER || last->kind == ACT_INFEASIBLE ||
        (last->kind == ACT_TYPE && is_repeated(v)))
        return (int)strlen(task);
    if (last->kind != ACT_CLICK ||
        !thing_of_name(&v->seen.map, &v->seen.text, last->element, false, LOCATE_CLICK, &is) || is.field)
        return 0;
    if (!is.button)
        return is_repeated(v) ? (int)strlen(task) : 0;
    const char *at = spoken_of(task, last->element);
    return at ? (int)(at - task) : 0;
}

/* A name that is left out comes first; whether it is written into or clicked is the model's choice.  A
 * click into a field fills in nothing, so writing is asked for too. */
static int see_to_rest(const struct review *v, struct err *e)
{
    struct agent *a = v->a;
    const struct action *last = reviewed_action(a);
    struct thing thing = {.p = 0};
    char name[TASK_NAME];
    double least = likely_enough;
    char *now = reply_words(last->kind == ACT_INFEASIBLE ? "" : a->reply.text);
    char *said = xasprintf("%s\n%s", v->before, now);
    bool left_out = task_left_out(a->run.task, must_be_done(v), said, &v->seen, name, &thing);
    bool unread =
        !left_out && last->kind == ACT_ANSWER && task_last_word(a->run.task, name) && !spoken_of(said, name);
    free(now);
    free(said);
    if (unread) {
        least = likely;
        return try_step(a, ACT_CLICK, name, &least, e);
    }
    if (left_out) {
        enum action_kind first = thing.field ? ACT_TYPE : ACT_CLICK;
        if (try_step(a, first, name, &least, e))
            return -1;
        return least < surely ? try_step(a, first == ACT_TYPE ? ACT_CLICK : ACT_TYPE, name, &least, e) : 0;
    }
    if (last->kind != ACT_CLICK ||
        !thing_of_name(&v->seen.map, &v->seen.text, last->element, false, LOCATE_CLICK, &thing) ||
        !thing.field)
        return 0;
    least = likely; /* it may open a list or a calendar */
    char *field = xstrdup(last->element);
    int rc = try_step(a, ACT_TYPE, field, &least, e);
    free(field);
    return rc;
}

int agent_cover(struct agent *a, struct err *e)
{
    const struct action *last = reviewed_action(a);
    struct review v = {.a = a};
    if (a->reply.status != ATTEMPT_READ || a->reply.fault != FAULT_NONE || a->step.budget != AGENT_RUNNING ||
        !is_reviewed(last) || !llm_is_located(a->o->llm) || task_has_conditions(a->run.task))
        return 0;
    if (llm_read_picture(a->o->llm, &a->step.frame, &v.seen.map, &v.seen.text, e))
        return -1;
    v.before = replies_before(a);
    v.writes = writes_before(a);
    int rc = v.seen.map.patches && (see_to_rest(&v, e) || see_to_lost_texts(&v, e) || see_to_words(&v, e))
                 ? -1
                 : 0;
    free(v.before);
    free(v.writes.all);
    text_free(&v.seen.text);
    patch_map_free(&v.seen.map);
    return rc;
}
