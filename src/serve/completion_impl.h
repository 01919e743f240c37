/* completion_impl.h - functions shared by completion*.c; private to src/serve. */
#pragma once

#include "serve/completion.h"

/* Acquires the session with the longest matching prefix, prefills the rest of the conversation, and opens a
 * reply. */
int completion_read_conversation(struct completion *c, struct err *e);

/* Renders the prompt of the request. */
int completion_render(struct completion *c, struct err *e);
