/* schema.c - the tool table for the prompt: as a JSON schema, and as a list with one line per tool.
 *
 * The schema has the form that the common validation libraries generate (definitions first, keys sorted,
 * properties in the order of the table), because these models were trained on that.  The order is the same
 * in every run, so that the prompt's prefix can be cached.
 */
#include "actions/grammar_impl.h"
#include "actions/syntax.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SCHEMA = 256 << 10 };

/* Returns the title of a name: "hold_keys" becomes "Hold Keys". */
static json_t *title_of(const char *name)
{
    char title[128];
    size_t n = 0;
    bool start = true;
    for (; *name && n < sizeof title - 1; name++) {
        title[n++] = *name == '_' ? ' ' : start ? (char)toupper((unsigned char)*name) : *name;
        start = *name == '_';
    }
    title[n] = 0;
    return json_string(title);
}

static json_t *number_schema(const char *type, int min, int max)
{
    return json_pack("{s:i, s:i, s:s}", "maximum", max, "minimum", min, "type", type);
}

static json_t *coord_schema(enum coord_space space)
{
    switch (space) {
    case COORD_NORM1000:
        return number_schema("integer", 0, 1000);
    case COORD_NORM1:
        return number_schema("number", 0, 1);
    case COORD_PIXEL:
    case COORD_NATIVE:
    case COORD_PX28:
    case COORD_FIT:
        break;
    }
    return json_pack("{s:i, s:s}", "minimum", 0, "type", "integer");
}

static json_t *list_schema(json_t *items, int min, int max)
{
    return json_pack("{s:o, s:i, s:i, s:s}", "items", items, "maxItems", max, "minItems", min, "type",
                     "array");
}

static json_t *enum_schema(const char *values)
{
    json_t *list = json_array();
    for (const char *s = values; *s;) {
        size_t n = strcspn(s, "|");
        json_array_append_new(list, json_stringn(s, n));
        s += n + (s[n] == '|');
    }
    return json_pack("{s:o, s:s}", "enum", list, "type", "string");
}

/* Returns the type of an argument, without its description. */
static json_t *type_schema(const struct tool_arg *a, enum coord_space space)
{
    switch (registry_param(a->id)->type) {
    case PARAM_INT:
        return number_schema("integer", a->min, a->max);
    case PARAM_NUMBER:
        return number_schema("number", a->min, a->max);
    case PARAM_BOOL:
        return json_pack("{s:s}", "type", "boolean");
    case PARAM_ENUM:
        return enum_schema(a->values);
    case PARAM_COORD:
        return coord_schema(space);
    case PARAM_POINT:
        return list_schema(coord_schema(space), 2, 2);
    case PARAM_REGION:
        return list_schema(coord_schema(space), 4, 4);
    case PARAM_PATH:
        return list_schema(json_pack("{s:b, s:{s:o, s:o}, s:[s, s], s:s}", "additionalProperties", 0,
                                     "properties", "x", coord_schema(space), "y", coord_schema(space),
                                     "required", "x", "y", "type", "object"),
                           a->min, a->max);
    case PARAM_KEYS:
        return list_schema(json_pack("{s:s}", "type", "string"), a->min, a->max);
    case PARAM_GOALS:
        return list_schema(json_pack("{s:b, s:{s:{s:s}, s:{s:s, s:[s, s, s, s], s:s}}, s:[s], s:s}",
                                     "additionalProperties", 0, "properties", "title", "type", "string",
                                     "status", "default", "todo", "enum", "todo", "running", "done", "failed",
                                     "type", "string", "required", "title", "type", "object"),
                           a->min, a->max);
    case PARAM_STRING:
    case PARAM_KEY:
    case PARAM_ANY:
        break;
    }
    return json_pack("{s:s}", "type", "string");
}

/* Returns the help of an argument; coordinates with their unit. */
static json_t *describe(const struct tool_arg *a, enum coord_space space)
{
    static const char *const units[] = {", as integer in [0, 1000]",
                                        ", as number in [0, 1]",
                                        ", in pixels",
                                        "",
                                        "",
                                        ", in pixels",
                                        ", in pixels"};
    enum param_type type = registry_param(a->id)->type;
    bool place = type == PARAM_COORD || type == PARAM_POINT || type == PARAM_PATH || type == PARAM_REGION;
    char *text = xasprintf("%s%s", a->help ? a->help : "", place ? units[space] : "");
    json_t *v = json_string(text);
    free(text);
    return v;
}

