/* budget.h - memory budget shared by all requests: each reserves its maximum need and releases it later. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct budget;

struct budget *budget_new(size_t most); /* bytes */
void budget_free(struct budget *b);

/* Reserves bytes. Returns false if they do not fit. A reservation above the whole budget is granted if
 * nothing else is reserved. */
bool budget_try(struct budget *b, size_t bytes);
/* Waits until the bytes can be reserved. Returns false if *cancel is set, which is checked every 20 ms. */
bool budget_wait(struct budget *b, size_t bytes, const volatile int *cancel);
void budget_release(struct budget *b, size_t bytes);
size_t budget_used(struct budget *b);
