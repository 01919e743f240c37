/* timeline.h - the recorded conversation of a run: prompts, and each reply with the data needed to reproduce
 * it.
 *
 * It can be verified with the same model (verify.h), resumed, or exported for training. Reading checks
 * everything: offsets are within tokens.bin and logprobs.bin, values are in range, and the order of turns is
 * possible in a conversation.
 *
 * Texts belong to the recording, which must outlive the timeline. */
#pragma once

#include "actions/dialect.h"
#include "llm/llm.h"
#include "trace/read.h"

enum {
    TIMELINE_MAX_TURNS = 100000,
    TIMELINE_MAX_TOKENS = 64 << 20, /* in tokens.bin; logprobs.bin has as many pairs */
    TIMELINE_MAX_CONVERSATION = 4 << 20,
    TIMELINE_MAX_REPLY = 1 << 20,
};

enum turn_op {
    TURN_RECALL,  /* of an earlier run: lead text and reply, without the screenshot */
    TURN_OBSERVE, /* lead text and screenshot */
    TURN_REPLY,   /* a sampled reply */
    TURN_ACCEPT,  /* a reply, possibly edited, becomes part of the conversation */
};

struct turn_reply { /* settings and result of one sampled reply */
    enum dialect_goal goal;
    struct sampling sampling;
    int resample;
    bool think, cancelled;
    const char *begins; /* the text that it was made to begin with; NULL: none */
    const char *text;
    const char *weights; /* identifies the weights of a server; NULL: those in run.json */

    bool has_tokens; /* false: from a script, or the ids were not recorded */
    int64_t prompt, kept, at, logprobs_at;
    int n, forced;
    uint64_t prompt_hash, logits_hash;
    bool hashed; /* logits_hash is known */
};

struct turn {
    enum turn_op op;
    int step;
    int frame;           /* OBSERVE */
    int from;            /* OBSERVE: the step to which the conversation rewinds; 0: none */
    uint64_t pixels;     /* OBSERVE: hash of the screenshot in the event */
    const char *lead;    /* OBSERVE, RECALL */
    const char *history; /* ACCEPT, RECALL: the reply as kept in the conversation; NULL: as generated */
    bool as_said;        /* ACCEPT */
    int resample;        /* ACCEPT: number of the accepted reply, if has_resample */
    bool has_resample;
    struct turn_reply reply;
};

struct timeline {
    const struct record *record;
    const char *system; /* NULL: recorded by an older version */
    struct turn *turns;
    int n, cap;
    int steps, replies;
    int32_t *tokens; /* [n_tokens] of tokens.bin */
    int64_t n_tokens;
    float *logprobs; /* [n_logprobs][2] of logprobs.bin */
    int64_t n_logprobs;
};

int timeline_open(struct timeline *t, const struct record *r, struct err *e);
/* Builds the timeline from arrays in memory, for fuzzing. Takes ownership of the arrays, also on failure. */
int timeline_read(struct timeline *t, const struct record *r, int32_t *tokens, int64_t n_tokens,
                  float *logprobs, int64_t n_logprobs, struct err *e);
void timeline_free(struct timeline *t);

/* Returns 0 if the run has replies and all have tokens; else -1 with e. */
int timeline_complete(const struct timeline *t, struct err *e);

/* Returns the token ids of a reply that has tokens. */
const int32_t *turn_ids(const struct timeline *t, const struct turn *u);
const float *turn_logprobs(const struct timeline *t, const struct turn *u); /* [n][2] */

/* The token ids of the whole conversation up to the end of a reply. Each reply's ids extend a prefix of the
 * previous ones, so that one buffer is enough if the turns are visited in order. */
struct conversation_ids {
    int32_t *ids; /* owned */
    int64_t n;
};
int timeline_follow(const struct timeline *t, const struct turn *u, struct conversation_ids *c,
                    struct err *e);
