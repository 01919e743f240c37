/* think.c - the second part of a step: a reply of the model that can be read.
 *
 * A reply that is no step is taken back, as if it had never been said, and asked for again with other
 * dice.  What is accepted stays in the conversation in the model's own words.
 */
#include "agent/private.h"

#include "base/flag.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTEMPTS = 4 };

/* A first reply as the dialect wants it; the next ones a little cooler, then warmer.  After an action
 * that changed nothing even the first is warmer: the same question would get the same answer. */
static float temperature_of(const struct agent *a, int attempt)
{
    float t = a->o->sampling.temperature;
    if (attempt == 0)
        return a->o->warm_up && a->repeats ? fmaxf(t, 0.3f * (float)a->repeats) : t;
    if (t == 0)
        return 0.3f * (float)attempt;
    return attempt == 1 ? fmaxf(t - 0.1f, 0.1f) : t + 0.1f * (float)(attempt - 1);
}

/* Looked at with every piece of text: a slow model must not outlast the time budget by a whole reply.
 * The last answer, asked for because a budget is used up, is bounded by its length alone. */
static void watch(void *arg, const char *text, size_t len)
{
    struct agent *a = arg;
    (void)text;
    (void)len;
    if (flag_up(screen_stop_flag(a->o->screen)) ||
        (a->budget == AGENT_RUNNING && agent_seconds(a) >= a->o->max_seconds))
        a->cancel = 1;
}

/* What came of generating: is it a step, whatever is wrong with it?  A place off the screen or a key
 * that does not exist is the model's mistake, which it is told of; text that is no step at all is not
 * worth a turn. */
static enum attempted read_reply(struct agent *a, const struct generated *g, struct err *e)
{
    if (g->finish == FINISH_CANCELLED && flag_up(screen_stop_flag(a->o->screen)))
        return err_set(e, ERR_STOPPED, "stopped while the model was deciding");
    if (g->finish == FINISH_CANCELLED)
        return ATTEMPT_OUT_OF_TIME;
    agent_set_text(&a->reply, prompt_reply_as_history(g->text.data));
    a->as_said = !a->o->dialect->think;
    a->unread = (struct err)ERR_INIT;
    a->fault =
        action_parse(g->text.data, g->text.len, a->o->dialect, a->frame.w, a->frame.h, &a->step, &a->unread);
    if (g->finish == FINISH_LENGTH) { /* even if it reads well: its end is missing */
        a->fault = FAULT_PARSE;
        err_set(&a->unread, ERR_FAILED, "the reply was cut off after %d tokens", g->n);
        a->longer = true;
    }
    bool unreadable = a->fault == FAULT_PARSE || a->fault == FAULT_NO_ACTION || a->fault == FAULT_SCHEMA;
    return unreadable ? ATTEMPT_UNREADABLE : ATTEMPT_READ;
}

enum attempted agent_attempt(struct agent *a, int resample, float temperature, struct err *e)
{
    const struct agent_options *o = a->o;
    struct llm_request r = {.goal = a->budget == AGENT_RUNNING ? GOAL_STEP : GOAL_ANSWER,
                            .sampling = o->sampling,
                            .think = o->dialect->think,
                            .resample = resample,
                            .alternatives = o->overseer ? o->overseer->alternatives : 0,
                            .cancel = &a->cancel,
                            .on_text = watch,
                            .arg = a};
    r.sampling.temperature = a->temperature = temperature;
    r.sampling.max_tokens *= a->longer ? 2 : 1;
    a->cancel = 0;
    a->resample = resample;
    a->resamples = resample > a->resamples ? resample : a->resamples;
    step_free(&a->step);
    generated_free(&a->raw_reply);
    if (context_think(a->context, &r, &a->raw_reply, e) || agent_keep_reply(a, &r, &a->raw_reply, e))
        return ATTEMPT_FAILED;
    a->ms[PHASE_WRITE] += a->raw_reply.ms;
    a->generated += a->raw_reply.n;
    a->forced += a->raw_reply.forced;
    enum attempted got = read_reply(a, &a->raw_reply, e);
    return got == ATTEMPT_READ && agent_localize(a, e) ? ATTEMPT_FAILED : got;
}

static enum attempted attempt(struct agent *a, int number, struct err *e)
{
    return agent_attempt(a, number, temperature_of(a, number), e);
}

/* Attempts until a reply can be read; out of time, the next one must be the answer. */
static enum attempted attempts(struct agent *a, struct err *e)
{
    enum attempted got = ATTEMPT_UNREADABLE;
    a->longer = false;
    for (int i = 0; i < ATTEMPTS && got == ATTEMPT_UNREADABLE; i++) {
        got = attempt(a, i, e);
        if (got == ATTEMPT_OUT_OF_TIME) {
            a->budget = AGENT_TIME;
            a->beyond = true;
            if (a->o->force_answer)
                got = attempt(a, i, e);
        }
        if (got == ATTEMPT_UNREADABLE &&
            agent_record_fault(a, "unreadable", action_fault_name(a->fault), a->unread.text, e))
            return ATTEMPT_FAILED;
    }
    return got;
}

int agent_think(struct agent *a, struct err *e)
{
    enum attempted got = attempts(a, e);
    if (a->o->overseer && (got == ATTEMPT_READ || (got == ATTEMPT_UNREADABLE && a->budget == AGENT_RUNNING)))
        got = agent_oversee(a, got, e);
    if (a->back && got != ATTEMPT_FAILED)
        return 0;
    /* Out of time without an answer wanted, or the answer that was wanted cannot be read. */
    if (got == ATTEMPT_OUT_OF_TIME || (got == ATTEMPT_UNREADABLE && a->budget != AGENT_RUNNING)) {
        a->r->status = a->budget;
        return 0;
    }
    if (got == ATTEMPT_UNREADABLE) {
        a->r->status = AGENT_UNPARSABLE;
        return err_set(e, ERR_MODEL, "no usable reply in %d attempts; the last one: %.200s", ATTEMPTS,
                       a->reply);
    }
    if (got == ATTEMPT_FAILED || context_accept(a->context, a->reply, a->as_said, e))
        return -1;
    struct trace *t = a->o->trace;
    progress_thought(a->o->progress, a->beyond ? 0 : a->number, a->step.thought ? a->step.thought : "");
    trace_begin(t, a->number, "step");
    trace_text(t, "note", a->step.note);
    trace_text(t, "thought", a->step.thought);
    if (a->beyond)
        trace_bool(t, "beyond_budget", true);
    trace_int(t, "repairs", a->step.repairs);
    trace_int(t, "reroll", a->resample); /* which of its replies */
    trace_bool(t, "as_said", a->as_said);
    if (!a->as_said) /* else it is the text of the last reply */
        trace_text(t, "history", a->reply);
    return trace_end(t, e);
}
