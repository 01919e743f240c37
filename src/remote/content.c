/* content.c - converts turns and conversations to JSON messages with images as data URLs. */
#include "remote/content.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PICTURE = 64 << 20, MAX_TEXT = 64 << 20 };

/* ---- parts ------------------------------------------------------------------------------------------- */

/* Encodes a screenshot as PNG, scaled to the size to which the dialect's coordinates refer. *shown: that
 * size. */
static int encode(const struct dialect *d, const struct image *im, struct content_size *shown, void **png,
                  uint64_t *len, struct err *e)
{
    struct image small = {0};
    *shown = (struct content_size){im->w, im->h};
    if (d->coords != COORD_FIT || !dialect_picture_size(COORD_FIT, &shown->w, &shown->h))
        return image_encode_png(im, png, len, e);
    int rc = image_shrink(&small, im, shown->w, shown->h, e);
    rc = rc ? rc : image_encode_png(&small, png, len, e);
    image_free(&small);
    return rc;
}

static json_t *picture_part(const struct dialect *d, const struct image *im, struct content_size *shown,
                            struct err *e)
{
    autofree void *png = NULL;
    uint64_t len = 0;
    struct buf url;
    if (encode(d, im, shown, &png, &len, e))
        return NULL;
    buf_init(&url, MAX_PICTURE);
    buf_puts(&url, "data:image/png;base64,");
    buf_put_base64(&url, png, len);
    json_t *part =
        url.full ? NULL : json_pack("{s:s, s:{s:s}}", "type", "image_url", "image_url", "url", url.data);
    if (!part)
        err_set(e, ERR_ENV, "a screenshot of %dx%d is too large to be sent", im->w, im->h);
    buf_free(&url);
    return part;
}

struct parts { /* parts of one user message */
    const struct dialect *dialect;
    const struct chat_part *list;
    int n;
    struct content_size *shown;
    json_t *content;
};

static int add_parts(const struct parts *p, bool pictures, bool texts, struct err *e)
{
    for (int i = 0; i < p->n; i++) {
        const struct chat_part *from = &p->list[i];
        json_t *part = NULL;
        if (from->image && pictures && !(part = picture_part(p->dialect, from->image, p->shown, e)))
            return -1;
        if (!from->image && texts && from->text && *from->text)
            part = json_pack("{s:s, s:s}", "type", "text", "text", from->text);
        if (part)
            json_array_append_new(p->content, part);
    }
    return 0;
}

/* Appends images before texts if the dialect's template does so. Inline images, and images followed by a
 * text, keep their order, because the texts around them are a wrapper. */
static int add_content(const struct parts *p, enum chat_place place, struct err *e)
{
    const char *last = p->n ? p->list[p->n - 1].text : NULL;
    if (place == CHAT_PLACE_INLINE || (last && *last))
        return add_parts(p, true, true, e);
    return add_parts(p, true, false, e) || add_parts(p, false, true, e) ? -1 : 0;
}

/* Returns the result of the last action: the text before the opening wrapper of the observation. The caller
 * frees it. */
static char *result_of(const struct dialect *d, const struct chat_part *parts, int n)
{
    const char *lead = n && parts[0].text ? parts[0].text : "";
    size_t len = strlen(lead), open = strlen(d->observation_open);
    bool wrapped = n > 1 && len >= open && !strcmp(lead + len - open, d->observation_open);
    return xasprintf("%.*s", wrapped ? (int)(len - open) : 0, lead);
}

json_t *content_user(const struct dialect *d, const struct chat_part *parts, int n, enum chat_place place,
                     struct content_size *shown, struct err *e)
{
    const struct parts p = {d, parts, n, shown, json_array()};
    if (add_content(&p, place, e)) {
        json_decref(p.content);
        return NULL;
    }
    autofree char *result = result_of(d, parts, n);
    return json_pack("{s:s, s:o, s:s}", "role", "user", "content", p.content, "result", result);
}

/* ---- conversations ----------------------------------------------------------------------------------- */

static json_t *joined(const struct chat_message *m)
{
    autobuf text = buf_of(MAX_TEXT);
    for (int i = 0; i < m->n; i++)
        buf_puts(&text, m->parts[i].text ? m->parts[i].text : "");
    return json_stringn(text.data ? text.data : "", text.len);
}

static json_t *call_id(int message, int i)
{
    char name[40];
    snprintf(name, sizeof name, "call_%d_%d", message, i);
    return json_string(name);
}

/* Converts {"name", "arguments": {...}} to {"id", "type", "function": {"name", "arguments": TEXT}}. */
static json_t *call_of(const char *text, int message, int i)
{
    json_auto_t *call = json_loads(text, 0, NULL);
    autofree char *arguments = json_dumps(json_object_get(call, "arguments"), JSON_COMPACT);
    return json_pack("{s:o, s:s, s:{s:O, s:s}}", "id", call_id(message, i), "type", "function", "function",
                     "name", json_object_get(call, "name"), "arguments", arguments);
}

static json_t *assistant(const struct chat_message *m, int place)
{
    json_t *out = json_pack("{s:s, s:o}", "role", "assistant", "content", joined(m)), *calls = json_array();
    for (int i = 0; i < m->n_calls; i++)
        json_array_append_new(calls, call_of(m->calls[i], place, i));
    if (m->reasoning)
        json_object_set_new(out, "reasoning", json_string(m->reasoning));
    if (m->n_calls)
        json_object_set(out, "tool_calls", calls);
    json_decref(calls);
    return out;
}

/* Returns a tool message for the result at index `at`, with the id of the call at the same position among the
 * calls of the preceding assistant message. */
static json_t *result(const struct chat_conversation *c, int at)
{
    int asked = at;
    while (asked > 0 && c->messages[asked].role == CHAT_TOOL)
        asked--;
    return json_pack("{s:s, s:o, s:o}", "role", "tool", "tool_call_id", call_id(asked, at - asked - 1),
                     "content", joined(&c->messages[at]));
}

json_t *content_conversation(const struct dialect *d, const struct chat_conversation *c,
                             struct content_size *shown, struct err *e)
{
    json_t *list = json_array();
    for (int i = 0; i < c->n; i++) {
        const struct chat_message *m = &c->messages[i];
        json_t *one = m->role == CHAT_ASSISTANT ? assistant(m, i)
                      : m->role == CHAT_TOOL    ? result(c, i)
                      : m->role == CHAT_USER
                          ? content_user(d, m->parts, m->n, CHAT_PLACE_INLINE, shown, e)
                          : json_pack("{s:s, s:o}", "role", "system", "content", joined(m));
        if (!one) {
            json_decref(list);
            return NULL;
        }
        json_object_del(one, "result"); /* in such a conversation, no text is the result of an action */
        json_array_append_new(list, one);
    }
    return list;
}

json_t *content_tools(const struct chat_conversation *c)
{
    json_t *list = c->n_tools ? json_array() : NULL;
    for (int i = 0; i < c->n_tools; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:o}", "type", "function", "function", json_loads(c->tools[i], 0, NULL)));
    return list;
}
