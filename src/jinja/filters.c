/* filters.c - Jinja's filters for single values (jinja_impl.h). */
#include "jinja/jinja_impl.h"

#include "base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct jinja_value filter_fn(struct jx *x, struct jinja_value v, const struct arguments *a);

static struct jinja_value filter_string(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    return as_string(x, v);
}

/* Marks a string as Markup. The operator `+` would escape its other operand, which binary() rejects. */
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

/* Returns whether a space, hyphen or opening bracket ends at byte `end`. */
static bool parts_words(const struct jinja_string *s, size_t end)
{
    uint32_t c = 0;
    size_t n = 1;
    while (n < 4 && n < end && ((unsigned char)s->data[end - n] & 0xc0) == 0x80)
        n++;
    return utf8_decode(s->data + end - n, n, &c) == (int)n &&
           (utf8_is_space(c) || (c && c < 0x80 && strchr("-({[<", (int)c)));
}

/* Capitalizes each word after a space, hyphen or bracket, as Jinja's title does. This differs from
 * str.title(). */
static struct jinja_value filter_title(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value s = as_string(x, v);
    struct output o = {0};
    for (size_t at = 0; at < s.s->len;) {
        size_t end = at + 1;
        while (end < s.s->len && !parts_words(s.s, end))
            end++;
        struct jinja_value word = string_part(x, s.s, at, end - at);
        size_t first = 1;
        while (first < word.s->len && ((unsigned char)word.s->data[first] & 0xc0) == 0x80)
            first++;
        spell(x, &o, jx_text_case(x, string_part(x, word.s, 0, first), "upper"));
        spell(x, &o, jx_text_case(x, string_part(x, word.s, first, word.s->len - first), "lower"));
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
        jx_spend(x, v.s->len);
        return value_int((int64_t)utf8_count(v.s->data, v.s->len));
    }
    if (v.kind == JINJA_LIST && v.l->form == LIST_ONCE)
        want_plain(x, v);
    return value_int(v.kind == JINJA_DICT ? v.d->n : iterate(x, v).l->n);
}

static struct jinja_value filter_tojson(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct output o = {0};
    if (value_true(argument_or(a, 0, "ensure_ascii", jinja_bool(false))) ||
        argument(a, 2, "separators").kind > JINJA_NONE)
        jx_fail(x, "line %d: tojson: only the argument indent is supported", x->line);
    if (value_true(argument_or(a, 3, "sort_keys", jinja_bool(false))) && v.kind >= JINJA_LIST)
        jx_fail(x, "line %d: tojson: sort_keys is not supported", x->line);
    struct jinja_value indent = argument(a, 1, "indent");
    bool one_line = !given(indent) || indent.kind == JINJA_NONE;
    int64_t spaces = one_line ? -1 : argument_int(x, a, 1, "indent", 0);
    if (!one_line && (spaces < 0 || spaces > 64))
        jx_fail(x, "line %d: tojson: indent must be 0 to 64 spaces", x->line);
    spell_json(x, &o, v, (int)spaces);
    return out_value(x, &o);
}

static struct jinja_value filter_replace(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    if (!given(argument(a, 0, "old")) || !given(argument(a, 1, "new")))
        jx_fail(x, "line %d: replace needs two strings", x->line);
    struct jinja_value from = as_string(x, argument(a, 0, "old")), to = as_string(x, argument(a, 1, "new"));
    return jx_text_replace(x, as_string(x, v), from.s, to.s, argument_int(x, a, 2, "count", -1));
}

/* Fails for digits that Python accepts and C does not: "_" between digits, and digits of other scripts. */
static void refuse_digits(struct jx *x, const char *text)
{
    bool other = strchr(text, '_') && strspn(text, "0123456789_.eE+-") == strlen(text);
    uint32_t c;
    int n;
    for (const char *p = text, *end = p + strlen(p);
         !other && (n = utf8_decode(p, (size_t)(end - p), &c)) > 0; p += n)
        other = c >= 0x80 && g_unichar_isdigit(c);
    if (other)
        jx_fail(x, "line %d: '%.40s' as a number is not supported", x->line, text);
}

