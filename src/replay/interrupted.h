/* interrupted.h - reads from the recording of an interrupted run the state needed to resume it
 * (agent/agent.h). */
#pragma once

#include "agent/agent.h"
#include "replay/timeline.h"

/* Fills *p, which borrows from the timeline's recording. Fails for a run that has ended (with an answer, or
 * as a dry run) and for one without a recorded conversation. */
int interrupted_make(struct resume *p, const struct timeline *t, struct err *e);
/* Does the same for a run that may have ended: the conversation continues with a new task, which is
 * borrowed. */
int interrupted_continue(struct resume *p, const struct timeline *t, const char *task, struct err *e);
void interrupted_free(struct resume *p);
