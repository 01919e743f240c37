/* t_serve_clients.c - tests clients of `holorun serve` that disconnect, the memory of conversations, exchange
 * of weights, and shutdown.
 */
#include "check.h"
#include "program.h"
#include "served.h"

#include "base/clock.h"
#include "base/file.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- clients ---------------------------------------------------------------------------------------- */

static void one_at_a_time(struct service_options *o, struct server_options *s)
{
    s->max_requests = 1;
}

static bool becomes(const struct served *v, const char *metric, double value)
{
    for (int64_t start = clock_ns(); clock_ms_since(start) < 30000;) {
        if (fabs(served_metric(v, metric) - value) < 0.5)
            return true;
        clock_sleep_ms(2);
    }
    return false;
}

static void *long_request(void *arg)
{
    struct said r = served_chat(arg, served_request("Go on and on.", 2, 3000));
    int status = r.status;
    said_free(&r);
    return (void *)(intptr_t)status;
}

static void t_hang_up(void **state)
{
    struct served v;
    served_open(&v, one_at_a_time);
    json_t *body = served_with(served_request("Go on.", 2, 100000), "{\"stream\": true, \"temperature\": 1}");
    /* a schema excludes the end token, so the reply stays long */
    served_with(
        body,
        "{\"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": \"a\", \"schema\": "
        "{\"type\": \"array\", \"items\": {\"type\": \"integer\"}, \"minItems\": 256}}}}");
    char *text = json_dumps(body, 0);
    int cancelled = 0; /* a small model may end its reply before the server notices */
    for (int i = 0; i < 50 && cancelled < 5; i++) {
        int64_t start = clock_ns();
        struct said r =
            served_send(&v, "/v1/chat/completions", SERVED_TOKEN, text, strlen(text), 100 + i % 5 * 700);
        assert_int_equal(r.status, 200);
        said_free(&r);
        assert_true(becomes(&v, "requests_running", 0));
        cancelled = (int)served_metric(&v, "cancelled_total");
        if (cancelled == 5)
            check_note("the slot of a disconnected client is free after %.0f ms", clock_ms_since(start));
    }
    assert_int_equal(cancelled, 5);
    /* another client finds the server busy, and gets Retry-After */
    pthread_t t;
    pthread_create(&t, NULL, long_request, &v);
    struct said r = {0};
    for (int i = 0; i < 100 && r.status != 429; i++) {
        said_free(&r);
        r = served_chat(&v, served_request("Me too.", 0, 3));
    }
    if (r.status == 429)
        assert_string_equal(r.retry_after, "1");
    else
        check_note("the long request ended too soon");
    said_free(&r);
    void *status;
    pthread_join(t, &status);
    assert_true((intptr_t)status == 200 || (intptr_t)status == 429);
    free(text);
    json_decref(body);
    served_close(&v);
}

/* ---- memory ----------------------------------------------------------------------------------------- */

static char spill_dir[PLACE_PATH];

static void to_disk(struct service_options *o, struct server_options *s)
{
    o->store = (struct store_options){.most = 2, .spill = spill_dir, .most_files = 100};
}

static void forgetful(struct service_options *o, struct server_options *s)
{
    o->store = (struct store_options){.most = 2};
}

/* Runs seven conversations in turn with memory for two; returns the text of all replies. */
static char *seven(struct served *v)
{
    struct buf all;
    json_t *messages[7];
    buf_init(&all, 1 << 20);
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < 7; i++) {
            if (!turn)
                messages[i] = json_array();
            json_array_append_new(messages[i], served_user("Next.", 1, (uint64_t)(i * 10 + turn)));
            struct said r = served_chat(
                v, json_pack("{s:O, s:i, s:i}", "messages", messages[i], "temperature", 0, "max_tokens", 10));
            buf_puts(&all, said_content(&r));
            json_array_append(messages[i], said_message(&r));
            said_free(&r);
        }
    for (int i = 0; i < 7; i++)
        json_decref(messages[i]);
    return buf_take(&all);
}

