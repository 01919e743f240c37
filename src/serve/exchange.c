/* exchange.c - handles one HTTP request: routing, authorization, body, reply. */
#include "serve/server_impl.h"

#include "base/clock.h"
#include "capacity/memory.h"
#include "serve/body_text.h"
#include "serve/framing.h"
#include "serve/reply_json.h"
#include "session/scheduler.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* TEXT_COPIES: copies of the text in the template and as tokens */
enum { UPLOAD_S = 300, CHUNKED_BYTES = 1 << 20, TEXT_COPIES = 8 };

struct exchange {
    struct buf body;
    size_t reserved; /* bytes of server.bodies */
    int64_t begun;
    bool post, crowded; /* crowded: there was not enough memory for the rest of the body */
};

/* ---- replies ------------------------------------------------------------------------------------------- */

void connection_waits(struct server *v, struct MHD_Connection *c, bool waits)
{
    MHD_set_connection_option(c, MHD_CONNECTION_OPTION_TIMEOUT, waits ? 0u : (unsigned)v->o.idle_s);
}

void reply_add_notes(struct MHD_Response *r, const struct notes *n)
{
    if (n && *n->ignored)
        MHD_add_response_header(r, "x-holorun-ignored", n->ignored);
    if (n && *n->warning)
        MHD_add_response_header(r, "x-holorun-warning", n->warning);
}

enum MHD_Result reply_send(struct server *v, struct MHD_Connection *c, int status, const char *type,
                           struct buf *body)
{
    return reply_send_noted(v, c, status, type, body, NULL);
}

enum MHD_Result reply_send_noted(struct server *v, struct MHD_Connection *c, int status, const char *type,
                                 struct buf *body, const struct notes *notes)
{
    size_t n = body->len;
    struct MHD_Response *r = MHD_create_response_from_buffer(n, buf_take(body), MHD_RESPMEM_MUST_FREE);
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, "Content-Type", type);
    MHD_add_response_header(r, "Cache-Control", "no-store");
    reply_add_notes(r, notes);
    if (status == 429 || status == 503)
        MHD_add_response_header(r, "Retry-After", "1");
    if (status == 401)
        MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
    metrics_reply(&v->service->metrics, status);
    enum MHD_Result rc = MHD_queue_response(c, (unsigned)status, r);
    MHD_destroy_response(r);
    return rc;
}

/* Writes the client's address as text. */
static void peer_of(struct MHD_Connection *c, char out[64])
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *a = info ? info->client_addr : NULL;
    snprintf(out, 64, "?");
    if (a && a->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)a)->sin_addr, out, 64);
    if (a && a->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, out, 64);
}

enum MHD_Result reply_refuse(struct server *v, struct MHD_Connection *c, const struct api *api, int status,
                             const char *message)
{
    struct buf out;
    char peer[64];
    peer_of(c, peer);
    warn("rejected a request of %s with %d: %s", peer, status, message);
    buf_init(&out, 1 << 16);
    (api && api->refusal ? api : &api_chat)->refusal(&out, status, message);
    return reply_send(v, c, status, "application/json", &out);
}

static int reply_status(const struct err *e)
{
    switch (e->kind) {
    case ERR_USAGE:
    case ERR_MODEL: /* the conversation does not fit the model */
        return 400;
    case ERR_ENV:
    case ERR_STOPPED:
        return 503;
    default:
        return 500;
    }
}

/* ---- authorization ---------------------------------------------------------------------------------- */

/* Compares tokens in a time that does not depend on their content. */
static bool same_token(const char *given, const char *want)
{
    size_t n = strlen(given), m = strlen(want);
    unsigned different = n != m;
    for (size_t i = 0; i < m; i++)
        different |= (unsigned)((unsigned char)want[i] ^ (unsigned char)(n ? given[i % n] : 0));
    return !different;
}

static bool may_ask(const struct server *v, struct MHD_Connection *c)
{
    const char *value = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization"),
               *key = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "x-api-key");
    if (!v->o.token || (key && same_token(key, v->o.token)))
        return true;
    return value && !strncasecmp(value, "Bearer ", 7) && same_token(value + 7, v->o.token);
}

