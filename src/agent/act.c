/* act.c - act, the third part of a step: performs the actions of a reply.
 *
 * Each action is printed, recorded and synced to disk before it is performed. Mistakes of the model go into
 * the outcome, which the next prompt reports; a lost display or a full disk ends the run.
 */
#include "actions/registry.h"
#include "agent/private.h"
#include "agent/record.h"
#include "base/clock.h"
#include "screen/observed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the tool output of a performed action, "" for most kinds: the next screenshot shows their
 * effect. */
static const char *result_of(const struct action *action)
{
    const char *result = registry_entry(action->kind)->result;
    if (action->kind == ACT_PLAN)
        return action->text ? action->text : "";
    return result ? result : "";
}

int agent_place(const struct agent *a, struct view_transform *out, struct err *e)
{
    struct screen_rect view;
    if (screen_view_now(a->o->screen, &view, e))
        return -1;
    *out = (struct view_transform){view.x, view.y, (double)view.w / a->step.frame.w,
                                   (double)view.h / a->step.frame.h};
    return 0;
}

/* Updates step.place, because the view and its content may have moved since the screenshot. If the size of
 * the view has changed too, a target can be anywhere: sets *lost for an action with a target and explains it
 * in outcome.result. Returns -1 with e. */
static int follow_view(struct agent *a, const struct action *action, bool *lost, struct err *e)
{
    struct view_transform now;
    bool aims = action->x != ACTION_ABSENT || action->x2 != ACTION_ABSENT;
    if (agent_place(a, &now, e))
        return -1;
    *lost = aims && (now.sx != a->step.place.sx || now.sy != a->step.place.sy);
    a->step.place = now;
    if (*lost)
        agent_set_text(&a->outcome.result,
                       xstrdup("the screen has changed its size since the last screenshot, so nothing was "
                               "done; look at the new screenshot"));
    return 0;
}

/* Marks the step as failed; the next prompt gives the reason `why`. */
static void fail_step(struct agent *a, const char *why)
{
    progress_trouble(a->o->progress, why);
    agent_set_text(&a->outcome.result, xstrdup(why));
    a->outcome.failed = true;
}

/* Lifts the provider's safety check for the rest of the step, because a user has approved the action; the
 * server learns this with the next turn. */
static void let_check_pass(struct agent *a)
{
    gate_set_check(a->o->gate, NULL);
    agent_set_text(&a->reply.step.check, NULL);
    if (!a->o->dry_run && a->o->llm->ops->checks_passed)
        a->o->llm->ops->checks_passed(a->o->llm);
}

/* Sets *pass to whether the rules, or the user that they ask, allow the action. The run's clock is paused
 * meanwhile. Returns -1 with e if recording or the gate fails. */
static int pass_gate(struct agent *a, int index, bool *pass, struct err *e)
{
    struct gate_ruling ruling;
    *pass = true;
    if (!a->o->gate)
        return 0;
    gate_set_thought(a->o->gate, a->reply.step.thought);
    gate_set_check(a->o->gate, a->reply.step.check);
    int rc = gate_decide(a->o->gate, &a->reply.step.actions[index], &a->step.place, a->step.number,
                         a->step.confirmed, &ruling, e);
    a->run.paused_ns += (int64_t)(ruling.ms * 1e6);
    if (!ruling.who || !strcmp(ruling.who, "unattended") || !strcmp(ruling.who, "nobody"))
        a->run.paused_seen_ns +=
            (int64_t)(ruling.ms * 1e6); /* no user was asked: input since then is not an answer */
    *pass = rc == 0 && ruling.pass;
    const char *error = *pass ? NULL : rc ? e->text : ruling.told;
    if (record_ruling(a->o->trace, a->step.number, index, &ruling, *pass, error, rc ? NULL : e) || rc)
        return -1;
    if (!*pass)
        agent_deed_ruled(a, &a->reply.step.actions[index], &ruling);
    if (!*pass)
        fail_step(a, ruling.told);
    else if (a->reply.step.check && action_is(a->reply.step.actions[index].kind, ACTION_TOUCHES))
        let_check_pass(a);
    return 0;
}

/* Records the result of an action. error: NULL if it was performed; done: NULL if it was not attempted. */
static int record_exec(struct agent *a, int index, const char *error, const struct exec_result *done,
                       struct err *e)
{
    struct trace *t = a->o->trace;
    int typed = a->o->dry_run || !done ? 0 : action_characters(&a->reply.step.actions[index]);
    trace_begin(t, a->step.number, "exec");
    trace_int(t, "index", index);
    trace_bool(t, "ok", !error);
    if (error)
        trace_text(t, "error", error);
    if (done)
        trace_int(t, "events", done->events);
    if (!error && done && done->unsure)
        trace_text(t, "unsure", done->unsure);
    if (typed)
        trace_int(t, "typed", typed);
    if (done)
        trace_number(t, "ms", done->ms);
    return trace_end(t, e);
}

