/* operators.c - arithmetic and slices with the semantics of Python (jinja_impl.h). */
#include "jinja/jinja_impl.h"

#include "base/utf8.h"

#include <math.h>
#include <string.h>

static struct jinja_value real(double f)
{
    return (struct jinja_value){.kind = JINJA_FLOAT, .f = f};
}

static struct jinja_value join_lists(struct jx *x, struct jinja_value a, struct jinja_value b)
{
    struct jinja_value out = jinja_list(x->arena);
    out.kind = a.kind;
    want_plain(x, a);
    want_plain(x, b);
    for (int i = 0; i < a.l->n; i++)
        jinja_add(x->arena, out, a.l->items[i]);
    for (int i = 0; i < b.l->n; i++)
        jinja_add(x->arena, out, b.l->items[i]);
    return out;
}

static struct jinja_value join_texts(struct jx *x, struct jinja_value a, struct jinja_value b)
{
    struct output o = {0};
    spell(x, &o, a);
    spell(x, &o, b);
    return out_value(x, &o);
}

static struct jinja_value repeat(struct jx *x, struct jinja_value v, int64_t times)
{
    struct output o = {0};
    struct jinja_value out = jinja_list(x->arena);
    out.kind = v.kind;
    want_plain(x, v);
    for (int64_t i = 0; i < times; i++) {
        jx_enter(x);
        x->depth--;
        if (v.kind == JINJA_STRING)
            spell(x, &o, v);
        for (int k = 0; v.kind != JINJA_STRING && k < v.l->n; k++)
            jinja_add(x->arena, out, v.l->items[k]);
    }
    return v.kind == JINJA_STRING ? out_value(x, &o) : out;
}

/* Divides integers as Python does: rounds down, and the remainder has the sign of the divisor. */
static struct jinja_value whole_numbers(struct jx *x, char op, int64_t a, int64_t b)
{
    int64_t out = 0;
    if ((op == '/' || op == '%') && !b)
        jx_fail(x, "line %d: division by zero", x->line);
    if (op == '%' && b == -1)
        return value_int(0);
    if (op == '/' && b == -1) {
        op = '*'; /* the multiplication detects that INT64_MIN has no negative */
    }
    bool big = op == '+'   ? __builtin_add_overflow(a, b, &out)
               : op == '-' ? __builtin_sub_overflow(a, b, &out)
               : op == '*' ? __builtin_mul_overflow(a, b, &out)
                           : false;
    if (big)
        jx_fail(x, "line %d: an integer has more than 64 bits", x->line);
    if (op == '/')
        out = a / b - (a % b && (a < 0) != (b < 0));
    if (op == '%')
        out = a % b + (a % b && (a < 0) != (b < 0) ? b : 0);
    return value_int(out);
}

static struct jinja_value real_power(struct jx *x, double a, double b)
{
    double f = pow(a, b);
    if (isnan(f) || (isinf(f) && !isinf(a) && !isinf(b)))
        jx_fail(x, "line %d: '**' has no result for these numbers", x->line);
    return real(f);
}

/* Divides floats as Python does: the remainder has the sign of q, and the quotient is the matching
 * integer. */
static struct jinja_value divide_down(double p, double q, bool want_remainder)
{
    double remainder = fmod(p, q), quotient = (p - remainder) / q;
    if (remainder != 0 && (q < 0) != (remainder < 0)) {
        remainder += q;
        quotient -= 1;
    } else if (remainder == 0) {
        remainder = copysign(0, q);
    }
    if (want_remainder)
        return real(remainder);
    if (quotient == 0)
        return real(copysign(0, p / q));
    double whole = floor(quotient);
    return real(quotient - whole > 0.5 ? whole + 1 : whole);
}

static struct jinja_value power(struct jx *x, struct jinja_value a, struct jinja_value b)
{
    if (a.kind == JINJA_FLOAT || b.kind == JINJA_FLOAT || value_double(b) < 0)
        return real_power(x, value_double(a), value_double(b));
    struct jinja_value out = value_int(1);
    int64_t n = b.kind == JINJA_BOOL ? b.b : b.i, base = a.kind == JINJA_BOOL ? a.b : a.i;
    if (base >= -1 && base <= 1)
        return value_int(base == 0 ? n == 0 : base < 0 && n % 2 ? -1 : 1);
    for (; n > 0; n--) /* fails by overflow after at most 63 steps */
        out = whole_numbers(x, '*', out.i, base);
    return out;
}

static struct jinja_value numbers(struct jx *x, const char *op, struct jinja_value a, struct jinja_value b)
{
    double p = value_double(a), q = value_double(b);
    bool whole = a.kind != JINJA_FLOAT && b.kind != JINJA_FLOAT;
    if (!strcmp(op, "**"))
        return power(x, a, b);
    if ((*op == '/' || *op == '%') && q == 0)
        jx_fail(x, "line %d: division by zero", x->line);
    const double exact = 1LL << 53;
    if (whole && !strcmp(op, "/") && (fabs(p) > exact || fabs(q) > exact))
        jx_fail(x, "line %d: '/' on integers beyond 2**53 is not supported", x->line);
    if (!strcmp(op, "/"))
        return real(p / q);
    if (whole)
        return whole_numbers(x, *op, a.kind == JINJA_BOOL ? a.b : a.i, b.kind == JINJA_BOOL ? b.b : b.i);
    switch (*op) {
    case '+':
        return real(p + q);
    case '-':
        return real(p - q);
    case '*':
        return real(p * q);
    default:
        return divide_down(p, q, *op == '%');
    }
}

