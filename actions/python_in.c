/* python_in.c - see python_in.h.
 *
 *   statement  import ... | # ... | for NAME in range(INT): call | call
 *   call       NAME(.NAME)* [ ( [argument {, argument}] ) ]
 *   argument   [NAME =] value
 *   value      number | string | True | False | None | [value, ...] | (value, ...) | {string: value, ...}
 */
#include "actions/python_in.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 3, MAX_STRING = 64 << 10, MAX_ARGS = 32, MAX_TIMES = 20 };

static int refuse(struct python_in *in, const char *what)
{
    size_t n = (size_t)(in->end - in->at), shown = n < 40 ? n : 40;
    const char *line = memchr(in->at, '\n', shown);
    shown = utf8_valid_prefix(in->at, line ? (size_t)(line - in->at) : shown);
    return err_set(in->e, ERR_FAILED, "%s at '%.*s'", what, (int)shown, in->at);
}

static int refuse_cut(struct python_in *in, const char *what)
{
    in->cut = true;
    return refuse(in, what);
}

/* Skips blanks; inside brackets also line ends and comments. */
static void skip(struct python_in *in, bool lines)
{
    while (in->at < in->end) {
        if (*in->at == ' ' || *in->at == '\t' || *in->at == '\r' || (lines && *in->at == '\n')) {
            in->at++;
        } else if (lines && *in->at == '#') {
            while (in->at < in->end && *in->at != '\n')
                in->at++;
        } else {
            return;
        }
    }
}

static bool accept(struct python_in *in, char c)
{
    if (in->at == in->end || *in->at != c)
        return false;
    in->at++;
    return true;
}

static size_t name_at(const struct python_in *in, bool dotted)
{
    size_t n = 0, have = (size_t)(in->end - in->at);
    while (n < have && (isalpha((unsigned char)in->at[n]) || in->at[n] == '_' ||
                        (n && isdigit((unsigned char)in->at[n])) || (dotted && n && in->at[n] == '.')))
        n++;
    return n;
}

static bool accept_word(struct python_in *in, const char *word)
{
    size_t n = strlen(word);
    if (name_at(in, false) != n || memcmp(in->at, word, n) != 0)
        return false;
    in->at += n;
    return true;
}

/* ---- values ----------------------------------------------------------------------------------- */

