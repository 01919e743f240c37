/* api.c - functions that the HTTP protocols share; see api.h. */
#include "serve/api.h"

#include "base/buf.h"
#include "base/json.h"
#include "serve/reply_json.h"

#include <stdlib.h>
#include <string.h>

static const struct api *const all[] = {&api_chat, &api_responses, &api_responses_count, &api_messages,
                                        &api_messages_count};

const struct api *api_of(const char *path)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(path, all[i]->path))
            return all[i];
    return NULL;
}

void api_put(struct buf *out, json_t *v)
{
    autofree char *text = json_line(v, JSON_COMPACT);
    buf_puts(out, text ? text : "null");
    json_decref(v);
}

void api_put_event(struct buf *out, const char *name, json_t *v)
{
    buf_printf(out, "event: %s\ndata: ", name);
    api_put(out, v);
    buf_puts(out, "\n\n");
}

char *api_id(const struct completion *c, const char *front)
{
    return xasprintf("%s%s", front, c->id + strlen("chatcmpl-"));
}

/* ---- for translations ------------------------------------------------------------------------------- */

bool api_is(const json_t *object, const char *type)
{
    const char *t = json_text(object, "type");
    return t && !strcmp(t, type);
}

void api_move(json_t *ours, json_t *theirs, const struct api_rename *names, const char *const *own)
{
    const char *key;
    json_t *v;
    json_object_foreach(theirs, key, v)
    {
        const struct api_rename *n = names;
        while (n->theirs && strcmp(n->theirs, key) != 0)
            n++;
        if (n->theirs || !text_listed(own, key))
            json_object_set(ours, n->theirs ? n->ours : key, v);
    }
}

void api_add_call(json_t *messages, const json_t *id, const json_t *name, json_t *arguments)
{
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    if (!role || strcmp(role, "assistant") != 0) {
        last = json_pack("{s:s, s:s}", "role", "assistant", "content", "");
        json_array_append_new(messages, last);
    }
    json_t *calls = json_object_get(last, "tool_calls");
    if (!calls) {
        calls = json_array();
        json_object_set_new(last, "tool_calls", calls);
    }
    json_array_append_new(calls, json_pack("{s:O?, s:s, s:{s:O?, s:O?}}", "id", id, "type", "function",
                                           "function", "name", name, "arguments", arguments));
}

json_t *api_response_format(const json_t *schema)
{
    return schema ? json_pack("{s:s, s:{s:O}}", "type", "json_schema", "json_schema", "schema", schema)
                  : NULL;
}
