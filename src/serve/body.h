/* body.h - the body of POST /v1/chat/completions: JSON in, a checked request out.
 *
 * Members that would change the reply and are not implemented are refused by name, so that nobody believes
 * in a penalty that is not applied.  Members that change nothing (user, metadata, ...) are ignored.
 */
#ifndef HOLORUN_SERVE_BODY_H
#define HOLORUN_SERVE_BODY_H

#include "session/generate.h"
#include "text/conversation.h"

#include <jansson.h>

enum { BODY_STOPS = 8, BODY_STOP_LENGTH = 256, BODY_LOGPROBS = 20, BODY_DEPTH = 64 };

enum tool_choice { TOOLS_AUTO, TOOLS_NONE, TOOLS_REQUIRED, TOOLS_NAMED };

struct body_defaults {
    struct sampling sampling;
    enum chat_place place;
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
};

/* A request of another protocol as one of this; takes over root.  NULL with ERR_USAGE. */
typedef json_t *body_translate(json_t *root, struct err *e);

/* translate NULL: the text is of this protocol.  ERR_USAGE with one line.  The caller calls body_free in both
 * cases. */
int body_parse(struct chat_body *b, const char *text, size_t len, const struct body_defaults *d,
               body_translate *translate, struct err *e);
void body_free(struct chat_body *b);

#endif
