/* place.c - see place.h.  Collects the places of a text and selects one. */
#include "actions/place_impl.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_NUMBER = 31 };

/* ---- numbers ------------------------------------------------------------------------------------- */

const char *place_number(const char *s, const char *end, struct place_numbers *out)
{
    char digits[MAX_NUMBER + 1] = {0}, *stop;
    size_t n = 0;
    while (s + n < end && n < MAX_NUMBER &&
           (isdigit((unsigned char)s[n]) || s[n] == '.' || (n == 0 && (s[n] == '-' || s[n] == '+'))))
        n++;
    memcpy(digits, s, n);
    digits[n] = 0;
    double v = strtod(digits, &stop);
    bool point = strchr(digits, '.') != NULL;
    if (stop == digits || (*stop && strcmp(stop, ".") != 0))
        return NULL;
    s += n;
    if (s + 1 < end && s[0] == 'p' && s[1] == 'x')
        s += 2;
    if (s < end && (isalnum((unsigned char)*s) || (unsigned char)*s >= 0x80 || strchr("_%.+-*/^", *s)))
        return NULL;
    if (out->n < PLACE_MAX_NUMBERS) {
        out->v[out->n] = v;
        out->real[out->n] = point && digits[n - 1] != '.';
    }
    out->n++;
    return s;
}

bool place_numbers(const char *s, size_t len, struct place_numbers *out)
{
    const char *end = s + len;
    *out = (struct place_numbers){0};
    while (s < end) {
        if (isspace((unsigned char)*s) || (*s && strchr(",;()[]'\"", *s))) {
            s++;
            continue;
        }
        if (!(s = place_number(s, end, out)))
            return false;
    }
    return true;
}

/* ---- candidates ---------------------------------------------------------------------------------- */

static bool same_place(const struct place *a, const struct place *b)
{
    return a->absent == b->absent &&
           (a->absent || (a->n.x == b->n.x && a->n.y == b->n.y && a->percent == b->percent));
}

void place_found(struct place_finder *f, enum place_rank rank, const struct place *at)
{
    if (rank > f->rank) {
        f->rank = rank;
        f->found = *at;
        f->several = false;
    } else if (rank == f->rank && !f->several && !same_place(at, &f->found)) {
        f->several = true;
        f->other = *at;
    }
}

