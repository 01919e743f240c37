/* llm_remote.c - see llm_remote.h.
 *
 * Only the end of the list changes between two requests, so that the server's prefix cache can hold the rest.
 * A picture is encoded once, as the PNG in a data URL that every later request repeats.
 */
#include "remote/llm_remote.h"

#include "base/clock.h"
#include "base/flag.h"
#include "remote/chat_completions.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PICTURE = 64 << 20, BROKEN_STREAMS = 3 };

struct remote_llm {
    struct llm base;
    struct endpoint *endpoint;
    struct http_client *http;
    const struct dialect *dialect;
    uint64_t seed;
    char *session;
    const volatile int *stop; /* of the screen; may be NULL */
    json_t *messages;
    int64_t length; /* tokens of the conversation, as the server counted them last */
    struct session_stats stats;
};

struct remote_mark {
    json_t *messages;
    int64_t length;
};

static struct remote_llm *remote_of(const struct llm *m)
{
    return (struct remote_llm *)(uintptr_t)m;
}

/* ---- the conversation ------------------------------------------------------------------------------ */

static int remote_begin(struct llm *m, const char *system, struct err *e)
{
    struct remote_llm *r = remote_of(m);
    json_decref(r->messages);
    r->messages = json_array();
    r->length = 0;
    if (*system)
        json_array_append_new(r->messages, json_pack("{s:s, s:s}", "role", "system", "content", system));
    return 0;
}

static json_t *picture_part(const struct image *im, struct err *e)
{
    void *png = NULL;
    uint64_t len = 0;
    struct buf url;
    if (image_encode_png(im, &png, &len, e))
        return NULL;
    buf_init(&url, MAX_PICTURE);
    buf_puts(&url, "data:image/png;base64,");
    buf_put_base64(&url, png, len);
    free(png);
    json_t *part =
        url.full ? NULL : json_pack("{s:s, s:{s:s}}", "type", "image_url", "image_url", "url", url.data);
    if (!part)
        err_set(e, ERR_ENV, "a screenshot of %dx%d is too large to be sent", im->w, im->h);
    buf_free(&url);
    return part;
}

static int add_parts(json_t *content, const struct chat_part *parts, int n, bool pictures, bool texts,
                     struct err *e)
{
    for (int i = 0; i < n; i++) {
        json_t *part = NULL;
        if (parts[i].image && pictures && !(part = picture_part(parts[i].image, e)))
            return -1;
        if (!parts[i].image && texts && parts[i].text && *parts[i].text)
            part = json_pack("{s:s, s:s}", "type", "text", "text", parts[i].text);
        if (part)
            json_array_append_new(content, part);
    }
    return 0;
}

static int remote_user(struct llm *m, const struct chat_part *parts, int n, enum chat_place place,
                       struct err *e)
{
    json_t *content = json_array();
    bool in_place = place == CHAT_PLACE_INLINE;
    if (add_parts(content, parts, n, true, in_place, e) ||
        (!in_place && add_parts(content, parts, n, false, true, e))) {
        json_decref(content);
        return -1;
    }
    json_array_append_new(remote_of(m)->messages,
                          json_pack("{s:s, s:o}", "role", "user", "content", content));
    return 0;
}

static int remote_reply(struct llm *m, const char *text, struct err *e)
{
    json_array_append_new(remote_of(m)->messages,
                          json_pack("{s:s, s:s}", "role", "assistant", "content", text));
    return 0;
}

static int remote_close(struct llm *m, struct err *e)
{
    return 0; /* the server's template ends the turn */
}

/* ---- a reply ----------------------------------------------------------------------------------------- */

struct reading { /* of one reply */
    struct chat_reply reply;
    struct events events;
    struct buf whole; /* a reply that is not streamed: it begins with "{" */
    struct remote_llm *of;
    const struct llm_request *how;
    volatile int stop;
};

static int on_event(void *arg, const char *data, size_t n)
{
    struct reading *g = arg;
    return chat_read_event(&g->reply, data, n);
}

