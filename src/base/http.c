/* http.c - HTTP client over libcurl, with timeouts and immediate cancellation.
 *
 * The multi interface is polled in short intervals. After each, the stop flag and the time since the last
 * byte are checked, because libcurl's own timeouts cover neither. */
#include "base/http.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/retry.h"

#include <ctype.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TOO_LARGE = 100 }; /* CURLE_TOO_LARGE of libcurl 8.6 and later: among others, 5000 headers */
enum { TURN_MS = 20, DEFAULT_MAX = 64 << 20, MAX_HEADERS = 256 << 10, MAX_REFUSAL = 1 << 20 };

struct http_client {
    CURLM *multi;
    CURL *easy;
};

struct exchange {
    const struct http_request *q;
    struct http_reply *out;
    CURL *easy;
    int64_t start; /* clock_ns() */
    int64_t heard; /* clock_ns() of the last byte, or of the start */
    bool began;    /* a byte has arrived */
    bool enough;   /* on_data has ended the transfer */
    bool too_long;
    size_t bytes;
    struct retry_hint hint;
};

static void start_library(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

struct http_client *http_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_library);
    struct http_client *c = xcalloc(1, sizeof *c);
    c->multi = curl_multi_init();
    c->easy = curl_easy_init();
    if (!c->multi || !c->easy)
        die(ERR_ENV, "libcurl cannot start");
    return c;
}

void http_close(struct http_client *c)
{
    if (!c)
        return;
    curl_easy_cleanup(c->easy);
    curl_multi_cleanup(c->multi);
    free(c);
}

void http_reply_free(struct http_reply *r)
{
    buf_free(&r->body);
    *r = (struct http_reply){0};
}

/* ---- receiving --------------------------------------------------------------------------------- */

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
    struct exchange *x = arg;
    long status = 0;
    n *= size;
    x->heard = clock_ns();
    x->began = true;
    x->bytes += n;
    x->too_long = x->bytes > (x->q->max_bytes ? x->q->max_bytes : DEFAULT_MAX);
    if (x->too_long)
        return CURL_WRITEFUNC_ERROR;
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    x->out->status = (int)status; /* for on_data */
    bool good = status == 200 || status == 206;
    if (!good || !x->q->on_data) {
        if (good || x->out->body.len < MAX_REFUSAL)
            buf_put(&x->out->body, data, n);
        return n;
    }
    x->enough = x->q->on_data(x->q->arg, data, n) != 0;
    x->out->received = true;
    return x->enough ? CURL_WRITEFUNC_ERROR : n;
}

/* Splits a header line into name and value, both trimmed. The caller frees them. Returns false if the line is
 * not a header. */
static bool split_header(const char *line, size_t n, char **name, char **value)
{
    const char *colon = memchr(line, ':', n);
    if (!colon)
        return false;
    const char *from = colon + 1, *end = line + n;
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    while (end > from && (unsigned char)end[-1] <= ' ')
        end--;
    *name = strndup(line, (size_t)(colon - line));
    *value = strndup(from, (size_t)(end - from));
    return true;
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
    struct exchange *x = arg;
    char *name, *value;
    n *= size;
    x->heard = clock_ns();
    x->began = true;
    x->out->headers += n;
    if (x->out->headers > MAX_HEADERS)
        return CURL_WRITEFUNC_ERROR;
    if (!split_header(line, n, &name, &value))
        return n;
    retry_header(&x->hint, name, value, retry_now());
    if (!strcasecmp(name, "content-type")) {
        value[strcspn(value, "; ")] = 0;
        snprintf(x->out->type, sizeof x->out->type, "%s", value);
    } else if (!strcasecmp(name, "location")) {
        snprintf(x->out->location, sizeof x->out->location, "%s", value);
    }
    free(name);
    free(value);
    return n;
}

char *http_escape_path(const char *path)
{
    struct buf b;
    buf_init(&b, 4096);
    for (const unsigned char *p = (const unsigned char *)path; *p; p++)
        if (isalnum(*p) || strchr("/-_.~", *p))
            buf_putc(&b, (char)*p);
        else
            buf_printf(&b, "%%%02X", *p);
    return buf_take(&b);
}

/* ---- the request ------------------------------------------------------------------------------- */

static struct curl_slist *set_options(struct exchange *x, char *why)
{
    const struct http_request *q = x->q;
    struct curl_slist *headers = NULL;
    CURL *h = x->easy;
    curl_easy_reset(h);
    curl_easy_setopt(h, CURLOPT_URL, q->url);
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2); /* or later */
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_QUICK_EXIT, 1L); /* cancelling does not wait for name resolution */
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, why);
    curl_easy_setopt(h, CURLOPT_USERAGENT, "holorun");
    if (q->ca_file)
        curl_easy_setopt(h, CURLOPT_CAINFO, q->ca_file);
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)((q->connect_s > 0 ? q->connect_s : 10) * 1000));
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, x);
    if (q->body) {
        curl_easy_setopt(h, CURLOPT_POSTFIELDS, q->body);
        curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->len);
        headers = curl_slist_append(headers, "Content-Type: application/json");
        /* no "100 Continue" wait before a body with images */
        headers = curl_slist_append(headers, "Expect:");
    }
    for (int i = 0; q->headers && q->headers[i]; i++)
        headers = curl_slist_append(headers, q->headers[i]);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    return headers;
}

