/* tools.c - reads the key "tools" of a dialect file.
 *
 *     {"name": "double_click", "kind": "click", "with": {"count": 2}, "args": ["element", "x", "y"],
 *      "aliases": ["dblclick"], "hidden": false, "help": "..."}
 *
 * An argument is the name of a registry parameter, or an object that renames or narrows it:
 *
 *     {"name": "content", "is": "text", "aliases": ["value"], "required": true, "default": "", "min": 0,
 *      "max": 80, "values": "up|down", "hidden": false, "help": "..."}
 *
 * Everything is checked against the registry: unknown kinds, parameters and keys are errors that name
 * them. */
#include "actions/tools.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_TOOLS = 64, MAX_ARGS = 16, MAX_NAME = 64 };

struct tool_context { /* context for messages */
    const char *dialect, *tool;
    struct err *e;
};

static int refuse(const struct tool_context *p, const char *what, const char *key)
{
    return err_set(p->e, ERR_USAGE, "dialect '%s': tool '%s': %s '%s'", p->dialect, p->tool, what, key);
}

const char *tools_unknown_key(json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        int i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            return key;
    }
    return NULL;
}

static int check_keys(const struct tool_context *p, json_t *object, const char *const *known)
{
    const char *key = tools_unknown_key(object, known);
    return key ? refuse(p, "unknown key", key) : 0;
}

/* Read optional members; each function returns -1 with e if the type is wrong. */
static int get_bool(const struct tool_context *p, json_t *object, const char *key, bool *out)
{
    json_t *v = json_object_get(object, key);
    if (v && !json_is_boolean(v))
        return refuse(p, "true or false expected for", key);
    *out = v ? json_is_true(v) : *out;
    return 0;
}

static int get_int(const struct tool_context *p, json_t *object, const char *key, int *out)
{
    json_t *v = json_object_get(object, key);
    if (v && (!json_is_integer(v) || llabs(json_integer_value(v)) > 1000000))
        return refuse(p, "an integer expected for", key);
    *out = v ? (int)json_integer_value(v) : *out;
    return 0;
}

static int get_string(const struct tool_context *p, json_t *object, const char *key, const char *fallback,
                      char **out)
{
    json_t *v = json_object_get(object, key);
    if (v && !json_is_string(v))
        return refuse(p, "a string expected for", key);
    const char *s = v ? json_string_value(v) : fallback;
    *out = s ? xstrdup(s) : NULL;
    return 0;
}

static int get_aliases(const struct tool_context *p, json_t *object, json_t **out)
{
    json_t *v = json_object_get(object, "aliases"), *one;
    size_t i;
    if (v && !json_is_array(v))
        return refuse(p, "a list of strings expected for", "aliases");
    json_array_foreach(v, i, one) if (!json_is_string(one)) return refuse(p, "a list of strings expected for",
                                                                          "aliases");
    *out = json_incref(v);
    return 0;
}

/* Checks a name, because names are copied verbatim into schemas, grammars and prompts. */
static int check_name(const struct tool_context *p, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '.' && name[i] != '-')
            return refuse(p, "only letters, digits and _.- may be in", name);
    return n && n <= MAX_NAME ? 0 : refuse(p, "a name of 1 to 64 characters expected, not", name);
}

bool tools_has_word(const char *values, const char *word, size_t n)
{
    for (const char *w = values; n && w; w = strchr(w, '|')) {
        w += *w == '|';
        if (strcspn(w, "|") == n && !strncasecmp(w, word, n))
            return true;
    }
    return false;
}

/* Returns whether every word of "a|b" is among those of `of`. */
static bool words_of(const char *values, const char *of)
{
    for (const char *s = values, *next; s; s = next ? next + 1 : NULL) {
        next = strchr(s, '|');
        if (!tools_has_word(of, s, strcspn(s, "|")))
            return false;
    }
    return true;
}

/* Checks a range.  A dialect may narrow a parameter, and widen only the length of a text and the sign of an
 * amount. */
static int check_range(const struct tool_context *p, const struct tool_arg *a)
{
    const struct param *param = registry_param(a->id);
    int least = a->id == P_AMOUNT ? -param->max : param->min;
    if (a->min > a->max)
        return refuse(p, "min is above max for", a->name);
    if (param->type == PARAM_STRING && (a->min < 0 || a->min > GX_EXACT))
        return refuse(p, "min must be from 0 to 256 for", a->name);
    if (param->type != PARAM_STRING && (a->min < least || a->max > param->max))
        return refuse(p, "min or max is outside the possible range for", a->name);
    if (param->type == PARAM_ENUM &&
        !words_of(a->values, a->id == P_BUTTON ? "left|right|middle|wheel|back|forward" : param->values))
        return refuse(p, "values that do not exist for", a->name);
    return 0;
}

static int parse_arg(const struct tool_context *p, enum action_kind kind, json_t *item, struct tool_arg *a)
{
    static const char *const known[] = {"name", "is",  "aliases", "required", "hidden", "default",
                                        "min",  "max", "values",  "help",     NULL};
    json_t *object = json_is_object(item) ? item : NULL;
    const char *name = json_string_value(object ? json_object_get(object, "name") : item);
    const char *is = json_string_value(json_object_get(object, "is"));
    if (!name)
        return refuse(p, "an argument without", "name");
    if (check_name(p, name) || (object && check_keys(p, object, known)))
        return -1;
    int id = registry_param_id(is ? is : name);
    const struct param_use *param_use = id < 0 ? NULL : registry_param_use(kind, (enum param_id)id);
    if (!param_use)
        return refuse(p, "this kind of action does not take", is ? is : name);
    const struct param *param = registry_param(param_use->id);
    *a = (struct tool_arg){.id = param_use->id,
                           .name = xstrdup(name),
                           .required = param_use->required,
                           .hidden = param_use->id == P_IGNORED,
                           .min = param->min,
                           .max = param->max};
    json_t *fallback = json_object_get(object, "default");
    a->fallback = fallback              ? json_incref(fallback)
                  : param_use->fallback ? json_loads(param_use->fallback, JSON_DECODE_ANY, NULL)
                                        : NULL;
    if (get_bool(p, object, "required", &a->required) || get_bool(p, object, "hidden", &a->hidden) ||
        get_int(p, object, "min", &a->min) || get_int(p, object, "max", &a->max) ||
        get_string(p, object, "values", param->values, &a->values) ||
        get_string(p, object, "help", param->help, &a->help) || get_aliases(p, object, &a->aliases))
        return -1;
    return check_range(p, a);
}

