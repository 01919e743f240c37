/* statements.c - execution of statements: assignments, loops, macros, blocks (jinja_impl.h). */
#include "jinja/jinja_impl.h"

#include "base/utf8.h"

#include <string.h>

/* ---- variables ---------------------------------------------------------------------------------------- */

struct jinja_value lookup(struct jx *x, const char *name)
{
    for (const struct scope *s = x->scope; s; s = s->parent) {
        const struct jinja_value *v = dict_find_text(&s->names, name);
        if (v)
            return *v;
    }
    static const char *const others[] = {"cycler", "joiner", "lipsum", "self"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(name, others[i]))
            jx_fail(x, "line %d: '%s' is not supported", x->line, name);
    if (is_function(name))
        return (struct jinja_value){.kind = JINJA_FUNCTION, .p = name};
    return value_undefined(name);
}

void assign(struct jx *x, const char *name, struct jinja_value v)
{
    jx_spend(x, 8 * (size_t)x->scope->names.n);
    dict_put(x->arena, &x->scope->names, value_of(x->arena, name), v);
}

static struct scope *scope_new(struct jx *x, struct scope *parent)
{
    struct scope *s = jx_arena_take(x->arena, sizeof *s);
    s->parent = parent;
    return s;
}

static void assign_target(struct jx *x, const struct node *target, struct jinja_value v)
{
    if (target->kind == N_NAME) {
        assign(x, target->name, v);
        return;
    }
    struct jinja_value of = lookup(x, target->a->name);
    if (of.kind != JINJA_NAMESPACE)
        jx_fail(x, "line %d: '%.40s' is not a namespace, so its attributes cannot be set", target->line,
                target->a->name);
    if (*target->name == '_')
        jx_fail(x, "line %d: a namespace cannot have '%.40s'", target->line, target->name);
    dict_put(x->arena, of.d, value_of(x->arena, target->name), v);
}

/* Assigns a value to the targets of n. A tuple of names unpacks the value. */
static void assign_targets(struct jx *x, const struct node *n, struct jinja_value v)
{
    if (!n->flag) {
        assign_target(x, n->list[0], v);
        return;
    }
    struct jinja_value items = iterate(x, v);
    if (items.l->n != n->n)
        jx_fail(x, "line %d: %d values cannot be assigned to %d names", n->line, items.l->n, n->n);
    for (int i = 0; i < n->n; i++)
        assign_target(x, n->list[i], items.l->items[i]);
}

/* ---- loops -------------------------------------------------------------------------------------------- */

struct jinja_value iterate(struct jx *x, struct jinja_value v)
{
    struct jinja_value out = jinja_list(x->arena);
    switch (v.kind) {
    case JINJA_LIST:
    case JINJA_TUPLE:
        if (v.l->form != LIST_ONCE)
            return v;
        *out.l = *v.l;
        *v.l = (struct jinja_list){.form = LIST_ONCE};
        return value_form(out, LIST_PLAIN);
    case JINJA_UNDEFINED:
        break;
    case JINJA_DICT:
        for (int i = 0; i < v.d->n; i++)
            jinja_add(x->arena, out, v.d->keys[i]);
        break;
    case JINJA_STRING:
        for (size_t at = 0; at < v.s->len;) {
            uint32_t c;
            int n = utf8_decode(v.s->data + at, v.s->len - at, &c);
            n = n > 0 ? n : 1;
            jinja_add(x->arena, out, string_part(x, v.s, at, (size_t)n));
            at += (size_t)n;
        }
        break;
    default:
        jx_fail(x, "line %d: a value of this type is not iterable", x->line);
    }
    return out;
}

/* Returns the items that pass the filter of a loop. */
static struct jinja_value filtered(struct jx *x, const struct node *n, struct jinja_value items)
{
    struct jinja_value out = jinja_list(x->arena);
    struct scope *outer = x->scope;
    for (int i = 0; i < items.l->n; i++) {
        x->scope = scope_new(x, outer);
        assign_targets(x, n, items.l->items[i]);
        if (value_true(evaluate(x, n->b)))
            jinja_add(x->arena, out, items.l->items[i]);
    }
    x->scope = outer;
    return out;
}

static void run_for(struct jx *x, const struct node *n)
{
    struct jinja_value items = iterate(x, evaluate(x, n->a));
    if (n->b)
        items = filtered(x, n, items);
    struct scope *outer = x->scope;
    bool completed = false;
    struct loop *l = jx_arena_take(x->arena, sizeof *l);
    *l = (struct loop){.n = items.l->n, .changed = value_undefined(NULL)};
    l->items = items.l->items;
    for (int i = 0; i < l->n && x->flow != FLOW_BREAK; i++) {
        l->index = i;
        x->flow = FLOW_NONE;
        x->scope = scope_new(x, outer);
        assign(x, "loop", (struct jinja_value){.kind = JINJA_LOOP, .p = l});
        assign_targets(x, n, items.l->items[i]);
        run_statements(x, n->body);
        completed = completed || x->flow == FLOW_NONE;
    }
    x->flow = FLOW_NONE;
    x->scope = scope_new(x, outer);
    if (!completed) /* as in Jinja, also after a loop in which break or continue ended each iteration */
        run_statements(x, n->otherwise);
    x->scope = outer;
}

/* ---- macros ------------------------------------------------------------------------------------------- */

