/* endpoint.c - see endpoint.h.
 *
 * A profile is a JSON object; every key may be missing:
 *
 *   {"constraint": "structured_outputs", "max_images": 1, "leave_out": ["seed"], "tries": 5,
 *    "connect_s": 10, "first_byte_s": 300, "idle_s": 120,
 *    "request": {"chat_template_kwargs": {"enable_thinking": false}}}
 */
#include "remote/endpoint.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/flag.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PROFILE = 1 << 20, TRIES = 5, MAX_WAIT_S = 120 };

/* ---- the profile ------------------------------------------------------------------------------- */

static int read_numbers(struct endpoint *p, json_t *root, const char *path, struct err *e)
{
    const struct {
        const char *key;
        double *to, most;
    } numbers[] = {
        {"connect_s", &p->connect_s, 600}, {"first_byte_s", &p->first_s, 3600}, {"idle_s", &p->idle_s, 3600}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        json_t *v = json_object_get(root, numbers[i].key);
        if (v && (!json_is_number(v) || json_number_value(v) <= 0 || json_number_value(v) > numbers[i].most))
            return err_set(e, ERR_USAGE, "%s: '%s' is a number of seconds up to %g", path, numbers[i].key,
                           numbers[i].most);
        *numbers[i].to = v ? json_number_value(v) : 0;
    }
    json_t *images = json_object_get(root, "max_images"), *tries = json_object_get(root, "tries");
    if ((images &&
         (!json_is_integer(images) || json_integer_value(images) < 1 || json_integer_value(images) > 64)) ||
        (tries &&
         (!json_is_integer(tries) || json_integer_value(tries) < 1 || json_integer_value(tries) > 20)))
        return err_set(e, ERR_USAGE, "%s: 'max_images' is a number from 1 to 64, 'tries' from 1 to 20", path);
    p->max_images = (int)json_integer_value(images);
    p->tries = tries ? (int)json_integer_value(tries) : TRIES;
    return 0;
}

static int read_profile(struct endpoint *p, json_t *root, const char *path, struct err *e)
{
    static const char *const known[] = {"constraint", "max_images", "leave_out",    "tries",
                                        "connect_s",  "idle_s",     "first_byte_s", "request"};
    static const char *const constraints[] = {"response_format", "structured_outputs", "guided_json", "none"};
    const char *key, *way = json_string_value(json_object_get(root, "constraint"));
    json_t *v, *leave = json_object_get(root, "leave_out"), *request = json_object_get(root, "request");
    size_t i;
    json_object_foreach(root, key, v)
    {
        for (i = 0; i < sizeof known / sizeof *known && strcmp(known[i], key); i++)
            ;
        if (i == sizeof known / sizeof *known)
            return err_set(e, ERR_USAGE, "%s: unknown key '%s'", path, key);
    }
    for (i = 0; way && i < 4 && strcmp(constraints[i], way); i++)
        ;
    if ((json_object_get(root, "constraint") && !way) || (way && i == 4))
        return err_set(e, ERR_USAGE,
                       "%s: 'constraint' is response_format, structured_outputs, guided_json or none", path);
    if ((request && !json_is_object(request)) || (leave && !json_is_array(leave)))
        return err_set(e, ERR_USAGE, "%s: 'request' is an object, 'leave_out' a list of names", path);
    p->constraint = way ? xstrdup(way) : NULL;
    p->extra = json_incref(request);
    json_array_foreach(leave, i, v) if (json_is_string(v))
        json_object_set_new(p->refused, json_string_value(v), json_true());
    return read_numbers(p, root, path, e);
}

static int open_profile(struct endpoint *p, const char *path, struct err *e)
{
    char *text;
    size_t len;
    json_error_t je;
    if (file_read(path, MAX_PROFILE, &text, &len, e))
        return -1;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
    free(text);
    if (!json_is_object(root)) {
        json_decref(root);
        return err_set(e, ERR_USAGE, "%s:%d: %s", path, je.line, *je.text ? je.text : "an object expected");
    }
    int rc = read_profile(p, root, path, e);
    json_decref(root);
    return rc;
}

/* ---- what a server does not take ----------------------------------------------------------------- */

bool endpoint_takes(const struct endpoint *p, const char *member)
{
    return !json_object_get(p->refused, member);
}

int endpoint_leave_out(struct endpoint *p, const char *message, const char *const *optional)
{
    int n = 0;
    for (int i = 0; optional[i]; i++) {
        if (!endpoint_takes(p, optional[i]) || !strstr(message, optional[i]))
            continue;
        json_object_set_new(p->refused, optional[i], json_true());
        warn("the server does not take '%s': going on without it", optional[i]);
        n++;
    }
    return n;
}

/* ---- requests ------------------------------------------------------------------------------------ */

static bool worth_another_try(const struct http_reply *r)
{
    return r->broken || r->status == 429 || (r->status >= 502 && r->status <= 504);
}

static int wait_for_try(const struct http_request *q, double seconds, struct err *e)
{
    int64_t start = clock_ns();
    while (clock_ms_since(start) < 1000 * seconds) {
        if (q->on_turn)
            q->on_turn(q->arg);
        if (flag_up(q->stop))
            return err_set(e, ERR_STOPPED, "stopped while waiting for the server");
        clock_sleep_ms(20);
    }
    return 0;
}

