/* text.c - Python's string methods on strings with origins (jinja_impl.h). Positions are byte offsets in
 * UTF-8. */
#include "jinja/jinja_impl.h"

#include "base/utf8.h"

#include <string.h>

/* Decodes the character at s[at]; an invalid byte counts as one character. */
int jx_char_at(const struct jinja_string *s, size_t at, uint32_t *c)
{
    int n = utf8_decode(s->data + at, s->len - at, c);
    if (n > 0)
        return n;
    *c = 0xfffd;
    return 1;
}

static size_t char_before(const struct jinja_string *s, size_t end)
{
    size_t at = end - 1;
    while (at && end - at < 4 && ((unsigned char)s->data[at] & 0xc0) == 0x80)
        at--;
    return at;
}

/* Returns whether strip() removes c: whitespace, or one of chars. */
static bool strips(uint32_t c, const struct jinja_string *chars)
{
    if (!chars)
        return utf8_is_space(c);
    uint32_t one;
    for (size_t i = 0; i < chars->len;) {
        i += (size_t)jx_char_at(chars, i, &one);
        if (one == c)
            return true;
    }
    return false;
}

struct jinja_value jx_text_strip(struct jx *x, struct jinja_value v, struct jinja_value chars, bool left,
                                 bool right)
{
    const struct jinja_string *s = v.s, *set = chars.kind == JINJA_STRING ? chars.s : NULL;
    if (given(chars) && chars.kind != JINJA_STRING && chars.kind != JINJA_NONE)
        jx_fail(x, "line %d: strip needs a string or nothing", x->line);
    size_t from = 0, to = s->len;
    uint32_t c;
    while (left && from < to) {
        int n = jx_char_at(s, from, &c);
        jx_spend(x, set ? 8 * set->len : 0);
        if (!strips(c, set))
            break;
        from += (size_t)n;
    }
    while (right && to > from) {
        size_t at = char_before(s, to);
        jx_char_at(s, at, &c);
        jx_spend(x, set ? 8 * set->len : 0);
        if (!strips(c, set))
            break;
        to = at;
    }
    return string_part(x, s, from, to - from);
}

int64_t jx_text_find(const struct jinja_string *s, const struct jinja_string *what, size_t from)
{
    if (from > s->len || what->len > s->len - from)
        return -1;
    const char *p = what->len ? memmem(s->data + from, s->len - from, what->data, what->len) : s->data + from;
    return p ? p - s->data : -1;
}

bool jx_text_begins(const struct jinja_string *s, const struct jinja_string *with)
{
    return s->len >= with->len && (!with->len || !memcmp(s->data, with->data, with->len));
}

bool jx_text_ends(const struct jinja_string *s, const struct jinja_string *with)
{
    return s->len >= with->len &&
           (!with->len || !memcmp(s->data + s->len - with->len, with->data, with->len));
}

static void put_part(struct jx *x, struct output *o, const struct jinja_string *s, size_t from, size_t len)
{
    out_put(x, o, s->data + from, len, s->origin ? s->origin + from : NULL, JINJA_TEMPLATE);
}

struct jinja_value jx_text_replace(struct jx *x, struct jinja_value v, const struct jinja_string *from,
                                   const struct jinja_string *to, int64_t max)
{
    struct output o = {0};
    const struct jinja_string *s = v.s;
    size_t at = 0;
    int64_t found;
    jx_spend(x, s->len);
    for (int64_t n = 0; (max < 0 || n < max) && (found = jx_text_find(s, from, at)) >= 0; n++) {
        size_t step = from->len;
        put_part(x, &o, s, at, (size_t)found - at);
        put_part(x, &o, to, 0, to->len);
        at = (size_t)found + step;
        if (step)
            continue;
        if (at >= s->len) /* an empty substring matches before each character and at the end */
            return out_value(x, &o);
        uint32_t c;
        step = (size_t)jx_char_at(s, at, &c);
        put_part(x, &o, s, at, step);
        at += step;
    }
    put_part(x, &o, s, at, s->len - at);
    return out_value(x, &o);
}

