/* rpc.c - see rpc.h. */
#include "rpc/rpc.h"

#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT_BYTES = RPC_OUTPUT_MAX + (32 << 20), WARNINGS = 8 };

struct rpc {
    struct rpc_handlers handlers;
    void *arg;
    struct buf line, out;
    size_t written; /* of out */
    bool skipping;  /* to the end of a line that is too long */
    json_t *open;   /* requests of the other program: an id as JSON text is a key */
    json_t *asked;  /* ours: the number as text is a key */
    int64_t number;
    int warnings;
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
    } else if (r->written > r->out.len / 2) { /* each byte is moved once or not at all */
        memmove(r->out.data, r->out.data + r->written, r->out.len - r->written + 1);
        r->out.len -= r->written;
        r->written = 0;
    }
}

bool rpc_clogged(const struct rpc *r)
{
    return r->out.full || r->out.len - r->written > RPC_OUTPUT_MAX;
}

static int put_bytes(const char *data, size_t n, void *arg)
{
    return buf_put(arg, data, n);
}

/* Takes the object over. */
static void send_object(struct rpc *r, json_t *object)
{
    if (!rpc_clogged(r)) {
        json_dump_callback(object, put_bytes, &r->out, JSON_COMPACT);
        buf_putc(&r->out, '\n');
    }
    json_decref(object);
}

static void send_error(struct rpc *r, const json_t *id, int code, const char *message, json_t *data)
{
    json_t *error = json_pack("{s:i, s:s}", "code", code, "message", message);
    if (data)
        json_object_set_new(error, "data", data);
    send_object(r, json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", id ? json_deep_copy(id) : json_null(),
                             "error", error));
}

/* ---- what is open ------------------------------------------------------------------------------------ */

/* 7 and "7" are two ids. */
static char *id_key(const json_t *id)
{
    return json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT);
}

bool rpc_drop(struct rpc *r, const json_t *id)
{
    char *key = json_is_string(id) || json_is_integer(id) ? id_key(id) : NULL;
    bool open = key && json_object_del(r->open, key) == 0;
    free(key);
    return open;
}

bool rpc_reply(struct rpc *r, const json_t *id, json_t *result)
{
    if (!rpc_drop(r, id)) {
        json_decref(result);
        return false;
    }
    send_object(r,
                json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", json_deep_copy(id), "result", result));
    return true;
}

bool rpc_fail(struct rpc *r, const json_t *id, int code, json_t *data, const char *fmt, ...)
{
    struct err e = ERR_INIT;
    char text[ERR_TEXT];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    err_set(&e, ERR_FAILED, "%s", text); /* one line without control characters */
    if (!rpc_drop(r, id)) {
        json_decref(data);
        return false;
    }
    send_error(r, id, code, e.text, data);
    return true;
}

void rpc_tell(struct rpc *r, const char *method, json_t *params)
{
    send_object(r, json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params));
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
    send_object(r, json_pack("{s:s, s:I, s:s, s:o}", "jsonrpc", "2.0", "id", (json_int_t)r->number, "method",
                             method, "params", params));
    return r->number;
}

void rpc_forget(struct rpc *r, int64_t ask)
{
    char key[24];
    number_key(ask, key);
    if (json_object_get(r->asked, key))
        json_object_set_new(r->asked, key, json_false()); /* its answer is still to come, and no mistake */
}

/* ---- one message ------------------------------------------------------------------------------------- */

/* Of a message that has no answer.  A program that sends many is not told more than a few times. */
static void warn_about(struct rpc *r, const char *what)
{
    if (r->warnings++ < WARNINGS)
        warn("the other program sends %s%s", what, r->warnings == WARNINGS ? "; more are not told" : "");
}

static void take_answer(struct rpc *r, const json_t *id, json_t *message)
{
    char key[24];
    json_t *result = json_object_get(message, "result"), *error = json_object_get(message, "error");
    number_key(json_integer_value(id), key);
    const json_t *asked = json_is_integer(id) ? json_object_get(r->asked, key) : NULL;
    if (!asked) {
        warn_about(r, "an answer to what was not asked");
        return;
    }
    bool wanted = json_is_true(asked);
    json_object_del(r->asked, key);
    const char *why = json_string_value(json_object_get(error, "message"));
    if (wanted)
        r->handlers.answered(r->arg, json_integer_value(id), result, result ? "" : why ? why : "refused");
}

static void take_request(struct rpc *r, const json_t *id, const char *method, json_t *params)
{
    if (!json_is_string(id) && !json_is_integer(id)) {
        send_error(r, NULL, RPC_INVALID, "an id is a text or a whole number", NULL);
        return;
    }
    char *key = id_key(id);
    bool used = json_object_get(r->open, key), many = json_object_size(r->open) >= RPC_OPEN_MAX;
    if (!used && !many)
        json_object_set_new(r->open, key, json_true());
    free(key);
    if (used)
        send_error(r, id, RPC_INVALID, "this id is in use: the request before has no answer yet", NULL);
    else if (many)
        send_error(r, id, RPC_BUSY, "too many requests wait for an answer", NULL);
    else
        r->handlers.request(r->arg, id, method, params);
}

static void take_message(struct rpc *r, json_t *message)
{
    const json_t *id = json_object_get(message, "id");
    const char *method = json_string_value(json_object_get(message, "method"));
    const char *version = json_string_value(json_object_get(message, "jsonrpc"));
    json_t *params = json_object_get(message, "params"), *none = NULL;
    if (!version || strcmp(version, "2.0") != 0) {
        send_error(r, json_is_string(id) || json_is_integer(id) ? id : NULL, RPC_INVALID,
                   json_is_object(message) ? "not a JSON-RPC 2.0 message" : "a message is one JSON object",
                   NULL);
        return;
    }
    if (!method && id && (json_object_get(message, "result") || json_object_get(message, "error"))) {
        take_answer(r, id, message);
        return;
    }
    if (!params)
        params = none = json_object();
    if (!method || !json_is_object(params))
        send_error(r, json_is_string(id) || json_is_integer(id) ? id : NULL, RPC_INVALID,
                   method ? "'params' is no object" : "a message without 'method'", NULL);
    else if (id)
        take_request(r, id, method, params);
    else
        r->handlers.notice(r->arg, method, params);
    json_decref(none);
}

static void take_line(struct rpc *r)
{
    size_t n = r->line.len;
    while (n && strchr(" \t\r", r->line.data[n - 1]))
        n--;
    if (n) {
        json_error_t why;
        json_t *message = json_loadb(r->line.data, n, JSON_REJECT_DUPLICATES, &why);
        char *text = message ? NULL : xasprintf("not JSON: %s (byte %d)", why.text, why.position);
        if (message)
            take_message(r, message);
        else
            send_error(r, NULL, RPC_PARSE, text, NULL);
        free(text);
        json_decref(message);
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
    send_error(r, NULL, RPC_INVALID, "a line of more than 16 MiB is not read", NULL);
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
        send_error(r, NULL, RPC_PARSE, "the input ended in the middle of a line", NULL);
    buf_clear(&r->line);
}
