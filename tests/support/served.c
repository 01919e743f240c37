/* served.c - see served.h. */
#include "served.h"

#include "check.h"

#include "base/buf.h"
#include "base/clock.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

/* ---- server ----------------------------------------------------------------------------------------- */

void served_open(struct served *v, void (*change)(struct service_options *o, struct server_options *s))
{
    struct err e = ERR_INIT;
    *v = (struct served){0};
    tiny_init(&v->tiny, check_seed());
    tiny_write(&v->tiny);
    v->options = (struct service_options){.model = {.dir = v->tiny.dir, .device = "cpu", .threads = 1},
                                          .name = "tiny",
                                          .store = {.most = 64, .most_files = 256}};
    struct server_options s = {.listen = "127.0.0.1:0",
                               .token = SERVED_TOKEN,
                               .max_body = 4 << 20,
                               .max_requests = 64,
                               .idle_s = 20,
                               .trainer = true,
                               .model = v->options.model};
    s.model.shared = true;
    if (change)
        change(&v->options, &s);
    if (service_open(&v->service, &v->options, &e) || !(v->server = server_start(&v->service, &s, &e)))
        fail_msg("%s", e.text);
    snprintf(v->url, sizeof v->url, "%s://127.0.0.1:%d", s.cert ? "https" : "http", server_port(v->server));
}

void served_close(struct served *v)
{
    server_stop(v->server);
    service_close(&v->service);
    tiny_free(&v->tiny);
}

/* ---- requests ----------------------------------------------------------------------------------------- */

struct transfer {
    struct buf text;
    struct said *said;
    int64_t start;
    long most;
};

static size_t on_data(char *data, size_t one, size_t n, void *arg)
{
    struct transfer *t = arg;
    if (!t->text.len)
        t->said->first_s = clock_ms_since(t->start) / 1000;
    buf_put(&t->text, data, n);
    return t->most >= 0 && t->text.len >= (size_t)t->most ? 0 : n;
}

static void keep_header(const char *line, size_t n, const char *name, char *out, size_t room)
{
    size_t front = strlen(name);
    if (n > front + 2 && !strncasecmp(line, name, front))
        snprintf(out, room, "%.*s", (int)(n - front - 2), line + front);
}

static size_t on_header(char *data, size_t one, size_t n, void *arg)
{
    struct said *r = ((struct transfer *)arg)->said;
    keep_header(data, n, "retry-after: ", r->retry_after, sizeof r->retry_after);
    keep_header(data, n, "x-holorun-ignored: ", r->ignored, sizeof r->ignored);
    keep_header(data, n, "x-holorun-warning: ", r->warning, sizeof r->warning);
    return n;
}

/* Merges the deltas of a streamed choice. */
static void join_choice(json_t *whole, json_t *choice)
{
    json_t *delta = json_object_get(choice, "delta"), *message = json_object_get(whole, "message"), *v;
    const char *key;
    json_object_foreach(delta, key, v)
    {
        const char *old = json_string_value(json_object_get(message, key));
        if (json_is_string(v) && old) {
            char *text = xasprintf("%s%s", old, json_string_value(v));
            json_object_set_new(message, key, json_string(text));
            free(text);
        } else {
            json_object_set(message, key, v);
        }
    }
    if (json_is_string(json_object_get(choice, "finish_reason")))
        json_object_set(whole, "finish_reason", json_object_get(choice, "finish_reason"));
    static const char *const lists[] = {"token_ids", "weights_versions"};
    for (int i = 0; i < 2; i++) {
        if (!json_object_get(whole, lists[i]))
            json_object_set_new(whole, lists[i], json_array());
        json_array_extend(json_object_get(whole, lists[i]), json_object_get(choice, lists[i]));
    }
}

static json_t *join_events(struct said *r)
{
    json_t *root = json_object(), *whole = json_pack("{s:{s:s}}", "message", "content", "");
    bool done = false;
    for (const char *p = r->text; (p = strstr(p, "data: ")); p += 6) {
        done = done || !strncmp(p + 6, "[DONE]", 6);
        json_t *event = json_loads(p + 6, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, NULL);
        if (!event)
            continue;
        r->events++;
        json_t *choice = json_array_get(json_object_get(event, "choices"), 0);
        if (choice)
            join_choice(whole, choice);
        json_object_update(root, event);
        json_decref(event);
    }
    json_object_set_new(root, "choices", json_pack("[o]", whole));
    json_object_set_new(root, "done", json_boolean(done));
    return root;
}

