/* timeline.h - the recorded conversation of a run: prompts, and each reply with all that reproduces it.
 *
 * It can be verified with the same model (verify.h), resumed, or exported for training.  Reading checks
 * everything: offsets lie inside tokens.bin and logprobs.bin, values are in range, turns come in an order
 * that a conversation can have.
 *
 * Texts belong to the record, which must outlive the timeline.
 */
#ifndef HOLORUN_REPLAY_TIMELINE_H
#define HOLORUN_REPLAY_TIMELINE_H

#include "actions/dialect.h"
#include "llm/llm.h"
#include "trace/read.h"

enum {
    TIMELINE_MAX_TURNS = 100000,
    TIMELINE_MAX_TOKENS = 64 << 20, /* in tokens.bin; as many pairs in logprobs.bin */
    TIMELINE_MAX_CONVERSATION = 4 << 20,
    TIMELINE_MAX_REPLY = 1 << 20,
};

enum turn_op {
    TURN_RECALL,  /* of an earlier run: lead and reply without screenshot */
    TURN_OBSERVE, /* lead and screenshot */
    TURN_REPLY,   /* a sampled reply */
    TURN_ACCEPT,  /* a reply, perhaps edited, stays */
};

struct turn_reply { /* settings and result of one sample */
    enum dialect_goal goal;
    struct sampling sampling;
    int resample;
    bool think, cancelled;
    const char *begins; /* what it had to begin with; NULL: nothing */
    const char *text;

    bool has_tokens; /* false: from a script, or ids were not recorded */
    int64_t prompt, kept, at, logprobs_at;
    int n, forced;
    uint64_t prompt_hash, logits_hash;
    bool hashed; /* logits_hash is known */
};

struct turn {
    enum turn_op op;
    int step;
    int frame;           /* OBSERVE */
    int from;            /* ... the step to which the conversation rewinds; 0: none */
    uint64_t pixels;     /* ... hash of the screenshot in the event */
    const char *lead;    /* OBSERVE, RECALL */
    const char *history; /* ACCEPT, RECALL: the reply as history holds it; NULL: as generated */
    bool as_said;        /* ACCEPT */
    int resample;        /* ... of the accepted reply, if has_resample */
    bool has_resample;
    struct turn_reply reply;
};

struct timeline {
    const struct record *record;
    const char *system; /* NULL: the run is of an older version */
    struct turn *turns;
    int n, cap;
    int steps, replies;
    int32_t *tokens; /* [n_tokens] of tokens.bin */
    int64_t n_tokens;
    float *logprobs; /* [n_logprobs][2] of logprobs.bin */
    int64_t n_logprobs;
};

int timeline_open(struct timeline *t, const struct record *r, struct err *e);
/* The same from memory, for fuzzing; takes over the arrays, also when it fails. */
int timeline_read(struct timeline *t, const struct record *r, int32_t *tokens, int64_t n_tokens,
                  float *logprobs, int64_t n_logprobs, struct err *e);
void timeline_free(struct timeline *t);

/* 0 when there are replies and all have tokens; else -1 with e. */
int timeline_complete(const struct timeline *t, struct err *e);

/* Ids and probabilities of a reply that has tokens. */
const int32_t *turn_ids(const struct timeline *t, const struct turn *u);
const float *turn_logprobs(const struct timeline *t, const struct turn *u); /* [n][2] */

/* The whole conversation up to the end of a reply.  Each extends a prefix of the one before, so one
 * buffer follows the turns in their order. */
struct conversation_ids {
    int32_t *ids; /* owned */
    int64_t n;
};
int timeline_follow(const struct timeline *t, const struct turn *u, struct conversation_ids *c,
                    struct err *e);

#endif
