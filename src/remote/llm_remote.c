/* llm_remote.c - a language model behind an HTTP endpoint, for the agent loop.
 *
 * Between two requests only the end of the message list changes, so that the server's prefix cache can reuse
 * the rest. An image is encoded once, as the PNG in a data URL that every later request repeats. */
#include "remote/llm_remote.h"

#include "base/clock.h"
#include "base/flag.h"
#include "remote/content.h"
#include "remote/exchanges.h"
#include "remote/odds.h"
#include "remote/reply_body.h"
#include "remote/token_ids.h"
#include "remote/turns.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE_LEAST = 1024, MAX_RECORDED = 4 << 20 };

struct remote_llm {
    struct llm base;
    struct endpoint *endpoint;
    struct http_client *http;
    const struct dialect *dialect;
    uint64_t seed;
    char *session;
    const volatile int *stop; /* stop flag of the screen; may be NULL */
    json_t *messages;
    int64_t length; /* length of the conversation in tokens, as last reported by the server */
    struct session_stats stats;
    struct llm_usage usage;
    struct llm_tokens tokens; /* of the last reply; ids NULL: not returned */
    struct exchange_log log;
    json_t *tools; /* tools of a conversation that has its own; else NULL */
    struct content_size shown;
    bool checks_passed; /* the safety checks of the last reply were approved */
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

static int remote_user(struct llm *m, const struct chat_part *parts, int n, enum chat_place place,
                       struct err *e)
{
    struct remote_llm *r = remote_of(m);
    json_t *message = content_user(r->dialect, parts, n, place, &r->shown, e);
    if (!message)
        return -1;
    if (r->checks_passed)
        json_object_set_new(message, "acknowledged", json_true());
    r->checks_passed = false;
    json_array_append_new(r->messages, message);
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
    return 0; /* the server's chat template ends the turn */
}

static bool has_tools(const struct chat_conversation *c)
{
    bool has = c->n_tools > 0;
    for (int i = 0; i < c->n; i++)
        has = has || c->messages[i].role == CHAT_TOOL || c->messages[i].n_calls;
    return has;
}

static int remote_converse(struct llm *m, const struct chat_conversation *c, struct err *e)
{
    struct remote_llm *r = remote_of(m);
    if (r->endpoint->protocol != &protocol_chat && has_tools(c))
        return err_set(e, ERR_USAGE, "a conversation with its own tools needs --api chat");
    json_t *messages = content_conversation(r->dialect, c, &r->shown, e);
    if (!messages)
        return -1;
    json_decref(r->messages);
    json_decref(r->tools);
    r->messages = messages;
    r->tools = content_tools(c);
    return 0;
}

/* ---- a reply ----------------------------------------------------------------------------------------- */

struct reading { /* state of reading one reply */
    struct reply_body in;
    struct buf raw; /* for the recording; limited in size, because a reply may never end */
    struct remote_llm *of;
    const struct llm_request *how;
    json_t *body;      /* body of the request */
    bool logged;       /* its reply */
    char refused[256]; /* error message of a request that was rejected with status 200; "" */
    int64_t sent;
    volatile int stop;
};

static int on_data(void *arg, const char *data, size_t n)
{
    struct reading *g = arg;
    buf_put(&g->raw, data, n);
    return reply_body_feed(&g->in, data, n);
}

/* Lets on_text check the agent loop's time limit, as between two tokens of a local model. */
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
    reply_body_free(&g->in);
    buf_free(&g->raw);
}

static void begin_reading(void *arg)
{
    struct reading *g = arg;
    end_reading(g);
    buf_init(&g->raw, MAX_RECORDED);
    reply_body_begin(&g->in, g->of->endpoint->protocol);
    g->in.reply.on_text = g->how->on_text;
    g->in.reply.arg = g->how->arg;
    g->sent = clock_ns();
    g->logged = false;
    *g->refused = 0;
}

/* ---- the request ------------------------------------------------------------------------------------- */

/* Ends and records the reply of one attempt: complete, or r->broken. */
static int end_reply(void *arg, struct http_reply *r, struct failure *f)
{
    struct reading *g = arg;
    struct remote_llm *m = g->of;
    /* everything needed has arrived */
    int rc = r->broken && g->in.reply.finished ? 0 : reply_body_end(&g->in);
    *f = g->in.reply.failed;
    g->logged = true;
    if (f->class == FAILURE_REQUEST)
        snprintf(g->refused, sizeof g->refused, "%s", f->said);
    exchange_log_add(&m->log, m->endpoint->protocol->path, g->body, r->status, &g->raw, rc ? f->said : NULL);
    return rc;
}

