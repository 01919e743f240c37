/* stepped.h - the loop over scripted replies (play.h), each step settled by a script or by a front end
 * of the test's own. */
#ifndef HOLORUN_TESTS_STEPPED_H
#define HOLORUN_TESTS_STEPPED_H

#include "play.h"
#include "step/step.h"

/* play_open(), with tokens on record. */
void stepped_open(struct play *p);

/* These replies, with a front end, which is taken over, or scripted commands at the steps that `breaks`
 * names (NULL: at each). */
void stepped_by(struct play *p, struct step_front *f, const char *const *breaks, const char *replies);
void stepped(struct play *p, const char *const *breaks, const char *commands, const char *replies);

/* Fails the test unless it ended so. */
void stepped_ended(const struct play *p, enum agent_status status);

/* What reached the window; the last event of this kind in a step of the record, NULL: none. */
json_t *stepped_presses(struct play *p);
const json_t *stepped_event(const struct play *p, const char *kind, int step);

#endif
