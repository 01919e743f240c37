/* clean.c - cleans untrusted text for reports: removes control characters and terminal sequences. */
#include "qa/report/clean.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Returns the length of the terminal sequence at s[0] == ESC: CSI up to its final byte, OSC up to BEL or ESC
 * \, any other ESC and the next byte. */
static size_t escape_length(const char *s, size_t n)
{
    if (n < 2)
        return n;
    size_t i = 2;
    if (s[1] == '[') {
        while (i < n && s[i] >= 0x20 && s[i] < 0x40)
            i++;
        return i < n && s[i] >= 0x40 && s[i] < 0x7f ? i + 1 : i;
    }
    if (s[1] == ']') {
        while (i < n && s[i] != '\a' && s[i] != 0x1b && s[i] != '\n')
            i++;
        return i + (i < n && s[i] == '\a') + (i + 1 < n && s[i] == 0x1b && s[i + 1] == '\\' ? 2 : 0);
    }
    return s[1] >= 0x30 && s[1] < 0x7f ? 2 : 1;
}

/* Returns whether a character is a control character, changes the writing direction, or is a
 * non-character. */
static bool is_unwanted(uint32_t cp)
{
    return (cp < 0x20 && cp != '\n' && cp != '\t') || (cp >= 0x7f && cp < 0xa0) ||
           (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069) || (cp & 0xfffe) == 0xfffe;
}

char *clean_text(const char *s, size_t most)
{
    size_t n = s ? strlen(s) : 0;
    struct buf b;
    buf_init(&b, 3 * most + 256);
    if (n > most) {
        size_t cut = n - most;
        while (cut < n && ((unsigned char)s[cut] & 0xc0) == 0x80) /* does not split a character */
            cut++;
        buf_printf(&b, "[the first %zu bytes are left out]\n", cut);
        s += cut;
        n -= cut;
    }
    while (n) {
        uint32_t cp = 0;
        int len = utf8_decode(s, n, &cp);
        size_t step = len > 0 ? (size_t)len : 1;
        if (len < 0)
            buf_puts(&b, "\xef\xbf\xbd");
        else if (cp == 0x1b)
            step = escape_length(s, n);
        else if (cp == 0x85 || cp == 0x2028 || cp == 0x2029)
            buf_putc(&b, '\n');
        else if (!is_unwanted(cp))
            buf_put(&b, s, step);
        s += step;
        n -= step;
    }
    char *clean = buf_take(&b);
    buf_free(&b);
    return clean;
}

char *clean_line(const char *s, size_t most)
{
    struct buf head;
    size_t n = s ? strlen(s) : 0, kept = n > 4 * most + 64 ? 4 * most + 64 : n;
    buf_init(&head, kept + 1);
    buf_put(&head, s ? s : "", kept);
    char *line = clean_text(head.data, kept + 1);
    buf_free(&head);
    size_t to = 0;
    for (size_t i = 0; line[i]; i++) { /* whitespace becomes single spaces */
        char c = line[i] == '\n' || line[i] == '\t' ? ' ' : line[i];
        if (c != ' ' || (to && line[to - 1] != ' '))
            line[to++] = c;
    }
    while (to && line[to - 1] == ' ')
        to--;
    bool cut = to > most || kept < n;
    to = to > most ? utf8_valid_prefix(line, most) : to;
    line[to] = 0;
    if (!cut)
        return line;
    char *shorter = xasprintf("%s...", line);
    free(line);
    return shorter;
}
