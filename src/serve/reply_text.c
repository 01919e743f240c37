/* reply_text.c - see reply_text.h. */
#include "serve/reply_text.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 16 << 20 };

static const char think_end[] = "</think>", calls_begin[] = "<TOOLCALL>", calls_end[] = "</TOOLCALL>";

void reply_text_init(struct reply_text *r, bool think, bool tools, const char *const *stops, int n_stops)
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

/* Drops the first n bytes of what is held. */
static void let_go(struct reply_text *r, size_t n)
{
    memmove(r->held.data, r->held.data + n, r->held.len - n + 1);
    r->held.len -= n;
}

/* How many bytes at the end of text[n] may be the beginning of `mark`. */
static size_t begun(const char *text, size_t n, const char *mark)
{
    size_t most = strlen(mark) - 1;
    for (size_t k = n < most ? n : most; k > 0; k--)
        if (!memcmp(text + n - k, mark, k))
            return k;
    return 0;
}

struct found { /* the first mark in the text, and the longest beginning of one at its end */
    size_t at, len, begun;
    int which; /* -1: none; n_stops: the end of a thought; one more: the beginning of calls */
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
    if (r->now == REPLY_CONTENT && r->tools)
        look_for(&f, &r->held, calls_begin, r->n_stops + 1);
    return f;
}

void reply_text_feed(struct reply_text *r, const char *text, size_t n)
{
    if (r->stopped || !n)
        return;
    buf_put(&r->held, text, n);
    for (;;) {
        struct found f = look(r);
        if (f.which < 0) {
            pass_on(r, r->held.data, r->held.len - f.begun);
            let_go(r, r->held.len - f.begun);
            return;
        }
        pass_on(r, r->held.data, f.at);
        let_go(r, f.at + f.len);
        if (f.which < r->n_stops) {
            r->stopped = true;
            r->stopped_by = f.which;
            buf_clear(&r->held);
            return;
        }
        r->blank = r->now == REPLY_THOUGHT;
        r->now = r->now == REPLY_THOUGHT ? REPLY_CONTENT : REPLY_CALLS;
    }
}

void reply_text_end(struct reply_text *r)
{
    if (r->held.len)
        pass_on(r, r->held.data, r->held.len);
    buf_clear(&r->held);
}

/* ---- calls -------------------------------------------------------------------------------------------- */

static json_t *call_of(json_t *call, const char *id, size_t i)
{
    const char *name = json_string_value(json_object_get(call, "name"));
    json_t *arguments = json_object_get(call, "arguments");
    if (!name || !json_is_object(arguments))
        return NULL;
    char *text = json_dumps(arguments, 0), *full = xasprintf("%s-%zu", id, i);
    json_t *out = json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", full, "type", "function", "function", "name",
                            name, "arguments", text);
    free(text);
    free(full);
    return out;
}

static json_t *calls_of(const struct buf *text, const char *id)
{
    const char *end = text->len ? strstr(text->data, calls_end) : NULL;
    json_t *list = end ? json_loadb(text->data, (size_t)(end - text->data), 0, NULL) : NULL, *call;
    json_t *out = json_is_array(list) && json_array_size(list) ? json_array() : NULL;
    size_t i;
    json_array_foreach(list, i, call)
    {
        json_t *one = out ? call_of(call, id, i) : NULL;
        if (!one) {
            json_decref(out);
            out = NULL;
            break;
        }
        json_array_append_new(out, one);
    }
    json_decref(list);
    return out;
}

json_t *reply_text_calls(struct reply_text *r, const char *id)
{
    if (r->now != REPLY_CALLS)
        return NULL;
    json_t *calls = calls_of(&r->parts[REPLY_CALLS], id);
    if (calls)
        return calls;
    r->now = REPLY_CONTENT;
    pass_on(r, calls_begin, strlen(calls_begin));
    if (r->parts[REPLY_CALLS].len)
        pass_on(r, r->parts[REPLY_CALLS].data, r->parts[REPLY_CALLS].len);
    return NULL;
}
