/* slots.c - see slots.h.
 *
 * A point is two numbers with anything between them ("><", ", \"y\": "), a verb a word.  They are found by
 * "<click>" and "<at>" in pocket-wide, where each of the two numbers is a pair of marks, "12><.3", and in
 * JSON by the keys of the dialect's tool table.
 */
#include "actions/slots.h"

#include "actions/tools.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---------------------------------------------------------------------------------- */

struct number {
    size_t begin, end;
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* The next number from `at` on that is not part of a word.  false: none, or the text ends inside it. */
static bool next_number(const char *text, size_t len, size_t at, struct number *n)
{
    for (size_t i = at; i < len; i++) {
        bool sign = text[i] == '-' && i + 1 < len && isdigit((unsigned char)text[i + 1]);
        if ((!isdigit((unsigned char)text[i]) && !sign) || (i > at && is_word(text[i - 1])))
            continue;
        n->begin = i;
        for (i += sign; i < len && (isdigit((unsigned char)text[i]) || text[i] == '.'); i++)
            ;
        n->end = i;
        return i < len && !is_word(text[i]);
    }
    return false;
}

static bool two_numbers(const char *text, size_t len, struct number *x, struct number *y)
{
    return next_number(text, len, 0, x) && next_number(text, len, x->end, y);
}

/* Patches and eighths, "12><.3><20><.0>" (parse_pocket.c): the length up to the last ">", -1: not a point, or
 * it does not end here. */
static ptrdiff_t patch_point(const char *text, size_t len, int seen[2])
{
    char copy[32] = "";
    int x, y, fx, fy, end = -1;
    memcpy(copy, text, len < sizeof copy ? len : sizeof copy - 1);
    if (sscanf(copy, "%2d><.%1d><%2d><.%1d%n", &x, &fx, &y, &fy, &end) < 4 || end < 0 || copy[end] != '>')
        return -1;
    seen[0] = 16 * x + 2 * fx + 1;
    seen[1] = 16 * y + 2 * fy + 1;
    return end;
}

/* ---- slots ------------------------------------------------------------------------------------ */

struct slots {
    struct slot *out;
    int n, max;
};

static void add(struct slots *s, enum slot_kind kind, size_t begin, size_t end)
{
    if (s->n < s->max)
        s->out[s->n++] = (struct slot){kind, begin, end};
}

/* {thought}<verb>{element}<at><x><y>... */
static void pocket_slots(struct slots *s, const char *text, size_t len)
{
    const char *open = memchr(text, '<', len), *end = text + len;
    const char *close = open ? memchr(open, '>', (size_t)(end - open)) : NULL;
    if (!close)
        return;
    add(s, SLOT_VERB, (size_t)(open + 1 - text), (size_t)(close - text));
    const char *at = memmem(close, (size_t)(end - close), "<at>", 4);
    struct number x;
    if (!at || !next_number(at, (size_t)(end - at), 0, &x))
        return;
    size_t begin = (size_t)(at - text) + x.begin;
    int seen[2];
    ptrdiff_t n = patch_point(text + begin, len - begin, seen);
    if (n > 0)
        add(s, SLOT_POINT, begin, begin + (size_t)n);
}

/* ---- JSON ------------------------------------------------------------------------------------- */

struct json_reader {
    const struct dialect *d;
    struct slots *s;
    const char *text;
    size_t len, at;
    const struct tool *tool; /* named last */
    size_t x;                /* begin of a point's first number, its second not yet read; SIZE_MAX: none */
};

static const char *verb_key(const struct dialect *d)
{
    switch (d->syntax) {
    case SYNTAX_HOLO3:
        return "tool_name";
    case SYNTAX_HOLO1:
    case SYNTAX_ANTHROPIC:
    case SYNTAX_QWEN:
        return "action";
    case SYNTAX_OPENAI:
        return "type";
    case SYNTAX_FUNCTION:
        return "name";
    default:
        return NULL;
    }
}

/* The string whose opening quote is here; false: it does not end. */
static bool read_string(struct json_reader *r, size_t *begin, size_t *end)
{
    *begin = ++r->at;
    while (r->at < r->len && r->text[r->at] != '"')
        r->at += r->text[r->at] == '\\' ? 2 : 1;
    *end = r->at++;
    return *end < r->len;
}

static void skip_space(struct json_reader *r)
{
    while (r->at < r->len && isspace((unsigned char)r->text[r->at]))
        r->at++;
}

static const struct tool *find_tool(const struct dialect *d, const char *name, size_t len)
{
    char word[128];
    bool alias;
    if (len >= sizeof word)
        return NULL;
    memcpy(word, name, len);
    word[len] = 0;
    return tools_find(d->tools, word, &alias);
}

static const struct tool_arg *find_arg(const struct tool *t, const char *name, size_t len)
{
    for (int i = 0; t && i < t->nargs; i++)
        if (strlen(t->args[i].name) == len && !memcmp(t->args[i].name, name, len))
            return &t->args[i];
    return NULL;
}

/* The value of a point's key: a number, or a list that begins with two. */
static void add_point(struct json_reader *r, enum param_id id)
{
    const char *rest = r->text + r->at;
    size_t left = r->len - r->at;
    struct number x, y;
    if (id == P_POINT || id == P_POINT2) {
        if (left && *rest == '[' && two_numbers(rest, left, &x, &y))
            add(r->s, SLOT_POINT, r->at + x.begin, r->at + y.end);
    } else if (next_number(rest, left, 0, &x) && x.begin == 0) {
        if (id == P_X || id == P_X2)
            r->x = r->at;
        else if (r->x != SIZE_MAX)
            add(r->s, SLOT_POINT, r->x, r->at + x.end);
        r->x = id == P_X || id == P_X2 ? r->x : SIZE_MAX;
    }
}

/* The value of a key.  Strings are consumed; the inside of objects and lists is left to the caller's loop. */
static void read_value(struct json_reader *r, const char *key, size_t key_len)
{
    const char *verb = verb_key(r->d);
    size_t begin, end;
    if (r->at < r->len && r->text[r->at] == '"') {
        if (!read_string(r, &begin, &end))
            return;
        if (strlen(verb) == key_len && !memcmp(verb, key, key_len)) {
            add(r->s, SLOT_VERB, begin, end);
            r->tool = find_tool(r->d, r->text + begin, end - begin);
        }
        return;
    }
    const struct tool_arg *arg = find_arg(r->tool, key, key_len);
    enum param_type type = arg ? registry_param(arg->id)->type : PARAM_ANY;
    if (type == PARAM_COORD || type == PARAM_POINT)
        add_point(r, arg->id);
}

static void json_slots(struct json_reader *r)
{
    while (r->at < r->len) {
        size_t begin, end;
        if (r->text[r->at] != '"') {
            r->at++;
            continue;
        }
        if (!read_string(r, &begin, &end))
            return;
        skip_space(r);
        if (r->at >= r->len || r->text[r->at] != ':')
            continue; /* it was a value in a list */
        r->at++;
        skip_space(r);
        read_value(r, r->text + begin, end - begin);
    }
}

int dialect_slots(const struct dialect *d, const char *text, size_t len, struct slot *out, int max)
{
    struct slots s = {out, 0, max};
    if (d->syntax == SYNTAX_POCKET) {
        pocket_slots(&s, text, len);
    } else if (verb_key(d)) {
        struct json_reader r = {.d = d, .s = &s, .text = text, .len = len, .x = SIZE_MAX};
        const char *thought = memmem(text, len, "</think>", 8); /* it may quote anything */
        r.at = thought ? (size_t)(thought + 8 - text) : 0;
        json_slots(&r);
    }
    return s.n;
}

bool dialect_word_slot(const struct dialect *d, enum slot_kind kind, const char *text, size_t len,
                       struct slot *out)
{
    const char *at = memmem(text, len, "<at>", 4);
    const char *mark = kind == SLOT_NAME ? memchr(text, '>', len) : memrchr(text, '>', len);
    if (d->syntax != SYNTAX_POCKET || !mark || (kind == SLOT_NAME && (!at || at <= mark)))
        return false;
    size_t begin = (size_t)(mark + 1 - text);
    size_t end = kind == SLOT_NAME ? (size_t)(at - text) : len - (len > begin && text[len - 1] == '\n');
    *out = (struct slot){kind, begin, end};
    return end > begin;
}

ptrdiff_t dialect_slot_end(const struct dialect *d, enum slot_kind kind, const char *text, size_t len)
{
    struct number x, y;
    int seen[2];
    if (kind == SLOT_POINT && d->syntax == SYNTAX_POCKET)
        return patch_point(text, len, seen);
    if (kind == SLOT_POINT)
        return two_numbers(text, len, &x, &y) ? (ptrdiff_t)y.end : -1;
    char closing = kind == SLOT_NAME            ? '<'
                   : kind == SLOT_TEXT          ? '\n'
                   : d->syntax == SYNTAX_POCKET ? '>'
                                                : '"';
    const char *end = memchr(text, closing, len);
    return end ? end - text : -1;
}

static double value(const char *text, struct number n)
{
    char digits[32];
    size_t len = n.end - n.begin;
    if (len >= sizeof digits)
        return -1;
    memcpy(digits, text + n.begin, len);
    digits[len] = 0;
    return strtod(digits, NULL);
}

int dialect_slot_point(const struct dialect *d, const char *text, size_t len, int w, int h, int32_t *x,
                       int32_t *y)
{
    struct number nx, ny;
    char copy[128];
    int seen[2];
    double v[2];
    if (len >= sizeof copy - 1)
        return -1;
    memcpy(copy, text, len);
    copy[len] = d->syntax == SYNTAX_POCKET ? '>' : ' '; /* ends the second number */
    if (d->syntax == SYNTAX_POCKET) {
        if (patch_point(copy, len + 1, seen) < 0)
            return -1;
        v[0] = seen[0];
        v[1] = seen[1];
    } else {
        if (!two_numbers(copy, len + 1, &nx, &ny))
            return -1;
        v[0] = value(copy, nx);
        v[1] = value(copy, ny);
    }
    return dialect_to_pixels(d, v, w, h, x, y);
}