/* Returns {"anyOf": ..., "default": ..., "description": ..., <type>, "title": ...}, keys in alphabetical
 * order. */
static json_t *arg_schema(const struct tool_arg *a, enum coord_space space)
{
    json_t *type = type_schema(a, space), *all = json_object();
    if (!a->required && !a->fallback) {
        type = json_pack("{s:[o, {s:s}]}", "anyOf", type, "type", "null");
        json_object_set_new(all, "default", json_null());
    }
    if (!a->required && a->fallback)
        json_object_set(all, "default", a->fallback);
    json_object_set_new(all, "description", describe(a, space));
    json_object_set_new(all, "title", title_of(a->name));
    json_object_update(all, type);
    json_decref(type);
    char *sorted = json_dumps(all, JSON_SORT_KEYS | JSON_COMPACT);
    json_decref(all);
    all = json_loads(sorted, 0, NULL);
    free(sorted);
    return all;
}

/* Returns {"additionalProperties": false, "properties": {...}, "required": [...], "title": ..., "type":
 * "object"}; tag: the key of the tool's name, or NULL. */
static json_t *tool_schema(const struct tool *t, const char *tag, enum coord_space space)
{
    json_t *properties = json_object(), *required = json_array(), *all = json_object();
    if (tag) {
        json_object_set_new(
            properties, tag,
            json_pack("{s:s, s:o, s:s}", "const", t->name, "title", title_of(tag), "type", "string"));
        json_array_append_new(required, json_string(tag));
    }
    for (int i = 0; i < t->nargs; i++) {
        if (t->args[i].hidden)
            continue;
        json_object_set_new(properties, t->args[i].name, arg_schema(&t->args[i], space));
        if (t->args[i].required)
            json_array_append_new(required, json_string(t->args[i].name));
    }
    json_object_set_new(all, "additionalProperties", json_false());
    json_object_set_new(all, "description", json_string(t->help));
    json_object_set_new(all, "properties", properties);
    json_object_set_new(all, "required", required);
    json_object_set_new(all, "title", json_string(t->name));
    json_object_set_new(all, "type", json_string("object"));
    return all;
}

/* Returns the step object: note, thought, and one of the tools under `call`. */
static json_t *step_schema(const struct dialect *d, const char *call, const char *tag)
{
    const struct tools *tools = d->tools;
    json_t *defs = json_object(), *any = json_array();
    for (int i = 0; i < tools->n; i++) {
        const struct tool *t = &tools->list[i];
        char ref[160];
        if (t->hidden)
            continue;
        snprintf(ref, sizeof ref, "#/$defs/%s", t->name);
        json_object_set_new(defs, t->name, tool_schema(t, tag, d->coords));
        json_array_append_new(any, json_pack("{s:s}", "$ref", ref));
    }
    json_t *note = json_pack("{s:[{s:s}, {s:s}], s:n, s:s, s:s}", "anyOf", "type", "string", "type", "null",
                             "default", "description",
                             "Facts from this screen to remember; null when there are none", "title", "Note");
    json_t *thought = json_pack("{s:s, s:s, s:s}", "description", "Short reasoning about what to do next",
                                "title", "Thought", "type", "string");
    return json_pack("{s:o, s:b, s:{s:o, s:o, s:{s:o, s:o}}, s:[s, s], s:s, s:s}", "$defs", defs,
                     "additionalProperties", 0, "properties", "note", note, "thought", thought, call, "anyOf",
                     any, "title", title_of(call), "required", "thought", call, "title", "Step", "type",
                     "object");
}

/* ---- the same as a Python literal --------------------------------------------------------------- */

static void put_python(struct buf *out, const json_t *v);

static void put_python_string(struct buf *out, const char *s)
{
    char quote = strchr(s, '\'') && !strchr(s, '"') ? '"' : '\'';
    buf_putc(out, quote);
    for (; *s; s++) {
        if (*s == quote || *s == '\\')
            buf_putc(out, '\\');
        if (*s == '\n')
            buf_puts(out, "\\n");
        else
            buf_putc(out, *s);
    }
    buf_putc(out, quote);
}

