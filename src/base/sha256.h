/* sha256.h - SHA-256, which names the dialect and the policy of a run. */
#ifndef HOLORUN_BASE_SHA256_H
#define HOLORUN_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
    uint32_t h[8];
    uint8_t block[64];
    uint64_t len;
};

void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t n);
void sha256_end(struct sha256 *s, char hex[65]);

#endif
