/* elements_impl.h - the parts of elements.c that query.c and the fuzz target use. Private to atspi/. */
#pragma once

#include "atspi/elements.h"

#include <jansson.h>

enum { ELEMENTS_ASK_MS = 1500 }; /* limit of reading for a question that is not waited for */

/* Sends a question about a scope. Returns whether it was sent. */
bool elements_ask(struct elements *x, const struct elements_scope *s, double ms);
/* Returns the scope of the newest question without its title, NULL: none. */
const struct elements_scope *elements_question(const struct elements *x);
/* Waits until the newest question is answered. Returns NULL if not within ms. */
const struct snapshot *elements_await(struct elements *x, double ms);
/* Reads a snapshot from an answer, and takes the reference to the answer. Returns -1 if it is malformed;
 * free it with snapshot_free(). */
int snapshot_read(json_t *answer, struct snapshot *out);
void snapshot_label(struct snapshot *s); /* Sets the labels of elements without a name. */
