/* agent.c - the loop; see agent.h.
 *
 *     while the run goes on:  observe -> think -> act -> record
 *
 * observe  waits until the screen rests, takes a picture, judges what the last action changed
 * think    shows it to the model and gets a step that can be read, asking again if need be
 * act      writes each action down, syncs, performs it
 * record   prints, adds up, syncs
 *
 * A function of these returns -1 when the run breaks off; a run that comes to its own end sets
 * result->status instead.  What is to be told to the model about a step is gathered in `lead`, which
 * opens its next turn.
 */
#include "agent/private.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_STEPS = 10 }; /* longest that a key may stay down */

/* ---- names ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int exit;
    const char *meaning;
} statuses[] = {
    [AGENT_RUNNING] = {"running", 0, "is running"},
    [AGENT_ANSWERED] = {"answered", 0, "answered"},
    [AGENT_INFEASIBLE] = {"infeasible", ERR_FAILED, "cannot be done"},
    [AGENT_UNVALIDATED] = {"unvalidated", ERR_FAILED, "answered, and was not believed"},
    [AGENT_DRY_RUN] = {"dry-run", 0, "decided, and did nothing"},
    [AGENT_STEPS] = {"steps", ERR_STEPS, "used up its steps"},
    [AGENT_TOKENS] = {"tokens", ERR_STEPS, "used up its tokens"},
    [AGENT_TIME] = {"time", ERR_TIME, "used up its time"},
    [AGENT_TYPED] = {"typed", ERR_STEPS, "used up the characters that it may type"},
    [AGENT_RATE] = {"rate", ERR_STEPS, "did more within a minute than it may"},
    [AGENT_LOOP] = {"loop", ERR_UNSURE, "went in circles"},
    [AGENT_ERRORS] = {"errors", ERR_UNSURE, "too many errors in a row"},
    [AGENT_UNPARSABLE] = {"unparsable", ERR_MODEL, "no usable reply after several attempts"},
    [AGENT_STOPPED] = {"stopped", ERR_STOPPED, "was stopped"},
    [AGENT_FAILED] = {"failed", ERR_ENV, "failed"},
};

const char *agent_status_name(enum agent_status s)
{
    return statuses[s].name;
}

const char *agent_status_meaning(enum agent_status s)
{
    return statuses[s].meaning;
}

bool agent_status_own(enum agent_status s)
{
    return s == AGENT_ANSWERED || s == AGENT_INFEASIBLE || s == AGENT_UNVALIDATED;
}

int agent_exit_code(enum agent_status s, const struct err *e)
{
    if (s != AGENT_FAILED || !e->kind)
        return statuses[s].exit;
    return e->kind == ERR_FAILED ? ERR_MODEL : (int)e->kind; /* "it cannot be done" is for the model to say */
}

/* ---- shared by the parts --------------------------------------------------------------------- */

double agent_seconds(const struct agent *a)
{
    return clock_ms_since(a->start + a->waited) / 1000;
}

void agent_set_text(char **at, char *text)
{
    free(*at);
    *at = text;
}

int agent_record_fault(struct agent *a, const char *kind, const char *code, const char *message,
                       struct err *e)
{
    trace_begin(a->o->trace, a->number, kind);
    trace_text(a->o->trace, "code", code);
    trace_text(a->o->trace, "message", message);
    progress_trouble(a->o->progress, message);
    return trace_end(a->o->trace, e);
}

/* ---- record ---------------------------------------------------------------------------------- */

/* Sums of the run; a step that broke off counts as far as it went. */
static void add_up(struct agent *a)
{
    struct agent_result *r = a->r;
    r->steps += a->generated > 0 && !a->beyond;
    r->generated += a->generated;
    r->forced += a->forced;
    r->prefilled += a->cost.prefilled;
    r->reused += a->cost.reused;
    for (int p = 0; p < PHASES; p++)
        r->ms[p] += a->ms[p];
}

static int record(struct agent *a, struct err *e)
{
    struct progress_tokens tokens = {a->cost.reused, a->cost.prefilled, a->generated - a->forced, a->forced,
                                     a->cost.images};
    progress_times(a->o->progress, a->ms, &tokens);
    if (a->number % HELD_STEPS == 0) { /* a key that the model pressed and forgot */
        screen_release_all(a->o->screen);
        if (a->o->gate)
            gate_keys_released(a->o->gate);
    }
    image_free(&a->before);
    if (image_copy(&a->before, a->at_hand.rgb ? &a->at_hand : &a->frame, e))
        return -1;
    image_free(&a->at_hand);
    return trace_sync(a->o->trace, e);
}

/* ---- the run --------------------------------------------------------------------------------- */

