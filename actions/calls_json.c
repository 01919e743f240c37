/* calls_json.c - calls in JSON (see calls.h): an object, a list of them, or NAME{...}. */
#include "actions/calls_impl.h"

#include "actions/json_in.h"
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NESTED = 3 /* maximum wrappers around a call */ };

static const char *const names[] = {"name", "tool_name", "function_name", "tool", "function", NULL},
                         *const argument_names[] = {"arguments", "parameters", "args", "input",
                                                    "params",    "kwargs",     NULL},
                         *const wrappers[] = {"functionCall", "function_call", "function", "tool_call", NULL},
                         *const lists[] = {"tool_calls", "toolCalls", "calls", NULL};
enum { N_PLAIN_NAMES = 1, N_PLAIN_ARGUMENTS = 4 /* the first ones, which published formats use */ };

struct found {
    json_t *value;
    int which; /* index of its key; -1: none */
};

static struct found first_of(const json_t *object, const char *const *keys, bool (*is)(const json_t *v))
{
    for (int i = 0; keys[i]; i++) {
        json_t *v = json_object_get(object, keys[i]);
        if (v && (!is || is(v)))
            return (struct found){v, i};
    }
    return (struct found){NULL, -1};
}

static bool is_string(const json_t *v)
{
    return json_is_string(v);
}

static bool is_object(const json_t *v)
{
    return json_is_object(v);
}

static bool is_list(const json_t *v)
{
    return json_is_array(v);
}

/* ---- one object -------------------------------------------------------------------------------------- */

struct json_call {
    struct calls_reader *r;
    const char *begin;
    unsigned repairs;
    bool cut; /* closers of the JSON were missing */
};

/* Returns the arguments next to the name, as in {"name": "click", "x": 1}, as a new object. */
static json_t *flat_arguments(json_t *object, const char *name_key)
{
    static const char *const ids[] = {"id", "type", "index", "call_id", "tool_call_id", NULL};
    json_t *copy = json_copy(object);
    json_object_del(copy, name_key);
    for (int i = 0; ids[i]; i++)
        json_object_del(copy, ids[i]);
    return copy;
}

/* Reads arguments in a string, with or without a code fence; "" contains none.  Returns NULL after adding a
 * fault. */
static json_t *read_arguments(struct json_call *c, const json_t *text)
{
    const char *s = json_string_value(text), *end = s + json_string_length(text);
    struct json_in in = {.max_depth = JSON_IN_DEEPEST};
    struct err e = ERR_INIT;
    s = text_skip_space(s, end);
    if (s == end)
        return json_object();
    if (calls_starts(s, end, "```")) {
        const char *line = memchr(s, '\n', (size_t)(end - s));
        s = line ? line : s + 3;
        c->repairs |= REPAIR_FENCE;
    }
    json_t *v = json_in(s, (size_t)(end - s), &in, &e);
    if (!v) {
        calls_add_fault(c->r, c->begin, FAULT_PARSE, in.cut, "%s", e.text);
        return NULL;
    }
    c->repairs |= in.repairs | (text_skip_space(s + in.used, end) < end ? REPAIR_TRAILING_TEXT : 0u);
    return v;
}

/* Returns the arguments, owned by the caller; NULL: a fault was added. */
static json_t *arguments_of(struct json_call *c, json_t *object, const char *name, const char *name_key)
{
    struct found args = first_of(object, argument_names, NULL);
    json_t *v = args.value;
    if (!v) {
        v = flat_arguments(object, name_key);
        c->repairs |= json_object_size(v) ? REPAIR_CALL : 0;
        return v;
    }
    c->repairs |= args.which < N_PLAIN_ARGUMENTS ? 0 : REPAIR_CALL;
    if (json_is_null(v))
        return json_object();
    v = json_is_string(v) ? read_arguments(c, v) : json_incref(v);
    if (!v || json_is_object(v))
        return v;
    json_decref(v);
    calls_add_fault(c->r, c->begin, FAULT_SCHEMA, false, "the arguments of '%.100s' must be an object", name);
    return NULL;
}

static void add_said(struct calls *out, const json_t *text)
{
    if (!json_string_length(text))
        return;
    char *both =
        xasprintf("%s%s%s", out->said ? out->said : "", out->said ? "\n" : "", json_string_value(text));
    free(out->said);
    out->said = both;
}

