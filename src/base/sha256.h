/* sha256.h - SHA-256 with libmd, used to identify the dialect and the policy of a run. */
#pragma once

#include <sha2.h>

struct sha256 {
    SHA2_CTX context;
};

static inline void sha256_begin(struct sha256 *s)
{
    SHA256Init(&s->context);
}

static inline void sha256_add(struct sha256 *s, const void *data, size_t n)
{
    SHA256Update(&s->context, data, n);
}

static inline void sha256_end(struct sha256 *s, char hex[65])
{
    SHA256End(&s->context, hex);
}

/* Computes the digest of a single buffer. */
static inline void sha256(const void *data, size_t n, char hex[65])
{
    SHA256Data(data, n, hex);
}
