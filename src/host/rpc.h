/* rpc.h - JSON-RPC 2.0 with another program: one object a line, both directions.
 *
 *     bytes ─► rpc_feed ─► request ──► rpc_reply, rpc_fail: at once or later, once for each
 *                       ├► notice
 *                       └► answered: what came back for an rpc_ask
 *     rpc_reply, rpc_fail, rpc_tell, rpc_ask ─► lines ─► rpc_output
 *
 * This part knows no descriptor and never waits; stream.h carries it over stdin and stdout.  All of it is
 * used from one thread.
 *
 * The other program may send anything.  An invalid line is answered with one error; a line longer than
 * RPC_LINE_MAX is dropped as it comes, so that it takes no memory.  A program that sends requests without
 * reading the answers is given up when RPC_OUTPUT_MAX bytes wait for it.
 *
 * Accepted: an array of messages (a batch, answered with one array), params null or [], ids written as 1.0,
 * a byte order mark, escaped surrogates without a partner (they become U+FFFD).  Refused: strings with
 * U+0000, at which C strings end.  Lines are written by base/json.h.
 */
#ifndef HOLORUN_HOST_RPC_H
#define HOLORUN_HOST_RPC_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RPC_LINE_MAX = 16 << 20,
    RPC_OUTPUT_MAX = 64 << 20,
    RPC_OPEN_MAX = 256, /* requests without an answer, in either direction */
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

/* Everything that a handler gets is borrowed until it returns.  params: an object, empty when there are
 * none. */
struct rpc_handlers {
    void (*request)(void *arg, const json_t *id, const char *method, json_t *params);
    void (*notice)(void *arg, const char *method, json_t *params);
    /* result NULL: the other program refused, and says why. */
    void (*answered)(void *arg, int64_t ask, json_t *result, const char *why);
};

struct rpc *rpc_new(const struct rpc_handlers *h, void *arg);
void rpc_free(struct rpc *r); /* NULL is fine */

void rpc_feed(struct rpc *r, const char *data, size_t n);
/* The input has ended: half a line is no message. */
void rpc_end(struct rpc *r);

/* A request that is not open (any more) is not answered: false.  result is taken over. */
bool rpc_reply(struct rpc *r, const json_t *id, json_t *result);
/* data: taken over; NULL: none. */
bool rpc_fail(struct rpc *r, const json_t *id, int code, json_t *data, const char *fmt, ...)
    PRINTF_LIKE(5, 6);
/* The request is over and is not answered: the other program has cancelled it.  false: it is not open. */
bool rpc_drop(struct rpc *r, const json_t *id);
/* params is taken over. */
void rpc_tell(struct rpc *r, const char *method, json_t *params);
/* Returns the number that answered() gets; 0: too many are open. */
int64_t rpc_ask(struct rpc *r, const char *method, json_t *params);
/* Its answer is dropped when it comes. */
void rpc_forget(struct rpc *r, int64_t ask);

/* What waits to be written; rpc_written() takes n bytes of it away. */
const char *rpc_output(const struct rpc *r, size_t *n);
void rpc_written(struct rpc *r, size_t n);
/* The other program does not read what it is told. */
bool rpc_clogged(const struct rpc *r);

#endif
