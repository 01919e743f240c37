/* api_responses.c - OpenAI's Responses API with functions: POST /v1/responses and
 * /v1/responses/input_tokens.
 *
 * The input is a list of items: messages, tool calls and their results, reasoning. Calls of tools other than
 * functions (a shell, a computer, a custom tool) become calls of a function with that name. Replies are lists
 * of items, too. Nothing is stored, so previous_response_id and item_reference are rejected: the client sends
 * the whole conversation, which is matched by its messages. */
#include "serve/api.h"

#include "base/buf.h"
#include "serve/parts.h"

#include <stdlib.h>
#include <string.h>

/* ---- the request ----------------------------------------------------------------------------------- */

static const struct api_rename renamed[] = {{"max_output_tokens", "max_tokens"}, {NULL, NULL}};
static const char *const own[] = {"instructions", "input",      "text",           "messages",
                                  "truncation",   "background", "top_logprobs",   "previous_response_id",
                                  "conversation", "prompt",     "max_tool_calls", NULL};

struct adding {
    json_t *messages;
    struct buf thought; /* reasoning that belongs to the next message or call */
    struct notes *notes;
};

/* Attaches the preceding reasoning to the assistant message at the end of the list. */
static void set_thought(struct adding *a)
{
    json_t *last = json_array_get(a->messages, json_array_size(a->messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    if (a->thought.len && role && !strcmp(role, "assistant"))
        json_object_set_new(last, "reasoning_content", json_string(a->thought.data));
    buf_clear(&a->thought);
}

static int add_thought(struct adding *a, const json_t *item, struct err *e)
{
    const json_t *content = json_object_get(item, "content"), *summary = json_object_get(item, "summary");
    json_t *parts = parts_read(json_array_size(content) ? content : summary, NULL, a->notes, e);
    autofree char *text = parts ? parts_text(parts, NULL) : NULL;
    if (text)
        buf_puts(&a->thought, text);
    json_decref(parts);
    return parts ? 0 : -1;
}

static int add_result(struct adding *a, const json_t *item, struct err *e)
{
    json_t *output = json_object_get(item, "output"), *id = json_object_get(item, "call_id");
    json_t *message = json_pack("{s:s, s:O*, s:O*}", "role", "tool", "content", output, "tool_call_id", id);
    bool plain = json_is_array(output) || api_is(output, "computer_screenshot");
    json_t *parts = plain ? parts_read(output, NULL, a->notes, e) : NULL;
    if (parts)
        json_object_set_new(message, "content", parts);
    json_array_append_new(a->messages, message);
    return plain && !parts ? -1 : 0;
}

/* Adds a call of a function, or of another tool under the name of its type, with the item's arguments. */
static void add_call(struct adding *a, const char *type, const json_t *item)
{
    static const char *const keys[] = {"action", "actions", "operation", "arguments", "code", NULL};
    json_t *name = json_object_get(item, "name"), *id = json_object_get(item, "call_id"),
           *input = json_object_get(item, "input"), *arguments = json_object_get(item, "arguments");
    char kind[64];
    snprintf(kind, sizeof kind, "%.*s", (int)(strlen(type) - strlen("_call")), type);
    json_auto_t *other = json_is_string(name) ? NULL : json_string(kind), *object = NULL;
    if (json_is_string(input))
        object = json_pack("{s:O}", "input", input);
    if (object)
        arguments = object;
    for (int i = 0; keys[i] && !arguments; i++)
        if (json_is_object(json_object_get(item, keys[i])))
            arguments = json_object_get(item, keys[i]);
        else if (json_object_get(item, keys[i])) {
            object = json_pack("{s:O}", keys[i], json_object_get(item, keys[i]));
            arguments = object;
        }
    api_add_call(a->messages, id ? id : json_object_get(item, "id"), other ? other : name, arguments);
    set_thought(a);
}

/* Returns whether the item records a tool that the vendor ran, or the vendor's own bookkeeping. */
static bool is_record(const char *type)
{
    static const char *const names[] = {
        "web_search_call", "file_search_call", "image_generation_call", "code_interpreter_call",
        "mcp_list_tools",  "mcp_call",         "mcp_approval_request",  "mcp_approval_response",
        "compaction",      "tool_search_call", "tool_search_output",    "additional_tools"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(type, names[i]))
            return true;
    return false;
}

static int add_message(struct adding *a, const json_t *item, struct err *e)
{
    json_t *role = json_object_get(item, "role");
    json_t *parts = parts_read(json_object_get(item, "content"), &a->thought, a->notes, e);
    if (!parts)
        return -1;
    json_array_append_new(a->messages, json_pack("{s:O, s:o}", "role", role, "content", parts));
    set_thought(a);
    return 0;
}

static int add_item(struct adding *a, const json_t *item, struct err *e)
{
    const char *type = json_string_value(json_object_get(item, "type"));
    if (json_is_string(json_object_get(item, "role")) && (!type || !strcmp(type, "message")))
        return add_message(a, item, e);
    if (!type)
        return err_set(e, ERR_USAGE, "an item needs a 'type' or a 'role'");
    if (!strcmp(type, "item_reference"))
        return err_set(e, ERR_USAGE,
                       "'item_reference' is not supported because items are not stored: "
                       "send the item itself");
    if (!strcmp(type, "reasoning"))
        return add_thought(a, item, e);
    if (is_record(type))
        notes_ignore(a->notes, "input: %.60s", type);
    else if (text_ends(type, "_call"))
        add_call(a, type, item);
    else if (text_ends(type, "_call_output"))
        return add_result(a, item, e);
    else
        return err_set(e, ERR_USAGE, "an item of the type '%.60s' is not supported", type);
    return 0;
}

static int add_input(json_t *messages, const json_t *input, struct notes *n, struct err *e)
{
    struct adding a = {.messages = messages, .notes = n};
    json_t *item;
    size_t i;
    int rc = 0;
    if (json_is_string(input))
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "user", "content", input));
    else if (!json_array_size(input) && !json_array_size(messages))
        return err_set(e, ERR_USAGE, "'input' must be a string or a list of at least one item");
    buf_init(&a.thought, (size_t)64 << 20);
    json_array_foreach((json_t *)(uintptr_t)input, i, item)
    {
        struct err why = ERR_INIT;
        if (rc == 0 && add_item(&a, item, &why))
            rc = err_set(e, why.kind, "item %zu: %s", i + 1, why.text);
    }
    buf_free(&a.thought);
    return rc;
}

