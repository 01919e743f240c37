/* tools.h - the tool table of a dialect: its names for the registry's entries. */
#ifndef HOLORUN_ACTIONS_TOOLS_H
#define HOLORUN_ACTIONS_TOOLS_H

#include "actions/dialect.h"
#include "actions/registry.h"

#include <jansson.h>

struct tool_arg {
    enum param_id id;
    char *name;      /* the dialect's */
    json_t *aliases; /* array of strings or NULL: read, never offered */
    bool required;
    bool hidden; /* read, never offered */
    int min, max;
    char *values;     /* ENUM: the words offered */
    json_t *fallback; /* default, or NULL */
    char *help;
};

struct tool {
    char *name;
    json_t *aliases;
    enum action_kind kind;
    bool hidden;
    json_t *with; /* fixed parameters by canonical name: {"count": 2}, or NULL */
    struct tool_arg *args;
    int nargs;
    char *help;
};

struct tools {
    struct tool *list;
    int n;
};

struct tools *tools_parse(json_t *array, const char *dialect, struct err *e);
void tools_free(struct tools *t);

/* The first key of an object that is not in the NULL-terminated list, or NULL. */
const char *tools_unknown_key(json_t *object, const char *const *known);

/* Whether word[0..n) is one of "a|b|c", ignoring case; an empty one is not. */
bool tools_has_word(const char *values, const char *word, size_t n);
/* Whether word is one of the aliases, which may be NULL; exact: case counts. */
bool tools_alias(const json_t *aliases, const char *word, bool exact);

/* By name, then by alias, both ignoring case; *alias: found by alias. */
const struct tool *tools_find(const struct tools *t, const char *name, bool *alias);
const struct tool_arg *tools_arg(const struct tool *t, enum param_id id); /* NULL: it takes none */

/* Text made from a table (schema.c); the caller frees it. */
char *tools_schema(const struct dialect *d);
char *tools_list(const struct dialect *d);

/* The embedded copy of a file of prompts/ (dialect_builtin.c), or NULL. */
const char *builtin_file(const char *name, size_t *len);

#endif
