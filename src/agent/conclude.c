/* conclude.c - keeps the list of actions (deeds.h) and sets the status of a run that ends with an answer.
 *
 * An answer is a claim. The run is a success only if something else confirms the claim: the last action that
 * should change the screen did so, a validator accepts the answer, or the task is a question and has an
 * answer. If the task is a list of known steps, there must also be an action for each.
 */
#include "agent/private.h"

#include "actions/tools.h"
#include "agent/task_asks.h"
#include "llm/assist.h"

#include <stdlib.h>
#include <string.h>

static const char declined[] = "you declined";

/* ---- the list ------------------------------------------------------------------------------------ */

static char *told(const struct agent *a, const struct action *action, bool past)
{
    autobuf b = buf_of(AGENT_TEXT_MAX);
    action_tell(action, past, &b);
    return secrets_mask(a->o->secrets, b.data ? b.data : "");
}

void agent_deed(struct agent *a, const struct action *action, enum deed_end end, const char *why)
{
    if (a->o->dry_run || !action_is(action->kind, ACTION_TOUCHES))
        return;
    autofree char *what = told(a, action, false), *did = told(a, action, true);
    struct deed *d = deeds_add(&a->run.deeds, a->step.number, action->kind, end, what, did, why);
    d->opens = action->press_enter || action->x != ACTION_ABSENT;
}

void agent_deed_ruled(struct agent *a, const struct action *action, const struct gate_ruling *r)
{
    const char *rule = r->rule.rule;
    autofree char *why = NULL;
    if (r->rule.verdict == POLICY_DENY)
        why = xasprintf("the rule \"%s\" forbids it", rule);
    else if (r->answer == CONFIRM_NOBODY)
        why = xasprintf("the rule \"%s\" requires confirmation, and no one could be asked (see --confirm)",
                        rule);
    else if (r->answer == CONFIRM_TIMED_OUT)
        why = xasprintf("you were asked (rule \"%s\") and did not answer in time", rule);
    else if (r->answer == CONFIRM_ALLOWED)
        why = xstrdup("the screen changed while you were asked");
    else if (!strcmp(r->who, "command"))
        why = xstrdup("the command of --confirm declined");
    agent_deed(a, action, DEED_REFUSED, why ? why : declined);
}

void agent_deed_vetoed(struct agent *a)
{
    if (a->reply.step.nactions)
        agent_deed(a, &a->reply.step.actions[0], DEED_REFUSED, declined);
}

/* Returns whether the active window belongs to another program than in the screenshot. */
static bool other_program(const struct agent *a)
{
    char title[8], class[sizeof a->step.window.class];
    bool known = *a->step.window.class &&
                 !screen_active_window(a->o->screen, title, sizeof title, class, sizeof class);
    return known && *class && strcmp(class, a->step.window.class) != 0;
}

void agent_deed_failed(struct agent *a, const struct action *action, enum action_fault fault, const char *why)
{
    bool interrupted = fault == FAULT_FOCUS || screen_user_input(a->o->screen) || other_program(a);
    agent_deed(a, action, interrupted ? DEED_INTERRUPTED : DEED_FAILED, why);
}

/* Returns whether the reply names a tool that ends the run. */
static bool names_an_end(const struct agent *a)
{
    const struct tools *t = a->o->dialect->tools;
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->list[i].name, a->outcome.tool))
            return action_ends_run(t->list[i].kind);
    return false;
}

void agent_deed_mistaken(struct agent *a)
{
    if (!a->o->dry_run && a->reply.fault != FAULT_NO_ACTION && !names_an_end(a))
        deeds_add(&a->run.deeds, a->step.number, ACT_NONE, DEED_FAILED, a->outcome.tool, a->outcome.tool,
                  a->reply.why.text);
}

/* Returns whether all actions of a step typed text without Enter, which opens no window of another
 * program. */
static bool only_typed(const struct deeds *d, int step)
{
    int n = 0;
    for (int i = 0; i < d->n; i++) {
        const struct deed *x = &d->list[i];
        if (x->step != step)
            continue;
        if (!action_is(x->kind, ACTION_TYPES) || x->opens)
            return false;
        n++;
    }
    return n > 0;
}

void agent_deeds_judge(struct agent *a, int step, bool changed)
{
    const struct window_name *was = &a->run.window_before, *is = &a->step.window;
    struct deeds *d = &a->run.deeds;
    bool taken = *was->class && *is->class && strcmp(was->class, is->class) != 0 && only_typed(d, step);
    deeds_judge(d, step, changed);
    for (int i = 0; taken && i < d->n; i++) {
        struct deed *x = &d->list[i];
        if (x->step != step || x->end > DEED_DONE)
            continue;
        x->end = DEED_INTERRUPTED;
        x->why = xasprintf("the window '%.80s' of another program came to the front", is->title);
    }
}

