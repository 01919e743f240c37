/* body.h - parses the body of POST /v1/chat/completions into a checked request.
 *
 * null counts as absent. A member that cannot change the meaning of the reply, or that is unknown, is ignored
 * and listed in the notes, which the client gets as a header. A member that changes the reply and is not
 * implemented (n above 1, logit_bias, audio, another kind of grammar, ...) is rejected by name, unless its
 * value has no effect. */
#pragma once

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
    bool result_pictures;  /* the chat template shows images in tool results */
    struct effort *effort; /* CPU budget of this request; NULL: no limit */
};

struct chat_body {
    struct conversation talk; /* its images are not decoded; `files` are data URLs */
    /* max_tokens 0: not given (completion_read.c: 4096 or the rest of the context) */
    struct sampling sampling;
    bool seeded;
    uint64_t seed;
    bool stream, usage, logprobs, token_ids;
    int top_logprobs;
    const char *stops[BODY_STOPS];
    int n_stops;
    const json_t *schema; /* schema of the reply; NULL: free text */
    bool any_object;      /* the reply must be any JSON object */
    const char *dialect;  /* the reply must be in this dialect; NULL: none */
    enum tool_choice tools;
    const char *tool; /* name, for TOOLS_NAMED */
    struct notes notes;
    struct effort *effort; /* CPU budget for schemas, grammars and images; NULL: no limit */
};

/* Translates a request of another protocol; takes ownership of root. Returns NULL with ERR_USAGE. */
typedef json_t *body_translate(json_t *root, struct notes *n, struct err *e);

/* Parses and checks a request. translate: NULL for a chat completion. Returns -1 with ERR_USAGE and one line.
 * The caller calls body_free() in both cases. */
int body_parse(struct chat_body *b, const char *text, size_t len, const struct body_defaults *d,
               body_translate *translate, struct err *e);
void body_free(struct chat_body *b);

/* Reads all members of root except messages and tools (body_members.c). */
int body_read_members(struct chat_body *b, json_t *root, struct err *e);
