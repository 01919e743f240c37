/* think.c - think, the second part of a step: samples a reply of the model until one can be parsed.
 *
 * An unparsable reply is rewound, as if it had never been generated, and sampled again. The accepted reply
 * stays in the conversation in the model's own words.
 */
#include "actions/syntax.h"
#include "agent/private.h"

#include "base/flag.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTEMPTS = 4 };

/* Returns the temperature of an attempt: the dialect's for the first reply, 0.1 lower for the second (at
 * least 0.1), then 0.1 and 0.2 higher. For a greedy dialect: 0, then 0.3 more for each attempt. With
 * warm_up, a repeated action without effect raises even the first to at least 0.3 per repetition: an
 * unchanged prompt would give the same reply. */
static float temperature_of(const struct agent *a, int attempt)
{
    float t = a->o->sampling.temperature;
    if (attempt == 0)
        return a->o->warm_up && a->outcome.repeats ? fmaxf(t, 0.3f * (float)a->outcome.repeats) : t;
    if (t == 0)
        return 0.3f * (float)attempt;
    return attempt == 1 ? fmaxf(t - 0.1f, 0.1f) : t + 0.1f * (float)(attempt - 1);
}

/* Cancels generation when the time budget ends or the run is stopped. Called with each piece of generated
 * text, and while an endpoint is silent, so that a slow model cannot exceed the time budget by a whole
 * reply. The final answer, requested when a budget is used up, has its own time limit. */
static void check_deadline(void *arg, const char *text, size_t len)
{
    struct agent *a = arg;
    progress_writing(a->o->progress, text, len);
    double end = a->step.budget == AGENT_RUNNING ? a->o->max_seconds : a->step.answer_until;
    if (flag_up(screen_stop_flag(a->o->screen)) || agent_seconds(a) >= end)
        a->run.cancel = 1;
}

/* Parses a reply. If the model ended the reply itself, the last line is complete (actions/calls.h). */
static enum action_fault parse_generated(struct agent *a, const struct generated *g, struct step *out,
                                         struct err *why)
{
    const struct dialect *d = a->o->dialect;
    bool ended = g->finish == FINISH_STOP && !d->syntax->one_line;
    struct buf text;
    buf_init(&text, g->text.len + 2);
    buf_put(&text, g->text.data, g->text.len);
    buf_puts(&text, ended ? "\n" : "");
    enum action_fault f = action_parse(text.data, text.len, d, a->step.frame.w, a->step.frame.h, out, why);
    buf_free(&text);
    return f;
}

/* Parses the generated text. A point off the screen or an unknown key is a mistake, which the model reads
 * about; text that does not contain a valid step is sampled again. Fails with ERR_STOPPED if the run was
 * stopped. */
static enum attempt read_reply(struct agent *a, struct err *e)
{
    struct agent_reply *r = &a->reply;
    const struct generated *g = &r->raw;
    if (g->finish == FINISH_CANCELLED && flag_up(screen_stop_flag(a->o->screen)))
        return err_set(e, ERR_STOPPED, "stopped while the model was deciding");
    if (g->finish == FINISH_CANCELLED)
        return ATTEMPT_OUT_OF_TIME;
    r->text = prompt_reply_as_history(g->text.data);
    r->as_said = !a->o->dialect->think;
    r->fault = parse_generated(a, g, &r->step, &r->why);
    if (g->finish == FINISH_LENGTH) { /* the end is missing, even if the rest parses */
        r->fault = FAULT_PARSE;
        err_set(&r->why, ERR_FAILED, "the reply was cut off after %d tokens", g->n);
        a->step.cut_off = true;
    }
    bool unreadable = r->fault == FAULT_PARSE || r->fault == FAULT_NO_ACTION || r->fault == FAULT_SCHEMA;
    return unreadable ? ATTEMPT_UNREADABLE : ATTEMPT_READ;
}

/* Adds the usage that the server reports for the reply; the context cannot know it. */
static void count_server(struct agent *a)
{
    const struct llm_usage *u = llm_usage(a->o->llm);
    struct agent_server *s = &a->step.server;
    if (!u)
        return;
    s->replies++;
    s->prompt += u->prompt > 0 ? u->prompt : 0;
    s->cached += u->cached > 0 ? u->cached : 0;
    s->counted = s->counted || u->prompt >= 0;
    s->says_cached = s->says_cached || u->cached >= 0;
    s->cost += u->cost > 0 ? u->cost : 0;
    s->currency = u->currency ? u->currency : "";
    a->step.cost.total = s->counted ? u->prompt : a->step.cost.total;
    a->step.cost.reused = s->cached;
    a->step.cost.prefilled = s->prompt - s->cached;
}

void agent_reply_free(struct agent_reply *r)
{
    step_free(&r->step);
    generated_free(&r->raw);
    free(r->text);
    *r = (struct agent_reply){0};
}

