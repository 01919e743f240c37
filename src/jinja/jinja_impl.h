/* jinja_impl.h - internal interfaces of the Jinja interpreter; private to src/jinja.
 *
 *     source -> lexer.c: tokens -> parser.c, expression_parser.c: syntax tree
 *            -> statements.c, expressions.c: output
 *
 * The first error ends parsing or rendering by longjmp (jx_fail). All allocations are in an arena, so that
 * nothing leaks. */
#pragma once

#include "jinja/jinja.h"

#include <setjmp.h>

enum { JX_MAX_DEPTH = 200 }; /* nesting of nodes, calls and values */

/* Python type of a sequence. Python prints, compares and indexes the last three differently from lists.
 * Operations on them whose result would differ are errors. */
enum {
    LIST_PLAIN,
    LIST_RANGE,
    LIST_VIEW, /* items(), keys() and values() of a dict */
    LIST_ONCE, /* Python iterator, returned by filters such as map: always true, without length, consumed
                * by one pass */
};

/* ---- lexer.c ------------------------------------------------------------------------------------------ */

enum token_kind {
    T_END,
    T_DATA,
    T_OUTPUT_BEGIN,
    T_OUTPUT_END,
    T_BLOCK_BEGIN,
    T_BLOCK_END,
    T_NAME,
    T_STRING,
    T_INT,
    T_FLOAT,
    T_OPERATOR,
};

struct token {
    enum token_kind kind;
    int line;
    const char *text; /* for data, names, strings (unescaped) and operators; NUL-terminated */
    size_t len;
    int64_t i;
    double f;
};

/* ---- nodes -------------------------------------------------------------------------------------------- */

enum node_kind {
    N_LITERAL,   /* value */
    N_NAME,      /* name */
    N_LIST,      /* list */
    N_TUPLE,     /* list */
    N_DICT,      /* list: key, value, ... */
    N_ATTRIBUTE, /* a.name */
    N_ITEM,      /* a[b] */
    N_SLICE,     /* a[list[0]:list[1]:list[2]], each may be NULL */
    N_CALL,      /* a(list, named) */
    N_FILTER,    /* a|name(list, named); a NULL in a filter block */
    N_TEST,      /* a is name(list) */
    N_NOT,
    N_NEGATE,
    N_PLUS,
    N_BINARY,  /* a name b */
    N_AND,     /* a and b */
    N_OR,      /* a or b */
    N_COMPARE, /* a, then list: operand after each of `named`'s operators */
    N_CONCAT,  /* list */
    N_IF_ELSE, /* a if b else c; c may be NULL */
    /* statements */
    N_DATA,         /* value */
    N_OUTPUT,       /* a */
    N_IF,           /* a, body, otherwise */
    N_FOR,          /* targets list; a: iterable, b: filter, body, otherwise */
    N_SET,          /* targets list, a */
    N_SET_BLOCK,    /* targets list, body, a: filter chain or NULL */
    N_MACRO,        /* name, parameters: named, body */
    N_CALL_BLOCK,   /* a: the call, parameters: named, body */
    N_FILTER_BLOCK, /* a: filter chain, body */
    N_WITH,         /* named, body */
    N_BREAK,
    N_CONTINUE,
};

enum { USES_VARARGS = 1, USES_KWARGS = 2, USES_CALLER = 4 };

struct node_named { /* keyword argument, parameter with its default, or operator */
    const char *name;
    struct node *value; /* NULL: parameter without default */
};

struct node {
    enum node_kind kind;
    int line;
    struct node *a, *b, *c;
    const char *name;
    struct jinja_value value;
    struct node **list;
    int n;
    struct node_named *named;
    int n_named;
    struct node *body, *otherwise; /* first statements */
    struct node *next;             /* the following statement */
    unsigned uses;                 /* N_MACRO, N_CALL_BLOCK: special variables that the body uses */
    bool flag;                     /* N_FOR and N_SET: unpack a tuple */
};

struct jinja {
    struct jinja_arena *arena;
    struct node *body;
};

/* ---- evaluation --------------------------------------------------------------------------------------- */

struct scope { /* variables of a loop, macro or template */
    struct scope *parent;
    struct jinja_dict names;
};

struct output { /* growing string with origins, in the arena */
    char *data;
    uint8_t *origin;
    size_t len, cap;
};

struct macro {
    const struct node *node; /* N_MACRO or N_CALL_BLOCK */
    struct scope *scope;     /* scope in which it was defined */
};

