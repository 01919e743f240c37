/* tests.c - Jinja's tests, `x is NAME` (jinja_impl.h). */
#include "jinja/jinja_impl.h"

#include <math.h>
#include <string.h>

static bool is_sequence(struct jinja_value v)
{
    return v.kind == JINJA_STRING || v.kind == JINJA_TUPLE || v.kind == JINJA_DICT ||
           v.kind == JINJA_UNDEFINED ||
           (v.kind == JINJA_LIST && (v.l->form == LIST_PLAIN || v.l->form == LIST_RANGE));
}

static bool is_callable(struct jinja_value v)
{
    return v.kind == JINJA_UNDEFINED || v.kind == JINJA_LOOP || v.kind == JINJA_MACRO ||
           v.kind == JINJA_FUNCTION || v.kind == JINJA_METHOD;
}

/* Evaluates the tests that need no arguments and no state. */
static bool run_plain_test(const char *name, struct jinja_value v, bool *out)
{
    const struct {
        const char *name;
        bool yes;
    } known[] = {{"defined", v.kind != JINJA_UNDEFINED},
                 {"undefined", v.kind == JINJA_UNDEFINED},
                 {"none", v.kind == JINJA_NONE},
                 {"boolean", v.kind == JINJA_BOOL},
                 {"true", v.kind == JINJA_BOOL && v.b},
                 {"false", v.kind == JINJA_BOOL && !v.b},
                 {"integer", v.kind == JINJA_INT},
                 {"float", v.kind == JINJA_FLOAT},
                 {"number", value_is_number(v)},
                 {"string", v.kind == JINJA_STRING},
                 {"mapping", v.kind == JINJA_DICT},
                 {"sequence", is_sequence(v)},
                 {"iterable", is_sequence(v) || v.kind == JINJA_LIST || v.kind == JINJA_LOOP},
                 {"callable", is_callable(v)},
                 {"escaped", v.kind == JINJA_STRING && v.s->markup}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name)) {
            *out = known[i].yes;
            return true;
        }
    return false;
}

static bool compared(struct jx *x, const char *name, struct jinja_value v, struct jinja_value with, bool *out)
{
    static const char *const words[][3] = {{"eq", "equalto", "=="},    {"ne", "!=", NULL},
                                           {"lt", "lessthan", "<"},    {"le", "<=", NULL},
                                           {"gt", "greaterthan", ">"}, {"ge", ">=", NULL}};
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 3 && words[i][k]; k++)
            if (!strcmp(name, words[i][k])) {
                int order = i < 2 ? !value_equal(x, v, with) : value_order(x, v, with);
                *out = i == 0   ? order == 0
                       : i == 1 ? order != 0
                       : i == 2 ? order < 0
                       : i == 3 ? order <= 0
                       : i == 4 ? order > 0
                                : order >= 0;
                return true;
            }
    return false;
}

static bool has_case(struct jx *x, struct jinja_value v, const char *how)
{
    struct jinja_value s = as_string(x, v);
    bool same = value_equal(x, s, jx_text_case(x, s, how));
    return same && !value_equal(x, s, jx_text_case(x, s, *how == 'u' ? "lower" : "upper"));
}

/* Compares by identity, which is known for None, booleans, small integers and values after JINJA_STRING.
 * Fails for other equal numbers and equal strings, since Python may store them as one object or two. */
static bool same_object(struct jx *x, struct jinja_value a, struct jinja_value b)
{
    if (a.kind != b.kind)
        return false;
    if (a.kind > JINJA_STRING)
        return a.p == b.p;
    bool equal = value_equal(x, a, b);
    bool small = a.kind == JINJA_INT && a.i >= -5 && a.i <= 256;
    if (equal && a.kind != JINJA_NONE && a.kind != JINJA_BOOL && !small)
        jx_fail(x, "line %d: the test 'sameas' on these values is not supported", x->line);
    return equal;
}

static int64_t whole(struct jx *x, struct jinja_value v)
{
    if (v.kind != JINJA_INT && v.kind != JINJA_BOOL)
        jx_fail(x, "line %d: the test needs an integer", x->line);
    return v.kind == JINJA_BOOL ? v.b : v.i;
}

bool run_test(struct jx *x, const char *name, struct jinja_value v, const struct arguments *a, bool *out)
{
    struct jinja_value with = argument(a, 0, NULL);
    if (run_plain_test(name, v, out) || compared(x, name, v, with, out))
        return true;
    if (!strcmp(name, "odd") || !strcmp(name, "even"))
        *out = (whole(x, v) & 1) == (*name == 'o');
    else if (!strcmp(name, "divisibleby") && whole(x, with))
        *out = whole(x, with) == -1 || whole(x, v) % whole(x, with) == 0;
    else if (!strcmp(name, "in"))
        *out = is_in(x, v, with);
    else if (!strcmp(name, "sameas"))
        *out = same_object(x, v, with);
    else if (!strcmp(name, "upper") || !strcmp(name, "lower"))
        *out = has_case(x, v, name);
    else if (!strcmp(name, "filter") || !strcmp(name, "test"))
        jx_fail(x, "line %d: the test '%s' is not supported", x->line, name);
    else
        return false;
    return true;
}
