/* chat_template.h - conversations, and how the published chat template lays them out.
 *
 * The published template is Jinja; the same layout is implemented here natively, so that a session can grow turn by
 * turn.  chat_check compares the model's template file with what is implemented.
 *
 *   <s><SPECIAL_10>System\n{system}\n
 *   <SPECIAL_11>User\n{text}\n
 *   <SPECIAL_11>Assistant\n<think></think>{reply}\n<SPECIAL_12>\n
 *
 * White space at both ends of system, text and reply is trimmed (template_traits).  Models with ChatML's tokens get:
 *
 *   <|im_start|>system\n{system}<|im_end|>\n
 *   <|im_start|>user\n{text}<|im_end|>\n
 *   <|im_start|>assistant\n<think></think>{reply}<|im_end|>\n
 */
#ifndef HOLORUN_TEXT_CHAT_TEMPLATE_H
#define HOLORUN_TEXT_CHAT_TEMPLATE_H

#include "base/err.h"
#include "base/image.h"

struct tokenizer;

enum chat_place {
    CHAT_PLACE_TEMPLATE, /* images of a message go before its text, as the published template does */
    CHAT_PLACE_INLINE,   /* images stay where the parts have them */
};

struct chat_part { /* text (plain, never special tokens) or image; exactly one is set */
    const char *text;
    const struct image *image;
};

/* What a model's own template does around the text of a turn; without one, what Nemotron VL's does. */
struct template_traits {
    bool start;     /* <s> comes first: not in Nemotron's text models */
    bool trim;      /* white space at the ends of a text is cut away */
    char *tools[2]; /* what it writes in front of the list of tools and behind it; NULL: not known */
};
struct template_traits template_traits_of(const char *dir);
void template_traits_free(struct template_traits *h);

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

/* The conversation as text, laid out as for a model without a template of its own, with "<image>" for each image; the
 * caller frees it.  NULL: refused. */
char *chat_render(const struct chat_conversation *c, struct err *e);

/* The token that ends a reply. */
const char *chat_end_mark(const struct tokenizer *t);

/* NULL when the chat template in the model's directory is the one implemented here, else one line for a warning. */
const char *chat_check(const char *dir, const struct tokenizer *t);

#endif
