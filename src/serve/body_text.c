/* body_text.c - loads JSON and repairs text that jansson rejects; see body_text.h. */
#include "serve/body_text.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* REPAIR_BYTES: maximum growth by replaced bytes, 2 each */
enum { INT64_DIGITS = 19, REPAIR_BYTES = 1 << 20 };

struct repair {
    const char *text;
    size_t at, len;
    struct buf out;
    bool replaced, shortened; /* characters were replaced, integers converted */
};

/* Returns the code unit of \uXXXX at p, or -1. */
static long escape_at(const struct repair *r, size_t p)
{
    char digits[5] = "", *end;
    if (p + 6 > r->len || r->text[p] != '\\' || r->text[p + 1] != 'u')
        return -1;
    memcpy(digits, r->text + p + 2, 4);
    long v = strtol(digits, &end, 16);
    return end == digits + 4 && digits[0] != '+' && digits[0] != '-' && digits[0] != ' ' ? v : -1;
}

/* Copies a backslash and its escape. */
static void copy_escape(struct repair *r)
{
    long unit = escape_at(r, r->at), next = escape_at(r, r->at + 6);
    bool high = unit >= 0xd800 && unit < 0xdc00, low = unit >= 0xdc00 && unit < 0xe000;
    size_t n = unit >= 0 ? 6 : 2;
    if (high && next >= 0xdc00 && next < 0xe000)
        n = 12;
    else if (high || low || unit == 0) {
        buf_puts(&r->out, "\\ufffd");
        r->replaced = true;
        r->at += n;
        return;
    }
    n = r->at + n > r->len ? r->len - r->at : n;
    buf_put(&r->out, r->text + r->at, n);
    r->at += n;
}

/* Copies one character; an invalid byte is replaced by U+FFFD. */
static void copy_character(struct repair *r)
{
    uint32_t c;
    int n = utf8_decode(r->text + r->at, r->len - r->at, &c);
    if (n > 0) {
        buf_put(&r->out, r->text + r->at, (size_t)n);
    } else {
        buf_puts(&r->out, "\xef\xbf\xbd");
        r->replaced = true;
    }
    r->at += n > 0 ? (size_t)n : 1;
}

/* Copies digits; an integer that does not fit int64 becomes a real. */
static void copy_number(struct repair *r)
{
    const char *p = r->text + r->at, *most = p[0] == '-' ? "9223372036854775808" : "9223372036854775807";
    size_t sign = *p == '-', n = sign;
    while (r->at + n < r->len && p[n] >= '0' && p[n] <= '9')
        n++;
    size_t digits = n - sign;
    char after = r->at + n < r->len ? p[n] : 0;
    bool whole = after != '.' && after != 'e' && after != 'E';
    n = n ? n : 1;
    buf_put(&r->out, p, n);
    r->at += n;
    if (whole &&
        (digits > INT64_DIGITS || (digits == INT64_DIGITS && memcmp(p + sign, most, INT64_DIGITS) > 0))) {
        buf_puts(&r->out, ".0");
        r->shortened = true;
    }
}

static void copy(struct repair *r)
{
    bool quoted = false, fraction = false; /* fraction: in the digits after a point or an exponent */
    r->at = utf8_bom(r->text, r->len);
    while (r->at < r->len && !r->out.full) {
        char c = r->text[r->at];
        bool digit = c >= '0' && c <= '9';
        if (quoted && c == '\\') {
            copy_escape(r);
        } else if (!quoted && !fraction && (digit || c == '-')) {
            copy_number(r);
        } else {
            fraction = !quoted && (c == '.' || c == 'e' || c == 'E' || (fraction && (digit || c == '-')));
            quoted = c == '"' ? !quoted : quoted;
            copy_character(r);
        }
    }
}

int body_text_check(const char *text, size_t len, int *left, struct err *e)
{
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        if (quoted && text[i] == '\\') {
            i++;
        } else if (text[i] == '"') {
            quoted = !quoted;
        } else if (!quoted && (text[i] == '{' || text[i] == '[')) {
            --*left;
            if (++depth > BODY_DEPTH)
                return err_set(e, ERR_USAGE, "the JSON is nested deeper than %d", BODY_DEPTH);
        } else if (!quoted) {
            depth -= text[i] == '}' || text[i] == ']';
            *left -= text[i] == ',';
        }
        if (*left < 0)
            return err_set(e, ERR_USAGE, "the JSON has more than %d values", BODY_VALUES);
    }
    return 0;
}

json_t *body_text_load(const char *text, size_t len, size_t flags, struct notes *n, json_error_t *why)
{
    struct repair r = {.text = text, .len = len};
    json_t *v = json_loadb(text, len, flags, why);
    if (v)
        return v;
    buf_init(&r.out, len + REPAIR_BYTES);
    copy(&r);
    if (r.out.full) {
        buf_free(&r.out);
        return NULL;
    }
    if (r.replaced || r.shortened || utf8_bom(text, len))
        v = json_loadb(r.out.data, r.out.len, flags, why);
    buf_free(&r.out);
    if (v && r.replaced)
        notes_warn(n, "invalid Unicode is replaced by U+FFFD");
    if (v && r.shortened)
        notes_warn(n, "integers beyond 64 bits are read as reals");
    return v;
}
