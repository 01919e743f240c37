/* arguments.c - see arguments.h. */
#include "host/arguments.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ENCODED_MAX = 4, ITEMS_MAX = 64, SHOWN_MAX = 60, IGNORED_MAX = 20 };

static const char *const pair_names[] = {"coordinate", "coordinates", "point", "position", "location", "xy"};
static const char *const sides[] = {"x", "y", "width", "height"};

struct argument {
    const char *name;
    const json_t *schema;
    struct err *e;
};

static const char *type_of(const json_t *schema)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    return type ? type : "string";
}

/* ---- messages ------------------------------------------------------------------------------------------ */

static const char *kind_name(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "list";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
        return "integer";
    case JSON_REAL:
        return "number";
    default:
        return json_is_null(v) ? "null" : "boolean";
    }
}

/* Appends the accepted values: those of an enumeration, or the type and its range ("an integer from 1 to
 * 50"). */
static void put_wanted(struct buf *out, const json_t *schema)
{
    static const char *const types[][3] = {{"integer", "an integer", "integers"},
                                           {"number", "a number", "numbers"},
                                           {"boolean", "a boolean (true or false)", "booleans"},
                                           {"string", "a string", "strings"}};
    const json_t *values = json_object_get(schema, "enum"), *items = json_object_get(schema, "items"), *one;
    const json_t *min = json_object_get(schema, "minimum"), *max = json_object_get(schema, "maximum");
    size_t i;
    const char *type = type_of(items ? items : schema);
    if (values)
        buf_puts(out, "one of ");
    json_array_foreach(values, i, one) buf_printf(out, "%s%s", i ? ", " : "", json_string_value(one));
    if (items && json_object_get(schema, "minItems"))
        buf_printf(out, "a list of %d ", (int)json_integer_value(json_object_get(schema, "minItems")));
    else if (items)
        buf_puts(out, "a list of ");
    for (i = 0; !values && i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i][0], type))
            buf_puts(out, types[i][items ? 2 : 1]);
    if (min && max)
        buf_printf(out, " from %g to %g", json_number_value(min), json_number_value(max));
}

/* Sets e to the message about an invalid value v of an argument or of one of its items.  Returns NULL. */
static json_t *refuse(const struct argument *a, const json_t *v)
{
    autobuf wanted = buf_of(512);
    put_wanted(&wanted, a->schema);
    autofree char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
    size_t n = text ? strlen(text) : 0, shown = n > SHOWN_MAX ? utf8_valid_prefix(text, SHOWN_MAX) : n;
    err_set(a->e, ERR_USAGE, "argument '%s' must be %s; got %s%s%.*s%s", a->name, wanted.data, kind_name(v),
            json_is_null(v) ? "" : " ", json_is_null(v) ? 0 : (int)shown, text ? text : "",
            shown < n ? "..." : "");
    return NULL;
}

/* Sets e to the message about a missing required argument.  Returns -1. */
static int missing(const struct argument *a, bool is_null)
{
    autobuf wanted = buf_of(512);
    put_wanted(&wanted, a->schema);
    err_set(a->e, ERR_USAGE, "argument '%s' is %s; it must be %s", a->name, is_null ? "null" : "missing",
            wanted.data);
    return -1;
}

/* ---- names --------------------------------------------------------------------------------------------- */

/* Compares words ignoring case and separators: "double-click" and "doubleClick" are equal. */
static bool same_word(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, " _-");
        b += strspn(b, " _-");
        if (!*a || tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return !*a && !*b;
    }
}

/* Returns whether a and b differ at most by one inserted, deleted or replaced character, or two swapped
 * neighbours. */
static bool one_edit(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b), head = 0;
    while (a[head] && a[head] == b[head])
        head++;
    while (na > head && nb > head && a[na - 1] == b[nb - 1]) {
        na--;
        nb--;
    }
    na -= head;
    nb -= head;
    bool swapped = na == 2 && nb == 2 && a[head] == b[head + 1] && a[head + 1] == b[head];
    return swapped || (na <= 1 && nb <= 1);
}