/* Adds the action to the list by which the run is judged. failed: reason for not performing it, or NULL. */
static void list_deed(struct agent *a, const struct action *action, enum action_fault fault, bool stale,
                      const char *failed)
{
    if (fault == FAULT_NONE || stale)
        agent_deed(a, action, stale ? DEED_INTERRUPTED : DEED_OPEN, failed);
    else
        agent_deed_failed(a, action, fault, failed);
}

/* Returns whether the action only fills in a field. */
static bool only_types(const struct action *action)
{
    return action_is(action->kind, ACTION_TYPES) && !action->press_enter && !strchr(action->text, '\n');
}

/* Notes a press that was the whole step, and actions whose effect may come late (early.c). */
static void note_press(struct agent *a, const struct action *action)
{
    a->outcome.pressed = a->reply.step.nactions == 1 && action_is(action->kind, ACTION_CLICKS) &&
                         action->x != ACTION_ABSENT && action->y != ACTION_ABSENT && !a->o->dry_run;
    a->outcome.pressed_x = action->x;
    a->outcome.pressed_y = action->y;
    a->outcome.may_load |= action_is(action->kind, ACTION_CHANGES) && !only_types(action) && !a->o->dry_run;
}

/* Performs one recorded action. Returns -1 with e only for errors that end the run; the model reads all
 * others. */
static int perform(struct agent *a, int index, struct err *e)
{
    const struct agent_options *o = a->o;
    const struct action *action = &a->reply.step.actions[index];
    struct exec_result done = {0};
    struct err why = ERR_INIT;
    enum action_fault fault = FAULT_NONE;
    bool pass, lost, stale = false;
    int64_t start = clock_ns() - a->run.paused_ns;
    if (follow_view(a, action, &lost, e))
        return -1;
    if (lost || !agent_affords(a, action)) { /* outcome.result gives the reason */
        progress_trouble(o->progress, a->outcome.result);
        a->outcome.failed = true;
        agent_deed(a, action, lost ? DEED_INTERRUPTED : DEED_FAILED, a->outcome.result);
        return record_exec(a, index, a->outcome.result, NULL, e);
    }
    agent_tell_spent(a);
    if (pass_gate(a, index, &pass, e))
        return -1;
    if (!pass)
        return 0;
    if (agent_ignore_answers(a, e) || trace_sync(o->trace, e))
        return -1;
    agent_spend(a, action);
    int presses = observed_presses(o->screen);
    screen_deadline(o->screen, a->run.start + a->run.paused_ns + (int64_t)(o->max_seconds * 1e9));
    if (!o->dry_run)
        fault = o->gate ? gate_execute(o->gate, action, &a->step.place, &done, &why)
                        : action_execute(o->screen, action, &a->step.place, &done, &why);
    screen_deadline(o->screen, 0);
    done.ms = clock_ms_since(start + a->run.paused_ns); /* all of it, without the time of a question */
    a->step.ms[PHASE_ACT] += done.ms;
    if (fault != FAULT_NONE && agent_check_stale(a, index, presses, &stale, e))
        return -1;
    const char *failed = fault == FAULT_NONE ? NULL : stale ? a->outcome.result : why.text;
    list_deed(a, action, fault, stale, failed);
    if (record_exec(a, index, failed, &done, e))
        return -1;
    if (stale)
        return 0;
    if (o->gate && !o->dry_run &&
        (fault == FAULT_NONE || action_is(action->kind, ACTION_HOLDS | ACTION_FOCUS)))
        gate_action_done(o->gate, action);
    if (fault != FAULT_NONE && (why.kind == ERR_STOPPED || why.kind == ERR_ENV)) {
        *e = why; /* stopped, or the display is lost */
        return -1;
    }
    if (fault == FAULT_NONE)
        note_press(a, action);
    if (fault != FAULT_NONE)
        fail_step(a, why.text);
    else if (done.unsure && strstr(o->dialect->tool_error, "{message}"))
        agent_set_text(&a->outcome.result, xasprintf("unsure: %s", done.unsure));
    else
        agent_set_text(&a->outcome.result, xstrdup(result_of(action)));
    return 0;
}

/* Ends the run with its answer, unless a validator rejects the answer and the model may try again. */
static int finish(struct agent *a, const struct action *last, struct err *e)
{
    const struct validator *v = a->o->validator;
    bool asked =
        v && v->passes > 0 && last->kind == ACT_ANSWER && a->step.budget == AGENT_RUNNING && !a->o->dry_run;
    bool accepted = true;
    char *answer = secrets_mask(a->o->secrets, last->text ? last->text : "");
    int rc = asked ? agent_validate(a, answer, &accepted, e) : 0;
    if (rc || (!accepted && a->run.validations < v->most)) {
        free(answer);
        return rc;
    }
    if (last->kind == ACT_ASK && !*answer)
        agent_set_text(&answer, xstrdup("the user has to help"));
    a->r->answer = answer;
    a->r->status = last->kind == ACT_ANSWER          ? AGENT_UNVALIDATED
                   : a->o->unclear && *a->o->unclear ? AGENT_UNCLEAR
                                                     : AGENT_INFEASIBLE;
    bool claims = last->kind == ACT_ANSWER && accepted && a->step.budget == AGENT_RUNNING;
    return claims ? agent_conclude(a, last, asked, e) : 0;
}

