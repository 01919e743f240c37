/* api_messages.c - Anthropic's Messages: POST /v1/messages.
 *
 * A message's content is a list of blocks; results of tools stand in a user's message and become messages of
 * the role "tool" before what else it says.  Pictures in a result become the user's, because a template has
 * no place for them in a result.
 */
#include "serve/api.h"

#include <stdlib.h>
#include <string.h>

/* ---- the request ----------------------------------------------------------------------------------- */

static const struct api_rename renamed[] = {
    {"stop_sequences", "stop"}, {"cache_control", NULL}, {NULL, NULL}};
static const char *const own[] = {"system",   "messages",      "tools",         "tool_choice",
                                  "thinking", "output_config", "output_format", NULL};

static bool is(const json_t *object, const char *type)
{
    const char *t = json_string_value(json_object_get(object, "type"));
    return t && !strcmp(t, type);
}

static int unknown_block(const json_t *block, struct err *e)
{
    const char *type = json_string_value(json_object_get(block, "type"));
    return err_set(e, ERR_USAGE, "a block of the type '%.60s' is not supported", type ? type : "");
}

/* Appends a text or a picture to a list of parts. */
static int add_part(json_t *parts, const json_t *block, struct err *e)
{
    const json_t *source = json_object_get(block, "source");
    const char *text = json_string_value(json_object_get(block, "text")),
               *media = json_string_value(json_object_get(source, "media_type")),
               *data = json_string_value(json_object_get(source, "data")),
               *url = json_string_value(json_object_get(source, "url"));
    if (is(block, "text") && text) {
        json_array_append_new(parts, api_text_part(text));
    } else if (is(block, "image") && media && data) {
        char *whole = xasprintf("data:%s;base64,%s", media, data);
        json_array_append_new(parts, api_image_part(whole));
        free(whole);
    } else if (is(block, "image") && url) {
        json_array_append_new(parts, api_image_part(url));
    } else {
        return unknown_block(block, e);
    }
    return 0;
}

/* A string or blocks of text as one string; the pictures among them go into `parts`. */
static char *text_of(const json_t *content, json_t *parts, struct err *e)
{
    struct buf text;
    json_t *block;
    size_t i;
    buf_init(&text, (size_t)64 << 20);
    buf_puts(&text, json_is_string(content) ? json_string_value(content) : "");
    json_array_foreach((json_t *)(uintptr_t)content, i, block)
    {
        const char *one = json_string_value(json_object_get(block, "text"));
        if (is(block, "text") && one) {
            buf_puts(&text, one);
        } else if (!parts || !is(block, "image") || add_part(parts, block, e)) {
            buf_free(&text);
            unknown_block(block, e);
            return NULL;
        }
    }
    char *s = buf_take(&text);
    return s ? s : xstrdup("");
}

static int add_result(json_t *messages, const json_t *block, json_t *parts, struct err *e)
{
    char *text = text_of(json_object_get(block, "content"), parts, e);
    if (!text)
        return -1;
    json_array_append_new(messages, json_pack("{s:s, s:s, s:O?}", "role", "tool", "content", text,
                                              "tool_call_id", json_object_get(block, "tool_use_id")));
    free(text);
    return 0;
}

static int add_user(json_t *messages, const json_t *blocks, struct err *e)
{
    json_t *block, *parts = json_array();
    size_t i;
    int rc = 0;
    json_array_foreach((json_t *)(uintptr_t)blocks, i, block) if (rc == 0) rc =
        is(block, "tool_result") ? add_result(messages, block, parts, e) : add_part(parts, block, e);
    if (rc == 0 && json_array_size(parts))
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "user", "content", parts));
    json_decref(parts);
    return rc;
}

static int add_assistant(json_t *messages, const json_t *blocks, struct err *e)
{
    struct buf text;
    json_t *block, *message = json_pack("{s:s, s:s}", "role", "assistant", "content", "");
    size_t i;
    int rc = 0;
    buf_init(&text, (size_t)64 << 20);
    json_array_append_new(messages, message);
    json_array_foreach((json_t *)(uintptr_t)blocks, i, block)
    {
        const char *said = json_string_value(json_object_get(block, "text"));
        if (is(block, "text") && said)
            buf_puts(&text, said);
        else if (is(block, "thinking"))
            json_object_set(message, "reasoning_content", json_object_get(block, "thinking"));
        else if (is(block, "tool_use"))
            api_add_call(messages, json_object_get(block, "id"), json_object_get(block, "name"),
                         json_object_get(block, "input"));
        else if (!is(block, "redacted_thinking"))
            rc = unknown_block(block, e);
    }
    json_object_set_new(message, "content", json_stringn(text.len ? text.data : "", text.len));
    buf_free(&text);
    return rc;
}

