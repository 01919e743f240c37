/* pattern.c - see pattern.h.
 *
 * A pattern is a head that tells and a run of characters behind it that is the secret.  Nothing is
 * remembered between two places, so the time is linear in the text.
 */
#include "gate/pattern.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const struct pattern {
    const char *head; /* compared without regard to case */
    size_t least;     /* characters of the secret, so that words are not taken for one */
    bool word;        /* the head begins a word */
    bool exact;       /* the case of the head counts */
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

/* Bytes of the secret at p: 1, 2 for a quote or a backslash as JSON spells it, 0 at its end. */
static size_t in_secret(const char *p, const char *end)
{
    if (p < end && *p == '\\')
        return p + 1 < end && (p[1] == '"' || p[1] == '\\') ? 2 : 0;
    bool part = p < end && (isalnum((unsigned char)*p) || (*p && strchr("-_.~+/=%!?@#$^*:{}", *p)) ||
                            (unsigned char)*p >= 0x80);
    return part;
}

/* Length of head and secret at p; 0: none.  *head: of the part that stays. */
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