struct loop {
    int index, n;
    const struct jinja_value *items;
    struct jinja_value changed; /* arguments of the last loop.changed() */
};

struct method {
    struct jinja_value self;
    const char *name;
};

struct arguments {
    const struct jinja_value *v;
    int n;
    const char *const *names; /* names of the keyword arguments */
    const struct jinja_value *named;
    int n_named;
    const struct macro *caller; /* macro of the call block; NULL: none */
};

struct jx { /* state of parsing or rendering */
    struct jinja_arena *arena;
    struct err *e;
    jmp_buf stop;
    int line, depth;
    int64_t steps;
    struct scope *scope;
    struct output *out;
    int loop_depth;
    enum { FLOW_NONE, FLOW_BREAK, FLOW_CONTINUE } flow;
    /* parse */
    const struct token *tokens;
    int at, n_tokens;
    unsigned uses; /* USES_* of the macro being parsed */
};

/* Ends parsing or rendering with ERR_MODEL. */
_Noreturn void jx_fail(struct jx *x, const char *fmt, ...) PRINTF_LIKE(2, 3);
void jx_enter(struct jx *x);               /* enters one nesting level; fails beyond JX_MAX_DEPTH */
void jx_spend(struct jx *x, size_t bytes); /* counts processing of so many bytes as steps, at least one */

/* ---- value.c --------------------------------------------------------------------------------------- */
void *jx_arena_take(struct jinja_arena *a, size_t n);     /* zeroed, aligned to 16; fails beyond the limit */
void jx_arena_guard(struct jinja_arena *a, struct jx *x); /* receiver of the failure when the limit is
                                                           * reached */
struct jinja_value value_string(struct jinja_arena *a, const char *text, size_t len, const uint8_t *origin);
struct jinja_value value_of(struct jinja_arena *a, const char *text); /* origin JINJA_TEMPLATE */
struct jinja_value value_int(int64_t i);
struct jinja_value value_none(void);
struct jinja_value value_undefined(const char *name);
struct jinja_value value_tuple(struct jinja_arena *a);
struct jinja_value value_form(struct jinja_value list, int form); /* the same list with another form */
void want_plain(struct jx *x, struct jinja_value v);              /* fails if the form is not list or tuple */
struct jinja_value *dict_find(const struct jinja_dict *d, struct jinja_value key);
struct jinja_value *dict_find_text(const struct jinja_dict *d, const char *key);
void dict_put(struct jinja_arena *a, struct jinja_dict *d, struct jinja_value key, struct jinja_value v);
bool value_is_number(struct jinja_value v);
double value_double(struct jinja_value v);
bool value_equal(struct jx *x, struct jinja_value a, struct jinja_value b);
int value_order(struct jx *x, struct jinja_value a, struct jinja_value b); /* <0, 0, >0; fails if the
                                                                            * values cannot be ordered */
bool value_true(struct jinja_value v);
struct jinja_value string_part(struct jx *x, const struct jinja_string *s, size_t from, size_t len);
bool string_is(struct jinja_value v, const char *text);
const char *value_chars(struct jx *x, struct jinja_value v); /* NUL-terminated copy of a string */

/* ---- spell.c: conversion of values to text; preserves origins -------------------------------------- */
void out_put(struct jx *x, struct output *o, const char *text, size_t len, const uint8_t *origin,
             enum jinja_origin plain);
void out_puts(struct jx *x, struct output *o, const char *text);
struct jinja_value out_value(struct jx *x, const struct output *o);
void spell(struct jx *x, struct output *o, struct jinja_value v);                  /* Python's str() */
void spell_repr(struct jx *x, struct output *o, struct jinja_value v);             /* repr() */
void spell_json(struct jx *x, struct output *o, struct jinja_value v, int indent); /* indent < 0: on one
                                                                                    * line */
struct jinja_value as_string(struct jx *x, struct jinja_value v);

/* ---- parser.c, expression_parser.c ----------------------------------------------------------------- */
struct node *parse_expression(struct jx *x);          /* including `if ... else` */
struct node *parse_tuple(struct jx *x, bool with_if); /* comma-separated expressions */
struct node *parse_filters(struct jx *x, struct node *of, bool only_filters);
void normalise(struct jx *x, struct node *call);
struct node *node_new(struct jx *x, enum node_kind kind);
void node_push(struct jx *x, struct node *to, struct node *item);
void node_push_named(struct jx *x, struct node *to, const char *name, struct node *value);
const struct token *token_now(const struct jx *x);
bool token_is(const struct jx *x, enum token_kind kind, const char *text);
bool token_take(struct jx *x, enum token_kind kind, const char *text);
void token_want(struct jx *x, enum token_kind kind, const char *text);
const char *token_name(struct jx *x);