/* Returns whether an object is a call, or a text part next to calls, judged by its keys. */
static bool looks_like_call(const struct json_call *c, const json_t *object, int depth)
{
    struct found name = first_of(object, names, is_string), inner = first_of(object, wrappers, is_object),
                 list = first_of(object, lists, is_list);
    if (list.value)
        return true;
    if (inner.value && !name.value)
        return depth < MAX_NESTED && looks_like_call(c, inner.value, depth + 1);
    if (!name.value)
        return false;
    if (calls_knows_tools(c->r) &&
        calls_is_tool(c->r, json_string_value(name.value), json_string_length(name.value)))
        return true;
    return name.which < N_PLAIN_NAMES && first_of(object, argument_names, NULL).value;
}

static int add_list(struct json_call *c, const json_t *list, int depth);

/* Adds the call, or the calls, of an object.  Returns their number, including faults. */
static int add_object(struct json_call *c, json_t *object, int depth)
{
    struct found name = first_of(object, names, is_string), inner = first_of(object, wrappers, is_object),
                 list = first_of(object, lists, is_list);
    json_t *text = json_object_get(object, "text");
    if (list.value && !name.value && depth < MAX_NESTED)
        return add_list(c, list.value, depth + 1);
    if (inner.value && !name.value && depth < MAX_NESTED)
        return add_object(c, inner.value, depth + 1);
    if (!name.value && json_is_string(text)) {
        add_said(c->r->out, text);
        return 0;
    }
    if (!json_string_length(name.value)) {
        calls_add_fault(c->r, c->begin, FAULT_SCHEMA, false, "a function call must have a 'name'");
        return 1;
    }
    const char *word = json_string_value(name.value);
    unsigned before = c->repairs;
    c->repairs |= name.which < N_PLAIN_NAMES ? 0 : REPAIR_CALL;
    json_t *arguments = arguments_of(c, object, word, names[name.which]);
    struct call *added = arguments ? calls_add(c->r, c->begin, word, strlen(word), arguments) : NULL;
    if (added)
        added->repairs = c->repairs;
    if (added)
        added->cut = c->cut;
    c->repairs = before;
    return 1;
}

static int add_list(struct json_call *c, const json_t *list, int depth)
{
    json_t *one;
    size_t i;
    int n = 0;
    json_array_foreach(list, i, one)
    {
        if (json_is_object(one)) {
            n += add_object(c, one, depth);
        } else if (json_is_array(one) && depth < MAX_NESTED) {
            n += add_list(c, one, depth + 1);
        } else {
            calls_add_fault(c->r, c->begin, FAULT_SCHEMA, false,
                            "the list of calls has an element that is not a call");
            return n + 1;
        }
    }
    return n;
}

static bool all_like_calls(const struct json_call *c, const json_t *list)
{
    json_t *one;
    size_t i;
    json_array_foreach(list, i, one) if (!json_is_object(one) || !looks_like_call(c, one, 0)) return false;
    return json_array_size(list) > 0;
}

/* ---- in the text ------------------------------------------------------------------------------------- */

/* Returns whether the text begins as a call in JSON does, even if its end is missing; "[name]" does not. */
static bool begins_like_call(const char *s, const char *end)
{
    static const char *const keys[] = {"name", "tool_name", "tool_calls"};
    bool object = false;
    for (; s < end && *s && strchr(" \t\r\n{['\"", *s); s++)
        object = object || *s == '{';
    for (size_t i = 0; object && i < sizeof keys / sizeof *keys; i++) {
        const char *behind = s + strlen(keys[i]);
        if (calls_starts(s, end, keys[i]) && (behind == end || (*behind && strchr("\"':", *behind))))
            return true;
    }
    return false;
}

/* Returns whether a comma and another object follow, as in a list of calls without brackets. */
static bool before_object(const struct calls_reader *r)
{
    const char *s = text_skip_space(r->at, r->end);
    s = s < r->end && *s == ',' ? text_skip_space(s + 1, r->end) : r->end;
    return s < r->end && *s == '{';
}

int calls_read_json(struct calls_reader *r, const char *begin, bool sure)
{
    struct json_call c = {.r = r, .begin = begin};
    struct json_in in = {.max_depth = JSON_IN_DEEPEST, .may_end = true};
    struct err e = ERR_INIT;
    const char *s = r->at;
    json_t *root = json_in(s, (size_t)(r->end - s), &in, &e);
    int n = 0;
    if (!root) {
        if (!sure && !begins_like_call(s, r->end))
            return 0;
        calls_add_fault(r, begin, FAULT_PARSE, in.cut, "%s", e.text);
        r->at = r->end;
        return 1;
    }
    r->at = s + in.used;
    c.repairs = in.repairs;
    c.cut = in.cut;
    bool list = json_is_array(root);
    if (sure || (list ? all_like_calls(&c, root) : looks_like_call(&c, root, 0)))
        n = list ? add_list(&c, root, 0) : add_object(&c, root, 0);
    else if (!list && json_object_get(root, "name") && before_object(r))
        calls_add_fault(r, begin, FAULT_SCHEMA, false, "a call before another one names no tool"), n = 1;
    json_decref(root);
    return n;
}

