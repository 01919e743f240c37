/* budget.c - checks the budgets of a run and names the one that ended it.
 *
 * Steps, time and tokens are checked between steps. Typed characters and actions per minute are checked
 * before each action, and an action that would exceed them is not performed. In both cases the next turn is
 * the last: it requests the answer, if one is required.
 */
#include "agent/private.h"

#include "base/clock.h"

static const double minute_ms = 60000;

enum agent_status agent_budget(const struct agent *a)
{
    const struct agent_options *o = a->o;
    if (a->run.exceeded != AGENT_RUNNING)
        return a->run.exceeded;
    if (a->step.number - a->run.steps_before >= o->max_steps)
        return o->dry_run ? AGENT_DRY_RUN : AGENT_STEPS;
    if (agent_seconds(a) >= o->max_seconds)
        return AGENT_TIME;
    if (o->max_tokens && a->r->generated >= o->max_tokens)
        return AGENT_TOKENS;
    return AGENT_RUNNING;
}

/* Returns the ring entry for the next action; it holds the time of the oldest of the last max_rate
 * actions. */
static int64_t *ring_slot(const struct agent *a)
{
    return &a->run.acted_at[a->r->acted % a->o->max_rate];
}

static bool too_fast(const struct agent *a)
{
    return a->o->max_rate && a->run.acted_at && *ring_slot(a) && clock_ms_since(*ring_slot(a)) < minute_ms;
}

bool agent_affords(struct agent *a, const struct action *action)
{
    const struct agent_options *o = a->o;
    int n = action_characters(action);
    if (o->dry_run || !action_is(action->kind, ACTION_TOUCHES))
        return true;
    if (o->max_typed && n && a->r->typed + n > o->max_typed) {
        a->run.exceeded = AGENT_TYPED;
        agent_set_text(
            &a->outcome.result,
            xasprintf("%s: not done: this run may type %lld characters; it has typed %lld, and this action "
                      "types %d",
                      action_fault_name(FAULT_BUDGET), (long long)o->max_typed, (long long)a->r->typed, n));
    } else if (too_fast(a)) {
        a->run.exceeded = AGENT_RATE;
        agent_set_text(&a->outcome.result,
                       xasprintf("%s: not done: %d actions within a minute; the limit is reached",
                                 action_fault_name(FAULT_BUDGET), o->max_rate));
    }
    return a->run.exceeded == AGENT_RUNNING;
}

void agent_spend(struct agent *a, const struct action *action)
{
    const struct agent_options *o = a->o;
    if (o->dry_run || !action_is(action->kind, ACTION_TOUCHES))
        return;
    if (o->max_rate) {
        if (!a->run.acted_at)
            a->run.acted_at = xcalloc((unsigned long)o->max_rate, sizeof *a->run.acted_at);
        *ring_slot(a) = clock_ns();
    }
    a->r->typed += action_characters(action);
    a->r->acted++;
}

void agent_tell_spent(const struct agent *a)
{
    const struct agent_result *r = a->r;
    const struct policy_spent spent = {.of = {[SPENT_STEPS] = r->steps,
                                              [SPENT_SECONDS] = agent_seconds(a),
                                              [SPENT_TOKENS] = (double)(r->generated + a->step.generated),
                                              [SPENT_ACTIONS] = r->acted,
                                              [SPENT_CHARACTERS] = (double)r->typed,
                                              [SPENT_ERRORS] = a->outcome.errors}};
    if (a->o->gate)
        gate_set_spent(a->o->gate, &spent);
}

void agent_name_limit(struct agent *a)
{
    const struct agent_options *o = a->o;
    bool still = o->max_still && a->outcome.still >= o->max_still;
    const struct {
        enum agent_status status;
        const char *name;
        double allowed;
    } limits[] = {
        {AGENT_STEPS, "max-steps", o->max_steps},
        {AGENT_TIME, "max-time", o->max_seconds},
        {AGENT_TOKENS, "max-tokens", (double)o->max_tokens},
        {AGENT_TYPED, "limits.typed", (double)o->max_typed},
        {AGENT_RATE, "limits.rate", o->max_rate},
        {AGENT_ERRORS, "limits.errors", o->max_errors},
        {AGENT_LOOP, still ? "limits.no_effect" : "limits.repeats", still ? o->max_still : o->max_repeats},
        {AGENT_UNVALIDATED, "max-validations", o->validator ? o->validator->most : 0},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (limits[i].status != a->r->status)
            continue;
        a->r->limit = limits[i].name;
        a->r->allowed = limits[i].allowed;
    }
}
