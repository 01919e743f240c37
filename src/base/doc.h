/* doc.h - reads a YAML file as a tree with line numbers.
 *
 * For files written by users: one document of mappings, sequences and scalars. Anchors and aliases (which
 * can expand without limit), tags, a second document and duplicate keys are rejected, as is more than
 * DOC_MAX_BYTES, DOC_MAX_NODES, DOC_MAX_KEYS in one mapping, or DOC_MAX_DEPTH.
 *
 * Errors have the form "policy.yaml:12: key 'zone': expected ..., not 'x'" (doc_fault).
 *
 *     struct doc *y = doc_parse(text, len, "policy.yaml", e);
 *     for (const struct doc_node *n = doc_root(y)->child; n; n = n->next) ... n->key, n->text */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { DOC_MAX_BYTES = 256 << 10, DOC_MAX_NODES = 20000, DOC_MAX_KEYS = 2000, DOC_MAX_DEPTH = 12 };

enum doc_kind { DOC_SCALAR, DOC_LIST, DOC_MAP };

struct doc_node {
    enum doc_kind kind;
    int line;    /* starting at 1 */
    char *key;   /* key of a member of a mapping, without NUL; else NULL */
    char *text;  /* text of a scalar: UTF-8, without NUL; else NULL */
    bool quoted; /* in quotes: a string even if it looks like a number */
    struct doc_node *child, *next;
};

struct doc;

/* Parse a text or a file. name: file name for messages. Return NULL with ERR_USAGE. */
struct doc *doc_parse(const char *text, size_t len, const char *name, struct err *e);
struct doc *doc_read(const char *path, struct err *e);
/* Parses with other limits. */
struct doc_limits {
    size_t bytes;
    int nodes;
};
struct doc *doc_parse_within(const char *text, size_t len, const char *name, struct doc_limits most,
                             struct err *e);
void doc_free(struct doc *y); /* NULL is allowed */

const struct doc_node *doc_root(const struct doc *y); /* an empty file is an empty mapping */
const char *doc_name(const struct doc *y);
const char *doc_source(const struct doc *y, size_t *len); /* the bytes of the file */

/* Returns a member of a mapping; NULL if it is missing or n is not a mapping. */
const struct doc_node *doc_get(const struct doc_node *n, const char *key);

/* Sets ERR_USAGE with "NAME:LINE: key 'KEY': " before the message; returns -1. */
int doc_fault(const struct doc *y, const struct doc_node *n, struct err *e, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
