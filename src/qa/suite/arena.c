/* arena.c - see private.h: a bump allocator. */
#include "qa/suite/private.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 << 10, ALIGN = 16 };

struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(ALIGN) char data[];
};

struct arena {
    struct chunk *chunks;
    size_t size;
};

struct arena *arena_new(void)
{
    return xcalloc(1, sizeof(struct arena));
}

void arena_free(struct arena *t)
{
    while (t && t->chunks) {
        struct chunk *c = t->chunks;
        t->chunks = c->next;
        free(c);
    }
    free(t);
}

static void *arena_alloc(struct arena *t, size_t size)
{
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    struct chunk *c = t->chunks;
    if (!c || c->size - c->used < size) {
        size_t capacity = size > CHUNK ? size : CHUNK;
        c = xcalloc(1, sizeof *c + capacity);
        c->size = capacity;
        c->next = t->chunks;
        t->chunks = c;
        t->size += capacity;
    }
    void *p = c->data + c->used;
    c->used += size;
    return p;
}

const char *arena_strndup(struct arena *t, const char *s, size_t len)
{
    char *p = arena_alloc(t, len + 1);
    memcpy(p, s, len);
    return p;
}

const char *const *arena_list(struct arena *t, const char *const *list, int n)
{
    const char **p = arena_alloc(t, ((size_t)n + 1) * sizeof *p);
    for (int i = 0; i < n; i++)
        p[i] = list[i];
    return p;
}

size_t arena_size(const struct arena *t)
{
    return t->size;
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
