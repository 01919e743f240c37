/* goals.h - detects plans whose goals are unrelated to the task.
 *
 * Text on the screen may instruct the model to do something else (prompt injection). A plan then gets goals
 * that share no word with the task or earlier plans. Only titles that were in no earlier plan are compared,
 * all of them together. Words are compared by their first four letters, ignoring case; short and common words
 * are ignored. A first plan in another script than the task is not compared. */
#pragma once

#include <stdbool.h>

struct goals;

struct goals *goals_new(const char *task);
void goals_free(struct goals *g); /* NULL is allowed. */

/* Returns whether the plan's new goals share no word with the task. plan: lines of "1. title [status]". */
bool goals_has_new(const struct goals *g, const char *plan);
/* Adds the words of an accepted plan to the known ones. */
void goals_add_plan(struct goals *g, const char *plan);
