/* chain.h - prefix hashes of a prompt, the lookup keys of the session cache (store.h).
 *
 * Equal hashes mean equal prefixes (128 bits).
 */
#ifndef HOLORUN_SERVE_CHAIN_H
#define HOLORUN_SERVE_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

struct chain {
    uint64_t low, high;
};

static inline bool chain_equal(struct chain a, struct chain b)
{
    return a.low == b.low && a.high == b.high;
}

#endif
