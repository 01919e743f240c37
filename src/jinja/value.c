/* value.c - arena, strings, lists, dicts and comparison of values (jinja_impl.h). */
#include "jinja/jinja_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- arena -------------------------------------------------------------------------------------------- */

enum { BLOCK = 64 << 10 };

struct block {
    struct block *next;
    size_t used, size;
    _Alignas(16) char data[];
};

struct jinja_arena {
    struct block *blocks;
    size_t total;
    struct jx *x; /* whose rendering fails at the limit; NULL: no limit */
};

struct jinja_arena *jinja_arena_new(void)
{
    return xcalloc(1, sizeof(struct jinja_arena));
}

void jinja_arena_free(struct jinja_arena *a)
{
    if (!a)
        return;
    while (a->blocks) {
        autofree struct block *b = a->blocks;
        a->blocks = b->next;
    }
    free(a);
}

void jx_arena_guard(struct jinja_arena *a, struct jx *x)
{
    a->x = x;
}

void *jx_arena_take(struct jinja_arena *a, size_t n)
{
    n = (n + 15) & ~(size_t)15;
    struct block *b = a->blocks;
    if (!b || b->size - b->used < n) {
        size_t size = n > BLOCK ? n : BLOCK;
        if (a->x && a->total + size > JINJA_MAX_MEMORY)
            jx_fail(a->x, "the template needs more than %d MiB", JINJA_MAX_MEMORY >> 20);
        b = xcalloc(1, sizeof *b + size);
        b->size = size;
        b->next = a->blocks;
        a->blocks = b;
        a->total += size;
    }
    void *p = b->data + b->used;
    b->used += n;
    return p;
}

/* ---- construction ---------------------------------------------------------------------------------- */

struct jinja_value value_string(struct jinja_arena *a, const char *text, size_t len, const uint8_t *origin)
{
    struct jinja_string *s = jx_arena_take(a, sizeof *s);
    *s = (struct jinja_string){.data = text, .len = len, .origin = origin};
    return (struct jinja_value){.kind = JINJA_STRING, .s = s};
}

struct jinja_value value_of(struct jinja_arena *a, const char *text)
{
    return jinja_text(a, text, strlen(text), JINJA_TEMPLATE);
}

struct jinja_value jinja_text(struct jinja_arena *a, const char *text, size_t len, enum jinja_origin origin)
{
    char *copy = jx_arena_take(a, len + 1);
    uint8_t *origins = origin == JINJA_TEMPLATE ? NULL : jx_arena_take(a, len + 1);
    if (len)
        memcpy(copy, text, len);
    if (origins)
        memset(origins, (int)origin, len);
    return value_string(a, copy, len, origins);
}

struct jinja_value jinja_bool(bool b)
{
    return (struct jinja_value){.kind = JINJA_BOOL, .b = b};
}

struct jinja_value value_int(int64_t i)
{
    return (struct jinja_value){.kind = JINJA_INT, .i = i};
}

struct jinja_value value_none(void)
{
    return (struct jinja_value){.kind = JINJA_NONE};
}

struct jinja_value value_undefined(const char *name)
{
    return (struct jinja_value){.kind = JINJA_UNDEFINED, .name = name};
}

struct jinja_value jinja_list(struct jinja_arena *a)
{
    return (struct jinja_value){.kind = JINJA_LIST, .l = jx_arena_take(a, sizeof(struct jinja_list))};
}

struct jinja_value value_tuple(struct jinja_arena *a)
{
    struct jinja_value v = jinja_list(a);
    v.kind = JINJA_TUPLE;
    return v;
}

struct jinja_value jinja_dict(struct jinja_arena *a)
{
    return (struct jinja_value){.kind = JINJA_DICT, .d = jx_arena_take(a, sizeof(struct jinja_dict))};
}

struct jinja_value value_form(struct jinja_value list, int form)
{
    list.l->form = form;
    return list;
}

void want_plain(struct jx *x, struct jinja_value v)
{
    if ((v.kind == JINJA_LIST || v.kind == JINJA_TUPLE) && v.l->form)
        jx_fail(x, "line %d: this is not a list before the filter 'list'", x->line);
}

static void *grow(struct jinja_arena *a, const void *old, int n, int cap, size_t size)
{
    void *p = jx_arena_take(a, (size_t)cap * size);
    if (n)
        memcpy(p, old, (size_t)n * size);
    return p;
}

void jinja_add(struct jinja_arena *a, struct jinja_value list, struct jinja_value item)
{
    struct jinja_list *l = list.l;
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 8;
        l->items = grow(a, l->items, l->n, l->cap, sizeof *l->items);
    }
    l->items[l->n++] = item;
}