static int parts_of_step(struct agent *a, struct err *e)
{
    if (a->back ? agent_recall(a, e) : agent_observe(a, e))
        return -1;
    if (a->r->status != AGENT_RUNNING) /* going in circles: seen only now */
        return 0;
    agent_validate_see(a);
    if (a->o->overseer)
        agent_history_begin(a);
    if (agent_think(a, e))
        return -1;
    if (a->back) /* it is left for an earlier one */
        return trace_sync(a->o->trace, e);
    if (a->r->status == AGENT_RUNNING && agent_act(a, e)) /* else out of time */
        return -1;
    return record(a, e);
}

static int one_step(struct agent *a, struct err *e)
{
    a->number++;
    a->beyond = a->budget != AGENT_RUNNING;
    a->generated = a->forced = a->resamples = 0;
    a->edited = false;
    agent_set_text(&a->veto, NULL);
    image_free(&a->at_hand);
    a->cost = (struct context_cost){0};
    memset(a->ms, 0, sizeof a->ms);
    int rc = parts_of_step(a, e);
    add_up(a);
    return rc;
}

static int steps(struct agent *a, struct err *e)
{
    while (a->r->status == AGENT_RUNNING) {
        a->budget = agent_budget(a);
        if (a->budget != AGENT_RUNNING && (a->budget == AGENT_DRY_RUN || !a->o->force_answer)) {
            a->r->status = a->budget;
            return 0;
        }
        if (one_step(a, e))
            return -1;
    }
    return 0;
}

static int record_end(struct agent *a, const char *error, struct err *e)
{
    const struct agent_result *r = a->r;
    struct trace *t = a->o->trace;
    char totals[320];
    snprintf(totals, sizeof totals,
             "{\"steps\": %d, \"seconds\": %.3f, \"generated\": %lld, \"forced\": %lld, \"prefilled\": %lld, "
             "\"reused\": %lld, \"typed\": %lld, \"acted\": %d}",
             r->steps, r->seconds, (long long)r->generated, (long long)r->forced, (long long)r->prefilled,
             (long long)r->reused, (long long)r->typed, r->acted);
    trace_begin(t, a->number, "end");
    trace_text(t, "status", agent_status_name(r->status));
    if (r->limit) {
        trace_text(t, "limit", r->limit);
        trace_number(t, "allowed", r->allowed);
    }
    if (r->answer)
        trace_text(t, "answer", r->answer);
    if (error)
        trace_text(t, "error", error);
    trace_json(t, "totals", totals);
    return trace_end(t, e) || trace_sync(t, e) ? -1 : 0;
}

static void agent_free(struct agent *a)
{
    context_free(a->context);
    image_free(&a->frame);
    image_free(&a->before);
    image_free(&a->at_hand);
    for (int i = 0; i < VALIDATOR_FRAMES; i++)
        image_free(&a->recent[i]);
    step_free(&a->step);
    generated_free(&a->raw_reply);
    history_free(&a->history);
    free(a->veto);
    free(a->reply);
    free(a->lead);
    free(a->signature);
    free(a->result);
    free(a->kept);
    free(a->acted_at);
}

int agent_run(const struct agent_options *o, struct agent_result *r, struct err *e)
{
    struct agent a = {.o = o, .r = r, .start = clock_ns(), .result = xstrdup(""), .tiles = -1};
    struct screen_rect view = screen_view(o->screen);
    struct prompt_vars w = {o->task, o->max_steps, view.w, view.h, o->max_seconds};
    *r = (struct agent_result){.status = AGENT_RUNNING};
    a.lead = prompt_task(o->dialect, o->task);
    char *system = o->resume ? xstrdup(o->resume->system) : prompt_system(o->dialect, &w, e);
    if (system && !o->resume) /* else it stands there already */
        agent_set_text(&system, prompt_secrets(system, o->secrets));
    int rc = -1;
    if (system)
        a.context = context_new(o->llm, o->dialect, o->window, o->max_images, system, e);
    if (a.context && o->overseer)
        context_keep(a.context, OVERSEER_MARKS);
    if (a.context)
        rc = agent_keep_start(&a, system, e);
    if (rc == 0 && o->resume)
        rc = agent_resume(&a, o->resume, e);
    if (rc == 0)
        rc = steps(&a, e);
    screen_release_all(o->screen);
    r->seconds = agent_seconds(&a);
    if (rc && r->status != AGENT_UNPARSABLE)
        r->status = e->kind == ERR_STOPPED ? AGENT_STOPPED : AGENT_FAILED;
    agent_name_limit(&a);
    if (record_end(&a, rc ? e->text : NULL, rc ? NULL : e) && rc == 0) {
        r->status = AGENT_FAILED;
        rc = -1;
    }
    free(system);
    agent_free(&a);
    return rc;
}
