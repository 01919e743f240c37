/* vars.c - variables of a suite and their expansion.
 *
 * Only {lower_case_names} are variables, so that other braces (awk, JSON, patterns, {{SECRET}}) need no
 * escaping. Values are not expanded again. */
#include "qa/suite/private.h"

#include <stdio.h>
#include <string.h>

static const char letters[] = "abcdefghijklmnopqrstuvwxyz", more[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

/* Returns the length of the name at p; 0: none. */
static size_t name_at(const char *p)
{
    size_t n = *p && strchr(letters, *p) ? strspn(p, more) : 0;
    return n <= SUITE_MAX_NAME ? n : 0;
}

bool vars_is_name(const char *name)
{
    size_t n = name_at(name);
    return n && !name[n];
}

const char *vars_get(const struct suite_vars *v, const char *name, size_t len)
{
    for (int i = 0; i < v->n; i++)
        if (strlen(v->names[i]) == len && !memcmp(v->names[i], name, len))
            return v->values[i];
    return NULL;
}

int vars_set(struct suite_vars *v, const char *name, const char *value)
{
    for (int i = 0; i < v->n; i++) {
        if (!strcmp(v->names[i], name)) {
            v->values[i] = value;
            return 0;
        }
    }
    if (v->n == SUITE_MAX_VARS)
        return -1;
    v->names[v->n] = name;
    v->values[v->n++] = value;
    return 0;
}

void vars_expand(const struct suite_vars *v, const char *text, unsigned how, struct buf *out,
                 struct expansion *x)
{
    int line = 1;
    *x = (struct expansion){"", 0};
    for (const char *p = text; *p;) {
        bool twice = p[0] == '{' && p[1] == '{';
        const char *name = p + 1 + twice;
        size_t n = *p == '{' ? name_at(name) : 0, all = n + 2 + 2 * (size_t)twice;
        if (!n || name[n] != '}' || (twice && name[n + 1] != '}')) {
            line += *p == '\n';
            buf_putc(out, *p++);
            continue;
        }
        const char *value = vars_get(v, name, n);
        if (twice && (value || how & EXPAND_STRICT)) {
            buf_put(out, p + 1, n + 2);
        } else if (value && !twice && !(how & EXPAND_SHELL && p > text && p[-1] == '$')) {
            buf_puts(out, value);
        } else {
            buf_put(out, p, all);
            if (!value && !twice && !x->line) {
                x->line = line;
                snprintf(x->unknown, sizeof x->unknown, "%.*s", (int)n, name);
            }
        }
        p += all;
    }
}
