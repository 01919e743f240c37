/* json_in.c - see parse.h.
 *
 * One pass copies the first value as strict JSON, with repairs; jansson reads the copy.
 */
#include "actions/parse.h"

#include "base/buf.h"

#include <ctype.h>
#include <string.h>

struct reader {
    const char *text;
    size_t len, at;
    bool python;
    unsigned repairs;
    struct buf out;
    char open[JSON_IN_MAX_DEPTH]; /* '{' or '[' */
    int depth;
    bool comma; /* read, not yet written: it may be a trailing one */
    bool fresh; /* just after an opening bracket: a comma would be an error */
    struct err *e;
};

static int copy_string(struct reader *r)
{
    char quote = r->text[r->at++];
    if (quote == '\'')
        r->repairs |= REPAIR_PYTHON_LITERAL;
    buf_putc(&r->out, '"');
    while (r->at < r->len && r->text[r->at] != quote) {
        char c = r->text[r->at++];
        if (c == '\\' && r->at < r->len) {
            char escaped = r->text[r->at++];
            if (r->len - r->at >= 4 && escaped == 'u' && !memcmp(r->text + r->at, "0000", 4))
                return err_set(r->e, ERR_FAILED, "the JSON has a NUL in a string");
            if (escaped != '\'')
                buf_putc(&r->out, '\\');
            else if (!r->python)
                return err_set(r->e, ERR_FAILED, "the escape \\' is not JSON");
            buf_putc(&r->out, escaped);
        } else if ((unsigned char)c < 0x20) {
            r->repairs |= REPAIR_CONTROL_CHAR;
            buf_printf(&r->out, "\\u%04x", (unsigned)c);
        } else {
            if (c == '"')
                buf_putc(&r->out, '\\');
            buf_putc(&r->out, c);
        }
    }
    buf_putc(&r->out, '"');
    return r->at++ < r->len ? 0 : err_set(r->e, ERR_FAILED, "the JSON is cut off inside a string");
}

/* true, a number, or one of Python's words. */
static int copy_word(struct reader *r)
{
    static const char *const python[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    size_t from = r->at;
    for (; r->at < r->len; r->at++) {
        char c = r->text[r->at];
        if (!isalnum((unsigned char)c) && c != '+' && c != '-' && c != '.' && c != '_')
            break;
    }
    size_t n = r->at - from;
    const char *word = r->text + from;
    if (!n)
        return err_set(r->e, ERR_FAILED, "the JSON has an unexpected character at byte %zu", from);
    for (int i = 0; r->python && i < 3; i++)
        if (strlen(python[i][0]) == n && !memcmp(python[i][0], word, n)) {
            r->repairs |= REPAIR_PYTHON_LITERAL;
            return buf_puts(&r->out, python[i][1]);
        }
    return buf_put(&r->out, word, n);
}

static void flush_comma(struct reader *r)
{
    if (r->comma)
        buf_putc(&r->out, ',');
    r->comma = false;
}

/* A bracket; a comma between a value and a closing bracket is dropped. */
static int copy_bracket(struct reader *r)
{
    char c = r->text[r->at++];
    bool opens = c == '{' || c == '[';
    if (opens && r->depth == JSON_IN_MAX_DEPTH)
        return err_set(r->e, ERR_FAILED, "the JSON is nested over %d deep", JSON_IN_MAX_DEPTH);
    if (!opens && (!r->depth || r->open[r->depth - 1] != (c == '}' ? '{' : '[')))
        return err_set(r->e, ERR_FAILED, "the JSON has a '%c' that nothing opened", c);
    if (!opens && r->comma && !r->fresh) {
        r->repairs |= REPAIR_TRAILING_COMMA;
        r->comma = false;
    }
    flush_comma(r);
    if (opens)
        r->open[r->depth++] = c;
    else
        r->depth--;
    r->fresh = opens;
    return buf_putc(&r->out, c);
}

static int copy_token(struct reader *r)
{
    char c = r->text[r->at];
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
        r->at++;
        return buf_putc(&r->out, ' ');
    }
    if (c == '{' || c == '[' || c == '}' || c == ']')
        return copy_bracket(r);
    flush_comma(r);
    if (c == ',') {
        r->at++;
        r->comma = true;
        return 0;
    }
    r->fresh = false;
    if (c == ':') {
        r->at++;
        return buf_putc(&r->out, c);
    }
    return c == '"' || (c == '\'' && r->python) ? copy_string(r) : copy_word(r);
}

json_t *json_in(const char *text, size_t len, bool python, unsigned *repairs, size_t *used, struct err *e)
{
    struct reader r = {.text = text, .len = len, .python = python, .e = e};
    json_t *value = NULL;
    json_error_t je;
    int bad = 0;
    if (len > JSON_IN_MAX_LEN || !len || (*text != '{' && *text != '[')) {
        err_set(e, ERR_FAILED, len > JSON_IN_MAX_LEN ? "the JSON is too long" : "a JSON object was expected");
        return NULL;
    }
    buf_init(&r.out, (size_t)JSON_IN_MAX_LEN * 6);
    do
        bad = copy_token(&r);
    while (!bad && r.depth && r.at < r.len);
    if (!bad && r.depth)
        bad = err_set(e, ERR_FAILED, "the JSON is cut off: %d brackets are still open", r.depth);
    if (!bad) {
        value = json_loadb(r.out.data, r.out.len, 0, &je);
        if (!value)
            err_set(e, ERR_FAILED, "not JSON: %s", je.text);
        *repairs |= r.repairs;
        *used = r.at;
    }
    buf_free(&r.out);
    return value;
}