static void set_rest(json_t *out, const json_t *root, struct notes *n)
{
    const json_t *text = json_object_get(root, "text"), *format = json_object_get(text, "format");
    const char *truncation = json_string_value(json_object_get(root, "truncation"));
    static const char *const named[] = {"max_tool_calls", "top_logprobs"};
    if (api_is(format, "json_schema") && json_object_get(format, "schema"))
        json_object_set_new(out, "response_format", api_response_format(json_object_get(format, "schema")));
    else if (format)
        json_object_set(out, "response_format", (json_t *)(uintptr_t)format);
    if (json_is_string(json_object_get(text, "verbosity")))
        notes_ignore(n, "text.verbosity");
    if (truncation && strcmp(truncation, "disabled") != 0)
        notes_ignore(n, "truncation");
    for (int i = 0; i < 2; i++)
        if (json_number_value(json_object_get(root, named[i])) > 0)
            notes_ignore(n, "%s", named[i]);
}

/* Rejects members that need stored replies. */
static int check_stored(const json_t *root, struct err *e)
{
    static const char *const names[] = {"previous_response_id", "conversation", "prompt", "background"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *v = json_object_get(root, names[i]);
        if (v && !json_is_null(v) && !json_is_false(v))
            return err_set(
                e, ERR_USAGE,
                "'%s' is not supported because replies are not stored: send the whole conversation, "
                "which continues from the cache",
                names[i]);
    }
    return 0;
}

static json_t *translate(json_t *root, struct notes *n, struct err *e)
{
    json_t *out = json_object(), *messages = json_array(), *system = json_object_get(root, "instructions");
    json_object_set_new(out, "messages", messages);
    api_move(out, root, renamed, own);
    set_rest(out, root, n);
    if (json_is_object(system) || json_string_length(system) || json_array_size(system))
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "system", "content", system));
    int rc = check_stored(root, e) || add_input(messages, json_object_get(root, "input"), n, e);
    json_decref(root);
    if (!rc)
        return out;
    json_decref(out);
    return NULL;
}

/* ---- the reply --------------------------------------------------------------------------------------- */

static json_t *usage(const struct completion *c)
{
    return json_pack("{s:I, s:{s:I, s:i}, s:i, s:{s:i}, s:I}", "input_tokens", (json_int_t)c->prompt_tokens,
                     "input_tokens_details", "cached_tokens", (json_int_t)c->cached_tokens,
                     "cache_write_tokens", 0, "output_tokens", c->n, "output_tokens_details",
                     "reasoning_tokens", c->thought_tokens, "total_tokens",
                     (json_int_t)(c->prompt_tokens + c->n));
}

/* Returns the tools as the client sent them. */
static json_t *tools_of(const struct completion *c)
{
    json_t *tool, *list = json_array();
    size_t i;
    json_array_foreach(json_object_get(c->body.talk.root, "tools"), i, tool)
    {
        json_t *f = json_copy(json_object_get(tool, "function"));
        json_object_set_new(f, "type", json_string("function"));
        json_object_set_new(f, "strict", json_true());
        if (!json_object_get(f, "parameters"))
            json_object_set_new(f, "parameters", json_null());
        json_array_append_new(list, f);
    }
    return list;
}

