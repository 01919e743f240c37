/* arena.c - memory for all texts of a suite, freed together; an obstack of the C library. */
#include "qa/suite/private.h"

#include <obstack.h>
#include <stdlib.h>

#define obstack_chunk_alloc new_chunk
#define obstack_chunk_free  free

/* obstack.h computes alignment as an offset from a null pointer, which UBSan reports. */
#define UNCHECKED __attribute__((no_sanitize("undefined")))

struct arena {
    struct obstack texts;
};

static void *new_chunk(long size)
{
    return xmalloc((unsigned long)size, 1);
}

struct arena *arena_new(void)
{
    struct arena *t = xcalloc(1, sizeof *t);
    obstack_begin(&t->texts, 64 << 10);
    return t;
}

void arena_free(struct arena *t)
{
    if (t)
        obstack_free(&t->texts, NULL);
    free(t);
}

UNCHECKED const char *arena_strndup(struct arena *t, const char *s, size_t len)
{
    return obstack_copy0(&t->texts, s, (int)len);
}

UNCHECKED const char *const *arena_list(struct arena *t, const char *const *list, int n)
{
    obstack_grow(&t->texts, list, n * (int)sizeof *list);
    obstack_ptr_grow(&t->texts, NULL);
    return obstack_finish(&t->texts);
}

size_t arena_size(struct arena *t)
{
    return (size_t)obstack_memory_used(&t->texts);
}

const char *arena_strdup(struct arena *t, const char *s)
{
    return arena_strndup(t, s, strlen(s));
}

const char *arena_take(struct arena *t, char *s)
{
    const char *kept = arena_strdup(t, s);
    free(s);
    return kept;
}

const char *arena_path(struct arena *t, const char *dir, const char *path)
{
    return *path == '/' ? arena_strdup(t, path) : arena_take(t, xasprintf("%s/%s", dir, path));
}
