/* memory.c - host allocator for tensors: zeroed blocks, huge pages, free list (memory.h). */
#include "ops/memory.h"

#include "base/lock.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 64, SMALLEST = 128 << 10, MOST = 256 << 20, SHARE = 32, SPARE = 8 };

void memory_huge_pages(void *data, size_t bytes)
{
    enum { LARGE = 2 << 20 };
    uintptr_t begin = ((uintptr_t)data + LARGE - 1) / LARGE * LARGE,
              end = ((uintptr_t)data + bytes) / LARGE * LARGE;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

/* Returns the default limit of cached blocks; 0 under AddressSanitizer, so that a use after free is
 * detected. */
static size_t default_limit(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 0;
#else
    size_t share = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / SHARE;
    return share < MOST ? share : MOST;
#endif
}

void memory_init(struct memory *m, size_t limit)
{
    *m = (struct memory){.limit = limit == MEMORY_DEFAULT ? default_limit() : limit};
    pthread_mutex_init(&m->lock, NULL);
}

/* ---- cached blocks (called with the lock held) --------------------------------------------------------- */

static void *take(struct memory *m, int k)
{
    void *data = m->blocks[k].data;
    m->kept -= m->blocks[k].bytes;
    m->n--;
    memmove(m->blocks + k, m->blocks + k + 1, (size_t)(m->n - k) * sizeof *m->blocks);
    return data;
}

/* Takes the most recently freed block that is large enough and wastes at most an eighth; NULL: none. */
static void *take_for(struct memory *m, size_t bytes)
{
    for (int k = m->n - 1; k >= 0; k--)
        if (m->blocks[k].bytes >= bytes && m->blocks[k].bytes <= bytes + bytes / SPARE)
            return take(m, k);
    return NULL;
}

static void drop_until(struct memory *m, size_t most_bytes, int most_blocks)
{
    while (m->n > 0 && (m->kept > most_bytes || m->n > most_blocks))
        free(take(m, 0));
}

/* ---- interface ----------------------------------------------------------------------------------------- */

void memory_close(struct memory *m)
{
    drop_until(m, 0, 0);
    pthread_mutex_destroy(&m->lock);
}

/* Allocates a new block; if the system has no memory, frees the cached blocks first. */
static void *fresh(struct memory *m, size_t bytes)
{
    void *data = NULL;
    if (posix_memalign(&data, ALIGN, bytes) == 0)
        return data;
    pthread_mutex_lock(&m->lock);
    drop_until(m, 0, 0);
    pthread_mutex_unlock(&m->lock);
    return posix_memalign(&data, ALIGN, bytes) == 0 ? data : NULL;
}

void *memory_alloc(struct memory *m, size_t bytes)
{
    void *data = NULL;
    if (bytes >= SMALLEST) {
        pthread_mutex_lock(&m->lock);
        data = take_for(m, bytes);
        pthread_mutex_unlock(&m->lock);
    }
    if (!data && (data = fresh(m, bytes ? bytes : ALIGN)))
        memory_huge_pages(data, bytes);
    if (data)
        memset(data, 0, bytes);
    return data;
}

void memory_free(struct memory *m, void *data)
{
    size_t bytes = data ? malloc_usable_size(data) : 0;
    if (bytes < SMALLEST || bytes > m->limit) {
        free(data);
        return;
    }
    LOCKED(&m->lock);
    drop_until(m, m->limit - bytes, (int)(sizeof m->blocks / sizeof *m->blocks) - 1);
    m->blocks[m->n++] = (struct memory_block){data, bytes};
    m->kept += bytes;
}
