/* template_traits.c - what a model's own template writes around its tools (chat_layout.h).
 *
 * The published templates list tools in a block of this shape, with sentences of the model's own:
 *
 *   {%- if tools -%}
 *     {%- if ... -%} {{- '\n\n' -}} {%- endif -%}        separates it from the system text: always done
 *     {{- 'sentences <AVAILABLE_TOOLS>[' -}} ...         texts before the tools
 *     {%- for tool in tools -%} ... {%- endfor -%}
 *     {{- ']</AVAILABLE_TOOLS> sentences' -}} ...        texts after the tools
 *   {%- endif -%}
 *
 * A block with anything else at its own level is not understood; then our own sentences are used.  Qwen's
 * templates open the system turn inside the block, and go on with the system text:
 *
 *   {%- if tools and ... %}
 *     {{- '<|im_start|>system\n' }}
 *     {%- if messages[0].role == 'system' %} ... {%- endif %}      of Qwen3-VL's and older ones
 *     {{- "sentences <tools>" }}
 *     {%- for tool in tools %} ... {%- endfor %}
 *     {{- "\n</tools>" }} {{- 'sentences' }}                       there with <|im_end|>\n at the end
 *     {%- if messages[0].role == 'system' %} ...                   of later ones
 */
#include "text/chat_layout.h"

#include <string.h>

/* {{ an expression }}, {% a statement %} or {# a comment #}. */
struct tag {
    char kind; /* the second character */
    const char *text;
    size_t len;        /* of what is inside, without dashes and spaces at the ends */
    bool front, back;  /* has a dash there: white space outside is cut */
    bool words, space; /* found between the previous tag and this one */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Where a tag of this kind closes, quoted text left out; NULL: nowhere. */
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

/* The next tag from *at on, which moves past it; false when there is none. */
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
    t->back = close - p > t->front && close[-1] == '-';
    p += t->front;
    close -= t->back;
    while (p < close && is_blank(*p))
        p++;
    while (close > p && is_blank(close[-1]))
        close--;
    t->text = p;
    t->len = (size_t)(close - p);
    return true;
}

static bool tag_is(const struct tag *t, const char *words)
{
    return t->kind == '%' && t->len == strlen(words) && !memcmp(t->text, words, t->len);
}

static bool tag_begins(const struct tag *t, const char *word)
{
    size_t n = strlen(word);
    return t->kind == '%' && t->len > n && !memcmp(t->text, word, n);
}

/* Appends the value of an expression; false when it is not a single quoted text. */
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

/* One tag at the block's own level; false when it is not one of those above.  *to receives texts. */
static bool put_tag(const struct tag *t, const struct tag *last, struct buf **to, struct buf *before,
                    struct buf *after)
{
    if (t->words || (t->space && !last->back && !t->front))
        return false;
    if (t->kind == '{')
        return put_quoted(t, *to);
    if (tag_begins(t, "if "))
        return *to == before && !before->len;
    if (*to != before || !tag_is(t, "for tool in tools"))
        return t->kind == '#';
    *to = after;
    return true;
}

bool template_read_tools(const char *text, struct buf *before, struct buf *after)
{
    const char *at = text, *end = text + strlen(text);
    struct tag t = {0}, last;
    struct buf *to = before;
    while (!tag_is(&t, "if tools"))
        if (!next_tag(&at, end, &t))
            return false;
    for (int depth = 0; last = t, next_tag(&at, end, &t);) {
        bool ends = tag_is(&t, "endif") || tag_is(&t, "endfor");
        if (ends && depth == 0)
            return to == after && before->len && after->len && !before->full && !after->full;
        if (depth == 0 && !put_tag(&t, &last, &to, before, after))
            return false;
        depth += tag_begins(&t, "if ") || tag_begins(&t, "for ");
        depth -= ends;
    }
    return false;
}

/* Skips the tags of a loop or condition to its end. */
static bool skip_block(const char **at, const char *end)
{
    struct tag t;
    for (int depth = 1; depth;) {
        if (!next_tag(at, end, &t))
            return false;
        depth += tag_begins(&t, "for ") || tag_begins(&t, "if ");
        depth -= tag_is(&t, "endfor") || tag_is(&t, "endif");
    }
    return true;
}

/* Cuts a text from one end of b; whether it was there. */
static bool cut_begin(struct buf *b, const char *text)
{
    size_t n = strlen(text);
    if (b->len < n || memcmp(b->data, text, n) != 0)
        return false;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    return true;
}

static void cut_end(struct buf *b, const char *text)
{
    size_t n = strlen(text);
    if (b->len >= n && !memcmp(b->data + b->len - n, text, n))
        b->len -= n;
}

bool template_read_qwen_tools(const char *text, struct buf *before, struct buf *after)
{
    static const char open[] = "<|im_start|>system\n";
    const char *at = text, *end = text + strlen(text);
    struct tag t = {0};
    struct buf *to = before;
    while (!tag_is(&t, "if tools") && !tag_begins(&t, "if tools "))
        if (!next_tag(&at, end, &t))
            return false;
    for (;;) {
        if (!next_tag(&at, end, &t) || (t.kind == '{' && !put_quoted(&t, to)))
            return false;
        if (t.kind != '%')
            continue;
        bool tools = tag_is(&t, "for tool in tools");
        if (to == after || !(tools || tag_begins(&t, "if ")))
            break;
        if (!skip_block(&at, end))
            return false;
        to = tools ? after : before;
    }
    if (before->full || after->full || !cut_begin(before, open))
        return false;
    cut_begin(before, "\n\n");
    cut_end(after, "<|im_end|>\n");
    return before->len && after->len;
}