static json_t *choice_of(const struct completion *c)
{
    static const char *const words[] = {"auto", "none", "required"};
    return c->body.tools == TOOLS_NAMED ? json_pack("{s:s, s:s}", "type", "function", "name", c->body.tool)
                                        : json_string(words[c->body.tools]);
}

/* Builds the response object; takes ownership of items. */
static json_t *response(const struct completion *c, json_t *items, const char *status)
{
    autofree char *id = api_id(c, "resp_");
    bool done = strcmp(status, "in_progress") != 0, cut = !strcmp(status, "incomplete");
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o, s:b, s:o, s:o, s:f, s:f, s:b, s:n, s:o?, s:o?}", "id",
                     id, "object", "response", "created_at", (json_int_t)c->created, "model",
                     c->service->model, "status", status, "output", items, "parallel_tool_calls", 1,
                     "tool_choice", choice_of(c), "tools", tools_of(c), "temperature",
                     (double)c->body.sampling.temperature, "top_p", (double)c->body.sampling.top_p, "store",
                     0, "error", "usage", done ? usage(c) : NULL, "incomplete_details",
                     cut ? json_pack("{s:s}", "reason", "max_output_tokens") : NULL);
}

/* Builds an item with reasoning or text, complete or in progress. n: number of preceding items. */
static json_t *item_of(const struct completion *c, enum reply_part part, int n, const char *text, size_t len,
                       bool done)
{
    char front[24];
    snprintf(front, sizeof front, "%s_%d_", part == REPLY_THOUGHT ? "rs" : "msg", n);
    autofree char *id = api_id(c, front);
    json_t *content = json_array(), *value = json_stringn_nocheck(text, len), *item;
    if (part == REPLY_THOUGHT)
        item = json_pack("{s:s, s:s, s:[], s:o, s:s}", "id", id, "type", "reasoning", "summary", "content",
                         content, "status", done ? "completed" : "in_progress");
    else
        item = json_pack("{s:s, s:s, s:s, s:o, s:s}", "id", id, "type", "message", "role", "assistant",
                         "content", content, "status", done ? "completed" : "in_progress");
    if (done && part == REPLY_THOUGHT)
        json_array_append_new(content, json_pack("{s:s, s:O}", "type", "reasoning_text", "text", value));
    else if (done)
        json_array_append_new(
            content, json_pack("{s:s, s:O, s:[]}", "type", "output_text", "text", value, "annotations"));
    json_decref(value);
    return item;
}

static json_t *call_of(const struct completion *c, const json_t *call, int n, bool done)
{
    char front[24];
    snprintf(front, sizeof front, "fc_%d_", n);
    autofree char *id = api_id(c, front);
    const json_t *f = json_object_get(call, "function");
    json_t *item = json_pack("{s:s, s:s, s:O, s:O, s:O, s:s}", "id", id, "type", "function_call", "call_id",
                             json_object_get(call, "id"), "name", json_object_get(f, "name"), "arguments",
                             json_object_get(f, "arguments"), "status", done ? "completed" : "in_progress");
    if (!done)
        json_object_set_new(item, "arguments", json_string(""));
    return item;
}

static const char *status_of(const struct completion *c)
{
    return c->aborted ? "cancelled" : c->finish == FINISH_LENGTH ? "incomplete" : "completed";
}

static void whole(const struct completion *c, struct buf *out)
{
    json_t *items = json_array(), *call;
    size_t i;
    for (int part = REPLY_THOUGHT; part <= REPLY_CONTENT; part++) {
        const struct buf *text = &c->text.parts[part];
        if (text->len || (part == REPLY_CONTENT && !c->calls))
            json_array_append_new(items, item_of(c, (enum reply_part)part, (int)json_array_size(items),
                                                 text->len ? text->data : "", text->len, true));
    }
    json_array_foreach(c->calls, i, call)
        json_array_append_new(items, call_of(c, call, (int)json_array_size(items), true));
    api_put(out, response(c, items, status_of(c)));
}

/* ---- streamed ---------------------------------------------------------------------------------------- */

/* Sends an event and takes ownership of the members. */
static void put(struct reply_events *s, const char *type, json_t *members)
{
    json_object_set_new(members, "type", json_string(type));
    json_object_set_new(members, "sequence_number", json_integer(s->sequence++));
    api_put_event(s->out, type, members);
}