/* Returns the schema's name for an argument; NULL: unknown.  *near: a known name one edit away, or NULL. */
static const char *known_name(const json_t *properties, const char *name, const char **near)
{
    const char *key, *found = NULL;
    json_t *one;
    *near = NULL;
    if (json_object_get(properties, name))
        return name;
    json_object_foreach((json_t *)(uintptr_t)properties, key, one)
    {
        if (same_word(key, name))
            found = key;
        if (strlen(name) > 1 && one_edit(key, name))
            *near = key;
    }
    return found;
}

/* ---- values -------------------------------------------------------------------------------------------- */

/* Decodes JSON text, encoded up to ENCODED_MAX times.  Returns a new reference, to v itself if v is not JSON
 * text. */
static json_t *decode(const json_t *v)
{
    json_t *plain = json_incref((json_t *)(uintptr_t)v);
    for (int i = 0; i < ENCODED_MAX && json_is_string(plain); i++) {
        json_t *inner = json_loadb(json_string_value(plain), json_string_length(plain),
                                   JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
        if (!inner)
            break;
        json_decref(plain);
        plain = inner;
    }
    return plain;
}

/* Returns v as an integer if it is a whole number within +-INT32_MAX, else NULL. */
static json_t *read_whole(const json_t *v)
{
    double n = json_number_value(v);
    return json_is_number(v) && n == floor(n) && fabs(n) <= INT32_MAX ? json_integer((json_int_t)n) : NULL;
}

static json_t *read_boolean(const json_t *v)
{
    const char *text = json_string_value(v);
    double n = json_number_value(v);
    if (json_is_boolean(v))
        return json_boolean(json_is_true(v));
    if (json_is_number(v) && (n == 0 || n == 1))
        return json_boolean(n == 1);
    if (!text || (strcasecmp(text, "true") != 0 && strcasecmp(text, "false") != 0))
        return NULL;
    return json_boolean(!strcasecmp(text, "true"));
}

static json_t *read_string(const struct argument *a, const json_t *v)
{
    const json_t *values = json_object_get(a->schema, "enum"), *one;
    char digits[32];
    size_t i;
    if (json_is_integer(v) && !values) {
        snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(v));
        return json_string(digits);
    }
    if (!json_is_string(v))
        return NULL;
    if (!values)
        return json_copy((json_t *)(uintptr_t)v);
    json_auto_t *plain = decode(v);
    const char *word = json_string_value(plain);
    json_array_foreach(values, i, one) if (word && same_word(json_string_value(one), word)) break;
    return i < json_array_size(values) ? json_copy(json_array_get(values, i)) : NULL;
}

/* Returns whether v is within the range of the schema; true if v is not a number. */
static bool in_range(const json_t *schema, const json_t *v)
{
    const json_t *min = json_object_get(schema, "minimum"), *max = json_object_get(schema, "maximum");
    double n = json_number_value(v);
    return !json_is_number(v) ||
           ((!min || n >= json_number_value(min)) && (!max || n <= json_number_value(max)));
}

/* Splits "100, 200" or "(100, 200)" into n numbers.  Returns NULL if a part is not a number or the count
 * differs. */
static json_t *split_numbers(const char *text, size_t n)
{
    size_t len = strlen(text);
    if (len > 1 && *text == '(' && text[len - 1] == ')') {
        text++;
        len -= 2;
    }
    if (memchr(text, '[', len) || memchr(text, '"', len) || memchr(text, '{', len))
        return NULL;
    autofree char *list = xasprintf("[%.*s]", (int)(len < 1000 ? len : 1000), text);
    json_t *parts = json_loads(list, 0, NULL);
    bool good = json_array_size(parts) == n;
    for (size_t i = 0; i < n; i++)
        good = good && json_is_number(json_array_get(parts, i));
    if (!good)
        json_decref(parts);
    return good ? parts : NULL;
}

