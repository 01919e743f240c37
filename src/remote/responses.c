/* responses.c - the "OpenAI Responses" protocol with the tool `computer`: builds requests and reads
 * replies.
 *
 * A reply is a list of items: reasoning, messages, and computer calls, each with several actions. The list is
 * sent back unchanged, and each call is answered with the screenshot after its last action. The dialect's
 * parser (syntax "openai") reads that list.
 *
 * A safety check that the user has not approved is not acknowledged: its call is sent back as an assistant
 * text, and the message after it as a user text. */
#include "remote/protocol.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ITEMS = 256 };

static const char *const optional[] = {"temperature", "top_p", "truncation", "max_output_tokens", NULL};

/* ---- the request --------------------------------------------------------------------------------- */

static bool is_call(const json_t *item)
{
    const char *type = json_string_value(json_object_get(item, "type"));
    return type && !strcmp(type, "computer_call");
}

static json_t *input_message(const char *role, json_t *content)
{
    return json_pack("{s:s, s:o}", "role", role, "content", content);
}

static json_t *input_parts(json_t *parts, bool pictures)
{
    json_t *out = json_array(), *part;
    size_t i;
    json_array_foreach(parts, i, part)
    {
        json_t *url = json_object_get(json_object_get(part, "image_url"), "url");
        if (url && pictures)
            json_array_append_new(out, json_pack("{s:s, s:O, s:s}", "type", "input_image", "image_url", url,
                                                 "detail", "original"));
        else if (!url)
            json_array_append_new(
                out, json_pack("{s:s, s:O}", "type", "input_text", "text", json_object_get(part, "text")));
    }
    return out;
}

static json_t *newest_picture(json_t *message)
{
    json_t *part, *url = NULL, *found = NULL;
    size_t i;
    json_array_foreach(json_object_get(message, "content"), i, part)
    {
        url = json_object_get(json_object_get(part, "image_url"), "url");
        found = url ? url : found;
    }
    return found;
}

/* Returns whether the turn can be sent back unchanged: its calls get their screenshot, and its checks were
 * approved. */
static bool answered(const json_t *turn, json_t *message)
{
    const json_t *native = json_object_get(turn, "native");
    return native && newest_picture(message) &&
           (!json_object_get(turn, "checks") || json_object_get(message, "acknowledged"));
}

static void add_outputs(json_t *input, const json_t *turn, json_t *message)
{
    json_t *item;
    size_t i;
    json_array_foreach(json_object_get(turn, "native"), i, item)
    {
        if (!is_call(item))
            continue;
        json_t *out = json_pack("{s:s, s:O, s:{s:s, s:O, s:s}}", "type", "computer_call_output", "call_id",
                                json_object_get(item, "call_id"), "output", "type", "computer_screenshot",
                                "image_url", newest_picture(message), "detail", "original");
        json_t *checks = json_object_get(item, "pending_safety_checks");
        if (json_array_size(checks))
            json_object_set(out, "acknowledged_safety_checks", checks);
        json_array_append_new(input, out);
    }
}

static void add_user(json_t *input, const json_t *turn, json_t *message)
{
    bool calls = turn && answered(turn, message);
    if (calls)
        add_outputs(input, turn, message);
    json_t *parts = input_parts(json_object_get(message, "content"), !calls);
    if (json_array_size(parts))
        json_array_append_new(input, input_message("user", parts));
    else
        json_decref(parts);
}

static void add_assistant(json_t *input, json_t *turn, json_t *next)
{
    if (next && answered(turn, next)) {
        json_array_extend(input, json_object_get(turn, "native"));
        return;
    }
    const char *text = json_string_value(json_object_get(turn, "content"));
    json_t *part =
        json_pack("{s:s, s:s}", "type", "output_text", "text", text && *text ? text : "(an action)");
    json_array_append_new(input, input_message("assistant", json_pack("[o]", part)));
}

