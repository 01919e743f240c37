/* completion_impl.h - inside of a completion; private to src/serve. */
#ifndef HOLORUN_SERVE_COMPLETION_IMPL_H
#define HOLORUN_SERVE_COMPLETION_IMPL_H

#include "serve/completion.h"

/* Finds the session that goes furthest, reads what is new of the conversation, and opens a reply. */
int completion_read_conversation(struct completion *c, struct err *e);

/* Renders the prompt of the request. */
int completion_render(struct completion *c, struct err *e);

#endif