void place_refused(struct place_finder *f, enum place_rank rank, const char *fmt, ...)
{
    char text[ERR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (f->bad)
        return;
    f->bad = rank == RANK_MARKED;
    err_set(&f->reason, ERR_FAILED, "%s", text);
}

static struct place box_of(const struct place_numbers *n)
{
    struct place at = {.box = true};
    at.corners[0] = (struct dialect_numbers){n->v[0], n->v[1], n->real[0], n->real[1]};
    at.corners[1] = (struct dialect_numbers){n->v[2], n->v[3], n->real[2], n->real[3]};
    at.n = (struct dialect_numbers){(n->v[0] + n->v[2]) / 2, (n->v[1] + n->v[3]) / 2,
                                    n->real[0] || n->real[2], n->real[1] || n->real[3]};
    return at;
}

void place_from_numbers(struct place_finder *f, enum place_rank rank, const struct place_numbers *n)
{
    bool negative = true, zero = n->n == 4;
    struct place at = {0};
    if (n->n != 2 && n->n != 4) {
        place_refused(f, rank, "it has %d number%s; a position has two, a box has four", n->n,
                      n->n == 1 ? "" : "s");
        return;
    }
    for (int i = 0; i < n->n; i++) {
        negative = negative && n->v[i] < 0;
        zero = zero && n->v[i] == 0;
    }
    if (negative || zero) {
        at.absent = true;
    } else if (n->n == 2) {
        at.n = (struct dialect_numbers){n->v[0], n->v[1], n->real[0], n->real[1]};
    } else if (n->v[2] < n->v[0] || n->v[3] < n->v[1]) {
        place_refused(f, rank, "the box %g, %g, %g, %g ends before it begins; the order is x1, y1, x2, y2",
                      n->v[0], n->v[1], n->v[2], n->v[3]);
        return;
    } else {
        at = box_of(n);
    }
    place_found(f, rank, &at);
}

int place_combine(const struct place_numbers *n, struct place *out, struct err *e)
{
    struct place_finder f = {.reason = ERR_INIT};
    place_from_numbers(&f, RANK_MARKED, n);
    *out = f.found;
    return f.rank ? 0 : err_set(e, ERR_FAILED, "%s", f.reason.text);
}

/* ---- words --------------------------------------------------------------------------------------- */

bool place_says_absent(const char *s, size_t len)
{
    static const char *const words[] = {"none",
                                        "null",
                                        "nil",
                                        "nothing",
                                        "not found",
                                        "not there",
                                        "no",
                                        "n/a",
                                        "missing",
                                        "absent",
                                        "not visible",
                                        "not present",
                                        "[]",
                                        "[[]]",
                                        "{}",
                                        "()",
                                        "false",
                                        "no match",
                                        "not_found",
                                        "undefined",
                                        "not on the screen",
                                        "not on screen",
                                        NULL};
    while (len && strchr(" \t\r\n\"'`.!", *s))
        s++, len--;
    while (len && strchr(" \t\r\n\"'`.!", s[len - 1]))
        len--;
    for (const char *const *w = words; *w; w++)
        if (strlen(*w) == len && !strncasecmp(*w, s, len))
            return true;
    return false;
}

/* Returns whether a sentence without numbers states that something is absent. */
static bool sentence_says_absent(const char *s)
{
    static const char *const phrases[] = {"not found",
                                          "not visible",
                                          "not present",
                                          "not there",
                                          "does not exist",
                                          "doesn't exist",
                                          "could not find",
                                          "couldn't find",
                                          "cannot find",
                                          "can't find",
                                          "not on the screen",
                                          "no such ",
                                          "cannot be found",
                                          "not in the screenshot",
                                          "does not appear",
                                          "unable to find",
                                          "unable to locate",
                                          "could not locate",
                                          "cannot locate",
                                          "not on screen",
                                          "is no ",
                                          "cannot see",
                                          "can't see",
                                          "don't see",
                                          "do not see",
                                          NULL};
    for (const char *const *p = phrases; *p; p++)
        if (strcasestr(s, *p))
            return true;
    return false;
}

bool place_is_name(const char *name, size_t len)
{
    static const char *const parts[] = {"point",  "box",   "coord", "position", "location", "center",
                                        "centre", "click", "place", "xy",       "det",      NULL};
    char lower[48];
    if (!len || len >= sizeof lower)
        return false;
    for (size_t i = 0; i <= len; i++)
        lower[i] = i < len ? (char)tolower((unsigned char)name[i]) : 0;
    if (strstr(lower, "end_") == lower || strstr(lower, "_end") || strstr(lower, "checkbox") ||
        strstr(lower, "endpoint"))
        return false;
    for (const char *const *p = parts; *p; p++)
        if (strstr(lower, *p) && (strcmp(*p, "det") != 0 || len == 3))
            return true;
    return false;
}

/* ---- the text ------------------------------------------------------------------------------------ */

/* Copies a text with full-width punctuation replaced by ASCII. */
static char *plain_copy(const char *text, size_t len, size_t *n)
{
    static const char *const wide[] = {"\xef\xbc\x88", "\xef\xbc\x89", "\xef\xbc\x8c", "\xef\xbc\x9a",
                                       "\xe3\x80\x81"};
    char *copy = xmalloc(len + 1, 1);
    *n = 0;
    for (size_t i = 0; i < len; i++) {
        int k = 0;
        while (k < 5 && (len - i < 3 || memcmp(text + i, wide[k], 3) != 0))
            k++;
        copy[(*n)++] = k < 5 ? "(),:,"[k] : text[i];
        i += k < 5 ? 2 : 0;
    }
    copy[*n] = 0;
    return copy;
}

/* Returns the text after the reasoning and after the last line that begins with "Action:"; NULL if the
 * reasoning does not end. */
static const char *answer_part(const char *s)
{
    const char *at = s;
    for (const char *end; (end = strstr(at, "</think>"));)
        at = end + strlen("</think>");
    if (strstr(at, "<think>"))
        return NULL;
    for (const char *line = at; line; line = strchr(line, '\n')) {
        line += strspn(line, " \t\r\n*#");
        if (!strncmp(line, "Action:", 7))
            at = line + 7;
    }
    return at;
}

/* Replaces the marks of code fences by spaces, not the text between them. */
static void drop_fences(char *s)
{
    for (char *at = s; (at = strstr(at, "```"));) {
        char *line = at;
        while (*line && *line != '\n' && *line != '{' && *line != '[' && *line != '(' && *line != '<')
            *line++ = ' ';
        at = line;
    }
}

static int conclude(struct place_finder *f, const char *s, struct place *out, struct err *e)
{
    char shown[81];
    size_t n = utf8_valid_prefix(s, strnlen(s, sizeof shown - 1));
    for (size_t i = 0; i < n; i++)
        shown[i] = (unsigned char)s[i] < 0x20 ? ' ' : s[i];
    shown[n] = 0;
    if (f->bad || (!f->rank && *f->reason.text))
        return err_set(e, ERR_FAILED, "'%s' is not a position: %s", shown, f->reason.text);
    if (f->several && (f->found.absent || f->other.absent))
        return err_set(e, ERR_FAILED, "'%s' gives a position and also reports that the element is absent",
                       shown);
    if (f->several)
        return err_set(e, ERR_FAILED, "'%s' has two positions, %g, %g and %g, %g; expected one", shown,
                       f->found.n.x, f->found.n.y, f->other.n.x, f->other.n.y);
    if (!f->rank)
        return err_set(e, ERR_FAILED, "'%s' is not a position: expected two numbers x, y or a box of four",
                       shown);
    *out = f->found;
    return 0;
}

int place_read(const char *text, size_t len, struct place *out, struct err *e)
{
    struct place_finder f = {.reason = ERR_INIT};
    size_t n;
    *out = (struct place){0};
    if (len > PLACE_MAX_TEXT)
        return err_set(e, ERR_FAILED, "the answer has %zu bytes; an answer with a position has at most %d",
                       len, PLACE_MAX_TEXT);
    if (memchr(text, 0, len))
        return err_set(e, ERR_FAILED, "the answer has a NUL byte");
    char *copy = plain_copy(text, len, &n);
    const char *s = answer_part(copy);
    if (!s) {
        free(copy);
        return err_set(e, ERR_FAILED, "the answer ends inside its reasoning");
    }
    drop_fences(copy + (s - copy));
    n = strlen(s);
    static const struct place absent = {.absent = true};
    if (place_says_absent(s, n))
        place_found(&f, RANK_MARKED, &absent);
    else
        place_scan(&f, s, n);
    if (f.rank < RANK_MARKED && !f.bad && sentence_says_absent(s)) {
        f.other = f.found;
        f.several = f.rank && !f.found.absent;
        f.found = absent;
        f.rank = RANK_MARKED;
    }
    int rc = conclude(&f, s + strspn(s, " \t\r\n"), out, e);
    free(copy);
    return rc;
}

int place_value(const json_t *v, struct place *out, struct err *e)
{
    struct place_finder f = {.reason = ERR_INIT};
    *out = (struct place){0};
    if (json_is_string(v))
        return place_read(json_string_value(v), json_string_length(v), out, e);
    place_scan_member(&f, "", v);
    char *shown = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
    int rc = conclude(&f, shown ? shown : "?", out, e);
    free(shown);
    return rc;
}
