/* timeline.h - the ways that a session can come to one and the same place, compared bit for bit. */
#ifndef HOLORUN_TESTS_TIMELINE_H
#define HOLORUN_TESTS_TIMELINE_H

#include "tiny_model.h"

/* The tiny model with states in fp16, whatever it says; fails the test where it cannot be opened. */
struct engine *timeline_engine(const struct tiny *t, const char *device, const char *isa, bool f32);

/* Tokens straight on; going back and reading on; a fork; a file; many sessions at once: all leave the
 * same state and logits.  away: called with a session that will be used again, to send its state
 * elsewhere; may be NULL. */
void timeline_check(struct engine *g, void (*away)(struct session *s));

#endif