static json_t *input_of(const struct remote_turn *t, const char **system)
{
    json_t *input = json_array(), *message;
    const json_t *turn = NULL;
    size_t i;
    *system = "";
    json_array_foreach((json_t *)(uintptr_t)t->messages, i, message)
    {
        const char *role = json_string_value(json_object_get(message, "role"));
        if (!strcmp(role, "system"))
            *system = json_string_value(json_object_get(message, "content"));
        else if (!strcmp(role, "assistant"))
            add_assistant(input, message, json_array_get(t->messages, i + 1));
        else
            add_user(input, turn, message);
        turn = strcmp(role, "assistant") ? NULL : message;
    }
    return input;
}

static json_t *responses_request(const struct remote_turn *t)
{
    const char *system;
    json_t *input = input_of(t, &system);
    json_t *body = json_pack("{s:s, s:s, s:o, s:b}", "model", t->endpoint->model, "instructions", system,
                             "input", input, "stream", 1);
    if (t->how->goal == GOAL_STEP)
        json_object_set_new(body, "tools", json_pack("[{s:s}]", "type", "computer"));
    request_set(t, body, "truncation", json_string("auto"));
    request_set(t, body, "max_output_tokens", json_integer(t->how->sampling.max_tokens));
    if (t->how->sampling.temperature > 0)
        request_set(t, body, "temperature", request_real(t->how->sampling.temperature));
    if (t->endpoint->profile.extra)
        json_object_update(body, t->endpoint->profile.extra);
    return body;
}

/* ---- the reply ------------------------------------------------------------------------------------- */

/* Appends the texts in a list of parts. */
static void add_texts(struct buf *to, json_t *parts)
{
    json_t *part;
    size_t i;
    json_array_foreach(parts, i, part)
    {
        const char *text = json_string_value(json_object_get(part, "text"));
        text = text ? text : json_string_value(json_object_get(part, "refusal"));
        if (text)
            buf_puts(to, text);
    }
}

static void read_item(struct remote_reply *r, json_t *item)
{
    const char *type = json_string_value(json_object_get(item, "type"));
    if (type && !strcmp(type, "message"))
        add_texts(&r->text, json_object_get(item, "content"));
    else if (type && !strcmp(type, "reasoning"))
        add_texts(&r->thought, json_array_size(json_object_get(item, "summary"))
                                   ? json_object_get(item, "summary")
                                   : json_object_get(item, "content"));
}

/* Stores a complete item at its index, for servers whose last event omits the output. */
static void keep_item(struct remote_reply *r, const json_t *event)
{
    json_t *item = json_object_get(event, "item"), *other;
    size_t i;
    r->native = r->native ? r->native : json_array();
    if (!json_is_object(item) || json_array_size(r->native) >= MAX_ITEMS)
        return;
    json_array_foreach(r->native, i, other)
    {
        const json_t *id = json_object_get(item, "id");
        if (json_string_length(id) && json_equal(id, json_object_get(other, "id"))) {
            json_array_set(r->native, i, item);
            return;
        }
    }
    json_array_append(r->native, item);
}

static json_t *parsed(json_t *text)
{
    json_t *v = json_loads(json_string_value(text), 0, NULL);
    return v ? v : json_incref(text);
}

/* Returns the items, each once, calls with their actions as objects and an id to answer to. */
static json_t *join_items(json_t *output)
{
    json_t *out = json_array(), *item;
    size_t i, k;
    json_array_foreach(output, i, item)
    {
        const json_t *id = json_object_get(item, "id");
        bool again = false;
        for (k = 0; json_string_length(id) && k < json_array_size(out); k++)
            again = again || json_equal(id, json_object_get(json_array_get(out, k), "id"));
        if (again || !json_is_object(item))
            continue;
        item = json_copy(item);
        if (is_call(item) && json_is_string(json_object_get(item, "action")))
            json_object_set_new(item, "action", parsed(json_object_get(item, "action")));
        if (is_call(item) && json_is_string(json_object_get(item, "actions")))
            json_object_set_new(item, "actions", parsed(json_object_get(item, "actions")));
        if (is_call(item) && !json_string_length(json_object_get(item, "call_id"))) {
            char name[32];
            snprintf(name, sizeof name, "call_%zu", i);
            json_object_set_new(item, "call_id",
                                json_string_length(id) ? json_incref((json_t *)(uintptr_t)id)
                                                       : json_string(name));
        }
        json_array_append_new(out, item);
    }
    return out;
}

/* Reads the complete response, which also ends a stream. Its items replace the streamed ones, unless it has
 * none. */
