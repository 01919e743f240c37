/* interrupted.h - reads from an interrupted run what resumes it (agent/agent.h). */
#ifndef HOLORUN_REPLAY_INTERRUPTED_H
#define HOLORUN_REPLAY_INTERRUPTED_H

#include "agent/agent.h"
#include "replay/timeline.h"

/* p borrows from the timeline's record.  Refuses a run that ended (answered, or a dry run), and one without a
 * recorded conversation. */
int interrupted_make(struct resume *p, const struct timeline *t, struct err *e);
/* The same of a run that may have ended, too: the conversation goes on with a further task, which is
 * borrowed. */
int interrupted_continue(struct resume *p, const struct timeline *t, const char *task, struct err *e);
void interrupted_free(struct resume *p);

#endif