static int on_data(void *arg, const char *data, size_t n)
{
    struct reading *g = arg;
    if (g->whole.len || (n && *data == '{' && !g->events.line.len && !g->reply.text.len))
        return buf_put(&g->whole, data, n);
    return events_feed(&g->events, data, n);
}

/* The loop's clock is asked through on_text, as between two tokens of a model of our own. */
static void on_turn(void *arg)
{
    struct reading *g = arg;
    if (g->how->on_text)
        g->how->on_text(g->how->arg, "", 0);
    if (flag_up(g->how->cancel) || (g->of->stop && flag_up(g->of->stop)))
        g->stop = 1;
}

static void begin_reading(struct reading *g)
{
    chat_reply_free(&g->reply);
    events_free(&g->events);
    buf_free(&g->whole);
    buf_init(&g->whole, 64 << 20);
    chat_reply_init(&g->reply);
    events_init(&g->events, on_event, g);
    g->reply.on_text = g->how->on_text;
    g->reply.arg = g->how->arg;
}

/* What a broken or lying stream is told as; 0: the reply is whole. */
static int check_reading(struct reading *g, struct err *e)
{
    if (g->whole.len)
        return chat_read_whole(&g->reply, g->whole.data, g->whole.len, e);
    if (events_end(&g->events))
        return err_set(e, ERR_MODEL, "the server sent an event of more than 16 MiB");
    if (*g->reply.error)
        return err_set(e, ERR_MODEL, "the server broke off: %s", g->reply.error);
    if (!g->reply.finished)
        return err_set(e, ERR_ENV, "the stream ended in the middle of a reply");
    return 0;
}

/* Sends the request again without what the server refuses by name.  0 with a whole reply. */
static int exchange(struct reading *g, json_t *schema, struct err *e)
{
    struct remote_llm *r = g->of;
    for (int broken = 0;;) {
        struct http_reply h;
        json_t *body = chat_request(r->endpoint, r->messages, g->how, r->seed, schema);
        char *text = json_dumps(body, JSON_COMPACT);
        json_decref(body);
        struct http_request q = {.body = text,
                                 .len = strlen(text),
                                 .stop = &g->stop,
                                 .on_turn = on_turn,
                                 .on_data = on_data,
                                 .arg = g};
        begin_reading(g);
        int rc = endpoint_send(r->endpoint, r->http, "chat/completions", r->session, &q, &h, e);
        free(text);
        bool refused = rc && (h.status == 400 || h.status == 422) && h.body.data &&
                       endpoint_leave_out(r->endpoint, h.body.data, chat_optional);
        rc = rc == 0 ? check_reading(g, e) : rc;
        bool again =
            rc && !g->stop && (refused || (e->kind == ERR_ENV && h.received && ++broken < BROKEN_STREAMS));
        http_reply_free(&h);
        if (!again)
            return rc;
    }
}

/* The reply as the dialect's parser wants it: a tool call as {"name", "arguments"}; the thought only
 * when asked for, or when the answer stands in it. */
static void take_text(struct reading *g, struct generated *out)
{
    struct chat_reply *r = &g->reply;
    buf_init(&out->text, 16 << 20);
    if (g->how->think && r->thought.len)
        buf_printf(&out->text, "%s</think>\n", r->thought.data);
    if (r->text.len)
        buf_put(&out->text, r->text.data, r->text.len);
    if (r->call.len)
        buf_printf(&out->text, "%s{\"name\": \"%s\", \"arguments\": %s}", r->text.len ? "\n" : "",
                   r->call.data, r->call_arguments.len ? r->call_arguments.data : "{}");
    if (!r->text.len && !r->call.len && !g->how->think && r->thought.len)
        buf_put(&out->text, r->thought.data, r->thought.len);
    if (!out->text.data)
        buf_puts(&out->text, "");
}

