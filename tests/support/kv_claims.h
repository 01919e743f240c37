/* kv_claims.h - tests of sessions with an 8-bit KV cache, on any backend. */
#pragma once

#include "session/session.h"
#include "tiny_model.h"

struct engine *kv_claims_engine(const struct tiny *t, const char *device, const char *isa, bool fp8,
                                bool f32);

/* Checks for equal bits: text at once and in pieces, after a rewind, in a fork, after spilling, from a file,
 * and in a batch. */
void kv_claims_check(const struct tiny *t, const char *device, const char *isa);

/* Returns the distance of the logits of two engines after text, an image and more text. */
double kv_claims_apart(struct engine *a, struct engine *b);