/* Parses like Python's float(). strtod() also accepts hexadecimal digits and nan(...), which are excluded
 * here. */
static bool read_double(struct jx *x, const char *text, double *f)
{
    char *end;
    refuse_digits(x, text);
    *f = strtod(text, &end);
    return *text && !*end && !strpbrk(text, "xX(");
}

static bool read_whole(struct jx *x, const char *text, int64_t base, int64_t *i)
{
    char *end;
    const char *digits = text + (*text == '-' || *text == '+');
    if ((base != 2 && base != 8 && base != 10 && base != 16) ||
        (base < 10 && digits[0] == '0' && strchr("bBoOxX", digits[1]) && digits[1]))
        jx_fail(x, "line %d: int: '%.40s' with the base %lld is not supported", x->line, text,
                (long long)base);
    refuse_digits(x, text);
    jx_spend(x, strlen(text));
    errno = 0;
    *i = strtoll(text, &end, (int)base);
    bool whole = isalnum((unsigned char)*digits) && !*end;
    if (whole && errno)
        jx_fail(x, "line %d: an integer has more than 64 bits", x->line);
    return whole;
}

static const char *number_text(struct jx *x, struct jinja_value v, const char *filter)
{
    if (v.kind == JINJA_UNDEFINED)
        jx_fail(x, "line %d: %s: '%s' is undefined", x->line, filter, v.name ? v.name : "the value");
    return v.kind == JINJA_STRING ? value_chars(x, jx_text_strip(x, v, value_none(), true, true)) : NULL;
}

static struct jinja_value filter_int(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value other = argument_or(a, 0, "default", value_int(0));
    const char *text = number_text(x, v, "int");
    double f = v.kind == JINJA_FLOAT ? v.f : 0;
    int64_t i = v.kind == JINJA_BOOL ? v.b : v.i;
    if (v.kind == JINJA_INT || v.kind == JINJA_BOOL ||
        (text && read_whole(x, text, argument_int(x, a, 1, "base", 10), &i)))
        return value_int(i);
    if ((v.kind != JINJA_FLOAT && !(text && read_double(x, text, &f))) || isnan(f) || (isinf(f) && text))
        return other;
    if (!(fabs(f) < 9e18))
        jx_fail(x, "line %d: an integer has more than 64 bits", x->line);
    return value_int((int64_t)f);
}

static struct jinja_value filter_float(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    const struct jinja_value zero = {.kind = JINJA_FLOAT};
    const char *text = number_text(x, v, "float");
    double f = 0;
    if (value_is_number(v))
        return (struct jinja_value){.kind = JINJA_FLOAT, .f = value_double(v)};
    return text && read_double(x, text, &f) ? (struct jinja_value){.kind = JINJA_FLOAT, .f = f}
                                            : argument_or(a, 0, "default", zero);
}

static struct jinja_value filter_abs(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    if (!value_is_number(v))
        jx_fail(x, "line %d: abs needs a number", x->line);
    if (v.kind == JINJA_FLOAT)
        return (struct jinja_value){.kind = JINJA_FLOAT, .f = fabs(v.f)};
    int64_t i = v.kind == JINJA_BOOL ? v.b : v.i;
    if (i == INT64_MIN)
        jx_fail(x, "line %d: an integer has more than 64 bits", x->line);
    return value_int(i < 0 ? -i : i);
}

