/* token_ids.h - the token ids and log-probabilities that a server returns with a reply, for training.
 *
 * `holorun serve` and vLLM return them for "return_token_ids": "prompt_token_ids" with the reply or its first
 * chunk, and "token_ids" with each choice. Log-probabilities are in "token_logprobs" (`holorun serve`), else
 * in "logprobs", which must then be requested as well. */
#pragma once

#include "remote/protocol.h"

/* Adds the ids in a reply, or in a chunk of it. choice may be NULL. */
void token_ids_add(struct remote_reply *r, const json_t *root, const json_t *choice);

/* Replaces *out by the ids of a complete reply. Its ids are NULL if they are missing, or if the number of
 * log-probabilities differs from that of the ids. */
void token_ids_take(const struct remote_reply *r, struct llm_tokens *out);
