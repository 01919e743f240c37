/* tools.h - the tool table of a dialect: its names laid over the registry. Private to actions/. */
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
    bool cmd_is_ctrl; /* "cmd" is the control key, as the holo3 family has it */
    bool run_all;     /* several calls in one turn are all run, not only the first */
};

struct tools *tools_parse(json_t *array, const char *dialect, struct err *e);
void tools_free(struct tools *t);

/* By name, then by alias, both without regard to case; *alias tells which. */
const struct tool *tools_find(const struct tools *t, const char *name, bool *alias);
static inline const struct tools *dialect_tools(const struct dialect *d)
{
    return d->tools;
}

/* Text made from a table (schema.c); the caller frees it. */
char *tools_schema(const struct dialect *d);
char *tools_list(const struct dialect *d);

/* A file of prompts/ as it was when the program was built (dialect_builtin.c); NULL when there is none. */
const char *builtin_file(const char *name, size_t *len);

#endif
