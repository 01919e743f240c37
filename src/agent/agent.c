/* agent.c - the main loop of a run; see agent.h.
 *
 *     until the run ends:  observe -> think -> act -> record
 *
 * observe  waits for the screen, captures it, judges the effect of the last action
 * think    shows the screenshot to the model and samples until a reply can be parsed; both are repeated if
 *          the screen changes before it has settled (early.c)
 * act      records each action, syncs, performs it
 * record   prints, adds up totals, syncs
 *
 * Each part returns -1 if the run breaks off; a run that ends normally sets result->status. outcome.lead
 * collects the report about the step for the next prompt.
 */
#include "agent/private.h"
#include "llm/assist.h"

#include "base/clock.h"
#include "screen/emptied.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_STEPS = 10 }; /* keys left down are released after every 10th step */

const char *agent_status_name(enum agent_status s)
{
    return status_row(s)->name;
}

const char *agent_status_meaning(enum agent_status s)
{
    return status_row(s)->meaning;
}

bool agent_status_own(enum agent_status s)
{
    return status_row(s)->own;
}

int agent_exit_code(enum agent_status s, const struct err *e)
{
    if (s != AGENT_FAILED || !e->kind)
        return status_row(s)->exit;
    return e->kind == ERR_FAILED ? ERR_MODEL
                                 : (int)e->kind; /* the exit code of "infeasible" is reserved for the model */
}

double agent_seconds(const struct agent *a)
{
    return clock_ms_since(a->run.start + a->run.paused_ns) / 1000;
}

void agent_set_text(char **at, char *text)
{
    free(*at);
    *at = text;
}

static void add_server(struct agent_server *to, const struct agent_server *s)
{
    to->replies += s->replies;
    to->prompt += s->prompt;
    to->cached += s->cached;
    to->counted = to->counted || s->counted;
    to->says_cached = to->says_cached || s->says_cached;
    to->cost += s->cost;
    to->currency = s->currency ? s->currency : to->currency;
}

/* Adds the step to the totals of the run; an aborted step counts as far as it got. */
static void add_totals(struct agent *a)
{
    struct agent_result *r = a->r;
    bool replied = a->step.generated > 0 || a->reply.raw.reused; /* a repeated reply has no tokens */
    r->steps += replied && !a->step.beyond_budget;
    r->generated += a->step.generated;
    r->forced += a->step.forced;
    r->prefilled += a->step.cost.prefilled;
    r->reused += a->step.cost.reused;
    add_server(&r->server, &a->step.server);
    for (int p = 0; p < PHASES; p++)
        r->ms[p] += a->step.ms[p];
}

static void image_swap(struct image *a, struct image *b)
{
    struct image t = *a;
    *a = *b;
    *b = t;
}

static int end_step(struct agent *a, struct err *e)
{
    const struct agent_step *s = &a->step;
    struct progress_tokens tokens = {s->cost.reused, s->cost.prefilled, s->generated - s->forced,
                                     s->forced,      s->cost.images,    s->proposed,
                                     s->accepted};
    progress_times(a->o->progress, s->ms, &tokens);
    if (s->server.counted)
        progress_server(a->o->progress, &s->server);
    if (s->number % HELD_STEPS == 0) { /* keys that the model pressed and never released */
        screen_release_all(a->o->screen);
        if (a->o->gate)
            gate_keys_released(a->o->gate);
    }
    a->run.window_before = s->window;
    emptied_note_shown(a->run.emptied, &a->run.before);
    image_swap(&a->run.before, s->decided_on.rgb ? &a->step.decided_on : &a->step.frame);
    return trace_sync(a->o->trace, e);
}

static int parts_of_step(struct agent *a, struct err *e)
{
    if (agent_turn(a, e))
        return -1;
    if (a->r->status != AGENT_RUNNING) /* the new screenshot revealed a loop */
        return 0;
    agent_validate_see(a);
    if (a->o->overseer)
        agent_history_begin(a);
    if (agent_take(a, e))
        return -1;
    if (a->run.rewind_to) /* this step is abandoned for an earlier one */
        return trace_sync(a->o->trace, e);
    if (a->r->status == AGENT_RUNNING && agent_act(a, e)) /* otherwise out of time */
        return -1;
    return end_step(a, e);
}

void agent_begin_step(struct agent *a, int number, enum agent_status budget)
{
    struct image frame = a->step.frame; /* reuses its memory */
    image_free(&a->step.decided_on);
    free(a->step.veto);
    agent_reply_free(&a->reply);
    a->step = (struct agent_step){
        .number = number, .frame = frame, .budget = budget, .beyond_budget = budget != AGENT_RUNNING};
}

static int run_steps(struct agent *a, struct err *e)
{
    while (a->r->status == AGENT_RUNNING) {
        enum agent_status budget = agent_budget(a);
        if (budget != AGENT_RUNNING && (budget == AGENT_DRY_RUN || !a->o->force_answer)) {
            a->r->status = budget;
            return 0;
        }
        agent_begin_step(a, a->step.number + 1, budget);
        int rc = parts_of_step(a, e);
        add_totals(a);
        if (rc)
            return -1;
    }
    return 0;
}