static void t_spill(void **state)
{
    struct served v;
    assert_non_null(mkdtemp(place_template(spill_dir)));
    served_open(&v, NULL);
    char *want = seven(&v);
    served_close(&v);
    served_open(&v, to_disk);
    char *have = seven(&v);
    assert_string_equal(want, have);
    assert_int_equal((int)served_metric(&v, "pictures_total"), 21);
    assert_int_equal((int)served_metric(&v, "conversations_idle"), 2);
    check_note("%.0f sessions read back from files", served_metric(&v, "conversations_restored"));
    assert_true(served_metric(&v, "conversations_restored") >= 10);
    served_close(&v);
    assert_int_equal(rmdir(spill_dir), 0); /* its files are removed */
    free(have);
    served_open(&v, forgetful);
    have = seven(&v);
    assert_true(served_metric(&v, "conversations_idle") <= 2 && served_metric(&v, "pictures_total") > 21);
    served_close(&v);
    free(have);
    free(want);
}

static void bounded(struct service_options *o, struct server_options *s)
{
    o->model.state_memory = 1 << 20;
    s->model.state_memory = 1 << 20;
}

static void t_bounded(void **state)
{
    struct served v;
    served_open(&v, bounded);
    for (int i = 0; i < 40; i++) {
        char text[40];
        snprintf(text, sizeof text, "Conversation %d.", i);
        struct said r = served_chat(&v, served_request(text, 1, 10));
        if (r.status != 200)
            fail_msg("%d %s", r.status, r.text);
        said_free(&r);
        assert_true(served_metric(&v, "state_bytes") <= 1 << 20);
    }
    check_note("40 conversations in 1 MiB: %.0f evicted", served_metric(&v, "conversations_evicted"));
    assert_true(served_metric(&v, "conversations_evicted") > 0);
    served_close(&v);
}

/* ---- weights and shutdown ----------------------------------------------------------------------------- */

static int versions_of(const struct said *r, int *low, int *high)
{
    json_t *choice = json_array_get(json_object_get(r->json, "choices"), 0), *one;
    json_t *list = json_object_get(choice, "weights_versions");
    size_t i;
    *low = 1000;
    *high = 0;
    json_array_foreach(list, i, one)
    {
        int version = (int)json_integer_value(one);
        *low = version < *low ? version : *low;
        *high = version > *high ? version : *high;
    }
    return (int)json_array_size(list);
}

struct sampler_thread {
    const struct served *v;
    struct said said;
    pthread_t thread;
};

static void *sample(void *arg)
{
    struct sampler_thread *t = arg;
    json_t *body =
        served_with(served_request("Sample.", 1, 6000), "{\"return_token_ids\": true, \"stream\": true, "
                                                        "\"stream_options\": {\"include_usage\": true}}");
    /* 4,096 numbers: the full context ends the reply of any random model */
    served_with(
        body,
        "{\"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": \"a\", \"schema\": "
        "{\"type\": \"array\", \"minItems\": 256, \"items\": {\"type\": \"array\", \"minItems\": 16, "
        "\"items\": {\"type\": \"integer\"}}}}}}");
    t->said = served_chat(t->v, body);
    return NULL;
}

static int trainer(const struct served *v, const char *path, json_t *body)
{
    struct said r = served_post(v, path, body);
    int status = r.status;
    said_free(&r);
    return status;
}

static void t_weights(void **state)
{
    struct served v;
    struct tiny other;
    int low, high;
    served_open(&v, NULL);
    tiny_init(&other, check_seed() + 1);
    tiny_write(&other);
    struct sampler_thread t = {.v = &v};
    assert_int_equal(trainer(&v, "/update_weights", json_pack("{s:s}", "path", other.dir)), 409);
    pthread_create(&t.thread, NULL, sample, &t);
    assert_true(becomes(&v, "first_token_seconds_count", 1));
    assert_int_equal(trainer(&v, "/pause", json_pack("{s:s}", "mode", "keep")), 200);
    assert_int_equal((int)served_metric(&v, "requests_running"), 1);
    assert_int_equal(trainer(&v, "/update_weights", json_pack("{s:s}", "path", "/nowhere")), 400);
    assert_int_equal(trainer(&v, "/update_weights", json_pack("{s:s}", "path", other.dir)), 200);
    assert_int_equal(trainer(&v, "/resume", json_object()), 200);
    pthread_join(t.thread, NULL);
    int n = versions_of(&t.said, &low, &high);
    check_note("%d tokens under versions %d to %d", n, low, high);
    assert_true(low == 1 && high == 2 && !strncmp(said_content(&t.said), "[", 1));
    said_free(&t.said);
    /* now everything is sampled with the new weights, as by a server started with them */
    struct said here =
        served_chat(&v, served_with(served_request("Same.", 2, 30), "{\"return_token_ids\": true}"));
    versions_of(&here, &low, &high);
    assert_true(low == 2 && high == 2);
    said_free(&here);
    /* abort ends running requests */
    pthread_create(&t.thread, NULL, sample, &t);
    assert_true(becomes(&v, "requests_running", 1));
    assert_int_equal(trainer(&v, "/pause", json_pack("{s:s}", "mode", "abort")), 200);
    assert_int_equal((int)served_metric(&v, "requests_running"), 0);
    pthread_join(t.thread, NULL);
    if (t.said.status == 200) {
        const char *finish = said_finish(&t.said);
        assert_true(finish &&
                    (!strcmp(finish, "abort") || !strcmp(finish, "length"))); /* it may have ended */
    }
    said_free(&t.said);
    assert_int_equal(trainer(&v, "/resume", json_object()), 200);
    tiny_free(&other);
    served_close(&v);
}

