/* rpc.h - JSON-RPC 2.0 with another program: one object per line, in both directions.
 *
 *     bytes ─► rpc_feed ─► request ──► rpc_reply, rpc_fail: at once or later, once per request
 *                       ├► notice
 *                       └► answered: the answer to an rpc_ask
 *     rpc_reply, rpc_fail, rpc_tell, rpc_ask ─► lines ─► rpc_output
 *
 * This module uses no descriptor and never waits; rpc_stream.h connects it to stdin and stdout.  All
 * functions must be called from one thread.
 *
 * Input is not trusted.  An invalid line is answered with one error; a line longer than RPC_LINE_MAX is
 * discarded while it arrives, so that it takes no memory.  A program that sends requests without reading the
 * answers is disconnected when more than RPC_OUTPUT_MAX bytes wait for it.
 *
 * Accepted: an array of messages (a batch, answered with one array), params null or [], ids written as 1.0, a
 * byte order mark, escaped surrogates without a partner (they become U+FFFD).  Rejected: strings with U+0000,
 * at which C strings end.  Lines are written by base/json.h. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RPC_LINE_MAX = 16 << 20,
    RPC_OUTPUT_MAX = 64 << 20,
    RPC_OPEN_MAX = 256, /* requests without an answer, in each direction */
};

enum rpc_code {
    RPC_PARSE = -32700,
    RPC_INVALID = -32600,
    RPC_NO_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_BUSY = -32000,
};

struct rpc;

/* All arguments of a handler are borrowed until it returns.  params: an object, empty if there are none. */
struct rpc_handlers {
    void (*request)(void *arg, const json_t *id, const char *method, json_t *params);
    void (*notice)(void *arg, const char *method, json_t *params);
    /* result NULL: the other program refused; why is its reason */
    void (*answered)(void *arg, int64_t ask, json_t *result, const char *why);
};

struct rpc *rpc_new(const struct rpc_handlers *h, void *arg);
void rpc_free(struct rpc *r); /* NULL is allowed */

void rpc_feed(struct rpc *r, const char *data, size_t n);
/* Ends the input.  An incomplete line is answered with an error. */
void rpc_end(struct rpc *r);

/* Answers an open request.  Returns false if the request is not open.  Takes ownership of result. */
bool rpc_reply(struct rpc *r, const json_t *id, json_t *result);
/* Answers an open request with an error.  Takes ownership of data; NULL: none.  Returns false as
 * rpc_reply(). */
bool rpc_fail(struct rpc *r, const json_t *id, int code, json_t *data, const char *fmt, ...)
    PRINTF_LIKE(5, 6);
/* Closes a request without an answer, because the other program has cancelled it.  Returns false if it is not
 * open. */
bool rpc_drop(struct rpc *r, const json_t *id);
/* Sends a notification.  Takes ownership of params. */
void rpc_tell(struct rpc *r, const char *method, json_t *params);
/* Sends a request.  Takes ownership of params.  Returns the number that answered() gets; 0: RPC_OPEN_MAX are
 * open. */
int64_t rpc_ask(struct rpc *r, const char *method, json_t *params);
/* Drops the answer to a request when it arrives. */
void rpc_forget(struct rpc *r, int64_t ask);

/* Returns the bytes that wait to be written; rpc_written() removes n of them. */
const char *rpc_output(const struct rpc *r, size_t *n);
void rpc_written(struct rpc *r, size_t n);
/* Returns whether more than RPC_OUTPUT_MAX bytes wait: the other program does not read. */
bool rpc_clogged(const struct rpc *r);
