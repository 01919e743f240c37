/* filters.c - Jinja's filters on single values (jinja_impl.h). */
#include "jinja/jinja_impl.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct jinja_value filter_fn(struct jx *x, struct jinja_value v, const struct arguments *a);

static struct jinja_value filter_string(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    return as_string(x, v);
}

/* Marks a text as Markup: `+` would escape the other operand, which binary() refuses. */
static struct jinja_value filter_safe(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value s = as_string(x, v);
    struct jinja_string *copy = jx_arena_take(x->arena, sizeof *copy);
    *copy = *s.s;
    copy->markup = true;
    s.s = copy;
    return s;
}

static struct jinja_value filter_trim(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    return jx_text_strip(x, as_string(x, v), argument(a, 0, "chars"), true, true);
}

static struct jinja_value filter_upper(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    return jx_text_case(x, as_string(x, v), "upper");
}

static struct jinja_value filter_lower(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    return jx_text_case(x, as_string(x, v), "lower");
}

static struct jinja_value filter_capitalize(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    return jx_text_case(x, as_string(x, v), "capitalize");
}

/* Upper case after spaces and brackets, as Jinja's own title does. */
static struct jinja_value filter_title(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value s = as_string(x, v);
    struct output o = {0};
    for (size_t at = 0; at < s.s->len;) {
        size_t end = at + 1;
        while (end < s.s->len && !strchr("-({[< \t\n\r", s.s->data[end - 1]))
            end++;
        spell(x, &o, jx_text_case(x, string_part(x, s.s, at, end - at), "capitalize"));
        at = end;
    }
    return out_value(x, &o);
}

static struct jinja_value filter_default(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    bool use = v.kind == JINJA_UNDEFINED ||
               (value_true(argument_or(a, 1, "boolean", jinja_bool(false))) && !value_true(v));
    return use ? argument_or(a, 0, "default_value", value_of(x->arena, "")) : v;
}

static struct jinja_value filter_length(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    if (v.kind == JINJA_STRING) {
        int64_t n = 0;
        for (size_t i = 0; i < v.s->len; i++)
            n += ((unsigned char)v.s->data[i] & 0xc0) != 0x80;
        return value_int(n);
    }
    return value_int(v.kind == JINJA_DICT ? v.d->n : iterate(x, v).l->n);
}

static struct jinja_value filter_tojson(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct output o = {0};
    if (value_true(argument_or(a, 0, "ensure_ascii", jinja_bool(false))) ||
        argument(a, 2, "separators").kind > JINJA_NONE)
        jx_fail(x, "line %d: tojson: only the argument indent is supported", x->line);
    if (value_true(argument_or(a, 3, "sort_keys", jinja_bool(false))) && v.kind == JINJA_DICT)
        jx_fail(x, "line %d: tojson: sort_keys is not supported", x->line);
    spell_json(x, &o, v, (int)argument_int(x, a, 1, "indent", -1));
    return out_value(x, &o);
}

static struct jinja_value filter_replace(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    if (argument(a, 0, "old").kind == JINJA_UNDEFINED || argument(a, 1, "new").kind == JINJA_UNDEFINED)
        jx_fail(x, "line %d: replace needs two texts", x->line);
    struct jinja_value from = as_string(x, argument(a, 0, "old")), to = as_string(x, argument(a, 1, "new"));
    return jx_text_replace(x, as_string(x, v), from.s, to.s, argument_int(x, a, 2, "count", -1));
}

static struct jinja_value filter_int(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value other = argument_or(a, 0, "default", value_int(0));
    if (v.kind == JINJA_UNDEFINED)
        jx_fail(x, "line %d: int: '%s' is undefined", x->line, v.name ? v.name : "the value");
    if (v.kind == JINJA_FLOAT)
        return fabs(v.f) < 9e18 ? value_int((int64_t)v.f) : other;
    if (value_is_number(v))
        return value_int(v.kind == JINJA_BOOL ? v.b : v.i);
    if (v.kind != JINJA_STRING)
        return other;
    char *end;
    const char *text = value_chars(x, jx_text_strip(x, v, value_none(), true, true));
    int64_t i = strtoll(text, &end, (int)argument_int(x, a, 1, "base", 10));
    if (*text && !*end)
        return value_int(i);
    double f = strtod(text, &end);
    return *text && !*end && fabs(f) < 9e18 ? value_int((int64_t)f) : other;
}

static struct jinja_value filter_float(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    const struct jinja_value zero = {.kind = JINJA_FLOAT};
    if (v.kind == JINJA_UNDEFINED)
        jx_fail(x, "line %d: float: '%s' is undefined", x->line, v.name ? v.name : "the value");
    if (value_is_number(v))
        return (struct jinja_value){.kind = JINJA_FLOAT, .f = value_double(v)};
    if (v.kind != JINJA_STRING)
        return argument_or(a, 0, "default", zero);
    char *end;
    const char *text = value_chars(x, jx_text_strip(x, v, value_none(), true, true));
    double f = strtod(text, &end);
    return *text && !*end ? (struct jinja_value){.kind = JINJA_FLOAT, .f = f}
                          : argument_or(a, 0, "default", zero);
}

