/* private.h - shared by the files of this room. */
#pragma once

#include "plain/plain.h"
#include "plain/words.h"

/* Parses one step.  Returns -1 when no rule covers all its words, with the reason. */
int plain_parse_step(struct span s, struct plain_step *out, struct err *why);
/* Parses "ctrl+s" or "the Enter key twice".  Returns 1 with the step, 0 for anything else, -1 with the
 * reason. */
int plain_press_keys(struct span s, struct plain_step *out, struct err *why);
