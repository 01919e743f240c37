/* memory.h - memory of the machine and of this process. */
#pragma once

#include <stddef.h>

/* Returns the bytes that can be used without swapping out other programs and within what the control groups
 * leave. 0 if unknown. */
size_t memory_available(void);

struct memory_use {
    size_t resident; /* all pages in RAM */
    size_t own;      /* anonymous pages among them */
    size_t file;     /* pages of mapped files among them, which the system may reclaim or, for tmpfs, swap */
};
struct memory_use memory_use(void);

/* Returns the bytes in malloc blocks; the difference of two readings is the memory of an object. 0 with
 * another malloc, such as that of a sanitizer. */
size_t memory_heap(void);

/* Returns freed blocks over 256 KiB to the system at once, from now on. By default the C library raises
 * that threshold up to 32 MiB with each such block freed, and keeps such blocks in a heap per thread. */
void memory_return_large(void);
/* Limits malloc to two heaps shared by all threads. In a server that starts thousands of threads, a heap
 * per thread would keep the peak memory of each. */
void memory_share_heaps(void);
/* Returns pages of freed blocks to the system, including those between blocks in use. */
void memory_trim(void);
