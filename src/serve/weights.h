/* weights.h - the weights that requests are served with, and their exchange while the server runs.
 *
 * Each set of weights that was loaded has a version, from 1 on.  A request holds the version it began with;
 * a version is freed when its last user lets go of it.  While the server is paused new requests wait.
 */
#ifndef HOLORUN_SERVE_WEIGHTS_H
#define HOLORUN_SERVE_WEIGHTS_H

#include "session/session.h"

struct weights_set {
    struct engine *engine;
    int version;
    int users; /* requests and kept conversations, and 1 while it is the present one */
};

struct weights_slot;

/* Takes over the engine. */
struct weights_slot *weights_slot_new(struct engine *g);
void weights_slot_free(struct weights_slot *w); /* after all users */

/* The present set, once the server is not paused; NULL: *stop became non-zero meanwhile. */
struct weights_set *weights_acquire(struct weights_slot *w, const volatile int *stop);
struct weights_set *weights_share(struct weights_slot *w, struct weights_set *s); /* one more user */
void weights_release(struct weights_slot *w, struct weights_set *s);

void weights_pause(struct weights_slot *w);
void weights_resume(struct weights_slot *w);
bool weights_paused(struct weights_slot *w);

/* Replaces the present set by that engine, which is taken over. */
void weights_replace(struct weights_slot *w, struct engine *g);
int weights_version(struct weights_slot *w);

#endif
