/* chain.h - what a conversation is found by: a hash for each number of messages that it may begin with.
 *
 * chain[0] covers what stands before all messages (tools, layout), chain[k] that and the first k messages:
 * two conversations agree in chain[k] when they agree in everything up to there.  Pictures count by the
 * bytes of their data URLs, so that a picture that has been read is not even decoded again.
 */
#ifndef HOLORUN_SERVE_CHAIN_H
#define HOLORUN_SERVE_CHAIN_H

#include "text/conversation.h"

#include <stdbool.h>
#include <stdint.h>

struct chain {
    uint64_t low, high;
};

static inline bool chain_equal(struct chain a, struct chain b)
{
    return a.low == b.low && a.high == b.high;
}

/* [v->chat.n + 1]; the caller frees it. */
struct chain *chain_of(const struct conversation *v);

/* The chain after one more message, an assistant's, as a client will send it back. */
struct chain chain_reply(struct chain before, const json_t *message);

#endif