/* Sends one request body, with its attempts. *again: another body, without what the server rejected by name,
 * may succeed. */
static int exchange_once(struct reading *g, json_t *schema, bool *again, struct err *e)
{
    struct remote_llm *r = g->of;
    struct endpoint *p = r->endpoint;
    struct http_reply h = {0};
    json_auto_t *messages = turns_to_send(r->messages, endpoint_max_images(p), r->dialect->image_placeholder);
    const struct remote_turn turn = {.endpoint = p,
                                     .dialect = r->dialect,
                                     .messages = messages,
                                     .how = g->how,
                                     .seed = r->seed,
                                     .schema = schema,
                                     .tools = r->tools,
                                     .shown_w = r->shown.w,
                                     .shown_h = r->shown.h};
    g->body = p->protocol->request(&turn);
    char *text = json_dumps(g->body, JSON_COMPACT);
    struct http_request q = {.body = text,
                             .len = strlen(text),
                             .stop = &g->stop,
                             .on_turn = on_turn,
                             .on_data = on_data,
                             .arg = g};
    const struct endpoint_call call = {p->protocol->path, r->session, &q, begin_reading, end_reply};
    int rc = endpoint_send(p, r->http, &call, &h, e);
    free(text);
    const char *refusal = h.status == 400 || h.status == 422 ? h.body.data : *g->refused ? g->refused : NULL;
    *again = rc && !g->stop && refusal &&
             endpoint_learn(p, refusal, p->protocol->optional, turns_pictures(messages));
    if (!g->logged)
        exchange_log_add(&r->log, p->protocol->path, g->body, h.status, h.status == 200 ? &g->raw : &h.body,
                         e->text);
    json_decref(g->body);
    g->body = NULL;
    http_reply_free(&h);
    return rc;
}

static int exchange(struct reading *g, json_t *schema, struct err *e)
{
    bool again = false;
    int rc;
    do {
        rc = exchange_once(g, schema, &again, e);
    } while (again);
    return rc;
}

/* ---- the reply --------------------------------------------------------------------------------------- */

/* Stores the token probabilities for the heat map of a step that is displayed. */
static void keep_odds(struct reading *g, struct generated *out, const struct buf *said)
{
    if (g->how->alternatives <= 0 || !said->len)
        return;
    odds_keep(out, g->in.reply.odds, said->data, said->len, out->text.len - said->len);
    if (!out->choices && endpoint_gives_odds(g->of->endpoint))
        endpoint_note(g->of->endpoint, NO_ODDS,
                      "the server returns no token probabilities; the heat map is not available");
}

/* Stores the reply as the dialect's parser expects it. The thoughts are included if they were requested, or
 * if they contain the answer: some servers' reasoning parsers take the whole reply for a thought. */
static void take_text(struct reading *g, struct generated *out)
{
    struct remote_reply *r = &g->in.reply;
    buf_init(&out->text, 16 << 20);
    if (g->of->endpoint->protocol->finish)
        g->of->endpoint->protocol->finish(r);
    bool step = g->how->goal == GOAL_STEP || g->how->goal == GOAL_ANSWER;
    const struct buf *said = r->action.len && (step || r->calls) ? &r->action : &r->text;
    if (g->how->think && r->thought.len && said->len)
        buf_printf(&out->text, "%s</think>\n", r->thought.data);
    if (said->len) {
        buf_put(&out->text, said->data, said->len);
    } else if (r->thought.len) {
        endpoint_note(g->of->endpoint, "answer in the reasoning",
                      "the server returns whole replies in its reasoning field; reading them from there");
        said = &r->thought;
        buf_put(&out->text, said->data, said->len);
    }
    if (!out->text.data)
        buf_puts(&out->text, "");
    keep_odds(g, out, said);
}

/* Warns if the answer is not a JSON object: then the server did not constrain it to the schema. Numbers of a
 * hundred digits are allowed. */
