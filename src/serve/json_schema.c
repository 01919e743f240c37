/* json_schema.c - compiles keywords, references and alternatives of a JSON schema; see json_schema.h. */
#include "serve/json_schema_impl.h"

#include "base/buf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int schema_refuse(struct schema_reading *r, const char *why)
{
    return err_set(r->e, ERR_USAGE, "schema at '#%s': %s", r->where, why);
}

gx_node schema_read_at(struct schema_reading *r, const char *key, const json_t *s)
{
    size_t n = strlen(r->where);
    snprintf(r->where + n, sizeof r->where - n, "/%.90s", key);
    gx_node node = schema_read(r, s);
    r->where[n] = 0;
    return node;
}

static const json_t *get(const json_t *s, const char *key)
{
    return json_object_get(s, key);
}

/* ---- keywords ------------------------------------------------------------------------------------------ */

/* Keywords that are enforced or noted elsewhere, and keywords that do not restrict values. */
static const char *const known[] = {
    "type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions", "nullable",
    "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "items",
    "prefixItems", "additionalItems", "minItems", "maxItems", "minLength", "maxLength", "pattern", "format",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    /* annotations */
    "title", "$schema", "description", "default", "$id", "id", "$anchor", "examples", "example", "$comment",
    "strict", "deprecated", "readOnly", "writeOnly", "discriminator", "propertyOrdering", "enumNames",
    "enumDescriptions", "markdownDescription", "contentMediaType", "errorMessage", "name", NULL};

static void note_keywords(struct schema_reading *r, const json_t *s)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)s, key,
                        v) if (!text_listed(known, key) && strncmp(key, "x-", 2) != 0)
        notes_ignore(r->notes, "schema: %.40s", key);
}

int schema_count(struct schema_reading *r, const json_t *s, const char *key, int none, int *out)
{
    const json_t *v = get(s, key);
    double d = json_number_value(v);
    char why[96];
    *out = none;
    if (!v)
        return 0;
    snprintf(why, sizeof why, "'%s' must be a whole number from 0", key);
    if (!json_is_number(v) || d < 0 || d > trunc(d))
        return schema_refuse(r, why);
    if (d > GX_EXACT)
        notes_ignore(r->notes, "schema: %s above %d", key, GX_EXACT);
    *out = d <= GX_EXACT ? (int)d : none < 0 ? none : GX_EXACT;
    return 0;
}

/* ---- references ---------------------------------------------------------------------------------------- */

/* Copies the next step of a JSON pointer and resolves ~0, ~1 and %XX. Returns the rest of the pointer. */
static const char *pointer_step(const char *p, char out[128])
{
    size_t n = 0;
    for (; *p && *p != '/'; p++) {
        unsigned byte;
        char c = *p;
        if (c == '~' && (p[1] == '0' || p[1] == '1'))
            c = *++p == '0' ? '~' : '/';
        else if (c == '%' && sscanf(p + 1, "%2x", &byte) == 1 && byte && p[2]) {
            c = (char)byte;
            p += 2;
        }
        if (n < 127)
            out[n++] = c;
    }
    out[n] = 0;
    return p;
}

/* Returns the target of "#/..." or "#", or NULL. */
static const json_t *follow(const struct schema_reading *r, const json_t *s)
{
    const char *p = json_string_value(get(s, "$ref"));
    const json_t *at = r->root;
    char step[128];
    if (!p || *p++ != '#')
        return NULL;
    while (at && *p == '/') {
        p = pointer_step(p + 1, step);
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(step)) : get(at, step);
    }
    return *p ? NULL : at;
}

static gx_node read_reference(struct schema_reading *r, const json_t *s)
{
    const json_t *target = follow(r, s);
    int inside = 0;
    if (!target)
        return schema_refuse(r, "the target of '$ref' is not in this schema");
    for (int i = 0; i < r->n_open; i++)
        inside += r->open[i] == target;
    if (inside == SCHEMA_NESTED || r->n_open == SCHEMA_DEPTH)
        return IMPOSSIBLE;
    r->open[r->n_open++] = target;
    gx_node node = schema_read_at(r, "$ref", target);
    r->n_open--;
    return node;
}

