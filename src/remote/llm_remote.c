/* llm_remote.c - see llm_remote.h.
 *
 * Only the end of the list changes between two requests, so that the server's prefix cache can hold the rest.
 * A picture is encoded once, as the PNG in a data URL that every later request repeats.
 */
#include "remote/llm_remote.h"

#include "base/clock.h"
#include "base/flag.h"
#include "remote/events.h"
#include "remote/exchanges.h"
#include "remote/turns.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PICTURE = 64 << 20, BROKEN_STREAMS = 3, CACHE_LEAST = 1024 };

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
    struct llm_usage usage;
    struct exchange_log log;
    int shown_w, shown_h; /* of the newest picture */
    bool checks_passed;   /* of the last reply */
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

/* As PNG, in the size that the dialect's coordinates are about. */
static int encode(struct remote_llm *r, const struct image *im, void **png, uint64_t *len, struct err *e)
{
    struct image small = {0};
    r->shown_w = im->w;
    r->shown_h = im->h;
    if (r->dialect->coords != COORD_FIT || !dialect_picture_size(COORD_FIT, &r->shown_w, &r->shown_h))
        return image_encode_png(im, png, len, e);
    int rc = image_shrink(&small, im, r->shown_w, r->shown_h, e);
    rc = rc ? rc : image_encode_png(&small, png, len, e);
    image_free(&small);
    return rc;
}