static struct jinja_value filter_abs(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    if (!value_is_number(v))
        jx_fail(x, "line %d: abs needs a number", x->line);
    if (v.kind == JINJA_FLOAT)
        return (struct jinja_value){.kind = JINJA_FLOAT, .f = fabs(v.f)};
    int64_t i = v.kind == JINJA_BOOL ? v.b : v.i;
    return value_int(i < 0 ? (int64_t)(0 - (uint64_t)i) : i);
}

static struct jinja_value filter_round(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    char text[400];
    struct jinja_value how = argument_or(a, 1, "method", value_of(x->arena, "common"));
    int64_t digits = argument_int(x, a, 0, "precision", 0);
    if (!value_is_number(v) || digits < -15 || digits > 15)
        jx_fail(x, "line %d: round needs a number and at most 15 digits", x->line);
    double scale = pow(10, (double)digits), f = value_double(v);
    if (string_is(how, "ceil") || string_is(how, "floor"))
        f = (string_is(how, "ceil") ? ceil(f * scale) : floor(f * scale)) / scale;
    else if (digits >= 0) { /* to the nearest decimal of the exact value, as round() does */
        snprintf(text, sizeof text, "%.*f", (int)digits, f);
        f = strtod(text, NULL);
    } else {
        f = nearbyint(f * scale) / scale;
    }
    bool whole = v.kind != JINJA_FLOAT && string_is(how, "common");
    return whole ? value_int((int64_t)f) : (struct jinja_value){.kind = JINJA_FLOAT, .f = f};
}

static struct jinja_value filter_indent(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value s = as_string(x, v), width = argument_or(a, 0, "width", value_int(4));
    bool first = value_true(argument(a, 1, "first")), blank = value_true(argument(a, 2, "blank"));
    struct output spaces = {0}, o = {0};
    if (width.kind == JINJA_STRING)
        spell(x, &spaces, width);
    for (int64_t i = 0; width.kind == JINJA_INT && i < width.i && i < 1024; i++)
        out_puts(x, &spaces, " ");
    struct jinja_value lines = jx_text_split(x, s, value_of(x->arena, "\n"), -1, false);
    for (int i = 0; i < lines.l->n; i++) {
        out_puts(x, &o, i ? "\n" : "");
        if ((i ? blank || lines.l->items[i].s->len : first))
            spell(x, &o, out_value(x, &spaces));
        spell(x, &o, lines.l->items[i]);
    }
    return out_value(x, &o);
}

/* printf-style: %s, %d, %f and %r with flags; named arguments are not supported. */
static struct jinja_value filter_format(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct output o = {0};
    const char *p = value_chars(x, as_string(x, v));
    int used = 0;
    for (; *p; p++) {
        char how[32], text[400];
        size_t n = *p == '%' ? 1 + strspn(p + 1, "-+ #0123456789.") : 0;
        if (!n || n > 20 || (n == 1 && p[1] == '%')) {
            out_put(x, &o, p, 1, NULL, JINJA_TEMPLATE);
            p += n == 1;
            continue;
        }
        struct jinja_value one = argument(a, used++, NULL);
        if (one.kind == JINJA_UNDEFINED)
            jx_fail(x, "line %d: format: not enough arguments", x->line);
        if (strchr("sr", p[n])) {
            struct output part = {0};
            (p[n] == 's' ? spell : spell_repr)(x, &part, one);
            spell(x, &o, out_value(x, &part));
        } else if (strchr("diu", p[n]) && p[n] && value_is_number(one)) {
            snprintf(how, sizeof how, "%.*slld", (int)n, p);
            snprintf(text, sizeof text, how, (long long)value_double(one)); /* NOLINT */
            out_puts(x, &o, text);
        } else if (strchr("eEfFgGxXo", p[n]) && p[n] && value_is_number(one)) {
            bool whole = strchr("xXo", p[n]);
            snprintf(how, sizeof how, "%.*s%s%c", (int)n, p, whole ? "ll" : "", p[n]);
            if (whole)
                snprintf(text, sizeof text, how, (long long)value_double(one)); /* NOLINT */
            else
                snprintf(text, sizeof text, how, value_double(one)); /* NOLINT */
            out_puts(x, &o, text);
        } else {
            jx_fail(x, "line %d: format: '%%%c' is not supported", x->line, p[n]);
        }
        p += n;
    }
    return out_value(x, &o);
}

static struct jinja_value filter_wordcount(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    return value_int(jx_text_split(x, as_string(x, v), value_none(), -1, false).l->n);
}

bool run_filter(struct jx *x, const char *name, struct jinja_value v, const struct arguments *a,
                struct jinja_value *out)
{
    static const struct {
        const char *name;
        filter_fn *run;
    } known[] = {{"string", filter_string},   {"safe", filter_safe},
                 {"trim", filter_trim},       {"upper", filter_upper},
                 {"lower", filter_lower},     {"capitalize", filter_capitalize},
                 {"title", filter_title},     {"default", filter_default},
                 {"d", filter_default},       {"length", filter_length},
                 {"count", filter_length},    {"tojson", filter_tojson},
                 {"replace", filter_replace}, {"int", filter_int},
                 {"float", filter_float},     {"abs", filter_abs},
                 {"round", filter_round},     {"indent", filter_indent},
                 {"format", filter_format},   {"wordcount", filter_wordcount}};
    jx_enter(x);
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known && !found; i++)
        if ((found = !strcmp(name, known[i].name)))
            *out = known[i].run(x, v, a);
    found = found || run_sequence_filter(x, name, v, a, out);
    x->depth--;
    return found;
}