int calls_read_named_json(struct calls_reader *r, const char *begin)
{
    const char *s = r->at, *name = s;
    size_t n = calls_name(s, r->end);
    struct json_in in = {.max_depth = JSON_IN_DEEPEST};
    struct err e = ERR_INIT;
    if (!n || n >= CALLS_MAX_NAME)
        return 0;
    s = text_skip_space(s + n, r->end);
    if (calls_starts(s, r->end, "[CALL_ID]")) {
        const char *args = memchr(s + 1, '[', (size_t)(r->end - s - 1));
        s = args ? args : s;
    }
    if (calls_starts(s, r->end, "[ARGS]"))
        s = text_skip_space(s + strlen("[ARGS]"), r->end);
    if (s == r->end || *s != '{')
        return 0;
    json_t *v = json_in(s, (size_t)(r->end - s), &in, &e);
    r->at = v ? s + in.used : r->end;
    if (!v) {
        calls_add_fault(r, begin, FAULT_PARSE, in.cut, "%s", e.text);
        return 1;
    }
    struct call *c = calls_add(r, begin, name, n, v);
    if (c)
        c->repairs = in.repairs | REPAIR_CALL;
    return c != NULL;
}

/* ---- types of texts ---------------------------------------------------------------------------------- */

/* Returns whether the schema allows the type. */
static bool allows(const json_t *schema, const char *type)
{
    static const char *const choices[] = {"anyOf", "oneOf", NULL};
    json_t *is = json_object_get(schema, "type"), *one;
    size_t i;
    if (json_is_string(is))
        return !strcmp(json_string_value(is), type);
    json_array_foreach(is, i,
                       one) if (json_is_string(one) && !strcmp(json_string_value(one), type)) return true;
    json_array_foreach(first_of(schema, choices, is_list).value, i, one) if (allows(one, type)) return true;
    return false;
}

static bool has_type(const json_t *schema)
{
    return json_object_get(schema, "type") || json_object_get(schema, "anyOf") ||
           json_object_get(schema, "oneOf");
}

/* Returns the text as a value of a type that the schema allows; NULL: it stays a text. */
static json_t *typed(const char *text, size_t len, const json_t *schema)
{
    static const char *const python[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    struct json_in in = {.max_depth = JSON_IN_DEEPEST};
    struct err e = ERR_INIT;
    const char *s = text_skip_space(text, text + len), *end = text + len;
    while (end > s && strchr(" \t\r\n", end[-1]))
        end--;
    bool bracket = s < end && (*s == '{' || *s == '[');
    json_t *v = NULL;
    if (bracket && (!has_type(schema) || allows(schema, *s == '{' ? "object" : "array"))) {
        v = json_in(s, (size_t)(end - s), &in, &e);
        if (v && in.used == (size_t)(end - s))
            return v;
        json_decref(v);
        return NULL;
    }
    if (bracket || !has_type(schema))
        return NULL;
    v = json_loadb(s, (size_t)(end - s), JSON_DECODE_ANY, NULL);
    for (int i = 0; !v && i < 3; i++)
        if ((size_t)(end - s) == strlen(python[i][0]) && !memcmp(s, python[i][0], (size_t)(end - s)))
            v = json_loads(python[i][1], JSON_DECODE_ANY, NULL);
    bool fits = (json_is_integer(v) && (allows(schema, "integer") || allows(schema, "number"))) ||
                (json_is_real(v) && allows(schema, "number")) ||
                (json_is_boolean(v) && allows(schema, "boolean")) ||
                (json_is_null(v) && allows(schema, "null"));
    if (fits)
        return v;
    json_decref(v);
    return NULL;
}

void calls_convert(struct call *c, const json_t *properties)
{
    const char *key;
    json_t *v;
    if (!c->texts || !c->arguments)
        return;
    json_t *out = json_object();
    json_object_foreach(c->arguments, key, v)
    {
        json_t *is = typed(json_string_value(v), json_string_length(v), json_object_get(properties, key));
        json_object_set_new(out, key, is ? is : json_incref(v));
    }
    json_decref(c->arguments);
    c->arguments = out;
    c->texts = false;
}
