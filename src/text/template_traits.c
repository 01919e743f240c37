/* template_traits.c - what a model's own template writes around its tools (chat_layout.h).
 *
 * The published templates announce tools in a block of this shape, where the sentences are the model's own:
 *
 *   {%- if tools -%}
 *     {%- if ... -%} {{- '\n\n' -}} {%- endif -%}            parts it from the system text, which is done anyway
 *     {{- 'sentences <AVAILABLE_TOOLS>[' -}} ...             texts in front
 *     {%- for tool in tools -%} ... {%- endfor -%}
 *     {{- ']</AVAILABLE_TOOLS> sentences' -}} ...            texts behind
 *   {%- endif -%}
 *
 * A block that has anything else at its own level is not understood; then chat_template.c has its own sentences.
 */
#include "text/chat_layout.h"

#include <string.h>

/* {{ an expression }}, {% a statement %} or {# a comment #}. */
struct tag {
    char kind; /* the second character */
    const char *text;
    size_t len;         /* of what is inside, without dashes and spaces at the ends */
    bool front, behind; /* has a dash there: space outside is cut away */
    bool words, space;  /* what stood between it and the tag before */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Where a tag of this kind is closed; what is quoted in it does not count.  NULL: nowhere. */
static const char *close_of(char kind, const char *p, const char *end)
{
    char quote = 0, last = kind == '{' ? '}' : kind;
    for (; p + 1 < end; p++) {
        if (quote && *p == '\\')
            p++;
        else if (quote)
            quote = *p == quote ? 0 : quote;
        else if (kind != '#' && (*p == '\'' || *p == '"'))
            quote = *p;
        else if (*p == last && p[1] == '}')
            return p;
    }
    return NULL;
}

/* The next tag, behind *at; false when there is none. */
static bool next_tag(const char **at, const char *end, struct tag *t)
{
    *t = (struct tag){0};
    const char *p = *at;
    for (; p + 1 < end && !(*p == '{' && (p[1] == '{' || p[1] == '%' || p[1] == '#')); p++) {
        t->words = t->words || !is_blank(*p);
        t->space = t->space || is_blank(*p);
    }
    const char *close = p + 1 < end ? close_of(p[1], p + 2, end) : NULL;
    if (!close)
        return false;
    t->kind = p[1];
    *at = close + 2;
    p += 2;
    t->front = p < close && *p == '-';
    t->behind = close - p > t->front && close[-1] == '-';
    p += t->front;
    close -= t->behind;
    while (p < close && is_blank(*p))
        p++;
    while (close > p && is_blank(close[-1]))
        close--;
    t->text = p;
    t->len = (size_t)(close - p);
    return true;
}

static bool is(const struct tag *t, const char *words)
{
    return t->kind == '%' && t->len == strlen(words) && !memcmp(t->text, words, t->len);
}

static bool begins(const struct tag *t, const char *word)
{
    size_t n = strlen(word);
    return t->kind == '%' && t->len > n && !memcmp(t->text, word, n);
}

/* Appends the text that an expression is; false when it is more than one text in quotes. */
static bool put_quoted(const struct tag *t, struct buf *out)
{
    static const char from[] = "nrt\\'\"", to[] = "\n\r\t\\'\"";
    char quote = t->len > 1 ? t->text[0] : 0;
    if ((quote != '\'' && quote != '"') || t->text[t->len - 1] != quote)
        return false;
    for (size_t i = 1; i < t->len - 1; i++) {
        char c = t->text[i];
        const char *escaped = c == '\\' ? strchr(from, t->text[++i]) : NULL;
        if (c == quote || i == t->len - 1 || (c == '\\' && !escaped))
            return false;
        buf_putc(out, escaped ? to[escaped - from] : c);
    }
    return true;
}

/* One tag of the block's own level; false when it is none of those above.  *to: where texts go. */
static bool put_tag(const struct tag *t, const struct tag *before, struct buf **to, struct buf *front,
                    struct buf *behind)
{
    if (t->words || (t->space && !before->behind && !t->front))
        return false;
    if (t->kind == '{')
        return put_quoted(t, *to);
    if (begins(t, "if "))
        return *to == front && !front->len;
    if (*to != front || !is(t, "for tool in tools"))
        return t->kind == '#';
    *to = behind;
    return true;
}

bool chat_tools_read(const char *text, struct buf *front, struct buf *behind)
{
    const char *at = text, *end = text + strlen(text);
    struct tag t = {0}, before;
    struct buf *to = front;
    while (!is(&t, "if tools"))
        if (!next_tag(&at, end, &t))
            return false;
    for (int depth = 0; before = t, next_tag(&at, end, &t);) {
        bool ends = is(&t, "endif") || is(&t, "endfor");
        if (ends && depth == 0)
            return to == behind && front->len && behind->len && !front->full && !behind->full;
        if (depth == 0 && !put_tag(&t, &before, &to, front, behind))
            return false;
        depth += begins(&t, "if ") || begins(&t, "for ");
        depth -= ends;
    }
    return false;
}