/* ---- splitting ---------------------------------------------------------------------------------------- */

static struct jinja_value split_spaces(struct jx *x, const struct jinja_string *s, int64_t max)
{
    struct jinja_value out = jinja_list(x->arena);
    uint32_t c;
    for (size_t at = 0; at < s->len;) {
        size_t begin, n;
        for (; at < s->len && (n = (size_t)jx_char_at(s, at, &c), utf8_is_space(c)); at += n)
            ;
        begin = at;
        if (max >= 0 && out.l->n == max) {
            if (at < s->len)
                jinja_add(x->arena, out, string_part(x, s, at, s->len - at));
            return out;
        }
        for (; at < s->len && (n = (size_t)jx_char_at(s, at, &c), !utf8_is_space(c)); at += n)
            ;
        if (at > begin)
            jinja_add(x->arena, out, string_part(x, s, begin, at - begin));
    }
    return out;
}

/* Returns the offset of the last occurrence of `by` that ends at or before `end`; -1 if there is none. */
static int64_t find_last(const struct jinja_string *s, const struct jinja_string *by, size_t end)
{
    for (size_t at = end >= by->len ? end - by->len + 1 : 0; at-- > 0;)
        if (!memcmp(s->data + at, by->data, by->len))
            return (int64_t)at;
    return -1;
}

static struct jinja_value split_from_right(struct jx *x, const struct jinja_string *s,
                                           const struct jinja_string *by, int64_t max)
{
    struct jinja_value reversed = jinja_list(x->arena), out = jinja_list(x->arena);
    size_t end = s->len;
    int64_t at;
    jx_spend(x, by->len > 64 ? s->len * (by->len / 64) : 0);
    while ((max < 0 || reversed.l->n < max) && (at = find_last(s, by, end)) >= 0) {
        jinja_add(x->arena, reversed, string_part(x, s, (size_t)at + by->len, end - (size_t)at - by->len));
        end = (size_t)at;
    }
    jinja_add(x->arena, reversed, string_part(x, s, 0, end));
    for (int i = reversed.l->n - 1; i >= 0; i--)
        jinja_add(x->arena, out, reversed.l->items[i]);
    return out;
}

struct jinja_value jx_text_split(struct jx *x, struct jinja_value v, struct jinja_value by, int64_t max,
                                 bool from_right)
{
    if (given(by) && by.kind != JINJA_STRING && by.kind != JINJA_NONE)
        jx_fail(x, "line %d: split needs a string or nothing", x->line);
    jx_spend(x, v.s->len);
    if (by.kind != JINJA_STRING && from_right && max >= 0)
        jx_fail(x, "line %d: rsplit needs a separator", x->line);
    if (by.kind != JINJA_STRING)
        return split_spaces(x, v.s, max);
    if (!by.s->len)
        jx_fail(x, "line %d: split: empty separator", x->line);
    if (from_right)
        return split_from_right(x, v.s, by.s, max);
    struct jinja_value out = jinja_list(x->arena);
    size_t from = 0;
    int64_t at;
    while ((max < 0 || out.l->n < max) && (at = jx_text_find(v.s, by.s, from)) >= 0) {
        jinja_add(x->arena, out, string_part(x, v.s, from, (size_t)at - from));
        from = (size_t)at + by.s->len;
    }
    jinja_add(x->arena, out, string_part(x, v.s, from, v.s->len - from));
    return out;
}

struct jinja_value jx_text_join(struct jx *x, struct jinja_value items, struct jinja_value between)
{
    struct output o = {0};
    struct jinja_value list = iterate(x, items);
    for (int i = 0; i < list.l->n; i++) {
        if (i)
            spell(x, &o, between);
        spell(x, &o, list.l->items[i]);
    }
    return out_value(x, &o);
}
