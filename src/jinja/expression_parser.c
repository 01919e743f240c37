/* expression_parser.c - recursive-descent parser of Jinja expressions, with Jinja's own operator
 * precedence (jinja_impl.h). */
#include "jinja/jinja_impl.h"

#include <string.h>

const struct token *token_now(const struct jx *x)
{
    return &x->tokens[x->at];
}

bool token_is(const struct jx *x, enum token_kind kind, const char *text)
{
    const struct token *t = token_now(x);
    return t->kind == kind && (!text || !strcmp(t->text, text));
}

bool token_take(struct jx *x, enum token_kind kind, const char *text)
{
    if (!token_is(x, kind, text))
        return false;
    x->at++;
    return true;
}

void token_want(struct jx *x, enum token_kind kind, const char *text)
{
    const struct token *t = token_now(x);
    if (!token_take(x, kind, text))
        jx_fail(x, "line %d: '%s' is expected before '%.40s'", t->line, text ? text : "the end of the tag",
                t->kind == T_BLOCK_END || t->kind == T_OUTPUT_END ? "the end of the tag" : t->text);
}

const char *token_name(struct jx *x)
{
    const struct token *t = token_now(x);
    if (!token_take(x, T_NAME, NULL))
        jx_fail(x, "line %d: a name is expected before '%.40s'", t->line, t->text);
    return t->text;
}

struct node *node_new(struct jx *x, enum node_kind kind)
{
    struct node *n = jx_arena_take(x->arena, sizeof *n);
    n->kind = kind;
    n->line = token_now(x)->line;
    return n;
}

/* Returns whether an array of n nodes is full: capacities are powers of two. */
static bool is_full(int n)
{
    return !(n & (n - 1));
}

void node_push(struct jx *x, struct node *to, struct node *item)
{
    if (is_full(to->n)) {
        struct node **old = to->list;
        to->list = jx_arena_take(x->arena, (size_t)(to->n ? to->n * 2 : 1) * sizeof(struct node *));
        if (to->n)
            memcpy(to->list, old, (size_t)to->n * sizeof(struct node *));
    }
    to->list[to->n++] = item;
}

void node_push_named(struct jx *x, struct node *to, const char *name, struct node *value)
{
    if (to->n_named == 1000)
        jx_fail(x, "line %d: more than 1000 names", to->line);
    if (is_full(to->n_named)) {
        struct node_named *old = to->named;
        to->named = jx_arena_take(x->arena, (size_t)(to->n_named ? to->n_named * 2 : 1) * sizeof *old);
        if (to->n_named)
            memcpy(to->named, old, (size_t)to->n_named * sizeof *old);
    }
    to->named[to->n_named++] = (struct node_named){name, value};
}

static struct node *pair(struct jx *x, enum node_kind kind, const char *op, struct node *a, struct node *b)
{
    struct node *n = node_new(x, kind);
    n->name = op;
    n->a = a;
    n->b = b;
    return n;
}

static struct node *literal(struct jx *x, struct jinja_value v)
{
    struct node *n = node_new(x, N_LITERAL);
    n->value = v;
    return n;
}

/* ---- primary ------------------------------------------------------------------------------------------ */

static struct node *parse_or(struct jx *x);

static struct node *parse_name(struct jx *x)
{
    const char *name = token_name(x);
    if (!strcmp(name, "true") || !strcmp(name, "True"))
        return literal(x, jinja_bool(true));
    if (!strcmp(name, "false") || !strcmp(name, "False"))
        return literal(x, jinja_bool(false));
    if (!strcmp(name, "none") || !strcmp(name, "None"))
        return literal(x, value_none());
    x->uses |= !strcmp(name, "varargs")  ? USES_VARARGS
               : !strcmp(name, "kwargs") ? USES_KWARGS
               : !strcmp(name, "caller") ? USES_CALLER
                                         : 0u;
    struct node *n = node_new(x, N_NAME);
    n->name = name;
    return n;
}