static void put_python_object(struct buf *out, const json_t *v)
{
    const char *key;
    json_t *member;
    int n = 0;
    buf_putc(out, '{');
    json_object_foreach((json_t *)v, key, member)
    {
        buf_puts(out, n++ ? ", " : "");
        put_python_string(out, key);
        buf_puts(out, ": ");
        put_python(out, member);
    }
    buf_putc(out, '}');
}

static void put_python(struct buf *out, const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        put_python_object(out, v);
        return;
    case JSON_ARRAY:
        buf_putc(out, '[');
        for (size_t i = 0; i < json_array_size(v); i++) {
            buf_puts(out, i ? ", " : "");
            put_python(out, json_array_get(v, i));
        }
        buf_putc(out, ']');
        return;
    case JSON_STRING:
        put_python_string(out, json_string_value(v));
        return;
    case JSON_INTEGER:
        buf_printf(out, "%lld", (long long)json_integer_value(v));
        return;
    case JSON_REAL:
        buf_printf(out, "%g", json_real_value(v));
        return;
    case JSON_TRUE:
        buf_puts(out, "True");
        return;
    case JSON_FALSE:
        buf_puts(out, "False");
        return;
    case JSON_NULL:
        buf_puts(out, "None");
        return;
    }
}

/* ---- texts ------------------------------------------------------------------------------------ */

/* Appends native function calls: one definition per line. */
static void put_functions(const struct dialect *d, size_t flags, struct buf *out)
{
    const struct tools *tools = d->tools;
    for (int i = 0; i < tools->n; i++) {
        const struct tool *t = &tools->list[i];
        if (t->hidden)
            continue;
        json_t *f = json_pack("{s:s, s:{s:s, s:s, s:o}}", "type", "function", "function", "name", t->name,
                              "description", t->help, "parameters", tool_schema(t, NULL, d->coords));
        char *text = json_dumps(f, flags);
        buf_printf(out, "%s%s", out->len ? "\n" : "", text);
        free(text);
        json_decref(f);
    }
}

/* Adds the arguments of one function for all tools: the tool's name is its argument "action"; the other
 * arguments are those of all tools, each with the tools that take it. */
static void add_arguments(const struct dialect *d, json_t *properties)
{
    for (int i = 0; i < d->tools->n; i++) {
        const struct tool *t = &d->tools->list[i];
        for (int k = 0; !t->hidden && k < t->nargs; k++) {
            const struct tool_arg *a = &t->args[k];
            json_t *known = json_object_get(properties, a->name);
            if (a->hidden)
                continue;
            json_t *v = known ? known : type_schema(a, d->coords);
            const char *was = json_string_value(json_object_get(v, "description"));
            char *help = was ? xasprintf("%s, %s", was, t->name)
                             : xasprintf("%s. Of action=%s", a->help ? a->help : "", t->name);
            json_object_set_new(v, "description", json_string(help));
            free(help);
            if (!known)
                json_object_set_new(properties, a->name, v);
        }
    }
}

void schema_computer_use(const struct dialect *d, struct buf *out)
{
    struct buf help;
    json_t *names = json_array(), *properties = json_object();
    buf_init(&help, MAX_SCHEMA);
    buf_puts(&help, "The action to perform:");
    for (int i = 0; i < d->tools->n; i++) {
        const struct tool *t = &d->tools->list[i];
        if (t->hidden)
            continue;
        json_array_append_new(names, json_string(t->name));
        buf_printf(&help, "\n* `%s`: %s.", t->name, t->help);
    }
    json_object_set_new(
        properties, "action",
        json_pack("{s:s, s:o, s:s}", "description", help.data, "enum", names, "type", "string"));
    add_arguments(d, properties);
    json_t *f = json_pack("{s:s, s:{s:s, s:s, s:{s:o, s:[s], s:s}}}", "type", "function", "function", "name",
                          "computer_use", "description", "Use mouse and keyboard of the computer.",
                          "parameters", "properties", properties, "required", "action", "type", "object");
    char *text = json_dumps(f, JSON_ENSURE_ASCII);
    buf_puts(out, text);
    free(text);
    json_decref(f);
    buf_free(&help);
}

