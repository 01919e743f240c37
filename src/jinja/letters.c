/* letters.c - Unicode case conversion and character classes with the results of Python's string methods
 * (jinja_impl.h). */
#include "jinja/jinja_impl.h"

#include "base/utf8.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

/* ---- upper and lower case ----------------------------------------------------------------------------- */

/* Returns the distance between upper and lower case of Roman numerals and circled letters, which GLib does
 * not convert. */
static uint32_t numeral_case(uint32_t c, bool upper)
{
    if (upper)
        return c == 0x345                  ? 0x399
               : c >= 0x2170 && c < 0x2180 ? c - 16
               : c >= 0x24d0 && c < 0x24ea ? c - 26
                                           : c;
    return c >= 0x2160 && c < 0x2170 ? c + 16 : c >= 0x24b6 && c < 0x24d0 ? c + 26 : c;
}

static uint32_t to_upper(uint32_t c)
{
    return numeral_case(g_unichar_toupper(c), true);
}

static uint32_t to_lower(uint32_t c)
{
    return numeral_case(g_unichar_tolower(c), false);
}

static bool is_upper(uint32_t c)
{
    bool enclosed =
        (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
    return enclosed || (!g_unichar_istitle(c) && (g_unichar_isupper(c) || to_lower(c) != c));
}

static bool is_lower(uint32_t c)
{
    static const uint32_t others[][2] = {
        {0xaa, 0xaa},       {0xba, 0xba},      {0x2b0, 0x2b8},   {0x2c0, 0x2c1},     {0x2e0, 0x2e4},
        {0x345, 0x345},     {0x37a, 0x37a},    {0x2c7c, 0x2c7d}, {0x1d2c, 0x1d6a},   {0x1d78, 0x1d78},
        {0x1d9b, 0x1dbf},   {0x2071, 0x2071},  {0x207f, 0x207f}, {0x2090, 0x209c},   {0xa69c, 0xa69d},
        {0xa770, 0xa770},   {0xa7f8, 0xa7f9},  {0xab5c, 0xab5f}, {0x10780, 0x10780}, {0x10783, 0x10785},
        {0x10787, 0x107b0}, {0x107b2, 0x107ba}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (c >= others[i][0] && c <= others[i][1])
            return true;
    return !g_unichar_istitle(c) && (g_unichar_islower(c) || to_upper(c) != c);
}

static bool is_cased(uint32_t c)
{
    return g_unichar_istitle(c) || is_upper(c) || is_lower(c);
}

/* Returns whether c may stand between a letter and the sigma that ends its word. */
static bool is_ignored(uint32_t c)
{
    GUnicodeType t = g_unichar_type(c);
    return t == G_UNICODE_NON_SPACING_MARK || t == G_UNICODE_ENCLOSING_MARK || t == G_UNICODE_FORMAT ||
           t == G_UNICODE_MODIFIER_LETTER || t == G_UNICODE_MODIFIER_SYMBOL ||
           (c < 0x80 ? c && strchr("'.:", (int)c) : c == 0xb7 || c == 0x387 || c == 0x2019 || c == 0x2018);
}

/* Returns whether the capital sigma at s[at] ends a word, so that its lower-case letter is the final form. */
static bool is_final(const struct jinja_string *s, size_t at)
{
    uint32_t c;
    bool before = false;
    for (size_t i = 0; i < at;) {
        i += (size_t)jx_char_at(s, i, &c);
        before = is_ignored(c) ? before : is_cased(c);
    }
    for (size_t i = at + 2; before && i < s->len;) {
        i += (size_t)jx_char_at(s, i, &c);
        if (!is_ignored(c))
            return !is_cased(c);
    }
    return before;
}

/* Writes c in upper or title case. Some characters become several letters: U+00DF, ligatures. */
static size_t put_upper(struct jx *x, uint32_t c, bool title, char out[32])
{
    if (title && c >= 0x10d0 && c <= 0x10ff) /* Georgian has capitals, but no title case */
        return (size_t)utf8_encode(c, out);
    uint32_t one = title ? g_unichar_totitle(c) : to_upper(c);
    char text[8] = "";
    if (c < 0x80 || (title && one != c))
        return (size_t)utf8_encode(title && c >= 0x80 ? one : to_upper(c), out);
    utf8_encode(c, text);
    char *all = g_utf8_strup(text, -1), *rest = NULL;
    size_t n = strlen(all), first = (size_t)(g_utf8_next_char(all) - all);
    bool several = n > first;
    if (several && title && c != 0x149)
        rest = g_utf8_strdown(all + first, -1);
    n = several ? (size_t)snprintf(out, 32, "%.*s%s", (int)first, all, rest ? rest : all + first)
                : (size_t)utf8_encode(numeral_case(one, true), out);
    g_free(rest);
    g_free(all);
    if (several && title && c >= 0x1f80 && c <= 0x1fff)
        jx_fail(x, "line %d: the title case of U+%04X is not supported", x->line, (unsigned)c);
    return n;
}

static size_t put_lower(const struct jinja_string *s, size_t at, uint32_t c, char out[32])
{
    if (c == 0x130) { /* the capital I with a dot becomes i and a combining dot */
        memcpy(out, "i\xcc\x87", 3);
        return 3;
    }
    return (size_t)utf8_encode(c == 0x3a3 && is_final(s, at) ? 0x3c2 : to_lower(c), out);
}

struct jinja_value jx_text_case(struct jx *x, struct jinja_value v, const char *how)
{
    struct output o = {0};
    bool all = !strcmp(how, "upper"), title = !strcmp(how, "title"), swap = !strcmp(how, "swapcase");
    bool begins = title || !strcmp(how, "capitalize");
    for (size_t at = 0; at < v.s->len;) {
        uint32_t c;
        char changed[32];
        int n = jx_char_at(v.s, at, &c);
        bool upper = all || begins || (swap && is_lower(c)), keeps = swap && !is_upper(c) && !is_lower(c);
        size_t len = c == 0xfffd || keeps ? 0
                     : upper              ? put_upper(x, c, begins, changed)
                                          : put_lower(v.s, at, c, changed);
        enum jinja_origin origin = v.s->origin ? (enum jinja_origin)v.s->origin[at] : JINJA_TEMPLATE;
        out_put(x, &o, len ? changed : v.s->data + at, len ? len : (size_t)n, NULL, origin);
        begins = title && !is_cased(c);
        if (c == 0x3a3)
            jx_spend(x, v.s->len);
        at += (size_t)n;
    }
    return out_value(x, &o);
}

/* ---- kinds of characters ------------------------------------------------------------------------------ */

/* Returns whether c is a digit or number for isdigit, isnumeric and isalnum. Python knows the values of
 * individual characters, such as superscripts, and GLib does not. The method fails for those characters. */
static bool is_number(struct jx *x, uint32_t c, const char *how)
{
    GUnicodeType t = g_unichar_type(c);
    bool digit = !strcmp(how, "isdigit"), numeric = !strcmp(how, "isnumeric");
    if ((digit && t == G_UNICODE_OTHER_NUMBER) || (numeric && t == G_UNICODE_OTHER_LETTER))
        jx_fail(x, "line %d: %s of U+%04X is not supported", x->line, how, (unsigned)c);
    return t == G_UNICODE_DECIMAL_NUMBER ||
           (!digit && (t == G_UNICODE_OTHER_NUMBER || t == G_UNICODE_LETTER_NUMBER));
}

static bool is_kind(struct jx *x, uint32_t c, const char *how)
{
    if (!strcmp(how, "isspace"))
        return utf8_is_space(c);
    if (!strcmp(how, "isalpha"))
        return g_unichar_isalpha(c);
    if (!strcmp(how, "isdecimal"))
        return g_unichar_type(c) == G_UNICODE_DECIMAL_NUMBER;
    if (!strcmp(how, "isupper"))
        return !is_lower(c) && !g_unichar_istitle(c);
    if (!strcmp(how, "islower"))
        return !is_upper(c) && !g_unichar_istitle(c);
    return (!strcmp(how, "isalnum") && g_unichar_isalpha(c)) || is_number(x, c, how);
}

bool jx_text_all(struct jx *x, struct jinja_value v, const char *how)
{
    bool any = false, by_case = !strcmp(how, "isupper") || !strcmp(how, "islower");
    for (size_t at = 0; at < v.s->len;) {
        uint32_t c;
        at += (size_t)jx_char_at(v.s, at, &c);
        jx_spend(x, 0);
        if (!is_kind(x, c, how))
            return false;
        any = any || !by_case || is_cased(c);
    }
    return any;
}

int64_t jx_text_words(const struct jinja_string *s)
{
    int64_t n = 0;
    bool inside = false;
    for (size_t at = 0; at < s->len;) {
        uint32_t c;
        at += (size_t)jx_char_at(s, at, &c);
        GUnicodeType t = g_unichar_type(c);
        bool word = c == '_' || g_unichar_isalpha(c) || t == G_UNICODE_DECIMAL_NUMBER ||
                    t == G_UNICODE_LETTER_NUMBER || t == G_UNICODE_OTHER_NUMBER;
        n += word && !inside;
        inside = word;
    }
    return n;
}

/* ---- lines -------------------------------------------------------------------------------------------- */

/* Returns the length of the line end at s[at], 0 if there is none. */
static size_t line_end(const struct jinja_string *s, size_t at)
{
    uint32_t c = 0;
    int n = utf8_decode(s->data + at, s->len - at, &c);
    if (c == '\r' && at + 1 < s->len && s->data[at + 1] == '\n')
        return 2;
    bool ends =
        (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
    return n > 0 && ends ? (size_t)n : 0;
}

struct jinja_value jx_text_lines(struct jx *x, struct jinja_value v, bool keep)
{
    struct jinja_value out = jinja_list(x->arena);
    for (size_t at = 0; at < v.s->len;) {
        size_t end = at, n = 0;
        while (end < v.s->len && !(n = line_end(v.s, end)))
            end++;
        jinja_add(x->arena, out, string_part(x, v.s, at, end + (keep ? n : 0) - at));
        at = end + n;
    }
    return out;
}
