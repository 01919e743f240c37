/* conversation_json.c - JSON of tools and calls as the published templates' tojson spells it, which is
 * Python's json.dumps(value, ensure_ascii=False): models were trained on that spelling, and another one has
 * other tokens.
 *
 *   reals     the shortest digits that read back as the same double, as repr() lays them out: 0.1, 1e-05
 *   strings   \" \\ \b \f \n \r \t, other control characters as lower-case \u001f, everything else as it is
 *   the rest  ", " and ": " between parts, keys in the order of the file
 */
#include "text/conversation.h"

#include "base/buf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_TEXT_MAX = 128 << 20, DIGITS = 17 /* tell any two doubles apart */ };

/* The next decimal of as many digits, in the form of "%e"; false where that has one digit more before the
 * point. */
static bool next_decimal(char *text)
{
    char *at = strchr(text, 'e') - 1;
    while (at > text && (*at == '9' || *at == '.')) {
        *at = *at == '9' ? '0' : '.';
        at--;
    }
    return *at < '9' && (*at)++;
}

/* The fewest digits that read back as v > 0, and among those the nearest to it; returns the power of ten of
 * the first one.  Below a power of two doubles lie half as far apart as above, so that of two decimals the
 * one that is further up may read back where the nearest does not. */
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

static void put_real(struct buf *out, double v)
{
    char digits[DIGITS + 1] = "0";
    int power = v == 0 ? 0 : shortest_digits(fabs(v), digits), n = (int)strlen(digits);
    if (signbit(v))
        buf_putc(out, '-');
    if (power < -4 || power >= 16)
        buf_printf(out, "%c%s%se%+03d", digits[0], n > 1 ? "." : "", digits + 1, power);
    else if (power < 0)
        buf_printf(out, "0.%.*s%s", -power - 1, "000", digits);
    else if (n <= power + 1)
        buf_printf(out, "%s%.*s.0", digits, power + 1 - n, "000000000000000");
    else
        buf_printf(out, "%.*s.%s", power + 1, digits, digits + power + 1);
}

static void put_string(struct buf *out, const char *s, size_t n)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    buf_putc(out, '"');
    for (size_t i = 0; i < n; i++) {
        const char *known = s[i] ? strchr(from, s[i]) : NULL;
        if (known)
            buf_printf(out, "\\%c", to[known - from]);
        else if ((unsigned char)s[i] < ' ')
            buf_printf(out, "\\u%04x", (unsigned char)s[i]);
        else
            buf_putc(out, s[i]);
    }
    buf_putc(out, '"');
}

static void put_value(struct buf *out, const json_t *v);

static void put_object(struct buf *out, const json_t *v)
{
    const char *key, *between = "";
    size_t len;
    json_t *inside;
    buf_putc(out, '{');
    json_object_keylen_foreach((json_t *)(uintptr_t)v, key, len, inside)
    {
        buf_puts(out, between);
        put_string(out, key, len);
        buf_puts(out, ": ");
        put_value(out, inside);
        between = ", ";
    }
    buf_putc(out, '}');
}

static void put_value(struct buf *out, const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        put_object(out, v);
        break;
    case JSON_ARRAY:
        buf_putc(out, '[');
        for (size_t i = 0; i < json_array_size(v); i++) {
            buf_puts(out, i ? ", " : "");
            put_value(out, json_array_get(v, i));
        }
        buf_putc(out, ']');
        break;
    case JSON_STRING:
        put_string(out, json_string_value(v), json_string_length(v));
        break;
    case JSON_INTEGER:
        buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        break;
    case JSON_REAL:
        put_real(out, json_real_value(v));
        break;
    default:
        buf_puts(out, json_is_null(v) ? "null" : json_is_true(v) ? "true" : "false");
    }
}

char *conversation_json(const json_t *v)
{
    struct buf out;
    buf_init(&out, JSON_TEXT_MAX);
    put_value(&out, v);
    char *text = buf_take(&out);
    buf_free(&out);
    return text;
}