enum attempt agent_attempt(struct agent *a, int resample, float temperature, struct err *e)
{
    const struct agent_options *o = a->o;
    struct agent_reply *reply = &a->reply;
    struct llm_request r = {.goal = a->step.budget == AGENT_RUNNING ? GOAL_STEP : GOAL_ANSWER,
                            .sampling = o->sampling,
                            .think = o->dialect->think,
                            .begins = a->step.begins,
                            .resample = resample,
                            .alternatives = o->overseer ? o->overseer->alternatives : 0,
                            .cancel = &a->run.cancel,
                            .on_text = check_deadline,
                            .arg = a};
    r.sampling.temperature = temperature;
    r.sampling.max_tokens *= a->step.cut_off ? 2 : 1;
    a->run.cancel = 0;
    if (r.goal == GOAL_ANSWER && !a->step.answer_until)
        a->step.answer_until = agent_seconds(a) + a->o->answer_seconds;
    a->step.resamples = resample > a->step.resamples ? resample : a->step.resamples;
    agent_reply_free(reply);
    *reply = (struct agent_reply){.status = ATTEMPT_FAILED, .resample = resample, .temperature = temperature};
    struct err why = ERR_INIT;
    agent_watch(a);
    int rc = context_think(a->run.context, &r, &reply->raw, &why);
    if (rc == 0)
        count_server(a);
    a->step.generated += reply->raw.n;
    if (agent_unwatch(a, e))
        return ATTEMPT_FAILED;
    if (rc) {
        err_set(e, why.kind, "%s", why.text);
        return ATTEMPT_FAILED;
    }
    if (agent_record_reply(a, &r, &reply->raw, e))
        return ATTEMPT_FAILED;
    a->step.ms[PHASE_WRITE] += reply->raw.ms;
    a->step.forced += reply->raw.forced;
    a->step.proposed += reply->raw.proposed;
    a->step.accepted += reply->raw.accepted;
    reply->status = read_reply(a, e);
    if (reply->status == ATTEMPT_READ && agent_localize(a, e))
        reply->status = ATTEMPT_FAILED;
    return reply->status;
}

/* Samples until a reply can be parsed, at most ATTEMPTS times; out of time, the next reply must be the
 * answer. Returns -1 with e. */
static int attempt_until_read(struct agent *a, struct err *e)
{
    enum attempt got = ATTEMPT_UNREADABLE;
    for (int i = 0; i < ATTEMPTS && got == ATTEMPT_UNREADABLE; i++) {
        got = agent_attempt(a, i, temperature_of(a, i), e);
        if (got == ATTEMPT_OUT_OF_TIME) {
            a->step.budget = AGENT_TIME;
            a->step.beyond_budget = true;
            if (a->o->force_answer)
                got = agent_attempt(a, i, temperature_of(a, i), e);
        }
        if (got == ATTEMPT_UNREADABLE && agent_record_unreadable(a, e))
            return -1;
    }
    return got == ATTEMPT_FAILED ? -1 : 0;
}

static int record_step(struct agent *a, struct err *e)
{
    const struct agent_reply *r = &a->reply;
    struct trace *t = a->o->trace;
    progress_thought(a->o->progress, a->step.beyond_budget ? 0 : a->step.number,
                     r->step.thought ? r->step.thought : "");
    trace_begin(t, a->step.number, "step");
    trace_text(t, "note", r->step.note);
    trace_text(t, "thought", r->step.thought);
    if (r->step.check)
        trace_text(t, "check", r->step.check);
    if (a->step.beyond_budget)
        trace_bool(t, "beyond_budget", true);
    trace_int(t, "repairs", r->step.repairs);
    trace_int(t, "resample", r->resample);
    trace_bool(t, "as_said", r->as_said);
    if (!r->as_said) /* otherwise it is the text of the last reply */
        trace_text(t, "history", r->text);
    return trace_end(t, e);
}

int agent_think(struct agent *a, struct err *e)
{
    return attempt_until_read(a, e) || agent_correct_reply(a, e) ? -1 : 0;
}

int agent_take(struct agent *a, struct err *e)
{
    const struct agent_reply *r = &a->reply;
    agent_restore_secrets(a);
    bool shown =
        r->status == ATTEMPT_READ || (r->status == ATTEMPT_UNREADABLE && a->step.budget == AGENT_RUNNING);
    if (a->o->overseer && shown && agent_oversee(a, e))
        return -1;
    if (a->run.rewind_to)
        return 0;
    /* Out of time without a requested answer, or the answer cannot be parsed. */
    if (r->status == ATTEMPT_OUT_OF_TIME ||
        (r->status == ATTEMPT_UNREADABLE && a->step.budget != AGENT_RUNNING)) {
        a->r->status = a->step.budget;
        return 0;
    }
    if (r->status == ATTEMPT_UNREADABLE) {
        a->r->status = AGENT_UNPARSABLE;
        return err_set(e, ERR_MODEL, "no usable reply in %d attempts; the last one: %.200s", ATTEMPTS,
                       r->text);
    }
    return context_accept(a->run.context, r->text, r->as_said, e) || record_step(a, e) ? -1 : 0;
}