/* Reads n numbers from a list, a text, or an object with the first n of `sides`.  Returns a new list, or NULL
 * if v is none of these. */
static json_t *read_numbers(const json_t *v, size_t n)
{
    json_t *plain = decode(v), *list = NULL;
    if (json_is_array(plain) && json_array_size(plain) == n)
        list = json_incref(plain);
    else if (json_is_string(plain))
        list = split_numbers(json_string_value(plain), n);
    else if (json_is_object(plain) && json_object_size(plain) == n)
        list = json_array();
    for (size_t i = 0; list && json_is_object(plain) && i < n; i++) {
        json_t *side = json_object_get(plain, sides[i]);
        const char letter[2] = {*sides[i], 0}; /* "w" or "h" */
        json_array_append(list, side ? side : json_object_get(plain, letter));
    }
    json_decref(plain);
    if (list && json_array_size(list) != n) {
        json_decref(list);
        list = NULL;
    }
    return list;
}

static json_t *read_scalar(const struct argument *a, const json_t *v)
{
    const char *type = type_of(a->schema);
    json_t *plain = !strcmp(type, "string") ? json_incref((json_t *)(uintptr_t)v) : decode(v), *read;
    read = !strcmp(type, "string")    ? read_string(a, plain)
           : !strcmp(type, "integer") ? read_whole(plain)
           : !strcmp(type, "boolean") ? read_boolean(plain)
           : json_is_number(plain)    ? json_copy(plain)
                                      : NULL;
    json_decref(plain);
    if (read && in_range(a->schema, read))
        return read;
    json_decref(read);
    return refuse(a, v);
}

static json_t *read_list(const struct argument *a, const json_t *v)
{
    const json_t *items = json_object_get(a->schema, "items"), *one;
    size_t n = (size_t)json_integer_value(json_object_get(a->schema, "minItems")), i;
    json_t *plain = n ? read_numbers(v, n) : decode(v), *read = json_array();
    struct err unused = ERR_INIT; /* the error message quotes the whole value */
    const struct argument item = {a->name, items, &unused};
    if (plain && !json_is_array(plain)) { /* a single value; the text "5" is the key 5 */
        bool text = json_is_string(plain) || strcmp(type_of(items), "string") != 0;
        json_t *single = json_pack("[O]", text ? plain : v);
        json_decref(plain);
        plain = single;
    }
    bool good = plain && json_array_size(plain) <= ITEMS_MAX;
    json_array_foreach(plain, i, one)
    {
        json_t *value = good ? read_scalar(&item, one) : NULL;
        good = value && json_array_append_new(read, value) == 0;
    }
    json_decref(plain);
    if (good)
        return read;
    json_decref(read);
    return refuse(a, v);
}

/* ---- arguments ----------------------------------------------------------------------------------------- */

/* Converts v and sets it as one argument of the result; null leaves the argument out.  Returns -1 with e. */
static int set(json_t *out, const struct argument *a, const json_t *v)
{
    bool is_list = !strcmp(type_of(a->schema), "array"), is_text = !strcmp(type_of(a->schema), "string");
    json_auto_t *plain = is_text ? json_incref((json_t *)(uintptr_t)v) : decode(v);
    bool absent = json_is_null(plain);
    if (absent)
        return 0;
    if (json_object_get(out, a->name))
        return err_set(a->e, ERR_USAGE, "argument '%s' was sent twice with different values", a->name);
    json_t *read = is_list ? read_list(a, v) : read_scalar(a, v);
    return read ? json_object_set_new(out, a->name, read) : -1;
}