void schema_functions(const struct dialect *d, struct buf *out)
{
    put_functions(d, JSON_ENSURE_ASCII, out);
}

void schema_functions_utf8(const struct dialect *d, struct buf *out)
{
    put_functions(d, 0, out);
}

void schema_step(const struct dialect *d, struct buf *out)
{
    json_t *step = step_schema(d, d->syntax->action, d->syntax->tag);
    char *text = json_dumps(step, JSON_ENSURE_ASCII);
    buf_puts(out, text);
    free(text);
    json_decref(step);
}

void schema_step_python(const struct dialect *d, struct buf *out)
{
    json_t *step = step_schema(d, d->syntax->action, d->syntax->tag);
    put_python(out, step);
    json_decref(step);
}

char *tools_schema(const struct dialect *d)
{
    struct buf out;
    buf_init(&out, MAX_SCHEMA);
    if (d->syntax->schema)
        d->syntax->schema(d, &out);
    char *taken = buf_take(&out);
    buf_free(&out);
    return taken;
}

static void put_args(const struct tool *t, struct buf *out)
{
    int shown = 0;
    for (int i = 0; i < t->nargs; i++) {
        const struct tool_arg *a = &t->args[i];
        if (a->hidden)
            continue;
        buf_printf(out, "%s%s", shown++ ? ", " : "", a->name);
        if (!a->required) {
            char *fallback = a->fallback ? json_dumps(a->fallback, JSON_ENCODE_ANY) : xstrdup("null");
            buf_printf(out, "=%s", fallback);
            free(fallback);
        }
    }
}

/* Appends the placeholder of a value in the pattern of a call. */
static void put_pattern(struct buf *out, const struct tool_arg *a)
{
    static const char *const patterns[] = {
        [PARAM_STRING] = "\"...\"",
        [PARAM_ANY] = "\"...\"",
        [PARAM_BOOL] = "true|false",
        [PARAM_POINT] = "[x, y]",
        [PARAM_REGION] = "[left, top, right, bottom]",
        [PARAM_PATH] = "[{\"x\": x, \"y\": y}, ...]",
        [PARAM_KEY] = "\"ctrl+s\"",
        [PARAM_KEYS] = "[\"ctrl\", \"s\"]",
        [PARAM_GOALS] = "[{\"title\": \"...\", \"status\": \"todo|running|done|failed\"}, ...]",
    };
    enum param_type type = registry_param(a->id)->type;
    if (type == PARAM_INT || type == PARAM_NUMBER)
        buf_printf(out, "%d..%d", a->min, a->max);
    else if (type == PARAM_ENUM)
        buf_printf(out, "\"%s\"", a->values);
    else
        buf_puts(out, type == PARAM_COORD ? a->name : patterns[type]);
}

/* Appends a pattern such as {"action": "scroll", "coordinate"?: [x, y], ...}. */
static void put_json_pattern(const struct tool *t, const char *tag, struct buf *out)
{
    buf_printf(out, "{\"%s\": \"%s\"", tag, t->name);
    for (int i = 0; i < t->nargs; i++) {
        const struct tool_arg *a = &t->args[i];
        if (a->hidden)
            continue;
        buf_printf(out, ", \"%s\"%s: ", a->name, a->required ? "" : "?");
        put_pattern(out, a);
    }
    buf_putc(out, '}');
}

char *tools_list(const struct dialect *d)
{
    const struct tools *tools = d->tools;
    struct buf out;
    buf_init(&out, MAX_SCHEMA);
    for (int i = 0; i < tools->n; i++) {
        const struct tool *t = &tools->list[i];
        if (t->hidden)
            continue;
        buf_puts(&out, out.len ? "\n" : "");
        if (d->syntax->list_as_json) {
            put_json_pattern(t, d->syntax->tag, &out);
        } else {
            buf_printf(&out, "%s(", t->name);
            put_args(t, &out);
            buf_putc(&out, ')');
        }
        buf_printf(&out, ": %s.", t->help);
    }
    char *taken = buf_take(&out);
    buf_free(&out);
    return taken;
}
