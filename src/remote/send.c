/* send.c - sends a request to an endpoint and repeats it after temporary failures. */
#include "remote/endpoint.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/lock.h"
#include "base/retry.h"
#include "remote/protocol.h"
#include "remote/replayed.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_TRIES = 5 /* limit until a server has replied once, because the address may be wrong */ };

struct sending {
    struct endpoint *endpoint;
    struct http_client *http;
    const struct endpoint_call *call;
    struct http_reply *out;
    int tries;
    int64_t failed; /* clock_ns() of the first failure */
};

/* ---- waiting ---------------------------------------------------------------------------------------- */

static int wait_for_try(const struct http_request *q, double seconds, struct err *e)
{
    int64_t start = clock_ns();
    while (clock_ms_since(start) < 1000 * seconds) {
        if (q->on_turn)
            q->on_turn(q->arg);
        if (flag_up(q->stop))
            return err_set(e, ERR_STOPPED, "stopped while waiting for the server");
        double left = 1000 * seconds - clock_ms_since(start);
        clock_sleep_ms(left < 20 ? (int)left + 1 : 20);
    }
    return 0;
}

static bool was_heard(struct endpoint *p, bool now)
{
    LOCKED(&p->lock);
    return p->heard = p->heard || now;
}

/* Returns the seconds until the next attempt; -1: no further attempt. Recorded replies need no wait, and a
 * rejection is final, as it was in the recorded run. */
static double next_try(const struct sending *s, const struct failure *f)
{
    const struct profile *profile = &s->endpoint->profile;
    bool heard = was_heard(s->endpoint, s->out->status != 0);
    struct retry_limits limits = {heard || profile->tries < FIRST_TRIES ? profile->tries : FIRST_TRIES,
                                  profile->retry_s, profile->backoff_s};
    double chance = (double)((uint64_t)clock_ns() * 2654435761U >> 8 & 1023) / 1023;
    if (s->endpoint->replayed)
        return s->out->status == 200 && s->tries < failure_tries(f->class) ? 0 : -1;
    return retry_wait(&limits, f, s->tries, clock_ms_since(s->failed) / 1000, chance);
}

/* ---- errors ----------------------------------------------------------------------------------------- */

static const char *remedy(const struct endpoint *p, enum failure_class c)
{
    switch (c) {
    case FAILURE_UNREACHABLE:
        return p->provider && !p->provider->variable ? "; start it, or give its address with --base-url" : "";
    case FAILURE_KEY:
        return "; pass another key with --key env:VAR or --key file:PATH";
    case FAILURE_ABSENT:
        return "; --base-url ends with /v1 for most servers, -m names the model";
    case FAILURE_MOVED:
        return "; pass that address to --base-url";
    default:
        return "";
    }
}

/* Reports the failure: "http://host/v1: rate limited (429): slow down; gave up after 4 tries in 7 s". */
static int give_up(const struct sending *s, const struct failure *f, struct err *e)
{
    char status[16] = "", tries[120] = "", shown[200];
    autofree char *masked = secrets_mask(s->endpoint->key, f->said); /* some servers quote the key */
    snprintf(shown, sizeof shown, "%s", masked);
    if (f->status && f->status != 200)
        snprintf(status, sizeof status, " (%d)", f->status);
    if (s->tries > 1)
        snprintf(tries, sizeof tries, "; gave up after %d tries in %.0f s", s->tries,
                 clock_ms_since(s->failed) / 1000);
    if (f->after > s->endpoint->profile.retry_s)
        snprintf(tries + strlen(tries), sizeof tries - strlen(tries), "; the server asks to wait %.0f s",
                 f->after);
    return err_set(e, failure_exit(f->class), "%.160s: %s%s: %s%s%s", s->endpoint->base,
                   failure_name(f->class), status, shown, tries, remedy(s->endpoint, f->class));
}

/* ---- one attempt ------------------------------------------------------------------------------------ */

