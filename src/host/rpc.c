/* rpc.c - see rpc.h. */
#include "host/rpc.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT_BYTES = RPC_OUTPUT_MAX + (32 << 20), WARNINGS = 8 };

struct batch { /* requests that came in one array, whose answers are sent in one array */
    struct batch *next;
    int64_t number;
    int left; /* number of requests without an answer, plus 1 while the array is being read */
    json_t *answers;
};

struct rpc {
    struct rpc_handlers handlers;
    void *arg;
    struct buf line, out;
    size_t written; /* bytes of out that have been written */
    bool skipping;  /* discards input up to the end of a line that is too long */
    json_t *open;   /* open requests of the other program: id as JSON text -> number of the batch, 0: none */
    json_t *asked;  /* requests of this program: the number as text -> whether the answer is wanted */
    int64_t number;
    int warnings;
    struct batch *batches, *reading; /* reading: the batch that take_batch() reads; NULL: none */
    int64_t batch_number;
};

struct rpc *rpc_new(const struct rpc_handlers *h, void *arg)
{
    struct rpc *r = xcalloc(1, sizeof *r);
    r->handlers = *h;
    r->arg = arg;
    r->open = json_object();
    r->asked = json_object();
    buf_init(&r->line, RPC_LINE_MAX + 1);
    buf_init(&r->out, OUTPUT_BYTES);
    return r;
}

void rpc_free(struct rpc *r)
{
    if (!r)
        return;
    for (struct batch *b = r->batches, *next; b; b = next) {
        next = b->next;
        json_decref(b->answers);
        free(b);
    }
    json_decref(r->open);
    json_decref(r->asked);
    buf_free(&r->line);
    buf_free(&r->out);
    free(r);
}

/* ---- output ------------------------------------------------------------------------------------------ */

const char *rpc_output(const struct rpc *r, size_t *n)
{
    *n = r->out.len - r->written;
    return *n ? r->out.data + r->written : "";
}

void rpc_written(struct rpc *r, size_t n)
{
    r->written += n;
    if (r->written == r->out.len) {
        buf_clear(&r->out);
        r->written = 0;
    } else if (r->written > r->out.len / 2) { /* each byte is moved at most once */
        memmove(r->out.data, r->out.data + r->written, r->out.len - r->written + 1);
        r->out.len -= r->written;
        r->written = 0;
    }
}

bool rpc_clogged(const struct rpc *r)
{
    return r->out.full || r->out.len - r->written > RPC_OUTPUT_MAX;
}

/* Appends a message to the output, or drops it if the output is clogged.  Takes ownership of message. */
static void send_message(struct rpc *r, json_t *message)
{
    autofree char *line = rpc_clogged(r) ? NULL : json_line(message, JSON_COMPACT);
    if (line) {
        buf_puts(&r->out, line);
        buf_putc(&r->out, '\n');
    }
    json_decref(message);
}

/* Sends the answers of a batch and frees the batch, if no answer is missing. */
static void end_batch(struct rpc *r, struct batch *b)
{
    struct batch **at = &r->batches;
    if (b->left)
        return;
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    if (json_array_size(b->answers))
        send_message(r, json_incref(b->answers));
    json_decref(b->answers);
    free(b);
}

static struct batch *batch_of(struct rpc *r, int64_t number)
{
    struct batch *b = r->batches;
    while (b && b->number != number)
        b = b->next;
    return b;
}

static json_t *new_answer(const json_t *id, const char *key, json_t *value)
{
    return json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", id ? json_deep_copy(id) : json_null(), key,
                     value);
}

static json_t *new_error(int code, const char *message, json_t *data)
{
    json_t *error = json_pack("{s:i, s:s}", "code", code, "message", message);
    if (data)
        json_object_set_new(error, "data", data);
    return error;
}

/* Answers a message that is not an open request with an error. */
static void send_error(struct rpc *r, const json_t *id, int code, const char *message)
{
    json_t *answer = new_answer(id, "error", new_error(code, message, NULL));
    if (r->reading)
        json_array_append_new(r->reading->answers, answer);
    else
        send_message(r, answer);
}

/* ---- open requests ------------------------------------------------------------------------------------- */

/* Returns the id as JSON text, so that 7 and "7" differ; the caller frees it. */
static char *id_key(const json_t *id)
{
    return json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT);
}

/* Returns whether v can be an id: a string or a whole number, which some programs write as 1.0. */
static bool is_id(const json_t *v)
{
    double n = json_number_value(v);
    return json_is_string(v) || json_is_integer(v) || (json_is_real(v) && n == floor(n));
}

/* Closes an open request and sends answer (NULL: none is sent).  Takes ownership of answer.  Returns false if
 * the request is not open. */
