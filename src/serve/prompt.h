/* prompt.h - the prompt of a conversation, rendered by the chat template and cut into parts.
 *
 * A session can continue at a cut: where a turn begins, and behind each image.  Both are next to a special
 * token, so the parts have the tokens of the whole prompt.  An image is hashed by the bytes of its data URL,
 * so a cached image is not decoded again.
 */
#ifndef HOLORUN_SERVE_PROMPT_H
#define HOLORUN_SERVE_PROMPT_H

#include "serve/chain.h"
#include "text/chat_layout.h"
#include "text/conversation.h"

struct prompt {
    struct layout layout;
    int *cuts;           /* [n + 1] segments: cuts[0] is 0, cuts[n] where the reply is opened */
    struct chain *chain; /* [n + 1] hashes of the segments before each cut */
    int n;
    int head;     /* the cut before the first user turn, if no image is before it; else 0 */
    int pictures; /* the cut before the turn with the first image; -1: no image */
    bool thinks;  /* the opening leaves a thought open */
};

/* Renders v with the opening of a reply.  The caller calls prompt_free also after a failure. */
int prompt_build(struct prompt *p, const struct chat_template *c, const struct conversation *v,
                 struct err *e);
void prompt_free(struct prompt *p);

/* Renders the conversation with a reply and whatever may follow it.  *end: the cut behind the reply's turn.
 * Returns -1 if the template renders the messages before the reply differently then. */
int prompt_build_reply(struct prompt *p, const struct chat_template *c, const struct conversation *v,
                       const struct prompt *before, const json_t *reply, int *end, struct err *e);

/* The texts of segments [from, to) behind each other; the caller frees it. */
char *prompt_text(const struct prompt *p, int from, int to);

#endif