/* ---- the body ------------------------------------------------------------------------------------------ */

static const char crowded[] = "no memory left for the body: other requests use it (--request-memory)",
                  too_large[] = "the body is too large (--max-body)";

/* Returns the bytes that a request of this size may need: its text, a second and third copy while it is
 * parsed, a fourth where images are joined, and its values. */
static size_t memory_of(size_t body)
{
    size_t values =
        body / 2 < 2 * BODY_VALUES ? body / 2 : 2 * BODY_VALUES; /* values of the body and of its calls */
    return 4 * body + values * BODY_VALUE_BYTES;
}

/* Changes the reservation to the current need of the request. Returns false if that does not fit. */
static bool keep_memory(struct server *v, struct exchange *x, size_t need)
{
    /* released first, so that a single request may reserve everything it needs */
    budget_release(v->bodies, x->reserved);
    bool fits = budget_try(v->bodies, need);
    x->reserved = fits ? need : 0;
    return fits;
}

/* Reserves memory for a body of this total size. */
static bool reserve_body(struct server *v, struct exchange *x, size_t size)
{
    size_t need = memory_of(size);
    return need <= x->reserved || keep_memory(v, x, need);
}

static void take_body(struct server *v, struct exchange *x, const char *data, size_t n)
{
    size_t all = x->body.len + n;
    x->crowded = x->crowded || (memory_of(all) > x->reserved && !reserve_body(v, x, 2 * all + CHUNKED_BYTES));
    if (!x->crowded && !x->body.full)
        buf_put(&x->body, data, n);
    if (!x->crowded && !x->body.full)
        return;
    buf_free(&x->body);
    x->body.full = true; /* the rest of the body is discarded */
}

/* ---- completions --------------------------------------------------------------------------------------- */

static int check_model(const struct server *v, const struct completion *c, struct err *e)
{
    const json_t *name = json_object_get(c->body.talk.root, "model");
    if (!name || (json_is_string(name) && !strcmp(json_string_value(name), v->service->model)))
        return 0;
    return err_set(e, ERR_FAILED, "model '%.80s' not found; this server has '%s'",
                   json_is_string(name) ? json_string_value(name) : "", v->service->model);
}

/* Runs the completion and sends the reply. Frees the completion unless it is streamed. */
static enum MHD_Result run_completion(struct server *v, struct MHD_Connection *c, struct completion *of,
                                      struct in_flight_request *flight)
{
    const struct api *api = of->api;
    struct err e = ERR_INIT;
    struct buf out;
    int rc = api->counts ? completion_count_tokens(of, &e) : completion_prepare(of, &e);
    if (rc == 0 && of->body.stream && !api->counts)
        return stream_start(v, c, of, flight);
    if (rc == 0 && !api->counts)
        rc = completion_generate(of, &e);
    in_flight_remove(v->in_flight, flight);
    out = (struct buf){.max = (size_t)64 << 20};
    if (rc == 0)
        api->whole(of, &out);
    struct notes notes = of->body.notes;
    completion_free(of);
    return rc ? reply_refuse(v, c, api, reply_status(&e), e.text)
              : reply_send_noted(v, c, 200, "application/json", &out, &notes);
}

/* Parses the body and frees it. A disconnect of the client ends this early. Returns the HTTP status of a
 * failure, or 0. */
static int read_completion(struct server *v, struct completion *of, struct exchange *x, struct err *e)
{
    size_t len = x->body.len;
    int rc = completion_read(of, x->body.data ? x->body.data : "", len, e), status = 0;
    buf_free(&x->body);
    if (rc)
        status = e->kind == ERR_USAGE ? 400 : reply_status(e);
    else if (check_model(v, of, e))
        status = 404;
    else if (!keep_memory(v, x, 2 * len + TEXT_COPIES * completion_text_bytes(of))) {
        status = 503;
        err_set(e, ERR_ENV, "%s", crowded);
    }
    return status;
}

