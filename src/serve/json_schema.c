/* json_schema.c - see json_schema.h. */
#include "serve/json_schema.h"

#include "jinja/jinja.h"
#include "text/conversation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 24, MAX_NODES = 4000, MAX_PROPERTIES = 128, MAX_CHOICES = 512, WHOLE = 999999999 };

struct reading {
    struct gx *x;
    const json_t *root;
    int depth, nodes;
    char where[256]; /* "#/properties/name" */
    struct err *e;
};

static gx_node read_schema(struct reading *r, const json_t *s);

static int refuse(struct reading *r, const char *what)
{
    return err_set(r->e, ERR_USAGE, "schema at '#%s': %s", r->where, what);
}

static gx_node read_at(struct reading *r, const char *key, const json_t *s)
{
    size_t n = strlen(r->where);
    snprintf(r->where + n, sizeof r->where - n, "/%.90s", key);
    gx_node node = read_schema(r, s);
    r->where[n] = 0;
    return node;
}

static const json_t *get(const json_t *s, const char *key)
{
    return json_object_get(s, key);
}

/* A value as the grammar spells it. */
static gx_node literal(struct reading *r, const json_t *v)
{
    char *text = jinja_json_text(v);
    gx_node node = gx_lit(r->x, text);
    free(text);
    return node;
}

/* ---- keywords ------------------------------------------------------------------------------------ */

/* Members of a schema besides its type's own: read elsewhere, or said of people only. */
static const char *const common[] = {
    "type",     "enum",        "const",  "anyOf",      "oneOf",       "allOf",     "$ref",
    "$defs",    "definitions", "title",  "$schema",    "description", "default",   "$id",
    "examples", "$comment",    "strict", "deprecated", "readOnly",    "writeOnly", NULL};
static const char *const of_object[] = {"properties", "required", "additionalProperties", NULL};
static const char *const of_array[] = {"items", "minItems", "maxItems", NULL};
static const char *const of_string[] = {"minLength", "maxLength", NULL};
static const char *const of_number[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", NULL};
static const char *const of_none[] = {NULL};

static bool listed(const char *const *words, const char *word)
{
    while (*words && strcmp(*words, word) != 0)
        words++;
    return *words;
}

static int check_keywords(struct reading *r, const json_t *s, const char *const *own)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)s, key, v) if (!listed(common, key) && !listed(own, key))
    {
        char what[128];
        snprintf(what, sizeof what, "'%.60s' is not supported", key);
        return refuse(r, what);
    }
    return 0;
}

/* A whole number between bounds; `none` when it is missing. */
static int read_count(struct reading *r, const json_t *s, const char *key, int none, int *out)
{
    const json_t *v = get(s, key);
    json_int_t n = v ? json_integer_value(v) : none;
    if (v && (!json_is_integer(v) || n < -WHOLE || n > WHOLE)) {
        char what[128];
        snprintf(what, sizeof what, "'%s' must be a whole number of at most nine digits", key);
        return refuse(r, what);
    }
    *out = (int)n;
    return 0;
}

/* ---- numbers and texts ------------------------------------------------------------------------------- */

static int read_bounds(struct reading *r, const json_t *s, int *lo, int *hi)
{
    int above = 0, below = 0;
    if (read_count(r, s, "minimum", -WHOLE, lo) || read_count(r, s, "maximum", WHOLE, hi) ||
        read_count(r, s, "exclusiveMinimum", -WHOLE - 1, &above) ||
        read_count(r, s, "exclusiveMaximum", WHOLE + 1, &below))
        return -1;
    *lo = above + 1 > *lo ? above + 1 : *lo;
    *hi = below - 1 < *hi ? below - 1 : *hi;
    return *lo > *hi ? refuse(r, "no number is in this range") : 0;
}

static gx_node read_integer(struct reading *r, const json_t *s)
{
    int lo = 0, hi = 0;
    if (check_keywords(r, s, of_number) || read_bounds(r, s, &lo, &hi))
        return -1;
    return gx_int(r->x, lo, hi);
}

/* Digits after the point, not all of which are 0 in "-0.000": that is 0 all the same. */
static gx_node with_fraction(struct gx *x, int lo, int hi)
{
    return GX_SEQ(x, gx_int(x, lo, hi), gx_lit(x, "."), gx_repeat(x, gx_set(x, "0-9"), 1, 6));
}