static int add_messages(json_t *to, const json_t *list, struct err *e)
{
    json_t *m;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)list, i, m)
    {
        const json_t *content = json_object_get(m, "content");
        const char *role = json_string_value(json_object_get(m, "role"));
        bool assistant = role && !strcmp(role, "assistant");
        if (!role || (!assistant && strcmp(role, "user") != 0))
            return err_set(e, ERR_USAGE, "message %zu: 'role' must be user or assistant", i + 1);
        if (json_is_string(content))
            json_array_append(to, m);
        else if (assistant ? add_assistant(to, content, e) : add_user(to, content, e))
            return -1;
    }
    return 0;
}

static int add_system(json_t *to, const json_t *system, struct err *e)
{
    char *text = system && !json_is_null(system) ? text_of(system, NULL, e) : NULL;
    if (!text)
        return system && !json_is_null(system) ? -1 : 0;
    json_array_append_new(to, json_pack("{s:s, s:s}", "role", "system", "content", text));
    free(text);
    return 0;
}

static int set_tools(json_t *out, const json_t *tools, struct err *e)
{
    json_t *tool, *list = json_array();
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)tools, i, tool)
    {
        const char *type = json_string_value(json_object_get(tool, "type"));
        json_t *schema = json_object_get(tool, "input_schema");
        if ((type && strcmp(type, "custom") != 0) || !schema) {
            json_decref(list);
            return err_set(e, ERR_USAGE, "tool %zu: '%.60s' is not supported: only tools with 'input_schema'",
                           i + 1, type ? type : "");
        }
        json_t *f = json_pack("{s:O?, s:O?, s:O}", "name", json_object_get(tool, "name"), "description",
                              json_object_get(tool, "description"), "parameters", schema);
        if (!json_object_get(tool, "description"))
            json_object_del(f, "description");
        json_array_append_new(list, json_pack("{s:s, s:o}", "type", "function", "function", f));
    }
    if (json_array_size(list))
        json_object_set(out, "tools", list);
    json_decref(list);
    return 0;
}

static int set_choice(json_t *out, const json_t *choice, struct err *e)
{
    if (!choice || json_is_null(choice) || is(choice, "auto"))
        return 0;
    if (is(choice, "any") || is(choice, "none"))
        json_object_set_new(out, "tool_choice", json_string(is(choice, "any") ? "required" : "none"));
    else if (is(choice, "tool"))
        json_object_set_new(out, "tool_choice",
                            json_pack("{s:s, s:{s:O?}}", "type", "function", "function", "name",
                                      json_object_get(choice, "name")));
    else
        return err_set(e, ERR_USAGE, "'tool_choice.type' must be auto, any, none or tool");
    return 0;
}

static void set_rest(json_t *out, const json_t *root)
{
    const json_t *thinking = json_object_get(root, "thinking"),
                 *format = json_object_get(json_object_get(root, "output_config"), "format");
    format = format ? format : json_object_get(root, "output_format");
    if (is(thinking, "enabled") || is(thinking, "disabled"))
        json_object_set_new(out, "chat_template_kwargs",
                            json_pack("{s:b}", "enable_thinking", is(thinking, "enabled")));
    if (is(format, "json_schema") && json_object_get(format, "schema"))
        json_object_set_new(out, "response_format", api_response_format(json_object_get(format, "schema")));
}

static json_t *translate(json_t *root, struct err *e)
{
    json_t *out = json_object(), *messages = json_array();
    json_object_set_new(out, "messages", messages);
    api_move(out, root, renamed, own);
    set_rest(out, root);
    int rc = json_object_get(root, "max_tokens") ? 0 : err_set(e, ERR_USAGE, "'max_tokens' is missing");
    rc = rc || add_system(messages, json_object_get(root, "system"), e) ||
         add_messages(messages, json_object_get(root, "messages"), e) ||
         set_tools(out, json_object_get(root, "tools"), e) ||
         set_choice(out, json_object_get(root, "tool_choice"), e);
    json_decref(root);
    if (!rc)
        return out;
    json_decref(out);
    return NULL;
}

/* ---- the reply --------------------------------------------------------------------------------------- */

static json_t *usage(const struct completion *c)
{
    return json_pack("{s:I, s:I, s:i, s:i}", "input_tokens",
                     (json_int_t)(c->prompt_tokens - c->cached_tokens), "cache_read_input_tokens",
                     (json_int_t)c->cached_tokens, "cache_creation_input_tokens", 0, "output_tokens", c->n);
}

/* Takes over the content.  why: NULL while it is being written. */
static json_t *message(const struct completion *c, json_t *content, const char *why)
{
    char *id = api_id(c, "msg_");
    const char *stop = why && c->text.stopped ? c->body.stops[c->text.stopped_by] : NULL;
    json_t *m = json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:s?, s:o}", "id", id, "type", "message", "role",
                          "assistant", "model", c->service->model, "content", content, "stop_reason", why,
                          "stop_sequence", stop, "usage", usage(c));
    free(id);
    return m;
}

static const char *stop_reason(const struct completion *c)
{
    return c->aborted                   ? "pause_turn"
           : c->finish == FINISH_LENGTH ? "max_tokens"
           : c->calls                   ? "tool_use"
           : c->text.stopped            ? "stop_sequence"
                                        : "end_turn";
}

