/* protocol.c - functions shared by the request and reply code of all protocols. */
#include "remote/protocol.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_REPLY = 4 << 20, MAX_COUNT = 1 << 30 };

static const struct protocol *const all[] = {&protocol_chat, &protocol_responses, &protocol_messages};

const struct protocol *protocol_named(const char *name)
{
    for (size_t i = 0; name && i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i]->name, name))
            return all[i];
    return &protocol_chat;
}

const struct protocol *protocol_of_path(const char *path)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i]->path, path))
            return all[i];
    return &protocol_chat;
}

/* ---- replies -------------------------------------------------------------------------------------- */

void remote_reply_init(struct remote_reply *r)
{
    *r = (struct remote_reply){.prompt_tokens = -1, .tokens = -1, .cached = -1};
    buf_init(&r->text, MAX_REPLY);
    buf_init(&r->thought, MAX_REPLY);
    buf_init(&r->action, 2 * MAX_REPLY);
}

void remote_reply_free(struct remote_reply *r)
{
    buf_free(&r->text);
    buf_free(&r->thought);
    buf_free(&r->action);
    json_decref(r->calls);
    json_decref(r->native);
    json_decref(r->odds);
    json_decref(r->tokens_of);
    r->calls = r->native = r->odds = r->tokens_of = NULL;
}

void remote_reply_add(struct remote_reply *r, struct buf *to, const json_t *value)
{
    const char *text = json_string_value(value);
    size_t n = text ? json_string_length(value) : 0;
    if (!n)
        return;
    r->first_ns = r->first_ns ? r->first_ns : clock_ns();
    buf_put(to, text, n);
    if (r->on_text)
        r->on_text(r->arg, text, n);
}

int64_t remote_reply_count(const json_t *value, int64_t otherwise)
{
    json_int_t n = json_is_integer(value) ? json_integer_value(value) : -1;
    return n >= 0 && n <= MAX_COUNT ? n : otherwise;
}

void remote_reply_usage(struct remote_reply *r, const json_t *usage, const char *prompt, const char *reply)
{
    char details[40];
    snprintf(details, sizeof details, "%s_details", prompt);
    const json_t *cached = json_object_get(json_object_get(usage, details), "cached_tokens");
    r->prompt_tokens = remote_reply_count(json_object_get(usage, prompt), r->prompt_tokens);
    r->tokens = remote_reply_count(json_object_get(usage, reply), r->tokens);
    r->cached = remote_reply_count(cached, r->cached);
}

void remote_reply_error(struct remote_reply *r, json_t *root)
{
    if (!r->finished && !r->failed.class)
        failure_read(&r->failed, root);
}

void remote_reply_garbage(struct remote_reply *r, const char *data)
{
    enum failure_class known = *data == '{' || *data == '[' ? FAILURE_NONE : failure_of_text(data);
    if (r->finished || r->failed.class)
        return;
    if (known)
        failure_set(&r->failed, known, "%.200s", data);
    else
        failure_set(&r->failed, FAILURE_REPLY, "an event that is not JSON: %.100s", data);
}

/* ---- requests ------------------------------------------------------------------------------------- */

void request_set(const struct remote_turn *t, json_t *body, const char *key, json_t *value)
{
    if (endpoint_takes(t->endpoint, key))
        json_object_set_new(body, key, value);
    else
        json_decref(value);
}

json_t *request_real(float v)
{
    char text[32];
    snprintf(text, sizeof text, "%.6g", (double)v);
    return json_real(strtod(text, NULL));
}

const char *request_result(const json_t *message)
{
    const char *text = json_string_value(json_object_get(message, "result"));
    return text ? text : "";
}

json_t *request_parts(const json_t *message)
{
    json_t *content = json_object_get(message, "content"), *parts = json_array(), *part;
    size_t i, skip = strlen(request_result(message));
    json_array_foreach(content, i, part)
    {
        const char *text = json_string_value(json_object_get(part, "text"));
        if (!text || !skip) {
            json_array_append(parts, part);
            continue;
        }
        if (strlen(text) > skip)
            json_array_append_new(parts, json_pack("{s:s, s:s}", "type", "text", "text", text + skip));
        skip = 0;
    }
    return parts;
}

const char *request_base64(const json_t *part)
{
    const char *url = json_string_value(json_object_get(json_object_get(part, "image_url"), "url"));
    const char *comma = url ? strchr(url, ',') : NULL;
    return comma ? comma + 1 : NULL;
}

bool remote_reply_cut_off(struct remote_reply *r)
{
    if (!r->text.len || !strstr(r->failed.said, "output that does not match the expected"))
        return false;
    r->cut_off = r->finished = true;
    r->failed = (struct failure){0};
    return true;
}
