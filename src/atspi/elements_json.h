/* elements_json.h - a snapshot as JSON, for programs. */
#pragma once

#include "atspi/elements.h"

#include <jansson.h>

/* Returns the first `max` elements as a list of {"ref", "role", "name", "window", "depth", "states", "label",
 * "content", "children", "box", "place"}, the last five only where they apply.  The caller owns it. */
json_t *elements_json(const struct snapshot *s, int max);
