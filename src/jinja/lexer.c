/* lexer.c - lexer of Jinja templates, with whitespace control (jinja_impl.h).
 *
 * Whitespace around tags follows trim_blocks and lstrip_blocks of Jinja: the newline after a block or
 * comment is removed, and so are spaces and tabs before one that begins its line. "-" inside a tag removes
 * all whitespace on that side, "+" keeps it. The last newline of the source is removed. */
#include "jinja/jinja_impl.h"

#include "base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>

struct lexer {
    struct jx *x;
    const char *p, *end;
    struct token *tokens;
    int n, cap;
    int line;
    bool line_begins; /* the previous tag ended with a newline, or nothing was read yet */
};

static struct token *add(struct lexer *l, enum token_kind kind, const char *text, size_t len)
{
    if (l->n == l->cap) {
        struct token *old = l->tokens;
        l->cap = l->cap ? l->cap * 2 : 256;
        l->tokens = jx_arena_take(l->x->arena, (size_t)l->cap * sizeof *old);
        if (l->n)
            memcpy(l->tokens, old, (size_t)l->n * sizeof *old);
    }
    char *copy = jx_arena_take(l->x->arena, len + 1);
    memcpy(copy, text, len);
    struct token *t = &l->tokens[l->n++];
    *t = (struct token){.kind = kind, .line = l->line, .text = copy, .len = len};
    return t;
}

static void move_to(struct lexer *l, const char *to)
{
    for (; l->p < to; l->p++)
        l->line += *l->p == '\n';
}

static bool at(const struct lexer *l, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(l->end - l->p) >= n && !memcmp(l->p, text, n);
}

/* ---- text between tags -------------------------------------------------------------------------------- */

static const char *next_tag(const char *p, const char *end)
{
    for (; p + 1 < end; p++)
        if (*p == '{' && (p[1] == '{' || p[1] == '%' || p[1] == '#'))
            return p;
    return end;
}

/* Returns the length of the whitespace character that ends at p, 0 if the character is a different one. */
static size_t space_before(const char *from, const char *p)
{
    uint32_t c;
    size_t n = 1;
    while (n < 4 && p - n > from && ((unsigned char)*(p - n) & 0xc0) == 0x80)
        n++;
    return utf8_decode(p - n, n, &c) == (int)n && utf8_is_space(c) ? n : 0;
}

/* Returns the length of the whitespace character at p, 0 if the character is a different one. */
static size_t space_at(const char *p, const char *end)
{
    uint32_t c;
    int n = utf8_decode(p, (size_t)(end - p), &c);
    return n > 0 && utf8_is_space(c) ? (size_t)n : 0;
}

/* Returns the end of text[from..to) without the whitespace that the tag at `to` removes. */
static const char *cut_end(const struct lexer *l, const char *from, const char *to)
{
    bool all = to + 2 < l->end && to[2] == '-';
    if (!all && (to >= l->end || to[1] == '{' || (to + 2 < l->end && to[2] == '+')))
        return to;
    const char *p = to;
    for (size_t n; p > from && (all || p[-1] != '\n') && (n = space_before(from, p)); p -= n)
        ;
    bool whole = all || (p > from ? p[-1] == '\n' : l->line_begins);
    return whole ? p : to;
}

static void lex_data(struct lexer *l)
{
    const char *to = next_tag(l->p, l->end), *cut = cut_end(l, l->p, to);
    if (cut > l->p)
        add(l, T_DATA, l->p, (size_t)(cut - l->p));
    move_to(l, to);
}

/* Skips the sign and the closing delimiter of a tag, and the whitespace that they remove. block: whether
 * the tag is a block or comment, not {{ }}. */
static void close_tag(struct lexer *l, char sign, const char *closing, bool block)
{
    move_to(l, l->p + strlen(closing));
    const char *p = l->p;
    if (sign == '-')
        for (size_t n; p < l->end && (n = space_at(p, l->end)); p += n)
            ;
    else if (sign != '+' && block && p < l->end && *p == '\n')
        p++;
    move_to(l, p);
    l->line_begins = l->p[-1] == '\n';
}

static void lex_comment(struct lexer *l)
{
    const char *p = memmem(l->p + 2, (size_t)(l->end - l->p - 2), "#}", 2);
    if (p) {
        const char *opens = l->p + 2 + (l->p[2] == '-' || l->p[2] == '+'); /* after the sign of {#- */
        char sign = p > opens && (p[-1] == '-' || p[-1] == '+') ? p[-1] : 0;
        move_to(l, p);
        close_tag(l, sign, "#}", true);
        return;
    }
    jx_fail(l->x, "line %d: a comment has no end", l->line);
}

/* ---- inside tags -------------------------------------------------------------------------------------- */

static unsigned hex_digits(struct lexer *l, const char *p, int n)
{
    unsigned v = 0;
    for (int i = 0; i < n; i++) {
        if (p + i >= l->end || !isxdigit((unsigned char)p[i]))
            jx_fail(l->x, "line %d: a string has an incomplete escape", l->line);
        v = v * 16 + (unsigned)(isdigit((unsigned char)p[i]) ? p[i] - '0' : (p[i] | 32) - 'a' + 10);
    }
    return v;
}

