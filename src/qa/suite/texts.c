/* texts.c - see private.h: one piece of memory after the other, all freed together. */
#include "qa/suite/private.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 << 10, ALIGN = 16 };

struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(ALIGN) char data[];
};

struct suite_texts {
    struct chunk *chunks;
    size_t size;
};

struct suite_texts *texts_new(void)
{
    return xcalloc(1, sizeof(struct suite_texts));
}

void texts_free(struct suite_texts *t)
{
    while (t && t->chunks) {
        struct chunk *c = t->chunks;
        t->chunks = c->next;
        free(c);
    }
    free(t);
}

void *texts_alloc(struct suite_texts *t, size_t size)
{
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    struct chunk *c = t->chunks;
    if (!c || c->size - c->used < size) {
        size_t room = size > CHUNK ? size : CHUNK;
        c = xcalloc(1, sizeof *c + room);
        c->size = room;
        c->next = t->chunks;
        t->chunks = c;
        t->size += room;
    }
    void *p = c->data + c->used;
    c->used += size;
    return p;
}

const char *texts_keep(struct suite_texts *t, const char *s, size_t len)
{
    char *p = texts_alloc(t, len + 1);
    memcpy(p, s, len);
    return p;
}

const char *const *texts_list(struct suite_texts *t, const char *const *list, int n)
{
    const char **p = texts_alloc(t, ((size_t)n + 1) * sizeof *p);
    for (int i = 0; i < n; i++)
        p[i] = list[i];
    return p;
}

size_t texts_size(const struct suite_texts *t)
{
    return t->size;
}

const char *texts_path(struct suite_texts *t, const char *dir, const char *path)
{
    if (*path == '/')
        return texts_keep(t, path, strlen(path));
    char *joined = xasprintf("%s/%s", dir, path);
    const char *kept = texts_keep(t, joined, strlen(joined));
    free(joined);
    return kept;
}