static void check_constraint(struct remote_llm *r, const struct generated *g)
{
    json_error_t why = {0};
    json_auto_t *read = json_loadb(g->text.data, g->text.len, 0, &why);
    if (!json_is_object(read) && json_error_code(&why) != json_error_numeric_overflow &&
        g->finish == FINISH_STOP && strcmp(endpoint_constraint(r->endpoint), "none") != 0)
        endpoint_note(r->endpoint, "unconstrained",
                      "the server accepts a schema but does not enforce it; set 'constraint' in a profile to "
                      "another method ('holorun doctor --base-url' tries them)");
}

static void count_tokens(struct reading *g, struct generated *out)
{
    struct remote_llm *r = g->of;
    const struct remote_reply *c = &g->in.reply;
    int64_t before = r->usage.prompt;
    int said = c->tokens >= 0 ? (int)c->tokens : (int)(c->text.len / 4);
    int64_t prompt = c->prompt_tokens >= 0 ? c->prompt_tokens : r->length;
    out->n = out->choices ? out->n : said; /* choices has an element for each token */
    r->stats.decoded += said;
    r->stats.prefilled += prompt - (c->cached > 0 ? c->cached : 0);
    r->stats.reused += c->cached > 0 ? c->cached : 0;
    r->length = prompt + said;
    const struct profile *p = &r->endpoint->profile;
    r->usage = (struct llm_usage){
        c->prompt_tokens,
        c->cached,
        said,
        c->first_ns ? (double)(c->first_ns - g->sent) / 1e6 : -1,
        *p->currency ? profile_cost(p, (double)prompt, (double)c->cached, (double)said) : -1,
        p->currency,
        r->log.n};
    if (c->cached == 0 && before >= CACHE_LEAST && prompt >= before)
        endpoint_note(
            r->endpoint, "uncached",
            "the server does not cache the conversation: it processes all turns again in each step, "
            "which takes longer and costs more");
}

/* Returns the schema for a request: only for steps for which the dialect has one, and if the reply begins
 * with the answer. NULL otherwise. */
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
    json_auto_t *schema = schema_for(r, how);
    int rc = exchange(&g, schema, &why);
    bool held = schema != NULL;
    if (rc && g.stop) { /* cancelled: returns the partial reply, as a local session does */
        rc = 0;
        out->finish = FINISH_CANCELLED;
    } else if (rc) {
        autofree char *masked = secrets_mask(r->endpoint->key, why.text); /* some servers quote the key */
        err_set(e, why.kind, "%s", masked);
    } else {
        out->finish = g.in.reply.cut_off ? FINISH_LENGTH : FINISH_STOP;
    }
    if (rc == 0) {
        take_text(&g, out);
        if (held)
            check_constraint(r, out);
        count_tokens(&g, out);
        token_ids_take(&g.in.reply, &r->tokens);
        json_array_append_new(r->messages,
                              turn_of_reply(&g.in.reply, out->text.data, json_array_size(r->messages)));
    }
    end_reading(&g);
    out->ms = clock_ms_since(start);
    return rc;
}

static int remote_beam_search(struct llm *m, const struct llm_mark *before, const struct beam_request *x,
                              struct beam_candidate *out, int max, struct err *e)
{
    return odds_candidates(remote_of(m)->dialect, x->said, x->slot, out, max);
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
    autofree struct remote_mark *k = (struct remote_mark *)at;
    if (k)
        json_decref(k->messages);
}

/* ---- other functions ----------------------------------------------------------------------------------- */

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

static const struct llm_tokens *remote_tokens(const struct llm *m)
{
    return remote_of(m)->tokens.ids ? &remote_of(m)->tokens : NULL;
}

static void remote_set_cancel(struct llm *m, const volatile int *flag)
{
    remote_of(m)->stop = flag;
}

static void remote_free(struct llm *m)
{
    autofree struct remote_llm *r = remote_of(m);
    http_close(r->http);
    json_decref(r->messages);
    json_decref(r->tools);
    exchange_log_end(&r->log);
    free(r->tokens.ids);
    free(r->tokens.logprobs);
    free(r->session);
}

struct llm *llm_remote(struct endpoint *p, const struct dialect *d, uint64_t seed, const char *session)
{
    static const struct llm_ops ops = {
        LLM_OPS(remote),
        .converse = remote_converse,
        .beam_search = remote_beam_search,
        .branch = remote_rewind, /* marks are copies, so they stay valid */
        .usage = remote_usage,
        .tokens = remote_tokens,
        .checks_passed = remote_checks_passed,
        .set_cancel = remote_set_cancel,
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
    r->log.key = r->endpoint->key;
}