/* Reads \xHH, \uHHHH or \UHHHHHHHH after the letter.  Returns -1 if digits are missing. */
static int put_hex(struct python_in *in, int digits, struct buf *out)
{
    uint32_t cp = 0;
    char utf8[4];
    for (int i = 0; i < digits; i++, in->at++) {
        if (in->at == in->end || !isxdigit((unsigned char)*in->at))
            return -1;
        int c = tolower((unsigned char)*in->at);
        cp = cp << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    int n = utf8_encode(cp, utf8);
    return n ? buf_put(out, utf8, (size_t)n) : -1;
}

static int put_escape(struct python_in *in, struct buf *out)
{
    static const char from[] = "ntr\\'\"", to[] = "\n\t\r\\'\"";
    if (in->at == in->end)
        return -1;
    char c = *in->at++;
    const char *known = memchr(from, c, sizeof from - 1);
    if (known)
        return buf_putc(out, to[known - from]);
    if (c == '\n')
        return 0; /* a continued line */
    if (c == 'x' || c == 'u' || c == 'U')
        return put_hex(in, c == 'x' ? 2 : c == 'u' ? 4 : 8, out);
    buf_putc(out, '\\');
    return buf_putc(out, c);
}

static json_t *read_string(struct python_in *in, bool raw)
{
    char quote = *in->at;
    bool triple = in->end - in->at >= 3 && in->at[1] == quote && in->at[2] == quote;
    size_t width = triple ? 3 : 1;
    struct buf out;
    bool bad = false, closed = false;
    in->at += width;
    buf_init(&out, MAX_STRING);
    while (!bad && !closed && in->at < in->end) {
        char c = *in->at;
        if (c == quote && (!triple || (in->end - in->at >= 3 && in->at[1] == quote && in->at[2] == quote))) {
            in->at += width;
            closed = true;
        } else if (c == '\n' && !triple) {
            bad = true;
        } else if (c == '\\' && !raw) {
            in->at++;
            bad = put_escape(in, &out) != 0;
        } else {
            in->at++;
            buf_putc(&out, c);
        }
    }
    json_t *v = closed && !bad && !out.full ? json_stringn(out.data, out.len) : NULL;
    if (!v)
        refuse_cut(in,
                   closed && !bad ? "a string that is not UTF-8 or too long" : "a string that is cut off");
    buf_free(&out);
    return v;
}

static json_t *read_number(struct python_in *in)
{
    char text[32], *end;
    size_t n = 0, have = (size_t)(in->end - in->at);
    for (; n < have && n < sizeof text - 1; n++) {
        char c = in->at[n];
        if (!isdigit((unsigned char)c) && c != '+' && c != '-' && c != '.' && c != 'e' && c != 'E')
            break;
    }
    memcpy(text, in->at, n);
    text[n] = 0;
    bool whole = strspn(text, "+-0123456789") == n;
    double v = strtod(text, &end);
    if (!n || *end || !isfinite(v) || (whole && fabs(v) > 1e15)) {
        refuse(in, "expected a number");
        return NULL;
    }
    in->at += n;
    return whole ? json_integer((json_int_t)v) : json_real(v);
}

static json_t *read_value(struct python_in *in, int depth);

/* Reads a comma, or checks that the closing bracket follows.  Returns -1 with an error. */
static int read_comma(struct python_in *in, char close)
{
    skip(in, true);
    if (!accept(in, ',') && (in->at == in->end || *in->at != close))
        return (in->at == in->end ? refuse_cut : refuse)(in, "expected a comma or a closing bracket");
    skip(in, true);
    return 0;
}

static json_t *read_list(struct python_in *in, char close, int depth)
{
    json_t *list = json_array();
    in->at++;
    skip(in, true);
    while (!accept(in, close)) {
        json_t *one = json_array_size(list) < MAX_ARGS ? read_value(in, depth + 1) : NULL;
        if (!one || json_array_append_new(list, one) || read_comma(in, close)) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* Reads "{'key': value, ...}". */
static json_t *read_dict(struct python_in *in, int depth)
{
    json_t *dict = json_object();
    in->at++;
    skip(in, true);
    while (!accept(in, '}')) {
        bool quoted = in->at < in->end && (*in->at == '\'' || *in->at == '"');
        json_t *key = quoted && json_object_size(dict) < MAX_ARGS ? read_string(in, false) : NULL, *v = NULL;
        skip(in, true);
        if (key && accept(in, ':'))
            v = read_value(in, depth + 1);
        else
            (in->at == in->end ? refuse_cut : refuse)(in, "expected a key and a colon");
        bool good = v && !json_object_set(dict, json_string_value(key), v) && !read_comma(in, '}');
        json_decref(key);
        json_decref(v);
        if (!good) {
            json_decref(dict);
            return NULL;
        }
    }
    return dict;
}

static json_t *read_value(struct python_in *in, int depth)
{
    skip(in, true);
    if (in->at == in->end || depth > MAX_DEPTH) {
        (depth > MAX_DEPTH ? refuse : refuse_cut)(in, depth > MAX_DEPTH ? "lists nested too deep"
                                                                        : "a value is missing");
        return NULL;
    }
    char c = *in->at;
    if (c == '\'' || c == '"')
        return read_string(in, false);
    if (c == 'r' && in->at + 1 < in->end && (in->at[1] == '\'' || in->at[1] == '"')) {
        in->at++;
        return read_string(in, true);
    }
    if (c == '[' || c == '(')
        return read_list(in, c == '[' ? ']' : ')', depth);
    if (c == '{')
        return read_dict(in, depth);
    if (accept_word(in, "True") || accept_word(in, "true"))
        return json_true();
    if (accept_word(in, "False") || accept_word(in, "false"))
        return json_false();
    if (accept_word(in, "None") || accept_word(in, "null"))
        return json_null();
    return read_number(in);
}

/* ---- calls ------------------------------------------------------------------------------------ */

static int read_argument(struct python_in *in, struct python_call *call)
{
    char key[64];
    size_t n = name_at(in, false);
    struct python_in ahead = *in;
    ahead.at += n;
    skip(&ahead, true);
    bool keyword = n && n < sizeof key && accept(&ahead, '=');
    if (json_array_size(call->list) + json_object_size(call->keywords) >= MAX_ARGS)
        return refuse(in, "too many arguments");
    if (keyword) {
        memcpy(key, in->at, n);
        key[n] = 0;
        if (json_object_get(call->keywords, key))
            return refuse(in, "an argument is given twice");
        in->at = ahead.at;
    }
    json_t *v = read_value(in, 0);
    if (!v)
        return -1;
    return keyword ? json_object_set_new(call->keywords, key, v) : json_array_append_new(call->list, v);
}

static int read_call(struct python_in *in, struct python_call *call)
{
    size_t n = name_at(in, true);
    if (!n || n >= sizeof call->name)
        return refuse(in, "expected a call");
    memcpy(call->name, in->at, n);
    call->name[n] = 0;
    in->at += n;
    skip(in, false);
    call->called = accept(in, '(');
    if (!call->called)
        return 0;
    skip(in, true);
    while (!accept(in, ')'))
        if (read_argument(in, call) || read_comma(in, ')'))
            return -1;
    return 0;
}

/* Reads "for NAME in range(INT):" up to the call, which may be on the next line. */
static int read_for(struct python_in *in, struct python_call *call)
{
    skip(in, false);
    in->at += name_at(in, false);
    skip(in, false);
    bool good = accept_word(in, "in");
    skip(in, false);
    good = good && accept_word(in, "range") && accept(in, '(');
    json_t *n = good ? read_value(in, 0) : NULL;
    json_int_t times = json_integer_value(n);
    good = json_is_integer(n) && times >= 1 && times <= MAX_TIMES;
    json_decref(n);
    skip(in, false);
    good = good && accept(in, ')');
    skip(in, false);
    if (!good || !accept(in, ':'))
        return refuse(in, "only 'for _ in range(1..20):' is understood");
    skip(in, true);
    call->times = (int)times;
    return read_call(in, call);
}

int python_read_call(struct python_in *in, struct python_call *call)
{
    *call = (struct python_call){.times = 1, .list = json_array(), .keywords = json_object()};
    if (!read_call(in, call))
        return 0;
    python_call_free(call);
    return -1;
}

int python_next(struct python_in *in, struct python_call *call)
{
    *call = (struct python_call){.times = 1};
    for (;;) {
        skip(in, true);
        if (accept(in, ';'))
            continue;
        if (in->at == in->end)
            return 0;
        if (!accept_word(in, "import") && !accept_word(in, "from"))
            break;
        while (in->at < in->end && *in->at != '\n' && *in->at != ';')
            in->at++;
    }
    call->list = json_array();
    call->keywords = json_object();
    int r = accept_word(in, "for") ? read_for(in, call) : read_call(in, call);
    skip(in, false);
    if (!r && in->at < in->end && *in->at != '\n' && *in->at != ';' && *in->at != '#')
        r = refuse(in, "expected one call per statement");
    if (r)
        python_call_free(call);
    return r ? -1 : 1;
}

void python_call_free(struct python_call *call)
{
    json_decref(call->list);
    json_decref(call->keywords);
    call->list = call->keywords = NULL;
}