/* ---- alternatives -------------------------------------------------------------------------------------- */

static gx_node read_enum(struct schema_reading *r, const json_t *list)
{
    size_t n = json_array_size(list);
    if (!n || n > SCHEMA_CHOICES)
        return schema_refuse(r, "'enum' must be a list of 1 to 512 values");
    gx_node *parts = xcalloc(n, sizeof *parts);
    for (size_t i = 0; i < n && !gx_failed(r->x, NULL); i++)
        parts[i] = schema_literal(r->x, json_array_get(list, i));
    gx_node node = gx_alt(r->x, (int)n, parts);
    free(parts);
    return node;
}

/* Returns the values that a schema lists as a new list, or NULL. */
static json_t *values_of(const json_t *s)
{
    json_t *one = get(s, "const") ? (json_t *)(uintptr_t)get(s, "const") : NULL,
           *list = (json_t *)(uintptr_t)get(s, "enum");
    return one ? json_pack("[O]", one) : json_is_array(list) ? json_incref(list) : NULL;
}

/* Adds the values of a list to a set, by their JSON text; frees the list. Returns whether all are new; false
 * for NULL. */
static bool add_new_values(const struct schema_reading *r, json_t *set, json_t *list)
{
    bool fresh = list != NULL;
    json_t *v;
    size_t i;
    json_array_foreach(list, i, v)
    {
        char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_SORT_KEYS);
        fresh = fresh && text && !json_object_get(set, text);
        if (!fresh || effort_over(gx_effort(r->x), 64 + (unsigned)strlen(text))) {
            free(text);
            break;
        }
        json_object_set_new(set, text, json_true());
        free(text);
    }
    json_decref(list);
    return fresh;
}

static const json_t *resolved(const struct schema_reading *r, const json_t *s)
{
    return get(s, "$ref") ? follow(r, s) : s;
}

static bool requires(const struct schema_reading *r, const json_t *s, const char *key)
{
    json_t *v;
    size_t i;
    effort_over(gx_effort(r->x), (unsigned)json_array_size(get(s, "required")));
    json_array_foreach(get(s, "required"), i,
                       v) if (json_is_string(v) && !strcmp(json_string_value(v), key)) return true;
    return false;
}

/* Returns whether the schemas in a list that have this type differ in their values, or with a key in the
 * values of a property that all require. Each value is looked up once. */
static bool differ_in(const struct schema_reading *r, const json_t *list, const char *type, const char *key)
{
    json_t *set = json_object(), *one;
    bool differ = true;
    size_t i;
    json_array_foreach(list, i, one)
    {
        const json_t *s = resolved(r, one);
        const char *name = json_string_value(get(s, "type"));
        if (!differ || (type && (!name || strcmp(type, name) != 0)))
            continue;
        differ =
            !key ? add_new_values(r, set, values_of(s))
                 : requires(r, s, key) && add_new_values(r, set, values_of(get(get(s, "properties"), key)));
    }
    json_decref(set);
    return differ;
}

/* Returns whether the schemas of one type exclude each other. */
static bool type_excludes(const struct schema_reading *r, const json_t *list, const json_t *first)
{
    const char *type = json_string_value(get(first, "type")), *key;
    json_t *v;
    int n = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(get(resolved(r, json_array_get(list, i)), "type"));
        n += !strcmp(name, type);
    }
    if (n == 1 || differ_in(r, list, type, NULL))
        return true;
    json_object_foreach((json_t *)(uintptr_t)get(first, "properties"), key, v)
    {
        if ((get(v, "const") || get(v, "enum")) && differ_in(r, list, type, key))
            return true;
    }
    return false;
}

/* Returns whether no value matches two of the schemas: they differ in their types or values, or as objects in
 * the values of one property. Returns false if that is not obvious. */
