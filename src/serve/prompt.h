/* prompt.h - the prompt of a conversation, rendered by the chat template and cut into parts.
 *
 * A session can continue at a cut: where a turn begins, and after each image. Both are next to a special
 * token, so the parts have the same tokens as the whole prompt. An image contributes the bytes of its data
 * URL to the hash, so that a cached image is not decoded again. */
#pragma once

#include "serve/prefix_hash.h"
#include "text/chat_layout.h"
#include "text/conversation.h"

struct prompt {
    struct layout layout;
    int *cuts; /* [n + 1] segment indexes: cuts[0] is 0, cuts[n] is where the reply is opened */
    struct prefix_hash *hashes; /* [n + 1] hashes of the segments before each cut */
    int n;
    int head;     /* cut before the first user turn, if no image precedes it; otherwise 0 */
    int pictures; /* cut before the turn with the first image; -1: no image */
    bool thinks;  /* the opening of the reply begins with reasoning */
};

/* Renders v with the opening of a reply. Returns -1 with e. The caller calls prompt_free() in both cases. */
int prompt_build(struct prompt *p, const struct chat_template *c, const struct conversation *v,
                 struct err *e);
void prompt_free(struct prompt *p);

/* Renders the conversation with a reply and a placeholder turn after it. *end: the cut after the reply's
 * turn. Returns -1 with e if the template then renders the messages before the reply differently. */
int prompt_build_reply(struct prompt *p, const struct chat_template *c, const struct conversation *v,
                       const struct prompt *before, const json_t *reply, int *end, struct err *e);

/* Returns the concatenated texts of segments [from, to); the caller frees it. */
char *prompt_text(const struct prompt *p, int from, int to);
