/* json_schema_parts.c - compiles arrays and objects of a schema (json_schema.h). */
#include "serve/json_schema_impl.h"

#include "jinja/jinja.h"

#include <stdlib.h>
#include <string.h>

static const json_t *get(const json_t *s, const char *key)
{
    return json_object_get(s, key);
}

gx_node schema_literal(struct gx *x, const json_t *v)
{
    autofree char *text = jinja_json_text(v);
    gx_node node = gx_lit(x, text);
    return node;
}

/* ---- arrays ------------------------------------------------------------------------------------------ */

gx_node schema_list_of(struct gx *x, gx_node item, int min, int max)
{
    gx_node rest = GX_SEQ(x, gx_lit(x, ", "), item);
    gx_node some = GX_SEQ(x, item, gx_repeat(x, rest, min > 0 ? min - 1 : 0, max < 0 ? -1 : max - 1));
    gx_node inside = max == 0 ? gx_lit(x, "") : min > 0 ? some : gx_repeat(x, some, 0, 1);
    return GX_SEQ(x, gx_lit(x, "["), inside, gx_lit(x, "]"));
}

/* Reads a tuple: the first n items have their own schemas, followed by min to max further items. */
static gx_node read_tuple(struct schema_reading *r, const json_t *list, int n, gx_node more, int min, int max)
{
    gx_node parts[2 * SCHEMA_PROPERTIES];
    int k = 0;
    for (int i = 0; i < n; i++) {
        char path[32];
        snprintf(path, sizeof path, "prefixItems/%d", i);
        gx_node item = schema_read_at(r, path, json_array_get(list, (size_t)i));
        if (item < 0)
            return item;
        if (i)
            parts[k++] = gx_lit(r->x, ", ");
        parts[k++] = item;
    }
    gx_node first = gx_seq(r->x, k, parts);
    if (more < 0 || max == 0)
        return min > 0 ? schema_refuse(r, "'minItems' is above the number of items")
                       : GX_SEQ(r->x, gx_lit(r->x, "["), first, gx_lit(r->x, "]"));
    gx_node rest = gx_repeat(r->x, GX_SEQ(r->x, gx_lit(r->x, ", "), more), min > 0 ? min : 0, max);
    return GX_SEQ(r->x, gx_lit(r->x, "["), first, rest, gx_lit(r->x, "]"));
}

/* Reads the schema of items without their own one. *closed: no such items are allowed. */
static gx_node read_items(struct schema_reading *r, const json_t *items, bool tuple, bool *closed)
{
    *closed = json_is_false(items) || (tuple && !items);
    if (*closed)
        return IMPOSSIBLE;
    return items ? schema_read_at(r, "items", items) : schema_any_value(r->x, 2);
}

gx_node schema_array(struct schema_reading *r, const json_t *s)
{
    const json_t *prefix = get(s, "prefixItems"), *items = get(s, "items");
    int min = 0, max = 0;
    bool closed;
    if (json_is_array(items)) { /* as in earlier drafts */
        prefix = items;
        items = get(s, "additionalItems");
    }
    int n = (int)json_array_size(prefix);
    if (schema_count(r, s, "minItems", 0, &min) || schema_count(r, s, "maxItems", -1, &max))
        return -1;
    if (n > SCHEMA_PROPERTIES || (max >= 0 && max < min))
        return schema_refuse(r, "numbers of items must be in order, and at most 128 items listed");
    gx_node item = read_items(r, items, n > 0, &closed);
    if (item == -1)
        return -1;
    if (n)
        return read_tuple(r, prefix, max >= 0 && max < n ? max : n, item, min - n,
                          max < 0   ? -1
                          : max > n ? max - n
                                    : 0);
    if (item >= 0)
        return schema_list_of(r->x, item, min, max);
    return min == 0 ? gx_lit(r->x, "[]") : closed ? schema_refuse(r, "no item is allowed") : IMPOSSIBLE;
}

/* ---- objects ------------------------------------------------------------------------------------------- */

struct property {
    gx_node pair; /* "key": value */
    bool required;
};

/* Returns the properties after the first present one, each with its comma. */
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

/* Returns one alternative for each property that can be the first. */
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

