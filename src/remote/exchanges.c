/* exchanges.c - records the requests to an endpoint and its replies as JSON lines. */
#include "remote/exchanges.h"

#include "base/json.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_PICTURE = 64, MAX_LINE = 96 << 20 };

/* ---- images --------------------------------------------------------------------------------------- */

static json_t *hash_of(const char *text, size_t n)
{
    char hex[65];
    sha256(text, n, hex);
    autofree char *name = xasprintf("sha256:%s", hex);
    return json_string(name);
}

/* Returns whether a value is image data: the "data" of {"type": "base64"}, or any string that begins as a
 * data URL. */
static bool is_picture(const char *key, const json_t *v, const json_t *within)
{
    size_t n = json_string_length(v);
    return json_is_string(v) && n > LEAST_PICTURE &&
           (!strncmp(json_string_value(v), "data:image/", 11) ||
            (key && !strcmp(key, "data") && json_object_get(within, "media_type")));
}

static json_t *without(const json_t *v, int depth)
{
    json_t *out, *one;
    const char *key;
    size_t i;
    if (depth > 32 || (!json_is_object(v) && !json_is_array(v)))
        return json_incref((json_t *)(uintptr_t)v);
    if (json_is_array(v)) {
        out = json_array();
        json_array_foreach((json_t *)(uintptr_t)v, i, one)
            json_array_append_new(out, without(one, depth + 1));
        return out;
    }
    out = json_object();
    json_object_foreach((json_t *)(uintptr_t)v, key, one)
        json_object_set_new(out, key,
                            is_picture(key, one, v) ? hash_of(json_string_value(one), json_string_length(one))
                                                    : without(one, depth + 1));
    return out;
}

json_t *exchange_without_pictures(const json_t *body)
{
    return without(body, 0);
}

/* ---- recording ------------------------------------------------------------------------------------- */

static size_t shared(const json_t *a, const json_t *b)
{
    size_t i = 0;
    while (i < json_array_size(a) && i < json_array_size(b) &&
           json_equal(json_array_get(a, i), json_array_get(b, i)))
        i++;
    return i;
}

/* Removes the messages that the previous request already had. Returns their number. */
static size_t drop_kept(struct exchange_log *l, json_t *body)
{
    const char *key = json_object_get(body, "messages") ? "messages" : "input";
    json_t *all = json_object_get(body, key), *fresh = json_array();
    size_t kept = shared(l->before, all);
    for (size_t i = kept; i < json_array_size(all); i++)
        json_array_append(fresh, json_array_get(all, i));
    json_decref(l->before);
    l->before = json_incref(all);
    json_object_set_new(body, key, fresh);
    return kept;
}

void exchange_log_add(struct exchange_log *l, const char *path, const json_t *body, int status,
                      const struct buf *reply, const char *error)
{
    static int conversations;
    if (!l->put)
        return;
    if (!l->conversation)
        l->conversation = __atomic_add_fetch(&conversations, 1, __ATOMIC_RELAXED);
    json_t *plain = exchange_without_pictures(body);
    size_t kept = drop_kept(l, plain);
    json_auto_t *all = json_pack("{s:i, s:i}", "conversation", l->conversation, "n", ++l->n);
    json_set_text(all, "path", path);
    json_object_set_new(all, "status", json_integer(status));
    json_object_set_new(all, "kept", json_integer((json_int_t)kept));
    json_object_set_new(all, "request", plain);
    json_object_set_new(all, "reply", json_clean_stringn(reply->data ? reply->data : "", reply->len));
    json_set_text(all, "error", error);
    autofree char *text = json_line(all, JSON_COMPACT);
    autobuf line = buf_of(MAX_LINE);
    buf_puts(&line, text ? text : "{}");
    if (l->key && !line.full && secrets_contained_in(l->key, line.data))
        secrets_scrub_json(l->key, &line);
    if (!line.full && l->put(l->arg, line.data, line.len))
        l->put = NULL; /* the disk is full; writing the run's trace fails too and reports it */
}

void exchange_log_end(struct exchange_log *l)
{
    json_decref(l->before);
    *l = (struct exchange_log){0};
}
