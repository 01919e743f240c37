/* hub_get.c - sends a request to the hub: redirects, the token, retries. */
#include "checkpoint/hub_impl.h"

#include "base/clock.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { REDIRECTS = 5, TRIES = 5, TRIES_UNREACHED = 2 };

static bool same_part(CURLU *a, CURLU *b, CURLUPart part)
{
    char *x = NULL, *y = NULL;
    bool same = !curl_url_get(a, part, &x, CURLU_DEFAULT_PORT) &&
                !curl_url_get(b, part, &y, CURLU_DEFAULT_PORT) && !strcasecmp(x, y);
    curl_free(x);
    curl_free(y);
    return same;
}

/* Returns whether a request to `url` may carry the token. */
static bool is_endpoint(const struct hub *h, const char *url)
{
    CURLU *a = curl_url(), *b = curl_url();
    bool same = a && b && !curl_url_set(a, CURLUPART_URL, h->endpoint, 0) &&
                !curl_url_set(b, CURLUPART_URL, url, 0) && same_part(a, b, CURLUPART_SCHEME) &&
                same_part(a, b, CURLUPART_HOST) && same_part(a, b, CURLUPART_PORT);
    curl_url_cleanup(a);
    curl_url_cleanup(b);
    return same;
}

/* Returns the target of a redirect, which may be relative; NULL if it is missing, leads from https to http,
 * or has another scheme. */
static char *next_address(const char *url, const char *location)
{
    CURLU *u = curl_url();
    char *full = NULL, *out = NULL;
    if (u && *location && !curl_url_set(u, CURLUPART_URL, url, 0) &&
        !curl_url_set(u, CURLUPART_URL, location, 0) && !curl_url_get(u, CURLUPART_URL, &full, 0) &&
        (!strncasecmp(full, "https:", 6) ||
         (!strncasecmp(full, "http:", 5) && strncasecmp(url, "https:", 6) != 0)))
        out = xstrdup(full);
    curl_free(full);
    curl_url_cleanup(u);
    return out;
}

static int refuse(const struct hub *h, const struct http_reply *r, struct err *e)
{
    const char *who = h->token ? "the token" : "no token was given";
    if (r->status == 401 || r->status == 403)
        return err_set(
            e, ERR_ENV,
            "the hub denies access to '%s' (%d; %s): accept its licence on its web page, and pass a token "
            "with --key file:PATH or env:VAR",
            h->o.repo, r->status, who);
    if (r->status == 404)
        return err_set(e, ERR_ENV, "the hub does not have '%s' with revision '%s' (404)", h->o.repo,
                       h->o.revision);
    return err_set(e, ERR_ENV, "the hub answered %d for '%s'", r->status, h->o.repo);
}

static int get_once(struct hub *h, const char *url, struct http_request *q, struct http_reply *out,
                    struct err *e)
{
    const char *headers[4] = {0};
    int n = 0;
    char *key = NULL;
    for (int i = 0; q->headers && q->headers[i] && n < 2; i++)
        headers[n++] = q->headers[i];
    if (h->token && is_endpoint(h, url))
        headers[n++] = key = secrets_fill(h->token, "Authorization: Bearer {{KEY}}");
    struct http_request with = *q;
    with.url = url;
    with.headers = headers;
    int rc = http_send(h->http, &with, out, e);
    h->reached = h->reached || rc == 0;
    if (key)
        secrets_free_filled(key);
    return rc;
}

int hub_get(struct hub *h, const char *url, struct http_request *q, struct http_reply *out, struct err *e)
{
    char *at = xstrdup(url);
    int rc = 0;
    for (int i = 0;; i++) {
        rc = get_once(h, at, q, out, e);
        bool moved = rc == 0 && out->status >= 300 && out->status < 400 && out->status != 304;
        char *next = moved && i < REDIRECTS ? next_address(at, out->location) : NULL;
        if (moved && !next)
            rc = err_set(e, ERR_ENV, "the hub's redirects for '%s' have no target or do not end", h->o.repo);
        free(at);
        if (!next)
            break;
        at = next;
        http_reply_free(out);
    }
    if (rc == 0 && out->status != 200 && out->status != 206)
        rc = refuse(h, out, e);
    return rc;
}

bool hub_again(const struct hub *h, const struct http_reply *r, int try, const struct err *why)
{
    int most = r->unreached && !h->reached ? TRIES_UNREACHED : TRIES;
    bool mends = r->broken || r->status == 408 || r->status == 429 || r->status >= 500;
    if (!mends || try + 1 >= most)
        return false;
    double seconds = r->retry_after > 0 ? r->retry_after : (double)(1 << try);
    if (seconds >= 1)
        warn("%s; trying again in %.0f s", why->text, seconds);
    clock_sleep_ms((int)(1000 * (seconds < 300 ? seconds : 300)));
    return true;
}
