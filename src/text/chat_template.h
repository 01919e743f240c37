/* chat_template.h - a model's chat template: whole conversations, and the turns of a growing session.
 *
 * The template is the Jinja file of the model, interpreted (jinja/jinja.h). A model without one gets the
 * layout of its family, from src/text/templates.
 *
 * A session of an agent grows turn by turn. The texts around each turn are found by rendering probe
 * conversations (chat_turns.c). Turns assembled from them are compared with the template's own rendering
 * when the template is opened, and a template that cannot be assembled is rejected for such sessions.
 *
 * Texts from users, tools and screens never become special tokens, unlike in other implementations. */
#pragma once

#include "base/err.h"
#include "base/image.h"

#include <jansson.h>

struct tokenizer;
struct layout;

enum chat_place {
    CHAT_PLACE_TEMPLATE, /* images of a message where the template puts them */
    CHAT_PLACE_INLINE,   /* images in the order of the parts */
};

struct chat_part { /* text (plain, never special tokens) or image; exactly one is set */
    const char *text;
    const struct image *image;
};

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT, CHAT_TOOL };

enum chat_think { CHAT_THINK_DEFAULT, CHAT_THINK_OFF, CHAT_THINK_ON }; /* DEFAULT: the template decides */

struct chat_message {
    enum chat_role role;
    const struct chat_part *parts;
    int n;                    /* parts */
    bool listed;              /* the content is a list of parts, even if it has only one text */
    const char *const *calls; /* calls of an assistant, each {"name": ..., "arguments": an object or JSON
                               * text} */
    int n_calls;
    const char *reasoning; /* reasoning of an assistant; NULL: none, or in its text before "</think>" */
};

struct chat_conversation {
    const struct chat_message *messages;
    int n;
    const char *const *tools; /* JSON of each available tool, as in the request */
    int n_tools;
    enum chat_place place;
    enum chat_think think;
    bool open_reply; /* opens an assistant's turn at the end */
    bool normalise;  /* as servers do: arguments in JSON text become objects, lists of texts one text */
    const json_t *variables; /* further template variables (reasoning_effort, ...): an object or NULL */
};

/* The family whose layout is used if the model has no template. */
enum chat_family { CHAT_NEMOTRON_VL, CHAT_NEMOTRON, CHAT_QWEN, CHAT_QWEN3_VL, CHAT_QWEN25_VL };

struct chat_template;

/* Open the template in a model directory or GGUF file, or from its source. Never return NULL: if a
 * template cannot be used, the functions below fail. The tokenizer is borrowed; without one (NULL) only
 * whole conversations can be rendered. */
struct chat_template *chat_template_open(const char *dir, const struct tokenizer *t, enum chat_family family);
struct chat_template *chat_template_of(const char *source, const struct tokenizer *t,
                                       enum chat_family family);
void chat_template_free(struct chat_template *c);

/* Returns NULL, or a one-line warning: the template is missing or cannot be used. */
const char *chat_template_warning(const struct chat_template *c);

/* Lays out a whole conversation as the template renders it. Returns -1 with ERR_USAGE if the template
 * rejects it. */
int chat_template_render(const struct chat_template *c, const struct chat_conversation *v, struct layout *l,
                         struct err *e);

/* Returns the token that ends a reply. */
const char *chat_end_mark(const struct tokenizer *t);

/* ---- tool calls ------------------------------------------------------------------------------------- */

enum chat_calls_form { CHAT_CALLS_NONE, CHAT_CALLS_JSON, CHAT_CALLS_XML };

/* The format of a tool call. JSON: begin {"name": NAME, "arguments": {...}} end. XML: begin NAME part[0]
 * (part[1] KEY part[2] VALUE part[3])... end. */
struct chat_calls {
    enum chat_calls_form form;
    char *begin, *end, *part[4];
};

/* Returns the format of tool calls; NULL if the template has no tools or writes calls in another format. */
const struct chat_calls *chat_template_calls(const struct chat_template *c);

/* Returns whether the template shows images in tool results. */
bool chat_template_result_images(const struct chat_template *c);

/* ---- turns ------------------------------------------------------------------------------------------ */

/* The texts around the turns of a session, for one setting of thinking. */
struct chat_turns {
    char *preamble;  /* before the first user turn, without a system text */
    char *system[2]; /* around a system text */
    char *user[2];   /* around a user turn; user[0] begins with a special token */
    char *reply[2];  /* around a reply of the history; reply[1] contains the token that ends it */
    char *open;      /* opens a reply to be generated */
    unsigned trim_system, trim_user, trim_reply; /* LAYOUT_TRIM_ bits: whitespace that is removed */
    bool in_order;    /* images keep their place among the texts instead of preceding them */
    bool keeps_reply; /* a later prompt opens a reply of the history in the same way as it was opened for
                       * generation */
};

/* Returns the texts around turns; NULL with e if turns cannot be assembled. */
const struct chat_turns *chat_template_turns(const struct chat_template *c, bool think, struct err *e);

/* Lays out the system turn with tools; the first user turn may follow. tools: n texts in JSON. Returns -1
 * with e. */
int chat_template_system(const struct chat_template *c, const char *text, const char *const *tools, int n,
                         bool think, struct layout *l, struct err *e);