static gx_node read_number(struct reading *r, const json_t *s)
{
    int lo = 0, hi = 0, n = 0;
    gx_node parts[3];
    if (check_keywords(r, s, of_number))
        return -1;
    if (get(s, "exclusiveMinimum") || get(s, "exclusiveMaximum"))
        return refuse(r, "exclusive bounds are supported for integers only");
    if (read_bounds(r, s, &lo, &hi))
        return -1;
    parts[n++] = gx_int(r->x, lo, hi);
    if (hi > 0 && hi > lo)
        parts[n++] = with_fraction(r->x, lo > 0 ? lo : 0, hi - 1);
    if (lo < 0 && hi > lo)
        parts[n++] = GX_SEQ(r->x, gx_lit(r->x, "-"), with_fraction(r->x, hi < 0 ? -hi : 0, -lo - 1));
    return gx_alt(r->x, n, parts);
}

static gx_node read_string(struct reading *r, const json_t *s)
{
    int min = 0, max = 0;
    if (check_keywords(r, s, of_string) || read_count(r, s, "minLength", 0, &min) ||
        read_count(r, s, "maxLength", -1, &max))
        return -1;
    if (min < 0 || min > GX_EXACT || max > GX_EXACT || (max >= 0 && max < min))
        return refuse(r, "lengths of a string must be in order and at most 256");
    return gx_json_string(r->x, min, max);
}

/* ---- lists and objects --------------------------------------------------------------------------------- */

static gx_node list_of(struct gx *x, gx_node item, int min, int max)
{
    gx_node rest = GX_SEQ(x, gx_lit(x, ", "), item);
    gx_node some = GX_SEQ(x, item, gx_repeat(x, rest, min > 0 ? min - 1 : 0, max < 0 ? -1 : max - 1));
    gx_node inside = max == 0 ? gx_lit(x, "") : min > 0 ? some : gx_repeat(x, some, 0, 1);
    return GX_SEQ(x, gx_lit(x, "["), inside, gx_lit(x, "]"));
}

static gx_node read_array(struct reading *r, const json_t *s)
{
    int min = 0, max = 0;
    if (check_keywords(r, s, of_array) || read_count(r, s, "minItems", 0, &min) ||
        read_count(r, s, "maxItems", -1, &max))
        return -1;
    if (min < 0 || min > GX_EXACT || max > GX_EXACT || (max >= 0 && max < min))
        return refuse(r, "numbers of items must be in order and at most 256");
    if (!get(s, "items"))
        return refuse(r, "an array needs 'items'");
    gx_node item = read_at(r, "items", get(s, "items"));
    return item < 0 ? -1 : list_of(r->x, item, min, max);
}

struct property {
    gx_node pair; /* "key": value */
    bool required;
};

/* Properties after the one that came first, each with its comma. */
static gx_node further(struct gx *x, const struct property *p, int n)
{
    gx_node *parts = xcalloc((unsigned long)n + 1, sizeof *parts);
    for (int i = 0; i < n; i++) {
        parts[i] = GX_SEQ(x, gx_lit(x, ", "), p[i].pair);
        parts[i] = p[i].required ? parts[i] : gx_repeat(x, parts[i], 0, 1);
    }
    gx_node node = gx_seq(x, n, parts);
    free(parts);
    return node;
}

/* One alternative for each property that can come first. */
static gx_node members(struct gx *x, const struct property *p, int n)
{
    gx_node *firsts = xcalloc((unsigned long)n + 1, sizeof *firsts);
    int k = 0, i = 0;
    for (; i < n; i++) {
        firsts[k++] = GX_SEQ(x, p[i].pair, further(x, p + i + 1, n - i - 1));
        if (p[i].required)
            break;
    }
    if (i == n)
        firsts[k++] = gx_lit(x, "");
    gx_node node = gx_alt(x, k, firsts);
    free(firsts);
    return node;
}

static bool is_required(const json_t *s, const char *name)
{
    json_t *v;
    size_t i;
    json_array_foreach(get(s, "required"), i,
                       v) if (json_is_string(v) && !strcmp(json_string_value(v), name)) return true;
    return false;
}

static int check_object(struct reading *r, const json_t *s)
{
    const json_t *more = get(s, "additionalProperties"), *all = get(s, "properties");
    json_t *v;
    size_t i;
    if (check_keywords(r, s, of_object))
        return -1;
    if (more && !json_is_boolean(more) && !(json_is_object(more) && !json_object_size(more)))
        return refuse(r, "'additionalProperties' with a schema is not supported");
    if ((all && !json_is_object(all)) || json_object_size(all) > MAX_PROPERTIES)
        return refuse(r, "'properties' must be an object of at most 128");
    json_array_foreach(
        get(s, "required"), i,
        v) if (!json_is_string(v) ||
               !get(all, json_string_value(
                             v))) return refuse(r, "'required' names a property that is not in 'properties'");
    return 0;
}

