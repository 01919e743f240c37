/* format.c - printf-style formatting as in Python, for the filter `format` and the operator % on strings
 * (jinja_impl.h).
 *
 * Supported are %s, %r, %d, %i, %u, %x, %X, %o, %e, %f, %g and %% with flags, width and precision. */
#include "jinja/jinja_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 300 /* limit of a field's width and of its precision */ };

struct field {
    char flags[8];        /* flags among "-+ #0" */
    int width, precision; /* precision -1: none */
    char kind;
};

/* Reads a decimal number of at most MOST at *p and advances *p. */
static int read_count(struct jx *x, const char **p, const char *end)
{
    int n = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; ++*p)
        if ((n = n * 10 + (**p - '0')) > MOST)
            jx_fail(x, "line %d: format: a width of more than %d is not supported", x->line, MOST);
    return n;
}

/* Reads a format field that follows a '%' at p, and returns the end of the field. */
static const char *read_field(struct jx *x, const char *p, const char *end, struct field *f)
{
    *f = (struct field){.precision = -1};
    for (size_t n = 0; p < end && *p && strchr("-+ #0", *p); p++)
        if (!strchr(f->flags, *p) && n < sizeof f->flags - 1)
            f->flags[n++] = *p;
    f->width = read_count(x, &p, end);
    if (p < end && *p == '.') {
        p++;
        f->precision = read_count(x, &p, end);
    }
    if (p >= end)
        jx_fail(x, "line %d: format: a field has no end", x->line);
    if (!*p || !strchr("srdiuxXoeEfFgG", *p))
        jx_fail(x, "line %d: format: '%%%c' is not supported", x->line, *p > ' ' && *p < 0x7f ? *p : '?');
    f->kind = *p;
    return p + 1;
}

static void put_text(struct jx *x, struct output *o, const struct field *f, struct jinja_value v)
{
    struct output part = {0};
    (f->kind == 's' ? spell : spell_repr)(x, &part, v);
    size_t len = 0, chars = 0;
    while (len < part.len && (f->precision < 0 || chars < (size_t)f->precision)) {
        for (len++; len < part.len && ((unsigned char)part.data[len] & 0xc0) == 0x80; len++)
            ;
        chars++;
    }
    bool left = strchr(f->flags, '-');
    if (left)
        out_put(x, o, part.data, len, part.origin, JINJA_TEMPLATE);
    for (; chars < (size_t)f->width; chars++)
        out_puts(x, o, " ");
    if (!left)
        out_put(x, o, part.data, len, part.origin, JINJA_TEMPLATE);
}

static void put_number(struct jx *x, struct output *o, const struct field *f, struct jinja_value v)
{
    char how[40], text[2 * MOST + 400];
    bool whole = strchr("diu", f->kind), digits = strchr("xXo", f->kind);
    int64_t i = v.kind == JINJA_BOOL ? v.b : v.i;
    if (!value_is_number(v) || (digits && v.kind == JINJA_FLOAT))
        jx_fail(x, "line %d: format: '%%%c' needs a number", x->line, f->kind);
    if (whole && v.kind == JINJA_FLOAT) {
        if (!(fabs(v.f) < 9e18))
            jx_fail(x, "line %d: format: an integer has more than 64 bits", x->line);
        i = (int64_t)v.f;
    }
    if (!whole && !digits && (isnan(value_double(v)) || isinf(value_double(v))))
        jx_fail(x, "line %d: format: '%%%c' needs a finite number", x->line, f->kind);
    if ((digits && (i < 0 || strpbrk(f->flags, "+ #"))) || ((whole || digits) && f->precision >= 0))
        jx_fail(x, "line %d: format: '%%%c' with this sign or precision is not supported", x->line, f->kind);
    int n = snprintf(how, sizeof how, "%%%s*", f->flags);
    if (f->precision >= 0)
        n += snprintf(how + n, sizeof how - (size_t)n, ".%d", f->precision);
    snprintf(how + n, sizeof how - (size_t)n, "%s%c", whole || digits ? "ll" : "",
             f->kind == 'u' ? 'd' : f->kind);
    if (whole || digits)
        snprintf(text, sizeof text, how, f->width, (long long)i); /* NOLINT */
    else
        snprintf(text, sizeof text, how, f->width, value_double(v)); /* NOLINT */
    out_puts(x, o, text);
}

struct jinja_value jx_format(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct output o = {0};
    struct jinja_value s = as_string(x, v);
    const char *p = s.s->data, *end = p + s.s->len;
    int used = 0;
    while (p < end) {
        const char *mark = memchr(p, '%', (size_t)(end - p)), *to = mark ? mark : end;
        out_put(x, &o, p, (size_t)(to - p), s.s->origin ? s.s->origin + (p - s.s->data) : NULL,
                JINJA_TEMPLATE);
        if (!mark)
            break;
        p = mark + 1;
        if (p < end && *p == '%') {
            out_puts(x, &o, "%");
            p++;
            continue;
        }
        struct field f;
        p = read_field(x, p, end, &f);
        if (used >= a->n)
            jx_fail(x, "line %d: format: not enough arguments", x->line);
        if (f.kind == 's' || f.kind == 'r')
            put_text(x, &o, &f, a->v[used++]);
        else
            put_number(x, &o, &f, a->v[used++]);
    }
    if (used < a->n || a->n_named)
        jx_fail(x, "line %d: format: the string does not use all arguments", x->line);
    return out_value(x, &o);
}
