/* resume.c - continues an interrupted run, or a conversation whose task has ended; see agent.h. The repeated
 * turns are recorded again, so that the new run can be read alone.
 */
#include "agent/private.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

static int recall(struct agent *a, const struct resume_turn *turn, struct err *e)
{
    struct trace *t = a->o->trace;
    if (context_recall(a->run.context, turn->lead, turn->history, e))
        return -1;
    trace_begin(t, 0, "recall");
    trace_text(t, "lead", turn->lead);
    trace_text(t, "history", turn->history);
    return trace_end(t, e);
}

static int record_resume(struct agent *a, const struct resume *p, struct err *e)
{
    struct trace *t = a->o->trace;
    const struct agent_result *r = &p->so_far;
    trace_begin(t, 0, "resume");
    trace_text(t, "parent", p->parent);
    trace_int(t, "number", p->number);
    trace_int(t, "steps", r->steps);
    trace_number(t, "seconds", r->seconds);
    trace_int(t, "generated", r->generated);
    trace_int(t, "forced", r->forced);
    trace_int(t, "prefilled", r->prefilled);
    trace_int(t, "reused", r->reused);
    trace_int(t, "typed", r->typed);
    trace_int(t, "acted", r->acted);
    return trace_end(t, e);
}

static char *first_lead(const struct agent *a, const struct resume *p, struct err *e)
{
    static const char notice[] =
        "The run was interrupted here and continues now. The action in progress may have been performed "
        "completely, in part or not at all, and the screen may have changed since.";
    const struct dialect *d = a->o->dialect;
    if (p->task) {
        char *task = prompt_task(d, p->task), *all = xasprintf("%s%s", p->lead ? p->lead : "", task);
        free(task);
        return all;
    }
    const char *last = p->n ? p->turns[p->n - 1].history : "";
    autofree char *told = prompt_output(d, prompt_tool(d, ACT_NONE, last), notice, e);
    return told ? xasprintf("%s%s", p->lead ? p->lead : "", told) : NULL;
}

int agent_resume(struct agent *a, const struct resume *p, struct err *e)
{
    a->step.number = p->number;
    if (p->task) {
        a->run.steps_before = p->number;
    } else {
        a->run.start -= (int64_t)(p->so_far.seconds * 1e9);
        *a->r = p->so_far;
    }
    if (record_resume(a, p, e))
        return -1;
    for (int i = 0; i < p->n; i++)
        if (recall(a, &p->turns[i], e))
            return -1;
    a->run.turns_before = p->task ? context_turns(a->run.context) : 0;
    char *lead = first_lead(a, p, e);
    if (!lead)
        return -1;
    agent_set_text(&a->outcome.lead, lead);
    return 0;
}

/* ---- a further task ------------------------------------------------------------------------------- */

static int record_task_end(struct agent *a, struct err *e)
{
    struct trace *t = a->o->trace;
    trace_begin(t, a->step.number, "task_end");
    trace_text(t, "status", agent_status_name(a->r->status));
    trace_text(t, "answer", a->r->answer);
    trace_text(t, "did", a->r->did);
    trace_int(t, "steps", a->r->steps);
    return trace_end(t, e) || trace_sync(t, e) ? -1 : 0;
}

/* Starts a further task: resets budgets and loop detection, and drops the screen before the last action,
 * because the screen may have changed since and must not be used to judge an effect. */
static void begin_task(struct agent *a, const char *task)
{
    struct agent_result *r = a->r;
    agent_result_free(r);
    deeds_free(&a->run.deeds);
    *r = (struct agent_result){.status = AGENT_RUNNING, .acted = r->acted};
    if (a->o->gate)
        gate_set_task(a->o->gate, task);
    agent_set_task(a, task);
    a->run.steps_before = a->step.number;
    a->run.turns_before = context_turns(a->run.context);
    a->run.start = clock_ns() - a->run.paused_ns;
    a->run.exceeded = AGENT_RUNNING;
    a->run.validations = 0;
    image_free(&a->run.before);
}

bool agent_next_task(struct agent *a, struct err *e)
{
    const struct agent_options *o = a->o;
    if (!o->next_task || !context_replied(a->run.context))
        return false;
    screen_release_all(o->screen);
    if (o->gate)
        gate_keys_released(o->gate);
    agent_name_limit(a);
    agent_list_deeds(a);
    if (record_task_end(a, e)) {
        a->r->status = AGENT_FAILED;
        return false;
    }
    int64_t start = clock_ns();
    autofree char *task = o->next_task(o->next_arg, a->r);
    a->run.paused_ns += clock_ns() - start;
    if (!task)
        return false;
    begin_task(a, task);
    trace_begin(o->trace, a->step.number, "task");
    trace_text(o->trace, "text", task);
    if (trace_end(o->trace, e))
        a->r->status = AGENT_FAILED;
    return a->r->status == AGENT_RUNNING;
}
