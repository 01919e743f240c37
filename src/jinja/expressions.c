/* expressions.c - evaluation of expressions (jinja_impl.h). */
#include "jinja/jinja_impl.h"

#include <string.h>

/* ---- attributes and items ----------------------------------------------------------------------------- */

static const char *kind_name(struct jinja_value v)
{
    static const char *const names[] = {"undefined", "None",    "a bool",     "an int",  "a float",
                                        "a string",  "a list",  "a tuple",    "a dict",  "a namespace",
                                        "a loop",    "a macro", "a function", "a method"};
    return names[v.kind];
}

static struct jinja_value loop_attribute(struct jx *x, const struct loop *l, const char *name)
{
    int i = l->index;
    if (!strcmp(name, "index"))
        return value_int(i + 1);
    if (!strcmp(name, "index0"))
        return value_int(i);
    if (!strcmp(name, "first"))
        return jinja_bool(i == 0);
    if (!strcmp(name, "last"))
        return jinja_bool(i == l->n - 1);
    if (!strcmp(name, "length"))
        return value_int(l->n);
    if (!strcmp(name, "revindex"))
        return value_int(l->n - i);
    if (!strcmp(name, "revindex0"))
        return value_int(l->n - i - 1);
    if (!strcmp(name, "depth") || !strcmp(name, "depth0"))
        return value_int(name[5] ? 0 : 1); /* only recursive loops, which are not supported, have deeper
                                            * levels */
    if (!strcmp(name, "previtem"))
        return i > 0 ? l->items[i - 1] : value_undefined("there is no previous item");
    if (!strcmp(name, "nextitem"))
        return i + 1 < l->n ? l->items[i + 1] : value_undefined("there is no next item");
    return value_undefined(name);
}

static struct jinja_value bind(struct jx *x, struct jinja_value of, const char *name)
{
    struct method *m = jx_arena_take(x->arena, sizeof *m);
    *m = (struct method){of, name};
    return (struct jinja_value){.kind = JINJA_METHOD, .p = m};
}

static struct jinja_value sequence_item(struct jx *x, struct jinja_value of, int64_t i)
{
    if (of.kind == JINJA_LIST && of.l->form != LIST_RANGE)
        want_plain(x, of);
    if (of.kind == JINJA_STRING) {
        if (i == INT64_MAX)
            return value_undefined(NULL);
        const struct jinja_value part[3] = {value_int(i), i == -1 ? value_none() : value_int(i + 1),
                                            value_none()};
        struct jinja_value c = slice(x, of, part);
        return c.s->len ? c : value_undefined(NULL);
    }
    i += i < 0 ? of.l->n : 0;
    return i >= 0 && i < of.l->n ? of.l->items[i] : value_undefined(NULL);
}

static _Noreturn void fail_undefined(struct jx *x, struct jinja_value v, const char *name)
{
    jx_fail(x, "line %d: '%s' is undefined and has no attribute '%s'", x->line, v.name ? v.name : "the value",
            name);
}

/* Evaluates of.name. An attribute of the object takes precedence over an item with this key. */
static struct jinja_value get_attribute(struct jx *x, struct jinja_value of, const char *name)
{
    if (of.kind == JINJA_UNDEFINED)
        fail_undefined(x, of, name);
    if (of.kind == JINJA_LOOP) {
        struct jinja_value v = loop_attribute(x, of.p, name);
        bool method = !strcmp(name, "cycle") || !strcmp(name, "changed");
        return method ? bind(x, of, name) : v;
    }
    if (of.kind == JINJA_MACRO)
        jx_fail(x, "line %d: the attributes of a macro are not supported", x->line);
    if (has_method(of, name))
        return bind(x, of, name);
    if (of.kind == JINJA_DICT || of.kind == JINJA_NAMESPACE)
        jx_spend(x, 8 * (size_t)of.d->n);
    const struct jinja_value *v =
        of.kind == JINJA_DICT || of.kind == JINJA_NAMESPACE ? dict_find_text(of.d, name) : NULL;
    return v ? *v : value_undefined(name);
}

