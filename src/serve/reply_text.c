/* reply_text.c - splits generated text into reasoning, content and tool calls; see reply_text.h. */
#include "serve/reply_text.h"

#include "actions/calls.h"
#include "base/err.h"
#include "jinja/jinja.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 16 << 20 };

static const char think_end[] = "</think>";

void reply_text_init(struct reply_text *r, bool think, const json_t *tools, const char *const *stops,
                     int n_stops)
{
    *r = (struct reply_text){
        .now = think ? REPLY_THOUGHT : REPLY_CONTENT, .tools = tools, .stops = stops, .n_stops = n_stops};
    for (int i = 0; i < REPLY_PARTS; i++)
        buf_init(&r->parts[i], MAX_TEXT);
    buf_init(&r->held, MAX_TEXT);
}

void reply_text_free(struct reply_text *r)
{
    for (int i = 0; i < REPLY_PARTS; i++)
        buf_free(&r->parts[i]);
    buf_free(&r->held);
    json_decref(r->calls);
    r->calls = NULL;
}

static void pass_on(struct reply_text *r, const char *text, size_t n)
{
    while (r->blank && n && *text == '\n') {
        text++;
        n--;
    }
    if (!n)
        return;
    r->blank = false;
    buf_put(&r->parts[r->now], text, n);
    if (r->on_text)
        r->on_text(r->arg, r->now, text, n);
}

/* Discards the first n bytes of the held text. */
static void drop_held(struct reply_text *r, size_t n)
{
    memmove(r->held.data, r->held.data + n, r->held.len - n + 1);
    r->held.len -= n;
}

/* Returns how many bytes at the end of text[n] may be the beginning of `mark`. */
static size_t begun(const char *text, size_t n, const char *mark)
{
    size_t most = strlen(mark) - 1;
    for (size_t k = n < most ? n : most; k > 0; k--)
        if (!memcmp(text + n - k, mark, k))
            return k;
    return 0;
}

struct found { /* the first mark in the text, and the longest partial mark at its end */
    size_t at, len, begun;
    int which; /* -1: none; n_stops: end of the reasoning */
};

static void look_for(struct found *f, const struct buf *text, const char *mark, int which)
{
    const char *p = memmem(text->data, text->len, mark, strlen(mark));
    if (p && (f->which < 0 || (size_t)(p - text->data) < f->at))
        *f = (struct found){(size_t)(p - text->data), strlen(mark), f->begun, which};
    size_t k = begun(text->data, text->len, mark);
    f->begun = k > f->begun ? k : f->begun;
}

static struct found look(const struct reply_text *r)
{
    struct found f = {.which = -1};
    if (r->now == REPLY_THOUGHT)
        look_for(&f, &r->held, think_end, r->n_stops);
    for (int i = 0; r->now == REPLY_CONTENT && i < r->n_stops; i++)
        look_for(&f, &r->held, r->stops[i], i);
    return f;
}

/* ---- tools of the request ------------------------------------------------------------------------------ */

static const json_t *find_tool(const json_t *tools, const char *name)
{
    size_t i;
    json_t *tool;
    json_array_foreach(tools, i, tool)
    {
        const json_t *f = json_object_get(tool, "function");
        const char *other = json_string_value(json_object_get(f, "name"));
        if (other && !strcmp(other, name))
            return f;
    }
    return NULL;
}

static const json_t *properties(const json_t *tools, const char *name)
{
    return json_object_get(json_object_get(find_tool(tools, name), "parameters"), "properties");
}

static bool is_tool(const void *tools, const char *name)
{
    return find_tool(tools, name) != NULL;
}

static bool is_parameter(const void *tools, const char *tool, const char *name)
{
    return json_object_get(properties(tools, tool), name) != NULL;
}

static const char *nth_parameter(const void *tools, const char *tool, int n)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)properties(tools, tool), key, value) if (n-- == 0) return key;
    return NULL;
}

static struct calls_hints hints_of(const struct reply_text *r)
{
    return (struct calls_hints){is_tool, is_parameter, nth_parameter, r->tools};
}

/* Returns the length of the held text that is certainly content; white space before a call is not. */
static size_t certain(const struct reply_text *r)
{
    if (!r->tools || r->now == REPLY_THOUGHT)
        return r->held.len;
    const struct calls_hints hints = hints_of(r);
    size_t n = calls_safe_prefix(r->held.data, r->held.len, &hints);
    while (n && strchr(" \n\r\t", r->held.data[n - 1]))
        n--;
    return n;
}

void reply_text_feed(struct reply_text *r, const char *text, size_t n)
{
    if (r->stopped || !n)
        return;
    buf_put(&r->held, text, n);
    for (;;) {
        struct found f = look(r);
        if (f.which < 0) {
            size_t sure = certain(r), open = r->held.len - f.begun;
            sure = sure < open ? sure : open;
            pass_on(r, r->held.data, sure);
            drop_held(r, sure);
            return;
        }
        if (f.which < r->n_stops) {
            r->stopped = true;
            r->stopped_by = f.which;
            r->held.len = f.at;
            r->held.data[f.at] = 0;
            return;
        }
        pass_on(r, r->held.data, f.at);
        drop_held(r, f.at + f.len);
        r->blank = true;
        r->now = REPLY_CONTENT;
    }
}

/* ---- calls -------------------------------------------------------------------------------------------- */

static json_t *call_json(struct call *call, const json_t *tools)
{
    calls_convert(call, properties(tools, call->name));
    autofree char *text = jinja_json_text(call->arguments);
    return json_pack("{s:s, s:{s:s, s:s}}", "type", "function", "function", "name", call->name, "arguments",
                     text);
}

/* Extracts the calls from the held text and passes the content on. */
static void read_calls(struct reply_text *r)
{
    const struct calls_hints hints = hints_of(r);
    struct calls calls;
    autobuf content = buf_of(MAX_TEXT);
    calls_read(r->held.data, r->held.len, &hints, &calls);
    for (int i = 0; i < calls.n; i++) {
        if (calls.list[i].fault)
            continue;
        r->calls = r->calls ? r->calls : json_array();
        json_array_append_new(r->calls, call_json(&calls.list[i], r->tools));
    }
    calls_content(r->held.data, r->held.len, &calls, &content);
    while (r->calls && content.len && strchr(" \n\r\t", content.data[content.len - 1]))
        content.len--;
    if (content.len)
        pass_on(r, content.data, content.len);
    calls_free(&calls);
}

void reply_text_end(struct reply_text *r)
{
    if (r->held.len && r->tools && r->now == REPLY_CONTENT)
        read_calls(r);
    else if (r->held.len)
        pass_on(r, r->held.data, r->held.len);
    buf_clear(&r->held);
}

json_t *reply_text_calls(const struct reply_text *r, const char *id)
{
    json_t *out = r->calls ? json_array() : NULL, *call;
    size_t i;
    json_array_foreach(r->calls, i, call)
    {
        autofree char *full = xasprintf("%s-%zu", id, i);
        json_t *one = json_pack("{s:s}", "id", full);
        json_object_update(one, call);
        json_array_append_new(out, one);
    }
    return out;
}
