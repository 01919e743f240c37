/* wait_for_human.c - a person who uses the display comes first.
 *
 * From her first key, button or motion on the hands do nothing more; what the action at hand had begun is broken off
 * and the model is told.  Before the next look at the screen the run waits until she has been quiet for a while.
 */
#include "agent/private.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>

int agent_yield(struct agent *a, struct err *e)
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
    int rc = screen_wait_for_person(o->screen, o->human_quiet_ms, INFINITY, e);
    a->waited += clock_ns() - start;
    a->heard = a->waited;
    trace_begin(o->trace, a->number, "human");
    trace_text(o->trace, "what", what);
    trace_number(o->trace, "ms", clock_ms_since(start));
    return trace_end(o->trace, rc ? NULL : e) || rc ? -1 : 0;
}

int agent_forget_answers(struct agent *a, struct err *e)
{
    if (a->waited == a->heard)
        return 0;
    a->heard = a->waited;
    return screen_wait_for_person(a->o->screen, 0, INFINITY, e);
}