/* Evaluates of[key]. An item takes precedence over an attribute of the object. */
struct jinja_value get_item(struct jx *x, struct jinja_value of, struct jinja_value key)
{
    if (of.kind == JINJA_UNDEFINED)
        fail_undefined(x, of, key.kind == JINJA_STRING ? value_chars(x, key) : "[]");
    if (of.kind == JINJA_DICT) {
        jx_spend(x, 8 * (size_t)of.d->n);
        const struct jinja_value *v = dict_find(of.d, key);
        if (v)
            return *v;
    } else if ((of.kind == JINJA_LIST || of.kind == JINJA_TUPLE || of.kind == JINJA_STRING) &&
               (key.kind == JINJA_INT || key.kind == JINJA_BOOL)) {
        return sequence_item(x, of, key.kind == JINJA_BOOL ? key.b : key.i);
    }
    if (key.kind != JINJA_STRING)
        return value_undefined(NULL);
    if (of.kind == JINJA_DICT && !has_method(of, value_chars(x, key)))
        return value_undefined(value_chars(x, key));
    return get_attribute(x, of, value_chars(x, key));
}

/* ---- comparisons -------------------------------------------------------------------------------------- */

bool is_in(struct jx *x, struct jinja_value what, struct jinja_value where)
{
    if (where.kind == JINJA_STRING) {
        if (what.kind != JINJA_STRING)
            jx_fail(x, "line %d: 'in <string>' requires a string, not %s", x->line, kind_name(what));
        jx_spend(x, where.s->len);
        return jx_text_find(where.s, what.s, 0) >= 0;
    }
    if (where.kind == JINJA_DICT && (what.kind == JINJA_LIST || what.kind == JINJA_DICT))
        jx_fail(x, "line %d: a key cannot be %s", x->line, kind_name(what));
    if (where.kind == JINJA_DICT)
        jx_spend(x, 8 * (size_t)where.d->n);
    if (where.kind == JINJA_DICT)
        return dict_find(where.d, what) != NULL;
    if (where.kind == JINJA_UNDEFINED)
        return false;
    if (where.kind != JINJA_LIST && where.kind != JINJA_TUPLE)
        jx_fail(x, "line %d: %s cannot be searched", x->line, kind_name(where));
    struct jinja_list *l = where.l, all = *l;
    bool found = false;
    for (int i = 0; i < all.n && !found; i++) {
        found = value_equal(x, all.items[i], what);
        jx_spend(x, 0);
        if (l->form == LIST_ONCE) /* the search consumes the items up to the match */
            *l = (struct jinja_list){.items = all.items + i + 1, .n = all.n - i - 1, .form = LIST_ONCE};
    }
    return found;
}

static bool compare(struct jx *x, const char *op, struct jinja_value a, struct jinja_value b)
{
    if (!strcmp(op, "=="))
        return value_equal(x, a, b);
    if (!strcmp(op, "!="))
        return !value_equal(x, a, b);
    if (!strcmp(op, "in"))
        return is_in(x, a, b);
    if (!strcmp(op, "not in"))
        return !is_in(x, a, b);
    int order = value_order(x, a, b);
    return op[0] == '<' ? order < (op[1] ? 1 : 0) : order > (op[1] ? -1 : 0);
}

static struct jinja_value compare_chain(struct jx *x, const struct node *n)
{
    struct jinja_value left = evaluate(x, n->a);
    for (int i = 0; i < n->n_named; i++) {
        struct jinja_value right = evaluate(x, n->named[i].value);
        if (!compare(x, n->named[i].name, left, right))
            return jinja_bool(false);
        left = right;
    }
    return jinja_bool(true);
}

/* ---- calls -------------------------------------------------------------------------------------------- */