static gx_node read_object(struct reading *r, const json_t *s)
{
    struct property *p;
    const char *key;
    json_t *value;
    int n = 0;
    if (check_object(r, s))
        return -1;
    p = xcalloc(json_object_size(get(s, "properties")) + 1, sizeof *p);
    json_object_foreach((json_t *)(uintptr_t)get(s, "properties"), key, value)
    {
        char path[96];
        snprintf(path, sizeof path, "properties/%.60s", key);
        gx_node v = read_at(r, path, value);
        if (v < 0) {
            free(p);
            return -1;
        }
        json_t *name = json_string(key);
        p[n].required = is_required(s, key);
        p[n++].pair = GX_SEQ(r->x, literal(r, name), gx_lit(r->x, ": "), v);
        json_decref(name);
    }
    gx_node all = GX_SEQ(r->x, gx_lit(r->x, "{"), members(r->x, p, n), gx_lit(r->x, "}"));
    free(p);
    return all;
}

/* ---- alternatives ------------------------------------------------------------------------------------- */

static gx_node read_enum(struct reading *r, const json_t *list)
{
    size_t n = json_array_size(list);
    if (!n || n > MAX_CHOICES)
        return refuse(r, "'enum' must be a list of 1 to 512");
    gx_node *parts = xcalloc(n, sizeof *parts);
    for (size_t i = 0; i < n; i++)
        parts[i] = literal(r, json_array_get(list, i));
    gx_node node = gx_alt(r->x, (int)n, parts);
    free(parts);
    return node;
}

static const json_t *follow(const struct reading *r, const json_t *s)
{
    const char *ref = json_string_value(get(s, "$ref"));
    static const char *const places[] = {"$defs", "definitions"};
    for (int i = 0; ref && i < 2; i++) {
        size_t n = strlen(places[i]);
        if (!strncmp(ref, "#/", 2) && !strncmp(ref + 2, places[i], n) && ref[2 + n] == '/')
            return get(get(r->root, places[i]), ref + 3 + n);
    }
    return NULL;
}

/* The value that a required property of an object must have; NULL: it is not fixed. */
static const json_t *fixed(const json_t *s, const char *key)
{
    const json_t *p = get(get(s, "properties"), key), *list = get(p, "enum");
    if (!is_required(s, key))
        return NULL;
    return get(p, "const") ? get(p, "const") : json_array_size(list) == 1 ? json_array_get(list, 0) : NULL;
}

/* Whether nothing can be both: of different types, or objects that a property tells apart. */
static bool exclusive(const struct reading *r, const json_t *a, const json_t *b)
{
    a = get(a, "$ref") ? follow(r, a) : a;
    b = get(b, "$ref") ? follow(r, b) : b;
    const char *s = json_string_value(get(a, "type")), *t = json_string_value(get(b, "type")), *key;
    json_t *v;
    if (!s || !t)
        return false;
    bool numbers = strstr("integer number", s) && strstr("integer number", t);
    if (strcmp(s, t) != 0)
        return !numbers;
    json_object_foreach((json_t *)(uintptr_t)get(a, "properties"), key, v)
    {
        const json_t *x = fixed(a, key), *y = fixed(b, key);
        if (x && y && !json_equal(x, y))
            return true;
    }
    return false;
}