struct jinja_value binary(struct jx *x, const char *op, struct jinja_value a, struct jinja_value b)
{
    bool lists = (a.kind == JINJA_LIST || a.kind == JINJA_TUPLE) && a.kind == b.kind;
    if (value_is_number(a) && value_is_number(b))
        return numbers(x, op, a, b);
    if (*op == '+' && a.kind == JINJA_STRING && b.kind == JINJA_STRING && a.s->markup != b.s->markup)
        jx_fail(x, "line %d: '+' on a string marked as safe is not supported", x->line);
    if (*op == '+' && a.kind == JINJA_STRING && b.kind == JINJA_STRING)
        return join_texts(x, a, b);
    if (*op == '+' && lists)
        return join_lists(x, a, b);
    bool left = a.kind == JINJA_STRING || a.kind == JINJA_LIST || a.kind == JINJA_TUPLE;
    bool right = b.kind == JINJA_STRING || b.kind == JINJA_LIST || b.kind == JINJA_TUPLE;
    if (!strcmp(op, "*") && ((left && b.kind == JINJA_INT) || (right && a.kind == JINJA_INT)))
        return left ? repeat(x, a, b.i) : repeat(x, b, a.i);
    if (*op == '%' && a.kind == JINJA_STRING) {
        struct arguments args = {.v = &b, .n = 1};
        if (b.kind == JINJA_TUPLE)
            args = (struct arguments){.v = b.l->items, .n = b.l->n};
        if (a.s->markup)
            jx_fail(x, "line %d: '%%' on a string marked as safe is not supported", x->line);
        return jx_format(x, a, &args);
    }
    if (a.kind == JINJA_UNDEFINED || b.kind == JINJA_UNDEFINED)
        jx_fail(x, "line %d: '%s' is undefined", x->line,
                a.kind == JINJA_UNDEFINED ? a.name ? a.name : "a value"
                : b.name                  ? b.name
                                          : "a value");
    jx_fail(x, "line %d: '%s' does not work on values of these types", x->line, op);
}

/* ---- slices ------------------------------------------------------------------------------------------- */

/* Returns bound `v` of a slice of n items. other: the value for an absent bound. */
static int64_t bound(struct jx *x, struct jinja_value v, int64_t n, int64_t step, int64_t other)
{
    if (v.kind == JINJA_NONE)
        return other;
    if (v.kind != JINJA_INT)
        jx_fail(x, "line %d: the bounds of a slice must be integers", x->line);
    int64_t i = v.i < 0 ? v.i + n : v.i, low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    return i < low ? low : i > high ? high : i;
}

/* Returns the byte offsets of all characters: character i is between starts[i] and starts[i + 1]. */
static size_t *character_starts(struct jx *x, const struct jinja_string *s, int64_t *n)
{
    size_t *starts = jx_arena_take(x->arena, (s->len + 1) * sizeof *starts);
    *n = 0;
    for (size_t at = 0; at < s->len;) {
        uint32_t c;
        int len = utf8_decode(s->data + at, s->len - at, &c);
        starts[(*n)++] = at;
        at += len > 0 ? (size_t)len : 1;
    }
    starts[*n] = s->len;
    return starts;
}

/* Returns the byte offset of character i of s; the length of s beyond the last one. */
static size_t byte_of(const struct jinja_string *s, int64_t i)
{
    size_t at = 0;
    for (; i > 0 && at < s->len; i--)
        for (at++; at < s->len && ((unsigned char)s->data[at] & 0xc0) == 0x80; at++)
            ;
    return at;
}

/* Returns a slice with step 1, which shares the bytes of s. */
static struct jinja_value text_slice(struct jx *x, const struct jinja_string *s,
                                     const struct jinja_value part[3])
{
    bool counted =
        (part[0].kind == JINJA_INT && part[0].i < 0) || (part[1].kind == JINJA_INT && part[1].i < 0);
    int64_t n = counted ? (int64_t)utf8_count(s->data, s->len) : INT64_MAX;
    int64_t from = bound(x, part[0], n, 1, 0), to = bound(x, part[1], n, 1, n);
    size_t begin = byte_of(s, from), end = to == n ? s->len : byte_of(s, to);
    jx_spend(x, (counted ? s->len : 0) + begin + (to == n ? 0 : end));
    return end > begin ? string_part(x, s, begin, end - begin) : string_part(x, s, 0, 0);
}

struct jinja_value slice(struct jx *x, struct jinja_value of, const struct jinja_value part[3])
{
    bool text = of.kind == JINJA_STRING, list = of.kind == JINJA_LIST || of.kind == JINJA_TUPLE;
    int64_t n = list ? of.l->n : 0, step = part[2].kind == JINJA_INT ? part[2].i : part[2].kind == JINJA_NONE;
    if (text && step == 1)
        return text_slice(x, of.s, part);
    size_t *starts = text ? character_starts(x, of.s, &n) : NULL;
    if (list && of.l->form != LIST_RANGE)
        want_plain(x, of);
    if (!step || (!text && !list))
        jx_fail(x, "line %d: %s", x->line,
                step ? "only strings and lists have slices"
                     : "the step of a slice must be an integer that is not zero");
    int64_t i = bound(x, part[0], n, step, step < 0 ? n - 1 : 0),
            end = bound(x, part[1], n, step, step < 0 ? -1 : n);
    struct output o = {0};
    struct jinja_value out = jinja_list(x->arena);
    for (; step > 0 ? i < end : i > end; i += step) {
        if (text)
            spell(x, &o, string_part(x, of.s, starts[i], starts[i + 1] - starts[i]));
        else
            jinja_add(x->arena, out, of.l->items[i]);
        if (step > n || step < -n)
            break;
    }
    out.kind = text ? JINJA_STRING : of.kind;
    out.l->form = list ? of.l->form : LIST_PLAIN;
    return text ? out_value(x, &o) : out;
}
