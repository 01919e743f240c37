/* slots.c - see slots.h.
 *
 * In JSON a verb is the value of the syntax's tag, and a point two numbers with anything between them
 * (", \"y\": "), found by the keys of the dialect's tool table.  Other syntaxes have their own functions.
 */
#include "actions/syntax.h"
#include "actions/tools.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

bool slots_next_number(const char *text, size_t len, size_t at, struct slot_number *n)
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

static bool two_numbers(const char *text, size_t len, struct slot_number *x, struct slot_number *y)
{
    return slots_next_number(text, len, 0, x) && slots_next_number(text, len, x->end, y);
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

/* ---- JSON ------------------------------------------------------------------------------------- */

struct json_reader {
    const struct dialect *d;
    struct slots *s;
    const char *text;
    size_t len, at;
    const struct tool *tool; /* the tool that was named last */
    size_t x;                /* begin of a point's first number, its second not yet read; SIZE_MAX: none */
};

/* Reads the string whose opening quote is at r->at; returns false if it does not end. */
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

/* Reads the value of a point's key: a number, or a list that begins with two. */
static void add_point(struct json_reader *r, enum param_id id)
{
    const char *rest = r->text + r->at;
    size_t left = r->len - r->at;
    struct slot_number x, y;
    if (id == P_POINT || id == P_POINT2) {
        if (left && *rest == '[' && two_numbers(rest, left, &x, &y))
            add(r->s, SLOT_POINT, r->at + x.begin, r->at + y.end);
    } else if (slots_next_number(rest, left, 0, &x) && x.begin == 0) {
        if (id == P_X || id == P_X2)
            r->x = r->at;
        else if (r->x != SIZE_MAX)
            add(r->s, SLOT_POINT, r->x, r->at + x.end);
        r->x = id == P_X || id == P_X2 ? r->x : SIZE_MAX;
    }
}

/* Reads the value of a key.  Strings are consumed; the contents of objects and lists are left to the caller's
 * loop. */
static void read_value(struct json_reader *r, const char *key, size_t key_len)
{
    const char *verb = r->d->syntax->tag;
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

static int find_json_slots(const struct dialect *d, const char *text, size_t len, struct slot *out, int max)
{
    struct slots s = {out, 0, max};
    struct json_reader r = {.d = d, .s = &s, .text = text, .len = len, .x = SIZE_MAX};
    const char *thought = memmem(text, len, "</think>", 8); /* it may quote anything */
    r.at = thought ? (size_t)(thought + 8 - text) : 0;
    json_slots(&r);
    return s.n;
}

int dialect_slots(const struct dialect *d, const char *text, size_t len, struct slot *out, int max)
{
    const struct syntax *x = d->syntax;
    return x->slots ? x->slots(d, text, len, out, max) : x->tag ? find_json_slots(d, text, len, out, max) : 0;
}

bool dialect_word_slot(const struct dialect *d, enum slot_kind kind, const char *text, size_t len,
                       struct slot *out)
{
    return d->syntax->word_slot && d->syntax->word_slot(kind, text, len, out);
}

char *dialect_step_begin(const struct dialect *d, int kind, const char *element)
{
    return d->syntax->step_begin ? d->syntax->step_begin(d, kind, element) : NULL;
}

ptrdiff_t dialect_slot_end(const struct dialect *d, enum slot_kind kind, const char *text, size_t len)
{
    struct slot_number x, y;
    if (d->syntax->slot_end)
        return d->syntax->slot_end(kind, text, len);
    if (kind == SLOT_POINT)
        return two_numbers(text, len, &x, &y) ? (ptrdiff_t)y.end : -1;
    const char *end = memchr(text, '"', len);
    return end ? end - text : -1;
}

static double value(const char *text, struct slot_number n)
{
    char digits[32];
    size_t len = n.end - n.begin;
    if (len >= sizeof digits)
        return -1;
    memcpy(digits, text + n.begin, len);
    digits[len] = 0;
    return strtod(digits, NULL);
}

static bool read_point(const char *text, size_t len, double v[2])
{
    struct slot_number x, y;
    char copy[128];
    if (len >= sizeof copy - 1)
        return false;
    memcpy(copy, text, len);
    copy[len] = ' '; /* ends the second number */
    if (!two_numbers(copy, len + 1, &x, &y))
        return false;
    v[0] = value(copy, x);
    v[1] = value(copy, y);
    return true;
}

int dialect_slot_point(const struct dialect *d, const char *text, size_t len, int w, int h, int32_t *x,
                       int32_t *y)
{
    double v[2];
    bool read = (d->syntax->point ? d->syntax->point : read_point)(text, len, v);
    return read ? dialect_to_pixels(d, v, w, h, x, y) : -1;
}
