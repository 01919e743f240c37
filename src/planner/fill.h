/* fill.h - the values that a task names for the lines of a form, by rules. */
#pragma once

#include "planner/clauses.h"
#include "planner/form.h"

/* Sets the index of the value of each line.  *doubt: why a user must confirm the values, else not set.
 * Returns false if none differs, or the window has menus. */
bool form_fill(const struct form *form, struct span s, const struct clauses *clauses, int *value,
               const char **doubt);

/* Returns whether a button of this name leaves a form without its values: Cancel, Reset, Help. */
bool fill_leaves(const char *name);
/* Returns whether word i is what its clause leaves: the order of "cancel the order". */
bool fill_is_left(struct span s, struct span clause, int i);
