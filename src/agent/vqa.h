/* vqa.h - what `ask`, `ground`, `eval` and `calibrate` share: a model, a dialect, images, one question, one
 * reply. */
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
    bool free; /* replies are not held to a grammar: the model writes what it likes */
    struct grammar *grammars[GOAL_TEXT + 1]; /* compiled when first needed */
    struct generated reply;
};

/* Opens the model (dir NULL: the embedded one) and its dialect (NULL: the one the model asks for). */
int vqa_open(struct vqa *l, const char *dialect, const struct engine_options *model, uint64_t seed,
             struct err *e);

/* Asks `question` about n images (in order, before the text or where the dialect wants them) and keeps the
 * reply in l->reply. */
int vqa_ask(struct vqa *l, const char *question, const struct image *images, int n, enum dialect_goal goal,
            const struct sampling *sampling, struct err *e);

/* Goes on with a conversation, free of any grammar, and keeps the reply in l->reply. */
int vqa_converse(struct vqa *l, const struct chat_conversation *c, const struct sampling *sampling,
                 struct err *e);

/* Forgets question and reply: the next question is the first of its conversation again. */
void vqa_reset(struct vqa *l, uint64_t seed);

/* Another dialect for the questions from now on. */
int vqa_set_dialect(struct vqa *l, const char *dialect, struct err *e);

void vqa_close(struct vqa *l);

#endif