static void read_response(struct remote_reply *r, json_t *response)
{
    const char *status = json_string_value(json_object_get(response, "status")),
               *why = json_string_value(
                   json_object_get(json_object_get(response, "incomplete_details"), "reason"));
    json_t *output = json_object_get(response, "output"), *item;
    size_t i;
    bool streamed = json_array_size(r->native) || r->text.len;
    remote_reply_error(r, response);
    remote_reply_usage(r, json_object_get(response, "usage"), "input_tokens", "output_tokens");
    if (!r->failed.class && status && (!strcmp(status, "failed") || !strcmp(status, "cancelled")))
        failure_set(&r->failed, FAILURE_SERVER, "the response has status '%s'", status);
    if (r->failed.class || (!json_is_array(output) && !streamed))
        return;
    if (json_array_size(output) || !json_array_size(r->native)) {
        json_decref(r->native);
        r->native = json_is_array(output) ? json_incref(output) : json_array();
    }
    json_t *items = join_items(r->native);
    json_decref(r->native);
    r->native = items;
    if (json_array_size(items)) {
        buf_clear(&r->text);
        buf_clear(&r->thought);
    }
    json_array_foreach(items, i, item) read_item(r, item);
    r->finished = true;
    r->cut_off = status && !strcmp(status, "incomplete");
    r->withheld = why && !strcmp(why, "content_filter");
}

static bool ends(const char *type)
{
    return !strcmp(type, "response.completed") || !strcmp(type, "response.incomplete") ||
           !strcmp(type, "response.failed") || !strcmp(type, "response.cancelled") ||
           !strcmp(type, "response.done");
}

static int responses_read_event(struct remote_reply *r, const char *data, size_t n)
{
    json_auto_t *root = json_loadb(data, n, JSON_ALLOW_NUL, NULL);
    const char *type = json_string_value(json_object_get(root, "type"));
    type = type ? type : "";
    if (n == 6 && !memcmp(data, "[DONE]", 6))
        ; /* sent by proxies; the response itself states whether it is complete */
    else if (!json_is_object(root))
        remote_reply_garbage(r, data);
    else if (!strcmp(type, "response.output_text.delta"))
        remote_reply_add(r, &r->text, json_object_get(root, "delta"));
    else if (!strcmp(type, "response.reasoning_summary_text.delta") ||
             !strcmp(type, "response.reasoning_text.delta"))
        remote_reply_add(r, &r->thought, json_object_get(root, "delta"));
    else if (!strcmp(type, "response.output_item.done"))
        keep_item(r, root);
    else if (ends(type))
        read_response(r, json_object_get(root, "response"));
    else if (!strcmp(type, "error") || !*type || json_object_get(root, "error"))
        remote_reply_error(r, root);
    return r->finished || r->failed.class;
}

static int responses_read_whole(struct remote_reply *r, const char *data, size_t n)
{
    json_auto_t *root = json_loadb(data, n, JSON_ALLOW_NUL, NULL);
    read_response(r, root);
    if (!r->finished && !r->failed.class)
        failure_set(&r->failed, FAILURE_REPLY, "the server's reply contains no output");
    return r->finished && !r->failed.class ? 0 : -1;
}

/* Puts texts and calls into r->action, without members that only the server needs. */
static void responses_finish(struct remote_reply *r)
{
    json_t *items = json_array(), *item;
    size_t i;
    if (r->thought.len)
        json_array_append_new(items, json_pack("{s:s, s:s}", "type", "reasoning", "text", r->thought.data));
    if (r->text.len)
        json_array_append_new(items, json_pack("{s:s, s:s}", "type", "message", "text", r->text.data));
    json_array_foreach(r->native, i, item) if (is_call(item)) json_array_append(items, item);
    autofree char *text = json_dumps(items, JSON_COMPACT);
    if (json_array_size(items))
        buf_puts(&r->action, text);
    json_decref(items);
}

const struct protocol protocol_responses = {
    .name = "responses",
    .path = "responses",
    .dialect = "openai-computer",
    .request = responses_request,
    .optional = optional,
    .read_event = responses_read_event,
    .read_whole = responses_read_whole,
    .finish = responses_finish,
};