/* Adds a key that the dict does not contain. */
static void append(struct jinja_arena *a, struct jinja_dict *d, struct jinja_value key, struct jinja_value v)
{
    if (d->n == d->cap) {
        d->cap = d->cap ? d->cap * 2 : 8;
        d->keys = grow(a, d->keys, d->n, d->cap, sizeof *d->keys);
        d->values = grow(a, d->values, d->n, d->cap, sizeof *d->values);
    }
    d->keys[d->n] = key;
    d->values[d->n++] = v;
}

void dict_put(struct jinja_arena *a, struct jinja_dict *d, struct jinja_value key, struct jinja_value v)
{
    struct jinja_value *at = dict_find(d, key);
    if (at)
        *at = v;
    else
        append(a, d, key, v);
}

void jinja_set(struct jinja_arena *a, struct jinja_value dict, const char *key, struct jinja_value v)
{
    dict_put(a, dict.d, value_of(a, key), v);
}

struct jinja_value jinja_concat(struct jinja_arena *a, struct jinja_value texts)
{
    size_t len = 0, at = 0;
    for (int i = 0; i < texts.l->n; i++)
        len += texts.l->items[i].s->len;
    char *data = jx_arena_take(a, len + 1);
    uint8_t *origin = jx_arena_take(a, len + 1);
    for (int i = 0; i < texts.l->n; i++) {
        const struct jinja_string *s = texts.l->items[i].s;
        if (!s->len)
            continue;
        memcpy(data + at, s->data, s->len);
        if (s->origin)
            memcpy(origin + at, s->origin, s->len);
        at += s->len;
    }
    return value_string(a, data, len, origin);
}

struct jinja_value jinja_of_json(struct jinja_arena *a, const json_t *json, enum jinja_origin origin)
{
    struct jinja_value v = value_none();
    const char *key;
    json_t *inside;
    size_t i, len;
    switch (json ? json_typeof(json) : JSON_NULL) {
    case JSON_OBJECT:
        v = jinja_dict(a);
        json_object_keylen_foreach((json_t *)(uintptr_t)json, key, len, inside)
            append(a, v.d, jinja_text(a, key, len, origin), jinja_of_json(a, inside, origin));
        break;
    case JSON_ARRAY:
        v = jinja_list(a);
        json_array_foreach(json, i, inside) jinja_add(a, v, jinja_of_json(a, inside, origin));
        break;
    case JSON_STRING:
        return jinja_text(a, json_string_value(json), json_string_length(json), origin);
    case JSON_INTEGER:
        return value_int(json_integer_value(json));
    case JSON_REAL:
        return (struct jinja_value){.kind = JINJA_FLOAT, .f = json_real_value(json)};
    case JSON_TRUE:
    case JSON_FALSE:
        return jinja_bool(json_is_true(json));
    case JSON_NULL:
        break;
    }
    return v;
}

/* ---- inspection ------------------------------------------------------------------------------------ */

