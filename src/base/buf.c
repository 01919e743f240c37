/* buf.c - growing byte buffer and text helpers (buf.h). */
#include "base/buf.h"

#include "base/err.h"
#include "base/utf8.h"

#include <ctype.h>
#include <glib.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 64 };

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.data = xmalloc(FIRST_CAP, 1), .cap = FIRST_CAP, .max = max};
    b->data[0] = 0;
}

struct buf buf_of(size_t max)
{
    struct buf b;
    buf_init(&b, max);
    return b;
}

void buf_free(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->full = false;
    if (b->data)
        b->data[0] = 0;
}

char *buf_take(struct buf *b)
{
    if (!b->data)
        buf_init(b, b->max);
    char *s = b->data;
    *b = (struct buf){.max = b->max};
    return s;
}

/* Allocates space for n more bytes and the NUL. Returns -1 beyond the limit. */
static int reserve(struct buf *b, size_t n)
{
    if (!b->data)
        buf_init(b, b->max);
    if (b->full || n > b->max || b->len > b->max - n) {
        b->full = true;
        return -1;
    }
    size_t need = b->len + n + 1;
    if (need > b->cap) {
        size_t cap = b->cap * 2 > need ? b->cap * 2 : need;
        b->data = xrealloc(b->data, cap, 1);
        b->cap = cap;
    }
    return 0;
}

int buf_put(struct buf *b, const void *data, size_t n)
{
    if (reserve(b, n))
        return -1;
    if (n)
        memcpy(b->data + b->len, data, n);
    b->len += n;
    b->data[b->len] = 0;
    return 0;
}

int buf_puts(struct buf *b, const char *s)
{
    return buf_put(b, s, strlen(s));
}

int buf_putc(struct buf *b, char c)
{
    return buf_put(b, &c, 1);
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        bug("bad format string");
    if (reserve(b, (size_t)n))
        return -1;
    va_start(ap, fmt);
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return 0;
}

/* Appends \uXXXX, or a surrogate pair for characters beyond U+FFFF. */
static int put_escape(struct buf *b, uint32_t cp)
{
    if (cp < 0x10000)
        return buf_printf(b, "\\u%04x", cp);
    return buf_printf(b, "\\u%04x\\u%04x", 0xd800 + ((cp - 0x10000) >> 10),
                      0xdc00 + ((cp - 0x10000) & 0x3ff));
}

static int put_json_scalar(struct buf *b, uint32_t cp, const char *s, int n)
{
    static const char special[] = "\"\\\n\t\r", letters[] = "\"\\ntr";
    const char *at = cp && cp < 0x80 ? strchr(special, (int)cp) : NULL;
    if (at)
        return buf_printf(b, "\\%c", letters[at - special]);
    return utf8_printable(cp) ? buf_put(b, s, (size_t)n) : put_escape(b, cp);
}

int buf_put_json(struct buf *b, const char *s, size_t n)
{
    buf_putc(b, '"');
    while (n) {
        uint32_t cp;
        int len = utf8_decode(s, n, &cp);
        if (len < 0) {
            buf_puts(b, "\xef\xbf\xbd");
            len = 1;
        } else {
            put_json_scalar(b, cp, s, len);
        }
        s += len;
        n -= (size_t)len;
    }
    return buf_putc(b, '"');
}

int buf_put_json_text(struct buf *b, const char *json, size_t n)
{
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t cp = 0;
        int len = (unsigned char)json[i] < 0x7f ? 1 : utf8_decode(json + i, n - i, &cp);
        if (len > 0 && cp && !utf8_printable(cp)) {
            buf_put(b, json + from, i - from);
            put_escape(b, cp);
            from = i + (size_t)len;
        }
        i += len > 1 ? (size_t)len - 1 : 0;
    }
    return buf_put(b, json + from, n - from);
}

int buf_put_member(struct buf *b, const char *key, const char *value)
{
    buf_printf(b, ", \"%s\": ", key);
    return value ? buf_put_json(b, value, strlen(value)) : buf_puts(b, "null");
}

bool text_starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

bool text_ends(const char *text, const char *with)
{
    size_t n = strlen(text), k = strlen(with);
    return n >= k && !strcmp(text + n - k, with);
}

const char *text_skip_space(const char *text, const char *end)
{
    while (text < end && isspace((unsigned char)*text))
        text++;
    return text;
}

bool text_listed(const char *const *words, const char *word)
{
    while (*words && strcmp(*words, word) != 0)
        words++;
    return *words;
}

