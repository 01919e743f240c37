/* goals.h - whether a plan has goals that the task does not speak of.
 *
 * What stands on a screen may tell the model to do something else.  A plan then gets goals that have no word in common
 * with the task, nor with the plans before: of a plan only the titles are looked at that were in none before, all of them
 * together.  Words are compared by their first letters, small and capital alike; short ones and those that stand in every
 * sentence do not count.  Where a first plan is written in other letters than the task there is nothing to compare.
 */
#ifndef HOLORUN_GATE_GOALS_H
#define HOLORUN_GATE_GOALS_H

#include <stdbool.h>

struct goals;

struct goals *goals_new(const char *task);
void goals_free(struct goals *g); /* NULL is fine */

/* plan: "1. title [status]", a line each. */
bool goals_strange(const struct goals *g, const char *plan);
/* It was let pass. */
void goals_take(struct goals *g, const char *plan);

#endif
