/* messages.c - the "Anthropic Messages" protocol with its computer tools: builds requests and reads
 * replies.
 *
 * A reply is a list of content blocks: texts, thoughts and tool calls ("tool_use"), often several in one
 * turn. The list is sent back unchanged, and all results follow in one message, the last of them with the
 * screenshot. The dialect's parser (syntax "anthropic") reads that list.
 *
 * The newest toolset is requested first; if the server rejects it by name, the previous tool is used. */
#include "remote/protocol.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCKS = 64 };

#define PLACE "(index)" /* the index of a block during streaming */

static const char *const optional[] = {
    "computer_toolset_20260801", "computer_20251124", "temperature", "top_p", "cache_control", NULL};

/* ---- the request --------------------------------------------------------------------------------- */

static json_t *tool(const struct remote_turn *t)
{
    if (endpoint_takes(t->endpoint, "computer_toolset_20260801"))
        return json_pack("{s:s}", "type", "computer_toolset_20260801");
    bool newer = endpoint_takes(t->endpoint, "computer_20251124");
    return json_pack("{s:s, s:s, s:i, s:i}", "type", newer ? "computer_20251124" : "computer_20250124",
                     "name", "computer", "display_width_px", t->shown_w, "display_height_px", t->shown_h);
}

static json_t *content_of(json_t *parts)
{
    json_t *out = json_array(), *part;
    size_t i;
    json_array_foreach(parts, i, part)
    {
        const char *data = request_base64(part), *text = json_string_value(json_object_get(part, "text"));
        if (data)
            json_array_append_new(out, json_pack("{s:s, s:{s:s, s:s, s:s}}", "type", "image", "source",
                                                 "type", "base64", "media_type", "image/png", "data", data));
        else if (text && text[strspn(text, " \n\t")]) /* the server rejects blank text blocks */
            json_array_append_new(out, json_pack("{s:s, s:s}", "type", "text", "text", text));
    }
    return out;
}

static bool is_use(const json_t *block)
{
    const char *type = json_string_value(json_object_get(block, "type"));
    return type && !strcmp(type, "tool_use");
}

static int count_uses(const json_t *turn)
{
    json_t *block;
    size_t i;
    int n = 0;
    json_array_foreach(json_object_get(turn, "native"), i, block) n += is_use(block);
    return n;
}

/* Returns one result for each tool call; the last one has the content of the user's message. */
static json_t *results(const json_t *turn, json_t *content)
{
    json_t *out = json_array(), *block;
    int left = count_uses(turn);
    size_t i;
    json_array_foreach(json_object_get(turn, "native"), i, block)
    {
        if (!is_use(block))
            continue;
        json_t *result =
            json_pack("{s:s, s:O}", "type", "tool_result", "tool_use_id", json_object_get(block, "id"));
        if (--left == 0)
            json_object_set(result, "content", content);
        json_array_append_new(out, result);
    }
    json_decref(content);
    return out;
}

static json_t *user(const json_t *turn, json_t *message)
{
    json_t *content = content_of(json_object_get(message, "content"));
    if (turn && count_uses(turn))
        content = results(turn, content);
    return json_pack("{s:s, s:o}", "role", "user", "content", content);
}

static json_t *assistant(json_t *turn)
{
    json_t *native = json_object_get(turn, "native");
    const char *text = json_string_value(json_object_get(turn, "content"));
    if (json_array_size(native))
        return json_pack("{s:s, s:O}", "role", "assistant", "content", native);
    return json_pack("{s:s, s:s}", "role", "assistant", "content", text && *text ? text : "(an action)");
}

/* Marks the end of the newest message as a point up to which the server may cache the prompt. */
static void mark_cache(const struct remote_turn *t, json_t *messages)
{
    json_t *content = json_object_get(json_array_get(messages, json_array_size(messages) - 1), "content");
    size_t n = json_array_size(content);
    if (n && endpoint_takes(t->endpoint, "cache_control")) {
        json_t *block = json_copy(json_array_get(content, n - 1));
        json_object_set_new(block, "cache_control", json_pack("{s:s}", "type", "ephemeral"));
        json_array_set_new(content, n - 1, block);
    }
}

static json_t *messages_of(const struct remote_turn *t, const char **system)
{
    json_t *out = json_array(), *message;
    const json_t *turn = NULL;
    size_t i;
    *system = NULL;
    json_array_foreach((json_t *)(uintptr_t)t->messages, i, message)
    {
        const char *role = json_string_value(json_object_get(message, "role"));
        if (!strcmp(role, "system"))
            *system = json_string_value(json_object_get(message, "content"));
        else
            json_array_append_new(out, strcmp(role, "assistant") ? user(turn, message) : assistant(message));
        turn = strcmp(role, "assistant") ? NULL : message;
    }
    mark_cache(t, out);
    return out;
}

