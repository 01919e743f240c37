/* chat_completions.c - the "Chat Completions" protocol: builds requests and reads replies.
 *
 * vLLM, SGLang, llama.cpp, Ollama, LM Studio, transformers and most vendors offer it. Servers differ in the
 * names of fields, so all known names are read: the model's thoughts as "reasoning", "reasoning_content" or
 * "thinking", the answer as text or as tool calls (streamed_calls.h), streamed or in one piece. For a dialect
 * with native tools, a request has the tool definitions in "tools", and the result of each call in a message
 * with the role "tool". */
#include "remote/odds.h"
#include "remote/protocol.h"
#include "remote/streamed_calls.h"
#include "remote/token_ids.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ODDS = 1 << 16 };

static const char *const optional[] = {"stream_options",
                                       "response_format",
                                       "structured_outputs",
                                       "guided_json",
                                       "json_schema",
                                       "seed",
                                       "top_p",
                                       "temperature",
                                       "chat_template_kwargs",
                                       "reasoning_effort",
                                       "tool_choice",
                                       "parallel_tool_calls",
                                       "top_logprobs",
                                       "logprobs",
                                       NULL};

/* ---- the request --------------------------------------------------------------------------------- */

/* Requests token ids and the grammar of the dialect, which only `holorun serve` has. */
static void set_own(const struct remote_turn *t, json_t *body)
{
    const struct llm_request *r = t->how;
    const char *const *names = dialect_names();
    while (*names && strcmp(*names, t->dialect->name) != 0)
        names++;
    json_object_set_new(body, "return_token_ids", json_true());
    if (*names && r->goal == GOAL_STEP && !r->free && !r->think && !t->dialect->native_tools)
        json_object_set_new(body, "structured_outputs", json_pack("{s:s}", "dialect", *names));
}

static void set_constraint(const struct remote_turn *t, json_t *body)
{
    const char *way = endpoint_constraint(t->endpoint);
    if (!strcmp(way, "response_format"))
        request_set(t, body, way,
                    json_pack("{s:s, s:{s:s, s:b, s:O}}", "type", "json_schema", "json_schema", "name",
                              "step", "strict", 1, "schema", t->schema));
    else if (!strcmp(way, "structured_outputs"))
        request_set(t, body, way, json_pack("{s:O}", "json", t->schema));
    else if (!strcmp(way, "guided_json") || !strcmp(way, "json_schema"))
        request_set(t, body, way, json_incref(t->schema));
}

static void set_thinking(const struct remote_turn *t, json_t *body)
{
    const char *way = t->endpoint->profile.thinking;
    if (!way || !strcmp(way, "none"))
        return;
    if (!strcmp(way, "reasoning_effort"))
        request_set(t, body, way, json_string(t->how->think ? "medium" : "none"));
    else
        request_set(t, body, "chat_template_kwargs", json_pack("{s:b}", way, t->how->think));
}

/* Returns the tool definitions in the schema of a dialect with native tools, which has one per line. */
static json_t *tool_list(const struct dialect *d)
{
    json_t *list = json_array();
    for (const char *line = d->schema; *line;) {
        size_t n = strcspn(line, "\n");
        json_t *one = json_loadb(line, n, 0, NULL);
        if (one)
            json_array_append_new(list, one);
        line += n + (line[n] == '\n');
    }
    return list;
}

/* Appends a tool result for each call of the previous assistant message: the step's result for the first
 * call, "Done." for the others. */
static void add_results(json_t *out, const json_t *before, const json_t *message)
{
    json_t *call;
    size_t i;
    json_array_foreach(json_object_get(before, "tool_calls"), i, call)
    {
        const char *result = i ? "" : request_result(message);
        bool passed = json_object_get(message, "acknowledged"); /* the form that Gemini requires */
        json_array_append_new(out, json_pack("{s:s, s:O, s:s}", "role", "tool", "tool_call_id",
                                             json_object_get(call, "id"), "content",
                                             passed    ? "{\"safety_acknowledgement\": \"true\"}"
                                             : *result ? result
                                                       : "Done."));
    }
}

static json_t *assistant(const struct remote_turn *t, const json_t *message)
{
    json_t *one =
        json_pack("{s:s, s:O}", "role", "assistant", "content", json_object_get(message, "content"));
    const char *field = t->endpoint->profile.reasoning;
    json_t *calls = json_object_get(message, "tool_calls"), *thought = json_object_get(message, "reasoning");
    if (calls)
        json_object_set(one, "tool_calls", calls);
    if (thought && field && strcmp(field, "none") != 0)
        json_object_set(one, field, thought);
    return one;
}

