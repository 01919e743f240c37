/* vqa.h - what `ask`, `ground`, `eval` and `calibrate` share: a model, a dialect, images, one question, one
 * reply. */
#ifndef HOLORUN_AGENT_VQA_H
#define HOLORUN_AGENT_VQA_H

#include "actions/dialect.h"
#include "session/chat.h"
#include "session/generate.h"
#include "session/session.h"

struct looking {
    char *dir;
    struct engine *engine;
    struct dialect *dialect;
    struct session *session;
    bool free; /* replies are not held to a grammar: the model writes what it likes */
    struct grammar *grammars[GOAL_TEXT + 1]; /* compiled when first needed */
    struct generated reply;
};

/* Opens the model (dir NULL: the embedded one) and its dialect (NULL: the one the model asks for). */
int looking_open(struct looking *l, const char *dialect, const struct engine_options *model, uint64_t seed,
                 struct err *e);

/* Asks `question` about n images (in order, before the text or where the dialect wants them) and keeps the
 * reply in l->reply. */
int looking_ask(struct looking *l, const char *question, const struct image *images, int n,
                enum dialect_goal goal, const struct sampling *sampling, struct err *e);

/* Goes on with a conversation, free of any grammar, and keeps the reply in l->reply. */
int looking_converse(struct looking *l, const struct chat_conversation *c, const struct sampling *sampling,
                     struct err *e);

/* Forgets question and reply: the next question is the first of its conversation again. */
void looking_again(struct looking *l, uint64_t seed);

/* Another dialect for the questions from now on. */
int looking_speak(struct looking *l, const char *dialect, struct err *e);

void looking_close(struct looking *l);

#endif