static json_t *picture_part(struct remote_llm *r, const struct image *im, struct err *e)
{
    void *png = NULL;
    uint64_t len = 0;
    struct buf url;
    if (encode(r, im, &png, &len, e))
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

static int add_parts(struct remote_llm *r, json_t *content, const struct chat_part *parts, int n,
                     bool pictures, bool texts, struct err *e)
{
    for (int i = 0; i < n; i++) {
        json_t *part = NULL;
        if (parts[i].image && pictures && !(part = picture_part(r, parts[i].image, e)))
            return -1;
        if (!parts[i].image && texts && parts[i].text && *parts[i].text)
            part = json_pack("{s:s, s:s}", "type", "text", "text", parts[i].text);
        if (part)
            json_array_append_new(content, part);
    }
    return 0;
}

/* Pictures come first where the dialect's template would put them; one between texts stays there, because
 * those are its wrapper. */
static int add_content(struct remote_llm *r, json_t *content, const struct chat_part *parts, int n,
                       enum chat_place place, struct err *e)
{
    const char *last = n ? parts[n - 1].text : NULL;
    bool in_place = place == CHAT_PLACE_INLINE || (last && *last);
    return add_parts(r, content, parts, n, true, in_place, e) ||
                   (!in_place && add_parts(r, content, parts, n, false, true, e))
               ? -1
               : 0;
}

/* The text before the observation's wrapper is the result of the last action. */
static char *result_of(const struct dialect *d, const struct chat_part *parts, int n)
{
    const char *lead = n && parts[0].text ? parts[0].text : "";
    size_t len = strlen(lead), open = strlen(d->observation_open);
    bool wrapped = n > 1 && len >= open && !strcmp(lead + len - open, d->observation_open);
    return xasprintf("%.*s", wrapped ? (int)(len - open) : 0, lead);
}

static int remote_user(struct llm *m, const struct chat_part *parts, int n, enum chat_place place,
                       struct err *e)
{
    struct remote_llm *r = remote_of(m);
    json_t *content = json_array();
    if (add_content(r, content, parts, n, place, e)) {
        json_decref(content);
        return -1;
    }
    char *result = result_of(r->dialect, parts, n);
    json_t *message = json_pack("{s:s, s:o, s:s}", "role", "user", "content", content, "result", result);
    if (r->checks_passed)
        json_object_set_new(message, "acknowledged", json_true());
    r->checks_passed = false;
    json_array_append_new(r->messages, message);
    free(result);
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
    struct remote_reply reply;
    struct events events;
    struct buf whole; /* a reply that is not streamed: it begins with "{" */
    struct buf raw;   /* all of it, for the record */
    struct remote_llm *of;
    const struct llm_request *how;
    int64_t sent;
    volatile int stop;
};

static int on_event(void *arg, const char *data, size_t n)
{
    struct reading *g = arg;
    return g->of->endpoint->protocol->read_event(&g->reply, data, n);
}

static int on_data(void *arg, const char *data, size_t n)
{
    struct reading *g = arg;
    buf_put(&g->raw, data, n);
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

static void end_reading(struct reading *g)
{
    remote_reply_free(&g->reply);
    events_free(&g->events);
    buf_free(&g->whole);
    buf_free(&g->raw);
}

static void begin_reading(struct reading *g)
{
    end_reading(g);
    buf_init(&g->whole, 64 << 20);
    buf_init(&g->raw, 64 << 20);
    remote_reply_init(&g->reply);
    events_init(&g->events, on_event, g);
    g->reply.on_text = g->how->on_text;
    g->reply.arg = g->how->arg;
    g->sent = clock_ns();
}

/* The error for a broken or lying stream; 0: the reply is whole. */
static int check_reading(struct reading *g, struct err *e)
{
    if (g->whole.len)
        return g->of->endpoint->protocol->read_whole(&g->reply, g->whole.data, g->whole.len, e);
    if (events_end(&g->events))
        return err_set(e, ERR_MODEL, "the server sent an event of more than 16 MiB");
    if (*g->reply.error && !remote_reply_cut_off(&g->reply))
        return err_set(e, ERR_MODEL, "the server broke off: %s", g->reply.error);
    if (!g->reply.finished)
        return err_set(e, ERR_ENV, "the stream ended in the middle of a reply");
    return 0;
}

/* ---- the request ------------------------------------------------------------------------------------- */

/* One request and what came of it; *again: it is worth another. */
static int exchange_once(struct reading *g, json_t *schema, int *broken, bool *again, struct err *e)
{
    struct remote_llm *r = g->of;
    struct endpoint *p = r->endpoint;
    struct http_reply h;
    json_t *messages = turns_to_send(r->messages, endpoint_max_images(p), r->dialect->image_placeholder);
    const struct remote_turn turn = {.endpoint = p,
                                     .dialect = r->dialect,
                                     .messages = messages,
                                     .how = g->how,
                                     .seed = r->seed,
                                     .schema = schema,
                                     .shown_w = r->shown_w,
                                     .shown_h = r->shown_h};
    json_t *body = p->protocol->request(&turn);
    char *text = json_dumps(body, JSON_COMPACT);
    struct http_request q = {.body = text,
                             .len = strlen(text),
                             .stop = &g->stop,
                             .on_turn = on_turn,
                             .on_data = on_data,
                             .arg = g};
    begin_reading(g);
    int rc = endpoint_send(p, r->http, p->protocol->path, r->session, &q, &h, e);
    free(text);
    bool refused = rc && (h.status == 400 || h.status == 422) && h.body.data &&
                   endpoint_learn(p, h.body.data, p->protocol->optional, turns_pictures(messages));
    rc = rc == 0 ? check_reading(g, e) : rc;
    exchange_log_add(&r->log, p->protocol->path, body, h.status, h.status == 200 ? &g->raw : &h.body,
                     rc ? e->text : NULL);
    json_decref(body);
    json_decref(messages);
    *again = rc && !g->stop && (refused || (e->kind == ERR_ENV && h.received && ++*broken < BROKEN_STREAMS));
    http_reply_free(&h);
    return rc;
}

/* Sends the request again without what the server refuses by name, and after a broken stream. */
static int exchange(struct reading *g, json_t *schema, struct err *e)
{
    bool again = false;
    int rc, broken = 0;
    do {
        rc = exchange_once(g, schema, &broken, &again, e);
    } while (again);
    return rc;
}

/* ---- the reply --------------------------------------------------------------------------------------- */

/* The reply as the dialect's parser wants it; the thought only when asked for, or when the answer stands in
 * it, as with servers whose reasoning parser swallows all. */
static void take_text(struct reading *g, struct generated *out)
{
    struct remote_reply *r = &g->reply;
    buf_init(&out->text, 16 << 20);
    if (g->of->endpoint->protocol->finish)
        g->of->endpoint->protocol->finish(r);
    bool step = g->how->goal == GOAL_STEP || g->how->goal == GOAL_ANSWER;
    const struct buf *said = r->action.len && step ? &r->action : &r->text;
    if (g->how->think && r->thought.len && said->len)
        buf_printf(&out->text, "%s</think>\n", r->thought.data);
    if (said->len) {
        buf_put(&out->text, said->data, said->len);
    } else if (r->thought.len) {
        endpoint_note(g->of->endpoint, "answer in the reasoning",
                      "the server puts whole replies into its reasoning field; they are read from there");
        buf_put(&out->text, r->thought.data, r->thought.len);
    }
    if (!out->text.data)
        buf_puts(&out->text, "");
}

/* An answer that is no object shows that nobody held it to the schema; a number may have a hundred digits. */
static void check_constraint(struct remote_llm *r, const struct generated *g)
{
    json_error_t why = {0};
    json_t *read = json_loadb(g->text.data, g->text.len, 0, &why);
    if (!json_is_object(read) && json_error_code(&why) != json_error_numeric_overflow &&
        g->finish == FINISH_STOP && strcmp(endpoint_constraint(r->endpoint), "none") != 0)
        endpoint_note(
            r->endpoint, "unconstrained",
            "the server accepts a schema and does not hold replies to it; 'constraint' in a profile "
            "names another way (holorun doctor --base-url tries them)");
    json_decref(read);
}

static void count_tokens(struct reading *g, struct generated *out)
{
    struct remote_llm *r = g->of;
    const struct remote_reply *c = &g->reply;
    int64_t before = r->usage.prompt;
    out->n = c->tokens >= 0 ? (int)c->tokens : (int)(c->text.len / 4);
    int64_t prompt = c->prompt_tokens >= 0 ? c->prompt_tokens : r->length;
    r->stats.decoded += out->n;
    r->stats.prefilled += prompt - (c->cached > 0 ? c->cached : 0);
    r->stats.reused += c->cached > 0 ? c->cached : 0;
    r->length = prompt + out->n;
    const struct profile *p = &r->endpoint->profile;
    r->usage = (struct llm_usage){
        c->prompt_tokens,
        c->cached,
        out->n,
        c->first_ns ? (double)(c->first_ns - g->sent) / 1e6 : -1,
        *p->currency ? profile_cost(p, (double)prompt, (double)c->cached, (double)out->n) : -1,
        p->currency,
        r->log.n};
    if (c->cached == 0 && before >= CACHE_LEAST && prompt >= before)
        endpoint_note(r->endpoint, "uncached",
                      "the server has cached none of the conversation: it reads every turn again, and a step "
                      "takes and costs accordingly");
}

/* Of steps that the dialect has a schema for, and only where the reply begins with the answer. */
static json_t *schema_for(const struct remote_llm *r, const struct llm_request *how)
{
    if (how->goal == GOAL_GROUND && !how->free && strstr(r->dialect->ground, "{\"x\""))
        return json_loads(
            "{\"type\": \"object\", \"properties\": {\"x\": {\"type\": \"number\"}, \"y\": {\"type\": "
            "\"number\"}}, \"required\": [\"x\", \"y\"], \"additionalProperties\": false}",
            0, NULL);
    bool wanted = how->goal == GOAL_STEP && !how->free && !how->think && !r->dialect->native_tools;
    return wanted && *r->dialect->schema ? json_loads(r->dialect->schema, 0, NULL) : NULL;
}

static int remote_speak(struct llm *m, const struct llm_request *how, struct generated *out, struct err *e)
{
    struct remote_llm *r = remote_of(m);
    struct reading g = {.of = r, .how = how};
    struct err why = ERR_INIT;
    int64_t start = clock_ns();
    *out = (struct generated){0};
    json_t *schema = schema_for(r, how);
    int rc = exchange(&g, schema, &why);
    bool held = schema != NULL;
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
        if (held)
            check_constraint(r, out);
        count_tokens(&g, out);
        json_array_append_new(r->messages,
                              turn_of_reply(&g.reply, out->text.data, json_array_size(r->messages)));
    }
    end_reading(&g);
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

static void remote_checks_passed(struct llm *m)
{
    remote_of(m)->checks_passed = true;
}

static const struct llm_usage *remote_usage(const struct llm *m)
{
    return &remote_of(m)->usage;
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
    exchange_log_end(&r->log);
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
        .usage = remote_usage,
        .checks_passed = remote_checks_passed,
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
    r->usage = (struct llm_usage){.prompt = -1, .cached = -1, .first_ms = -1, .cost = -1};
    return &r->base;
}

void llm_remote_log(struct llm *m, exchange_sink *put, void *arg)
{
    struct remote_llm *r = remote_of(m);
    r->log.put = put;
    r->log.arg = arg;
}
