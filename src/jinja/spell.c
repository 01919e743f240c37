/* spell.c - conversion of values to text: Python's str(), repr() and json.dumps(value,
 * ensure_ascii=False).
 *
 * Models were trained with these exact spellings, and other spellings give other tokens. Floats have the
 * fewest digits that read back as the same double, in the format of repr(): 0.1, 1e-05. */
#include "jinja/jinja_impl.h"

#include "base/utf8.h"

#include <glib.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 17 /* significant digits that distinguish any two doubles */ };

/* ---- output ------------------------------------------------------------------------------------------- */

void out_put(struct jx *x, struct output *o, const char *text, size_t len, const uint8_t *origin,
             enum jinja_origin plain)
{
    if (o->len + len > o->cap) {
        struct output old = *o;
        o->cap = (o->len + len) * 2 + 64;
        o->data = jx_arena_take(x->arena, o->cap + 1);
        o->origin = jx_arena_take(x->arena, o->cap);
        if (old.len) {
            memcpy(o->data, old.data, old.len);
            memcpy(o->origin, old.origin, old.len);
        }
    }
    if (!len)
        return;
    memcpy(o->data + o->len, text, len);
    if (origin)
        memcpy(o->origin + o->len, origin, len);
    else
        memset(o->origin + o->len, (int)plain, len);
    o->len += len;
}

void out_puts(struct jx *x, struct output *o, const char *text)
{
    out_put(x, o, text, strlen(text), NULL, JINJA_TEMPLATE);
}

struct jinja_value out_value(struct jx *x, const struct output *o)
{
    return value_string(x->arena, o->data ? o->data : "", o->len, o->origin);
}

/* ---- numbers ------------------------------------------------------------------------------------------ */

/* Advances text, a decimal in the format of "%e", to the next decimal with as many digits. Returns false
 * if that decimal has one more digit before the point. */
static bool next_decimal(char *text)
{
    char *at = strchr(text, 'e') - 1;
    while (at > text && (*at == '9' || *at == '.')) {
        *at = *at == '9' ? '0' : '.';
        at--;
    }
    return *at < '9' && (*at)++;
}

/* Writes the fewest digits that read back as v > 0, choosing the nearest such decimal, and returns the
 * power of ten of the first digit. Doubles just below a power of two are half as far apart as those above
 * it. Hence the next decimal above may read back even if the nearest one does not. */
static int shortest_digits(double v, char digits[DIGITS + 1])
{
    char text[DIGITS + 16];
    for (int n = 0; n < DIGITS; n++) {
        snprintf(text, sizeof text, "%.*e", n, v);
        if (strtod(text, NULL) == v || (next_decimal(text) && strtod(text, NULL) == v))
            break;
    }
    size_t n = 0;
    for (const char *p = text; *p != 'e'; p++)
        if (*p != '.')
            digits[n++] = *p;
    digits[n] = 0;
    return atoi(strchr(text, 'e') + 1);
}