static bool close_request(struct rpc *r, const json_t *id, json_t *answer)
{
    autofree char *key = is_id(id) ? id_key(id) : NULL;
    const json_t *open = key ? json_object_get(r->open, key) : NULL;
    bool found = open != NULL;
    struct batch *b = batch_of(r, json_integer_value(open));
    if (found)
        json_object_del(r->open, key);
    if (found && b) {
        if (answer)
            json_array_append(b->answers, answer);
        b->left--;
        end_batch(r, b);
    } else if (found && answer) {
        send_message(r, json_incref(answer));
    }
    json_decref(answer);
    return found;
}

bool rpc_drop(struct rpc *r, const json_t *id)
{
    return close_request(r, id, NULL);
}

bool rpc_reply(struct rpc *r, const json_t *id, json_t *result)
{
    if (!result)
        return rpc_fail(r, id, RPC_INTERNAL, NULL, "the result cannot be written as JSON");
    return close_request(r, id, new_answer(id, "result", result));
}

bool rpc_fail(struct rpc *r, const json_t *id, int code, json_t *data, const char *fmt, ...)
{
    struct err e = ERR_INIT;
    va_list args;
    va_start(args, fmt);
    err_vset(&e, ERR_FAILED, fmt, args);
    va_end(args); /* the text is one line without control characters */
    return close_request(r, id, new_answer(id, "error", new_error(code, e.text, data)));
}

void rpc_tell(struct rpc *r, const char *method, json_t *params)
{
    send_message(r, json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params));
}

static void number_key(int64_t number, char out[24])
{
    snprintf(out, 24, "%lld", (long long)number);
}

int64_t rpc_ask(struct rpc *r, const char *method, json_t *params)
{
    char key[24];
    if (json_object_size(r->asked) >= RPC_OPEN_MAX) {
        json_decref(params);
        return 0;
    }
    number_key(++r->number, key);
    json_object_set_new(r->asked, key, json_true());
    send_message(r, json_pack("{s:s, s:I, s:s, s:o}", "jsonrpc", "2.0", "id", (json_int_t)r->number, "method",
                              method, "params", params));
    return r->number;
}

void rpc_forget(struct rpc *r, int64_t ask)
{
    char key[24];
    number_key(ask, key);
    if (json_object_get(r->asked, key))
        /* the answer will still arrive and is not an error then */
        json_object_set_new(r->asked, key, json_false());
}

/* ---- one message ------------------------------------------------------------------------------------- */

/* Warns about a message that has no answer, at most WARNINGS times. */
static void warn_about(struct rpc *r, const char *what)
{
    if (r->warnings++ < WARNINGS)
        warn("the other program sent %s%s", what,
             r->warnings == WARNINGS ? "; further warnings are suppressed" : "");
}

static void take_answer(struct rpc *r, const json_t *id, json_t *message)
{
    char key[24];
    json_t *result = json_object_get(message, "result"), *error = json_object_get(message, "error");
    const char *text = json_string_value(id); /* some programs answer 7 with "7" */
    int64_t number = text ? strtoll(text, NULL, 10) : (int64_t)json_number_value(id);
    number_key(number, key);
    const json_t *asked = !text || !strcmp(text, key) ? json_object_get(r->asked, key) : NULL;
    if (!asked) {
        warn_about(r, "a response with an unknown id");
        return;
    }
    bool wanted = json_is_true(asked);
    json_object_del(r->asked, key);
    const char *why = json_string_value(json_object_get(error, "message"));
    if (wanted)
        r->handlers.answered(r->arg, number, result, result ? "" : why ? why : "refused");
}

static void take_request(struct rpc *r, const json_t *id, const char *method, json_t *params)
{
    if (!is_id(id)) {
        send_error(r, NULL, RPC_INVALID, "an id must be a string or a whole number");
        return;
    }
    autofree char *key = id_key(id);
    bool used = json_object_get(r->open, key), many = json_object_size(r->open) >= RPC_OPEN_MAX;
    if (!used && !many)
        json_object_set_new(r->open, key, json_integer(r->reading ? r->reading->number : 0));
    if (used) {
        send_error(r, id, RPC_INVALID, "this id is in use: its earlier request has not been answered yet");
    } else if (many) {
        send_error(r, id, RPC_BUSY, "too many pending requests");
    } else {
        if (r->reading)
            r->reading->left++;
        r->handlers.request(r->arg, id, method, params);
    }
}

/* Returns whether a string in v contains U+0000, at which C strings end. */
static bool has_nul(const json_t *v)
{
    const char *key;
    json_t *one;
    size_t i;
    if (json_is_string(v))
        return strlen(json_string_value(v)) != json_string_length(v);
    json_array_foreach(v, i, one) if (has_nul(one)) return true;
    json_object_foreach((json_t *)(uintptr_t)v, key, one) if (has_nul(one)) return true;
    return false;
}

/* Returns the reason why a message is invalid; NULL: it is valid.  answers: the message is an answer, which
 * needs neither method nor params. */
