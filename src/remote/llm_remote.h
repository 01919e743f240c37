/* llm_remote.h - a language model behind an HTTP endpoint, with the interface of llm/llm.h.
 *
 * The conversation is a list of messages. A mark is a copy of that list that shares its images, so rewind,
 * fork and veto work as with a local session. Not available: tokens for verification, saving the model's
 * state, and beam search over other positions. */
#pragma once

#include "llm/llm.h"
#include "remote/endpoint.h"
#include "remote/exchanges.h"

/* Creates a model connection. endpoint and dialect are borrowed; conversations in several threads may share
 * an open endpoint. session: name of the conversation for request routers, copied; may be NULL. */
struct llm *llm_remote(struct endpoint *p, const struct dialect *d, uint64_t seed, const char *session);

/* Passes each later request of this conversation, with its reply, to `put` (exchanges.h). */
void llm_remote_log(struct llm *m, exchange_sink *put, void *arg);
