/* chat_template.h - conversations, and the published chat template.
 *
 * The published template is Jinja.  The same layout is implemented here in C, so that a session can grow
 * turn by turn; chat_check compares the model's template file with it.
 *
 *   <s><SPECIAL_10>System\n{system}\n
 *   <SPECIAL_11>User\n{text}\n
 *   <SPECIAL_11>Assistant\n<think></think>{reply}\n<SPECIAL_12>\n
 *
 * System, text and reply are trimmed (template_traits).  Models with ChatML's tokens get:
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
    CHAT_PLACE_TEMPLATE, /* images of a message before its text, as in the published template */
    CHAT_PLACE_INLINE,   /* images in the order of the parts */
};

struct chat_part { /* text (plain, never special tokens) or image; exactly one is set */
    const char *text;
    const struct image *image;
};

/* Traits of a model's own template; without one, those of Nemotron VL's. */
struct template_traits {
    bool start;       /* begins with <s>: not in Nemotron's text models */
    bool trim;        /* cuts white space at both ends of a text */
    char *tools[2];   /* what it writes before and after the list of tools; NULL: not known */
    bool json_values; /* of Qwen's: values of calls are JSON, not Python's words */
    bool json_calls;  /* of Qwen2.5-VL's and Qwen3-VL's: calls are whole JSON objects */
    bool thinks;      /* of those: replies are opened for thinking */
    bool greets;      /* of those: has a system text where none is given */
    bool given;       /* there is a template */
};
struct template_traits template_traits_of(const char *dir);
void template_traits_free(struct template_traits *h);

/* ---- a whole conversation ---------------------------------------------------------------------------
 *
 * As the published template renders a list of messages, with tools and thinking switches: the last "/think"
 * or "/no_think" in system and user texts decides, and all of them are deleted.  Unlike there, a text that
 * spells a marker of the template stays text.
 */

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT, CHAT_TOOL };

struct chat_message {
    enum chat_role role; /* CHAT_SYSTEM: only the first message */
    const struct chat_part *parts;
    int n;                    /* parts; images only in a user's message */
    const char *const *calls; /* of an assistant, each {"name": ..., "arguments": ...} */
    int n_calls;
    const char *reasoning; /* of an assistant; NULL: none, or in its text before "</think>" */
};

struct chat_conversation {
    const struct chat_message *messages;
    int n;
    const char *const *tools; /* JSON of each available tool */
    int n_tools;
    enum chat_place place;
    bool think;      /* unless a message switches it */
    bool open_reply; /* opens an assistant's turn at the end */
};

/* The token that ends a reply. */
const char *chat_end_mark(const struct tokenizer *t);

/* NULL when the chat template in the model's directory is one implemented here, else a warning of one
 * line. */
const char *chat_check(const char *dir, const struct tokenizer *t);

#endif
