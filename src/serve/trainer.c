/* trainer.c - pause, update weights, resume: for trainers that sample from this server.
 *
 *   POST /pause           {"mode": "abort" | "wait" | "keep"}
 *   POST /update_weights  {"path": DIR}
 *   POST /resume          {}
 *
 * abort ends the running requests at once (finish_reason "abort"). wait lets them finish. keep pauses them
 * between two tokens; after /resume they continue, with the new weights once their conversation has been
 * prefilled again. In all three modes new requests wait. The new weights are loaded in addition to the old
 * ones, which stay in use if loading fails. */
#include "serve/server_impl.h"

#include "base/clock.h"
#include "base/lock.h"

#include <jansson.h>
#include <string.h>

enum { WAIT_S = 600 };

static enum MHD_Result answer(struct server *v, struct MHD_Connection *c, const char *state)
{
    struct buf out;
    buf_init(&out, 1 << 10);
    buf_printf(&out, "{\"status\":\"%s\",\"weights_version\":%d}", state,
               weights_version(v->service->weights));
    return reply_send(v, c, 200, "application/json", &out);
}

/* Waits until no request is running or all running ones are paused. Returns false after WAIT_S seconds. */
static bool await_quiet(struct server *v)
{
    int64_t start = clock_ns();
    while (in_flight_count(v->in_flight) > in_flight_paused(v->in_flight)) {
        if (clock_ms_since(start) > WAIT_S * 1000.0)
            return false;
        clock_sleep_ms(5);
    }
    return true;
}

static enum MHD_Result pause_requests(struct server *v, struct MHD_Connection *c, const json_t *body)
{
    const char *mode = json_string_value(json_object_get(body, "mode"));
    mode = mode ? mode : "abort";
    if (strcmp(mode, "abort") != 0 && strcmp(mode, "wait") != 0 && strcmp(mode, "keep") != 0)
        return reply_refuse(v, c, NULL, 400, "'mode' must be abort, wait or keep");
    weights_pause(v->service->weights);
    if (*mode == 'a')
        in_flight_end(v->in_flight, IN_FLIGHT_ABORT);
    if (*mode == 'k')
        in_flight_end(v->in_flight, IN_FLIGHT_PAUSE);
    if (!await_quiet(v))
        return reply_refuse(v, c, NULL, 503, "requests are still running; the server stays paused");
    return answer(v, c, "paused");
}

static enum MHD_Result load(struct server *v, struct MHD_Connection *c, const char *path)
{
    struct err e = ERR_INIT;
    struct engine_options o = v->o.model;
    o.dir = path;
    o.progress = NULL;
    struct engine *g = engine_open(&o, &e);
    if (!g)
        return reply_refuse(v, c, NULL, 400, e.text);
    constraints_flush(v->service->constraints, engine_tokenizer(g));
    weights_replace(v->service->weights, g);
    store_flush(v->service->store);
    return answer(v, c, "loaded");
}

static enum MHD_Result update_weights(struct server *v, struct MHD_Connection *c, const json_t *body)
{
    const char *path = json_string_value(json_object_get(body, "path"));
    if (!path || *path != '/')
        return reply_refuse(v, c, NULL, 400, "'path' must be the absolute path of a model directory");
    if (!weights_paused(v->service->weights))
        return reply_refuse(v, c, NULL, 409, "the server is not paused: send POST /pause first");
    LOCKED(&v->trainer);
    enum MHD_Result rc = load(v, c, path);
    return rc;
}

enum MHD_Result trainer_answer(struct server *v, struct MHD_Connection *c, const char *url, const char *text,
                               size_t len)
{
    json_auto_t *body = len ? json_loadb(text, len, 0, NULL) : json_object();
    enum MHD_Result rc;
    connection_waits(v, c, true);
    if (!json_is_object(body)) {
        rc = reply_refuse(v, c, NULL, 400, "the body is not a JSON object");
    } else if (!strcmp(url, "/pause")) {
        rc = pause_requests(v, c, body);
    } else if (!strcmp(url, "/update_weights")) {
        rc = update_weights(v, c, body);
    } else {
        weights_resume(v->service->weights);
        rc = answer(v, c, "running");
    }
    connection_waits(v, c, false);
    return rc;
}