static json_t *messages_request(const struct remote_turn *t)
{
    const char *system;
    json_t *messages = messages_of(t, &system);
    json_t *body = json_pack("{s:s, s:i, s:o, s:b}", "model", t->endpoint->model, "max_tokens",
                             t->how->sampling.max_tokens, "messages", messages, "stream", 1);
    if (system && *system)
        json_object_set_new(body, "system", json_string(system));
    if (t->how->goal == GOAL_STEP)
        json_object_set_new(body, "tools", json_pack("[o]", tool(t)));
    request_set(t, body, "temperature",
                request_real(t->how->sampling.temperature > 1 ? 1 : t->how->sampling.temperature));
    if (t->endpoint->profile.extra)
        json_object_update(body, t->endpoint->profile.extra);
    return body;
}

/* ---- the reply ------------------------------------------------------------------------------------- */

/* Reads the token counts. "input_tokens" excludes cached tokens; a later event may repeat the counts. */
static void read_usage(struct remote_reply *r, const json_t *usage)
{
    int64_t fresh = remote_reply_count(json_object_get(usage, "input_tokens"), -1),
            cached = remote_reply_count(json_object_get(usage, "cache_read_input_tokens"), -1),
            written = remote_reply_count(json_object_get(usage, "cache_creation_input_tokens"), 0);
    if (fresh >= 0 && (r->prompt_tokens < 0 || cached >= 0)) {
        r->cached = cached;
        r->prompt_tokens = fresh + written + (cached > 0 ? cached : 0);
    }
    r->tokens = remote_reply_count(json_object_get(usage, "output_tokens"), r->tokens);
}

static void stop_reason(struct remote_reply *r, const json_t *of)
{
    const char *why = json_string_value(json_object_get(of, "stop_reason"));
    r->finished = r->finished || why;
    r->cut_off = r->cut_off || (why && !strcmp(why, "max_tokens"));
    r->withheld = r->withheld || (why && !strcmp(why, "refusal"));
}

static void append_text(json_t *block, const char *key, const json_t *more)
{
    const char *was = json_string_value(json_object_get(block, key)), *text = json_string_value(more);
    if (!text)
        return;
    autofree char *both = xasprintf("%s%s", was ? was : "", text);
    json_object_set_new(block, key, json_string(both));
}

/* Returns the newest block with an event's index, or the newest of all if the event has no index; NULL: no
 * such block. */
static json_t *block_at(const struct remote_reply *r, const json_t *event)
{
    json_t *at = json_object_get(event, "index");
    size_t n = json_array_size(r->native);
    for (size_t i = n; i-- > 0;)
        if (!json_is_integer(at) || json_equal(at, json_object_get(json_array_get(r->native, i), PLACE)))
            return json_array_get(r->native, i);
    return NULL;
}

static void start_block(struct remote_reply *r, const json_t *event)
{
    json_t *block = json_deep_copy(json_object_get(event, "content_block"));
    r->native = r->native ? r->native : json_array();
    if (!json_is_object(block) || json_array_size(r->native) >= MAX_BLOCKS) {
        json_decref(block);
        failure_set(&r->failed, FAILURE_REPLY, "a content block that is not an object, or more than %d",
                    MAX_BLOCKS);
        return;
    }
    json_object_set(block, PLACE, json_object_get(event, "index"));
    remote_reply_add(r, &r->text, json_object_get(block, "text"));
    remote_reply_add(r, &r->thought, json_object_get(block, "thinking"));
    json_array_append_new(r->native, block);
}

static void add_delta(struct remote_reply *r, const json_t *event)
{
    json_t *delta = json_object_get(event, "delta"), *block = block_at(r, event);
    if (!block)
        return;
    remote_reply_add(r, &r->text, json_object_get(delta, "text"));
    remote_reply_add(r, &r->thought, json_object_get(delta, "thinking"));
    append_text(block, "text", json_object_get(delta, "text"));
    append_text(block, "thinking", json_object_get(delta, "thinking"));
    append_text(block, "signature", json_object_get(delta, "signature"));
    append_text(block, "partial_json", json_object_get(delta, "partial_json"));
}

/* Joins the streamed pieces of a tool's input into an object, unless the block came complete. Input that is
 * cut off or not an object stays a string, which the dialect's parser reports. */
static void join_input(struct remote_reply *r, json_t *block)
{
    json_t *start = json_object_get(block, "input");
    const char *pieces = json_string_value(json_object_get(block, "partial_json")),
               *text = pieces && *pieces ? pieces : json_string_value(start);
    bool use = is_use(block);
    if (text && (use || pieces)) {
        json_auto_t *input = json_loads(text, 0, NULL);
        r->broken_call = r->broken_call || !json_is_object(input);
        json_object_set_new(block, "input", json_is_object(input) ? json_incref(input) : json_string(text));
    } else if ((use || pieces) && !json_is_object(start)) {
        json_object_set_new(block, "input", json_object());
    }
    json_object_del(block, "partial_json");
    json_object_del(block, PLACE);
}

