/* kv_claims.h - what holds of every session whose keys and values are kept in 8 bits, on any backend. */
#ifndef HOLORUN_TESTS_KV_CLAIMS_H
#define HOLORUN_TESTS_KV_CLAIMS_H

#include "session/session.h"
#include "tiny_model.h"

struct engine *kv_claims_engine(const struct tiny *t, const char *device, const char *isa, bool fp8,
                                bool f32);

/* Bit by bit the same: text at once and in pieces, after going back, in a fork, after having been away,
 * read from a file, and with others at once. */
void kv_claims_check(const struct tiny *t, const char *device, const char *isa);

/* How far the logits of two are from each other after some text, a picture and more text. */
double kv_claims_apart(struct engine *a, struct engine *b);

#endif