/* Writes the character of the escape sequence after a backslash at p to out. Returns the bytes read and
 * adds those written to *n. */
static int unescape(struct lexer *l, const char *p, char *out, size_t *n)
{
    static const char from[] = "nrtbfav0\\'\"", to[] = "\n\r\t\b\f\a\v\0\\'\"";
    const char *known = memchr(from, *p, sizeof from - 1);
    if ((*p == '0' && p[1] >= '0' && p[1] <= '7') || (unsigned char)*p >= 0x80)
        jx_fail(l->x, "line %d: an escape with an octal number or U+0080 and above is not supported",
                l->line);
    int digits = *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;
    if (digits) {
        uint32_t c = hex_digits(l, p + 1, digits);
        int used = 1 + digits;
        if (c >= 0xd800 && c < 0xdc00 && p + used + 1 < l->end && p[used] == '\\' && p[used + 1] == 'u') {
            uint32_t low = hex_digits(l, p + used + 2, 4);
            if (low >= 0xdc00 && low < 0xe000) {
                c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
                used += 6;
            }
        }
        int len = utf8_encode(c, out + *n);
        if (!len)
            jx_fail(l->x, "line %d: a string has an escape that is not a character", l->line);
        *n += (size_t)len;
        return used;
    }
    if (*p == 'N' || (*p >= '1' && *p <= '7'))
        jx_fail(l->x, "line %d: the escape '\\%c' is not supported", l->line, *p);
    if (*p == '\n')
        return 1;
    if (!known) /* Python keeps the backslash of an unknown escape */
        out[(*n)++] = '\\';
    out[(*n)++] = known ? to[known - from] : *p;
    return 1;
}

static void lex_string(struct lexer *l)
{
    char quote = *l->p;
    const char *p = l->p + 1;
    while (p < l->end && *p != quote)
        p += *p == '\\' && p + 1 < l->end ? 2 : 1;
    if (p >= l->end)
        jx_fail(l->x, "line %d: a string has no closing quote", l->line);
    char *text = jx_arena_take(l->x->arena, (size_t)(p - l->p) * 2 + 8);
    size_t n = 0;
    for (const char *q = l->p + 1; q < p;) {
        if (*q == '\\')
            q += 1 + unescape(l, q + 1, text, &n);
        else
            text[n++] = *q++;
    }
    add(l, T_STRING, text, n);
    move_to(l, p + 1);
}

static bool is_word(unsigned char c, bool first)
{
    return isalpha(c) || c == '_' || c >= 0x80 || (!first && isdigit(c));
}

static void lex_number(struct lexer *l)
{
    char digits[64];
    size_t n = 0;
    const char *p = l->p;
    bool real = false;
    int base = *p == '0' && p + 1 < l->end ? (p[1] | 32) == 'x'   ? 16
                                             : (p[1] | 32) == 'b' ? 2
                                             : (p[1] | 32) == 'o' ? 8
                                                                  : 10
                                           : 10;
    p += base == 10 ? 0 : 2;
    for (; p < l->end && n < sizeof digits - 2; p++) {
        bool exponent = base == 10 && (*p | 32) == 'e' && p + 1 < l->end &&
                        (isdigit((unsigned char)p[1]) || ((p[1] == '-' || p[1] == '+') && p + 2 < l->end));
        bool point = base == 10 && *p == '.' && !real && p + 1 < l->end && isdigit((unsigned char)p[1]);
        if (*p == '_')
            continue;
        if (!exponent && !point && !(base == 16 ? isxdigit((unsigned char)*p) : isdigit((unsigned char)*p)))
            break;
        real = real || point || exponent;
        digits[n++] = *p;
        if (exponent && !isdigit((unsigned char)p[1]))
            digits[n++] = *++p;
    }
    digits[n] = 0;
    struct token *t = add(l, real ? T_FLOAT : T_INT, digits, n);
    char *end = digits;
    errno = 0;
    t->i = real ? 0 : (int64_t)strtoll(digits, &end, base);
    if (!real && errno)
        jx_fail(l->x, "line %d: the integer '%.40s' has more than 64 bits", l->line, digits);
    t->f = real ? strtod(digits, &end) : 0;
    bool zeros = base == 10 && !real && digits[0] == '0' && strspn(digits, "0") != n;
    if (*end || !n || zeros || p[-1] == '_' || (base != 10 && p < l->end && is_word((unsigned char)*p, true)))
        jx_fail(l->x, "line %d: '%.40s' does not begin a number", l->line, digits);
    move_to(l, p);
}

/* Returns the length of the name at l->p: letters, digits, marks and "_". */
static size_t name_length(struct lexer *l)
{
    const char *p = l->p;
    for (int n = 1; p < l->end && is_word((unsigned char)*p, p == l->p); p += n) {
        uint32_t c = 0;
        n = utf8_decode(p, (size_t)(l->end - p), &c);
        bool letter = c < 0x80 || g_unichar_isalpha(c) || g_unichar_ismark(c) || g_unichar_isdigit(c);
        if (n <= 0 || !letter)
            break;
    }
    if (p == l->p)
        jx_fail(l->x, "line %d: unexpected character", l->line);
    return (size_t)(p - l->p);
}

