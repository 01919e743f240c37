/* rpc_stream.h - carries JSON-RPC over two descriptors, with a second source of events beside it. */
#ifndef HOLORUN_HOST_RPC_STREAM_H
#define HOLORUN_HOST_RPC_STREAM_H

#include "host/rpc.h"

struct rpc_stream {
    struct rpc *rpc;
    int in, out;
    int wake;                 /* readable: woken() has something to do */
    const volatile int *stop; /* ends the loop */
    void (*woken)(void *arg);
    /* Milliseconds until tick() is wanted; -1: not at all. */
    int (*due)(void *arg);
    void (*tick)(void *arg);
    void *arg;
};

/* Reads and writes until the input ends or *stop is set: 0.  -1: the other program is gone, or does not
 * read. */
int rpc_stream_run(const struct rpc_stream *s, struct err *e);
/* Writes what is left, for at most so long. */
void rpc_stream_finish(const struct rpc_stream *s, double ms);

/* Takes stdin and stdout away from the rest of the process, as the protocol owns them: what is printed
 * goes to stderr, and there is nothing to read.  -1 with e. */
int rpc_stream_take(int *in, int *out, struct err *e);

#endif
