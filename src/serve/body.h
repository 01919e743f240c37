/* body.h - the body of POST /v1/chat/completions: JSON in, a checked request out.
 *
 * Null is absent.  A member that cannot change the meaning of the reply, or that this program does not know,
 * is ignored and named in the notes, which the client gets as a header.  A member that changes the reply and
 * is not implemented (n above 1, logit_bias, audio, a grammar of another kind, ...) is refused by name,
 * unless its value has no effect.
 */
#ifndef HOLORUN_SERVE_BODY_H
#define HOLORUN_SERVE_BODY_H

#include "base/effort.h"
#include "serve/notes.h"
#include "session/generate.h"
#include "text/conversation.h"

#include <jansson.h>

enum { BODY_STOPS = 32, BODY_STOP_LENGTH = 256, BODY_LOGPROBS = 20 };

enum tool_choice { TOOLS_AUTO, TOOLS_NONE, TOOLS_REQUIRED, TOOLS_NAMED };

struct body_defaults {
    struct sampling sampling;
    enum chat_place place;
    bool result_pictures;  /* the template shows pictures in the results of tools */
    struct effort *effort; /* of this request; NULL: no limit */
};

struct chat_body {
    struct conversation talk; /* its pictures are not decoded; `files` are data URLs */
    struct sampling sampling; /* max_tokens 0: what the context leaves */
    bool seeded;
    uint64_t seed;
    bool stream, usage, logprobs, token_ids;
    int top_logprobs;
    const char *stops[BODY_STOPS];
    int n_stops;
    const json_t *schema; /* of the reply; NULL: free text */
    bool any_object;      /* the reply is some JSON object */
    const char *dialect;  /* the reply is one of this dialect; NULL */
    enum tool_choice tools;
    const char *tool; /* TOOLS_NAMED */
    struct notes notes;
    struct effort *effort; /* of schemas, their grammar, and pictures; NULL: no limit */
};

/* Translates a request of another protocol into one of this; takes over root.  NULL with ERR_USAGE. */
typedef json_t *body_translate(json_t *root, struct notes *n, struct err *e);

/* translate NULL: the text is of this protocol.  ERR_USAGE with one line.  The caller calls body_free in both
 * cases. */
int body_parse(struct chat_body *b, const char *text, size_t len, const struct body_defaults *d,
               body_translate *translate, struct err *e);
void body_free(struct chat_body *b);

/* Reads all members of root but the messages and the tools (body_members.c). */
int body_read_members(struct chat_body *b, json_t *root, struct err *e);

#endif