static bool exclusive(const struct schema_reading *r, const json_t *list)
{
    json_t *types = json_object(), *one;
    bool apart = true;
    size_t i;
    if (differ_in(r, list, NULL, NULL)) {
        json_decref(types);
        return true;
    }
    json_array_foreach(list, i, one)
    {
        apart = apart && json_is_string(get(resolved(r, one), "type"));
        if (apart)
            json_object_set(types, json_string_value(get(resolved(r, one), "type")), one);
    }
    const char *type;
    apart = apart && !(json_object_get(types, "integer") && json_object_get(types, "number"));
    json_object_foreach(types, type, one) apart = apart && type_excludes(r, list, resolved(r, one));
    json_decref(types);
    return apart;
}

static gx_node read_choices(struct schema_reading *r, const json_t *list, bool one)
{
    size_t n = json_array_size(list), possible = 0;
    if (!n || n > SCHEMA_CHOICES)
        return schema_refuse(r, "'anyOf' and 'oneOf' must be lists of 1 to 512 schemas");
    if (one && !exclusive(r, list))
        notes_ignore(r->notes, "schema: oneOf (read as anyOf)");
    gx_node *parts = xcalloc(n, sizeof *parts), node = 0;
    for (size_t i = 0; i < n && node != -1; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s/%zu", one ? "oneOf" : "anyOf", i);
        node = schema_read_at(r, name, json_array_get(list, i));
        if (node >= 0)
            parts[possible++] = node;
    }
    node = node == -1 ? -1 : possible ? gx_alt(r->x, (int)possible, parts) : IMPOSSIBLE;
    free(parts);
    return node;
}

/* ---- merging ------------------------------------------------------------------------------------------- */

static void merge_member(struct schema_reading *r, json_t *into, const char *key, json_t *v)
{
    json_t *old = json_object_get(into, key);
    r->copied += 1 + json_object_size(v) + json_array_size(v);
    if (r->copied > SCHEMA_MERGED || !strcmp(key, "allOf") || !strcmp(key, "$ref"))
        return;
    if (!old)
        json_object_set_new(into, key, json_copy(v));
    else if (!strcmp(key, "properties"))
        json_object_update(old, v);
    else if (!strcmp(key, "required"))
        json_array_extend(old, v);
}

/* Merges the keywords of a schema into another one. */
static void merge(struct schema_reading *r, json_t *into, const json_t *s, int depth)
{
    const char *key;
    json_t *v;
    size_t i;
    const json_t *target = get(s, "$ref") ? follow(r, s) : NULL;
    if (depth == 0 || ++r->copied > SCHEMA_MERGED)
        return;
    if (target)
        merge(r, into, target, depth - 1);
    json_array_foreach(get(s, "allOf"), i, v) merge(r, into, v, depth - 1);
    json_object_foreach((json_t *)(uintptr_t)s, key, v) merge_member(r, into, key, v);
}

/* Reads allOf and the keywords next to it as one schema. */
static gx_node read_merged(struct schema_reading *r, const json_t *s)
{
    json_t *whole = json_object();
    merge(r, whole, s, SCHEMA_DEPTH / 3);
    json_array_append_new(r->merged, whole);
    if (r->copied > SCHEMA_MERGED)
        return schema_refuse(r, "'allOf' merges more than 65536 members");
    return schema_read(r, whole);
}

/* ---- types --------------------------------------------------------------------------------------------- */

static gx_node read_type(struct schema_reading *r, const json_t *s, const char *type)
{
    static const struct {
        const char *name;
        gx_node (*read)(struct schema_reading *r, const json_t *s);
    } types[] = {{"object", schema_object},   {"array", schema_array},   {"string", schema_string},
                 {"integer", schema_integer}, {"number", schema_number}, {NULL, NULL}};
    for (int i = 0; types[i].name; i++)
        if (!strcmp(type, types[i].name))
            return types[i].read(r, s);
    if (!strcmp(type, "null"))
        return gx_lit(r->x, "null");
    return strcmp(type, "boolean") != 0 ? schema_refuse(r, "unknown 'type'")
                                        : GX_ALT(r->x, gx_lit(r->x, "true"), gx_lit(r->x, "false"));
}

