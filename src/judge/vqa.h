/* vqa.h - visual question answering for `ask`, `ground`, `eval` and `calibrate`: one question about images,
 * one reply.
 */
#pragma once

#include "llm/llm.h"

/* A model outside this process (remote/vqa_remote.h). */
struct vqa_far {
    struct llm *(*converse)(void *arg, const struct dialect *d, uint64_t seed);
    void (*close)(void *arg);
    void *arg;
};

struct vqa {
    char *dir;             /* directory of the model, or its name on the server */
    struct engine *engine; /* NULL: the model is outside this process */
    struct vqa_far far;
    struct dialect *dialect;
    struct llm *llm;
    bool free; /* replies without a grammar */
    struct generated reply;
};

/* Opens the model (dir NULL: the embedded one) and its dialect (NULL: the model's own). Returns -1 with e;
 * the caller calls vqa_close() in both cases. */
int vqa_open(struct vqa *l, const char *dialect, const struct engine_options *model, uint64_t seed,
             struct err *e);

/* Opens a model outside this process. Takes ownership of name and far, which vqa_close() closes. Returns -1
 * with e. */
int vqa_open_far(struct vqa *l, const char *dialect, char *name, const struct vqa_far *far, uint64_t seed,
                 struct err *e);

/* Fails with ERR_USAGE if the model that vqa_open would open has no vision encoder; loads no weights. */
int vqa_check_vision(const struct engine_options *model, struct err *e);

/* Returns a further conversation with the model; the caller frees it. */
struct llm *vqa_conversation(const struct vqa *l, const struct dialect *d, uint64_t seed);
/* Checks that replies about positions can be constrained by the dialect's grammar. Returns 0, or -1 with
 * e. */
int vqa_check_places(const struct vqa *l, struct err *e);

/* Asks about n images (at most 6) in a new conversation; the dialect decides whether they precede the text.
 * The reply is l->reply. Returns -1 with e. */
int vqa_ask(struct vqa *l, const char *question, const struct image *images, int n, enum dialect_goal goal,
            const struct sampling *sampling, struct err *e);

/* Computes the probability of the tokens that the model chose, 0 to 1. Coordinates do not count if the
 * dialect's models spread probability over neighbouring points (spread_points in actions/syntax.h). Returns
 * false if the probability is unknown. */
bool vqa_confidence(const struct vqa *l, double *confidence);

/* Continues a conversation without a grammar; the reply is l->reply. Returns -1 with e. */
int vqa_converse(struct vqa *l, const struct chat_conversation *c, const struct sampling *sampling,
                 struct err *e);

/* Changes the dialect for the next questions, and sets the seed to 1. Returns -1 with e. */
int vqa_set_dialect(struct vqa *l, const char *dialect, struct err *e);

void vqa_close(struct vqa *l);
