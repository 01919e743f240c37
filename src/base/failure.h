/* failure.h - classes of endpoint failures, whatever form a server reports them in: an HTTP status, an error
 * body with status 200, an error event within a stream, a broken connection.
 *
 * The class decides whether the request may be repeated, and the exit code if it keeps failing. A new class
 * needs a row in failure.c; the help text on exit codes lists every class. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>

enum failure_class {
    FAILURE_NONE,
    FAILURE_UNREACHABLE, /* no byte of an answer arrived */
    FAILURE_CUT_OFF,     /* the reply ended before its end mark */
    FAILURE_TIMED_OUT,   /* 408, 504, 522, 524 */
    FAILURE_CONFLICT,    /* 409 */
    FAILURE_RATE,        /* 429 */
    FAILURE_OVERLOADED,  /* 503, 529 */
    FAILURE_SERVER,      /* any other 5xx */
    FAILURE_QUOTA,       /* 402, or 429 with insufficient_quota */
    FAILURE_KEY,         /* 401, 403 */
    FAILURE_ABSENT,      /* 404: no such path or model */
    FAILURE_MOVED,       /* 3xx */
    FAILURE_REQUEST,     /* any other 4xx */
    FAILURE_WITHHELD,    /* refused by a content filter or the model */
    FAILURE_REPLY,       /* not a reply of the protocol */
    FAILURE_ALIEN,       /* the server does not implement the protocol at all */
    FAILURE_CLASSES
};

struct failure {
    enum failure_class class;
    int status;     /* HTTP status, or the code in an error body; 0: none */
    double after;   /* seconds that the server asks the client to wait; 0: not stated */
    double reset;   /* seconds until a rate limit is reset, the minimum to wait; 0: not stated */
    char said[256]; /* the server's message, or a description */
};

/* Returns the name of a class, such as "rate limited", for error messages and the help text. */
const char *failure_name(enum failure_class c);
/* Returns the exit code for a failure of that class that persists. */
enum err_kind failure_exit(enum failure_class c);
/* Returns the maximum number of attempts for that class; 1: it is never retried. */
int failure_tries(enum failure_class c);

void failure_set(struct failure *f, enum failure_class c, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Returns whether a JSON value reports an error; if so, fills *f with its class. Known forms: a member
 * "error", "detail" or "errors", {"object": "error"}, {"type": "error"}, a message without a reply, and a
 * list of these. An error without a known word counts as an error of the server. */
bool failure_read(struct failure *f, json_t *root);

/* Fills *f from an HTTP status other than 200 and its body. */
void failure_of_status(struct failure *f, int status, const char *body, size_t len);

/* Classifies a text that is not JSON; FAILURE_NONE: it contains no known word. */
enum failure_class failure_of_text(const char *text);