/* Reads {"type": ["string", "null"]}; each type uses the keywords that apply to it. */
static gx_node read_types(struct schema_reading *r, const json_t *s, const json_t *list)
{
    gx_node parts[8];
    int n = 0;
    json_t *type;
    size_t i;
    json_array_foreach(list, i, type)
    {
        gx_node node = !json_is_string(type) || n == 8 ? schema_refuse(r, "'type' must be names of types")
                                                       : read_type(r, s, json_string_value(type));
        if (node == -1)
            return -1;
        if (node >= 0)
            parts[n++] = node;
    }
    return n                       ? gx_alt(r->x, n, parts)
           : json_array_size(list) ? IMPOSSIBLE
                                   : schema_refuse(r, "'type' is an empty list");
}

/* Reads a schema without 'type': infers the type from its keywords; without any, accepts any value. */
static gx_node read_untyped(struct schema_reading *r, const json_t *s)
{
    static const struct {
        const char *keyword, *type;
    } hints[] = {{"properties", "object"}, {"additionalProperties", "object"},
                 {"required", "object"},   {"items", "array"},
                 {"prefixItems", "array"}, {"minLength", "string"},
                 {"maxLength", "string"},  {"pattern", "string"},
                 {"format", "string"},     {"minimum", "number"},
                 {"maximum", "number"}};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (get(s, hints[i].keyword))
            return read_type(r, s, hints[i].type);
    return schema_any_value(r->x, 2);
}

/* Reads the keyword with the highest precedence; others next to it are noted. */
static gx_node read_decided(struct schema_reading *r, const json_t *s)
{
    const json_t *type = get(s, "type"), *any = get(s, "anyOf"), *one = get(s, "oneOf");
    if (get(s, "const"))
        return schema_literal(r->x, get(s, "const"));
    if (get(s, "enum"))
        return read_enum(r, get(s, "enum"));
    if (get(s, "allOf") || (get(s, "$ref") && get(s, "properties")))
        return read_merged(r, s);
    if (get(s, "$ref"))
        return read_reference(r, s);
    if ((any || one) && !get(s, "properties"))
        return read_choices(r, any ? any : one, !any);
    if (any || one)
        notes_ignore(r->notes, "schema: %s beside properties", any ? "anyOf" : "oneOf");
    if (json_is_array(type))
        return read_types(r, s, type);
    return json_is_string(type) ? read_type(r, s, json_string_value(type)) : read_untyped(r, s);
}

gx_node schema_read(struct schema_reading *r, const json_t *s)
{
    if (json_is_boolean(s))
        return json_is_true(s) ? schema_any_value(r->x, 2) : IMPOSSIBLE;
    if (!json_is_object(s))
        return schema_refuse(r, "a schema must be an object");
    if (r->depth == SCHEMA_DEPTH)
        return schema_refuse(r, "nested deeper than 24");
    if (++r->nodes > SCHEMA_NODES)
        return schema_refuse(r, "the schema has more than 4000 parts");
    struct err why = ERR_INIT;
    if (gx_failed(r->x, &why))
        return err_set(r->e, why.kind, "schema at '#%s': %s", r->where, why.text);
    r->depth++;
    note_keywords(r, s);
    gx_node node = read_decided(r, s);
    if (node >= 0 && json_is_true(get(s, "nullable")))
        node = GX_ALT(r->x, node, gx_lit(r->x, "null"));
    r->depth--;
    return node;
}

static gx_node read_whole(struct gx *x, const json_t *schema, struct notes *n, struct err *e)
{
    struct schema_reading r = {.x = x, .root = schema, .merged = json_array(), .notes = n, .e = e};
    r.open[r.n_open++] = schema;
    gx_node node = schema_read(&r, schema);
    json_decref(r.merged);
    if (node >= 0 && gx_failed(x, e))
        return -1;
    return node == IMPOSSIBLE ? schema_refuse(&r, "no finite value matches: the schema requires itself")
                              : node;
}

gx_node json_schema_expression(struct gx *x, const json_t *schema, struct err *e)
{
    return read_whole(x, schema, NULL, e);
}

int json_schema_check(const json_t *schema, struct notes *n, struct effort *w, struct err *e)
{
    struct gx *x = gx_new_within(w);
    gx_node node = read_whole(x, schema, n, e);
    gx_free(x);
    return node < 0 ? -1 : 0;
}
