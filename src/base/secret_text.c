/* secret_text.c - finds and masks the values of secrets in texts, and text that looks like a
 * key; see secret.h. */
#include "base/secret_impl.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LEVELS = 4 }; /* levels of JSON quoting; 0: plain text; 2: a reply in JSON within an event */

/* ---- values in texts -------------------------------------------------------------------------- */

/* Returns the value of "\uXXXX" at p after `slashes` backslashes; -1: not an escape. */
static int escaped_unit(const char *p, const char *end, int slashes)
{
    char digits[5] = "";
    if (end - p < slashes + 5 || strspn(p, "\\") < (size_t)slashes || p[slashes] != 'u')
        return -1;
    memcpy(digits, p + slashes + 1, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? (int)strtol(digits, NULL, 16) : -1;
}

/* Returns the length of an encoding at p of the character `want`, n bytes of UTF-8 at value; 0: another
 * character. level: how often the text was quoted as JSON; each time doubles the backslashes. */
static size_t spelling(uint32_t want, const char *value, size_t n, const char *p, const char *end, int level)
{
    int slashes = level ? 1 << (level - 1) : 0;
    size_t left = (size_t)(end - p), quote = (size_t)(1 << level) - 1;
    int unit = level ? escaped_unit(p, end, slashes) : -1;
    if (unit >= 0xd800 && unit < 0xdc00) { /* the first half of a surrogate pair */
        int low = escaped_unit(p + slashes + 5, end, slashes);
        if (low >= 0xdc00 && want == 0x10000u + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00))
            return 2 * ((size_t)slashes + 5);
    } else if (unit >= 0 && (uint32_t)unit == want) {
        return (size_t)slashes + 5;
    }
    if (want == '\\')
        return left > quote && strspn(p, "\\") > quote ? quote + 1 : 0;
    if (want == '"' || (want == '/' && level && *p == '\\')) {
        size_t before = want == '"' ? quote : (size_t)slashes;
        return left > before && strspn(p, "\\") == before && p[before] == (char)want ? before + 1 : 0;
    }
    return left >= n && !memcmp(p, value, n) ? n : 0;
}

/* Returns the length of the value at p in any encoding; 0: not found. Any text may contain quoted JSON. */
static size_t value_length(const char *value, const char *p, const char *end)
{
    for (int level = 0; level < LEVELS; level++) {
        const char *at = p, *v = value;
        uint32_t want;
        int n;
        while ((n = utf8_decode(v, strlen(v), &want)) > 0) {
            size_t len = at < end ? spelling(want, v, (size_t)n, at, end, level) : 0;
            if (!len)
                break;
            v += n;
            at += len;
        }
        if (!n)
            return (size_t)(at - p);
    }
    return 0;
}

/* Returns the index of the secret with the longest value at p, or -1. *len: its length. */
static int value_at(const struct secrets *s, const char *p, const char *end, size_t *len)
{
    int found = -1;
    *len = 0;
    for (int i = 0; i < secrets_count(s); i++) {
        size_t n = value_length(s->list[i].value, p, end);
        if (n > *len) {
            found = i;
            *len = n;
        }
    }
    return found;
}

/* Returns the length of the character or JSON escape at p. */
static size_t escape_length(const char *p, const char *end, bool json)
{
    size_t n = !json || *p != '\\' ? 1 : p + 1 < end && p[1] == 'u' ? 6 : 2;
    return n < (size_t)(end - p) ? n : (size_t)(end - p);
}

static void put_masked(const struct secrets *s, const char *p, const char *end, bool json, struct buf *out)
{
    while (p < end) {
        size_t len;
        int i = value_at(s, p, end, &len);
        if (i >= 0) {
            buf_printf(out, "{{%s}}", s->list[i].name);
        } else {
            len = escape_length(p, end, json);
            buf_put(out, p, len);
        }
        p += len;
    }
}

char *secrets_mask(const struct secrets *s, const char *text)
{
    autobuf out = buf_of(64 << 20);
    put_masked(s, text, text + strlen(text), false, &out);
    return buf_take(&out);
}

/* Returns whether a text contains the value in any encoding. */
static bool has_value(const char *text, const char *value)
{
    const char *end = text + strlen(text);
    for (const char *p = text; p < end; p++)
        if (value_length(value, p, end))
            return true;
    return false;
}

bool secrets_contained_in(const struct secrets *s, const char *text)
{
    for (int i = 0; i < secrets_count(s); i++)
        if (has_value(text, s->list[i].value))
            return true;
    return false;
}

