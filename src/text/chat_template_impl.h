/* chat_template_impl.h - struct chat_template; private to src/text. */
#pragma once

#include "jinja/jinja.h"
#include "text/chat_layout.h"
#include "text/chat_template.h"

struct chat_template {
    const struct tokenizer *tokenizer;
    enum chat_family family;
    struct jinja *jinja;        /* NULL: unusable, see why */
    struct err why;             /* reason why jinja is NULL */
    struct err turns_why;       /* reason why turns are empty */
    char *warning;              /* NULL: none */
    char *special[4][2];        /* names and texts of bos_token, eos_token, ... */
    bool lists;                 /* content may be a list of parts */
    bool result_images;         /* tool results may contain images */
    bool in_order;              /* images of such a list keep their place */
    struct chat_calls calls;    /* form CHAT_CALLS_NONE: unknown */
    struct chat_turns turns[2]; /* without and with thinking; user[0] NULL: see turns_why */
};

/* Returns the placeholder of an image in a rendered text. */
const char *chat_placeholder(const struct chat_template *c);

/* Renders to a text with origins in the arena. Returns -1 with e. */
int chat_render_text(const struct chat_template *c, const struct chat_conversation *v, struct jinja_arena *a,
                     struct jinja_string *out, struct err *e);

/* Reads the template file of a model and fills the special tokens. Returns NULL if there is none. */
char *template_read(const char *dir, struct chat_template *c);

/* A rendering, split at its contents: the bytes that the template did not write. */
enum { CHAT_PROBE_MAX = 12 };
struct chat_probe {
    char *between[CHAT_PROBE_MAX + 1]; /* before content i, and after the last one */
    char *contents[CHAT_PROBE_MAX];
    int n;
};

/* Returns -1, with nothing to free, if there are more than CHAT_PROBE_MAX contents. */
int chat_probe_split(struct chat_probe *p, const struct jinja_string *s, struct err *e);
void chat_probe_free(struct chat_probe *p);

/* Fills lists, in_order and the turns. */
void chat_find_turns(struct chat_template *c);

/* Fills the format of calls; call after chat_find_turns(). */
void chat_find_calls(struct chat_template *c);
void chat_free_calls(struct chat_template *c);
