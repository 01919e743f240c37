/* stepped.h - the loop over scripted replies (play.h), with each step decided by scripted commands or the
 * test's own front end.
 */
#pragma once

#include "play.h"
#include "step/step.h"

/* Opens the stage, with tokens in the record. */
void stepped_open(struct play *p);

/* Runs these replies with a front end, which is taken over, or with commands at the steps in `breaks` (NULL:
 * at each). */
void stepped_by(struct play *p, struct step_front *f, const char *const *breaks, const char *replies);
void stepped(struct play *p, const char *const *breaks, const char *commands, const char *replies);

/* Fails the test unless the run ended with this status. */
void stepped_ended(const struct play *p, enum agent_status status);

/* Returns the presses that reached the window; or the last event of this kind in a step of the record, or
 * NULL. */
json_t *stepped_presses(struct play *p);
const json_t *stepped_event(const struct play *p, const char *kind, int step);
