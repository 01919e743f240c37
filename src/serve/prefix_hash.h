/* prefix_hash.h - prefix hashes of a prompt, the lookup keys of the session cache (store.h).
 *
 * Equal hashes mean equal prefixes (128 bits). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct prefix_hash {
    uint64_t low, high;
};

static inline bool prefix_hash_equal(struct prefix_hash a, struct prefix_hash b)
{
    return a.low == b.low && a.high == b.high;
}
