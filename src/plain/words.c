/* words.c - splits a sentence into words and quotations. */
#include "plain/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Returns the closing mark for an opening one at p, and its length; NULL: p does not open a quotation. */
static const char *closing_mark(const char *p, size_t *opens)
{
    static const char *const marks[][2] = {
        {"\"", "\""}, {"\xe2\x80\x9c", "\xe2\x80\x9d"}, {"\xe2\x80\x9e", "\xe2\x80\x9c"},
        {"'", "'"},   {"\xe2\x80\x98", "\xe2\x80\x99"}, {"\xc2\xab", "\xc2\xbb"},
    };
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (text_starts(p, marks[i][0])) {
            *opens = strlen(marks[i][0]);
            return marks[i][1];
        }
    return NULL;
}

/* Returns whether a quotation may end before p: the text ends there, or a space or punctuation follows. */
static bool ends_word(const char *p)
{
    return !*p || is_space(*p) || (strchr(",;.>!?:)", *p) && *p);
}

/* Reads a quotation at *p into text and moves *p after it.  Returns 0 when none begins there, -1 when it is
 * not closed. */
static int read_quotation(const char **p, struct buf *text)
{
    size_t opens = 0;
    const char *close = closing_mark(*p, &opens), *at = *p + opens;
    if (!close)
        return 0;
    buf_clear(text);
    for (; *at; at++) {
        if (*at == '\\' && (at[1] == '\\' || text_starts(at + 1, close))) {
            buf_putc(text, *++at);
        } else if (text_starts(at, close) && (strcmp(close, "'") || ends_word(at + 1))) {
            *p = at + strlen(close);
            return 1;
        } else {
            buf_putc(text, *at);
        }
    }
    return **p == '\'' ? 0 : -1; /* an apostrophe at the start of a word opens nothing */
}

/* Cuts punctuation that separates steps from the end of an unquoted word; "..." is part of a name, and so is
 * the full stop of an abbreviation in the middle of a sentence. */
static char cut_punctuation(char *word, const char *rest)
{
    size_t n = strlen(word);
    char last = n ? word[n - 1] : 0;
    while (*rest == ' ' || *rest == '\t')
        rest++;
    if (last == ',' || last == ';') {
        word[n - 1] = 0;
        return last;
    }
    bool ends = !*rest || *rest == '\n' || *rest == '\r' || isupper((unsigned char)*rest);
    if (last == '.' && n > 1 && ends && word[n - 2] != '.') {
        word[n - 1] = 0;
        return '.';
    }
    return 0;
}

static int add_word(struct words *out, const char *text, bool quoted, char after, struct err *why)
{
    if (out->n == WORDS_MAX)
        return err_set(why, ERR_USAGE, "the sentence has more than %d words", WORDS_MAX);
    if (!*text && !quoted) {
        if (out->n && after)
            out->w[out->n - 1].after = after;
        return 0;
    }
    out->w[out->n++] = (struct word){xstrdup(text), quoted, after};
    return 0;
}

/* Moves *p over the white space after a word; returns '\n' when it has a line break. */
static char skip_space(const char **p)
{
    char seen = 0;
    for (; is_space(**p); ++*p)
        if (**p == '\n')
            seen = '\n';
    return seen;
}

/* Reads the word at *p. */
static int read_word(const char **p, struct buf *text, struct words *out, struct err *why)
{
    int quoted = read_quotation(p, text);
    if (quoted < 0)
        return err_set(why, ERR_USAGE, "a quotation is not closed: %.40s", *p);
    char after = 0;
    if (quoted) {
        if (**p && strchr(",;.", **p))
            after = *(*p)++;
    } else {
        buf_clear(text);
        size_t opens;
        while (**p && !is_space(**p) && (**p == '\'' || !closing_mark(*p, &opens)))
            buf_putc(text, *(*p)++);
        if (!text->len) /* an apostrophe, or a mark that is alone */
            buf_putc(text, *(*p)++);
        after = cut_punctuation(text->data, *p);
    }
    if (!after || after == ',')
        after = skip_space(p) ? '\n' : after;
    skip_space(p);
    return add_word(out, text->len ? text->data : "", quoted > 0, after, why);
}

int words_split(const char *sentence, struct words *out, struct err *why)
{
    struct buf text;
    int status = 0;
    *out = (struct words){xcalloc(WORDS_MAX, sizeof *out->w), 0};
    buf_init(&text, strlen(sentence) + 1);
    buf_puts(&text, "");
    skip_space(&sentence);
    while (*sentence && status == 0)
        status = read_word(&sentence, &text, out, why);
    buf_free(&text);
    if (status < 0)
        words_free(out);
    return status;
}

void words_free(struct words *p)
{
    for (int i = 0; i < p->n; i++)
        free(p->w[i].text);
    free(p->w);
    *p = (struct words){0};
}

bool words_is(struct span s, int i, const char *any)
{
    if (i < 0 || i >= s.n || s.w[i].quoted)
        return false;
    size_t n = strlen(s.w[i].text);
    for (const char *at = any; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strcspn(at, "|") == n && !strncasecmp(at, s.w[i].text, n))
            return true;
    }
    return false;
}

bool words_article(struct span s, int i)
{
    return words_is(s, i, "the|a|an") && s.w[i].text[0] >= 'a';
}

struct span words_part(struct span s, int from, int to)
{
    return (struct span){s.w + from, to > from ? to - from : 0};
}

struct span words_bare(struct span s)
{
    return s.n > 1 && words_article(s, 0) ? words_part(s, 1, s.n) : s;
}

char *words_text(struct span s)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_puts(&b, "");
    for (int i = 0; i < s.n; i++) {
        bool marks = s.w[i].quoted && s.n > 1;
        buf_printf(&b, "%s%s%s%s", i ? " " : "", marks ? "\"" : "", s.w[i].text, marks ? "\"" : "");
        if (s.w[i].after == ',' && i + 1 < s.n)
            buf_putc(&b, ',');
    }
    return buf_take(&b);
}
