/* answer_impl.h - writes the nodes of a read into an answer of the child. Private to atspi/. */
#pragma once

#include "atspi/reader_impl.h"

#include <jansson.h>

/* Appends the visible elements of a read. Returns the index of the one at the point of the question, -1:
 * none. */
int answer_put(const struct reader *r, json_t *out);
