/* chat_template_impl.h - inside of a chat template; private to src/text. */
#ifndef HOLORUN_TEXT_CHAT_TEMPLATE_IMPL_H
#define HOLORUN_TEXT_CHAT_TEMPLATE_IMPL_H

#include "jinja/jinja.h"
#include "text/chat_layout.h"
#include "text/chat_template.h"

struct chat_template {
    const struct tokenizer *tokenizer;
    enum chat_family family;
    struct jinja *jinja;        /* NULL: it cannot be used, see why */
    struct err why;             /* why jinja is NULL */
    struct err turns_why;       /* why turns are empty */
    char *warning;              /* NULL: none */
    char *special[4][2];        /* names and texts of bos_token, eos_token, ... */
    bool lists;                 /* content may be a list of parts */
    bool result_images;         /* results of tools may have images */
    bool in_order;              /* images of such a list stay at their place */
    struct chat_calls calls;    /* form CHAT_CALLS_NONE: not known */
    struct chat_turns turns[2]; /* without and with thinking; user[0] NULL: see turns_why */
};

/* Returns the placeholder of an image in a rendered text. */
const char *chat_placeholder(const struct chat_template *c);

/* Renders to a text with origins in the arena. */
int chat_render_text(const struct chat_template *c, const struct chat_conversation *v, struct jinja_arena *a,
                     struct jinja_string *out, struct err *e);

/* The template file of a model: NULL if there is none.  Fills the special tokens. */
char *template_read(const char *dir, struct chat_template *c);

/* A rendering, split at its contents: the bytes that the template did not write. */
enum { CHAT_PROBE_MAX = 12 };
struct chat_probe {
    char *between[CHAT_PROBE_MAX + 1]; /* before content i, and behind the last one */
    char *contents[CHAT_PROBE_MAX];
    int n;
};

/* Returns -1, with nothing to free, if there are more than CHAT_PROBE_MAX contents. */
int chat_probe_split(struct chat_probe *p, const struct jinja_string *s, struct err *e);
void chat_probe_free(struct chat_probe *p);

/* Fills lists, in_order and the turns. */
void chat_find_turns(struct chat_template *c);

/* Fills the form of calls, after the turns. */
void chat_find_calls(struct chat_template *c);
void chat_free_calls(struct chat_template *c);

#endif