/* Writes the host of an address for messages, without the path and anything that may be secret. */
static void host_of(const char *url, char *out, size_t size)
{
    CURLU *u = curl_url();
    char *host = NULL, *port = NULL;
    snprintf(out, size, "the server");
    if (u && !curl_url_set(u, CURLUPART_URL, url, 0) && !curl_url_get(u, CURLUPART_HOST, &host, 0)) {
        curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
        snprintf(out, size, "%s:%s", host, port ? port : "?");
    }
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(u);
}

static int fail(const struct exchange *x, CURLcode code, const char *why, struct err *e)
{
    char host[256];
    host_of(x->q->url, host, sizeof host);
    if (x->too_long)
        return err_set(e, ERR_ENV, "%s sent more than %zu MiB in one reply", host,
                       (x->q->max_bytes ? x->q->max_bytes : DEFAULT_MAX) >> 20);
    if (x->out->headers > MAX_HEADERS || (int)code == TOO_LARGE)
        return err_set(e, ERR_ENV, "%s sent more than %d KiB of headers, or too many", host,
                       MAX_HEADERS >> 10);
    if (code == CURLE_URL_MALFORMAT)
        return err_set(e, ERR_USAGE, "'%.200s' is not an address such as http://127.0.0.1:8000/v1",
                       x->q->url);
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
        return err_set(e, ERR_ENV, "%s: certificate verification failed: %s", host, why);
    x->out->broken = true;
    x->out->unreached = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
                        code == CURLE_COULDNT_CONNECT;
    return err_set(e, ERR_ENV, "%s: %s", host, *why ? why : curl_easy_strerror(code));
}

/* Checks the timeouts: -1 with e if the server has been silent for too long, or the request exceeds its total
 * time limit. Sets out->broken then. */
static int check_patience(struct exchange *x, struct err *e)
{
    double limit = x->began ? x->q->idle_s > 0 ? x->q->idle_s : 120 : x->q->first_s > 0 ? x->q->first_s : 300;
    char host[256];
    bool silent = clock_ms_since(x->heard) >= 1000 * limit;
    if (!silent && (x->q->whole_s <= 0 || clock_ms_since(x->start) < 1000 * x->q->whole_s))
        return 0;
    host_of(x->q->url, host, sizeof host);
    x->out->broken = true;
    if (!silent)
        return err_set(e, ERR_ENV, "%s: its reply was not complete after %.3g s", host, x->q->whole_s);
    return err_set(e, ERR_ENV, "%s: nothing %s for %.3g s", host, x->began ? "more received" : "received",
                   limit);
}

static int run_exchange(struct http_client *c, struct exchange *x, CURLcode *code, struct err *e)
{
    int running = 1, left;
    for (;;) {
        CURLMcode rc = curl_multi_perform(c->multi, &running);
        if (rc == CURLM_OK && running)
            rc = curl_multi_poll(c->multi, NULL, 0, TURN_MS, NULL);
        if (rc != CURLM_OK)
            return err_set(e, ERR_ENV, "libcurl: %s", curl_multi_strerror(rc));
        CURLMsg *m = running ? NULL : curl_multi_info_read(c->multi, &left);
        if (m && m->msg == CURLMSG_DONE) {
            *code = m->data.result;
            return 0;
        }
        if (x->q->on_turn)
            x->q->on_turn(x->q->arg);
        if (flag_up(x->q->stop))
            return err_set(e, ERR_STOPPED, "stopped while the model answered");
        if (check_patience(x, e))
            return -1;
    }
}

int http_send(struct http_client *c, const struct http_request *q, struct http_reply *out, struct err *e)
{
    int64_t now = clock_ns();
    struct exchange x = {.q = q, .out = out, .easy = c->easy, .start = now, .heard = now};
    char why[CURL_ERROR_SIZE] = "";
    CURLcode code = CURLE_OK;
    long status = 0;
    *out = (struct http_reply){0};
    buf_init(&out->body, q->max_bytes ? q->max_bytes : DEFAULT_MAX);
    struct curl_slist *headers = set_options(&x, why);
    curl_multi_add_handle(c->multi, c->easy);
    int rc = run_exchange(c, &x, &code, e);
    if (rc == 0 && code != CURLE_OK && !x.enough)
        rc = fail(&x, code, why, e);
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    out->status = (int)status;
    out->retry_after = x.hint.after;
    out->limit_reset = x.hint.reset;
    curl_multi_remove_handle(c->multi, c->easy);
    curl_slist_free_all(headers);
    return rc;
}