static void count_tokens(struct remote_llm *r, const struct chat_reply *c, struct generated *out)
{
    out->n = c->tokens >= 0 ? (int)c->tokens : (int)(c->text.len / 4);
    int64_t prompt = c->prompt_tokens >= 0 ? c->prompt_tokens : r->length;
    r->stats.decoded += out->n;
    r->stats.prefilled += prompt - (c->cached > 0 ? c->cached : 0);
    r->stats.reused += c->cached > 0 ? c->cached : 0;
    r->length = prompt + out->n;
}

static int remote_speak(struct llm *m, const struct llm_request *how, struct generated *out, struct err *e)
{
    struct remote_llm *r = remote_of(m);
    struct reading g = {.of = r, .how = how};
    struct err why = ERR_INIT;
    int64_t start = clock_ns();
    *out = (struct generated){0};
    json_t *schema = NULL;
    if (how->goal == GOAL_STEP && !how->free && !how->think && *r->dialect->schema)
        schema = json_loads(r->dialect->schema, 0, NULL);
    int rc = exchange(&g, schema, &why);
    json_decref(schema);
    if (rc && g.stop) { /* cancelled: what there is, as a session does */
        rc = 0;
        out->finish = FINISH_CANCELLED;
    } else if (rc) {
        err_set(e, why.kind, "%s", why.text);
    } else {
        out->finish = g.reply.cut_off ? FINISH_LENGTH : FINISH_STOP;
    }
    if (rc == 0) {
        take_text(&g, out);
        count_tokens(r, &g.reply, out);
        remote_reply(m, g.reply.text.len ? g.reply.text.data : out->text.data, e);
    }
    chat_reply_free(&g.reply);
    events_free(&g.events);
    buf_free(&g.whole);
    out->ms = clock_ms_since(start);
    return rc;
}

/* ---- marks ------------------------------------------------------------------------------------------- */

static struct llm_mark *remote_mark_new(struct llm *m, struct err *e)
{
    const struct remote_llm *r = remote_of(m);
    struct remote_mark *k = xcalloc(1, sizeof *k);
    *k = (struct remote_mark){json_copy(r->messages), r->length};
    return (struct llm_mark *)k;
}

static int remote_rewind(struct llm *m, const struct llm_mark *at, struct err *e)
{
    const struct remote_mark *k = (const struct remote_mark *)at;
    struct remote_llm *r = remote_of(m);
    json_decref(r->messages);
    r->messages = json_copy(k->messages);
    r->length = k->length;
    return 0;
}

static int64_t remote_mark_length(const struct llm_mark *at)
{
    return ((const struct remote_mark *)at)->length;
}

static void remote_mark_free(struct llm_mark *at)
{
    struct remote_mark *k = (struct remote_mark *)at;
    if (k)
        json_decref(k->messages);
    free(k);
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

static int64_t remote_length(const struct llm *m)
{
    return remote_of(m)->length;
}

static struct session_stats remote_stats(const struct llm *m)
{
    return remote_of(m)->stats;
}

static void remote_set_cancel(struct llm *m, const volatile int *flag)
{
    remote_of(m)->stop = flag;
}

static void remote_free(struct llm *m)
{
    struct remote_llm *r = remote_of(m);
    http_close(r->http);
    json_decref(r->messages);
    free(r->session);
    free(r);
}

struct llm *llm_remote(struct endpoint *p, const struct dialect *d, uint64_t seed, const char *session)
{
    static const struct llm_ops ops = {
        .begin = remote_begin,
        .user = remote_user,
        .reply = remote_reply,
        .speak = remote_speak,
        .close = remote_close,
        .mark = remote_mark_new,
        .rewind = remote_rewind,
        .branch = remote_rewind, /* marks are copies and stay valid */
        .mark_length = remote_mark_length,
        .mark_free = remote_mark_free,
        .length = remote_length,
        .stats = remote_stats,
        .set_cancel = remote_set_cancel,
        .free = remote_free,
    };
    struct remote_llm *r = xcalloc(1, sizeof *r);
    r->base.ops = &ops;
    r->endpoint = p;
    r->http = http_open();
    r->dialect = d;
    r->seed = seed;
    r->session = session ? xstrdup(session) : NULL;
    r->messages = json_array();
    return &r->base;
}