static struct jinja_value filter_round(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    char text[400];
    struct jinja_value how = argument_or(a, 1, "method", value_of(x->arena, "common"));
    int64_t digits = argument_int(x, a, 0, "precision", 0);
    if (!value_is_number(v) || digits < -15 || digits > 15)
        jx_fail(x, "line %d: round needs a number and at most 15 digits", x->line);
    if (how.kind != JINJA_STRING ||
        (!string_is(how, "ceil") && !string_is(how, "floor") && !string_is(how, "common")))
        jx_fail(x, "line %d: round knows the methods common, ceil and floor", x->line);
    double scale = pow(10, (double)digits), f = value_double(v);
    if (v.kind != JINJA_FLOAT && string_is(how, "common") && digits >= 0)
        return value_int(v.kind == JINJA_BOOL ? v.b : v.i);
    if (fabs(f) >= 1LL << 53)
        jx_fail(x, "line %d: round beyond 2**53 is not supported", x->line);
    if (string_is(how, "ceil") || string_is(how, "floor"))
        f = (string_is(how, "ceil") ? ceil(f * scale) : floor(f * scale)) / scale;
    else if (digits >= 0) { /* to the nearest decimal of the exact binary value, as Python's round() */
        snprintf(text, sizeof text, "%.*f", (int)digits, f);
        f = strtod(text, NULL);
    } else {
        double unit = pow(10, (double)-digits); /* both the unit and the remainder are exact */
        double rest = fmod(fabs(f), unit), down = fabs(f) - rest;
        bool up = rest * 2 > unit || (rest * 2 == unit && fmod(down / unit, 2) == 1);
        f = copysign(up ? down + unit : down, f);
    }
    bool whole = v.kind != JINJA_FLOAT && string_is(how, "common");
    return whole ? value_int((int64_t)f) : (struct jinja_value){.kind = JINJA_FLOAT, .f = f};
}

static struct jinja_value filter_indent(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value width = argument_or(a, 0, "width", value_int(4));
    if (v.kind != JINJA_STRING || (width.kind != JINJA_STRING && width.kind != JINJA_INT))
        jx_fail(x, "line %d: indent needs a string, and a width that is an integer or a string", x->line);
    bool first = value_true(argument(a, 1, "first")), blank = value_true(argument(a, 2, "blank"));
    struct output spaces = {0}, o = {0};
    if (width.kind == JINJA_STRING)
        spell(x, &spaces, width);
    for (int64_t i = 0; width.kind == JINJA_INT && i < width.i; i++)
        out_puts(x, &spaces, " ");
    struct output ended = {0};
    spell(x, &ended, v);
    out_puts(x, &ended, "\n");
    struct jinja_value lines = jx_text_lines(x, out_value(x, &ended), false);
    for (int i = 0; i < lines.l->n; i++) {
        out_puts(x, &o, i ? "\n" : "");
        if ((i ? blank || lines.l->items[i].s->len : first))
            spell(x, &o, out_value(x, &spaces));
        spell(x, &o, lines.l->items[i]);
    }
    return out_value(x, &o);
}

static struct jinja_value filter_wordcount(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct jinja_value s = as_string(x, v);
    jx_spend(x, 8 * s.s->len);
    return value_int(jx_text_words(s.s));
}

bool run_filter(struct jx *x, const char *name, struct jinja_value v, const struct arguments *a,
                struct jinja_value *out)
{
    static const struct {
        const char *name;
        filter_fn *run;
        int most; /* greatest number of arguments */
    } known[] = {{"string", filter_string, 0},   {"safe", filter_safe, 0},
                 {"trim", filter_trim, 1},       {"upper", filter_upper, 0},
                 {"lower", filter_lower, 0},     {"capitalize", filter_capitalize, 0},
                 {"title", filter_title, 0},     {"default", filter_default, 2},
                 {"d", filter_default, 2},       {"length", filter_length, 0},
                 {"count", filter_length, 0},    {"tojson", filter_tojson, 4},
                 {"replace", filter_replace, 3}, {"int", filter_int, 2},
                 {"float", filter_float, 1},     {"abs", filter_abs, 0},
                 {"round", filter_round, 2},     {"indent", filter_indent, 3},
                 {"format", jx_format, 1000},    {"wordcount", filter_wordcount, 0}};
    jx_enter(x);
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known && !found; i++)
        if ((found = !strcmp(name, known[i].name))) {
            if (a->n + a->n_named > known[i].most)
                jx_fail(x, "line %d: the filter '%s' has too many arguments", x->line, name);
            *out = known[i].run(x, v, a);
        }
    if (found && v.kind == JINJA_STRING && v.s->markup && out->kind == JINJA_STRING &&
        strcmp(name, "tojson") != 0)
        *out = filter_safe(x, *out, a); /* the result of a filter on Markup is Markup */
    found = found || run_sequence_filter(x, name, v, a, out);
    x->depth--;
    return found;
}
