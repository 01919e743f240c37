/* turns.c - the message list of a conversation: which messages a request has, and how a reply is added. */
#include "remote/turns.h"

#include <stdlib.h>

static bool has_picture(const json_t *part)
{
    return json_object_get(part, "image_url") != NULL;
}

int turns_pictures(const json_t *messages)
{
    json_t *m, *part;
    size_t i, k;
    int n = 0;
    json_array_foreach((json_t *)(uintptr_t)messages, i, m)
        json_array_foreach(json_object_get(m, "content"), k, part) n += has_picture(part);
    return n;
}

/* Returns a copy of a message in which the first *drop images are replaced by a placeholder. */
static json_t *without_pictures(json_t *message, const char *placeholder, int *drop)
{
    json_t *copy = json_copy(message), *content = json_array(), *part;
    size_t i;
    json_array_foreach(json_object_get(message, "content"), i, part)
    {
        if (has_picture(part) && *drop > 0 && (*drop)-- > 0)
            json_array_append_new(content, json_pack("{s:s, s:s}", "type", "text", "text", placeholder));
        else
            json_array_append(content, part);
    }
    json_object_set_new(copy, "content", content);
    return copy;
}

json_t *turns_to_send(json_t *messages, int most, const char *placeholder)
{
    int drop = turns_pictures(messages) - most;
    json_t *out = json_array(), *m;
    size_t i;
    if (!most || drop <= 0) {
        json_decref(out);
        return json_incref(messages);
    }
    json_array_foreach(messages, i, m)
    {
        if (drop > 0 && json_is_array(json_object_get(m, "content")))
            json_array_append_new(out, without_pictures(m, placeholder, &drop));
        else
            json_array_append(out, m);
    }
    return out;
}

static bool has_checks(const json_t *items)
{
    json_t *item;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)items, i,
                       item) if (json_array_size(json_object_get(item, "pending_safety_checks"))) return true;
    return false;
}

/* Returns the calls in the form that is sent back; a call without an id gets one. */
static json_t *calls_of(const struct remote_reply *c, size_t place)
{
    json_t *call, *calls = json_array();
    size_t i;
    json_array_foreach(c->calls, i, call)
    {
        const char *id = json_string_value(json_object_get(call, "id"));
        autofree char *own = xasprintf("call_%zu_%zu", place, i);
        json_array_append_new(calls, json_pack("{s:s, s:s, s:{s:O, s:O}}", "id", id && *id ? id : own, "type",
                                               "function", "function", "name", json_object_get(call, "name"),
                                               "arguments", json_object_get(call, "arguments")));
    }
    return calls;
}

json_t *turn_of_reply(const struct remote_reply *c, const char *text, size_t place)
{
    const char *said = c->text.len ? c->text.data : "";
    json_t *turn =
        json_pack("{s:s, s:s}", "role", "assistant", "content", c->calls || c->native ? said : text);
    if (!turn) /* the text is not valid UTF-8 */
        turn = json_pack("{s:s, s:s}", "role", "assistant", "content", "");
    if (c->calls)
        json_object_set_new(turn, "tool_calls", calls_of(c, place));
    if (c->thought.len)
        json_object_set_new(turn, "reasoning", json_string(c->thought.data));
    if (c->native)
        json_object_set(turn, "native", c->native);
    if (has_checks(c->native))
        json_object_set_new(turn, "checks", json_true());
    return turn;
}
