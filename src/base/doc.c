/* doc.c - reads a YAML file into a tree (doc.h).
 *
 * Events of libyaml are converted to nodes one at a time. The first event beyond the nesting limit ends
 * parsing, which also limits nesting inside libyaml. */
#include "base/doc.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct doc {
    char *name, *source;
    size_t len;
    struct doc_node *root;
};

struct reader {
    struct doc *y;
    yaml_parser_t parser;
    struct err *e;
    int nodes, most;
};

int doc_fault(const struct doc *y, const struct doc_node *n, struct err *e, const char *fmt, ...)
{
    char text[ERR_TEXT];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n && n->key)
        return err_set(e, ERR_USAGE, "%s:%d: key '%.60s': %s", y->name, n->line, n->key, text);
    return err_set(e, ERR_USAGE, "%s:%d: %s", y->name, n ? n->line : 1, text);
}

static int fault_at(struct reader *r, size_t line, const char *text)
{
    return err_set(r->e, ERR_USAGE, "%s:%zu: %s", r->y->name, line + 1, text);
}

static void free_nodes(struct doc_node *n)
{
    while (n) {
        struct doc_node *next = n->next;
        free_nodes(n->child);
        free(n->key);
        free(n->text);
        free(n);
        n = next;
    }
}

void doc_free(struct doc *y)
{
    if (!y)
        return;
    free_nodes(y->root);
    free(y->name);
    free(y->source);
    free(y);
}

/* Reads the next event, which the caller deletes. Returns -1 with libyaml's message. */
static int next_event(struct reader *r, yaml_event_t *event)
{
    if (yaml_parser_parse(&r->parser, event))
        return 0;
    char text[256];
    snprintf(text, sizeof text, "not YAML: %s", r->parser.problem ? r->parser.problem : "broken");
    return fault_at(r, r->parser.problem_mark.line, text);
}

/* Returns a copy of a scalar's text, or NULL with an error if it contains a NUL. */
static char *take_scalar(struct reader *r, const yaml_event_t *event)
{
    const char *value = (const char *)event->data.scalar.value;
    if (strlen(value) != event->data.scalar.length) {
        fault_at(r, event->start_mark.line, "a string contains a NUL");
        return NULL;
    }
    return xstrdup(value);
}

static const char *refused(const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return "aliases (*name) are not allowed here; write the value out";
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        break;
    default:
        break;
    }
    return anchor ? "anchors (&name) are not allowed here" : tag ? "tags (!name) are not allowed here" : NULL;
}

static struct doc_node *read_node(struct reader *r, const yaml_event_t *event, int depth);

/* Reads the key of a mapping's next member. Returns 1 at the end of the mapping, -1 on failure. */
static int read_key(struct reader *r, struct doc_node *map, char **key, int *line)
{
    yaml_event_t event;
    int rc = -1;
    *key = NULL;
    if (next_event(r, &event))
        return -1;
    *line = (int)event.start_mark.line + 1;
    if (event.type == YAML_MAPPING_END_EVENT) {
        rc = 1;
    } else if (refused(&event)) {
        fault_at(r, event.start_mark.line, refused(&event));
    } else if (event.type != YAML_SCALAR_EVENT) {
        fault_at(r, event.start_mark.line, "a key must be a scalar");
    } else if ((*key = take_scalar(r, &event))) {
        rc = 0;
        if (doc_get(map, *key)) {
            struct doc_node twice = {.key = *key, .line = *line};
            rc = doc_fault(r->y, &twice, r->e, "appears twice");
            free(*key);
            *key = NULL;
        }
    }
    yaml_event_delete(&event);
    return rc;
}

static int read_map(struct reader *r, struct doc_node *map, int depth)
{
    struct doc_node **end = &map->child;
    char many[64];
    for (int keys = 0;; keys++) {
        yaml_event_t event;
        char *key;
        int line, rc = read_key(r, map, &key, &line);
        if (rc)
            return rc < 0 ? -1 : 0;
        struct doc_node *n = NULL;
        if (keys == DOC_MAX_KEYS) { /* each key is compared with all before it */
            snprintf(many, sizeof many, "more than %d keys in one mapping", DOC_MAX_KEYS);
            fault_at(r, (size_t)line - 1, many);
        } else if (next_event(r, &event) == 0) {
            n = read_node(r, &event, depth + 1);
            yaml_event_delete(&event);
        }
        if (!n) {
            free(key);
            return -1;
        }
        n->key = key;
        n->line = line;
        *end = n;
        end = &n->next;
    }
}

static int read_list(struct reader *r, struct doc_node *list, int depth)
{
    struct doc_node **end = &list->child;
    for (;;) {
        yaml_event_t event;
        if (next_event(r, &event))
            return -1;
        bool last = event.type == YAML_SEQUENCE_END_EVENT;
        struct doc_node *n = last ? NULL : read_node(r, &event, depth + 1);
        yaml_event_delete(&event);
        if (last || !n)
            return last ? 0 : -1;
        *end = n;
        end = &n->next;
    }
}