/* Sends the request once. Returns 0: the reply is complete. 1: *f has the failure. -1 with e: a stop, or a
 * failure without a class. */
static int try_once(struct sending *s, struct failure *f, struct err *e)
{
    struct endpoint *p = s->endpoint;
    struct http_request *q = s->call->q;
    struct http_reply *r = s->out;
    *f = (struct failure){0};
    if (s->call->begin)
        s->call->begin(q->arg);
    int rc = p->replayed ? replayed_next(p->replayed, q, r, e) : http_send(s->http, q, r, e);
    bool began = r->status == 200;
    if (rc && !r->broken)
        return -1;
    if (rc && !began)
        failure_set(f, FAILURE_UNREACHABLE, "%.250s", e->text);
    else if (rc && !s->call->end)
        failure_set(f, FAILURE_CUT_OFF, "%.250s", e->text);
    else if (r->status != 200)
        failure_of_status(f, r->status, r->body.data ? r->body.data : "", r->body.len);
    else if (!s->call->end || s->call->end(q->arg, r, f) == 0)
        return 0;
    if (rc && began && s->call->end && f->class == FAILURE_CUT_OFF)
        failure_set(f, FAILURE_CUT_OFF, "the stream ended in the middle of a reply: %.180s", e->text);
    if (f->class == FAILURE_MOVED)
        failure_set(f, FAILURE_MOVED, "%.200s", r->location);
    f->after = r->retry_after > 0 ? r->retry_after : f->after;
    if (f->class == FAILURE_RATE && r->limit_reset > 0)
        f->reset = r->limit_reset;
    return 1;
}

static int try_all(struct sending *s, struct err *e)
{
    struct failure f;
    for (s->tries = 1;; s->tries++) {
        struct err why = ERR_INIT;
        int rc = try_once(s, &f, &why);
        if (rc <= 0)
            return rc ? err_set(e, why.kind, "%s", why.text) : 0;
        s->failed = s->failed ? s->failed : clock_ns();
        double wait = next_try(s, &f);
        if (wait < 0)
            return give_up(s, &f, e);
        autofree char *masked = secrets_mask(s->endpoint->key, f.said);
        warn("%s: %.200s; trying again in %.3g s", failure_name(f.class), masked, wait);
        http_reply_free(s->out);
        if (wait > 0 && wait_for_try(s->call->q, wait, e))
            return -1;
    }
}

int endpoint_send(struct endpoint *p, struct http_client *c, const struct endpoint_call *call,
                  struct http_reply *out, struct err *e)
{
    struct sending s = {.endpoint = p, .http = c, .call = call, .out = out};
    struct http_request *q = call->q;
    char *url = xasprintf("%s/%s", p->base, call->path), *key = NULL, *id = NULL;
    const char *headers[5] = {NULL};
    int n = 0;
    bool anthropic = p->protocol == &protocol_messages;
    if (p->key)
        headers[n++] = key =
            secrets_fill(p->key, anthropic ? "x-api-key: {{KEY}}" : "Authorization: Bearer {{KEY}}");
    if (anthropic)
        headers[n++] = "anthropic-version: 2023-06-01";
    if (anthropic && !endpoint_takes(p, "computer_toolset_20260801"))
        headers[n++] = endpoint_takes(p, "computer_20251124") ? "anthropic-beta: computer-use-2025-11-24"
                                                              : "anthropic-beta: computer-use-2025-01-24";
    if (call->session)
        headers[n++] = id = xasprintf("x-session-id: %s", call->session);
    q->url = url;
    q->headers = headers;
    q->ca_file = p->profile.ca_file;
    q->connect_s = p->profile.connect_s, q->first_s = p->profile.first_s, q->idle_s = p->profile.idle_s;
    int rc = try_all(&s, e);
    q->headers = NULL;
    q->url = NULL;
    if (key)
        secrets_free_filled(key);
    free(id);
    free(url);
    return rc;
}