/* Parses adjacent string literals as one string. */
static struct node *parse_text(struct jx *x)
{
    struct output o = {0};
    for (; token_is(x, T_STRING, NULL); x->at++)
        out_put(x, &o, token_now(x)->text, token_now(x)->len, NULL, JINJA_TEMPLATE);
    struct jinja_value v = out_value(x, &o);
    return literal(x, value_string(x->arena, v.s->data, v.s->len, NULL));
}

static struct node *parse_list(struct jx *x)
{
    struct node *n = node_new(x, N_LIST);
    while (!token_take(x, T_OPERATOR, "]")) {
        if (n->n)
            token_want(x, T_OPERATOR, ",");
        if (!token_is(x, T_OPERATOR, "]"))
            node_push(x, n, parse_expression(x));
    }
    return n;
}

static struct node *parse_dict(struct jx *x)
{
    struct node *n = node_new(x, N_DICT);
    while (!token_take(x, T_OPERATOR, "}")) {
        if (n->n)
            token_want(x, T_OPERATOR, ",");
        if (token_is(x, T_OPERATOR, "}"))
            continue;
        node_push(x, n, parse_expression(x));
        token_want(x, T_OPERATOR, ":");
        node_push(x, n, parse_expression(x));
    }
    return n;
}

static struct node *parse_primary(struct jx *x)
{
    const struct token *t = token_now(x);
    jx_enter(x);
    struct node *n = NULL;
    if (t->kind == T_NAME) {
        n = parse_name(x);
    } else if (t->kind == T_STRING) {
        n = parse_text(x);
    } else if (t->kind == T_INT || t->kind == T_FLOAT) {
        x->at++;
        n = literal(x, t->kind == T_INT ? value_int(t->i)
                                        : (struct jinja_value){.kind = JINJA_FLOAT, .f = t->f});
    } else if (token_take(x, T_OPERATOR, "(")) {
        n = parse_tuple(x, true);
        token_want(x, T_OPERATOR, ")");
    } else if (token_take(x, T_OPERATOR, "[")) {
        n = parse_list(x);
    } else if (token_take(x, T_OPERATOR, "{")) {
        n = parse_dict(x);
    } else {
        jx_fail(x, "line %d: an expression is expected before '%.40s'", t->line, t->text);
    }
    x->depth--;
    return n;
}

/* Parses what Jinja calls a tuple: comma-separated expressions up to a closing token. A single expression
 * without a comma is returned unchanged, not as a tuple. */
struct node *parse_tuple(struct jx *x, bool with_if)
{
    struct node *n = node_new(x, N_TUPLE);
    bool comma = false;
    while (!token_is(x, T_OPERATOR, ")") && !token_is(x, T_BLOCK_END, NULL) &&
           !token_is(x, T_OUTPUT_END, NULL)) {
        node_push(x, n, with_if ? parse_expression(x) : parse_or(x));
        if (!token_take(x, T_OPERATOR, ","))
            break;
        comma = true;
    }
    if (!n->n && !token_is(x, T_OPERATOR, ")"))
        parse_primary(x); /* always fails */
    return n->n == 1 && !comma ? n->list[0] : n;
}

/* ---- postfix ------------------------------------------------------------------------------------------ */

void normalise(struct jx *x, struct node *call)
{
    token_want(x, T_OPERATOR, "(");
    while (!token_take(x, T_OPERATOR, ")")) {
        if (call->n + call->n_named)
            token_want(x, T_OPERATOR, ",");
        if (token_is(x, T_OPERATOR, ")"))
            continue;
        const struct token *t = token_now(x), *next = t + (t->kind != T_END);
        if (t->kind == T_OPERATOR && (!strcmp(t->text, "*") || !strcmp(t->text, "**")))
            jx_fail(x, "line %d: unpacked arguments are not supported", t->line);
        if (t->kind == T_NAME && next->kind == T_OPERATOR && !strcmp(next->text, "=")) {
            x->at += 2;
            node_push_named(x, call, t->text, parse_expression(x));
        } else {
            node_push(x, call, parse_expression(x));
        }
    }
}

