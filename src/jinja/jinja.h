/* jinja.h - interprets chat templates written in Jinja, as transformers' apply_chat_template does.
 *
 * The language is Jinja 3.1 as transformers configures it: trim_blocks, lstrip_blocks, loop controls,
 * {% generation %}, raise_exception, strftime_now, and a tojson without HTML escapes.  Templates cannot
 * change their input, import other templates or reach anything outside their context.  A construct that is
 * not supported is refused with its line.
 *
 * Each byte of a string carries its origin.  Text that people, tools and models wrote keeps its origin
 * through concatenation, slices and filters, so that the caller can encode a marker such as <|im_end|> as a
 * special token only where the template itself wrote it.
 *
 * All values of a rendering live in an arena.  Limits: JINJA_MAX_SOURCE bytes of template, JINJA_MAX_MEMORY
 * bytes and JINJA_MAX_STEPS evaluated nodes for each rendering.
 */
#ifndef HOLORUN_JINJA_JINJA_H
#define HOLORUN_JINJA_JINJA_H

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { JINJA_MAX_SOURCE = 1 << 20, JINJA_MAX_MEMORY = 256 << 20, JINJA_MAX_STEPS = 20 << 20 };

enum jinja_origin {
    JINJA_TEMPLATE, /* the template wrote it, or one of its filters */
    JINJA_TEXT,     /* from a person, a tool or a screen */
    JINJA_REPLY,    /* from the model */
};

struct jinja_string { /* UTF-8, not NUL-terminated */
    const char *data;
    size_t len;
    const uint8_t *origin; /* [len]; NULL: JINJA_TEMPLATE throughout */
    bool markup;           /* from the filter safe */
};

struct jinja_list;
struct jinja_dict;

enum jinja_kind {
    JINJA_UNDEFINED,
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_INT,
    JINJA_FLOAT,
    JINJA_STRING,
    JINJA_LIST,
    JINJA_TUPLE,
    JINJA_DICT,
    JINJA_NAMESPACE,
    JINJA_LOOP,     /* the variable `loop` */
    JINJA_MACRO,    /* of the template */
    JINJA_FUNCTION, /* raise_exception, range, ... */
    JINJA_METHOD,   /* bound to its object */
};

struct jinja_value {
    enum jinja_kind kind;
    union {
        bool b;
        int64_t i;
        double f;
        const struct jinja_string *s;
        struct jinja_list *l;
        struct jinja_dict *d;
        const void *p;    /* of the kinds after JINJA_DICT */
        const char *name; /* of an undefined value; NULL: unknown */
    };
};

struct jinja_list {
    struct jinja_value *items;
    int n, cap;
    int form; /* 0: a list or tuple; else a sequence that Python does not make a list (jinja_impl.h) */
};

struct jinja_dict { /* in order of insertion */
    struct jinja_value *keys, *values;
    int n, cap;
};

/* ---- values: allocated in an arena, which ends the process if memory is exhausted ------------------- */

struct jinja_arena;
struct jinja_arena *jinja_arena_new(void);
void jinja_arena_free(struct jinja_arena *a);

/* Copies text[len]. */
struct jinja_value jinja_text(struct jinja_arena *a, const char *text, size_t len, enum jinja_origin origin);
struct jinja_value jinja_bool(bool b);
struct jinja_value jinja_list(struct jinja_arena *a);
struct jinja_value jinja_dict(struct jinja_arena *a);
void jinja_add(struct jinja_arena *a, struct jinja_value list, struct jinja_value item);
void jinja_set(struct jinja_arena *a, struct jinja_value dict, const char *key, struct jinja_value v);

/* Joins the texts of a list. */
struct jinja_value jinja_concat(struct jinja_arena *a, struct jinja_value texts);

/* Converts JSON; all strings in it get the origin.  json must not be deeper than jansson reads. */
struct jinja_value jinja_of_json(struct jinja_arena *a, const json_t *json, enum jinja_origin origin);

/* ---- templates -------------------------------------------------------------------------------------- */

struct jinja;

/* Parses a template.  NULL with ERR_MODEL: the message has the line. */
struct jinja *jinja_parse(const char *source, size_t len, struct err *e);
void jinja_free(struct jinja *t);

/* Renders with a dict of variables.  *out points into the arena.  Returns -1 with ERR_USAGE and the
 * template's own message if it calls raise_exception, and ERR_MODEL if it fails otherwise. */
int jinja_render(const struct jinja *t, struct jinja_arena *a, struct jinja_value variables,
                 struct jinja_string *out, struct err *e);

/* Spells a JSON value as tojson does: Python's json.dumps(value, ensure_ascii=False).  The caller frees
 * it. */
char *jinja_json_text(const json_t *v);

#endif
