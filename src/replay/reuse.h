/* reuse.h - a model that first repeats the replies of a recorded run, and only then asks the real one.
 *
 * As long as each screenshot agrees with the recorded one within a tolerance, and the text that comes with
 * it is the recorded one, the recorded reply is given again, and nothing is generated. From the first
 * difference the real model decides; it finds the conversation as if it had said everything itself. A reply
 * that turns out unusable ends the repetition too. The reply that ends the run is never repeated.
 *
 * The recorded screen also ends the wait for a settled screen (reuse_known), and is waited for if another one
 * has settled before it; unless the action before had no visible effect in the record: then the screen does
 * not tell when the program is done. */
#pragma once

#include "gate/gate.h"
#include "llm/llm.h"

/* Opens the record of a run on top of a model. said: the recorded replies are repeated; false: the model
 * decides each step, and the record only ends waits. model, its dialect d and gate (may be NULL) are
 * borrowed. Returns NULL with e if the record cannot be used. */
struct llm *reuse_open(const char *dir, struct llm *model, const struct dialect *d, struct gate *gate,
                       bool said, struct err *e);

/* Returns whether a screenshot shows the recorded screen of the next step. A function for settle.known; arg:
 * the result of reuse_open(). */
bool reuse_known(void *arg, struct image *frame);

/* Returns whether the recorded screen of the next step is to be waited for: there is one, and it shows the
 * effect of the action before. */
bool reuse_expects(void *arg);

/* Returns whether the record is still followed: a reply must not be undone, since it is given only once. */
bool reuse_follows(void *arg);

/* Returns the number of replies that were repeated. */
int reuse_count(const struct llm *m);
/* Returns whether all screens, up to the last one, were the recorded ones. */
bool reuse_whole(const struct llm *m);
