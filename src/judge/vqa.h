/* vqa.h - visual question answering for `ask`, `ground`, `eval` and `calibrate`: one question about
 * images, one reply. */
#ifndef HOLORUN_JUDGE_VQA_H
#define HOLORUN_JUDGE_VQA_H

#include "llm/llm.h"

/* A model that is not in this process (remote/vqa_remote.h). */
struct vqa_far {
    struct llm *(*converse)(void *arg, const struct dialect *d, uint64_t seed);
    void (*close)(void *arg);
    void *arg;
};

struct vqa {
    char *dir;             /* of the model, or its name elsewhere */
    struct engine *engine; /* NULL: elsewhere */
    struct vqa_far far;
    struct dialect *dialect;
    struct llm *llm;
    bool free; /* replies without a grammar */
    struct generated reply;
};

/* Opens the model (dir NULL: the embedded one) and its dialect (NULL: the one the model asks for). */
int vqa_open(struct vqa *l, const char *dialect, const struct engine_options *model, uint64_t seed,
             struct err *e);

/* The same of a model elsewhere: takes over name and far, which vqa_close closes. */
int vqa_open_far(struct vqa *l, const char *dialect, char *name, const struct vqa_far *far, uint64_t seed,
                 struct err *e);

/* Fails with ERR_USAGE if the model that vqa_open would open has no vision tower; opens nothing. */
int vqa_check_vision(const struct engine_options *model, struct err *e);

/* A further conversation with the model. */
struct llm *vqa_conversation(const struct vqa *l, const struct dialect *d, uint64_t seed);
/* Whether replies about places can be held to the dialect's grammar; -1 with e. */
int vqa_check_places(const struct vqa *l, struct err *e);

/* Asks about n images in a new conversation, which go before the text or where the dialect wants them;
 * the reply is l->reply. */
int vqa_ask(struct vqa *l, const char *question, const struct image *images, int n, enum dialect_goal goal,
            const struct sampling *sampling, struct err *e);

/* Computes the probability of the tokens that the model chose, 0 to 1.  Coordinates do not count if the
 * dialect's models spread probability over neighbouring points (spread_points in actions/syntax.h).  Returns
 * false if it is unknown. */
bool vqa_confidence(const struct vqa *l, double *confidence);

/* Continues a conversation without a grammar; the reply is l->reply. */
int vqa_converse(struct vqa *l, const struct chat_conversation *c, const struct sampling *sampling,
                 struct err *e);

/* Changes the dialect for the next questions, and the seed to 1. */
int vqa_set_dialect(struct vqa *l, const char *dialect, struct err *e);

void vqa_close(struct vqa *l);

#endif