static void begin(struct reply_events *s)
{
    static const char *const types[] = {"response.created", "response.in_progress"};
    s->items = json_array();
    buf_init(&s->text, (size_t)64 << 20);
    for (int i = 0; i < 2; i++)
        put(s, types[i], json_pack("{s:o}", "response", response(s->of, json_array(), "in_progress")));
}

/* Sends an event with an item and takes ownership of the item. */
static void put_item(struct reply_events *s, const char *type, json_t *item)
{
    put(s, type, json_pack("{s:i, s:o}", "output_index", s->index, "item", item));
}

/* Sends an event with a text and takes ownership of the value. */
static void put_text(struct reply_events *s, const char *type, const char *key, json_t *value, bool content)
{
    char front[24];
    snprintf(front, sizeof front, "%s_%d_", s->part == REPLY_THOUGHT ? "rs" : "msg", s->index);
    autofree char *id = api_id(s->of, front);
    json_t *members = json_pack("{s:s, s:i, s:i, s:o}", "item_id", id, "output_index", s->index,
                                "content_index", 0, key, value);
    if (content && s->part == REPLY_CONTENT && strcmp(key, "part") != 0)
        json_object_set_new(members, "logprobs", json_array());
    put(s, type, members);
}

static json_t *part_of(const struct reply_events *s)
{
    json_t *text = json_stringn_nocheck(s->text.len ? s->text.data : "", s->text.len);
    return s->part == REPLY_THOUGHT
               ? json_pack("{s:s, s:o}", "type", "reasoning_text", "text", text)
               : json_pack("{s:s, s:o, s:[]}", "type", "output_text", "text", text, "annotations");
}

static void open_item(struct reply_events *s, enum reply_part part)
{
    s->part = part;
    s->open = true;
    buf_clear(&s->text);
    put_item(s, "response.output_item.added", item_of(s->of, part, s->index, "", 0, false));
    put_text(s, "response.content_part.added", "part", part_of(s), true);
}

static void close_item(struct reply_events *s)
{
    const char *text = s->text.len ? s->text.data : "";
    if (!s->open)
        return;
    put_text(s, s->part == REPLY_THOUGHT ? "response.reasoning_text.done" : "response.output_text.done",
             "text", json_stringn_nocheck(text, s->text.len), true);
    put_text(s, "response.content_part.done", "part", part_of(s), true);
    json_t *item = item_of(s->of, s->part, s->index, text, s->text.len, true);
    json_array_append(s->items, item);
    put_item(s, "response.output_item.done", item);
    s->open = false;
    s->index++;
}

static void text(struct reply_events *s, enum reply_part part, const char *text, size_t n)
{
    if (s->open && s->part != part)
        close_item(s);
    if (!s->open)
        open_item(s, part);
    buf_put(&s->text, text, n);
    put_text(s, part == REPLY_THOUGHT ? "response.reasoning_text.delta" : "response.output_text.delta",
             "delta", json_stringn_nocheck(text, n), true);
}

static void put_call(struct reply_events *s, const json_t *call)
{
    json_t *item = call_of(s->of, call, s->index, true);
    json_t *arguments = json_object_get(item, "arguments"), *id = json_object_get(item, "id");
    put_item(s, "response.output_item.added", call_of(s->of, call, s->index, false));
    put(s, "response.function_call_arguments.delta",
        json_pack("{s:O, s:i, s:O}", "item_id", id, "output_index", s->index, "delta", arguments));
    put(s, "response.function_call_arguments.done",
        json_pack("{s:O, s:i, s:O, s:O}", "item_id", id, "output_index", s->index, "arguments", arguments,
                  "name", json_object_get(item, "name")));
    json_array_append(s->items, item);
    put_item(s, "response.output_item.done", item);
    s->index++;
}

static void end(struct reply_events *s)
{
    json_t *call;
    size_t i;
    if (!s->open && !s->index && !s->of->calls)
        open_item(s, REPLY_CONTENT);
    close_item(s);
    json_array_foreach(s->of->calls, i, call) put_call(s, call);
    const char *status = status_of(s->of);
    put(s, !strcmp(status, "incomplete") ? "response.incomplete" : "response.completed",
        json_pack("{s:o}", "response", response(s->of, json_incref(s->items), status)));
}

static void broken(struct reply_events *s, const char *message)
{
    put(s, "error", json_pack("{s:s, s:s, s:n}", "code", "server_error", "message", message, "param"));
}

const struct api api_responses = {.path = "/v1/responses", .translate = translate, API_FUNCTIONS};

static void count(const struct completion *c, struct buf *out)
{
    api_put(out, json_pack("{s:s, s:I}", "object", "response.input_tokens", "input_tokens",
                           (json_int_t)c->prompt_tokens));
}

const struct api api_responses_count = {
    .path = "/v1/responses/input_tokens", .counts = true, .translate = translate, .whole = count};