static enum MHD_Result answer_completion(struct server *v, struct MHD_Connection *c, const struct api *api,
                                         struct exchange *x)
{
    struct err e = ERR_INIT;
    struct in_flight_request flight;
    const union MHD_ConnectionInfo *fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct completion *of = completion_new(v->service, api);
    if (!in_flight_add(v->in_flight, &flight, of, fd->connect_fd)) {
        bool ends = in_flight_closed(v->in_flight);
        err_set(&e, ERR_ENV,
                ends ? "the server is shutting down" : "%d requests are running; try again later",
                v->o.max_requests);
        completion_free(of);
        return reply_refuse(v, c, api, ends ? 503 : 429, e.text);
    }
    connection_waits(v, c, true);
    int status = read_completion(v, of, x, &e);
    if (status) {
        in_flight_remove(v->in_flight, &flight);
        completion_free(of);
        connection_waits(v, c, false);
        return reply_refuse(v, c, api, status, e.text);
    }
    enum MHD_Result rc = run_completion(v, c, of, &flight);
    connection_waits(v, c, false);
    return rc;
}

/* ---- other routes ------------------------------------------------------------------------------------ */

static enum MHD_Result answer_metrics(struct server *v, struct MHD_Connection *c)
{
    struct service *s = v->service;
    struct store_counts n = store_counts(s->store);
    struct weights_set *w = weights_acquire(s->weights, &(int){1});
    struct state_memory m = w ? engine_state_memory(w->engine) : (struct state_memory){0};
    struct scheduler_stats t = w ? engine_scheduler_stats(w->engine) : (struct scheduler_stats){0};
    struct speculation_counts guesses = w ? engine_speculation(w->engine) : (struct speculation_counts){0};
    weights_release(s->weights, w);
    const struct metric_gauge gauges[] = {
        {"requests_running", "requests in flight", in_flight_count(v->in_flight)},
        {"conversations_idle", "idle sessions in memory", n.idle},
        {"conversations_spilled", "sessions in files", n.files},
        {"conversations_continued", "requests that continued a session", (double)n.continued},
        {"conversations_branched", "requests that branched from a checkpoint", (double)n.branched},
        {"conversations_begun", "requests without a cached prefix", (double)n.begun},
        {"conversations_evicted", "idle sessions and checkpoints evicted", (double)n.evicted},
        {"conversations_restored", "sessions restored from files", (double)n.restored},
        {"state_bytes", "memory of all session states", (double)m.used},
        {"heap_bytes", "memory allocated by malloc, including states", (double)memory_heap()},
        {"scheduler_waiting", "threads that wait for the engine", t.waiting},
        {"decode_batches", "batches of decoded tokens", (double)t.batches},
        {"decode_rows", "tokens in those batches", (double)t.rows},
        {"guesses_proposed", "draft tokens of --speculate", (double)guesses.proposed},
        {"guesses_accepted", "accepted draft tokens", (double)guesses.accepted},
        {"weights_version", "version of the current weights", weights_version(s->weights)},
        {0}};
    struct buf out;
    buf_init(&out, 1 << 20);
    metrics_print(&s->metrics, gauges, &out);
    return reply_send(v, c, 200, "text/plain; version=0.0.4; charset=utf-8", &out);
}

static enum MHD_Result answer_health(struct server *v, struct MHD_Connection *c)
{
    struct buf out;
    bool ends = in_flight_closed(v->in_flight), paused = weights_paused(v->service->weights);
    buf_init(&out, 1 << 10);
    buf_printf(&out, "{\"status\":\"%s\"}", ends ? "ending" : paused ? "paused" : "ok");
    return reply_send(v, c, ends ? 503 : 200, "application/json", &out);
}

static enum MHD_Result answer_models(struct server *v, struct MHD_Connection *c, const char *name)
{
    struct buf out;
    if (name && strcmp(name, v->service->model) != 0)
        return reply_refuse(v, c, NULL, 404, "model not found");
    buf_init(&out, 1 << 16);
    if (name)
        reply_json_model(v->service, &out);
    else
        reply_json_models(v->service, &out);
    return reply_send(v, c, 200, "application/json", &out);
}