/* Captures the screen after actions of the reply that also ends the run, and judges them. Returns -1 with
 * e. */
static int look_once_more(struct agent *a, struct err *e)
{
    const struct agent_options *o = a->o;
    const struct image *before = a->step.decided_on.rgb ? &a->step.decided_on : &a->step.frame;
    struct image now = {0};
    struct settled settled;
    if (screen_settle(o->screen, &o->settle, &settled, e) || screen_capture(o->screen, &now, e)) {
        image_free(&now);
        return -1;
    }
    gate_redact(o->gate, &now);
    double tiles = image_tiles_changed(before, &now, IMAGE_EFFECT_LEVEL);
    image_free(&now);
    a->run.window_before = a->step.window;
    agent_deeds_judge(a, a->step.number, tiles > 0);
    trace_begin(o->trace, a->step.number, "effect");
    trace_bool(o->trace, "changed", tiles > 0);
    trace_number(o->trace, "tiles", tiles);
    return trace_end(o->trace, e);
}

/* ---- the verdict ------------------------------------------------------------------------------------ */

static bool is_confirmed(const struct agent *a, const struct deed *last, const char *answer)
{
    if (a->o->recorded)
        return !a->o->idle || !*a->o->idle || !deeds_without_effect(&a->run.deeds);
    if (!last)
        return task_asks(a->run.task) && !answer_is_bare_claim(answer) &&
               (!ASSIST(a->o->assist, shows) ||
                a->o->assist->ops->shows(a->o->assist, &a->step.frame, answer));
    return last->end == DEED_CHANGED || (last->end == DEED_DONE && deeds_had_effect(&a->run.deeds));
}

/* Returns whether the actions are fewer than the task demands, or it demands checks, which a model's word
 * does not replace. */
static bool is_demanding(const struct agent *a)
{
    return a->o->demand.checks > 0 || deeds_performed(&a->run.deeds) < a->o->demand.actions;
}

/* Returns why the demands of the task are not met; the caller frees it. */
static char *unmet(const struct agent *a)
{
    const struct agent_demand *d = &a->o->demand;
    int n = deeds_performed(&a->run.deeds);
    if (n < d->actions)
        return xasprintf("unverified: the task has %d steps, and %d action%s performed", d->actions, n,
                         n == 1 ? " was" : "s were");
    return xasprintf("unverified: the task asks for a check, which only the model has made");
}

/* Returns a claim that nothing confirms; the caller frees it. */
static char *unconfirmed(const struct agent *a, const char *claim)
{
    const struct deed *idle = a->o->idle && *a->o->idle ? deeds_without_effect(&a->run.deeds) : NULL;
    return idle ? xasprintf("unverified: %s, and nothing changed; %s", idle->did, claim)
                : xasprintf("unverified: %s", claim);
}

/* Returns the reason why the last action was not performed; the caller frees it. */
static char *not_done(const struct deed *d)
{
    if (d->why && !strcmp(d->why, declined))
        return xasprintf("not done: %s step %d (%s)", declined, d->step, d->what);
    return xasprintf("not done: step %d (%s)%s%s", d->step, d->what, d->why ? ": " : "",
                     d->why ? d->why : "");
}

/* Ends the run with this status. text: replaces the model's answer, NULL keeps the answer; ownership is
 * taken. */
static void end_with(struct agent *a, enum agent_status status, char *text)
{
    struct agent_result *r = a->r;
    r->status = status;
    if (!text)
        return;
    r->said = r->answer;
    r->answer = text;
}

int agent_conclude(struct agent *a, const struct action *answer, bool validated, struct err *e)
{
    const char *text = a->r->answer;
    bool asks = task_asks(a->run.task), blank = answer_is_blank(text) || (!asks && !strcmp(text, "None"));
    if (a->o->dry_run) {
        end_with(a, AGENT_DRY_RUN, NULL);
        return 0;
    }
    if (deeds_open(&a->run.deeds, a->step.number) && look_once_more(a, e))
        return -1;
    const struct deed *last = deeds_decisive(&a->run.deeds);
    if (last && last->end > DEED_DONE)
        end_with(a, last->end == DEED_INTERRUPTED ? AGENT_INTERRUPTED : AGENT_REFUSED, not_done(last));
    else if (blank && (asks || !answer->wordless))
        end_with(a, AGENT_UNVERIFIED,
                 xasprintf("unverified: the model gave no answer%s",
                           asks ? "; 'holorun ask' answers questions about an image" : ""));
    else if (!validated && !is_confirmed(a, last, text))
        end_with(a, AGENT_UNVERIFIED, unconfirmed(a, blank ? "the model reports success" : text));
    else if (!validated && is_demanding(a))
        end_with(a, AGENT_UNVERIFIED, unmet(a));
    else
        end_with(a, AGENT_ANSWERED, blank ? deeds_line(&a->run.deeds) : NULL);
    return 0;
}
