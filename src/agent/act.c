/* act.c - the third part of a step: each action is printed, written down and on disk before it is
 * performed.  What the model did wrong is kept for its next turn; what is nobody's fault but the
 * display's or the disk's ends the run.
 */
#include "agent/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool should_change(enum action_kind k)
{
    return k == ACT_CLICK || k == ACT_TYPE || k == ACT_KEY || k == ACT_SCROLL || k == ACT_DRAG ||
           k == ACT_HOLDTAP || k == ACT_GOTO || k == ACT_BACK || k == ACT_FORWARD || k == ACT_REFRESH;
}

/* Told to the model when the action was done; most say nothing, the next screenshot shows it. */
static const char *result_of(const struct action *action)
{
    if (action->kind == ACT_PLAN)
        return action->text ? action->text : "";
    return action->kind == ACT_WAIT ? "Waited." : "";
}

/* Prints an action and writes it down; its canonical form goes to the end of `signature`. */
static int record_action(struct agent *a, int index, struct buf *signature, struct err *e)
{
    const struct action *action = &a->step.actions[index];
    struct trace *t = a->o->trace;
    struct buf what;
    size_t at = signature->len;
    buf_init(&what, AGENT_TEXT_MAX);
    action_describe(action, &what);
    action_to_json(action, signature);
    progress_action(a->o->progress, what.data);
    trace_begin(t, a->number, "action");
    trace_int(t, "index", index);
    trace_text(t, "what", what.data);
    trace_json(t, "action", signature->data + at);
    buf_free(&what);
    return trace_end(t, e);
}

int agent_place(const struct agent *a, struct view_transform *out, struct err *e)
{
    struct screen_rect view;
    if (screen_view_now(a->o->screen, &view, e))
        return -1;
    *out = (struct view_transform){view.x, view.y, (double)view.w / a->frame.w, (double)view.h / a->frame.h};
    return 0;
}

/* What is looked at may have moved since it was seen, and what is in it moved along; when its size is another one, things
 * can be anywhere. */
static int follow_view(struct agent *a, const struct action *action, bool *lost, struct err *e)
{
    struct view_transform now;
    bool aims = action->x != ACTION_ABSENT || action->x2 != ACTION_ABSENT;
    if (agent_place(a, &now, e))
        return -1;
    *lost = aims && (now.sx != a->place.sx || now.sy != a->place.sy);
    a->place = now;
    if (*lost)
        agent_set_text(&a->result,
                       xstrdup("the screen has another size than in the last screenshot, so nothing "
                               "was done; look where things are now"));
    return 0;
}

/* Whether the rules, or a person they ask, let the action pass.  If not, the model is told why. */
static int pass_gate(struct agent *a, int index, const struct view_transform *place, bool *pass, struct err *e)
{
    struct trace *t = a->o->trace;
    struct gate_ruling ruling;
    *pass = true;
    if (!a->o->gate)
        return 0;
    int rc = gate_decide(a->o->gate, &a->step.actions[index], place, a->number, a->seen, &ruling, e);
    a->waited += (int64_t)(ruling.ms * 1e6); /* the clock of the run stands still while a person thinks */
    *pass = rc == 0 && ruling.pass;
    trace_begin(t, a->number, "gate");
    trace_int(t, "index", index);
    trace_text(t, "rule", ruling.rule.rule);
    trace_text(t, "verdict", policy_verdict_name(ruling.rule.verdict));
    trace_text(t, "who", ruling.who);
    trace_bool(t, "pass", *pass);
    if (*ruling.where)
        trace_text(t, "window", ruling.where);
    if (*ruling.crop)
        trace_text(t, "crop", ruling.crop);
    if (!*pass)
        trace_text(t, "error", rc ? e->text : ruling.told);
    if (trace_end(t, rc ? NULL : e) || rc)
        return -1;
    if (!*pass) {
        progress_trouble(a->o->progress, ruling.told);
        agent_set_text(&a->result, xstrdup(ruling.told));
        a->failed = true;
    }
    return 0;
}

/* Nothing is done, for what a->result says. */
static int record_undone(struct agent *a, int index, struct err *e)
{
    struct trace *t = a->o->trace;
    progress_trouble(a->o->progress, a->result);
    a->failed = true;
    trace_begin(t, a->number, "exec");
    trace_int(t, "index", index);
    trace_bool(t, "ok", false);
    trace_text(t, "error", a->result);
    return trace_end(t, e);
}

