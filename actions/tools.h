/* tools.h - the tool table of a dialect: its names for the registry's entries. */
#pragma once

#include "actions/dialect.h"
#include "actions/registry.h"

#include <jansson.h>

struct tool_arg {
    enum param_id id;
    char *name;      /* the dialect's name */
    json_t *aliases; /* array of strings or NULL: accepted, never offered */
    bool required;
    bool hidden; /* accepted, never offered */
    int min, max;
    char *values;     /* ENUM: the offered words */
    json_t *fallback; /* default, or NULL */
    char *help;
};

struct tool {
    char *name;
    json_t *aliases;
    enum action_kind kind;
    bool hidden;
    json_t *with; /* fixed parameters by canonical name, such as {"count": 2}; or NULL */
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

/* Returns the first key of an object that is not in the NULL-terminated list, or NULL. */
const char *tools_unknown_key(json_t *object, const char *const *known);

/* Returns whether word[0..n) is one of "a|b|c", ignoring case; false for an empty word. */
bool tools_has_word(const char *values, const char *word, size_t n);
/* Returns whether word is one of the aliases, which may be NULL; exact: case matters. */
bool tools_alias(const json_t *aliases, const char *word, bool exact);

/* Finds a tool by name, then by alias, both ignoring case; *alias: found by alias. */
const struct tool *tools_find(const struct tools *t, const char *name, bool *alias);
/* NULL: the tool does not take it */
const struct tool_arg *tools_arg(const struct tool *t, enum param_id id);

/* Return text generated from a table (schema.c); the caller frees it. */
char *tools_schema(const struct dialect *d);
char *tools_list(const struct dialect *d);

/* Returns the embedded copy of a file of prompts/ (dialect_builtin.c), or NULL; *len: its length. */
const char *builtin_file(const char *name, size_t *len);