static const char *fault_of(const json_t *message, bool answers, const json_t *params)
{
    const char *version = json_string_value(json_object_get(message, "jsonrpc"));
    if (!json_is_object(message))
        return "a message must be a JSON object";
    if (!version || strcmp(version, "2.0") != 0)
        return "'jsonrpc' must be \"2.0\"";
    if (has_nul(message))
        return "a string contains U+0000, which is not supported";
    if (!answers && !json_is_string(json_object_get(message, "method")))
        return "'method' is missing or not a string";
    return answers || json_is_object(params) ? NULL : "'params' must be an object";
}

static void take_message(struct rpc *r, json_t *message)
{
    const json_t *id = json_object_get(message, "id");
    const char *method = json_string_value(json_object_get(message, "method"));
    json_t *params = json_object_get(message, "params"), *none = NULL;
    bool answers = !method && id && (json_object_get(message, "result") || json_object_get(message, "error"));
    if (!params || json_is_null(params) || (json_is_array(params) && !json_array_size(params)))
        params = none = json_object(); /* PHP writes an empty object as [] */
    const char *fault = fault_of(message, answers, params);
    if (fault)
        send_error(r, is_id(id) ? id : NULL, RPC_INVALID, fault);
    else if (answers)
        take_answer(r, id, message);
    else if (id)
        take_request(r, id, method, params);
    else
        r->handlers.notice(r->arg, method, params);
    json_decref(none);
}

/* Answers the messages of an array with one array, in the order in which they complete.  Revisions of MCP
 * before 2025-06-18 have such batches; other clients do not send them. */
static void take_batch(struct rpc *r, const json_t *messages)
{
    json_t *message;
    size_t i;
    struct batch *b = xcalloc(1, sizeof *b);
    *b = (struct batch){r->batches, ++r->batch_number, 1, json_array()};
    r->batches = r->reading = b;
    json_array_foreach(messages, i, message) take_message(r, message);
    r->reading = NULL;
    b->left--;
    end_batch(r, b);
}

/* Returns the code unit of the escape \uXXXX at p; -1: not such an escape. */
static long escaped_unit(const char *p, const char *end)
{
    char digits[5] = "";
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return -1;
    memcpy(digits, p + 2, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? strtol(digits, NULL, 16) : -1;
}

/* Replaces escaped surrogates without a partner by \ufffd.  JSON.stringify() writes them for a string that
 * was cut in the middle of a pair. */
static void replace_lone_surrogates(char *p, const char *end)
{
    while ((p = memchr(p, '\\', (size_t)(end - p)))) {
        long unit = escaped_unit(p, end), next = unit < 0 ? -1 : escaped_unit(p + 6, end);
        bool high = unit >= 0xd800 && unit < 0xdc00, pair = high && next >= 0xdc00 && next < 0xe000;
        if (unit >= 0xd800 && unit < 0xe000 && !pair)
            memcpy(p, "\\ufffd", 6);
        p += pair ? 12 : unit >= 0 ? 6 : end - p < 2 ? 1 : 2;
    }
}

static void take_line(struct rpc *r)
{
    size_t n = r->line.len, bom = utf8_bom(r->line.data, n);
    while (n > bom && strchr(" \t\r", r->line.data[n - 1]))
        n--;
    if (n > bom) {
        json_error_t why;
        replace_lone_surrogates(r->line.data + bom, r->line.data + n);
        json_auto_t *message =
            json_loadb(r->line.data + bom, n - bom, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
        autofree char *text = message ? NULL : xasprintf("not JSON: %s (byte %d)", why.text, why.position);
        if (!message)
            send_error(r, NULL, RPC_PARSE, text);
        else if (json_array_size(message))
            take_batch(r, message);
        else
            take_message(r, message);
    }
    if (r->line.cap > 1 << 20) { /* the next line is likely to be short */
        buf_free(&r->line);
        buf_init(&r->line, RPC_LINE_MAX + 1);
    } else {
        buf_clear(&r->line);
    }
}

static void add_to_line(struct rpc *r, const char *data, size_t n)
{
    if (r->skipping)
        return;
    if (r->line.len + n <= RPC_LINE_MAX) {
        buf_put(&r->line, data, n);
        return;
    }
    send_error(r, NULL, RPC_INVALID, "lines are limited to 16 MiB");
    r->skipping = true;
    buf_free(&r->line);
    buf_init(&r->line, RPC_LINE_MAX + 1);
}

void rpc_feed(struct rpc *r, const char *data, size_t n)
{
    while (n && !rpc_clogged(r)) {
        const char *end = memchr(data, '\n', n);
        size_t part = end ? (size_t)(end - data) : n;
        add_to_line(r, data, part);
        if (end && !r->skipping)
            take_line(r);
        r->skipping = r->skipping && !end;
        part += end != NULL;
        data += part;
        n -= part;
    }
}

void rpc_end(struct rpc *r)
{
    if (r->line.len && !r->skipping)
        send_error(r, NULL, RPC_PARSE, "the input ended in the middle of a line");
    buf_clear(&r->line);
}
