/* utf8.c - UTF-8 decoding, encoding and safe printing (utf8.h). */
#include "base/utf8.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

int utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    if (n == 0)
        return 0;
    gunichar c = *s ? g_utf8_get_char_validated(s, n < 4 ? (gssize)n : 4) : 0;
    if (c > 0x10ffff)
        return -1;
    *cp = c;
    return g_unichar_to_utf8(c, NULL);
}

int utf8_encode(uint32_t cp, char out[4])
{
    return cp <= 0x10ffff && (cp < 0xd800 || cp >= 0xe000) ? g_unichar_to_utf8(cp, out) : 0;
}

size_t utf8_count(const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)s[i] & 0xc0) != 0x80;
    return count;
}

size_t utf8_valid_prefix(const char *s, size_t n)
{
    size_t at = 0;
    uint32_t cp;
    int len;
    while (at < n && (len = utf8_decode(s + at, n - at, &cp)) > 0)
        at += (size_t)len;
    return at;
}

/* Returns whether further bytes can complete s[0..n), n at most 3, to a character. */
static bool begins_character(const char *s, size_t n)
{
    uint32_t cp;
    for (size_t len = n + 1; len <= 4; len++) {
        char low[4] = {'\x80', '\x80', '\x80', '\x80'}, high[4] = {'\xbf', '\xbf', '\xbf', '\xbf'};
        memcpy(low, s, n);
        memcpy(high, s, n);
        if (utf8_decode(low, len, &cp) == (int)len || utf8_decode(high, len, &cp) == (int)len)
            return true;
    }
    return false;
}

size_t utf8_complete(const char *s, size_t n)
{
    for (size_t tail = 1; tail <= 3 && tail <= n; tail++)
        if (((unsigned char)s[n - tail] & 0xc0) != 0x80) /* the first byte of the last character */
            return begins_character(s + n - tail, tail) ? n - tail : n;
    return n;
}

size_t utf8_bom(const char *s, size_t n)
{
    return n >= 3 && !memcmp(s, "\xef\xbb\xbf", 3) ? 3 : 0;
}

/* Joiners (U+200C, U+200D) and the first 16 variation selectors are part of ordinary text. */
static bool utf8_hidden(uint32_t cp)
{
    static const uint32_t ranges[][2] = {
        {0x061c, 0x061c}, {0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180e, 0x180e},   {0x200b, 0x200b},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},   {0x3164, 0x3164},   {0xfeff, 0xfeff},
        {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };
    for (size_t i = 0; cp >= ranges[0][0] && i < sizeof ranges / sizeof *ranges; i++)
        if (cp >= ranges[i][0] && cp <= ranges[i][1])
            return true;
    return false;
}

bool utf8_printable(uint32_t cp)
{
    bool control = cp < 0x20 || (cp >= 0x7f && cp < 0xa0);
    return !control && !utf8_hidden(cp);
}

static void print(FILE *f, const char *s, size_t n, bool lines)
{
    for (int len; n; s += len, n -= (size_t)len) {
        uint32_t cp = 0;
        len = utf8_decode(s, n, &cp);
        if (len > 0 && (utf8_printable(cp) || (lines && (cp == '\n' || cp == '\t'))))
            fwrite(s, 1, (size_t)len, f);
        else
            fputc(len > 0 && (cp == '\n' || cp == '\t') ? ' ' : '?', f);
        len = len < 0 ? 1 : len;
    }
}

void utf8_print(FILE *f, const char *s, size_t n)
{
    print(f, s, n, false);
}

void utf8_print_lines(FILE *f, const char *s, size_t n)
{
    print(f, s, n, true);
}

void utf8_print_result(FILE *f, const char *s, size_t n)
{
    if (isatty(fileno(f)))
        utf8_print_lines(f, s, n);
    else
        fwrite(s, 1, n, f);
    if (!n || s[n - 1] != '\n')
        fputc('\n', f);
}

void utf8_make_printable(char *s)
{
    char *to = s;
    size_t n = strlen(s);
    for (int len; n; s += len, n -= (size_t)len) {
        uint32_t cp = 0;
        len = utf8_decode(s, n, &cp);
        bool keep = len > 0 && utf8_printable(cp);
        len = len < 0 ? 1 : len;
        if (keep)
            memmove(to, s, (size_t)len);
        else
            *to = '?';
        to += keep ? len : 1;
    }
    *to = 0;
}

bool utf8_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
           c == 0x3000;
}