static enum MHD_Result answer_get(struct server *v, struct MHD_Connection *c, const char *url)
{
    if (!strcmp(url, "/health"))
        return answer_health(v, c);
    if (!strcmp(url, "/metrics"))
        return answer_metrics(v, c);
    if (!strcmp(url, "/v1/models"))
        return answer_models(v, c, NULL);
    return answer_models(v, c, url + strlen("/v1/models/"));
}

static bool is_trainers(const char *url)
{
    return !strcmp(url, "/pause") || !strcmp(url, "/update_weights") || !strcmp(url, "/resume");
}

/* Returns the status with which a request is rejected before its body is read; 0: accepted. */
static int check_request(const struct server *v, struct MHD_Connection *c, const char *url,
                         const char *method, const char **why)
{
    const char *coding = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Encoding");
    bool post = !strcmp(method, "POST"), get = !strcmp(method, "GET") || !strcmp(method, "HEAD");
    bool chat = api_of(url), trainers = is_trainers(url);
    bool known = !strcmp(url, "/health") || !strcmp(url, "/metrics") || !strcmp(url, "/v1/models") ||
                 !strncmp(url, "/v1/models/", 11);
    if (strcmp(url, "/health") != 0 && !may_ask(v, c))
        return *why = "missing or wrong token: send Authorization: Bearer TOKEN", 401;
    if (!known && !chat && !trainers)
        return *why = "path not found", 404;
    if (!(known ? get : post))
        return *why = known ? "this path requires GET" : "this path requires POST", 405;
    if (trainers && !v->o.trainer)
        return *why = "the server was started without --trainer", 403;
    if (coding && strcasecmp(coding, "identity") != 0)
        return *why = "compressed bodies are not supported: send no Content-Encoding", 415;
    return 0;
}

static enum MHD_Result begin_exchange(struct server *v, struct MHD_Connection *c, const char *url,
                                      const char *method, const char *version, void **exchange)
{
    struct exchange *x = *exchange = xcalloc(1, sizeof *x);
    const union MHD_ConnectionInfo *at = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    size_t size;
    const char *why = framing_fault(c, version, &size);
    int status = why ? 400 : check_request(v, c, url, method, &why);
    x->begun = clock_ns();
    x->post = !strcmp(method, "POST");
    x->body.max = v->o.max_body;
    if (at && at->socket_context)
        connection_begin(v->connections, at->socket_context, status != 400 && may_ask(v, c));
    if (!status && size > v->o.max_body) {
        status = 413;
        why = too_large;
    }
    if (!status && x->post)
        x->crowded =
            !reserve_body(v, x, size); /* rejected after the body, so that the client reads the reply */
    return status ? reply_refuse(v, c, api_of(url), status, why) : MHD_YES;
}

enum MHD_Result exchange_step(void *server, struct MHD_Connection *c, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **exchange)
{
    struct server *v = server;
    struct exchange *x = *exchange;
    if (!x)
        return begin_exchange(v, c, url, method, version, exchange);
    if (*size) {
        take_body(v, x, data, *size);
        *size = 0;
        return clock_ms_since(x->begun) > UPLOAD_S * 1000 ? MHD_NO : MHD_YES;
    }
    if (x->crowded || x->body.full)
        return reply_refuse(v, c, api_of(url), x->crowded ? 503 : 413, x->crowded ? crowded : too_large);
    if (!x->post)
        return answer_get(v, c, url);
    if (is_trainers(url))
        return trainer_answer(v, c, url, x->body.data ? x->body.data : "", x->body.len);
    return answer_completion(v, c, api_of(url), x);
}

void exchange_end(void *server, struct MHD_Connection *c, void **exchange,
                  enum MHD_RequestTerminationCode why)
{
    struct server *v = server;
    autofree struct exchange *x = *exchange;
    const union MHD_ConnectionInfo *at = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (!x)
        return;
    if (at && at->socket_context)
        connection_rest(v->connections, at->socket_context);
    budget_release(v->bodies, x->reserved);
    buf_free(&x->body);
    *exchange = NULL;
}