static json_t *wire_messages(const struct remote_turn *t)
{
    json_t *out = json_array(), *message;
    const json_t *before = NULL;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)t->messages, i, message)
    {
        const char *role = json_string_value(json_object_get(message, "role"));
        bool answers = !strcmp(role, "user") && json_object_get(before, "tool_calls");
        if (!strcmp(role, "assistant")) {
            json_array_append_new(out, assistant(t, message));
        } else if (!strcmp(role, "tool")) {
            json_array_append(out, message);
        } else if (answers) {
            add_results(out, before, message);
            json_array_append_new(out,
                                  json_pack("{s:s, s:o}", "role", "user", "content", request_parts(message)));
        } else {
            json_array_append_new(
                out, json_pack("{s:s, s:O}", "role", role, "content", json_object_get(message, "content")));
        }
        before = message;
    }
    return out;
}

static json_t *chat_request(const struct remote_turn *t)
{
    const struct llm_request *r = t->how;
    json_t *body = json_pack("{s:s, s:o, s:i, s:b}", "model", t->endpoint->model, "messages",
                             wire_messages(t), "max_tokens", r->sampling.max_tokens, "stream", 1);
    request_set(t, body, "stream_options", json_pack("{s:b}", "include_usage", 1));
    request_set(t, body, "temperature", request_real(r->sampling.temperature));
    if (r->sampling.temperature > 0) {
        request_set(t, body, "seed",
                    json_integer((json_int_t)((t->seed + (uint64_t)r->resample) & INT32_MAX)));
        if (r->sampling.top_p < 1)
            request_set(t, body, "top_p", request_real(r->sampling.top_p));
    }
    if (t->tools)
        json_object_set(body, "tools", t->tools);
    else if (t->dialect->native_tools && r->goal == GOAL_STEP)
        json_object_set_new(body, "tools", tool_list(t->dialect));
    if (r->alternatives > 0 && endpoint_takes(t->endpoint, "logprobs") &&
        endpoint_takes(t->endpoint, "top_logprobs"))
        json_object_update_new(body, json_pack("{s:b, s:i}", "logprobs", 1, "top_logprobs", ODDS_TOP));
    set_thinking(t, body);
    if (t->endpoint->own)
        set_own(t, body);
    if (t->schema && !json_object_get(body, "structured_outputs"))
        set_constraint(t, body);
    if (t->endpoint->profile.extra)
        json_object_update(body, t->endpoint->profile.extra);
    return body;
}

/* ---- the reply ------------------------------------------------------------------------------------- */

/* Appends the text of "content": a string, or a list of strings and parts. Parts that are thoughts go to
 * r->thought. */
static void add_content(struct remote_reply *r, struct buf *to, json_t *content)
{
    json_t *part;
    size_t i;
    remote_reply_add(r, to, content);
    json_array_foreach(content, i, part)
    {
        json_t *text = json_object_get(part, "text"), *thought = json_object_get(part, "thinking");
        remote_reply_add(r, to, part);
        remote_reply_add(r, to, text ? text : json_object_get(part, "content"));
        if (json_is_string(thought))
            remote_reply_add(r, &r->thought, thought);
        else if (json_is_array(thought) && to == &r->text)
            add_content(r, &r->thought, thought);
    }
}

/* Appends the thoughts of the first member that has any: servers that send several members repeat the text in
 * each. */
static void add_thought(struct remote_reply *r, const json_t *body)
{
    static const char *const members[] = {"reasoning", "reasoning_content", "thinking", "reasoning_details"};
    size_t before = r->thought.len;
    for (size_t i = 0; i < sizeof members / sizeof *members && r->thought.len == before; i++) {
        json_t *v = json_object_get(body, members[i]);
        if (json_is_object(v))
            v = json_object_get(v, "content") ? json_object_get(v, "content") : json_object_get(v, "text");
        add_content(r, &r->thought, v);
    }
}

static void show_arguments(const struct remote_reply *r, json_t *calls)
{
    json_t *call;
    size_t i;
    json_array_foreach(calls, i, call)
    {
        const json_t *f = json_object_get(call, "function");
        const char *text = json_string_value(json_object_get(f, "arguments"));
        if (r->on_text && text)
            r->on_text(r->arg, text, strlen(text));
    }
}

static void add_odds(struct remote_reply *r, json_t *tokens)
{
    if (!json_array_size(tokens) || json_array_size(r->odds) > MAX_ODDS)
        return;
    r->odds = r->odds ? r->odds : json_array();
    json_array_extend(r->odds, tokens);
}

/* Reads a message (whole) or a delta. A message at the end of a stream repeats the streamed text, which is
 * then not added again. */
