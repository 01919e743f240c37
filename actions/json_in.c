/* json_in.c - see json_in.h.
 *
 * One pass copies the first value as strict JSON, with repairs; jansson parses the copy. */
#include "actions/json_in.h"

#include "actions/action.h"
#include "base/buf.h"

#include <ctype.h>
#include <string.h>

enum expected { KEY, COLON, VALUE, COMMA };

struct reader {
    const char *text;
    size_t len, at;
    unsigned repairs;
    struct buf out;
    char open[JSON_IN_DEEPEST]; /* '{' or '[' */
    int depth, max_depth;
    enum expected next;
    bool comma; /* read, but not yet written: it may be a trailing comma */
    bool fresh; /* directly after an opening bracket */
    bool cut;
    struct err *e;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static size_t skip_space(const struct reader *r, size_t at)
{
    while (at < r->len && is_space(r->text[at]))
        at++;
    return at;
}

/* Returns the position after the string that begins at `at`, or len if the string does not end. */
static size_t string_end(const struct reader *r, size_t at)
{
    char quote = r->text[at++];
    while (at < r->len && r->text[at] != quote)
        at += r->text[at] == '\\' ? 2 : 1;
    return at < r->len ? at + 1 : r->len;
}

/* Returns whether a key and a colon are at `at`. */
static bool key_at(const struct reader *r, size_t at)
{
    at = skip_space(r, at);
    if (at < r->len && (r->text[at] == '"' || r->text[at] == '\'')) {
        at = string_end(r, at);
    } else {
        size_t from = at;
        while (at < r->len && (isalnum((unsigned char)r->text[at]) || r->text[at] == '_'))
            at++;
        at = at == from ? r->len : at;
    }
    at = skip_space(r, at);
    return at < r->len && r->text[at] == ':';
}

static int unexpected(struct reader *r)
{
    return err_set(r->e, ERR_FAILED, "the JSON has an unexpected character at byte %zu", r->at);
}

static int cut_off(struct reader *r)
{
    r->cut = true;
    return err_set(r->e, ERR_FAILED, "the JSON is cut off: %d brackets are still open", r->depth);
}

/* ---- strings and words ------------------------------------------------------------------------------ */

static int copy_escape(struct reader *r)
{
    char escaped = r->text[r->at++];
    if (r->len - r->at >= 4 && escaped == 'u' && !memcmp(r->text + r->at, "0000", 4))
        return err_set(r->e, ERR_FAILED, "the JSON has a NUL in a string");
    if (escaped == '\'')
        r->repairs |= REPAIR_PYTHON_LITERAL;
    else
        buf_putc(&r->out, '\\');
    return buf_putc(&r->out, escaped);
}

static int copy_string(struct reader *r)
{
    char quote = r->text[r->at++];
    r->repairs |= quote == '\'' ? REPAIR_PYTHON_LITERAL : 0;
    buf_putc(&r->out, '"');
    while (r->at < r->len && r->text[r->at] != quote) {
        char c = r->text[r->at++];
        if (c == '\\' && r->at < r->len) {
            if (copy_escape(r))
                return -1;
        } else if (c == '\r' && r->at < r->len && r->text[r->at] == '\n') {
            r->repairs |= REPAIR_CONTROL_CHAR;
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
    if (r->at == r->len) {
        r->cut = true;
        return err_set(r->e, ERR_FAILED, "the JSON is cut off inside a string");
    }
    r->at++;
    return 0;
}

/* Copies true, a number, one of Python's words, or a key without quotes. */
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
        return unexpected(r);
    if (r->next == KEY) {
        r->repairs |= REPAIR_CALL;
        buf_putc(&r->out, '"');
        buf_put(&r->out, word, n);
        return buf_putc(&r->out, '"');
    }
    for (int i = 0; i < 3; i++)
        if (strlen(python[i][0]) == n && !memcmp(python[i][0], word, n)) {
            r->repairs |= REPAIR_PYTHON_LITERAL;
            return buf_puts(&r->out, python[i][1]);
        }
    return buf_put(&r->out, word, n);
}

/* ---- brackets and commas ---------------------------------------------------------------------------- */

static void flush_comma(struct reader *r)
{
    if (r->comma)
        buf_putc(&r->out, ',');
    r->comma = false;
}

static void drop_trailing_comma(struct reader *r)
{
    r->repairs |= r->comma ? REPAIR_TRAILING_COMMA : 0;
    r->comma = false;
}

static int open_bracket(struct reader *r, char c)
{
    if (r->next == KEY && c == '{' && r->fresh && !r->comma) { /* such as {{"name": ...}} */
        r->repairs |= REPAIR_CALL;
        r->at++;
        return 0;
    }
    if (r->next == COMMA && r->depth && r->open[r->depth - 1] == '[') {
        r->repairs |= REPAIR_CALL;
        r->comma = true;
    } else if (r->next != VALUE) {
        return unexpected(r);
    }
    if (r->depth == r->max_depth)
        return err_set(r->e, ERR_FAILED, "the JSON is nested deeper than %d", r->max_depth);
    flush_comma(r);
    r->open[r->depth++] = c;
    r->next = c == '{' ? KEY : VALUE;
    r->fresh = true;
    r->at++;
    return buf_putc(&r->out, c);
}

/* Writes the closing bracket of the innermost value. */
static void close_one(struct reader *r)
{
    buf_putc(&r->out, r->open[--r->depth] == '{' ? '}' : ']');
    r->next = COMMA;
    r->fresh = false;
}

static bool is_open(const struct reader *r, char c)
{
    for (int i = 0; i < r->depth; i++)
        if (r->open[i] == c)
            return true;
    return false;
}

/* Returns whether the brace at r->at was written too early: the next member of the object follows, and the
 * enclosing value cannot have such a member. */
static bool is_early(const struct reader *r)
{
    size_t at = skip_space(r, r->at + 1);
    bool member_follows = at < r->len && r->text[at] == ',' && key_at(r, at + 1);
    return member_follows && (r->depth == 1 || r->open[r->depth - 2] == '[');
}

static int close_bracket(struct reader *r, char c)
{
    char opening = c == '}' ? '{' : '[';
    bool comma_only = r->comma && r->fresh;
    if (r->next == COLON || comma_only || (r->next == VALUE && r->open[r->depth - 1] == '{'))
        return unexpected(r);
    if (!is_open(r, opening) || (c == '}' && r->open[r->depth - 1] == '{' && is_early(r))) {
        r->repairs |= REPAIR_CALL;
        r->at++;
        return 0;
    }
    drop_trailing_comma(r);
    while (r->open[r->depth - 1] != opening) {
        r->repairs |= REPAIR_CALL;
        close_one(r);
    }
    close_one(r);
    r->at++;
    return 0;
}

static int read_comma(struct reader *r)
{
    bool again = r->comma && !r->fresh;
    if (r->next != COMMA && !again)
        return err_set(r->e, ERR_FAILED, "the JSON has an extra comma at byte %zu", r->at);
    r->repairs |= again ? REPAIR_TRAILING_COMMA : 0;
    r->comma = true;
    r->next = r->open[r->depth - 1] == '{' ? KEY : VALUE;
    r->at++;
    return 0;
}

/* ---- the value -------------------------------------------------------------------------------------- */

/* Closes all open brackets before a tag or a code fence, where the JSON should continue.  Returns -1 with an
 * error if the JSON may be cut off. */
static int close_before_tag(struct reader *r)
{
    /* a closing tag ends a call, any other mark may follow a part of a call */
    const char *s = r->text + r->at;
    bool may_be_cut = *s == '`' || r->len - r->at < 2 || (s[1] != '/' && s[1] != '|') || r->comma;
    if (r->next == COLON || (r->next == VALUE && r->open[r->depth - 1] == '{') || r->fresh || may_be_cut)
        return cut_off(r);
    r->cut = r->out.data[r->out.len - 1] != '}'; /* members of the innermost object may be missing */
    drop_trailing_comma(r);
    while (r->depth)
        close_one(r);
    r->repairs |= REPAIR_CALL;
    return 0;
}

/* Closes the value at the end of the text if its members are complete: {"name": ..., "arguments": {...} */
static int close_at_end(struct reader *r)
{
    int list = r->open[0] == '[';
    if (r->depth > 1 + list || r->out.data[r->out.len - 1] != '}' || r->comma || r->fresh)
        return cut_off(r);
    while (r->depth)
        close_one(r);
    r->repairs |= REPAIR_CALL;
    return 0;
}

/* Copies a string or a word. */
static int copy_scalar(struct reader *r)
{
    char c = r->text[r->at];
    if (r->next == COMMA && r->open[r->depth - 1] == '{' && is_space(r->text[r->at - 1]) &&
        key_at(r, r->at)) { /* a missing comma */
        r->repairs |= REPAIR_CALL;
        r->comma = true;
        r->next = KEY;
    }
    if (r->next == COLON || r->next == COMMA)
        return unexpected(r);
    if (r->next == KEY && c != '"' && c != '\'' && !key_at(r, r->at))
        return unexpected(r);
    flush_comma(r);
    if ((c == '"' || c == '\'' ? copy_string : copy_word)(r))
        return -1;
    r->next = r->next == KEY ? COLON : COMMA;
    r->fresh = false;
    return 0;
}

static int copy_token(struct reader *r)
{
    char c = r->text[r->at];
    switch (c) {
    case ' ':
    case '\n':
    case '\r':
    case '\t':
        r->at++;
        return 0;
    case '{':
    case '[':
        return open_bracket(r, c);
    case '}':
    case ']':
        return close_bracket(r, c);
    case ',':
        return read_comma(r);
    case '<':
    case '`':
        return close_before_tag(r);
    case ':':
        if (r->next != COLON)
            return unexpected(r);
        r->next = VALUE;
        r->at++;
        return buf_putc(&r->out, c);
    default:
        return copy_scalar(r);
    }
}

json_t *json_in(const char *text, size_t len, struct json_in *in, struct err *e)
{
    struct reader r = {.text = text, .len = len, .max_depth = in->max_depth, .next = VALUE, .e = e};
    json_error_t je;
    json_t *value = NULL;
    int bad = 0;
    r.at = skip_space(&r, 0);
    if (r.at == len || (text[r.at] != '{' && text[r.at] != '[')) {
        err_set(e, ERR_FAILED, "expected a JSON object");
        return NULL;
    }
    buf_init(&r.out, len * 6 + JSON_IN_DEEPEST);
    do
        bad = copy_token(&r);
    while (!bad && r.depth && r.at < r.len);
    if (!bad && r.depth)
        bad = in->may_end ? close_at_end(&r) : cut_off(&r);
    if (!bad) {
        value = json_loadb(r.out.data, r.out.len, JSON_REJECT_DUPLICATES, &je);
        if (!value)
            err_set(e, ERR_FAILED, "not JSON: %s", je.text);
    }
    in->repairs |= value ? r.repairs : 0;
    in->used = r.at < len ? r.at : len; /* a truncated string ends one byte after the text */
    in->cut = r.cut;
    buf_free(&r.out);
    return value;
}