static bool same_text(const struct jinja_string *a, const struct jinja_string *b)
{
    return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

bool value_is_number(struct jinja_value v)
{
    return v.kind == JINJA_INT || v.kind == JINJA_FLOAT || v.kind == JINJA_BOOL;
}

double value_double(struct jinja_value v)
{
    return v.kind == JINJA_FLOAT ? v.f : v.kind == JINJA_BOOL ? (double)v.b : (double)v.i;
}

static int64_t whole(struct jinja_value v)
{
    return v.kind == JINJA_BOOL ? v.b : v.i;
}

static bool equal_numbers(struct jinja_value a, struct jinja_value b)
{
    if (a.kind != JINJA_FLOAT && b.kind != JINJA_FLOAT)
        return whole(a) == whole(b);
    if (a.kind != JINJA_FLOAT || b.kind != JINJA_FLOAT) { /* compares exactly, also beyond 2**53 */
        double f = a.kind == JINJA_FLOAT ? a.f : b.f;
        return fabs(f) < 9e18 && f == floor(f) && (int64_t)f == whole(a.kind == JINJA_FLOAT ? b : a);
    }
    return a.f == b.f;
}

struct jinja_value *dict_find(const struct jinja_dict *d, struct jinja_value key)
{
    for (int i = 0; i < d->n; i++) {
        struct jinja_value k = d->keys[i];
        if (k.kind == JINJA_STRING ? key.kind == JINJA_STRING && same_text(k.s, key.s)
            : value_is_number(k)   ? value_is_number(key) && equal_numbers(k, key)
                                   : k.kind == key.kind)
            return &d->values[i];
    }
    return NULL;
}

struct jinja_value *dict_find_text(const struct jinja_dict *d, const char *key)
{
    const struct jinja_string s = {.data = key, .len = strlen(key)};
    return dict_find(d, (struct jinja_value){.kind = JINJA_STRING, .s = &s});
}

static bool equal_lists(struct jx *x, const struct jinja_list *a, const struct jinja_list *b)
{
    bool equal = a->n == b->n;
    for (int i = 0; i < a->n && equal; i++) {
        jx_spend(x, 0);
        equal = value_equal(x, a->items[i], b->items[i]);
    }
    return equal;
}

static bool equal_dicts(struct jx *x, const struct jinja_dict *a, const struct jinja_dict *b)
{
    bool equal = a->n == b->n;
    jx_spend(x, 16 * (size_t)a->n * (size_t)b->n);
    for (int i = 0; i < a->n && equal; i++) {
        const struct jinja_value *v = dict_find(b, a->keys[i]);
        equal = v && value_equal(x, a->values[i], *v);
    }
    return equal;
}

bool value_equal(struct jx *x, struct jinja_value a, struct jinja_value b)
{
    if (value_is_number(a) && value_is_number(b))
        return equal_numbers(a, b);
    if (a.kind != b.kind)
        return false;
    want_plain(x, a);
    want_plain(x, b);
    jx_enter(x);
    if (a.kind == JINJA_STRING && a.s->len == b.s->len)
        jx_spend(x, a.s->len);
    bool equal = a.kind == JINJA_STRING                              ? same_text(a.s, b.s)
                 : a.kind == JINJA_LIST || a.kind == JINJA_TUPLE     ? equal_lists(x, a.l, b.l)
                 : a.kind == JINJA_DICT                              ? equal_dicts(x, a.d, b.d)
                 : a.kind == JINJA_UNDEFINED || a.kind == JINJA_NONE ? true
                                                                     : a.p == b.p;
    x->depth--;
    return equal;
}

int value_order(struct jx *x, struct jinja_value a, struct jinja_value b)
{
    if (a.kind == JINJA_STRING && b.kind == JINJA_STRING) {
        size_t n = a.s->len < b.s->len ? a.s->len : b.s->len;
        jx_spend(x, n);
        int order = n ? memcmp(a.s->data, b.s->data, n) : 0;
        return order ? order : (a.s->len > b.s->len) - (a.s->len < b.s->len);
    }
    if (value_is_number(a) && value_is_number(b)) {
        if (a.kind != JINJA_FLOAT && b.kind != JINJA_FLOAT)
            return (whole(a) > whole(b)) - (whole(a) < whole(b));
        if (isnan(value_double(a)) || isnan(value_double(b)))
            jx_fail(x, "line %d: 'nan' cannot be compared", x->line);
        return (value_double(a) > value_double(b)) - (value_double(a) < value_double(b));
    }
    if (a.kind == b.kind && (a.kind == JINJA_LIST || a.kind == JINJA_TUPLE)) {
        want_plain(x, a);
        want_plain(x, b);
        jx_enter(x);
        x->depth--;
        for (int i = 0; i < a.l->n && i < b.l->n; i++) {
            jx_spend(x, 0);
            if (!value_equal(x, a.l->items[i], b.l->items[i]))
                return value_order(x, a.l->items[i], b.l->items[i]);
        }
        return (a.l->n > b.l->n) - (a.l->n < b.l->n);
    }
    jx_fail(x, "line %d: values of these types cannot be compared", x->line);
}

bool value_true(struct jinja_value v)
{
    switch (v.kind) {
    case JINJA_UNDEFINED:
    case JINJA_NONE:
        return false;
    case JINJA_BOOL:
        return v.b;
    case JINJA_INT:
        return v.i != 0;
    case JINJA_FLOAT:
        return v.f != 0;
    case JINJA_STRING:
        return v.s->len > 0;
    case JINJA_LIST:
    case JINJA_TUPLE:
        return v.l->n > 0 || v.l->form == LIST_ONCE;
    case JINJA_DICT:
        return v.d->n > 0;
    default:
        return true;
    }
}

struct jinja_value string_part(struct jx *x, const struct jinja_string *s, size_t from, size_t len)
{
    struct jinja_string *part = jx_arena_take(x->arena, sizeof *part);
    *part = (struct jinja_string){.data = s->data + from,
                                  .len = len,
                                  .origin = s->origin ? s->origin + from : NULL,
                                  .markup = s->markup};
    return (struct jinja_value){.kind = JINJA_STRING, .s = part};
}

bool string_is(struct jinja_value v, const char *text)
{
    return v.kind == JINJA_STRING && v.s->len == strlen(text) && !memcmp(v.s->data, text, v.s->len);
}

const char *value_chars(struct jx *x, struct jinja_value v)
{
    if (v.kind != JINJA_STRING)
        jx_fail(x, "line %d: a string is expected", x->line);
    char *copy = jx_arena_take(x->arena, v.s->len + 1);
    memcpy(copy, v.s->data, v.s->len);
    return copy;
}
