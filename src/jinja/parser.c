/* parser.c - parser of Jinja statements, and the entry points of the interpreter (jinja.h). */
#include "jinja/jinja_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void jx_fail(struct jx *x, const char *fmt, ...)
{
    char text[ERR_TEXT];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    err_set(x->e, ERR_MODEL, "chat template: %s", text);
    longjmp(x->stop, 1);
}

void jx_enter(struct jx *x)
{
    if (++x->depth > JX_MAX_DEPTH)
        jx_fail(x, "line %d: nested too deeply", x->tokens ? token_now(x)->line : x->line);
    if (++x->steps > JINJA_MAX_STEPS)
        jx_fail(x, "line %d: it takes too long", x->line);
}

void jx_spend(struct jx *x, size_t bytes)
{
    x->steps += 1 + (int64_t)(bytes >> 6);
    if (x->steps > JINJA_MAX_STEPS)
        jx_fail(x, "line %d: it takes too long", x->line);
}

/* ---- statements --------------------------------------------------------------------------------------- */

static struct node *parse_statements(struct jx *x, const char *const *ends);

static void end_tag(struct jx *x)
{
    token_want(x, T_BLOCK_END, NULL);
}

/* Parses the body of a block and consumes its end tag. */
static struct node *parse_body(struct jx *x, const char *end)
{
    const char *const ends[] = {end, NULL};
    end_tag(x);
    struct node *body = parse_statements(x, ends);
    token_name(x);
    end_tag(x);
    return body;
}

static bool is_reserved(const char *name)
{
    static const char *const names[] = {"true", "True", "false", "False", "none", "None"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* Adds the targets of `for` or `set`: one name, `namespace.attribute`, or the names of a tuple. */
static struct node *parse_targets(struct jx *x, struct node *to)
{
    bool bracket = token_take(x, T_OPERATOR, "(");
    do {
        if (token_is(x, T_NAME, "in") || token_is(x, T_OPERATOR, "=") || token_is(x, T_OPERATOR, ")"))
            break;
        struct node *name = node_new(x, N_NAME);
        name->name = token_name(x);
        if (is_reserved(name->name) || (to->kind == N_FOR && !strcmp(name->name, "loop")))
            jx_fail(x, "line %d: '%s' cannot be assigned", name->line, name->name);
        if (token_take(x, T_OPERATOR, ".")) {
            struct node *attribute = node_new(x, N_ATTRIBUTE);
            attribute->a = name;
            attribute->name = token_name(x);
            name = attribute;
        }
        node_push(x, to, name);
        to->flag = to->n > 1 || token_is(x, T_OPERATOR, ",");
    } while (token_take(x, T_OPERATOR, ","));
    if (bracket)
        token_want(x, T_OPERATOR, ")");
    if (!to->n)
        jx_fail(x, "line %d: the name of a variable is missing", to->line);
    return to;
}

static struct node *parse_if(struct jx *x)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    struct node *n = node_new(x, N_IF);
    jx_enter(x);
    n->a = parse_tuple(x, true);
    end_tag(x);
    n->body = parse_statements(x, ends);
    const char *end = token_name(x);
    if (!strcmp(end, "elif")) {
        n->otherwise = parse_if(x);
    } else if (!strcmp(end, "else")) {
        n->otherwise = parse_body(x, "endif");
    } else {
        end_tag(x);
    }
    x->depth--;
    return n;
}

static struct node *parse_for(struct jx *x)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    struct node *n = parse_targets(x, node_new(x, N_FOR));
    token_want(x, T_NAME, "in");
    n->a = parse_tuple(x, false); /* an `if` here begins the filter of the loop */
    if (token_take(x, T_NAME, "if"))
        n->b = parse_expression(x);
    if (token_is(x, T_NAME, "recursive"))
        jx_fail(x, "line %d: recursive loops are not supported", n->line);
    end_tag(x);
    x->loop_depth++;
    n->body = parse_statements(x, ends);
    x->loop_depth--;
    if (!strcmp(token_name(x), "else"))
        n->otherwise = parse_body(x, "endfor");
    else
        end_tag(x);
    return n;
}

