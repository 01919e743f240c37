/* goals.h - detects plans whose goals have nothing to do with the task.
 *
 * Text on the screen may tell the model to do something else (prompt injection).  A plan then gets goals
 * that share no word with the task or earlier plans.  Only titles that were in no earlier plan are
 * compared, all of them together. Words are compared by their first letters, without regard to case; short
 * and common words do not count.  A first plan in another script than the task is not compared.
 */
#ifndef HOLORUN_GATE_GOALS_H
#define HOLORUN_GATE_GOALS_H

#include <stdbool.h>

struct goals;

struct goals *goals_new(const char *task);
void goals_free(struct goals *g); /* NULL is fine */

/* Whether the plan's new goals have no word in common with the task.  plan: lines of "1. title [status]". */
bool goals_has_new(const struct goals *g, const char *plan);
/* Adds the words of an accepted plan to the known ones. */
void goals_add_plan(struct goals *g, const char *plan);

#endif