void gather_arguments(struct jx *x, const struct node *call, struct arguments *args)
{
    struct jinja_value *v = jx_arena_take(x->arena, ((size_t)call->n + 1) * sizeof *v);
    struct jinja_value *named = jx_arena_take(x->arena, ((size_t)call->n_named + 1) * sizeof *named);
    const char **names = jx_arena_take(x->arena, ((size_t)call->n_named + 1) * sizeof *names);
    for (int i = 0; i < call->n; i++)
        v[i] = evaluate(x, call->list[i]);
    for (int i = 0; i < call->n_named; i++) {
        names[i] = call->named[i].name;
        named[i] = evaluate(x, call->named[i].value);
    }
    *args =
        (struct arguments){.v = v, .n = call->n, .names = names, .named = named, .n_named = call->n_named};
}

static const char absent[] = "an argument"; /* placeholder name of an argument that was not given */

struct jinja_value argument(const struct arguments *a, int i, const char *name)
{
    return argument_or(a, i, name, value_undefined(absent));
}

bool given(struct jinja_value v)
{
    return v.kind != JINJA_UNDEFINED || v.name != absent;
}

struct jinja_value argument_or(const struct arguments *a, int i, const char *name, struct jinja_value other)
{
    if (i >= 0 && i < a->n)
        return a->v[i];
    for (int k = 0; k < a->n_named && name; k++)
        if (!strcmp(a->names[k], name))
            return a->named[k];
    return other;
}

int64_t argument_int(struct jx *x, const struct arguments *a, int i, const char *name, int64_t other)
{
    struct jinja_value v = argument_or(a, i, name, value_int(other));
    if (v.kind != JINJA_INT && v.kind != JINJA_BOOL)
        jx_fail(x, "line %d: '%s' must be an integer, not %s", x->line, name ? name : "the argument",
                kind_name(v));
    return v.kind == JINJA_BOOL ? v.b : v.i;
}

struct jinja_value call_value(struct jx *x, struct jinja_value f, const struct arguments *args)
{
    const struct method *m = f.p;
    struct jinja_value out;
    jx_enter(x);
    if (f.kind == JINJA_MACRO)
        out = call_macro(x, f.p, args);
    else if (f.kind == JINJA_FUNCTION)
        out = call_function(x, f.p, args);
    else if (f.kind == JINJA_METHOD)
        out = call_method(x, m->self, m->name, args);
    else
        jx_fail(x, "line %d: %s%s%s cannot be called", x->line, kind_name(f),
                f.kind == JINJA_UNDEFINED && f.name ? " " : "",
                f.kind == JINJA_UNDEFINED && f.name ? f.name : "");
    x->depth--;
    return out;
}

static struct jinja_value filter(struct jx *x, const struct node *n, struct jinja_value v)
{
    struct arguments args;
    struct jinja_value out;
    gather_arguments(x, n, &args);
    x->line = n->line;
    if (!run_filter(x, n->name, v, &args, &out))
        jx_fail(x, "line %d: the filter '%.40s' is not supported", n->line, n->name);
    return out;
}

struct jinja_value apply_filters(struct jx *x, const struct node *chain, struct jinja_value to)
{
    if (!chain)
        return to;
    return filter(x, chain, apply_filters(x, chain->a, to));
}

static struct jinja_value test(struct jx *x, const struct node *n)
{
    struct arguments args;
    bool yes;
    struct jinja_value v = evaluate(x, n->a);
    gather_arguments(x, n, &args);
    if (!run_test(x, n->name, v, &args, &yes))
        jx_fail(x, "line %d: the test '%.40s' is not supported", n->line, n->name);
    return jinja_bool(yes);
}

/* ---- all kinds ---------------------------------------------------------------------------------------- */

static struct jinja_value collection(struct jx *x, const struct node *n)
{
    struct jinja_value v = n->kind == N_DICT    ? jinja_dict(x->arena)
                           : n->kind == N_TUPLE ? value_tuple(x->arena)
                                                : jinja_list(x->arena);
    for (int i = 0; i < n->n; i++) {
        struct jinja_value item = evaluate(x, n->list[i]);
        if (n->kind == N_DICT && (item.kind >= JINJA_LIST || item.kind == JINJA_UNDEFINED))
            jx_fail(x, "line %d: a key cannot be %s", n->line, kind_name(item));
        if (n->kind == N_DICT)
            jx_spend(x, 8 * (size_t)v.d->n);
        if (n->kind == N_DICT)
            dict_put(x->arena, v.d, item, evaluate(x, n->list[++i]));
        else
            jinja_add(x->arena, v, item);
    }
    return v;
}