static void t_drain(void **state)
{
    struct served v;
    served_open(&v, NULL);
    struct sampler_thread t = {.v = &v};
    pthread_create(&t.thread, NULL, sample, &t);
    assert_true(becomes(&v, "requests_running", 1));
    assert_int_equal(server_drain(v.server, 30, NULL), 0);
    pthread_join(t.thread, NULL);
    assert_int_equal(t.said.status, 200);
    assert_true(json_is_true(json_object_get(t.said.json, "done")));
    assert_string_equal(said_finish(&t.said), "length"); /* the context is full before max_tokens */
    said_free(&t.said);
    struct said r = served_get(&v, "/health");
    assert_int_equal(r.status, 0); /* the server no longer listens */
    said_free(&r);
    served_close(&v);
}

static void t_token(void **state)
{
    char dir[PLACE_PATH];
    struct err e = ERR_INIT;
    struct stat st;
    assert_non_null(mkdtemp(place_template(dir)));
    char *path = xasprintf("%s/token", dir), *made = server_token(path, &e), *read = server_token(path, &e);
    assert_true(made && read && strlen(made) == 64);
    assert_string_equal(made, read);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(chmod(path, 0640), 0);
    assert_null(server_token(path, &e));
    assert_non_null(strstr(e.text, "readable by you only"));
    const struct server_options open = {.listen = "0.0.0.0:0", .token = made, .max_requests = 1, .idle_s = 5};
    assert_null(server_start(NULL, &open, &e));
    assert_non_null(strstr(e.text, "--insecure"));
    struct rlimit core;
    assert_int_equal(getrlimit(RLIMIT_CORE, &core), 0);
    assert_true(core.rlim_cur == 0 && core.rlim_max == 0 && prctl(PR_GET_DUMPABLE) == 0);
    free(made);
    free(read);
    free(path);
}

/* A request to this server names the dialect's grammar; one to another server does not. */
static void t_doctor(void **state)
{
    struct served v;
    struct xvfb x;
    OUTCOME(o);
    served_open(&v, NULL);
    xvfb_folder(&x);
    autofree char *url = xasprintf("%s/v1", v.url), *dir = xvfb_place(&x, "state"),
                  *key = xvfb_put(&x, "token", SERVED_TOKEN "\n"), *from = xasprintf("file:%s", key);
    setenv("XDG_STATE_HOME", dir, 1);
    program_run(&x, &o, WORDS("doctor", "--base-url", url, "--key", from));
    unsetenv("XDG_STATE_HOME");
    if (o.code != 0 || !strstr(o.out, "constraint"))
        fail_msg("%d: %s%s", o.code, o.out, o.err);
    xvfb_stop(&x);
    served_close(&v);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a disconnecting client frees its slot; one too many gets Retry-After", t_hang_up),
    CLAIM("doctor describes this server as an endpoint", t_doctor),
    CLAIM("spilled conversations continue with the same tokens", t_spill),
    CLAIM("session states stay within their memory limit", t_bounded),
    CLAIM("weights are exchanged during a request, and each token names its version", t_weights),
    CLAIM("a server that shuts down lets replies end", t_drain),
    CLAIM("the token file is private, no core dump has it, and other machines need TLS", t_token),
};

CHECK_MAIN()