int text_choice(const char *choices, const char *word)
{
    size_t len = strlen(word);
    int i = 0;
    for (const char *p = choices;; i++) {
        size_t n = strcspn(p, "|");
        if (n == len && !strncmp(p, word, n))
            return i;
        if (!p[n])
            return -1;
        p += n + 1;
    }
}

const char *text_last_line(const char *text, size_t n, size_t *len)
{
    while (n && strchr(" \t\r\n", text[n - 1]))
        n--;
    size_t begin = n;
    while (begin && text[begin - 1] != '\n')
        begin--;
    *len = n - begin;
    return text + begin;
}

enum {
    NEAR = 2, /* maximum edits; one in a word of at most SHORT_WORD letters */
    SHORT_WORD = 5,
    BEGINNING = 4, /* minimum length of a common prefix of two names */
    WORD_MAX = 32, /* longer words are not compared */
};

/* Returns the Damerau-Levenshtein distance (insert, delete, replace, swap neighbours) of two short words. */
static int edit_distance(const char *a, const char *b)
{
    int na = (int)strlen(a), nb = (int)strlen(b);
    if (na >= WORD_MAX || nb >= WORD_MAX)
        return WORD_MAX;
    int d[WORD_MAX][WORD_MAX];
    for (int i = 0; i <= na; i++) {
        for (int j = 0; j <= nb; j++) {
            if (!i || !j) {
                d[i][j] = i + j;
                continue;
            }
            int same = a[i - 1] == b[j - 1], best = d[i - 1][j - 1] + !same;
            best = best < d[i - 1][j] + 1 ? best : d[i - 1][j] + 1;
            best = best < d[i][j - 1] + 1 ? best : d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[na][nb];
}

const char *nearest_word(const char *word, const char *const *candidates, int n)
{
    const char *nearest = NULL;
    int least = strlen(word) > SHORT_WORD ? NEAR + 1 : NEAR;
    for (int i = 0; i < n; i++) {
        int d = edit_distance(word, candidates[i]);
        if (d < least && d < (int)strlen(word)) {
            least = d;
            nearest = candidates[i];
        }
    }
    return nearest;
}

/* Returns the candidate with the longest common prefix with a name: at least BEGINNING letters and all but
 * one letter of the shorter name; NULL: none. */
static const char *name_begun_alike(const char *name, const char *const *candidates, int n)
{
    const char *found = NULL;
    size_t longest = BEGINNING - 1, whole = strlen(name);
    for (int i = 0; i < n; i++) {
        size_t len = strlen(candidates[i]), common = 0, shorter = len < whole ? len : whole;
        while (common < shorter && name[common] == candidates[i][common])
            common++;
        if (common > longest && common + 1 >= shorter) {
            longest = common;
            found = candidates[i];
        }
    }
    return found;
}

const char *suggested_name(const char *name, const char *const *candidates, int n)
{
    static const char *const elsewhere[][2] = {
        {"port", "listen"},      {"host", "listen"},        {"bind", "listen"},       {"address", "listen"},
        {"timeout", "max-time"}, {"steps", "max-steps"},    {"tokens", "max-tokens"}, {"workers", "jobs"},
        {"parallel", "jobs"},    {"grep", "only"},          {"filter", "only"},       {"output", "out"},
        {"out", "output"},       {"url", "base-url"},       {"endpoint", "base-url"}, {"api-key", "key"},
        {"token", "key"},        {"screen", "display"},     {"headless", "on"},       {"desk", "on"},
        {"desktop", "on"},       {"command", "start"},      {"exec", "start"},        {"prompt", "task"},
        {"profile-dir", "home"}, {"user-data-dir", "home"}, {"name", "id"},           {"assert", "checks"},
        {"asserts", "checks"},   {"retry", "retries"},      {"rerun", "retries"},     {"yes", "confirm"},
    };
    const char *found = nearest_word(name, candidates, n);
    for (size_t k = 0; !found && k < sizeof elsewhere / sizeof *elsewhere; k++)
        for (int i = 0; !found && i < n && !strcmp(elsewhere[k][0], name); i++)
            if (candidates[i] && !strcmp(candidates[i], elsewhere[k][1]))
                found = candidates[i];
    return found ? found : name_begun_alike(name, candidates, n);
}

const char *name_hint(char out[NAME_HINT], const char *name, const char *const *candidates, int n)
{
    const char *found = suggested_name(name, candidates, n);
    *out = 0;
    if (found)
        snprintf(out, NAME_HINT, "; did you mean '%s'?", found);
    return out;
}

int buf_put_base64(struct buf *b, const void *data, size_t n)
{
    char *text = g_base64_encode(data, n);
    int rc = buf_puts(b, text);
    g_free(text);
    return rc;
}
