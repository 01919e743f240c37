/* stale.c - actions not performed because the screen had changed since the screenshot (observed.h).
 *
 * They do not count as mistakes of the model: the screen is observed again, and the next prompt gives the
 * reason. A screen that never stays unchanged ends the run after STALE_MOST such steps in sequence.
 */
#include "agent/private.h"
#include "screen/observed.h"

enum { STALE_MOST = 8 };

static int record_stale(struct agent *a, int index, const struct observed_change *c, struct err *e)
{
    struct trace *t = a->o->trace;
    trace_begin(t, a->step.number, "stale");
    trace_int(t, "index", index);
    trace_text(t, "reason", observed_reason_name(c->reason));
    trace_text(t, "text", a->outcome.result);
    trace_number(t, "ms", observed_age_ms(a->o->screen));
    return trace_end(t, e);
}

int agent_check_stale(struct agent *a, int index, int presses, bool *stale, struct err *e)
{
    const struct observed_change *c = observed_changed(a->o->screen);
    *stale = c != NULL;
    if (!c)
        return 0;
    bool begun = observed_presses(a->o->screen) != presses;
    agent_set_text(&a->outcome.result,
                   xasprintf("%s%s%s", c->text, begun ? OBSERVED_PARTLY : OBSERVED_NOTHING, "; look again"));
    progress_trouble(a->o->progress, a->outcome.result);
    a->outcome.failed = a->outcome.is_stale = true;
    if (++a->outcome.stale >= STALE_MOST)
        a->r->status = AGENT_INTERRUPTED;
    return record_stale(a, index, c, e);
}
