/* vqa.h - visual question answering for `ask`, `ground`, `eval` and `calibrate`: one question about
 * images, one reply. */
#ifndef HOLORUN_AGENT_VQA_H
#define HOLORUN_AGENT_VQA_H

#include "actions/dialect.h"
#include "session/chat.h"
#include "session/generate.h"
#include "session/session.h"

struct vqa {
    char *dir;
    struct engine *engine;
    struct dialect *dialect;
    struct session *session;
    bool free;                               /* replies without a grammar */
    struct grammar *grammars[GOAL_TEXT + 1]; /* compiled when first needed */
    struct generated reply;
};

/* Opens the model (dir NULL: the embedded one) and its dialect (NULL: the one the model asks for). */
int vqa_open(struct vqa *l, const char *dialect, const struct engine_options *model, uint64_t seed,
             struct err *e);

/* Asks about n images, which go before the text or where the dialect wants them; the reply is l->reply. */
int vqa_ask(struct vqa *l, const char *question, const struct image *images, int n, enum dialect_goal goal,
            const struct sampling *sampling, struct err *e);

/* Continues a conversation without a grammar; the reply is l->reply. */
int vqa_converse(struct vqa *l, const struct chat_conversation *c, const struct sampling *sampling,
                 struct err *e);

/* Begins a new conversation. */
void vqa_reset(struct vqa *l, uint64_t seed);

/* Changes the dialect for the next questions. */
int vqa_set_dialect(struct vqa *l, const char *dialect, struct err *e);

void vqa_close(struct vqa *l);

#endif