int secrets_find_values(const struct secrets *s, const char *text, const char *names[SECRETS_MAX])
{
    const char *from = text + strspn(text, " \t\r\n");
    size_t left = strlen(from);
    int n = 0;
    while (left && strchr(" \t\r\n", from[left - 1]))
        left--;
    for (int i = 0; i < secrets_count(s); i++) {
        const char *value = s->list[i].value;
        bool part = left >= SECRET_MIN && memmem(value, strlen(value), from, left);
        if (part || has_value(text, value))
            names[n++] = s->list[i].name;
    }
    return n;
}

/* ---- text that looks like a key or password ---------------------------------------------------------- */

/* A fixed prefix followed by the characters of the secret. Matching does not backtrack, so time is linear in
 * the text. */
static const struct pattern {
    const char *head; /* ASCII case is ignored */
    size_t least;     /* minimum length of the secret, so that ordinary words do not match */
    bool word;        /* the prefix must start a word */
    bool exact;       /* the prefix is case-sensitive */
} patterns[] = {
    {"bearer ", 8, true, false},
    {"hk-", 12, true, true},
    {"sk-", 12, true, true},
    {"AKIA", 16, true, true},
    {"ASIA", 16, true, true},
    {"password=", 1, false, false},
    {"passwd=", 1, false, false},
    {"pwd=", 1, true, false},
    {"api_key=", 1, false, false},
    {"apikey=", 1, false, false},
    {"access_token=", 1, false, false},
    {"aws_secret_access_key=", 1, false, false},
    {"hai_api_key=", 1, false, false},
};

/* Returns the bytes of the secret's character at p: 1, 2 for a quote or backslash escaped in JSON, 0 at the
 * end. */
static size_t in_secret(const char *p, const char *end)
{
    if (p < end && *p == '\\')
        return p + 1 < end && (p[1] == '"' || p[1] == '\\') ? 2 : 0;
    bool part = p < end && (isalnum((unsigned char)*p) || (*p && strchr("-_.~+/=%!?@#$^*:{}", *p)) ||
                            (unsigned char)*p >= 0x80);
    return part;
}

/* Returns the length of prefix and secret at p; 0: no match. *head: length of the prefix, which is kept. */
static size_t match_pattern(const struct pattern *q, const char *text, const char *p, const char *end,
                            size_t *head)
{
    size_t n = strlen(q->head), m = 0;
    if ((size_t)(end - p) < n || (q->exact ? strncmp : strncasecmp)(p, q->head, n) != 0)
        return 0;
    if (q->word && p > text && (isalnum((unsigned char)p[-1]) || p[-1] == '-' || p[-1] == '_'))
        return 0;
    for (size_t k = 1; (k = in_secret(p + n + m, end)); m += k)
        ;
    *head = n;
    return m >= q->least ? n + m : 0;
}

/* Appends text[0..len), the content of a JSON string, and replaces text that looks like a key or password by
 * "[redacted]". No match crosses a quote or splits an escape. */
static void scrub_patterns(const char *text, size_t len, struct buf *out)
{
    const char *end = text + len;
    for (const char *p = text; p < end;) {
        size_t head = 0, n = 0;
        for (size_t i = 0; !n && i < sizeof patterns / sizeof *patterns; i++)
            n = match_pattern(&patterns[i], text, p, end, &head);
        if (n) {
            buf_put(out, p, head);
            buf_puts(out, "[redacted]");
            p += n;
        } else {
            buf_putc(out, *p++);
        }
    }
}

/* ---- JSON --------------------------------------------------------------------------------------- */

/* Returns the closing quote of the JSON string whose content begins at p, or end. */
static const char *string_end(const char *p, const char *end)
{
    while (p < end && *p != '"')
        p += *p == '\\' && p + 1 < end ? 2 : 1;
    return p;
}

void secrets_scrub_json(const struct secrets *s, struct buf *json)
{
    struct buf out, one;
    buf_init(&out, json->max + (64 << 10));
    buf_init(&one, json->max + (64 << 10));
    const char *end = json->data + json->len;
    for (const char *p = json->data; p < end;) {
        const char *quote = memchr(p, '"', (size_t)(end - p));
        buf_put(&out, p, (size_t)((quote ? quote + 1 : end) - p));
        if (!quote)
            break;
        const char *close = string_end(quote + 1, end);
        buf_clear(&one);
        put_masked(s, quote + 1, close, true, &one);
        scrub_patterns(one.data, one.len, &out);
        p = close < end ? close + 1 : end;
        buf_puts(&out, close < end ? "\"" : "");
    }
    buf_clear(json); /* an empty text rather than a leak */
    if (!out.full && !one.full)
        buf_put(json, out.data, out.len);
    explicit_bzero(out.data, out.len);
    buf_free(&out);
    buf_free(&one);
}
