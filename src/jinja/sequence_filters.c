/* sequence_filters.c - Jinja's filters for lists, dicts and the characters of strings (jinja_impl.h). */
#include "jinja/jinja_impl.h"

#include <stdlib.h>
#include <string.h>

typedef struct jinja_value filter_fn(struct jx *x, struct jinja_value v, const struct arguments *a);

/* Returns the value at a path such as "function.name" in an item; without a path, the item itself. */
static struct jinja_value at_path(struct jx *x, struct jinja_value item, struct jinja_value path)
{
    if (path.kind == JINJA_UNDEFINED || path.kind == JINJA_NONE)
        return item;
    if (path.kind == JINJA_INT)
        return get_item(x, item, path);
    char *rest = jx_arena_take(x->arena, path.kind == JINJA_STRING ? path.s->len + 1 : 1), *part;
    memcpy(rest, value_chars(x, path), path.s->len);
    while ((part = strsep(&rest, "."))) {
        bool digits = *part && strlen(part) < 10 && strspn(part, "0123456789") == strlen(part);
        item = get_item(x, item, digits ? value_int(atoll(part)) : value_of(x->arena, part));
    }
    return item;
}

static struct jinja_value filter_list(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value items = iterate(x, v), out = jinja_list(x->arena);
    for (int i = 0; i < items.l->n; i++)
        jinja_add(x->arena, out, items.l->items[i]);
    return out;
}

static struct jinja_value filter_first(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    if (v.kind == JINJA_LIST && v.l->form == LIST_ONCE && v.l->n) { /* the remaining items are not consumed */
        v.l->n--;
        return *v.l->items++;
    }
    struct jinja_value items = iterate(x, v);
    return items.l->n ? items.l->items[0] : value_undefined("the first item of an empty sequence");
}

static struct jinja_value filter_last(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    if (v.kind == JINJA_LIST && v.l->form == LIST_ONCE)
        want_plain(x, v);
    struct jinja_value items = iterate(x, v);
    return items.l->n ? items.l->items[items.l->n - 1]
                      : value_undefined("the last item of an empty sequence");
}

static struct jinja_value filter_join(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value path = argument(a, 1, "attribute"), items = iterate(x, v), out = jinja_list(x->arena);
    for (int i = 0; i < items.l->n; i++)
        jinja_add(x->arena, out, at_path(x, items.l->items[i], path));
    return jx_text_join(x, out, argument_or(a, 0, "d", value_of(x->arena, "")));
}

static struct jinja_value filter_items(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value out = jinja_list(x->arena);
    if (v.kind != JINJA_DICT && v.kind != JINJA_UNDEFINED)
        jx_fail(x, "line %d: items needs a dict", x->line);
    for (int i = 0; v.kind == JINJA_DICT && i < v.d->n; i++) {
        struct jinja_value pair = value_tuple(x->arena);
        jinja_add(x->arena, pair, v.d->keys[i]);
        jinja_add(x->arena, pair, v.d->values[i]);
        jinja_add(x->arena, out, pair);
    }
    return value_form(out, LIST_ONCE);
}

static struct jinja_value filter_map(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value items = iterate(x, v), out = jinja_list(x->arena), path = argument(a, -1, "attribute");
    struct jinja_value other = argument(a, -1, "default");
    for (int i = 0; i < items.l->n; i++) {
        struct jinja_value one = items.l->items[i];
        if (path.kind != JINJA_UNDEFINED) {
            one = at_path(x, one, path);
            one = one.kind == JINJA_UNDEFINED && given(other) && other.kind != JINJA_NONE ? other : one;
        } else {
            const struct arguments rest = {
                .v = a->v + 1, .n = a->n - 1, .names = a->names, .named = a->named, .n_named = a->n_named};
            if (!a->n || !run_filter(x, value_chars(x, a->v[0]), one, &rest, &one))
                jx_fail(x, "line %d: map needs an attribute or the name of a filter", x->line);
        }
        jinja_add(x->arena, out, one);
    }
    return value_form(out, LIST_ONCE);
}

