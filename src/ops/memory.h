/* memory.h - the CPU's memory for tensors: cleared, in huge pages, and used again.
 *
 * A new conversation needs a state, a checkpoint and some keys and values, tens of megabytes, and an old one
 * gives up as much.  Through the system that memory goes back and comes anew, page by page, cleared; in a
 * virtual machine whose host takes free pages away this cost more than reading 40 tokens of prompt.  So
 * blocks that were given back are kept, up to a limit, and the next of their size gets one of them.
 */
#ifndef HOLORUN_OPS_MEMORY_H
#define HOLORUN_OPS_MEMORY_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct memory {
    pthread_mutex_t lock;
    size_t limit, kept; /* bytes */
    int n;
    struct memory_block {
        void *data;
        size_t bytes;
    } blocks[64]; /* the longest unused first */
};

/* limit: bytes of given back blocks to keep; MEMORY_DEFAULT: a 32nd of the machine's memory, at most 256
 * MiB. */
#define MEMORY_DEFAULT SIZE_MAX
void memory_init(struct memory *m, size_t limit);
void memory_close(struct memory *m); /* blocks in use are not the memory's: their owners free them */

/* A cleared block aligned to 64 bytes, for memory_free; NULL when there is no memory, not even of kept
 * blocks. */
void *memory_alloc(struct memory *m, size_t bytes);
void memory_free(struct memory *m, void *data);

/* Asks for huge pages where whole ones fit: a TLB miss at every row costs more than reading it.  The kernel
 * may decline. */
void memory_huge_pages(void *data, size_t bytes);

#endif
