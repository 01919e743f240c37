/* secret_store.c - the secrets of a suite. A source ("env:VAR", "file:PATH") is read once, even if tests use
 * it under several names. */
#include "qa/run/workers.h"

#include <stdlib.h>
#include <string.h>

struct source {
    const char *from; /* the source, after "NAME="; borrowed */
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

static const struct secrets *find(const struct secret_store *s, const char *spec)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->sources[i].from, source_of(spec)))
            return s->sources[i].only;
    return NULL;
}

static int read_all(struct secret_store *s, const char *const *specs, struct err *e)
{
    for (; specs && *specs; specs++) {
        if (find(s, *specs))
            continue;
        struct secrets *only;
        if (secrets_open(&only, (const char *const[]){*specs, NULL}, e))
            return -1;
        s->sources = xrealloc(s->sources, (unsigned long)s->n + 1, sizeof *s->sources);
        s->sources[s->n++] = (struct source){source_of(*specs), only};
    }
    return 0;
}

struct secret_store *secret_store_open(const struct suite *suite, const char *const *more, struct err *e)
{
    struct secret_store *s = xcalloc(1, sizeof *s);
    int rc = read_all(s, more, e);
    for (int i = 0; i < suite->n && rc == 0; i++)
        if (suite->tests[i].selected)
            rc = read_all(s, suite->tests[i].secrets, e);
    if (rc == 0)
        return s;
    secret_store_free(s);
    return NULL;
}

void secret_store_free(struct secret_store *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n; i++)
        secrets_free(s->sources[i].only);
    free(s->sources);
    free(s);
}

int secret_store_copy(const struct secret_store *s, const char *const *specs, struct secrets **out,
                      struct err *e)
{
    *out = specs && *specs ? secrets_new() : NULL;
    for (; specs && *specs; specs++) {
        const struct secrets *only = find(s, *specs);
        if (!only)
            bug("a secret that the secret store was not opened with");
        if (secrets_add_copy(*out, *specs, only, e)) {
            secrets_free(*out);
            *out = NULL;
            return -1;
        }
    }
    return 0;
}

char *secret_store_mask(const struct secret_store *s, const char *text)
{
    char *masked = xstrdup(text);
    for (int i = 0; s && i < s->n; i++) {
        char *next = secrets_mask(s->sources[i].only, masked);
        free(masked);
        masked = next;
    }
    return masked;
}