/* Returns whether the list already has this tool call: some servers repeat a block when it is complete. */
static bool repeated(const json_t *blocks, const json_t *block)
{
    const json_t *id = json_object_get(block, "id");
    for (size_t i = 0; json_string_length(id) && i < json_array_size(blocks); i++) {
        const json_t *other = json_array_get(blocks, i);
        if (json_equal(json_object_get(other, "id"), id) &&
            json_equal(json_object_get(other, "name"), json_object_get(block, "name")) &&
            (json_equal(json_object_get(other, "input"), json_object_get(block, "input")) ||
             !json_object_size(json_object_get(block, "input"))))
            return true;
    }
    return false;
}

/* Completes the blocks of a reply: each tool call gets an object as its input and an id, and repeated ones
 * are removed. */
static void join_blocks(struct remote_reply *r)
{
    json_t *out = json_array(), *block;
    size_t i;
    json_array_foreach(r->native, i, block)
    {
        join_input(r, block);
        if (is_use(block) && !json_string_length(json_object_get(block, "name")) &&
            !json_object_size(json_object_get(block, "input")))
            continue; /* an empty slot */
        if (is_use(block) && repeated(out, block))
            continue;
        if (is_use(block) && !json_string_length(json_object_get(block, "id"))) {
            char id[32];
            snprintf(id, sizeof id, "toolu_%zu", i);
            json_object_set_new(block, "id", json_string(id));
        }
        json_array_append(out, block);
    }
    json_decref(r->native);
    r->native = out;
}

static int messages_read_event(struct remote_reply *r, const char *data, size_t n)
{
    json_auto_t *root = json_loadb(data, n, JSON_ALLOW_NUL, NULL);
    const char *type = json_string_value(json_object_get(root, "type"));
    type = type ? type : "";
    if (!json_is_object(root))
        remote_reply_garbage(r, data);
    else if (!strcmp(type, "message_start"))
        read_usage(r, json_object_get(json_object_get(root, "message"), "usage"));
    else if (!strcmp(type, "content_block_start"))
        start_block(r, root);
    else if (!strcmp(type, "content_block_delta"))
        add_delta(r, root);
    else if (!strcmp(type, "message_delta"))
        read_usage(r, json_object_get(root, "usage")), stop_reason(r, json_object_get(root, "delta"));
    else if (!strcmp(type, "error") || !*type || json_object_get(root, "error"))
        remote_reply_error(r, root);
    bool last = !strcmp(type, "message_stop");
    r->finished = r->finished || last;
    return last || r->failed.class;
}

static int messages_read_whole(struct remote_reply *r, const char *data, size_t n)
{
    json_t *root = json_loadb(data, n, JSON_ALLOW_NUL, NULL), *content = json_object_get(root, "content"),
           *block;
    size_t i;
    remote_reply_error(r, root);
    remote_reply_add(r, &r->text, content);
    json_array_foreach(content, i, block)
    {
        remote_reply_add(r, &r->text, json_object_get(block, "text"));
        remote_reply_add(r, &r->thought, json_object_get(block, "thinking"));
    }
    if (json_is_string(content))
        r->native = json_pack("[{s:s, s:O}]", "type", "text", "text", content);
    else
        r->native = json_is_array(content) ? json_deep_copy(content) : NULL;
    read_usage(r, json_object_get(root, "usage"));
    stop_reason(r, root);
    r->finished = r->native && !r->failed.class;
    if (!r->finished && !r->failed.class)
        failure_set(&r->failed, FAILURE_REPLY, "the server's reply contains no content");
    json_decref(root);
    return r->finished ? 0 : -1;
}

/* Puts texts and tool calls into r->action, without members that only the server needs. The server rejects a
 * turn with a call whose input is not an object, so such a turn is not sent back. */
static void messages_finish(struct remote_reply *r)
{
    json_t *blocks = json_array(), *block;
    size_t i;
    if (r->native)
        join_blocks(r);
    json_array_foreach(r->native, i, block)
    {
        const char *type = json_string_value(json_object_get(block, "type"));
        if (type && (!strcmp(type, "text") || !strcmp(type, "tool_use")))
            json_array_append(blocks, block);
    }
    autofree char *text = json_dumps(blocks, JSON_COMPACT);
    if (json_array_size(blocks))
        buf_puts(&r->action, text);
    if (r->broken_call) {
        json_decref(r->native);
        r->native = NULL;
    }
    json_decref(blocks);
}

const struct protocol protocol_messages = {
    .name = "messages",
    .path = "messages",
    .dialect = "anthropic-computer",
    .request = messages_request,
    .optional = optional,
    .read_event = messages_read_event,
    .read_whole = messages_read_whole,
    .finish = messages_finish,
};