static void read_body(struct remote_reply *r, json_t *body, bool whole)
{
    json_t *calls = json_object_get(body, "tool_calls");
    if (!whole || !r->thought.len)
        add_thought(r, body);
    if (!whole || !r->text.len) {
        add_content(r, &r->text, json_object_get(body, "content"));
        remote_reply_add(r, &r->text, json_object_get(body, "refusal"));
    }
    streamed_calls_add(&r->calls, calls, whole);
    streamed_calls_add_legacy(&r->calls, json_object_get(body, "function_call"), whole);
    if (!whole)
        show_arguments(r, calls);
}

static void read_choice(struct remote_reply *r, json_t *choice)
{
    const char *why = json_string_value(json_object_get(choice, "finish_reason"));
    json_t *delta = json_object_get(choice, "delta"), *message = json_object_get(choice, "message");
    if (json_object_get(choice, "error"))
        remote_reply_error(r, choice);
    if (why && !strcmp(why, "error") && !r->failed.class && !r->finished)
        failure_set(&r->failed, FAILURE_SERVER, "the reply ended with an error");
    if (r->failed.class)
        return;
    if (json_is_object(delta))
        read_body(r, delta, false);
    if (json_is_object(message))
        read_body(r, message, true);
    add_odds(r, json_object_get(json_object_get(choice, "logprobs"), "content"));
    r->finished = r->finished || why;
    r->cut_off = r->cut_off || (why && !strcmp(why, "length"));
    r->withheld = r->withheld || (why && !strcmp(why, "content_filter"));
}

static json_t *first_choice(const json_t *root)
{
    return json_array_get(json_object_get(root, "choices"), 0);
}

static int chat_read_event(struct remote_reply *r, const char *data, size_t n)
{
    if (n == 6 && !memcmp(data, "[DONE]", 6)) {
        r->finished = true;
        return 1;
    }
    json_auto_t *root = json_loadb(data, n, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(root))
        remote_reply_garbage(r, data);
    remote_reply_error(r, root);
    token_ids_add(r, root, first_choice(root));
    if (!r->failed.class && first_choice(root))
        read_choice(r, first_choice(root));
    remote_reply_usage(r, json_object_get(root, "usage"), "prompt_tokens", "completion_tokens");
    return r->failed.class != FAILURE_NONE;
}

static int chat_read_whole(struct remote_reply *r, const char *data, size_t n)
{
    json_t *root = json_loadb(data, n, JSON_ALLOW_NUL, NULL), *choice = first_choice(root);
    remote_reply_error(r, root);
    token_ids_add(r, root, choice);
    if (choice && !r->failed.class)
        read_choice(r, choice);
    remote_reply_usage(r, json_object_get(root, "usage"), "prompt_tokens", "completion_tokens");
    if (!choice && !r->failed.class)
        failure_set(&r->failed, FAILURE_REPLY, "the server's reply contains no message");
    json_decref(root);
    return r->failed.class ? -1 : 0;
}

/* Appends a call as {"name", "arguments"} for the dialect's parser. Arguments that are not valid JSON are
 * passed on as a string, so that the parser reports them. */
static void put_call(struct buf *out, const json_t *call)
{
    json_t *arguments = json_object_get(call, "arguments");
    json_auto_t *read =
        json_loads(json_string_length(arguments) ? json_string_value(arguments) : "{}", 0, NULL);
    const char *name = json_string_value(json_object_get(call, "name"));
    buf_puts(out, "{\"name\": ");
    buf_put_json(out, name, strlen(name));
    buf_puts(out, ", \"arguments\": ");
    if (read && json_string_length(arguments))
        buf_puts(out, json_string_value(arguments));
    else if (read)
        buf_puts(out, "{}");
    else
        buf_put_json(out, json_string_value(arguments), json_string_length(arguments));
    buf_puts(out, "}");
}

static void chat_finish(struct remote_reply *r)
{
    streamed_calls_end(&r->calls);
    size_t n = json_array_size(r->calls);
    bool bare = n == 1 && !r->text.len;
    if (!n)
        return;
    if (r->text.len)
        buf_printf(&r->action, "%s\n", r->text.data);
    for (size_t i = 0; i < n; i++) {
        buf_puts(&r->action, bare ? "" : "<tool_call>\n");
        put_call(&r->action, json_array_get(r->calls, i));
        buf_puts(&r->action, bare ? "" : "\n</tool_call>\n");
    }
}

const struct protocol protocol_chat = {
    .name = "chat",
    .path = "chat/completions",
    .dialect = "holo3",
    .request = chat_request,
    .optional = optional,
    .read_event = chat_read_event,
    .read_whole = chat_read_whole,
    .finish = chat_finish,
};
