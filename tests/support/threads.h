/* threads.h - sessions of one engine in threads, each with a random script; for CPU and GPU.
 *
 * A seed determines a script: a common beginning, prompts of one token and of several chunks, images,
 * checkpoints and rewinds, forks, and replies that are greedy, sampled or under a grammar.
 */
#pragma once

#include "session/scheduler.h"
#include "tiny_model.h"

enum { THREADS_MOST = 32, THREADS_TOKENS = 1024 };

struct threads {
    int rounds, longest; /* rounds of a script; maximum tokens of a prompt */
    bool loose;          /* logits are not compared: on a GPU the bits may depend on the batch */
    uint64_t seed;
};

struct played {                     /* result of a script */
    int32_t tokens[THREADS_TOKENS]; /* all generated tokens */
    int n;
    uint64_t hash; /* of all logits used */
    struct err err;
};

struct engine *threads_engine(const struct tiny *t, const char *device, size_t bound, bool shared,
                              int threads);

/* Runs script i in this thread. */
void threads_alone(const struct threads *c, struct engine *g, int i, struct played *out);

/* Runs scripts 0 to n - 1 in one thread each; fails the test if a result differs from alone[i]. */
void threads_play(const struct threads *c, struct engine *g, int n, const struct played *alone);

/* Waits until n threads are queued. */
void threads_wait(const struct scheduler *t, int n);