static int check_with(const struct tool_context *p, enum action_kind kind, json_t *with)
{
    const char *key;
    json_t *value;
    if (with && !json_is_object(with))
        return refuse(p, "an object expected for", "with");
    json_object_foreach(with, key, value)
    {
        int id = registry_param_id(key);
        if (id < 0 || !registry_param_use(kind, (enum param_id)id))
            return refuse(p, "this kind of action does not take", key);
    }
    return 0;
}

static int parse_tool(const struct tool_context *at, json_t *object, struct tool *t)
{
    static const char *const known[] = {"name", "kind", "aliases", "hidden", "with", "args", "help", NULL};
    const char *name = json_string_value(json_object_get(object, "name"));
    const char *kind = json_string_value(json_object_get(object, "kind"));
    struct tool_context p = {at->dialect, name ? name : "?", at->e};
    if (!name || !kind)
        return refuse(&p, "a tool without", name ? "kind" : "name");
    if (check_name(&p, name))
        return -1;
    t->name = xstrdup(name);
    t->kind = registry_kind(kind);
    if (t->kind == ACT_NONE)
        return refuse(&p, "unknown kind of action", kind);
    json_t *with = json_object_get(object, "with"), *args = json_object_get(object, "args"), *item;
    if (check_keys(&p, object, known) || check_with(&p, t->kind, with) ||
        get_aliases(&p, object, &t->aliases) || get_bool(&p, object, "hidden", &t->hidden) ||
        get_string(&p, object, "help", registry_entry(t->kind)->help, &t->help))
        return -1;
    t->with = json_incref(with);
    if ((args && !json_is_array(args)) || json_array_size(args) > MAX_ARGS)
        return refuse(&p, "a short list expected for", "args");
    t->args = xcalloc(json_array_size(args) + 1, sizeof *t->args);
    size_t i;
    json_array_foreach(args, i, item)
    {
        int r = parse_arg(&p, t->kind, item, &t->args[t->nargs]);
        t->nargs += t->args[t->nargs].name != NULL;
        if (r)
            return -1;
    }
    return 0;
}

struct tools *tools_parse(json_t *array, const char *dialect, struct err *e)
{
    struct tools *t = xcalloc(1, sizeof *t);
    struct tool_context p = {dialect, "?", e};
    int r = 0;
    if ((array && !json_is_array(array)) || json_array_size(array) > MAX_TOOLS)
        r = err_set(e, ERR_USAGE, "dialect '%s': 'tools' must be a list of at most %d tools", dialect,
                    MAX_TOOLS);
    t->list = xcalloc(json_array_size(array) + 1, sizeof *t->list);
    for (; !r && (size_t)t->n < json_array_size(array); t->n++)
        r = parse_tool(&p, json_array_get(array, (size_t)t->n), &t->list[t->n]);
    if (r) {
        tools_free(t);
        return NULL;
    }
    return t;
}

void tools_free(struct tools *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->n; i++) {
        struct tool *tool = &t->list[i];
        for (int k = 0; k < tool->nargs; k++) {
            json_decref(tool->args[k].aliases);
            json_decref(tool->args[k].fallback);
            free(tool->args[k].name);
            free(tool->args[k].values);
            free(tool->args[k].help);
        }
        json_decref(tool->aliases);
        json_decref(tool->with);
        free(tool->args);
        free(tool->name);
        free(tool->help);
    }
    free(t->list);
    free(t);
}

bool dialect_describes(const struct dialect *d)
{
    bool some = false;
    for (int i = 0; i < d->tools->n; i++) {
        const struct tool *t = &d->tools->list[i];
        bool clicks = t->kind == ACT_CLICK && !t->hidden, describes = false;
        for (int k = 0; k < t->nargs; k++)
            describes = describes || (t->args[k].id == P_ELEMENT && !t->args[k].hidden);
        if (clicks && !describes)
            return false;
        some = some || clicks;
    }
    return some;
}

bool tools_alias(const json_t *aliases, const char *word, bool exact)
{
    for (size_t i = 0; i < json_array_size(aliases); i++)
        if (!(exact ? strcmp : strcasecmp)(json_string_value(json_array_get(aliases, i)), word))
            return true;
    return false;
}

const struct tool *tools_find(const struct tools *t, const char *name, bool *alias)
{
    *alias = false;
    for (int i = 0; i < t->n; i++)
        if (!strcasecmp(t->list[i].name, name))
            return &t->list[i];
    *alias = true;
    for (int i = 0; i < t->n; i++)
        if (tools_alias(t->list[i].aliases, name, false))
            return &t->list[i];
    return NULL;
}

const struct tool_arg *tools_arg(const struct tool *t, enum param_id id)
{
    for (int i = 0; i < t->nargs; i++)
        if (t->args[i].id == id)
            return &t->args[i];
    return NULL;
}