/* Reads the schema for values of unlisted names. */
static gx_node read_more(struct schema_reading *r, const json_t *s)
{
    const json_t *more = get(s, "additionalProperties"), *patterns = get(s, "patternProperties");
    const json_t *first = json_object_iter_value(json_object_iter((json_t *)(uintptr_t)patterns));
    if (first)
        notes_ignore(r->notes, "schema: patternProperties");
    if (json_is_object(more) || !first)
        return json_is_object(more) ? schema_read_at(r, "additionalProperties", more)
                                    : schema_any_value(r->x, 2);
    return schema_read_at(r, "patternProperties", first);
}

/* Adds a property. Returns IMPOSSIBLE if it is required and has no finite value. */
static int add_property(struct schema_reading *r, struct property *p, int *n, const char *key, gx_node value,
                        bool required)
{
    if (value < 0)
        return value == IMPOSSIBLE && !required ? 0 : value;
    json_auto_t *name = json_string(key);
    p[*n].required = required;
    p[(*n)++].pair = GX_SEQ(r->x, schema_literal(r->x, name), gx_lit(r->x, ": "), value);
    return 0;
}

/* Reads listed properties in their order, then required names that are not listed. */
static int read_properties(struct schema_reading *r, const json_t *s, struct property *p, int *n)
{
    const json_t *all = get(s, "properties");
    const char *key;
    json_t *value;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)all, key, value)
    {
        char path[96];
        snprintf(path, sizeof path, "properties/%.60s", key);
        int rc = add_property(r, p, n, key, schema_read_at(r, path, value), is_required(s, key));
        if (rc)
            return rc;
    }
    json_array_foreach(get(s, "required"), i, value)
    {
        key = json_string_value(value);
        if (!key)
            return schema_refuse(r, "'required' must be a list of names");
        int rc = get(all, key) ? 0 : add_property(r, p, n, key, read_more(r, s), true);
        if (rc)
            return rc;
    }
    return 0;
}

/* Reads an object with any number of members of any name, or of the names that propertyNames lists. */
static gx_node read_map(struct schema_reading *r, const json_t *s)
{
    const json_t *names = get(get(s, "propertyNames"), "enum"), *one = get(get(s, "propertyNames"), "const");
    gx_node value = read_more(r, s), parts[SCHEMA_PROPERTIES];
    int n = 0;
    if (value < 0)
        return value == IMPOSSIBLE ? gx_lit(r->x, "{}") : value;
    if (!names && get(s, "propertyNames"))
        notes_ignore(r->notes, "schema: propertyNames");
    for (size_t i = 0; i < json_array_size(names) && n < SCHEMA_PROPERTIES; i++)
        if (json_is_string(json_array_get(names, i)))
            parts[n++] = schema_literal(r->x, json_array_get(names, i));
    if (json_is_string(one))
        parts[n++] = schema_literal(r->x, one);
    gx_node name = n ? gx_alt(r->x, n, parts) : gx_json_string(r->x, 0, -1);
    gx_node pair = GX_SEQ(r->x, name, gx_lit(r->x, ": "), value);
    gx_node rest = gx_repeat(r->x, GX_SEQ(r->x, gx_lit(r->x, ", "), pair), 0, -1);
    return GX_SEQ(r->x, gx_lit(r->x, "{"), gx_repeat(r->x, GX_SEQ(r->x, pair, rest), 0, 1),
                  gx_lit(r->x, "}"));
}

gx_node schema_object(struct schema_reading *r, const json_t *s)
{
    const json_t *all = get(s, "properties"), *more = get(s, "additionalProperties");
    size_t listed = json_object_size(all), required = json_array_size(get(s, "required"));
    bool open = json_is_object(more) || json_is_true(more) || get(s, "patternProperties") || (!all && !more);
    int n = 0;
    if ((all && !json_is_object(all)) || listed + required > 2 * SCHEMA_PROPERTIES)
        return schema_refuse(r, "'properties' must be an object with at most 128 members");
    if (!listed && !required && open)
        return read_map(r, s);
    autofree struct property *p = xcalloc(listed + required + 1, sizeof *p);
    int rc = read_properties(r, s, p, &n);
    gx_node node = rc ? rc : GX_SEQ(r->x, gx_lit(r->x, "{"), members(r->x, p, n), gx_lit(r->x, "}"));
    return node;
}