struct said served_send(const struct served *v, const char *path, const char *token, const char *body,
                        size_t len, long hang_up_after)
{
    struct said r = {0};
    struct transfer t = {.said = &r, .start = clock_ns(), .most = hang_up_after};
    char *url = xasprintf("%s%s", v->url, path),
         *key = xasprintf("Authorization: Bearer %s", token ? token : "");
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    CURL *c = curl_easy_init();
    long status = 0;
    buf_init(&t.text, 64 << 20);
    if (token)
        headers = curl_slist_append(headers, key);
    headers = curl_slist_append(headers, "Expect:");
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &t);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, &t);
    curl_easy_setopt(c, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    if (v->authority)
        curl_easy_setopt(c, CURLOPT_CAINFO, v->authority);
    if (body) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
    }
    curl_easy_perform(c);
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(c);
    curl_slist_free_all(headers);
    free(url);
    free(key);
    r.status = (int)status;
    r.text = buf_take(&t.text);
    r.text = r.text ? r.text : xstrdup("");
    r.json = !strncmp(r.text, "data:", 5) ? join_events(&r) : json_loads(r.text, JSON_ALLOW_NUL, NULL);
    return r;
}

struct said served_get(const struct served *v, const char *path)
{
    return served_send(v, path, SERVED_TOKEN, NULL, 0, -1);
}

struct said served_post(const struct served *v, const char *path, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    struct said r = served_send(v, path, SERVED_TOKEN, text, strlen(text), -1);
    free(text);
    json_decref(body);
    return r;
}

struct said served_chat(const struct served *v, json_t *body)
{
    return served_post(v, "/v1/chat/completions", body);
}

void said_free(struct said *r)
{
    free(r->text);
    json_decref(r->json);
    *r = (struct said){0};
}

/* ---- parts of a reply -----------------------------------------------------------------------------------
 */

static json_t *choice_of(const struct said *r)
{
    json_t *choice = json_array_get(json_object_get(r->json, "choices"), 0);
    if (!choice)
        fail_msg("no choice in a reply with %d: %.300s", r->status, r->text);
    return choice;
}

json_t *said_message(const struct said *r)
{
    return json_object_get(choice_of(r), "message");
}

const char *said_content(const struct said *r)
{
    return json_string_value(json_object_get(said_message(r), "content"));
}

const char *said_finish(const struct said *r)
{
    return json_string_value(json_object_get(choice_of(r), "finish_reason"));
}

json_t *said_ids(const struct said *r)
{
    return json_object_get(choice_of(r), "token_ids");
}

json_int_t said_number(const struct said *r, const char *name)
{
    json_t *usage = json_object_get(r->json, "usage");
    json_t *v = json_object_get(
        strcmp(name, "cached_tokens") ? usage : json_object_get(usage, "prompt_tokens_details"), name);
    if (!json_is_integer(v))
        fail_msg("no %s in %.300s", name, r->text);
    return json_integer_value(v);
}

void said_same_shape(const json_t *a, const json_t *b, const char *where)
{
    const char *key;
    json_t *v;
    if (json_is_number(a) && json_is_number(b))
        return;
    if (json_typeof(a) != json_typeof(b))
        fail_msg("%s: another type", where);
    json_object_foreach((json_t *)(uintptr_t)a, key, v)
    {
        char *path = xasprintf("%s/%s", where, key);
        if (!json_object_get(b, key))
            fail_msg("%s is missing", path);
        said_same_shape(v, json_object_get(b, key), path);
        free(path);
    }
    if (json_object_size(a) != json_object_size(b))
        fail_msg("%s has more members", where);
    if (json_array_size(a) && json_array_size(b))
        said_same_shape(json_array_get(a, 0), json_array_get(b, 0), where);
}

json_t *served_picture(uint64_t seed)
{
    struct image im = tiny_image(40 + (int)(seed % 60), 30 + (int)(seed % 50), seed);
    struct buf url;
    void *png;
    uint64_t len;
    assert_int_equal(image_encode_png(&im, &png, &len, NULL), 0);
    buf_init(&url, 1 << 20);
    buf_puts(&url, "data:image/png;base64,");
    buf_put_base64(&url, png, len);
    json_t *part = json_pack("{s:s, s:{s:s}}", "type", "image_url", "image_url", "url", url.data);
    buf_free(&url);
    free(png);
    image_free(&im);
    return part;
}

json_t *served_user(const char *text, int pictures, uint64_t seed)
{
    json_t *parts = json_array();
    for (int i = 0; i < pictures; i++)
        json_array_append_new(parts, served_picture(seed + (uint64_t)i));
    json_array_append_new(parts, json_pack("{s:s, s:s}", "type", "text", "text", text));
    return json_pack("{s:s, s:o}", "role", "user", "content", parts);
}

json_t *served_request(const char *text, int pictures, int tokens)
{
    return json_pack("{s:[o], s:i, s:i}", "messages", served_user(text, pictures, 5), "temperature", 0,
                     "max_tokens", tokens);
}

json_t *served_with(json_t *body, const char *members)
{
    json_t *more = json_loads(members, 0, NULL);
    assert_non_null(more);
    json_object_update(body, more);
    json_decref(more);
    return body;
}

double served_metric(const struct served *v, const char *name)
{
    struct said r = served_get(v, "/metrics");
    char *line = xasprintf("\nholorun_%s ", name);
    const char *at = strstr(r.text, line);
    if (!at)
        fail_msg("no metric %s", name);
    double value = at ? strtod(at + strlen(line), NULL) : 0;
    free(line);
    said_free(&r);
    return value;
}
