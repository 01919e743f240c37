/* json.c - writes JSON on one line (json.h). */
#include "base/json.h"

#include "base/err.h"
#include "base/utf8.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

char *json_line(const json_t *v, size_t flags)
{
    autofree char *text = json_dumps(v, flags | JSON_ENCODE_ANY);
    if (!text)
        return NULL;
    size_t n = strlen(text);
    struct buf line;
    buf_init(&line, SIZE_MAX);
    buf_put_json_text(&line, text, n);
    return buf_take(&line);
}

void json_print(const json_t *v, FILE *f, size_t flags)
{
    autofree char *line = json_line(v, flags);
    fputs(line ? line : "null", f);
}

/* Appends s with hidden characters and control characters other than line breaks and tabs as "<U+202E>". */
static void put_visible(struct buf *b, const char *s, size_t n)
{
    for (int len; n; s += len, n -= (size_t)len) {
        uint32_t cp = 0;
        len = utf8_decode(s, n, &cp);
        len = len < 0 ? 1 : len;
        if (cp == '\r' && n > 1 && s[1] == '\n')
            continue;
        if (utf8_printable(cp) || cp == '\n' || cp == '\t')
            buf_put(b, s, (size_t)len);
        else
            buf_printf(b, "<U+%04X>", cp);
    }
}

json_t *json_visible_string(const char *s)
{
    autobuf text = buf_of(SIZE_MAX);
    put_visible(&text, s, strlen(s));
    return json_stringn(text.len ? text.data : "", text.len);
}

void json_make_visible(json_t *v)
{
    const char *name;
    json_t *one;
    void *next;
    size_t i;
    json_object_foreach_safe(v, next, name, one)
    {
        if (json_is_string(one))
            json_object_set_new(v, name, json_visible_string(json_string_value(one)));
        else
            json_make_visible(one);
    }
    json_array_foreach(v, i, one)
    {
        if (json_is_string(one))
            json_array_set_new(v, i, json_visible_string(json_string_value(one)));
        else
            json_make_visible(one);
    }
}

json_t *json_clean_string(const char *s)
{
    return json_clean_stringn(s, strlen(s));
}

json_t *json_clean_stringn(const char *s, size_t n)
{
    struct buf text;
    if (utf8_valid_prefix(s, n) == n)
        return json_stringn(s, n);
    buf_init(&text, 3 * n + 1);
    while (n) {
        uint32_t cp;
        int len = utf8_decode(s, n, &cp);
        if (len < 0)
            buf_puts(&text, "\xef\xbf\xbd");
        else
            buf_put(&text, s, (size_t)len);
        s += len < 0 ? 1 : len;
        n -= len < 0 ? 1 : (size_t)len;
    }
    json_t *string = json_stringn(text.data, text.len);
    buf_free(&text);
    return string;
}

const char *json_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

void json_set_text(json_t *object, const char *key, const char *value)
{
    json_object_set_new(object, key, value ? json_clean_string(value) : json_null());
}

void json_set_rounded(json_t *object, const char *key, double value, int decimals)
{
    double scale = pow(10, decimals);
    json_object_set_new(object, key,
                        decimals ? json_real(round(value * scale) / scale) : json_integer(llround(value)));
}

json_t *json_plain_number(double value)
{
    return value == trunc(value) && fabs(value) < 1e15 ? json_integer((json_int_t)value) : json_real(value);
}

json_t *json_seed(uint64_t seed)
{
    char text[24];
    if (seed <= INT64_MAX)
        return json_integer((json_int_t)seed);
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    return json_string(text);
}

uint64_t json_seed_value(const json_t *v)
{
    return json_is_string(v) ? strtoull(json_string_value(v), NULL, 10) : (uint64_t)json_integer_value(v);
}
