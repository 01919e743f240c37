/* crowd.h - many sessions with prompts of their own, run alone and in a batch: for tests on the processor and on the
 * device. */
#ifndef HOLORUN_TESTS_CROWD_H
#define HOLORUN_TESTS_CROWD_H

#include "session/batch.h"
#include "tiny_model.h"

enum { CROWD_MOST = 40, CROWD_TOKENS = 12 };

struct crowd {
    int n, longest, tokens; /* prompts and replies have at most so many tokens */
    bool keep;              /* sessions stay after they have ended, for crowd_free */
    uint64_t seed;
    int32_t alone[CROWD_MOST][CROWD_TOKENS]; /* what each generates */
    int alone_n[CROWD_MOST];
    struct batch_job jobs[CROWD_MOST];
    struct session *sessions[CROWD_MOST];
    int32_t got[CROWD_MOST][CROWD_TOKENS];
};

struct engine *crowd_engine(const struct tiny *t, const char *device, size_t bound);

/* The prompt of session i, appended; deterministic. */
void crowd_prompt(const struct crowd *c, int i, struct session *s);

/* Each alone, one after the other. */
void crowd_alone(struct crowd *c, struct engine *g);

/* All in one batch, added in the given order; fails the test where a session has other tokens than alone. */
void crowd_run(struct crowd *c, struct engine *g, const int *order, int64_t prefill);
void crowd_free(struct crowd *c);

/* Bytes of state memory of a session with so many tokens. */
size_t crowd_need(struct engine *g, int64_t tokens);

/* The bits of a session's state and its number of tokens; the caller frees it. */
uint8_t *crowd_bits(struct session *s, size_t *len);

#endif
