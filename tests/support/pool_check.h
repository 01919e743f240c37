/* pool_check.h - engines with a limit of state memory, and the bits of a session's state; for CPU and GPU. */
#pragma once

#include "tiny_model.h"

/* bound: bytes of state memory, 0: no limit. Fails the test if the engine does not open. */
struct engine *pool_check_engine(const struct tiny *t, const char *device, size_t bound);

/* Returns the state memory in bytes of a session of this length. */
size_t pool_check_need(struct engine *g, int64_t tokens);

/* Returns the bits of a session's state and their length in bytes; the caller frees them. */
uint8_t *pool_check_bits(struct session *s, size_t *len);

/* Fails the test unless both have the same state and logits, bit for bit. */
void pool_check_same(struct session *a, struct session *b);
