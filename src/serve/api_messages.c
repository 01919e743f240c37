/* api_messages.c - Anthropic's Messages API: POST /v1/messages and /v1/messages/count_tokens.
 *
 * The content of a message is a list of blocks (parts.h). Tool results are blocks of a user message and
 * become messages with the role "tool" before its other blocks. A result with is_error is prefixed with
 * "Error: " unless its text mentions an error. System messages may be among the messages (messages.h). */
#include "serve/api.h"

#include "serve/parts.h"

#include <stdlib.h>
#include <string.h>

/* ---- the request ----------------------------------------------------------------------------------- */

static const struct api_rename renamed[] = {{"stop_sequences", "stop"}, {NULL, NULL}};
static const char *const own[] = {"system", "messages", "output_config", "output_format", NULL};

/* Prefixes a result with "Error: ". */
static void mark_error(json_t *parts)
{
    autofree char *text = parts_text(parts, NULL);
    if (!strstr(text, "rror"))
        json_array_insert_new(parts, 0, parts_new_text("Error: "));
}

static int add_result(json_t *messages, const json_t *block, struct notes *n, struct err *e)
{
    json_t *parts = parts_read(json_object_get(block, "content"), NULL, n, e);
    if (!parts)
        return -1;
    if (json_is_true(json_object_get(block, "is_error")))
        mark_error(parts);
    json_array_append_new(messages, json_pack("{s:s, s:o, s:O*}", "role", "tool", "content", parts,
                                              "tool_call_id", json_object_get(block, "tool_use_id")));
    return 0;
}

static int add_user(json_t *messages, const json_t *blocks, struct notes *n, struct err *e)
{
    json_t *block, *rest = json_array();
    size_t i;
    int rc = 0;
    json_array_foreach((json_t *)(uintptr_t)blocks, i, block)
    {
        if (!api_is(block, "tool_result"))
            json_array_append(rest, block);
        else if (rc == 0)
            rc = add_result(messages, block, n, e);
    }
    bool only_results = json_array_size(blocks) && !json_array_size(rest);
    json_t *parts = rc ? NULL : parts_read(json_is_array(blocks) ? rest : blocks, NULL, n, e);
    json_decref(rest);
    if (!parts)
        return -1;
    if (only_results)
        json_decref(parts);
    else
        json_array_append_new(messages, json_pack("{s:s, s:o}", "role", "user", "content", parts));
    return 0;
}

static int add_assistant(json_t *messages, const json_t *blocks, struct notes *n, struct err *e)
{
    json_t *block, *rest = json_array(),
                   *message = json_pack("{s:s, s:s}", "role", "assistant", "content", "");
    autobuf thought = buf_of((size_t)64 << 20);
    size_t i;
    json_array_append_new(messages, message);
    json_array_foreach((json_t *)(uintptr_t)blocks, i, block)
    {
        if (api_is(block, "tool_use"))
            api_add_call(messages, json_object_get(block, "id"), json_object_get(block, "name"),
                         json_object_get(block, "input"));
        else
            json_array_append(rest, block);
    }
    json_auto_t *parts = parts_read(json_is_array(blocks) ? rest : blocks, &thought, n, e);
    if (parts)
        json_object_set(message, "content", parts);
    if (thought.len)
        json_object_set_new(message, "reasoning_content", json_string(thought.data));
    int rc = parts ? 0 : -1;
    json_decref(rest);
    return rc;
}

static int add_message(json_t *to, const json_t *m, struct notes *n, struct err *e)
{
    const json_t *content = json_object_get(m, "content");
    const char *role = json_string_value(json_object_get(m, "role"));
    if (role && !strcmp(role, "assistant"))
        return add_assistant(to, content, n, e);
    if (role && !strcmp(role, "system"))
        return json_array_append(to, (json_t *)(uintptr_t)m);
    if (!role || strcmp(role, "user") != 0)
        return err_set(e, ERR_USAGE, "invalid 'role': must be user, assistant or system");
    return add_user(to, content, n, e);
}

