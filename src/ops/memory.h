/* memory.h - host allocator for tensors: zeroed blocks, huge pages, and a free list.
 *
 * Each conversation allocates tens of megabytes (state, checkpoint, keys, values) and frees as much.
 * Memory returned to the kernel comes back page by page and must be zeroed; in a virtual machine whose
 * host reclaims free pages this cost more than prefilling 40 tokens. Freed blocks are therefore kept, up
 * to `limit` bytes, and reused for requests of about the same size. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct memory {
    pthread_mutex_t lock;
    size_t limit, kept; /* limit and current size of the free list, in bytes */
    int n;
    struct memory_block {
        void *data;
        size_t bytes;
    } blocks[64]; /* in order of freeing, oldest first */
};

/* Initializes the allocator. limit: bytes of freed blocks to keep; MEMORY_DEFAULT: 1/32 of the machine's
 * memory, at most 256 MiB. */
#define MEMORY_DEFAULT SIZE_MAX
void memory_init(struct memory *m, size_t limit);
void memory_close(struct memory *m); /* blocks still in use are not freed */

/* Returns a zeroed block aligned to 64 bytes, to be freed with memory_free(); NULL if memory is exhausted
 * even after the free list was emptied. */
void *memory_alloc(struct memory *m, size_t bytes);
void memory_free(struct memory *m, void *data);

/* Requests huge pages for the aligned part of a block: a TLB miss at every row costs more than reading it.
 * The kernel may decline. */
void memory_huge_pages(void *data, size_t bytes);