static struct node *parse_set(struct jx *x)
{
    struct node *n = parse_targets(x, node_new(x, N_SET));
    if (token_take(x, T_OPERATOR, "=")) {
        n->a = parse_tuple(x, true);
        end_tag(x);
        return n;
    }
    n->kind = N_SET_BLOCK;
    n->a = parse_filters(x, NULL, true);
    n->body = parse_body(x, "endset");
    return n;
}

/* Parses the parameters of a macro or call block. */
static void parse_parameters(struct jx *x, struct node *n)
{
    token_want(x, T_OPERATOR, "(");
    while (!token_take(x, T_OPERATOR, ")")) {
        if (n->n_named)
            token_want(x, T_OPERATOR, ",");
        if (token_is(x, T_OPERATOR, ")"))
            continue;
        const char *name = token_name(x);
        struct node *value = token_take(x, T_OPERATOR, "=") ? parse_expression(x) : NULL;
        if (!value && n->n_named && n->named[n->n_named - 1].value)
            jx_fail(x, "line %d: the parameter '%.40s' needs a default, as the one before", n->line, name);
        for (int i = 0; i < n->n_named; i++)
            if (!strcmp(n->named[i].name, name))
                jx_fail(x, "line %d: two parameters are '%.40s'", n->line, name);
        node_push_named(x, n, name, value);
    }
}

/* Parses the body of a macro or call block. It is a function, so that `break` in it cannot end a loop
 * around it. */
static void parse_function(struct jx *x, struct node *n, const char *end)
{
    unsigned outer = x->uses;
    int loops = x->loop_depth;
    x->uses = 0;
    x->loop_depth = 0;
    n->body = parse_body(x, end);
    n->uses = x->uses;
    x->uses |= outer;
    x->loop_depth = loops;
}

static struct node *parse_macro(struct jx *x)
{
    struct node *n = node_new(x, N_MACRO);
    n->name = token_name(x);
    parse_parameters(x, n);
    parse_function(x, n, "endmacro");
    return n;
}

static struct node *parse_call(struct jx *x)
{
    struct node *n = node_new(x, N_CALL_BLOCK);
    if (token_is(x, T_OPERATOR, "("))
        parse_parameters(x, n);
    n->a = parse_expression(x);
    if (n->a->kind != N_CALL)
        jx_fail(x, "line %d: a call block needs a call", n->line);
    parse_function(x, n, "endcall");
    return n;
}

static struct node *parse_filter_block(struct jx *x)
{
    struct node *n = node_new(x, N_FILTER_BLOCK), *filter = node_new(x, N_FILTER);
    filter->name = token_name(x);
    if (token_is(x, T_OPERATOR, "("))
        normalise(x, filter);
    n->a = parse_filters(x, filter, true);
    n->body = parse_body(x, "endfilter");
    return n;
}

static struct node *parse_with(struct jx *x)
{
    struct node *n = node_new(x, N_WITH);
    while (token_is(x, T_NAME, NULL)) {
        const char *name = token_name(x);
        token_want(x, T_OPERATOR, "=");
        node_push_named(x, n, name, parse_expression(x));
        token_take(x, T_OPERATOR, ",");
    }
    n->body = parse_body(x, "endwith");
    return n;
}

/* Parses {% generation %}, which marks the model's own text for training. Its body is rendered unchanged. */
static struct node *parse_generation(struct jx *x)
{
    struct node *n = node_new(x, N_WITH);
    parse_function(x, n, "endgeneration");
    return n;
}

static struct node *parse_jump(struct jx *x, enum node_kind kind)
{
    struct node *n = node_new(x, kind);
    if (!x->loop_depth)
        jx_fail(x, "line %d: break or continue outside of a loop", n->line);
    end_tag(x);
    return n;
}

