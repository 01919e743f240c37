/* reply_body.c - reads the body of a model server's reply, streamed or in one piece. */
#include "remote/reply_body.h"

#include <stdio.h>
#include <string.h>

enum { MAX_WHOLE = 64 << 20 };

static int on_event(void *arg, const char *data, size_t n)
{
    struct reply_body *r = arg;
    return r->protocol->read_event(&r->reply, data, n);
}

void reply_body_begin(struct reply_body *r, const struct protocol *p)
{
    *r = (struct reply_body){.protocol = p};
    remote_reply_init(&r->reply);
    events_init(&r->events, on_event, r);
    buf_init(&r->whole, MAX_WHOLE);
}

void reply_body_free(struct reply_body *r)
{
    remote_reply_free(&r->reply);
    events_free(&r->events);
    buf_free(&r->whole);
}

/* Skips a byte order mark, with which some servers begin. */
static void skip_mark(struct reply_body *r, const char **data, size_t *n)
{
    static const char mark[] = "\xef\xbb\xbf";
    while (*n && !*r->head && r->mark < 3 && **data == mark[r->mark])
        r->mark++, ++*data, --*n;
}

static void keep_head(struct reply_body *r, const char *data, size_t n)
{
    size_t have = strlen(r->head);
    for (size_t i = 0; i < n && have < sizeof r->head - 1; i++)
        r->head[have++] = data[i] >= ' ' && data[i] <= '~' ? data[i] : '.';
}

int reply_body_feed(struct reply_body *r, const char *data, size_t n)
{
    skip_mark(r, &data, &n);
    /* some proxies send whitespace to keep a connection alive */
    while (n && !*r->head && strchr(" \t\r\n", *data))
        data++, n--;
    bool first = !*r->head;
    keep_head(r, data, n);
    if (r->whole.len || (first && n && (*data == '{' || *data == '[')))
        return buf_put(&r->whole, data, n);
    return events_feed(&r->events, data, n);
}

/* Returns whether the body is empty or a stream of events. */
static bool is_stream(const struct reply_body *r)
{
    static const char *const fields[] = {":", "data:", "event:", "id:", "retry:", "error:"};
    bool stream = !*r->head;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        stream = stream || !strncmp(r->head, fields[i], strlen(fields[i]));
    return stream;
}

/* Returns whether a JSON text ends before its last bracket is closed. */
static bool is_half(const struct buf *json)
{
    json_error_t why = {0};
    json_auto_t *read = json_loadb(json->data, json->len, JSON_ALLOW_NUL, &why);
    return !read && json_error_code(&why) == json_error_premature_end_of_input;
}

/* Returns -1 with the failure if the reply contains nothing usable. A reply that was withheld on purpose is
 * not requested again. */
static int check_said(struct remote_reply *r)
{
    bool said = r->text.len || r->calls || (r->native && json_array_size(r->native));
    if (!said && r->withheld)
        failure_set(&r->failed, FAILURE_WITHHELD, "by the server's filter, or the model's refusal");
    return said || !r->withheld ? 0 : -1;
}

static int end_whole(struct reply_body *r)
{
    struct remote_reply *c = &r->reply;
    if (r->protocol->read_whole(c, r->whole.data, r->whole.len) == 0)
        return check_said(c);
    if (c->failed.class == FAILURE_REPLY && is_half(&r->whole))
        failure_set(&c->failed, FAILURE_CUT_OFF, "%s: the JSON ends too early", c->failed.said);
    else if (c->failed.class == FAILURE_REPLY && *r->head == '[')
        failure_set(&c->failed, FAILURE_ALIEN, "a list instead of a reply, beginning with: %s", r->head);
    return -1;
}

int reply_body_end(struct reply_body *r)
{
    struct remote_reply *c = &r->reply;
    if (r->whole.len)
        return end_whole(r);
    bool failed = c->failed.class != FAILURE_NONE;
    if (events_end(&r->events))
        failure_set(&c->failed, FAILURE_REPLY, "an event of more than 16 MiB");
    else if (!failed && c->failed.class == FAILURE_REPLY) /* the last event is incomplete */
        failure_set(&c->failed, FAILURE_CUT_OFF, "the stream ended in the middle of a reply");
    if (c->failed.class && !remote_reply_cut_off(c))
        return -1;
    if (c->finished)
        return check_said(c);
    enum failure_class known = is_stream(r) ? FAILURE_CUT_OFF : failure_of_text(r->head);
    if (is_stream(r))
        failure_set(&c->failed, known, "the stream ended in the middle of a reply");
    else
        failure_set(&c->failed, known ? known : FAILURE_ALIEN,
                    "something other than a reply, beginning with: %s", r->head);
    return -1;
}