static struct node *parse_subscript(struct jx *x, struct node *a)
{
    struct node *part[3] = {0};
    int n = 0;
    for (; n < 3; n++) {
        if (!token_is(x, T_OPERATOR, ":") && !token_is(x, T_OPERATOR, "]"))
            part[n] = parse_expression(x);
        if (!token_take(x, T_OPERATOR, ":"))
            break;
    }
    token_want(x, T_OPERATOR, "]");
    if (n == 0) {
        if (!part[0])
            jx_fail(x, "line %d: an index is missing", token_now(x)->line);
        return pair(x, N_ITEM, NULL, a, part[0]);
    }
    struct node *slice = pair(x, N_SLICE, NULL, a, NULL);
    for (int i = 0; i < 3; i++)
        node_push(x, slice, part[i]);
    return slice;
}

static struct node *parse_postfix(struct jx *x, struct node *a)
{
    for (int n = 0;; n++) {
        if (n > JX_MAX_DEPTH)
            jx_fail(x, "line %d: an expression is too deep", token_now(x)->line);
        if (token_take(x, T_OPERATOR, ".")) {
            const struct token *t = token_now(x);
            if (token_take(x, T_INT, NULL)) {
                a = pair(x, N_ITEM, NULL, a, literal(x, value_int(t->i)));
                continue;
            }
            struct node *attribute = pair(x, N_ATTRIBUTE, NULL, a, NULL);
            attribute->name = token_name(x);
            a = attribute;
        } else if (token_take(x, T_OPERATOR, "[")) {
            a = parse_subscript(x, a);
        } else if (token_is(x, T_OPERATOR, "(")) {
            struct node *call = pair(x, N_CALL, NULL, a, NULL);
            normalise(x, call);
            a = call;
        } else {
            return a;
        }
    }
}

/* ---- filters and tests -------------------------------------------------------------------------------- */

static struct node *parse_test(struct jx *x, struct node *of)
{
    bool negated = token_take(x, T_NAME, "not");
    struct node *test = pair(x, N_TEST, token_name(x), of, NULL);
    const struct token *t = token_now(x);
    if (token_is(x, T_OPERATOR, "(")) {
        normalise(x, test);
    } else if (t->kind == T_STRING || t->kind == T_INT || t->kind == T_FLOAT ||
               token_is(x, T_OPERATOR, "[") || token_is(x, T_OPERATOR, "{") ||
               (t->kind == T_NAME && strcmp(t->text, "else") != 0 && strcmp(t->text, "or") != 0 &&
                strcmp(t->text, "and") != 0)) {
        if (token_is(x, T_NAME, "is"))
            jx_fail(x, "line %d: tests cannot be chained", t->line);
        node_push(x, test, parse_postfix(x, parse_primary(x)));
    }
    return negated ? pair(x, N_NOT, NULL, test, NULL) : test;
}

struct node *parse_filters(struct jx *x, struct node *of, bool only_filters)
{
    for (int n = 0;; n++) {
        if (n > JX_MAX_DEPTH)
            jx_fail(x, "line %d: an expression is too deep", token_now(x)->line);
        if (token_take(x, T_OPERATOR, "|")) {
            struct node *filter = pair(x, N_FILTER, token_name(x), of, NULL);
            if (token_is(x, T_OPERATOR, "("))
                normalise(x, filter);
            of = filter;
        } else if (!only_filters && token_take(x, T_NAME, "is")) {
            of = parse_test(x, of);
        } else if (!only_filters && token_is(x, T_OPERATOR, "(")) {
            struct node *call = pair(x, N_CALL, NULL, of, NULL);
            normalise(x, call);
            of = call;
        } else {
            return of;
        }
    }
}

/* ---- operators, in order of decreasing precedence -------------------------------------------------- */

