/* budget.h - memory that all requests share: each reserves its largest need, and gives it back. */
#ifndef HOLORUN_SERVE_BUDGET_H
#define HOLORUN_SERVE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

struct budget;

struct budget *budget_new(size_t most); /* bytes */
void budget_free(struct budget *b);

/* Both reserve bytes.  A reservation above the whole budget is granted when nothing else is reserved. */
bool budget_try(struct budget *b, size_t bytes);
/* Waits until there is room.  Returns false when *cancel is set, which is looked at every 20 ms. */
bool budget_wait(struct budget *b, size_t bytes, const volatile int *cancel);
void budget_give(struct budget *b, size_t bytes);
size_t budget_used(struct budget *b);

#endif
