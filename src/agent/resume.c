/* resume.c - continues an interrupted run; see agent.h.  What is repeated is recorded again, so that the
 * new run can be read alone. */
#include "agent/private.h"

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
        "The run was interrupted here and goes on now. What was being done may have been done, in part or "
        "not at all, and the screen may have changed since.";
    const struct dialect *d = a->o->dialect;
    const char *last = p->n ? p->turns[p->n - 1].history : "";
    char *told = prompt_output(d, prompt_tool(d, ACT_NONE, last), notice, e);
    char *lead = told ? xasprintf("%s%s", p->lead ? p->lead : "", told) : NULL;
    free(told);
    return lead;
}

int agent_resume(struct agent *a, const struct resume *p, struct err *e)
{
    a->step.number = p->number;
    a->run.start -= (int64_t)(p->so_far.seconds * 1e9);
    *a->r = p->so_far;
    if (record_resume(a, p, e))
        return -1;
    for (int i = 0; i < p->n; i++)
        if (recall(a, &p->turns[i], e))
            return -1;
    char *lead = first_lead(a, p, e);
    if (!lead)
        return -1;
    agent_set_text(&a->outcome.lead, lead);
    return 0;
}