static struct node *parse_unary(struct jx *x, bool with_filter)
{
    struct node *n;
    jx_enter(x);
    if (token_take(x, T_OPERATOR, "-"))
        n = pair(x, N_NEGATE, NULL, parse_unary(x, false), NULL);
    else if (token_take(x, T_OPERATOR, "+"))
        n = pair(x, N_PLUS, NULL, parse_unary(x, false), NULL);
    else
        n = parse_primary(x);
    n = parse_postfix(x, n);
    x->depth--;
    return with_filter ? parse_filters(x, n, false) : n;
}

/* Consumes and returns one of the operators of a NULL-terminated list; NULL if the token is not among
 * them. */
static const char *take_operator(struct jx *x, const char *const *operators)
{
    for (; *operators; operators++)
        if (token_take(x, T_OPERATOR, *operators))
            return *operators;
    return NULL;
}

static struct node *parse_product(struct jx *x)
{
    static const char *const power[] = {"**", NULL}, *const product[] = {"*", "/", "//", "%", NULL};
    const char *op;
    struct node *whole = NULL;
    for (const char *before = NULL;; before = op) {
        struct node *n = parse_unary(x, true);
        while ((op = take_operator(x, power)))
            n = pair(x, N_BINARY, op, n, parse_unary(x, true));
        whole = before ? pair(x, N_BINARY, before, whole, n) : n;
        if (!(op = take_operator(x, product)))
            return whole;
    }
}

static struct node *parse_concat(struct jx *x)
{
    struct node *n = parse_product(x);
    if (!token_is(x, T_OPERATOR, "~"))
        return n;
    struct node *all = node_new(x, N_CONCAT);
    node_push(x, all, n);
    while (token_take(x, T_OPERATOR, "~"))
        node_push(x, all, parse_product(x));
    return all;
}

static struct node *parse_sum(struct jx *x)
{
    static const char *const sum[] = {"+", "-", NULL};
    const char *op;
    struct node *n = parse_concat(x);
    while ((op = take_operator(x, sum)))
        n = pair(x, N_BINARY, op, n, parse_concat(x));
    return n;
}

static struct node *parse_compare(struct jx *x)
{
    static const char *const compare[] = {"==", "!=", "<=", ">=", "<", ">", NULL};
    struct node *n = parse_sum(x), *chain = NULL;
    for (;;) {
        const char *op = take_operator(x, compare);
        const struct token *next = token_now(x) + (token_now(x)->kind != T_END);
        if (!op && token_take(x, T_NAME, "in")) {
            op = "in";
        } else if (!op && token_is(x, T_NAME, "not") && next->kind == T_NAME && !strcmp(next->text, "in")) {
            op = "not in";
            x->at += 2;
        }
        if (!op)
            return chain ? chain : n;
        chain = chain ? chain : pair(x, N_COMPARE, NULL, n, NULL);
        node_push_named(x, chain, op, parse_sum(x));
    }
}

static struct node *parse_not(struct jx *x)
{
    jx_enter(x);
    struct node *n =
        token_take(x, T_NAME, "not") ? pair(x, N_NOT, NULL, parse_not(x), NULL) : parse_compare(x);
    x->depth--;
    return n;
}

static struct node *parse_and(struct jx *x)
{
    struct node *n = parse_not(x);
    while (token_take(x, T_NAME, "and"))
        n = pair(x, N_AND, NULL, n, parse_not(x));
    return n;
}

static struct node *parse_or(struct jx *x)
{
    struct node *n = parse_and(x);
    while (token_take(x, T_NAME, "or"))
        n = pair(x, N_OR, NULL, n, parse_and(x));
    return n;
}

struct node *parse_expression(struct jx *x)
{
    jx_enter(x);
    struct node *n = parse_or(x);
    while (token_take(x, T_NAME, "if")) {
        struct node *choice = pair(x, N_IF_ELSE, NULL, n, parse_or(x));
        choice->c = token_take(x, T_NAME, "else") ? parse_expression(x) : NULL;
        n = choice;
    }
    x->depth--;
    return n;
}
