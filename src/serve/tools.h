/* tools.h - converts the tools of a request and the choice among them, in the formats of three protocols,
 * into {"type": "function", "function": {name, description, parameters}} and a choice of Chat Completions.
 *
 * A tool that is not a function is ignored and listed in the notes, because a model may leave any tool
 * unused. It is rejected if ignoring it would change the meaning: if the choice names it, if a call is
 * required and no function is left, and if it is a vendor's computer tool, without which its client cannot
 * act. "strict", "cache_control" and similar members are not part of the prompt. */
#pragma once

#include "base/err.h"
#include "serve/notes.h"

#include <jansson.h>

/* Replaces root's "tools" and "tool_choice". Returns -1 with ERR_USAGE, which names the tool. */
int tools_settle(json_t *root, struct notes *n, struct err *e);
