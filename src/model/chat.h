/* chat.h - the chat template, appended piece by piece to a session.
 *
 * The published template is Jinja; this is the same layout written natively, so that a session can
 * grow turn by turn.  chat_check compares the model's template file with what is implemented here.
 *
 *   <s><SPECIAL_10>System\n{system}\n
 *   <SPECIAL_11>User\n{text}\n
 *   <SPECIAL_11>Assistant\n<think></think>{reply}\n<SPECIAL_12>\n
 *
 * with white space at both ends of system, text and reply cut away (chat_habits); or, for models with ChatML's tokens, turn by turn:
 *
 *   <|im_start|>system\n{system}<|im_end|>\n
 *   <|im_start|>user\n{text}<|im_end|>\n
 *   <|im_start|>assistant\n<think></think>{reply}<|im_end|>\n
 */
#ifndef HOLORUN_MODEL_CHAT_H
#define HOLORUN_MODEL_CHAT_H

#include "model/model.h"

enum chat_place {
    CHAT_PLACE_TEMPLATE, /* images of a message go before its text, as the published template does */
    CHAT_PLACE_INLINE,   /* images stay where the parts have them */
};

struct chat_part { /* text (plain, never special tokens) or image; exactly one is set */
    const char *text;
    const struct image *image;
};

/* What a model's own template does around the text of a turn; without one, what Nemotron VL's does. */
struct chat_habits {
    bool start;     /* <s> comes first: not in Nemotron's text models */
    bool trim;      /* white space at the ends of a text is cut away */
    char *tools[2]; /* what it writes in front of the list of tools and behind it; NULL: not known */
};
struct chat_habits chat_habits_of(const char *dir);
void chat_habits_free(struct chat_habits *h);

/* ---- turn by turn ---------------------------------------------------------------------------------
 *
 * For a session that grows while somebody works with it.  Texts come from screens and pages, so words
 * in them switch nothing; who opens the reply says whether it thinks.
 */

/* <s> and the system block.  The session must be empty. */
int chat_system(struct session *s, const char *text, struct err *e);

/* One user turn of n parts. */
int chat_user(struct session *s, const struct chat_part *parts, int n, enum chat_place place, struct err *e);

/* Opens the assistant's turn: generation goes on from here. think: leave the think block open. */
int chat_open_reply(struct session *s, bool think, struct err *e);

/* Closes the assistant's turn after generation: appends what of its end is missing. */
int chat_close_reply(struct session *s, struct err *e);

/* An assistant turn that was said before (history), with its closing.  Of added tokens those that
 * mark turns, images and tools are text in it, whichever it spells; others are recognised. */
int chat_reply(struct session *s, const char *reply, struct err *e);

/* The token that ends a reply. */
const char *chat_end_mark(const struct tokenizer *t);

/* ---- a whole conversation ---------------------------------------------------------------------------
 *
 * As the published template renders a list of messages, with tools and the switches of thinking: the last
 * "/think" or "/no_think" in system and user texts decides, and all of them are deleted there.  Unlike
 * there, marks of the template that somebody's text spells remain text.
 */

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT, CHAT_TOOL };

struct chat_message {
    enum chat_role role; /* a system message can only be the first */
    const struct chat_part *parts;
    int n;                    /* images: of users only */
    const char *const *calls; /* an assistant's calls, each {"name": ..., "arguments": ...} */
    int n_calls;
};

struct chat_conversation {
    const struct chat_message *messages;
    int n;
    const char *const *tools; /* JSON of each tool that is announced */
    int n_tools;
    enum chat_place place;
    bool think;      /* unless a message switches it */
    bool open_reply; /* an assistant's turn follows */
};

/* Appends all of it to an empty session; refuses models with other marks than these. */
int chat_append(struct session *s, const struct chat_conversation *c, struct err *e);

/* The same as text, of a model without a template of its own, with "<image>" for each image; the caller frees it.
 * NULL: refused. */
char *chat_render(const struct chat_conversation *c, struct err *e);

/* ---- the model's own file ---------------------------------------------------------------------------- */

/* NULL when the model's chat template is the one implemented here, else one line for a warning. */
const char *chat_check(const struct engine *g);

#endif