static struct jinja_value concat(struct jx *x, const struct node *n)
{
    struct output o = {0};
    for (int i = 0; i < n->n; i++)
        spell(x, &o, evaluate(x, n->list[i]));
    return out_value(x, &o);
}

static struct jinja_value negate(struct jx *x, struct jinja_value v)
{
    if (!value_is_number(v))
        jx_fail(x, "line %d: %s cannot be negated", x->line, kind_name(v));
    if (v.kind == JINJA_FLOAT)
        return (struct jinja_value){.kind = JINJA_FLOAT, .f = -v.f};
    if (v.kind == JINJA_INT && v.i == INT64_MIN)
        jx_fail(x, "line %d: an integer has more than 64 bits", x->line);
    return value_int(-(v.kind == JINJA_BOOL ? v.b : v.i));
}

/* Evaluates unary plus, which converts true to 1. */
static struct jinja_value plus(struct jx *x, struct jinja_value v)
{
    if (!value_is_number(v))
        jx_fail(x, "line %d: '+' does not work on %s", x->line, kind_name(v));
    return v.kind == JINJA_BOOL ? value_int(v.b) : v;
}

static struct jinja_value slice_of(struct jx *x, const struct node *n)
{
    struct jinja_value part[3], of = evaluate(x, n->a);
    for (int i = 0; i < 3; i++)
        part[i] = n->list[i] ? evaluate(x, n->list[i]) : value_none();
    return slice(x, of, part);
}

static struct jinja_value evaluate_operator(struct jx *x, const struct node *n)
{
    struct jinja_value a;
    switch (n->kind) {
    case N_NOT:
        return jinja_bool(!value_true(evaluate(x, n->a)));
    case N_NEGATE:
        return negate(x, evaluate(x, n->a));
    case N_PLUS:
        return plus(x, evaluate(x, n->a));
    case N_BINARY:
        a = evaluate(x, n->a);
        return binary(x, n->name, a, evaluate(x, n->b));
    case N_AND:
        a = evaluate(x, n->a);
        return value_true(a) ? evaluate(x, n->b) : a;
    case N_OR:
        a = evaluate(x, n->a);
        return value_true(a) ? a : evaluate(x, n->b);
    case N_COMPARE:
        return compare_chain(x, n);
    case N_CONCAT:
        return concat(x, n);
    default: /* N_IF_ELSE */
        if (value_true(evaluate(x, n->b)))
            return evaluate(x, n->a);
        return n->c ? evaluate(x, n->c) : value_undefined("the inline if without else");
    }
}

static struct jinja_value evaluate_call(struct jx *x, const struct node *n)
{
    struct arguments args;
    struct jinja_value f = evaluate(x, n->a);
    gather_arguments(x, n, &args);
    x->line = n->line;
    return call_value(x, f, &args);
}

struct jinja_value evaluate(struct jx *x, const struct node *n)
{
    struct jinja_value out, a;
    jx_enter(x);
    x->line = n->line;
    switch (n->kind) {
    case N_LITERAL:
        out = n->value;
        break;
    case N_NAME:
        out = lookup(x, n->name);
        break;
    case N_LIST:
    case N_TUPLE:
    case N_DICT:
        out = collection(x, n);
        break;
    case N_ATTRIBUTE:
        out = get_attribute(x, evaluate(x, n->a), n->name);
        break;
    case N_ITEM:
        a = evaluate(x, n->a);
        out = get_item(x, a, evaluate(x, n->b));
        break;
    case N_SLICE:
        out = slice_of(x, n);
        break;
    case N_CALL:
        out = evaluate_call(x, n);
        break;
    case N_FILTER:
        out = filter(x, n, evaluate(x, n->a));
        break;
    case N_TEST:
        out = test(x, n);
        break;
    default:
        out = evaluate_operator(x, n);
    }
    x->depth--;
    return out;
}
