/* threads.h - sessions of one engine that threads play through scripts, each a session: for tests on the
 * processor and on the device.
 *
 * A script is made of a seed: a text that many begin with, prompts of one token and of several pieces,
 * pictures, checkpoints and going back to them, copies, replies that are greedy, by dice, or held to a
 * grammar.
 */
#ifndef HOLORUN_TESTS_THREADS_H
#define HOLORUN_TESTS_THREADS_H

#include "session/scheduler.h"
#include "tiny_model.h"

enum { THREADS_MOST = 32, THREADS_TOKENS = 1024 };

struct threads {
    int rounds, longest; /* of a script; tokens of a prompt */
    bool loose;          /* logits are not compared: on a device their bits may depend on who is with one */
    uint64_t seed;
};

struct played {                     /* what came of a script */
    int32_t tokens[THREADS_TOKENS]; /* all that were generated */
    int n;
    uint64_t hash; /* of all logits they were chosen from */
    struct err err;
};

struct engine *threads_engine(const struct tiny *t, const char *device, size_t bound, bool shared,
                              int threads);

/* Script i, here. */
void threads_alone(const struct threads *c, struct engine *g, int i, struct played *out);

/* Scripts 0 to n - 1 at once, a thread for each; fails the test where something else comes of one than
 * alone[i]. */
void threads_play(const struct threads *c, struct engine *g, int n, const struct played *alone);

/* Until so many wait for their turn. */
void threads_wait(const struct scheduler *t, int n);

#endif