/* Performs the actions of the step, up to the first that fails or ends the run. Appends their canonical form
 * to `signature`. Returns -1 with e. */
static int perform_all(struct agent *a, struct buf *signature, struct err *e)
{
    for (int i = 0; i < a->reply.step.nactions && !a->outcome.failed; i++) {
        const struct action *action = &a->reply.step.actions[i];
        if (record_action(a->o->trace, a->o->progress, a->step.number, i, action, signature, e))
            return -1;
        if (action_ends_run(action->kind))
            return finish(a, action, e);
        if (a->step.budget != AGENT_RUNNING) /* a budget is used up: the run requested only an answer */
            return 0;
        a->outcome.expects_change |= action_is(action->kind, ACTION_CHANGES);
        if (perform(a, i, e))
            return -1;
    }
    return 0;
}

/* Ends a step that the user refused. It counts neither as an error of the model nor as a repetition. */
static int refuse(struct agent *a, struct err *e)
{
    agent_set_text(&a->outcome.result,
                   xasprintf("the user did not allow this%s%s", *a->step.veto ? ": " : "", a->step.veto));
    agent_set_text(&a->outcome.signature, NULL);
    a->outcome.failed = true;
    a->outcome.repeats = 0;
    if (a->step.budget != AGENT_RUNNING)
        a->r->status = a->step.budget;
    agent_history_done(a, false);
    agent_deed_vetoed(a);
    progress_trouble(a->o->progress, a->outcome.result);
    return trace_sync(a->o->trace, e);
}

/* Reports to the model the actions that were performed instead of its own. */
static void tell_edit(struct agent *a)
{
    autofree char *what = actions_describe(a->reply.step.actions, a->reply.step.nactions);
    agent_set_text(&a->outcome.result,
                   xasprintf("The user changed this action. The action performed was: %s.%s%s", what,
                             *a->outcome.result ? " " : "", a->outcome.result));
}

/* Counts repetitions of the same actions in sequence; a stale step does not count. */
static void note_signature(struct agent *a, struct buf *signature)
{
    bool same = a->outcome.signature && !strcmp(a->outcome.signature, signature->data);
    char *text = buf_take(signature);
    if (a->outcome.is_stale) {
        free(text);
        a->outcome.expects_change = false;
        return;
    }
    a->outcome.repeats = same ? a->outcome.repeats + 1 : 1;
    agent_set_text(&a->outcome.signature, text);
}

int agent_act(struct agent *a, struct err *e)
{
    struct buf signature;
    int rc = 0;
    agent_set_text(&a->outcome.result, xstrdup(""));
    agent_set_text(&a->outcome.dropped, a->reply.step.dropped ? xstrdup(a->reply.step.dropped) : NULL);
    a->outcome.failed = a->outcome.expects_change = a->outcome.is_stale = false;
    a->outcome.pressed = a->outcome.may_load = false;
    a->outcome.tool = prompt_tool(
        a->o->dialect, a->reply.step.nactions ? a->reply.step.actions[0].kind : ACT_NONE, a->reply.text);
    if (a->step.veto)
        return refuse(a, e);
    buf_init(&signature, AGENT_TEXT_MAX);
    if (a->reply.fault != FAULT_NONE) { /* the reply contains a mistake */
        agent_set_text(&a->outcome.result, xstrdup(a->reply.why.text));
        a->outcome.failed = true;
        agent_deed_mistaken(a);
        rc = agent_record_fault(a, "error", action_fault_name(a->reply.fault), a->reply.why.text, e);
        buf_puts(&signature, a->reply.text);
    } else {
        rc = perform_all(a, &signature, e);
    }
    agent_history_done(a, a->reply.fault == FAULT_NONE);
    if (a->step.edited && !a->outcome.failed)
        tell_edit(a);
    if (!a->outcome.is_stale)
        a->outcome.stale = 0;
    if (!screen_user_input(a->o->screen) && !a->outcome.is_stale) /* interruptions do not count as errors */
        a->outcome.errors = a->outcome.failed ? a->outcome.errors + 1 : 0;
    if (a->step.budget != AGENT_RUNNING) /* this was the last turn */
        a->r->status = a->step.budget;
    else if (a->o->max_errors && a->outcome.errors >= a->o->max_errors && a->run.exceeded == AGENT_RUNNING &&
             agent_seconds(a) < a->o->max_seconds) /* running out of time is not an error of the model */
        a->r->status = AGENT_ERRORS;
    note_signature(a, &signature);
    return rc;
}