/* What a server says of an error: {"error": {"message"}}, {"error"}, {"message"}, {"detail"}, or the text. */
static void error_text(const struct http_reply *r, char *out, size_t size)
{
    json_t *root = json_loadb(r->body.data ? r->body.data : "", r->body.len, 0, NULL);
    json_t *inner = json_object_get(root, "error");
    const char *said = json_string_value(json_object_get(inner, "message"));
    said = said ? said : json_string_value(inner);
    said = said ? said : json_string_value(json_object_get(root, "message"));
    said = said ? said : json_string_value(json_object_get(root, "detail"));
    said = said ? said : r->body.len ? r->body.data : "it gave no reason";
    snprintf(out, size, "%s", said);
    json_decref(root);
}

static int status_failed(const struct endpoint *p, const struct http_reply *r, struct err *e)
{
    char said[300];
    error_text(r, said, sizeof said);
    if (r->status >= 300 && r->status < 400)
        return err_set(e, ERR_ENV, "%s sends elsewhere: give --base-url the address it means%s%.200s",
                       p->base, *r->location ? ", " : "", r->location);
    if (r->status == 401 || r->status == 403)
        return err_set(e, ERR_ENV, "%s refuses the key (%d): %s; --key env:VAR or file:PATH gives another",
                       p->base, r->status, said);
    if (r->status == 404)
        return err_set(e, ERR_ENV,
                       "%s has no such address or model (404): %s; --base-url ends with /v1 for most "
                       "servers, -m names the model",
                       p->base, said);
    return err_set(e, r->status >= 500 ? ERR_ENV : ERR_MODEL, "%s answers %d: %s", p->base, r->status, said);
}

int endpoint_send(struct endpoint *p, struct http_client *c, const char *path, const char *session,
                  struct http_request *q, struct http_reply *out, struct err *e)
{
    char *url = xasprintf("%s/%s", p->base, path), *key = NULL, *id = NULL;
    const char *headers[3] = {NULL};
    int n = 0, rc = -1;
    if (p->key)
        headers[n++] = key = secrets_fill(p->key, "Authorization: Bearer {{KEY}}");
    if (session)
        headers[n++] = id = xasprintf("x-session-id: %s", session);
    q->url = url;
    q->headers = headers;
    q->connect_s = p->connect_s, q->first_s = p->first_s, q->idle_s = p->idle_s;
    for (int try = 1;; try++) {
        rc = http_send(c, q, out, e);
        if (rc == 0 && out->status == 200)
            break;
        bool again = (rc == 0 || out->broken) && worth_another_try(out) && !out->received && try < p->tries;
        double wait =
            out->retry_after > 0 ? out->retry_after : (double)(1 << (try - 1)) * (1 + drand48() / 4);
        if (!again || wait > MAX_WAIT_S) {
            rc = rc ? rc : status_failed(p, out, e);
            break;
        }
        warn("%s; trying again in %.0f s", rc ? e->text : "the server is busy", wait);
        http_reply_free(out);
        if ((rc = wait_for_try(q, wait, e)))
            break;
    }
    q->headers = NULL;
    q->url = NULL;
    if (key)
        secrets_free_filled(key);
    free(id);
    free(url);
    return rc;
}

/* ---- opening --------------------------------------------------------------------------------------- */

/* The only model of the server; the list of them when there are several. */
static int find_model(struct endpoint *p, const volatile int *stop, struct err *e)
{
    struct http_client *c = http_open();
    struct http_request q = {.stop = stop, .max_bytes = 4 << 20};
    struct http_reply r;
    json_t *root = NULL;
    int rc = endpoint_send(p, c, "models", NULL, &q, &r, e);
    if (rc == 0) {
        root = json_loadb(r.body.data ? r.body.data : "", r.body.len, 0, NULL);
        json_t *list = json_object_get(root, "data");
        const char *first = json_string_value(json_object_get(json_array_get(list, 0), "id"));
        if (!first)
            rc = err_set(e, ERR_MODEL, "%s lists no model; name one with -m", p->base);
        else if (json_array_size(list) > 1)
            rc = err_set(e, ERR_USAGE, "%s has %zu models, '%.80s' and others; name one with -m", p->base,
                         json_array_size(list), first);
        else
            p->model = xstrdup(first);
    }
    json_decref(root);
    http_reply_free(&r);
    http_close(c);
    return rc;
}

static char *without_slash(const char *url)
{
    char *s = xstrdup(url);
    for (size_t n = strlen(s); n && s[n - 1] == '/'; n--)
        s[n - 1] = 0;
    return s;
}

struct endpoint *endpoint_open(const struct endpoint_options *o, const volatile int *stop, struct err *e)
{
    struct endpoint *p = xcalloc(1, sizeof *p);
    p->base = without_slash(o->base_url);
    p->refused = json_object();
    p->tries = TRIES;
    int rc = 0;
    if (strncmp(p->base, "http://", 7) != 0 && strncmp(p->base, "https://", 8) != 0)
        rc = err_set(e, ERR_USAGE,
                     "--base-url '%.100s': an address such as http://127.0.0.1:8000/v1 is meant", p->base);
    if (rc == 0 && o->key) {
        char *spec = xasprintf("KEY=%s", o->key);
        p->key = secrets_new();
        rc = secrets_add(p->key, spec, e);
        free(spec);
    }
    if (rc == 0 && o->profile)
        rc = open_profile(p, o->profile, e);
    if (rc == 0 && o->model)
        p->model = xstrdup(o->model);
    else if (rc == 0)
        rc = find_model(p, stop, e);
    if (rc == 0)
        return p;
    endpoint_free(p);
    return NULL;
}

void endpoint_free(struct endpoint *p)
{
    if (!p)
        return;
    secrets_free(p->key);
    json_decref(p->extra);
    json_decref(p->refused);
    free(p->constraint);
    free(p->model);
    free(p->base);
    free(p);
}