/* Sets x and y, or x2 and y2, from a pair.  Returns -1 with e. */
static int set_pair(json_t *out, const json_t *properties, const char *x, const char *y, const json_t *v,
                    const char *name, struct err *e)
{
    json_auto_t *pair = read_numbers(v, 2);
    const char *const names[] = {x, y};
    int rc = pair ? 0 : err_set(e, ERR_USAGE, "argument '%s' must be a pair [x, y] of integers", name);
    for (size_t i = 0; rc == 0 && i < 2; i++) {
        const struct argument a = {names[i], json_object_get(properties, names[i]), e};
        rc = set(out, &a, json_array_get(pair, i));
    }
    return rc;
}

static bool is_present(const json_t *v)
{
    json_auto_t *plain = v ? decode(v) : NULL;
    return plain && !json_is_null(plain);
}

/* Reads one argument of the call; an unknown name is added to `ignored`.  Returns -1 with e. */
static int take(json_t *out, const json_t *properties, const json_t *given, const char *name, json_t *ignored,
                struct err *e)
{
    const json_t *v = json_object_get(given, name);
    const char *near, *key = known_name(properties, name, &near);
    const struct argument a = {key, json_object_get(properties, key ? key : ""), e};
    bool has_pair = json_object_get(properties, "y") != NULL, is_pair = false;
    json_auto_t *plain = decode(v);
    bool whole_pair = !json_is_number(plain) && !json_is_null(plain);
    if (key && (!strcmp(key, name) || !json_object_get(given, key))) {
        bool x = has_pair && !strcmp(key, "x"), x2 = has_pair && !strcmp(key, "x2");
        json_auto_t *pair = (x || x2) && whole_pair ? read_numbers(v, 2) : NULL;
        int rc = !pair ? set(out, &a, v) : set_pair(out, properties, key, x ? "y" : "y2", v, key, e);
        return rc;
    }
    for (size_t i = 0; i < sizeof pair_names / sizeof *pair_names; i++)
        is_pair = is_pair || same_word(pair_names[i], name);
    if (has_pair && is_pair && is_present(v) && !is_present(json_object_get(given, "x")) &&
        !is_present(json_object_get(given, "y")))
        return set_pair(out, properties, "x", "y", v, name, e);
    if (near && !key)
        return err_set(e, ERR_USAGE, "unknown argument '%.60s'; did you mean '%s'?", name, near);
    if (json_array_size(ignored) < IGNORED_MAX)
        json_array_append_new(ignored, json_stringn(name, utf8_valid_prefix(name, strnlen(name, SHOWN_MAX))));
    return 0;
}

/* Returns the arguments as a new object, empty if there are none; NULL: `given` has another type. */
static json_t *as_object(const json_t *given)
{
    const char *text = json_string_value(given);
    json_t *plain = given ? decode(given) : NULL;
    bool none = !plain || json_is_null(plain) || (text && strspn(text, " \t\r\n") == strlen(text)) ||
                (json_is_array(plain) && !json_array_size(plain));
    if (!none && json_is_object(plain))
        return plain;
    json_decref(plain);
    return none ? json_object() : NULL;
}

json_t *arguments_read(const json_t *schema, const json_t *given, json_t *ignored, struct err *e)
{
    const json_t *properties = json_object_get(schema, "properties"), *required, *one;
    json_t *all = as_object(given), *out = json_object(), *value;
    const char *name;
    size_t i;
    int rc = all ? 0 : err_set(e, ERR_USAGE, "'arguments' must be an object; got %s", kind_name(given));
    json_object_foreach(all, name, value)
    {
        if (rc == 0)
            rc = take(out, properties, all, name, ignored, e);
    }
    required = json_object_get(schema, "required");
    json_array_foreach(required, i, one)
    {
        const char *key = json_string_value(one);
        const struct argument a = {key, json_object_get(properties, key), e};
        if (rc || json_object_get(out, key))
            continue;
        rc = missing(&a, json_object_get(all, key) != NULL);
    }
    json_decref(all);
    if (rc)
        json_decref(out);
    return rc ? NULL : out;
}
