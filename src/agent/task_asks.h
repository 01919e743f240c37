/* task_asks.h - whether a task is a question, and whether a text answers it.  Pure functions. */
#ifndef HOLORUN_AGENT_TASK_ASKS_H
#define HOLORUN_AGENT_TASK_ASKS_H

#include <stdbool.h>

/* Returns whether a task asks for an answer: it has a question mark outside quotes, or begins with a word
 * such as "which" or "read". */
bool task_asks(const char *task);

/* Returns whether an answer is empty, or a word such as "null"; whether it is a word such as "Done.". */
bool answer_is_blank(const char *answer);
bool answer_is_bare_claim(const char *answer);

#endif
