/* reply_body.c - see reply_body.h. */
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

/* A byte order mark, which some servers begin with. */
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
    while (n && !*r->head && strchr(" \t\r\n", *data)) /* some proxies keep a connection alive like that */
        data++, n--;
    bool first = !*r->head;
    keep_head(r, data, n);
    if (r->whole.len || (first && n && *data == '{'))
        return buf_put(&r->whole, data, n);
    return events_feed(&r->events, data, n);
}

/* What the server says that there is no reply for is not asked for again. */
static int check_said(const struct remote_reply *r, struct err *e)
{
    bool said = r->text.len || r->calls || (r->native && json_array_size(r->native));
    return said || !r->withheld
               ? 0
               : err_set(e, ERR_MODEL, "the server withholds the reply: its filter, or the model's refusal");
}

int reply_body_end(struct reply_body *r, struct err *e)
{
    if (r->whole.len)
        return r->protocol->read_whole(&r->reply, r->whole.data, r->whole.len, e) ? -1
                                                                                  : check_said(&r->reply, e);
    if (events_end(&r->events))
        return err_set(e, ERR_MODEL, "the server sent an event of more than 16 MiB");
    if (*r->reply.error && !remote_reply_cut_off(&r->reply))
        return err_set(e, ERR_MODEL, "the server broke off: %s", r->reply.error);
    if (r->reply.finished)
        return check_said(&r->reply, e);
    if (!reply_body_was_cut(r))
        return err_set(e, ERR_ENV, "the server sends something else than a reply, which begins: %s", r->head);
    return err_set(e, ERR_ENV, "the stream ended in the middle of a reply");
}

bool reply_body_was_cut(const struct reply_body *r)
{
    static const char *const fields[] = {":", "data:", "event:", "id:", "retry:"};
    bool stream = !*r->head;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        stream = stream || !strncmp(r->head, fields[i], strlen(fields[i]));
    return stream;
}