static int spell_float(char out[40], double v)
{
    char digits[DIGITS + 1] = "0";
    const char *sign = signbit(v) ? "-" : "";
    if (isnan(v) || isinf(v))
        return snprintf(out, 40, "%s", isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
    int power = v == 0 ? 0 : shortest_digits(fabs(v), digits), n = (int)strlen(digits);
    if (power < -4 || power >= 16)
        return snprintf(out, 40, "%s%c%s%se%+03d", sign, digits[0], n > 1 ? "." : "", digits + 1, power);
    if (power < 0)
        return snprintf(out, 40, "%s0.%.*s%s", sign, -power - 1, "000", digits);
    if (n <= power + 1)
        return snprintf(out, 40, "%s%s%.*s.0", sign, digits, power + 1 - n, "000000000000000");
    return snprintf(out, 40, "%s%.*s.%s", sign, power + 1, digits, digits + power + 1);
}

static void put_number(struct jx *x, struct output *o, struct jinja_value v)
{
    char text[40];
    if (v.kind == JINJA_FLOAT)
        spell_float(text, v.f);
    else
        snprintf(text, sizeof text, "%" PRId64, v.i);
    out_puts(x, o, text);
}

/* ---- Python ------------------------------------------------------------------------------------------- */

static bool has_byte(const struct jinja_string *s, char c)
{
    return s->len && memchr(s->data, c, s->len);
}

/* Returns whether repr() leaves c unescaped. It escapes control, format, private and unassigned
 * characters, and all spaces except U+0020. */
static bool is_printable(uint32_t c)
{
    GUnicodeType type = g_unichar_type(c);
    return c == ' ' || (type > G_UNICODE_SURROGATE && type < G_UNICODE_LINE_SEPARATOR);
}

/* Writes the repr() of a string: in single quotes, unless the string contains these and no double quotes.
 * Control characters are escaped. */
static void put_quoted(struct jx *x, struct output *o, const struct jinja_string *s)
{
    char quote = has_byte(s, '\'') && !has_byte(s, '"') ? '"' : '\'', escape[16];
    const char mark[2] = {quote, 0};
    out_puts(x, o, mark);
    for (size_t i = 0; i < s->len;) {
        uint32_t c = 0xfffd;
        int n = utf8_decode(s->data + i, s->len - i, &c);
        n = n > 0 ? n : 1;
        uint8_t from = s->origin ? s->origin[i] : JINJA_TEMPLATE;
        const char *known = c == '\n'   ? "\\n"
                            : c == '\r' ? "\\r"
                            : c == '\t' ? "\\t"
                            : c == '\\' ? "\\\\"
                                        : NULL;
        if (!known && !is_printable(c)) {
            snprintf(escape, sizeof escape,
                     c < 256     ? "\\x%02x"
                     : c < 65536 ? "\\u%04x"
                                 : "\\U%08x",
                     (unsigned)c);
            known = escape;
        } else if (c == (unsigned char)quote) {
            snprintf(escape, sizeof escape, "\\%c", quote);
            known = escape;
        }
        if (known)
            out_put(x, o, known, strlen(known), NULL, (enum jinja_origin)from);
        else
            out_put(x, o, s->data + i, (size_t)n, NULL, (enum jinja_origin)from);
        i += (size_t)n;
    }
    out_puts(x, o, mark);
}

static void put_items(struct jx *x, struct output *o, const struct jinja_list *l, const char *open,
                      const char *close)
{
    out_puts(x, o, open);
    for (int i = 0; i < l->n; i++) {
        out_puts(x, o, i ? ", " : "");
        spell_repr(x, o, l->items[i]);
    }
    out_puts(x, o, close);
}

static void put_dict(struct jx *x, struct output *o, const struct jinja_dict *d)
{
    out_puts(x, o, "{");
    for (int i = 0; i < d->n; i++) {
        out_puts(x, o, i ? ", " : "");
        spell_repr(x, o, d->keys[i]);
        out_puts(x, o, ": ");
        spell_repr(x, o, d->values[i]);
    }
    out_puts(x, o, "}");
}

void spell_repr(struct jx *x, struct output *o, struct jinja_value v)
{
    jx_enter(x);
    switch (v.kind) {
    case JINJA_STRING:
        if (v.s->markup)
            jx_fail(x, "line %d: a string marked as safe within a list or dict is not supported", x->line);
        put_quoted(x, o, v.s);
        break;
    case JINJA_LIST:
        want_plain(x, v);
        put_items(x, o, v.l, "[", "]");
        break;
    case JINJA_TUPLE:
        put_items(x, o, v.l, "(", v.l->n == 1 ? ",)" : ")");
        break;
    case JINJA_DICT:
        put_dict(x, o, v.d);
        break;
    case JINJA_UNDEFINED:
        out_puts(x, o, "Undefined");
        break;
    default:
        spell(x, o, v);
    }
    x->depth--;
}

void spell(struct jx *x, struct output *o, struct jinja_value v)
{
    switch (v.kind) {
    case JINJA_UNDEFINED:
        break;
    case JINJA_NONE:
        out_puts(x, o, "None");
        break;
    case JINJA_BOOL:
        out_puts(x, o, v.b ? "True" : "False");
        break;
    case JINJA_INT:
    case JINJA_FLOAT:
        put_number(x, o, v);
        break;
    case JINJA_STRING:
        out_put(x, o, v.s->data, v.s->len, v.s->origin, JINJA_TEMPLATE);
        break;
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_DICT:
        spell_repr(x, o, v);
        break;
    default: /* Python would print an address */
        jx_fail(x, "line %d: a function or loop cannot be printed", x->line);
    }
}

struct jinja_value as_string(struct jx *x, struct jinja_value v)
{
    struct output o = {0};
    if (v.kind == JINJA_STRING)
        return v;
    spell(x, &o, v);
    return out_value(x, &o);
}

/* ---- JSON --------------------------------------------------------------------------------------------- */

static void put_json_text(struct jx *x, struct output *o, const struct jinja_string *s)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    char escape[8];
    out_puts(x, o, "\"");
    size_t plain = 0;
    for (size_t i = 0; i < s->len; i++) {
        unsigned char c = (unsigned char)s->data[i];
        const char *known = c ? strchr(from, c) : NULL;
        if (!known && c >= ' ')
            continue;
        out_put(x, o, s->data + plain, i - plain, s->origin ? s->origin + plain : NULL, JINJA_TEMPLATE);
        snprintf(escape, sizeof escape, known ? "\\%c" : "\\u%04x", known ? to[known - from] : c);
        out_put(x, o, escape, strlen(escape), NULL, s->origin ? s->origin[i] : JINJA_TEMPLATE);
        plain = i + 1;
    }
    out_put(x, o, s->data + plain, s->len - plain, s->origin ? s->origin + plain : NULL, JINJA_TEMPLATE);
    out_puts(x, o, "\"");
}

