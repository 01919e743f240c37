/* doc.h - a YAML file as a tree with line numbers.
 *
 * For files that people write: one document of mappings, sequences and scalars.  Refused are anchors and
 * aliases (which can expand without bound), tags, a second document, duplicate keys, and more than
 * DOC_MAX_BYTES, DOC_MAX_NODES, DOC_MAX_KEYS in one mapping, or DOC_MAX_DEPTH.
 *
 * Errors read "policy.yaml:12: key 'zone': expected ..., not 'x'", as doc_fault() writes them.
 *
 *     struct doc *y = doc_parse(text, len, "policy.yaml", e);
 *     for (const struct doc_node *n = doc_root(y)->child; n; n = n->next) ... n->key, n->text
 */
#ifndef HOLORUN_BASE_DOC_H
#define HOLORUN_BASE_DOC_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { DOC_MAX_BYTES = 256 << 10, DOC_MAX_NODES = 20000, DOC_MAX_KEYS = 2000, DOC_MAX_DEPTH = 12 };

enum doc_kind { DOC_SCALAR, DOC_LIST, DOC_MAP };

struct doc_node {
    enum doc_kind kind;
    int line;    /* from 1 */
    char *key;   /* member of a mapping; NULL otherwise; no NUL inside */
    char *text;  /* of a scalar: UTF-8, no NUL inside; NULL otherwise */
    bool quoted; /* in quotes: a text, even if it looks like a number */
    struct doc_node *child, *next;
};

struct doc;

/* name: the file's, for messages.  NULL with ERR_USAGE. */
struct doc *doc_parse(const char *text, size_t len, const char *name, struct err *e);
struct doc *doc_read(const char *path, struct err *e);
/* The same with other limits. */
struct doc_limits {
    size_t bytes;
    int nodes;
};
struct doc *doc_parse_within(const char *text, size_t len, const char *name, struct doc_limits most,
                             struct err *e);
void doc_free(struct doc *y); /* NULL is fine */

const struct doc_node *doc_root(const struct doc *y); /* an empty file is an empty mapping */
const char *doc_name(const struct doc *y);
const char *doc_source(const struct doc *y, size_t *len); /* the file's bytes */

/* Member of a mapping; NULL when there is none or n is no mapping. */
const struct doc_node *doc_get(const struct doc_node *n, const char *key);

/* "NAME:LINE: key 'KEY': " and the message; ERR_USAGE, -1. */
int doc_fault(const struct doc *y, const struct doc_node *n, struct err *e, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

#endif
