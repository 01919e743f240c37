/* chat_completions.c - see chat_completions.h. */
#include "remote/chat_completions.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_REPLY = 4 << 20 };

const char *const chat_optional[] = {
    "stream_options", "response_format", "structured_outputs",   "guided_json", "seed",
    "top_p",          "temperature",     "chat_template_kwargs", NULL};

void chat_reply_init(struct chat_reply *r)
{
    *r = (struct chat_reply){.prompt_tokens = -1, .tokens = -1, .cached = -1};
    buf_init(&r->text, MAX_REPLY);
    buf_init(&r->thought, MAX_REPLY);
    buf_init(&r->call, MAX_REPLY);
    buf_init(&r->call_arguments, MAX_REPLY);
}

void chat_reply_free(struct chat_reply *r)
{
    buf_free(&r->text);
    buf_free(&r->thought);
    buf_free(&r->call);
    buf_free(&r->call_arguments);
}

/* ---- the request --------------------------------------------------------------------------------- */

static void set_optional(const struct endpoint *p, json_t *body, const char *key, json_t *value)
{
    if (endpoint_takes(p, key))
        json_object_set_new(body, key, value);
    else
        json_decref(value);
}

/* 0.8f as 0.8. */
static json_t *real(float v)
{
    char text[32];
    snprintf(text, sizeof text, "%.6g", (double)v);
    return json_real(strtod(text, NULL));
}

static void set_constraint(const struct endpoint *p, json_t *body, json_t *schema)
{
    const char *way = p->constraint ? p->constraint : "response_format";
    if (!strcmp(way, "response_format"))
        set_optional(p, body, way,
                     json_pack("{s:s, s:{s:s, s:b, s:O}}", "type", "json_schema", "json_schema", "name",
                               "step", "strict", 1, "schema", schema));
    else if (!strcmp(way, "structured_outputs"))
        set_optional(p, body, way, json_pack("{s:O}", "json", schema));
    else if (!strcmp(way, "guided_json"))
        set_optional(p, body, way, json_incref(schema));
}

json_t *chat_request(const struct endpoint *p, json_t *messages, const struct llm_request *r, uint64_t seed,
                     json_t *schema)
{
    json_t *body = json_pack("{s:s, s:O, s:i, s:b}", "model", p->model, "messages", messages, "max_tokens",
                             r->sampling.max_tokens, "stream", 1);
    set_optional(p, body, "stream_options", json_pack("{s:b}", "include_usage", 1));
    set_optional(p, body, "temperature", real(r->sampling.temperature));
    if (r->sampling.temperature > 0) {
        set_optional(p, body, "seed", json_integer((json_int_t)((seed + (uint64_t)r->resample) & INT32_MAX)));
        if (r->sampling.top_p < 1)
            set_optional(p, body, "top_p", real(r->sampling.top_p));
    }
    if (schema)
        set_constraint(p, body, schema);
    if (p->extra)
        json_object_update(body, p->extra);
    return body;
}

/* ---- the reply ------------------------------------------------------------------------------------- */

static void add_text(struct chat_reply *r, struct buf *to, const json_t *value)
{
    const char *text = json_string_value(value);
    size_t n = text ? json_string_length(value) : 0;
    if (!n)
        return;
    buf_put(to, text, n);
    if (r->on_text)
        r->on_text(r->arg, text, n);
}

/* "content" is a string, or a list of parts with texts. */
static void add_content(struct chat_reply *r, json_t *content)
{
    json_t *part;
    size_t i;
    add_text(r, &r->text, content);
    json_array_foreach(content, i, part) add_text(r, &r->text, json_object_get(part, "text"));
}

/* Of several calls the first is taken: a step has one. */
static void add_calls(struct chat_reply *r, json_t *calls)
{
    json_t *call;
    size_t i;
    json_array_foreach(calls, i, call)
    {
        json_t *index = json_object_get(call, "index"), *f = json_object_get(call, "function");
        if ((index ? json_integer_value(index) : (json_int_t)i) != 0)
            continue;
        add_text(r, &r->call, json_object_get(f, "name"));
        json_t *arguments = json_object_get(f, "arguments");
        if (json_is_object(arguments)) { /* some servers have parsed them already */
            char *text = json_dumps(arguments, JSON_COMPACT);
            buf_puts(&r->call_arguments, text);
            free(text);
        }
        add_text(r, &r->call_arguments, arguments);
    }
}

static void read_usage(struct chat_reply *r, const json_t *usage)
{
    const json_t *prompt = json_object_get(usage, "prompt_tokens"),
                 *reply = json_object_get(usage, "completion_tokens"),
                 *cached = json_object_get(json_object_get(usage, "prompt_tokens_details"), "cached_tokens");
    r->prompt_tokens = json_is_integer(prompt) ? json_integer_value(prompt) : r->prompt_tokens;
    r->tokens = json_is_integer(reply) ? json_integer_value(reply) : r->tokens;
    r->cached = json_is_integer(cached) ? json_integer_value(cached) : r->cached;
}

static void read_error(struct chat_reply *r, const json_t *error)
{
    const char *said = json_string_value(json_object_get(error, "message"));
    said = said ? said : json_string_value(error);
    if (error && !json_is_null(error))
        snprintf(r->error, sizeof r->error, "%s", said ? said : "an error without a message");
}

/* One choice: `body` is its "message" or "delta". */
static void read_choice(struct chat_reply *r, const json_t *choice, json_t *body)
{
    const char *why = json_string_value(json_object_get(choice, "finish_reason"));
    json_t *reasoning = json_object_get(body, "reasoning");
    add_text(r, &r->thought,
             json_is_string(reasoning) ? reasoning : json_object_get(body, "reasoning_content"));
    add_content(r, json_object_get(body, "content"));
    add_calls(r, json_object_get(body, "tool_calls"));
    r->finished = r->finished || why;
    r->cut_off = r->cut_off || (why && !strcmp(why, "length"));
}

static json_t *first_choice(const json_t *root)
{
    return json_array_get(json_object_get(root, "choices"), 0);
}

int chat_read_event(struct chat_reply *r, const char *data, size_t n)
{
    if (n == 6 && !memcmp(data, "[DONE]", 6)) {
        r->finished = true;
        return 1;
    }
    json_t *root = json_loadb(data, n, 0, NULL), *choice = first_choice(root);
    if (!json_is_object(root))
        snprintf(r->error, sizeof r->error, "an event that is not JSON: %.100s", data);
    if (choice)
        read_choice(r, choice, json_object_get(choice, "delta"));
    read_usage(r, json_object_get(root, "usage"));
    read_error(r, json_object_get(root, "error"));
    json_decref(root);
    return *r->error != 0;
}

int chat_read_whole(struct chat_reply *r, const char *data, size_t n, struct err *e)
{
    json_error_t je;
    json_t *root = json_loadb(data, n, 0, &je), *choice = first_choice(root);
    if (choice)
        read_choice(r, choice, json_object_get(choice, "message"));
    read_usage(r, json_object_get(root, "usage"));
    read_error(r, json_object_get(root, "error"));
    bool good = choice && !*r->error;
    if (!good)
        err_set(e, ERR_MODEL, "the server's reply holds no message%s%s", *r->error ? ": " : "", r->error);
    json_decref(root);
    return good ? 0 : -1;
}