static struct node *parse_statement(struct jx *x)
{
    static const struct {
        const char *name;
        struct node *(*parse)(struct jx *x);
    } known[] = {{"if", parse_if},     {"for", parse_for},
                 {"set", parse_set},   {"macro", parse_macro},
                 {"call", parse_call}, {"filter", parse_filter_block},
                 {"with", parse_with}, {"generation", parse_generation}};
    int line = token_now(x)->line;
    const char *name = token_name(x);
    if (!strcmp(name, "break"))
        return parse_jump(x, N_BREAK);
    if (!strcmp(name, "continue"))
        return parse_jump(x, N_CONTINUE);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name))
            return known[i].parse(x);
    jx_fail(x, "line %d: the tag '%.40s' is not supported", line, name);
}

static bool ends_here(const struct jx *x, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (token_is(x, T_NAME, *ends))
            return true;
    return false;
}

/* Parses statements up to a tag with one of the names `ends`, which is not consumed. ends NULL: up to the
 * end of the source. */
static struct node *parse_statements(struct jx *x, const char *const *ends)
{
    struct node *first = NULL, **last = &first;
    jx_enter(x);
    for (;;) {
        struct node *n;
        const struct token *t = token_now(x);
        if (t->kind == T_END) {
            if (ends)
                jx_fail(x, "line %d: '%s' is missing", t->line, ends[0]);
            break;
        }
        x->at++;
        if (t->kind == T_DATA) {
            n = node_new(x, N_DATA);
            n->value = value_string(x->arena, t->text, t->len, NULL);
        } else if (t->kind == T_OUTPUT_BEGIN) {
            n = node_new(x, N_OUTPUT);
            n->a = parse_tuple(x, true);
            token_want(x, T_OUTPUT_END, NULL);
        } else if (ends_here(x, ends)) {
            break;
        } else {
            n = parse_statement(x);
        }
        *last = n;
        last = &n->next;
    }
    x->depth--;
    return first;
}

/* ---- entry points ------------------------------------------------------------------------------------- */

struct jinja *jinja_parse(const char *source, size_t len, struct err *e)
{
    struct jinja *t = xcalloc(1, sizeof *t);
    autofree struct jx *x = xcalloc(1, sizeof *x);
    x->arena = t->arena = jinja_arena_new();
    x->e = e;
    jx_arena_guard(t->arena, x);
    if (setjmp(x->stop)) {
        jinja_free(t);
        return NULL;
    }
    if (len > JINJA_MAX_SOURCE)
        jx_fail(x, "it has more than %d bytes", JINJA_MAX_SOURCE);
    x->tokens = lex(x, source, len, &x->n_tokens);
    t->body = parse_statements(x, NULL);
    jx_arena_guard(t->arena, NULL);
    return t;
}

void jinja_free(struct jinja *t)
{
    if (!t)
        return;
    jinja_arena_free(t->arena);
    free(t);
}

int jinja_render(const struct jinja *t, struct jinja_arena *a, struct jinja_value variables,
                 struct jinja_string *out, struct err *e)
{
    autofree struct jx *x = xcalloc(1, sizeof *x);
    struct scope top = {.names = *variables.d};
    struct output text = {0};
    x->arena = a;
    x->e = e;
    x->scope = &top;
    x->out = &text;
    jx_arena_guard(a, x);
    if (setjmp(x->stop)) {
        jx_arena_guard(a, NULL);
        return -1;
    }
    run_statements(x, t->body);
    *out = *out_value(x, x->out).s;
    jx_arena_guard(a, NULL);
    return 0;
}

char *jinja_json_text(const json_t *v)
{
    struct jinja_arena *a = jinja_arena_new();
    struct jx x = {.arena = a};
    struct output o = {0};
    char *text = NULL;
    if (!setjmp(x.stop)) {
        spell_json(&x, &o, jinja_of_json(a, v, JINJA_TEMPLATE), -1);
        text = xasprintf("%.*s", (int)o.len, o.data ? o.data : "");
    }
    jinja_arena_free(a);
    return text;
}
