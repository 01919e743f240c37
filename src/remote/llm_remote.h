/* llm_remote.h - a model behind an endpoint as the loop sees it (llm/llm.h).
 *
 * The conversation is a list of messages; a mark is a copy of that list, which shares its pictures, so
 * rewind, fork and veto work as with a session.  What such a partner cannot give: tokens to be verified,
 * a state to be saved, odds of other places.
 */
#ifndef HOLORUN_REMOTE_LLM_REMOTE_H
#define HOLORUN_REMOTE_LLM_REMOTE_H

#include "llm/llm.h"
#include "remote/endpoint.h"
#include "remote/exchanges.h"

/* endpoint and dialect are borrowed; conversations of several threads may share an endpoint that has been
 * opened.  session: its name for routers, copied; may be NULL. */
struct llm *llm_remote(struct endpoint *p, const struct dialect *d, uint64_t seed, const char *session);

/* From now on each exchange of this conversation is given to `put` (exchanges.h). */
void llm_remote_log(struct llm *m, exchange_sink *put, void *arg);

#endif
