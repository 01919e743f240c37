/* tools.h - the tools of a request and the choice among them, in the spellings of three protocols, become
 * {"type": "function", "function": {name, description, parameters}} and a choice of Chat Completions.
 *
 * A tool that is not a function is ignored and named in the notes: tools are offers, and a model may leave
 * any of them unused.  It is refused where ignoring it would change the meaning: where the choice names it,
 * where a call is required and no function is left, and where it is a vendor's computer, without which its
 * client cannot act at all.  "strict", "cache_control" and the like are not part of the prompt.
 */
#ifndef HOLORUN_SERVE_TOOLS_H
#define HOLORUN_SERVE_TOOLS_H

#include "base/err.h"
#include "serve/notes.h"

#include <jansson.h>

/* Replaces root's "tools" and "tool_choice".  ERR_USAGE names the tool. */
int tools_settle(json_t *root, struct notes *n, struct err *e);

#endif