/* Evaluates select and reject, and their variants by attribute. */
static struct jinja_value choose(struct jx *x, struct jinja_value v, const struct arguments *a, bool by_path,
                                 bool wanted)
{
    struct jinja_value items = iterate(x, v), out = jinja_list(x->arena);
    int at = by_path; /* index of the argument with the test's name */
    if (by_path && !a->n)
        jx_fail(x, "line %d: the name of the attribute is missing", x->line);
    for (int i = 0; i < items.l->n; i++) {
        struct jinja_value one = by_path ? at_path(x, items.l->items[i], a->v[0]) : items.l->items[i];
        bool yes = value_true(one);
        if (a->n > at) {
            const struct arguments rest = {.v = a->v + at + 1, .n = a->n - at - 1};
            if (!run_test(x, value_chars(x, a->v[at]), one, &rest, &yes))
                jx_fail(x, "line %d: the test '%.40s' is not supported", x->line, value_chars(x, a->v[at]));
        }
        if (yes == wanted)
            jinja_add(x->arena, out, items.l->items[i]);
    }
    return value_form(out, LIST_ONCE);
}

static struct jinja_value filter_select(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    return choose(x, v, a, false, true);
}

static struct jinja_value filter_reject(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    return choose(x, v, a, false, false);
}

static struct jinja_value filter_selectattr(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    return choose(x, v, a, true, true);
}

static struct jinja_value filter_rejectattr(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    return choose(x, v, a, true, false);
}

/* ---- order -------------------------------------------------------------------------------------------- */

static struct jinja_value folded(struct jx *x, struct jinja_value v, bool case_sensitive)
{
    return v.kind == JINJA_STRING && !case_sensitive ? jx_text_case(x, v, "lower") : v;
}