static int add_messages(json_t *to, const json_t *list, struct notes *n, struct err *e)
{
    json_t *m;
    size_t i;
    if (!json_array_size(list))
        return err_set(e, ERR_USAGE, "'messages' must be a list of at least one message");
    json_array_foreach((json_t *)(uintptr_t)list, i, m)
    {
        struct err why = ERR_INIT;
        if (add_message(to, m, n, &why))
            return err_set(e, why.kind, "message %zu: %s", i + 1, why.text);
    }
    return 0;
}

static void add_system(json_t *to, const json_t *system)
{
    if (json_string_length(system) || json_array_size(system))
        json_array_append_new(to, json_pack("{s:s, s:O}", "role", "system", "content", system));
}

static void set_rest(json_t *out, const json_t *root, struct notes *n)
{
    const json_t *config = json_object_get(root, "output_config"),
                 *format = json_object_get(config, "format"), *choice = json_object_get(root, "tool_choice");
    format = format ? format : json_object_get(root, "output_format");
    if (api_is(format, "json_schema") && json_object_get(format, "schema"))
        json_object_set_new(out, "response_format", api_response_format(json_object_get(format, "schema")));
    else if (format)
        notes_ignore(n, "output_format");
    if (json_object_get(config, "effort"))
        notes_ignore(n, "output_config.effort");
    if (json_is_true(json_object_get(choice, "disable_parallel_tool_use")))
        notes_ignore(n, "tool_choice.disable_parallel_tool_use");
}

static json_t *translate_prompt(json_t *root, struct notes *n, struct err *e)
{
    json_t *out = json_object(), *messages = json_array();
    json_object_set_new(out, "messages", messages);
    api_move(out, root, renamed, own);
    set_rest(out, root, n);
    add_system(messages, json_object_get(root, "system"));
    int rc = add_messages(messages, json_object_get(root, "messages"), n, e);
    json_decref(root);
    if (!rc)
        return out;
    json_decref(out);
    return NULL;
}

static json_t *translate(json_t *root, struct notes *n, struct err *e)
{
    if (json_object_get(root, "max_tokens"))
        return translate_prompt(root, n, e);
    json_decref(root);
    err_set(e, ERR_USAGE, "'max_tokens' is missing");
    return NULL;
}

/* ---- the reply --------------------------------------------------------------------------------------- */

static json_t *usage(const struct completion *c)
{
    return json_pack("{s:I, s:I, s:i, s:i}", "input_tokens",
                     (json_int_t)(c->prompt_tokens - c->cached_tokens), "cache_read_input_tokens",
                     (json_int_t)c->cached_tokens, "cache_creation_input_tokens", 0, "output_tokens", c->n);
}

/* Builds the message object; takes ownership of content. why: NULL while the message is incomplete. */
static json_t *message(const struct completion *c, json_t *content, const char *why)
{
    autofree char *id = api_id(c, "msg_");
    const char *stop = why && c->text.stopped ? c->body.stops[c->text.stopped_by] : NULL;
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:s?, s:o}", "id", id, "type", "message", "role",
                     "assistant", "model", c->service->model, "content", content, "stop_reason", why,
                     "stop_sequence", stop, "usage", usage(c));
}

static const char *stop_reason(const struct completion *c)
{
    return c->aborted                   ? "pause_turn"
           : c->finish == FINISH_LENGTH ? "max_tokens"
           : c->calls                   ? "tool_use"
           : c->text.stopped            ? "stop_sequence"
                                        : "end_turn";
}

/* Builds a block of this type. */
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

/* Starts a block and takes ownership of it. */
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

/* Sends a delta and takes ownership of the value. */
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

static void count(const struct completion *c, struct buf *out)
{
    api_put(out, json_pack("{s:I}", "input_tokens", (json_int_t)c->prompt_tokens));
}

static void refusal(struct buf *out, int status, const char *message)
{
    api_put(out, error_of(status, message));
}

const struct api api_messages = {
    .path = "/v1/messages", .translate = translate, API_FUNCTIONS, .refusal = refusal};

const struct api api_messages_count = {.path = "/v1/messages/count_tokens",
                                       .counts = true,
                                       .translate = translate_prompt,
                                       .whole = count,
                                       .refusal = refusal};