/* An empty block of that part. */
static json_t *block_of(enum reply_part part, const char *text, size_t n)
{
    if (part == REPLY_THOUGHT)
        return json_pack("{s:s, s:o, s:s}", "type", "thinking", "thinking", json_stringn_nocheck(text, n),
                         "signature", "");
    return json_pack("{s:s, s:o}", "type", "text", "text", json_stringn_nocheck(text, n));
}

static json_t *use_of(const json_t *call, bool whole)
{
    const json_t *f = json_object_get(call, "function");
    json_t *input = whole ? json_loads(json_string_value(json_object_get(f, "arguments")), 0, NULL) : NULL;
    return json_pack("{s:s, s:O, s:O, s:o}", "type", "tool_use", "id", json_object_get(call, "id"), "name",
                     json_object_get(f, "name"), "input", input ? input : json_object());
}

static void whole(const struct completion *c, struct buf *out)
{
    json_t *content = json_array(), *call;
    size_t i;
    for (int part = REPLY_THOUGHT; part <= REPLY_CONTENT; part++) {
        const struct buf *text = &c->text.parts[part];
        if (text->len || (part == REPLY_CONTENT && !c->calls))
            json_array_append_new(content,
                                  block_of((enum reply_part)part, text->len ? text->data : "", text->len));
    }
    json_array_foreach(c->calls, i, call) json_array_append_new(content, use_of(call, true));
    api_put(out, message(c, content, stop_reason(c)));
}

/* ---- streamed ---------------------------------------------------------------------------------------- */

static void begin(struct reply_events *s)
{
    api_put_event(
        s->out, "message_start",
        json_pack("{s:s, s:o}", "type", "message_start", "message", message(s->of, json_array(), NULL)));
}

/* Takes over the block. */
static void open_block(struct reply_events *s, json_t *block)
{
    api_put_event(s->out, "content_block_start",
                  json_pack("{s:s, s:i, s:o}", "type", "content_block_start", "index", s->index,
                            "content_block", block));
    s->open = true;
}

static void close_block(struct reply_events *s)
{
    if (!s->open)
        return;
    api_put_event(s->out, "content_block_stop",
                  json_pack("{s:s, s:i}", "type", "content_block_stop", "index", s->index++));
    s->open = false;
}

/* Takes over the value. */
static void put_delta(struct reply_events *s, const char *type, const char *key, json_t *value)
{
    api_put_event(s->out, "content_block_delta",
                  json_pack("{s:s, s:i, s:{s:s, s:o}}", "type", "content_block_delta", "index", s->index,
                            "delta", "type", type, key, value));
}

static void text(struct reply_events *s, enum reply_part part, const char *text, size_t n)
{
    if (s->open && s->part != part)
        close_block(s);
    if (!s->open)
        open_block(s, block_of(part, "", 0));
    s->part = part;
    if (part == REPLY_THOUGHT)
        put_delta(s, "thinking_delta", "thinking", json_stringn_nocheck(text, n));
    else
        put_delta(s, "text_delta", "text", json_stringn_nocheck(text, n));
}

static void end(struct reply_events *s)
{
    const struct completion *c = s->of;
    json_t *call;
    size_t i;
    if (!s->open && !s->index && !c->calls)
        open_block(s, block_of(REPLY_CONTENT, "", 0));
    close_block(s);
    json_array_foreach(c->calls, i, call)
    {
        open_block(s, use_of(call, false));
        put_delta(s, "input_json_delta", "partial_json",
                  json_incref(json_object_get(json_object_get(call, "function"), "arguments")));
        close_block(s);
    }
    const char *stop = c->text.stopped ? c->body.stops[c->text.stopped_by] : NULL;
    api_put_event(s->out, "message_delta",
                  json_pack("{s:s, s:{s:s, s:s?}, s:o}", "type", "message_delta", "delta", "stop_reason",
                            stop_reason(c), "stop_sequence", stop, "usage", usage(c)));
    api_put_event(s->out, "message_stop", json_pack("{s:s}", "type", "message_stop"));
}

static json_t *error_of(int status, const char *message)
{
    const char *type = status == 401   ? "authentication_error"
                       : status == 403 ? "permission_error"
                       : status == 404 ? "not_found_error"
                       : status == 413 ? "request_too_large"
                       : status == 429 ? "rate_limit_error"
                       : status == 503 ? "overloaded_error"
                       : status >= 500 ? "api_error"
                                       : "invalid_request_error";
    json_t *text = json_string(message);
    return json_pack("{s:s, s:{s:s, s:o}}", "type", "error", "error", "type", type, "message",
                     text ? text : json_string("the request is not valid UTF-8"));
}

static void broken(struct reply_events *s, const char *message)
{
    api_put_event(s->out, "error", error_of(500, message));
}

static void refusal(struct buf *out, int status, const char *message)
{
    api_put(out, error_of(status, message));
}

const struct api api_messages = {.path = "/v1/messages",
                                 .translate = translate,
                                 .whole = whole,
                                 .begin = begin,
                                 .text = text,
                                 .end = end,
                                 .broken = broken,
                                 .refusal = refusal};
