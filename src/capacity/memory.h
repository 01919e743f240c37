/* memory.h - how much memory there is, and how much of it this process has. */
#ifndef HOLORUN_CAPACITY_MEMORY_H
#define HOLORUN_CAPACITY_MEMORY_H

#include <stddef.h>

/* Bytes that could be used now without pushing other programs out, within the limit of the control group;
 * `total`, when not NULL, gets what the machine (or the group) has altogether. 0 when nobody says. */
size_t memory_available(size_t *total);

struct memory_use {
    size_t resident; /* all pages that are in memory */
    size_t own;      /* of those the ones that are nobody else's and no file's */
    size_t file;     /* and the pages of mapped files, which the system may take back */
};
struct memory_use memory_use(void);

/* Bytes that malloc has handed out and not got back: the difference of two readings is what something
 * takes.  0 where another malloc is in its place, as under a sanitizer. */
size_t memory_heap(void);

/* From now on a large block that is freed goes back to the system at once.  Without it the C library, once it has seen one
 * freed, keeps what up to 32 MiB each leave behind, in a heap of every thread. */
void memory_return_large(void);

#endif
