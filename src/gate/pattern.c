/* pattern.c - see pattern.h.
 *
 * A pattern is a fixed head followed by the characters of the secret.  No backtracking: time is linear in
 * the text.
 */
#include "gate/pattern.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const struct pattern {
    const char *head; /* compared without regard to case */
    size_t least;     /* minimum length of the secret, so that ordinary words do not match */
    bool word;        /* the head must start a word */
    bool exact;       /* the head is case-sensitive */
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

/* Bytes of the secret's character at p: 1, 2 for a quote or backslash escaped in JSON, 0 at the end. */
static size_t in_secret(const char *p, const char *end)
{
    if (p < end && *p == '\\')
        return p + 1 < end && (p[1] == '"' || p[1] == '\\') ? 2 : 0;
    bool part = p < end && (isalnum((unsigned char)*p) || (*p && strchr("-_.~+/=%!?@#$^*:{}", *p)) ||
                            (unsigned char)*p >= 0x80);
    return part;
}

/* Length of head and secret at p; 0: no match.  *head: length of the head, which stays. */
static size_t match(const struct pattern *q, const char *text, const char *p, const char *end, size_t *head)
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

void pattern_scrub(const char *text, size_t len, struct buf *out)
{
    const char *end = text + len;
    for (const char *p = text; p < end;) {
        size_t head = 0, n = 0;
        for (size_t i = 0; !n && i < sizeof patterns / sizeof *patterns; i++)
            n = match(&patterns[i], text, p, end, &head);
        if (n) {
            buf_put(out, p, head);
            buf_puts(out, "[redacted]");
            p += n;
        } else {
            buf_putc(out, *p++);
        }
    }
}