static gx_node read_choices(struct reading *r, const json_t *list, bool one)
{
    size_t n = json_array_size(list);
    if (!n || n > MAX_CHOICES)
        return refuse(r, "'anyOf' and 'oneOf' must be lists of 1 to 512");
    for (size_t i = 0; one && i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (!exclusive(r, json_array_get(list, i), json_array_get(list, k)))
                return refuse(r, "'oneOf' whose alternatives overlap is not supported; use 'anyOf'");
    gx_node *parts = xcalloc(n, sizeof *parts), node = 0;
    for (size_t i = 0; i < n && node >= 0; i++) {
        char name[24];
        snprintf(name, sizeof name, "%s/%zu", one ? "oneOf" : "anyOf", i);
        node = parts[i] = read_at(r, name, json_array_get(list, i));
    }
    node = node < 0 ? -1 : gx_alt(r->x, (int)n, parts);
    free(parts);
    return node;
}

static gx_node read_type(struct reading *r, const json_t *s, const char *type)
{
    static const struct {
        const char *name;
        gx_node (*read)(struct reading *r, const json_t *s);
    } types[] = {{"object", read_object},   {"array", read_array},   {"string", read_string},
                 {"integer", read_integer}, {"number", read_number}, {NULL, NULL}};
    for (int i = 0; types[i].name; i++)
        if (!strcmp(type, types[i].name))
            return types[i].read(r, s);
    if (strcmp(type, "boolean") != 0 && strcmp(type, "null") != 0)
        return refuse(r, "unknown 'type'");
    if (check_keywords(r, s, of_none))
        return -1;
    return *type == 'n' ? gx_lit(r->x, "null") : GX_ALT(r->x, gx_lit(r->x, "true"), gx_lit(r->x, "false"));
}

/* {"type": ["string", "null"]}: the keywords of one type are not those of another, so each is asked with
 * those that it knows. */
static gx_node read_types(struct reading *r, const json_t *s, const json_t *list)
{
    gx_node parts[8];
    int n = 0;
    json_t *type;
    size_t i;
    json_array_foreach(list, i, type)
    {
        bool plain = json_is_string(type) && (!strcmp(json_string_value(type), "null") ||
                                              !strcmp(json_string_value(type), "boolean"));
        json_t *bare = json_pack("{s:O?}", "type", type);
        gx_node node = !json_is_string(type) || n == 8
                           ? refuse(r, "'type' must be names of types")
                           : read_type(r, plain ? bare : s, json_string_value(type));
        json_decref(bare);
        if (node < 0)
            return -1;
        parts[n++] = node;
    }
    return n ? gx_alt(r->x, n, parts) : refuse(r, "'type' is an empty list");
}

/* The keyword that decides, and nothing beside it that would be forgotten. */
static gx_node read_decided(struct reading *r, const json_t *s)
{
    const json_t *type = get(s, "type"), *all = get(s, "allOf");
    int ways =
        (get(s, "anyOf") != NULL) + (get(s, "oneOf") != NULL) + (all != NULL) + (get(s, "$ref") != NULL);
    if (ways > 1 || (ways && (get(s, "properties") || get(s, "enum") || get(s, "const"))))
        return refuse(r, "more than one of anyOf, oneOf, allOf, $ref, properties and enum");
    if (get(s, "const"))
        return literal(r, get(s, "const"));
    if (get(s, "enum"))
        return read_enum(r, get(s, "enum"));
    if (get(s, "$ref"))
        return follow(r, s) ? read_at(r, "$ref", follow(r, s)) : refuse(r, "'$ref' leads nowhere");
    if (get(s, "anyOf") || get(s, "oneOf"))
        return read_choices(r, get(s, "anyOf") ? get(s, "anyOf") : get(s, "oneOf"), get(s, "oneOf"));
    if (all)
        return json_array_size(all) == 1 ? read_at(r, "allOf", json_array_get(all, 0))
                                         : refuse(r, "'allOf' of several is not supported");
    if (json_is_array(type))
        return read_types(r, s, type);
    if (json_is_string(type))
        return read_type(r, s, json_string_value(type));
    return refuse(r, "a schema without 'type', 'enum', 'const', 'anyOf' or '$ref' is not supported");
}

static gx_node read_schema(struct reading *r, const json_t *s)
{
    if (!json_is_object(s))
        return refuse(r, "a schema must be an object");
    if (r->depth == MAX_DEPTH)
        return refuse(r, "nested deeper than 24, or it contains itself, which a regular grammar cannot");
    if (++r->nodes > MAX_NODES)
        return refuse(r, "the schema has more than 4000 parts");
    r->depth++;
    gx_node node = read_decided(r, s);
    r->depth--;
    return node;
}

gx_node json_schema_expression(struct gx *x, const json_t *schema, struct err *e)
{
    struct reading r = {.x = x, .root = schema, .e = e};
    return read_schema(&r, schema);
}

/* ---- any JSON ------------------------------------------------------------------------------------------ */

static gx_node any_object(struct gx *x, int deep);

static gx_node any_value(struct gx *x, int deep)
{
    gx_node number =
        GX_SEQ(x, gx_int(x, -WHOLE, WHOLE),
               gx_repeat(x, GX_SEQ(x, gx_lit(x, "."), gx_repeat(x, gx_set(x, "0-9"), 1, 6)), 0, 1));
    gx_node plain =
        GX_ALT(x, gx_json_string(x, 0, -1), number, gx_lit(x, "true"), gx_lit(x, "false"), gx_lit(x, "null"));
    if (deep == 0)
        return plain;
    return GX_ALT(x, plain, any_object(x, deep), list_of(x, any_value(x, deep - 1), 0, -1));
}

static gx_node any_object(struct gx *x, int deep)
{
    gx_node pair = GX_SEQ(x, gx_json_string(x, 0, -1), gx_lit(x, ": "), any_value(x, deep - 1));
    gx_node rest = gx_repeat(x, GX_SEQ(x, gx_lit(x, ", "), pair), 0, -1);
    return GX_SEQ(x, gx_lit(x, "{"), gx_repeat(x, GX_SEQ(x, pair, rest), 0, 1), gx_lit(x, "}"));
}

gx_node json_any_object(struct gx *x)
{
    return any_object(x, 3);
}
