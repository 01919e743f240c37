/* wait_for_human.c - a person who uses the display comes first.
 *
 * From the first key, button or motion of a person on, no more input is sent; an action that has begun is
 * broken off, and the model is told.  Before the next screenshot the run waits until the person is quiet.
 */
#include "agent/private.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>

int agent_wait_for_human(struct agent *a, struct err *e)
{
    const struct agent_options *o = a->o;
    const char *what = screen_person(o->screen);
    if (!what)
        return 0;
    char text[128];
    snprintf(text, sizeof text, "a person uses the %s; going on after %g s of quiet", what,
             o->human_quiet_ms / 1000);
    progress_trouble(o->progress, text);
    int64_t start = clock_ns();
    int rc = screen_wait_for_person(o->screen, o->human_quiet_ms, e);
    a->run.paused_ns += clock_ns() - start;
    a->run.paused_seen_ns = a->run.paused_ns;
    trace_begin(o->trace, a->step.number, "human");
    trace_text(o->trace, "what", what);
    trace_number(o->trace, "ms", clock_ms_since(start));
    return trace_end(o->trace, rc ? NULL : e) || rc ? -1 : 0;
}

int agent_ignore_answers(struct agent *a, struct err *e)
{
    if (a->run.paused_ns == a->run.paused_seen_ns)
        return 0;
    a->run.paused_seen_ns = a->run.paused_ns;
    return screen_wait_for_person(a->o->screen, 0, e);
}
