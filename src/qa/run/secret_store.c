/* secret_store.c - see secret_store.h.  A source ("env:VAR", "file:PATH") is read once, whatever it is called where. */
#include "qa/run/secret_store.h"

#include <stdlib.h>
#include <string.h>

struct source {
    const char *from; /* behind the name in a spec; borrowed */
    struct secrets *only;
};

struct secret_store {
    struct source *sources;
    int n;
};

static const char *source_of(const char *spec)
{
    const char *equals = strchr(spec, '=');
    return equals ? equals + 1 : "";
}

static const struct secrets *find(const struct secret_store *v, const char *spec)
{
    for (int i = 0; i < v->n; i++)
        if (!strcmp(v->sources[i].from, source_of(spec)))
            return v->sources[i].only;
    return NULL;
}

static int read_all(struct secret_store *v, const char *const *specs, struct err *e)
{
    for (; specs && *specs; specs++) {
        if (find(v, *specs))
            continue;
        struct secrets *only;
        if (secrets_open(&only, (const char *const[]){*specs, NULL}, e))
            return -1;
        v->sources = xrealloc(v->sources, (unsigned long)v->n + 1, sizeof *v->sources);
        v->sources[v->n++] = (struct source){source_of(*specs), only};
    }
    return 0;
}

struct secret_store *secret_store_open(const struct suite *s, const char *const *more, struct err *e)
{
    struct secret_store *v = xcalloc(1, sizeof *v);
    int rc = read_all(v, more, e);
    for (int i = 0; i < s->n && rc == 0; i++)
        if (s->tests[i].chosen)
            rc = read_all(v, s->tests[i].secrets, e);
    if (rc == 0)
        return v;
    secret_store_free(v);
    return NULL;
}

void secret_store_free(struct secret_store *v)
{
    if (!v)
        return;
    for (int i = 0; i < v->n; i++)
        secrets_free(v->sources[i].only);
    free(v->sources);
    free(v);
}

int secret_store_take(const struct secret_store *v, const char *const *specs, struct secrets **out,
                      struct err *e)
{
    *out = specs && *specs ? secrets_new() : NULL;
    for (; specs && *specs; specs++) {
        const struct secrets *only = find(v, *specs);
        if (!only)
            bug("a secret that the vault was not opened with");
        if (secrets_add_copy(*out, *specs, only, e)) {
            secrets_free(*out);
            *out = NULL;
            return -1;
        }
    }
    return 0;
}

char *secret_store_mask(const struct secret_store *v, const char *text)
{
    char *masked = xstrdup(text);
    for (int i = 0; v && i < v->n; i++) {
        char *next = secrets_mask(v->sources[i].only, masked);
        free(masked);
        masked = next;
    }
    return masked;
}