/* Splits a source into tokens, ended by T_END (lexer.c). */
const struct token *lex(struct jx *x, const char *source, size_t len, int *n);

/* ---- expressions.c --------------------------------------------------------------------------------- */
struct jinja_value evaluate(struct jx *x, const struct node *n);
struct jinja_value apply_filters(struct jx *x, const struct node *chain, struct jinja_value to);
struct jinja_value call_value(struct jx *x, struct jinja_value f, const struct arguments *args);
struct jinja_value get_item(struct jx *x, struct jinja_value of, struct jinja_value key);
void gather_arguments(struct jx *x, const struct node *call, struct arguments *args);
bool is_in(struct jx *x, struct jinja_value what, struct jinja_value where);

/* ---- operators.c ----------------------------------------------------------------------------------- */
struct jinja_value binary(struct jx *x, const char *op, struct jinja_value a, struct jinja_value b);
struct jinja_value slice(struct jx *x, struct jinja_value of, const struct jinja_value part[3]);

/* ---- statements.c ---------------------------------------------------------------------------------- */
void run_statements(struct jx *x, const struct node *first);
struct jinja_value call_macro(struct jx *x, const struct macro *m, const struct arguments *args);
struct jinja_value lookup(struct jx *x, const char *name);
void assign(struct jx *x, const char *name, struct jinja_value v);
/* Returns the items of a list or tuple, the keys of a dict, the characters of a string, or an empty list
 * for an undefined value. Fails for other kinds. */
struct jinja_value iterate(struct jx *x, struct jinja_value v);

/* Apply a filter, test, method or function by its name; return false if the name is unknown (filters.c,
 * sequence_filters.c, tests.c, methods.c, functions.c). */
bool run_filter(struct jx *x, const char *name, struct jinja_value v, const struct arguments *a,
                struct jinja_value *out);
bool run_sequence_filter(struct jx *x, const char *name, struct jinja_value v, const struct arguments *a,
                         struct jinja_value *out);
struct jinja_value jx_format(struct jx *x, struct jinja_value v, const struct arguments *a); /* format.c */
bool run_test(struct jx *x, const char *name, struct jinja_value v, const struct arguments *a, bool *out);
bool has_method(struct jinja_value of, const char *name);
struct jinja_value call_method(struct jx *x, struct jinja_value self, const char *name,
                               const struct arguments *a);
bool is_function(const char *name);
struct jinja_value call_function(struct jx *x, const char *name, const struct arguments *a);

/* Returns argument `i` or the keyword argument with this name. If neither is given, returns an undefined
 * value for which given() is false. */
struct jinja_value argument(const struct arguments *a, int i, const char *name);
struct jinja_value argument_or(const struct arguments *a, int i, const char *name, struct jinja_value other);
bool given(struct jinja_value argument);
int64_t argument_int(struct jx *x, const struct arguments *a, int i, const char *name, int64_t other);

/* ---- text.c: Python's string methods --------------------------------------------------------------- */
struct jinja_value jx_text_strip(struct jx *x, struct jinja_value s, struct jinja_value chars, bool left,
                                 bool right);
struct jinja_value jx_text_replace(struct jx *x, struct jinja_value s, const struct jinja_string *from,
                                   const struct jinja_string *to, int64_t max);
struct jinja_value jx_text_split(struct jx *x, struct jinja_value s, struct jinja_value by, int64_t max,
                                 bool from_right);
struct jinja_value jx_text_case(struct jx *x, struct jinja_value s,
                                const char *how); /* upper, lower, title ... */
int64_t jx_text_find(const struct jinja_string *s, const struct jinja_string *what,
                     size_t from); /* byte, -1 */
bool jx_text_begins(const struct jinja_string *s, const struct jinja_string *with);
bool jx_text_ends(const struct jinja_string *s, const struct jinja_string *with);
/* Decodes the character at s[at]; an invalid byte counts as U+FFFD. */
int jx_char_at(const struct jinja_string *s, size_t at, uint32_t *c);
bool jx_text_all(struct jx *x, struct jinja_value s, const char *how); /* isalpha, isdigit ... */
int64_t jx_text_words(const struct jinja_string *s);
struct jinja_value jx_text_lines(struct jx *x, struct jinja_value s, bool keep); /* splitlines */
struct jinja_value jx_text_join(struct jx *x, struct jinja_value items, struct jinja_value between);
