/* freeze.c - writes planned steps into the text of a suite, beside the sentences that they perform.
 *
 * The file is edited as lines, so that comments and layout stay.  Earlier steps of the sentence are
 * replaced, but not the comments between them. */
#include "qa/suite/private.h"

#include "plain/plain.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Returns the length of the line at a text, with its line break. */
static size_t line_length(const char *at)
{
    const char *end = strchr(at, '\n');
    return end ? (size_t)(end - at) + 1 : strlen(at);
}

static size_t indent_of(const char *at)
{
    return strspn(at, " ");
}

static bool is_blank(const char *at)
{
    return at[indent_of(at)] == '\n' || at[indent_of(at)] == '\r' || !at[indent_of(at)];
}

static bool is_comment(const char *at)
{
    return at[indent_of(at)] == '#';
}

/* Returns the first line that is neither empty nor a comment.  Comments behind a column may be text. */
static const char *after_comments(const char *at, size_t column)
{
    while (*at && (is_blank(at) || (is_comment(at) && indent_of(at) <= column)))
        at += line_length(at);
    return at;
}

/* Returns the column of the key `do` that begins a line or follows the dash of a list; -1: none. */
static int column_of_do(const char *at)
{
    size_t n = indent_of(at);
    if (at[n] == '-' && at[n + 1] == ' ')
        n += 1 + strspn(at + n + 1, " ");
    return strncmp(at + n, "do:", 3) ? -1 : (int)n;
}

static void put(struct buf *out, struct buf *diff, char mark, const char *at, size_t n)
{
    if (out)
        buf_put(out, at, n);
    if (mark) {
        buf_putc(diff, mark);
        buf_put(diff, at, n);
    }
    if (n && at[n - 1] != '\n') { /* the last line of the file */
        if (out)
            buf_putc(out, '\n');
        if (mark)
            buf_putc(diff, '\n');
    }
}

/* Appends steps and steps_of with an indentation. */
static void put_steps(const struct frozen *f, const struct plain_steps *steps, int column, struct buf *out,
                      struct buf *diff)
{
    char hash[SUITE_HASH];
    struct buf b, step;
    buf_init(&b, SUITE_MAX_TEXT + (size_t)steps->n * 200);
    buf_printf(&b, "%*ssteps:\n", column, "");
    for (int i = 0; i < steps->n; i++) {
        buf_init(&step, 4 * SUITE_MAX_TEXT);
        plain_print(&steps->s[i], &step);
        buf_printf(&b, "%*s  - ", column, "");
        buf_put_json(&b, step.data, step.len);
        buf_putc(&b, '\n');
        buf_free(&step);
    }
    suite_sentence_hash(f->of, hash);
    buf_printf(&b, "%*ssteps_of: %s\n", column, "", hash);
    for (const char *at = b.data; *at; at += line_length(at))
        put(out, diff, '+', at, line_length(at));
    buf_free(&b);
}

/* Copies the rest of the sentence at `at`, leaves out the steps that follow it, and appends the new ones.
 * Returns the text after them. */
static const char *replace_steps(const char *at, const struct frozen *f, const struct plain_steps *steps,
                                 int column, struct buf *out, struct buf *diff)
{
    bool sentence = true, old = false;
    const char *next = at + line_length(at);
    put(out, diff, ' ', at, line_length(at));
    for (at = next; *at; at = next) {
        const char *text = after_comments(at, sentence ? (size_t)column : SIZE_MAX);
        size_t n = indent_of(text);
        bool deeper = (int)n > column || (old && (int)n == column && text[n] == '-');
        bool key =
            (int)n == column && (!strncmp(text + n, "steps:", 6) || !strncmp(text + n, "steps_of:", 9));
        next = at + line_length(at);
        if (!*text || (!key && !deeper))
            break;
        old = old || (key && at == text);
        sentence = sentence && (!key || at != text);
        bool keep = sentence || is_comment(at);
        put(keep ? out : NULL, diff, keep ? ' ' : '-', at, line_length(at));
    }
    put_steps(f, steps, column, out, diff);
    return at;
}

int suite_freeze(const char *text, const struct frozen *f, int n, struct buf *out, struct buf *diff,
                 struct err *e)
{
    const char *at = text;
    int line = 1, k = 0;
    while (*at && k < n) {
        struct plain_steps steps;
        int column = column_of_do(at);
        if (line < f[k].line) {
            put(out, diff, 0, at, line_length(at));
            at += line_length(at);
            line++;
            continue;
        }
        if (column < 0)
            return err_set(e, ERR_USAGE,
                           "line %d: write 'do:' at the start of a line, so that steps can follow",
                           f[k].line);
        if (plain_parse(f[k].steps, &steps, e))
            return -1;
        buf_printf(diff, "line %d\n", f[k].line);
        const char *rest = replace_steps(at, &f[k++], &steps, column, out, diff);
        plain_free(&steps);
        for (; at < rest; at += line_length(at))
            line++;
    }
    buf_puts(out, at);
    return k < n ? err_set(e, ERR_USAGE, "the file has no line %d", f[k].line) : 0;
}
