/* rpc_stream.h - carries JSON-RPC over two descriptors, with a second source of events. */
#pragma once

#include "host/rpc.h"

struct rpc_stream {
    struct rpc *rpc;
    int in, out;
    int wake;                 /* readable: woken() must be called */
    const volatile int *stop; /* a value other than 0 ends the loop */
    void (*woken)(void *arg);
    /* Returns the milliseconds until tick() must be called; -1: no call is needed. NULL: never. */
    int (*due)(void *arg);
    void (*tick)(void *arg);
    void *arg;
};

/* Reads and writes until the input ends or *stop is set; then returns 0.  Returns -1 with e if the other
 * program is gone or does not read. */
int rpc_stream_run(const struct rpc_stream *s, struct err *e);
/* Writes the remaining output, for at most ms milliseconds. */
void rpc_stream_finish(const struct rpc_stream *s, double ms);

/* Moves stdin and stdout to *in and *out for the protocol: prints of this process go to stderr, and reads
 * from stdin find the end of the file.  Returns -1 with e. */
int rpc_stream_take(int *in, int *out, struct err *e);
