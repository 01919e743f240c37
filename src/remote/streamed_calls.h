/* streamed_calls.h - joins the tool calls of a streamed reply, which servers split in many ways.
 *
 * A call in the list is {"id", "name", "arguments": text}. A streamed piece may lack the index, id or name,
 * may repeat the name, or may hold a whole call with the index of an earlier one. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Adds the pieces in a "tool_calls" array to *calls, which may be NULL. whole: the array is part of a
 * complete message, so that a call that was streamed before is not added again. */
void streamed_calls_add(json_t **calls, json_t *pieces, bool whole);
/* Adds a single legacy call {"name", "arguments"} ("function_call") in the same way; ignored if *calls has
 * calls of the newer form. */
void streamed_calls_add_legacy(json_t **calls, json_t *function, bool whole);
/* Removes empty slots and the members used during streaming. Sets *calls to NULL if no call is left. */
void streamed_calls_end(json_t **calls);