static void lex_operator(struct lexer *l)
{
    static const char *const known[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "*",
                                        "/",  "%",  "~",  "<",  ">",  "(",  ")", "[", "]",
                                        "{",  "}",  ",",  ":",  "|",  ".",  "=", ";"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (at(l, known[i])) {
            add(l, T_OPERATOR, known[i], strlen(known[i]));
            move_to(l, l->p + strlen(known[i]));
            return;
        }
    jx_fail(l->x, "line %d: unexpected character '%c'", l->line, *l->p);
}

/* Reads the tokens of a tag up to its end. depth counts open brackets, within which "}}" closes two of
 * them. */
static void lex_tag(struct lexer *l, bool block)
{
    const char *closing = block ? "%}" : "}}";
    add(l, block ? T_BLOCK_BEGIN : T_OUTPUT_BEGIN, "", 0);
    move_to(l, l->p + 2);
    if (l->p < l->end && (*l->p == '-' || *l->p == '+'))
        l->p++;
    for (int depth = 0;;) {
        for (size_t n; l->p < l->end && (n = space_at(l->p, l->end));)
            move_to(l, l->p + n);
        if (l->p >= l->end)
            jx_fail(l->x, "line %d: a tag has no end", l->line);
        bool sign =
            (*l->p == '-' || (block && *l->p == '+')) && l->p + 2 < l->end && !memcmp(l->p + 1, closing, 2);
        if (depth <= 0 && (sign || at(l, closing))) {
            add(l, block ? T_BLOCK_END : T_OUTPUT_END, "", 0);
            char c = sign ? *l->p : 0;
            l->p += sign;
            close_tag(l, c, closing, block);
            return;
        }
        if (*l->p == '"' || *l->p == '\'') {
            lex_string(l);
        } else if (isdigit((unsigned char)*l->p)) {
            lex_number(l);
        } else if (is_word((unsigned char)*l->p, true)) {
            const char *p = l->p + name_length(l);
            add(l, T_NAME, l->p, (size_t)(p - l->p));
            move_to(l, p);
        } else {
            depth += strchr("([{", *l->p) ? 1 : strchr(")]}", *l->p) ? -1 : 0;
            lex_operator(l);
        }
    }
}

/* ---- raw blocks --------------------------------------------------------------------------------------- */

/* Returns the end of the block tag at p if it contains only this word; NULL otherwise. */
static const char *word_tag(const char *p, const char *end, const char *word, char *before, char *after)
{
    *before = *after = 0;
    p += 2;
    if (p < end && (*p == '-' || *p == '+'))
        *before = *p++;
    while (p < end && isspace((unsigned char)*p))
        p++;
    size_t n = strlen(word);
    if ((size_t)(end - p) < n || memcmp(p, word, n) != 0)
        return NULL;
    p += n;
    while (p < end && isspace((unsigned char)*p))
        p++;
    if (p < end && (*p == '-' || *p == '+'))
        *after = *p++;
    return p + 1 < end && p[0] == '%' && p[1] == '}' ? p : NULL;
}

static bool lex_raw(struct lexer *l)
{
    char sign, after;
    const char *p = word_tag(l->p, l->end, "raw", &sign, &after);
    if (!p)
        return false;
    move_to(l, p);
    close_tag(l, after, "%}", false); /* the newline after it is kept */
    for (const char *q = l->p; q + 1 < l->end; q++) {
        const char *closing = *q == '{' && q[1] == '%' ? word_tag(q, l->end, "endraw", &sign, &after) : NULL;
        if (!closing)
            continue;
        const char *cut = cut_end(l, l->p, q);
        if (cut > l->p)
            add(l, T_DATA, l->p, (size_t)(cut - l->p));
        move_to(l, closing);
        close_tag(l, after, "%}", true);
        return true;
    }
    jx_fail(l->x, "line %d: a raw block has no end", l->line);
}

const struct token *lex(struct jx *x, const char *source, size_t len, int *n)
{
    char *text = jx_arena_take(x->arena, len + 1);
    size_t kept = 0;
    for (size_t i = 0; i < len; i++) { /* normalizes line ends to \n */
        bool cr = source[i] == '\r';
        text[kept++] = cr ? '\n' : source[i];
        i += cr && i + 1 < len && source[i + 1] == '\n';
    }
    kept -= kept && text[kept - 1] == '\n';
    struct lexer l = {.x = x, .p = text, .end = text + kept, .line = 1, .line_begins = true};
    while (l.p < l.end) {
        lex_data(&l);
        if (l.p >= l.end)
            break;
        if (l.p[1] == '#')
            lex_comment(&l);
        else if (l.p[1] == '{')
            lex_tag(&l, false);
        else if (!lex_raw(&l))
            lex_tag(&l, true);
    }
    add(&l, T_END, "", 0);
    *n = l.n;
    return l.tokens;
}