/* Runs statements and returns their output as a string. */
static struct jinja_value capture(struct jx *x, const struct node *body)
{
    struct output text = {0}, *outer = x->out;
    x->out = &text;
    run_statements(x, body);
    x->out = outer;
    return out_value(x, &text);
}

struct jinja_value call_macro(struct jx *x, const struct macro *m, const struct arguments *args)
{
    const struct node *n = m->node;
    struct scope *caller = x->scope;
    struct jinja_value rest = value_tuple(x->arena), extra = jinja_dict(x->arena);
    struct scope *inner = scope_new(x, m->scope);
    for (int i = 0; i < n->n_named; i++) {
        struct jinja_value v = argument(args, i, n->named[i].name);
        x->scope = inner; /* defaults may refer to earlier parameters */
        if (!given(v))
            v = n->named[i].value ? evaluate(x, n->named[i].value) : value_undefined(n->named[i].name);
        assign(x, n->named[i].name, v);
        x->scope = caller;
    }
    if (args->n > n->n_named && !(n->uses & USES_VARARGS))
        jx_fail(x, "line %d: the macro takes %d arguments, not %d", x->line, n->n_named, args->n);
    for (int i = n->n_named; i < args->n; i++)
        jinja_add(x->arena, rest, args->v[i]);
    for (int i = 0; i < args->n_named; i++) {
        bool known = false;
        for (int k = 0; k < n->n_named; k++)
            known = known || (k >= args->n && !strcmp(args->names[i], n->named[k].name));
        if (!known && !(n->uses & USES_KWARGS))
            jx_fail(x, "line %d: the macro has no argument '%.40s'", x->line, args->names[i]);
        if (!known)
            jinja_set(x->arena, extra, args->names[i], args->named[i]);
    }
    x->scope = inner;
    assign(x, "varargs", rest);
    assign(x, "kwargs", extra);
    if (args->caller && !(n->uses & USES_CALLER))
        jx_fail(x, "line %d: the macro does not call its caller()", x->line);
    if (n->uses & USES_CALLER)
        assign(x, "caller",
               args->caller ? (struct jinja_value){.kind = JINJA_MACRO, .p = args->caller}
                            : value_undefined("caller"));
    struct jinja_value out = capture(x, n->body);
    x->scope = caller;
    return out;
}

static struct macro *macro_new(struct jx *x, const struct node *n)
{
    struct macro *m = jx_arena_take(x->arena, sizeof *m);
    *m = (struct macro){n, x->scope};
    return m;
}

static void run_call_block(struct jx *x, const struct node *n)
{
    struct arguments args;
    struct jinja_value f = evaluate(x, n->a->a);
    gather_arguments(x, n->a, &args);
    args.caller = macro_new(x, n);
    spell(x, x->out, call_value(x, f, &args));
}

/* ---- statements --------------------------------------------------------------------------------------- */

/* Runs a body in its own scope and returns its output as a string. */
static struct jinja_value capture_inside(struct jx *x, const struct node *body)
{
    struct scope *outer = x->scope;
    x->scope = scope_new(x, outer);
    struct jinja_value text = capture(x, body);
    x->scope = outer;
    return text;
}

static void run_with(struct jx *x, const struct node *n)
{
    struct scope *outer = x->scope, *inner = scope_new(x, outer);
    for (int i = 0; i < n->n_named; i++) {
        struct jinja_value v = evaluate(x, n->named[i].value);
        x->scope = inner;
        assign(x, n->named[i].name, v);
        x->scope = outer;
    }
    x->scope = inner;
    run_statements(x, n->body);
    x->scope = outer;
}

static void run_statement(struct jx *x, const struct node *n)
{
    struct jinja_value v;
    switch (n->kind) {
    case N_DATA:
        spell(x, x->out, n->value);
        break;
    case N_OUTPUT:
        spell(x, x->out, evaluate(x, n->a));
        break;
    case N_IF:
        run_statements(x, value_true(evaluate(x, n->a)) ? n->body : n->otherwise);
        break;
    case N_FOR:
        run_for(x, n);
        break;
    case N_SET:
        assign_targets(x, n, evaluate(x, n->a));
        break;
    case N_SET_BLOCK:
        v = capture_inside(x, n->body);
        if (x->flow == FLOW_NONE) /* break and continue discard the text */
            assign_targets(x, n, apply_filters(x, n->a, v));
        break;
    case N_MACRO:
        assign(x, n->name, (struct jinja_value){.kind = JINJA_MACRO, .p = macro_new(x, n)});
        break;
    case N_CALL_BLOCK:
        run_call_block(x, n);
        break;
    case N_FILTER_BLOCK:
        v = capture_inside(x, n->body);
        if (x->flow != FLOW_NONE)
            break;
        v = apply_filters(x, n->a, v);
        if (v.kind != JINJA_STRING)
            jx_fail(x, "line %d: the filter of a block must return a string", n->line);
        spell(x, x->out, v);
        break;
    case N_WITH:
        run_with(x, n);
        break;
    case N_BREAK:
    case N_CONTINUE:
        x->flow = n->kind == N_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
        break;
    default:
        jx_fail(x, "line %d: not a statement", n->line);
    }
}

void run_statements(struct jx *x, const struct node *first)
{
    jx_enter(x);
    for (const struct node *n = first; n && x->flow == FLOW_NONE; n = n->next) {
        x->line = n->line;
        run_statement(x, n);
    }
    x->depth--;
}