/* Reads the node that starts with this event. Returns NULL on failure. */
static struct doc_node *read_node(struct reader *r, const yaml_event_t *event, int depth)
{
    char text[96];
    const char *bad = refused(event);
    if (depth > DOC_MAX_DEPTH) {
        snprintf(text, sizeof text, "nested more than %d deep", DOC_MAX_DEPTH);
        bad = text;
    } else if (++r->nodes > r->most) {
        snprintf(text, sizeof text, "more than %d values", r->most);
        bad = text;
    }
    if (bad) {
        fault_at(r, event->start_mark.line, bad);
        return NULL;
    }
    struct doc_node *n = xcalloc(1, sizeof *n);
    n->line = (int)event->start_mark.line + 1;
    int rc = -1;
    if (event->type == YAML_SCALAR_EVENT) {
        n->text = take_scalar(r, event);
        n->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        rc = n->text ? 0 : -1;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        n->kind = DOC_LIST;
        rc = read_list(r, n, depth);
    } else {
        n->kind = DOC_MAP;
        rc = read_map(r, n, depth);
    }
    if (rc == 0)
        return n;
    free_nodes(n);
    return NULL;
}

/* Reads the stream with its single document. */
static int read_document(struct reader *r)
{
    yaml_event_t event;
    for (bool open = true; open;) {
        if (next_event(r, &event))
            return -1;
        int rc = 0;
        switch (event.type) {
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
            break;
        case YAML_DOCUMENT_START_EVENT:
            rc = r->y->root ? fault_at(r, event.start_mark.line, "a second document in the same file") : 0;
            break;
        case YAML_STREAM_END_EVENT:
            open = false;
            break;
        default:
            r->y->root = read_node(r, &event, 0);
            rc = r->y->root ? 0 : -1;
        }
        yaml_event_delete(&event);
        if (rc)
            return -1;
    }
    if (!r->y->root) { /* empty, or only comments */
        r->y->root = xcalloc(1, sizeof *r->y->root);
        r->y->root->kind = DOC_MAP;
        r->y->root->line = 1;
    }
    return 0;
}

struct doc *doc_parse_within(const char *text, size_t len, const char *name, struct doc_limits most,
                             struct err *e)
{
    struct err own = ERR_INIT;
    struct reader r = {.y = xcalloc(1, sizeof *r.y), .e = e ? e : &own, .most = most.nodes};
    r.y->name = xstrdup(name);
    r.y->source = xmalloc(len + 1, 1);
    memcpy(r.y->source, text, len);
    r.y->source[len] = 0;
    r.y->len = len;
    int rc = -1;
    size_t bom = utf8_bom(text, len);
    if (len > most.bytes) {
        err_set(e, ERR_USAGE, "%s: %zu bytes; the limit is %zu", name, len, most.bytes);
    } else if (utf8_valid_prefix(text, len) != len) {
        size_t line = 0, bad = utf8_valid_prefix(text, len);
        for (size_t i = 0; i < bad; i++)
            line += text[i] == '\n';
        bool utf16 = len > 1 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2));
        fault_at(&r, line, utf16 ? "not valid UTF-8: it is UTF-16" : "not valid UTF-8");
    } else if (!yaml_parser_initialize(&r.parser)) {
        die(ERR_ENV, "out of memory");
    } else {
        yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&r.parser, (const unsigned char *)r.y->source + bom, len - bom);
        rc = read_document(&r);
        yaml_parser_delete(&r.parser);
    }
    if (rc == 0)
        return r.y;
    doc_free(r.y);
    return NULL;
}

struct doc *doc_parse(const char *text, size_t len, const char *name, struct err *e)
{
    return doc_parse_within(text, len, name, (struct doc_limits){DOC_MAX_BYTES, DOC_MAX_NODES}, e);
}

struct doc *doc_read(const char *path, struct err *e)
{
    autofree char *text = NULL;
    size_t len;
    if (file_read(path, DOC_MAX_BYTES, &text, &len, e)) {
        if (e)
            e->kind = ERR_USAGE;
        return NULL;
    }
    return doc_parse(text, len, path, e);
}

const struct doc_node *doc_root(const struct doc *y)
{
    return y->root;
}

const char *doc_name(const struct doc *y)
{
    return y->name;
}

const char *doc_source(const struct doc *y, size_t *len)
{
    *len = y->len;
    return y->source;
}

const struct doc_node *doc_get(const struct doc_node *n, const char *key)
{
    for (n = n && n->kind == DOC_MAP ? n->child : NULL; n; n = n->next)
        if (!strcmp(n->key, key))
            return n;
    return NULL;
}
