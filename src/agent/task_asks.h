/* task_asks.h - classifies tasks as questions, and texts as blank answers or bare claims. Pure functions. */
#pragma once

#include <stdbool.h>

/* Returns whether a task asks for an answer: it has a question mark outside quotes, or begins with a word
 * such as "which" or "read". */
bool task_asks(const char *task);

/* Return whether an answer is blank (empty, or a word such as "null"), and whether it is a bare claim of
 * success (a word such as "Done."). */
bool answer_is_blank(const char *answer);
bool answer_is_bare_claim(const char *answer);
