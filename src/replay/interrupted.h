/* interrupted.h - reads from an interrupted run what resumes it (agent/agent.h). */
#ifndef HOLORUN_REPLAY_INTERRUPTED_H
#define HOLORUN_REPLAY_INTERRUPTED_H

#include "agent/agent.h"
#include "replay/timeline.h"

/* p borrows from the timeline's record.  Refuses a run that ended (answered, or a dry run), and one without a
 * recorded conversation. */
int interrupted_make(struct resume *p, const struct timeline *t, struct err *e);
void interrupted_free(struct resume *p);

#endif