/* Sorts items by keys with a stable insertion sort: templates sort only short lists. */
static struct jinja_value sorted(struct jx *x, struct jinja_value items, const struct jinja_value *keys,
                                 bool reverse)
{
    struct jinja_value out = jinja_list(x->arena);
    int n = items.l->n, *order = jx_arena_take(x->arena, ((size_t)n + 1) * sizeof *order);
    for (int i = 0; i < n; i++) {
        int k = i;
        for (; k > 0; k--) {
            int c = value_order(x, keys[order[k - 1]], keys[i]);
            jx_enter(x);
            x->depth--;
            if (reverse ? c >= 0 : c <= 0)
                break;
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
    for (int i = 0; i < n; i++)
        jinja_add(x->arena, out, items.l->items[order[i]]);
    return out;
}

static struct jinja_value filter_sort(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value items = iterate(x, v), path = argument(a, 2, "attribute"), keys = jinja_list(x->arena);
    bool exact = value_true(argument(a, 1, "case_sensitive"));
    for (int i = 0; i < items.l->n; i++)
        jinja_add(x->arena, keys, folded(x, at_path(x, items.l->items[i], path), exact));
    return sorted(x, items, keys.l->items, value_true(argument(a, 0, "reverse")));
}

static struct jinja_value filter_dictsort(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value pairs = iterate(x, filter_items(x, v, a)), keys = jinja_list(x->arena);
    if (v.kind != JINJA_DICT)
        jx_fail(x, "line %d: dictsort needs a dict", x->line);
    struct jinja_value by = argument_or(a, 1, "by", value_of(x->arena, "key"));
    bool exact = value_true(argument(a, 0, "case_sensitive")), by_value = string_is(by, "value");
    if (!by_value && !string_is(by, "key"))
        jx_fail(x, "line %d: dictsort sorts by key or by value", x->line);
    for (int i = 0; i < pairs.l->n; i++)
        jinja_add(x->arena, keys, folded(x, pairs.l->items[i].l->items[by_value], exact));
    return sorted(x, pairs, keys.l->items, value_true(argument(a, 2, "reverse")));
}

static struct jinja_value filter_reverse(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    const struct jinja_value part[3] = {value_none(), value_none(), value_int(-1)};
    if (v.kind == JINJA_STRING)
        return slice(x, v, part);
    bool once = v.kind == JINJA_LIST && v.l->form == LIST_ONCE; /* only such sequences are copied to a list */
    struct jinja_value out = slice(x, filter_list(x, v, a), part);
    return value_form(out, once ? LIST_PLAIN : LIST_ONCE);
}

static struct jinja_value filter_unique(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value items = iterate(x, v), seen = jinja_list(x->arena), out = jinja_list(x->arena);
    struct jinja_value path = argument(a, 1, "attribute");
    bool exact = value_true(argument(a, 0, "case_sensitive"));
    for (int i = 0; i < items.l->n; i++) {
        struct jinja_value key = folded(x, at_path(x, items.l->items[i], path), exact);
        if (is_in(x, key, seen))
            continue;
        jinja_add(x->arena, seen, key);
        jinja_add(x->arena, out, items.l->items[i]);
    }
    return value_form(out, LIST_ONCE);
}

static struct jinja_value filter_sum(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value items = iterate(x, v), total = argument_or(a, 1, "start", value_int(0));
    for (int i = 0; i < items.l->n; i++)
        total = binary(x, "+", total, at_path(x, items.l->items[i], argument(a, 0, "attribute")));
    return total;
}

static struct jinja_value extreme(struct jx *x, struct jinja_value v, const struct arguments *a, int sign)
{
    struct jinja_value items = iterate(x, v), path = argument(a, 1, "attribute"),
                       best = value_undefined("empty sequence"), top = best;
    bool exact = value_true(argument(a, 0, "case_sensitive"));
    for (int i = 0; i < items.l->n; i++) {
        struct jinja_value key = folded(x, at_path(x, items.l->items[i], path), exact);
        if (i && value_order(x, key, top) * sign <= 0)
            continue;
        top = key;
        best = items.l->items[i];
    }
    return best;
}

static struct jinja_value filter_min(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    return extreme(x, v, a, -1);
}

static struct jinja_value filter_max(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    return extreme(x, v, a, 1);
}

static struct jinja_value filter_batch(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value items = iterate(x, v), out = jinja_list(x->arena), fill = argument(a, 1, "fill_with");
    int64_t size = argument_int(x, a, 0, "linecount", 1);
    if (size < 1)
        jx_fail(x, "line %d: batch needs a size of at least 1", x->line);
    for (int i = 0; i < items.l->n; i++) {
        if (i % size == 0)
            jinja_add(x->arena, out, jinja_list(x->arena));
        jinja_add(x->arena, out.l->items[out.l->n - 1], items.l->items[i]);
    }
    bool fills = given(fill) && fill.kind != JINJA_NONE;
    for (int64_t i = items.l->n; fills && i % size; i++)
        jinja_add(x->arena, out.l->items[out.l->n - 1], fill);
    return value_form(out, LIST_ONCE);
}

bool run_sequence_filter(struct jx *x, const char *name, struct jinja_value v, const struct arguments *a,
                         struct jinja_value *out)
{
    static const struct {
        const char *name;
        filter_fn *run;
    } known[] = {{"list", filter_list},
                 {"first", filter_first},
                 {"last", filter_last},
                 {"join", filter_join},
                 {"items", filter_items},
                 {"map", filter_map},
                 {"select", filter_select},
                 {"reject", filter_reject},
                 {"selectattr", filter_selectattr},
                 {"rejectattr", filter_rejectattr},
                 {"sort", filter_sort},
                 {"dictsort", filter_dictsort},
                 {"reverse", filter_reverse},
                 {"unique", filter_unique},
                 {"sum", filter_sum},
                 {"min", filter_min},
                 {"max", filter_max},
                 {"batch", filter_batch}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name)) {
            *out = known[i].run(x, v, a);
            return true;
        }
    return false;
}