static void put_break(struct jx *x, struct output *o, int indent, int level)
{
    out_puts(x, o, "\n");
    for (int i = 0; i < indent * level; i++)
        out_puts(x, o, " ");
}

static void put_json(struct jx *x, struct output *o, struct jinja_value v, int indent, int level);

/* Writes a JSON array, or an object if keys[n] is not NULL. */
static void put_json_items(struct jx *x, struct output *o, const struct jinja_value *keys,
                           const struct jinja_value *items, int n, int indent, int level)
{
    out_puts(x, o, keys ? "{" : "[");
    for (int i = 0; i < n; i++) {
        out_puts(x, o, !i ? "" : indent < 0 ? ", " : ",");
        if (indent >= 0)
            put_break(x, o, indent, level + 1);
        if (keys && keys[i].kind > JINJA_STRING)
            jx_fail(x, "line %d: tojson: a key must be a string or a number", x->line);
        if (keys && keys[i].kind != JINJA_STRING) {
            out_puts(x, o, "\"");
            put_json(x, o, keys[i], -1, 0);
            out_puts(x, o, "\"");
        } else if (keys) {
            put_json_text(x, o, keys[i].s);
        }
        out_puts(x, o, keys ? ": " : "");
        put_json(x, o, items[i], indent, level + 1);
    }
    if (indent >= 0 && n)
        put_break(x, o, indent, level);
    out_puts(x, o, keys ? "}" : "]");
}

static void put_json(struct jx *x, struct output *o, struct jinja_value v, int indent, int level)
{
    static const struct jinja_value none;
    jx_enter(x);
    switch (v.kind) {
    case JINJA_NONE:
        out_puts(x, o, "null");
        break;
    case JINJA_BOOL:
        out_puts(x, o, v.b ? "true" : "false");
        break;
    case JINJA_INT:
        put_number(x, o, v);
        break;
    case JINJA_FLOAT:
        if (isnan(v.f) || isinf(v.f))
            out_puts(x, o, isnan(v.f) ? "NaN" : v.f > 0 ? "Infinity" : "-Infinity");
        else
            put_number(x, o, v);
        break;
    case JINJA_STRING:
        put_json_text(x, o, v.s);
        break;
    case JINJA_LIST:
    case JINJA_TUPLE:
        want_plain(x, v);
        put_json_items(x, o, NULL, v.l->items, v.l->n, indent, level);
        break;
    case JINJA_DICT:
        put_json_items(x, o, v.d->n ? v.d->keys : &none, v.d->values, v.d->n, indent, level);
        break;
    default:
        jx_fail(x, "line %d: tojson: %s", x->line,
                v.kind == JINJA_UNDEFINED ? "the value is undefined" : "not a JSON value");
    }
    x->depth--;
}

void spell_json(struct jx *x, struct output *o, struct jinja_value v, int indent)
{
    put_json(x, o, v, indent, 0);
}