/* Performs one action that was written down; a failure that the model can be told of is not ours. */
static int perform(struct agent *a, int index, struct err *e)
{
    const struct agent_options *o = a->o;
    const struct action *action = &a->step.actions[index];
    struct exec_result done = {0};
    struct err why = ERR_INIT;
    enum action_fault fault = FAULT_NONE;
    bool pass, lost;
    if (follow_view(a, action, &lost, e))
        return -1;
    if (lost || !agent_affords(a, action))
        return record_undone(a, index, e);
    agent_tell_spent(a);
    if (pass_gate(a, index, &a->place, &pass, e))
        return -1;
    if (!pass)
        return 0;
    if (agent_forget_answers(a, e) || trace_sync(o->trace, e))
        return -1;
    agent_spend(a, action);
    screen_deadline(o->screen, a->start + a->waited + (int64_t)(o->max_seconds * 1e9));
    if (!o->dry_run)
        fault = o->gate ? gate_execute(o->gate, action, &a->place, &done, &why)
                        : action_execute(o->screen, action, &a->place, &done, &why);
    screen_deadline(o->screen, 0);
    a->ms[PHASE_ACT] += done.ms;
    trace_begin(o->trace, a->number, "exec");
    trace_int(o->trace, "index", index);
    trace_bool(o->trace, "ok", fault == FAULT_NONE);
    if (fault != FAULT_NONE)
        trace_text(o->trace, "error", why.text);
    trace_int(o->trace, "events", done.events);
    if (!o->dry_run && action_characters(action))
        trace_int(o->trace, "typed", action_characters(action));
    trace_number(o->trace, "ms", done.ms);
    if (trace_end(o->trace, e))
        return -1;
    if (o->gate && !o->dry_run && (fault == FAULT_NONE || action->kind == ACT_KEYDOWN))
        gate_action_done(o->gate, action);
    if (fault == FAULT_NONE) {
        agent_set_text(&a->result, xstrdup(result_of(action)));
        return 0;
    }
    if (why.kind == ERR_STOPPED || why.kind == ERR_ENV) {
        *e = why; /* stopped, or the display is lost */
        return -1;
    }
    progress_trouble(o->progress, why.text);
    agent_set_text(&a->result, xstrdup(why.text));
    a->failed = true;
    return 0;
}

/* The run ends with its answer, unless a validator does not accept that and there may be another. */
static int finish(struct agent *a, const struct action *last, struct err *e)
{
    const struct validator *v = a->o->validator;
    bool asked =
        v && v->passes > 0 && last->kind == ACT_ANSWER && a->budget == AGENT_RUNNING && !a->o->dry_run;
    bool accepted = true;
    char *answer = secrets_mask(a->o->secrets, last->text ? last->text : "");
    int rc = asked ? agent_validate(a, answer, &accepted, e) : 0;
    if (rc || (!accepted && a->validations < v->most)) {
        free(answer);
        return rc;
    }
    if (last->kind == ACT_ASK && !*answer)
        agent_set_text(&answer, xstrdup("a person has to help"));
    a->r->answer = answer;
    a->r->status = last->kind != ACT_ANSWER ? AGENT_INFEASIBLE
                   : accepted               ? AGENT_ANSWERED
                                            : AGENT_UNVALIDATED;
    return 0;
}

/* The actions of the step, up to the first that fails or ends the run. */
static int perform_all(struct agent *a, struct buf *signature, struct err *e)
{
    for (int i = 0; i < a->step.nactions && !a->failed; i++) {
        const struct action *action = &a->step.actions[i];
        if (record_action(a, i, signature, e))
            return -1;
        if (action_ends_run(action->kind))
            return finish(a, action, e);
        if (a->budget != AGENT_RUNNING) /* only an answer was asked for */
            return 0;
        a->expects_change |= should_change(action->kind);
        if (perform(a, i, e))
            return -1;
    }
    return 0;
}

/* A step that was not allowed is nobody's mistake, and repeats nothing. */
static int refuse(struct agent *a, struct err *e)
{
    agent_set_text(&a->result, xasprintf("a person did not allow this%s%s", *a->veto ? ": " : "", a->veto));
    agent_set_text(&a->signature, NULL);
    a->failed = true;
    a->repeats = 0;
    if (a->budget != AGENT_RUNNING)
        a->r->status = a->budget;
    agent_history_done(a, false);
    progress_trouble(a->o->progress, a->result);
    return trace_sync(a->o->trace, e);
}

/* The model said something else than what was done. */
static void tell_edit(struct agent *a)
{
    struct buf what;
    buf_init(&what, AGENT_TEXT_MAX);
    buf_puts(&what, "A person changed this before it was done. Done was: ");
    for (int i = 0; i < a->step.nactions; i++) {
        buf_puts(&what, i ? "; " : "");
        action_describe(&a->step.actions[i], &what);
    }
    buf_printf(&what, ".%s%s", *a->result ? " " : "", a->result);
    agent_set_text(&a->result, buf_take(&what));
    buf_free(&what);
}

int agent_act(struct agent *a, struct err *e)
{
    struct buf signature;
    int rc = 0;
    agent_set_text(&a->result, xstrdup(""));
    a->failed = a->expects_change = false;
    a->tool = prompt_tool(a->o->dialect, a->step.nactions ? a->step.actions[0].kind : ACT_NONE, a->reply);
    if (a->veto)
        return refuse(a, e);
    buf_init(&signature, AGENT_TEXT_MAX);
    if (a->fault != FAULT_NONE) { /* a step, but one that cannot be done */
        agent_set_text(&a->result, xstrdup(a->unread.text));
        a->failed = true;
        rc = agent_record_fault(a, "error", action_fault_name(a->fault), a->unread.text, e);
        buf_puts(&signature, a->reply);
    } else {
        rc = perform_all(a, &signature, e);
    }
    agent_history_done(a, a->fault == FAULT_NONE);
    if (a->edited && !a->failed)
        tell_edit(a);
    if (!screen_person(a->o->screen)) /* a person in the way is no mistake */
        a->errors = a->failed ? a->errors + 1 : 0;
    if (a->budget != AGENT_RUNNING) /* there is no further turn to do better in */
        a->r->status = a->budget;
    else if (a->o->max_errors && a->errors >= a->o->max_errors && a->spent == AGENT_RUNNING &&
             agent_seconds(a) < a->o->max_seconds) /* cut off is no mistake */
        a->r->status = AGENT_ERRORS;
    a->repeats = a->signature && !strcmp(a->signature, signature.data) ? a->repeats + 1 : 1;
    agent_set_text(&a->signature, buf_take(&signature));
    buf_free(&signature);
    return rc;
}
