/* weights.h - the weights that requests are served with, and their replacement while the server runs.
 *
 * Each loaded set of weights has a version, starting at 1. A request holds the set it began with; a set is
 * freed when its last user releases it. While the server is paused, new requests wait. */
#pragma once

#include "session/session.h"

struct weights_set {
    struct engine *engine;
    int version;
    int users; /* requests and cached conversations, plus 1 while it is the current set */
};

struct weights_slot;

/* Takes ownership of the engine. */
struct weights_slot *weights_slot_new(struct engine *g);
void weights_slot_free(struct weights_slot *w); /* All users must have released their sets. */

/* Returns the current set once the server is not paused, with one more user; NULL if *stop became
 * non-zero. */
struct weights_set *weights_acquire(struct weights_slot *w, const volatile int *stop);
struct weights_set *weights_share(struct weights_slot *w, struct weights_set *s); /* Adds a user. */
void weights_release(struct weights_slot *w, struct weights_set *s);

void weights_pause(struct weights_slot *w);
void weights_resume(struct weights_slot *w);
bool weights_paused(struct weights_slot *w);

/* Makes this engine the current set and takes ownership of it. */
void weights_replace(struct weights_slot *w, struct engine *g);
int weights_version(struct weights_slot *w);
