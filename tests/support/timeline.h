/* timeline.h - compares a session's state bit for bit after different operations. */
#pragma once

#include "tiny_model.h"

/* Opens the tiny model with fp16 states regardless of its drift; fails the test if it does not open. */
struct engine *timeline_engine(const struct tiny *t, const char *device, const char *isa, bool f32);

/* Checks that decoding, a rewind, a fork, a file and a batch leave the same state and logits. away: spills
 * the state of a session that will be used again; may be NULL. */
void timeline_check(struct engine *g, void (*away)(struct session *s));
