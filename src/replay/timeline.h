/* timeline.h - the conversation of a run, as its record has it: who was told what, and each reply with all that it came
 * from.
 *
 * This is what can be done again: told to the model that spoke then (verify.h), told to one that is to go on, written out
 * for training.  Everything is checked when it is read: places in tokens.bin and logprobs.bin lie inside them, numbers
 * are in range, turns come in an order that a conversation can have.
 *
 * Texts belong to the record, which must outlive the timeline.
 */
#ifndef HOLORUN_REPLAY_TIMELINE_H
#define HOLORUN_REPLAY_TIMELINE_H

#include "actions/dialect.h"
#include "agent/llm.h"
#include "trace/read.h"

enum {
    TIMELINE_MAX_TURNS = 100000,
    TIMELINE_MAX_TOKENS = 64 << 20, /* of tokens.bin, and as many pairs of logprobs.bin */
    TIMELINE_MAX_CONVERSATION = 4 << 20,
    TIMELINE_MAX_REPLY = 1 << 20,
};

enum turn_op {
    TURN_RECALL,  /* of an earlier run: lead and reply, the screenshot gone */
    TURN_OBSERVE, /* lead and screenshot */
    TURN_REPLY,   /* an attempt of the model */
    TURN_ACCEPT,  /* the last one, or what was made of it, stays */
};

struct turn_reply { /* what an attempt came from, and what it was */
    enum dialect_goal goal;
    struct sampling sampling;
    int resample;
    bool think, cancelled;
    const char *text;

    bool has_tokens; /* false: a script spoke, or ids were not kept */
    int64_t prompt, kept, at, logprobs_at;
    int n, forced;
    uint64_t prompt_hash, logits_hash;
    bool hashed; /* logits_hash is known */
};

struct turn {
    enum turn_op op;
    int step;
    int frame;           /* OBSERVE */
    int from;            /* ... 0, or the step whose screen it is: the conversation goes back to there */
    uint64_t pixels;     /* ... its hash as the event has it */
    const char *lead;    /* OBSERVE, RECALL */
    const char *history; /* ACCEPT, RECALL: the reply as it stays; NULL: as it was said */
    bool as_said;        /* ACCEPT */
    int resample;        /* ... the dice of the reply that stays, when has_resample */
    bool has_resample;
    struct turn_reply reply;
};

struct timeline {
    const struct record *record;
    const char *system; /* NULL: the run is of a version that did not keep it */
    struct turn *turns;
    int n, cap;
    int steps, replies;
    int32_t *tokens; /* [n_tokens] of tokens.bin */
    int64_t n_tokens;
    float *logprobs; /* [n_logprobs][2] of logprobs.bin */
    int64_t n_logprobs;
};

int timeline_open(struct timeline *t, const struct record *r, struct err *e);
/* The same without a directory: for fuzzing.  Copies the numbers. */
int timeline_read(struct timeline *t, const struct record *r, const int32_t *tokens, int64_t n_tokens,
                  const float *logprobs, int64_t n_logprobs, struct err *e);
void timeline_free(struct timeline *t);

/* Whether there is a reply, and of each all that it takes to make it again. */
int timeline_complete(const struct timeline *t, struct err *e);

/* Ids and probabilities of a reply that has tokens. */
const int32_t *turn_ids(const struct timeline *t, const struct turn *u);
const float *turn_logprobs(const struct timeline *t, const struct turn *u); /* [n][2] */

/* The whole conversation at the end of a reply, prompt and what was generated: each is made of the one before, so one
 * buffer follows the turns of a timeline in their order. */
struct conversation_ids {
    int32_t *ids; /* owned */
    int64_t n;
};
int timeline_follow(const struct timeline *t, const struct turn *u, struct conversation_ids *c,
                    struct err *e);

#endif
