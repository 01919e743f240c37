/* interrupted.h - what a run that broke off leaves for one that goes on (agent/resume.h). */
#ifndef HOLORUN_REPLAY_INTERRUPTED_H
#define HOLORUN_REPLAY_INTERRUPTED_H

#include "agent/resume.h"
#include "replay/timeline.h"

/* From the record that the timeline is of, which must outlive it.  Refuses a run that came to its end: answered, or a dry
 * run; and one that did not keep what was said. */
int interrupted_make(struct resume *p, const struct timeline *t, struct err *e);
void interrupted_free(struct resume *p);

#endif
