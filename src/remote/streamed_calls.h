/* streamed_calls.h - assembles the tool calls of a reply, which servers stream in many shapes.
 *
 * A call is {"id", "name", "arguments": text} in the list.  A piece of one may lack its index, its id or its
 * name, repeat its name, or hold a whole call under the index of an earlier one.
 */
#ifndef HOLORUN_REMOTE_STREAMED_CALLS_H
#define HOLORUN_REMOTE_STREAMED_CALLS_H

#include <jansson.h>
#include <stdbool.h>

/* Adds the pieces in an array of "tool_calls" to *calls, which may be NULL.  whole: the array belongs to a
 * complete message, so that a call that was streamed before is not a second one. */
void streamed_calls_add(json_t **calls, json_t *pieces, bool whole);
/* The same for a single legacy {"name", "arguments"} ("function_call"), ignored when *calls has calls of the
 * newer kind. */
void streamed_calls_add_legacy(json_t **calls, json_t *function, bool whole);
/* Drops empty slots and the marks of streaming; NULL when no call is left. */
void streamed_calls_end(json_t **calls);

#endif