static int run_tasks(struct agent *a, struct err *e)
{
    int rc;
    do
        rc = run_steps(a, e);
    while (rc == 0 && agent_next_task(a, e));
    return rc || a->r->status == AGENT_FAILED ? -1 : 0;
}

static int record_end(struct agent *a, const char *error, struct err *e)
{
    const struct agent_result *r = a->r;
    struct trace *t = a->o->trace;
    char totals[400];
    snprintf(totals, sizeof totals,
             "{\"steps\": %d, \"seconds\": %.3f, \"generated\": %lld, \"forced\": %lld, \"prefilled\": "
             "%lld, \"reused\": %lld, \"typed\": %lld, \"acted\": %d, \"cost\": %.9g, \"cancelled\": %d, "
             "\"cancelled_tokens\": %lld}",
             r->steps, r->seconds, (long long)r->generated, (long long)r->forced, (long long)r->prefilled,
             (long long)r->reused, (long long)r->typed, r->acted, r->server.cost, r->cancelled.turns,
             (long long)r->cancelled.tokens);
    trace_begin(t, a->step.number, "end");
    trace_text(t, "status", agent_status_name(r->status));
    if (r->limit) {
        trace_text(t, "limit", r->limit);
        trace_number(t, "allowed", r->allowed);
    }
    if (r->answer)
        trace_text(t, "answer", r->answer);
    if (r->said)
        trace_text(t, "said", r->said);
    trace_text(t, "did", r->did);
    trace_json(t, "deeds", r->deeds);
    if (error)
        trace_text(t, "error", error);
    trace_json(t, "totals", totals);
    return trace_end(t, e) || trace_sync(t, e) ? -1 : 0;
}

void agent_result_free(struct agent_result *r)
{
    free(r->answer);
    free(r->said);
    free(r->did);
    free(r->deeds);
    r->answer = r->said = r->did = r->deeds = NULL;
}

void agent_list_deeds(struct agent *a)
{
    agent_set_text(&a->r->did, deeds_line(&a->run.deeds));
    agent_set_text(&a->r->deeds, deeds_json(&a->run.deeds));
}

static void agent_free(struct agent *a)
{
    deeds_free(&a->run.deeds);
    agent_reply_free(&a->reply);
    agent_outcome_free(&a->outcome);
    image_free(&a->step.frame);
    image_free(&a->step.decided_on);
    free(a->step.veto);
    context_free(a->run.context);
    if (a->o->gate)
        gate_set_task(a->o->gate, a->o->task);
    free(a->run.task);
    image_free(&a->run.before);
    emptied_free(a->run.emptied);
    for (int i = 0; i < VALIDATOR_FRAMES; i++)
        image_free(&a->run.recent[i]);
    history_free(&a->run.history);
    free(a->run.ids);
    free(a->run.acted_at);
}

void agent_set_task(struct agent *a, const char *task)
{
    const struct agent_options *o = a->o;
    const char *unused = NULL;
    bool assisted = ASSIST(o->assist, read_task) && secrets_count(o->secrets);
    agent_set_text(&a->run.task, assisted ? o->assist->ops->read_task(o->assist, task, o->secrets, &unused)
                                          : xstrdup(task));
    agent_outcome_free(&a->outcome);
    a->outcome = (struct agent_outcome){
        .lead = prompt_task(o->dialect, a->run.task), .result = xstrdup(""), .tiles = -1};
    if (unused) {
        autofree char *text =
            xasprintf("secret %s is not used in the task; write {{%s}} where it belongs", unused, unused);
        progress_trouble(o->progress, text);
    }
}

int agent_run(const struct agent_options *o, struct agent_result *r, struct err *e)
{
    struct agent a = {.o = o, .r = r, .run = {.start = clock_ns(), .emptied = emptied_new()}};
    struct screen_rect view = screen_view(o->screen);
    struct prompt_vars vars = {o->task, o->max_steps, view.w, view.h, o->max_seconds};
    *r = (struct agent_result){.status = AGENT_RUNNING};
    agent_set_task(&a, o->task);
    autofree char *system = o->resume ? xstrdup(o->resume->system) : prompt_system(o->dialect, &vars, e);
    /* The text of a resumed run already contains the names of its secrets. */
    if (system && !o->resume && !ASSIST(o->assist, read_task))
        agent_set_text(&system, prompt_secrets(system, o->secrets));
    int rc = -1;
    if (system)
        a.run.context = context_new(o->llm, o->dialect, o->window, o->max_images,
                                    o->overseer ? OVERSEER_MARKS : 0, system, e);
    if (a.run.context && o->elements && o->elements->only)
        context_hide_images(a.run.context);
    if (a.run.context)
        rc = agent_record_start(&a, system, e);
    if (rc == 0 && o->resume)
        rc = agent_resume(&a, o->resume, e);
    if (rc == 0)
        rc = run_tasks(&a, e);
    screen_release_all(o->screen);
    r->seconds = agent_seconds(&a);
    if (rc && r->status != AGENT_UNPARSABLE)
        r->status = e->kind == ERR_STOPPED ? AGENT_STOPPED : AGENT_FAILED;
    agent_name_limit(&a);
    agent_list_deeds(&a);
    if (record_end(&a, rc ? e->text : NULL, rc ? NULL : e) && rc == 0) {
        r->status = AGENT_FAILED;
        rc = -1;
    }
    agent_free(&a);
    return rc;
}
