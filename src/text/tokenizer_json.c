/* tokenizer_json.c - reads the two long parts of a tokenizer.json in place.
 *
 * Vocabulary and merges are hundreds of thousands of short strings. Creating a JSON value for each would
 * take most of the startup time, so they are cut out of the text and read sequentially; the rest is parsed
 * as usual. */
#include "text/tokenizer_impl.h"

#include "base/utf8.h"

#include <string.h>

/* ---- values ---------------------------------------------------------------------------------------- */

static void skip_space(struct json_reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
        r->at++;
}

bool json_next(struct json_reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

int json_read_count(struct json_reader *r, int max)
{
    int64_t v = -1;
    skip_space(r);
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9' && v <= max; r->at++)
        v = (v < 0 ? 0 : v * 10) + (*r->at - '0');
    bool ends = r->at == r->end || !strchr(".eE0123456789", *r->at);
    return v <= max && ends ? (int)v : -1;
}

static int hex4(const struct json_reader *r)
{
    int v = 0;
    if (r->end - r->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int c = r->at[i] | 32, digit = c >= '0' && c <= '9'   ? c - '0'
                                       : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                              : -1;
        if (digit < 0 || (r->at[i] < '0'))
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

/* Reads a character of one or two code units after "\u"; returns 0 if there is none. */
static uint32_t read_unicode(struct json_reader *r)
{
    int high = hex4(r);
    if (high <= 0)
        return 0;
    r->at += 4;
    if (high < 0xd800 || high > 0xdfff)
        return (uint32_t)high;
    if (high > 0xdbff || r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
        return 0;
    r->at += 2;
    int low = hex4(r);
    if (low < 0xdc00 || low > 0xdfff)
        return 0;
    r->at += 4;
    return 0x10000 + (((uint32_t)high & 0x3ff) << 10 | ((uint32_t)low & 0x3ff));
}

/* Writes the character of an escape (after the backslash). Returns its length, 0 for an unknown escape. */
static int read_escape(struct json_reader *r, char out[4])
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = r->at < r->end ? *r->at++ : 0;
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
        out[0] = to[known - from];
        return 1;
    }
    uint32_t cp = c == 'u' ? read_unicode(r) : 0;
    return cp ? utf8_encode(cp, out) : 0;
}

int json_read_string(struct json_reader *r, char *out, int max)
{
    int n = 0;
    if (!json_next(r, '"'))
        return -1;
    while (r->at < r->end && n + 4 < max) {
        unsigned char c = (unsigned char)*r->at++;
        if (c == '"') {
            out[n] = 0;
            return n;
        }
        if (c < ' ')
            return -1;
        int k = c == '\\' ? read_escape(r, out + n) : 1;
        if (k == 0)
            return -1;
        if (c != '\\')
            out[n] = (char)c;
        n += k;
    }
    return -1;
}

/* ---- cutting --------------------------------------------------------------------------------- */

/* Skips to after the closing quote, from inside a string. */
static bool skip_string(struct json_reader *r)
{
    while (r->at < r->end) {
        char c = *r->at++;
        if (c == '"')
            return true;
        if (c == '\\' && r->at < r->end)
            r->at++;
    }
    return false;
}

/* Skips one value, looking only at strings and brackets. */
static bool skip_value(struct json_reader *r)
{
    int depth = 0;
    skip_space(r);
    while (r->at < r->end) {
        char c = *r->at;
        if (depth == 0 && (c == ',' || c == '}' || c == ']'))
            return true;
        r->at++;
        if (c == '"' && !skip_string(r))
            return false;
        if (c == '{' || c == '[')
            depth++;
        if ((c == '}' || c == ']') && --depth == 0)
            return true;
    }
    return depth == 0;
}

static bool key_is(struct json_reader key, const char *name)
{
    return (size_t)(key.end - key.at) == strlen(name) && !memcmp(key.at, name, strlen(name));
}

struct cut {
    struct buf *rest;
    const char *done; /* the text before it is in rest */
    struct json_reader *vocab, *merges;
};

static bool cut_value(struct json_reader *r, struct cut *c, struct json_reader *to)
{
    skip_space(r);
    const char *from = r->at;
    if (to->at || !skip_value(r))
        return false;
    *to = (struct json_reader){from, r->at};
    buf_put(c->rest, c->done, (size_t)(from - c->done));
    buf_puts(c->rest, "null");
    c->done = r->at;
    return true;
}

/* Cuts the top-level object, or the one of "model". */
static bool cut_object(struct json_reader *r, struct cut *c, bool model)
{
    if (!json_next(r, '{'))
        return false;
    do {
        if (!json_next(r, '"'))
            return false;
        struct json_reader key = {r->at, NULL};
        if (!skip_string(r) || !json_next(r, ':'))
            return false;
        key.end = memchr(key.at, '"', (size_t)(r->at - key.at));
        bool ok = model && key_is(key, "vocab")    ? cut_value(r, c, c->vocab)
                  : model && key_is(key, "merges") ? cut_value(r, c, c->merges)
                  : !model && key_is(key, "model") ? cut_object(r, c, true)
                                                   : skip_value(r);
        if (!ok)
            return false;
    } while (json_next(r, ','));
    return json_next(r, '}');
}

void json_cut(const char *json, size_t len, struct buf *rest, struct json_reader *vocab,
              struct json_reader *merges)
{
    struct json_reader r = {json, json + len};
    struct cut c = {rest, json, vocab, merges};
    *vocab = *merges = (struct json_reader){NULL, NULL};
    cut_object(&r, &c, false);
    buf_put(rest, c.done, (size_t)(json + len - c.done));
}
