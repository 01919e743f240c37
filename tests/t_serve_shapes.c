/* t_serve_shapes.c - claims about what `holorun serve` refuses and how its replies look; about clients that
 * go away, memory, weights that are exchanged, and the end.
 */
#include "check.h"
#include "served.h"

#include "base/clock.h"
#include "base/file.h"
#include "serve/json_schema.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

static json_t *request(const char *text, int pictures, int tokens)
{
    return json_pack("{s:[o], s:i, s:i}", "messages", served_user(text, pictures, 5), "temperature", 0,
                     "max_tokens", tokens);
}

static struct said post(const struct served *v, json_t *body)
{
    return served_post(v, "/v1/chat/completions", body);
}

/* The request with more members, as JSON text. */
static json_t *with(json_t *body, const char *members)
{
    json_t *more = json_loads(members, 0, NULL);
    assert_non_null(more);
    json_object_update(body, more);
    json_decref(more);
    return body;
}

/* ---- refusals ------------------------------------------------------------------------------------- */

#define USER "\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]"
#define IMAGE                                                                                                \
    "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", \"image_url\": {\"url\": \""
#define FORMAT(schema)                                                                                       \
    "{" USER ", \"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": \"a\", "        \
    "\"schema\": " schema "}}}"

static void t_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *body, *says;
        int status;
    } cases[] = {
        {"", "not a JSON object", 400},
        {"{\"messages\": [", "not a JSON object", 400},
        {"[1]", "not a JSON object", 400},
        {"{}", "'messages' must be a list", 400},
        {"{\"messages\": []}", "'messages' must be a list", 400},
        {"{\"messages\": [{\"role\": \"pope\", \"content\": \"x\"}]}", "message 1: 'role'", 400},
        {"{\"messages\": [{\"role\": \"assistant\", \"content\": \"x\"}]}", "the last message", 400},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"system\", \"content\": \"x\"}]}",
         "message 2: a system message", 400},
        {"{" USER ", \"temperature\": -1}", "'temperature'", 400},
        {"{" USER ", \"max_tokens\": 0}", "'max_tokens'", 400},
        {"{" USER ", \"n\": 3}", "'n' can only be 1", 400},
        {"{" USER ", \"frequency_penalty\": 0.5}", "'frequency_penalty' is not supported", 400},
        {"{" USER ", \"logit_bias\": {\"3\": 5}}", "'logit_bias' is not supported", 400},
        {"{" USER ", \"top_logprobs\": 3}", "'top_logprobs' needs", 400},
        {"{" USER ", \"top_logprobs\": 50, \"logprobs\": true}", "'top_logprobs'", 400},
        {"{" USER ", \"stop\": [\"a\", \"\"]}", "'stop'", 400},
        {"{" USER ", \"brightness\": 3}", "unknown member 'brightness'", 400},
        {"{" USER ", \"model\": \"gpt\"}", "there is no model 'gpt' here, only 'tiny'", 404},
        {"{" USER ", \"tool_choice\": \"required\"}", "'tool_choice' without 'tools'", 400},
        {IMAGE "http://127.0.0.1/x.png\"}}]}]}", "fetches nothing", 400},
        {IMAGE "data:image/jpeg;base64,AAAA\"}}]}]}", "must be a PNG", 400},
        {IMAGE "data:image/png;base64,!!!!\"}}]}]}", "not base64", 400},
        {IMAGE "data:image/png;base64,AAAA\"}}]}]}", "not a PNG", 400},
        {IMAGE "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA//8AAP//CAIAAAA=\"}}]}]}", "65535x65535", 400},
        {FORMAT("{\"type\": \"string\", \"pattern\": \"a+\"}"), "'pattern' is not supported", 400},
        {FORMAT("{\"type\": \"array\"}"), "needs 'items'", 400},
        {FORMAT("{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"type\": \"array\", \"items\": {\"$ref\": "
                "\"#/$defs/a\"}}}}"),
         "contains itself", 400},
        {FORMAT("{\"oneOf\": [{\"type\": \"integer\"}, {\"type\": \"number\"}]}"), "overlap", 400},
        {FORMAT("{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"text\"}}}"), "'#/properties/a'",
         400},
    };
    struct served v;
    served_open(&v, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct said r =
            served_send(&v, "/v1/chat/completions", SERVED_TOKEN, cases[i].body, strlen(cases[i].body), -1);
        const char *says = json_string_value(json_object_get(json_object_get(r.json, "error"), "message"));
        if (r.status != cases[i].status || !says || !strstr(says, cases[i].says))
            fail_msg("case %zu, %.80s: %d %s", i, cases[i].body, r.status, r.text);
        said_free(&r);
    }
    struct said r = post(&v, request("still here", 1, 3));
    assert_int_equal(r.status, 200);
    said_free(&r);
    served_close(&v);
}

static void t_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *path, *token, *body;
        int status;
    } cases[] = {{"/health", NULL, NULL, 200},
                 {"/health", NULL, "{}", 405},
                 {"/metrics", NULL, NULL, 401},
                 {"/metrics", SERVED_TOKEN, NULL, 200},
                 {"/v1/models", "", NULL, 401},
                 {"/v1/models", SERVED_TOKEN "x", NULL, 401},
                 {"/v1/models", "sesame-open-sesamf", NULL, 401},
                 {"/v1/models", SERVED_TOKEN, NULL, 200},
                 {"/v1/models/tiny", SERVED_TOKEN, NULL, 200},
                 {"/v1/models/other", SERVED_TOKEN, NULL, 404},
                 {"/v1/chat/completions", "no", "{}", 401},
                 {"/v1/chat/completions", SERVED_TOKEN, NULL, 405},
                 {"/v2/chat", SERVED_TOKEN, "{}", 404},
                 {"/../etc/passwd", SERVED_TOKEN, NULL, 404}};
    struct served v;
    served_open(&v, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct said r = served_send(&v, cases[i].path, cases[i].token, cases[i].body,
                                    cases[i].body ? strlen(cases[i].body) : 0, -1);
        if (r.status != cases[i].status)
            fail_msg("case %zu, %s: %d %s", i, cases[i].path, r.status, r.text);
        said_free(&r);
    }
    served_close(&v);
}

static void small(struct service_options *o, struct server_options *s)
{
    s->max_body = 2000;
}

static void t_too_large(void **state)
{
    (void)state;
    struct served v;
    char *text = calloc(1, 5000);
    memset(text, ' ', 4999);
    served_open(&v, small);
    struct said r = served_send(&v, "/v1/chat/completions", SERVED_TOKEN, text, 4999, -1);
    assert_int_equal(r.status, 413);
    said_free(&r);
    free(text);
    char *deep = calloc(1, 1500);
    memset(deep, '[', 1499);
    r = served_send(&v, "/v1/chat/completions", SERVED_TOKEN, deep, 1499, -1);
    assert_int_equal(r.status, 400);
    assert_non_null(strstr(r.text, "nested deeper"));
    said_free(&r);
    free(deep);
    served_close(&v);
}

/* ---- replies ---------------------------------------------------------------------------------------- */

/* A reply of a random model under a schema is JSON that fits it. */
static void t_schema(void **state)
{
    (void)state;
    static const char schema[] =
        "{\"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": \"a\", \"strict\": true, "
        "\"schema\": {\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"kind\", \"at\", "
        "\"far\"], \"properties\": {\"note\": {\"anyOf\": [{\"type\": \"string\", \"maxLength\": 5}, {\"type\": "
        "\"null\"}]}, \"kind\": {\"enum\": [\"click\", \"drag\"]}, \"at\": {\"type\": \"array\", \"items\": "
        "{\"$ref\": \"#/$defs/c\"}, \"minItems\": 2, \"maxItems\": 2}, \"far\": {\"type\": \"number\", "
        "\"minimum\": -2, \"maximum\": 3}, \"ok\": {\"type\": \"boolean\"}}, \"$defs\": {\"c\": {\"type\": "
        "\"integer\", \"minimum\": 0, \"maximum\": 1000}}}}}, \"temperature\": 1.5}";
    struct served v;
    served_open(&v, NULL);
    int notes = 0, oks = 0;
    for (int i = 0; i < 30; i++) {
        json_t *body = with(request("Click.", i % 2, 200), schema);
        json_object_set_new(body, "seed", json_integer(i));
        json_object_set_new(body, "stream", json_boolean(i % 3 == 0));
        struct said r = post(&v, body);
        json_t *reply = json_loads(said_content(&r), JSON_REJECT_DUPLICATES, NULL), *far;
        if (!reply || strcmp(said_finish(&r), "stop") != 0)
            fail_msg("not JSON: %s", r.text);
        const char *kind = json_string_value(json_object_get(reply, "kind"));
        assert_true(!strcmp(kind, "click") || !strcmp(kind, "drag"));
        assert_int_equal(json_array_size(json_object_get(reply, "at")), 2);
        json_int_t x = json_integer_value(json_array_get(json_object_get(reply, "at"), 1));
        far = json_object_get(reply, "far");
        assert_true(x >= 0 && x <= 1000 && json_is_number(far));
        assert_true(json_number_value(far) >= -2 && json_number_value(far) <= 3);
        notes += json_object_get(reply, "note") != NULL;
        oks += json_object_get(reply, "ok") != NULL;
        json_decref(reply);
        said_free(&r);
    }
    check_note("30 replies under a schema; %d had a note, %d an ok", notes, oks);
    struct said r =
        post(&v, with(request("Any.", 0, 400), "{\"response_format\": {\"type\": \"json_object\"}}"));
    assert_int_equal(said_content(&r)[0], '{');
    said_free(&r);
    served_close(&v);
}

#define TOOLS                                                                                                \
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"click\", \"parameters\": {\"type\": "   \
    "\"object\", \"required\": [\"x\"], \"properties\": {\"x\": {\"type\": \"integer\", \"minimum\": 0, "    \
    "\"maximum\": 99}}}}}, {\"type\": \"function\", \"function\": {\"name\": \"wait\"}}]"

static void t_tools(void **state)
{
    (void)state;
    struct served v;
    served_open(&v, NULL);
    for (int i = 0; i < 8; i++) {
        json_t *body =
            with(request("Click.", 1, 200), i % 2 ? "{" TOOLS ", \"tool_choice\": \"required\"}"
                                                  : "{" TOOLS ", \"tool_choice\": {\"type\": "
                                                    "\"function\", \"function\": {\"name\": \"click\"}}}");
        json_object_set_new(body, "stream", json_boolean(i % 4 > 1));
        json_object_set_new(body, "temperature", json_real(1.0));
        json_t *messages = json_incref(json_object_get(body, "messages"));
        struct said r = post(&v, body);
        if (r.status != 200)
            fail_msg("%s", r.text);
        json_t *calls = json_object_get(said_message(&r), "tool_calls"), *call = json_array_get(calls, 0);
        json_t *f = json_object_get(call, "function");
        const char *name = json_string_value(json_object_get(f, "name"));
        assert_string_equal(said_finish(&r), "tool_calls");
        assert_true(json_is_string(json_object_get(call, "id")) && name);
        if (i % 2 == 0)
            assert_string_equal(name, "click");
        json_t *arguments = json_loads(json_string_value(json_object_get(f, "arguments")), 0, NULL);
        assert_true(json_is_object(arguments));
        assert_int_equal(json_object_size(arguments), !strcmp(name, "click"));
        json_decref(arguments);
        int64_t prompt = i == 1 ? said_number(&r, "prompt_tokens") : 0;
        json_array_append_new(
            messages, json_pack("{s:s, s:n, s:O}", "role", "assistant", "content", "tool_calls", calls));
        json_array_append_new(messages, json_pack("{s:s, s:s, s:O}", "role", "tool", "content", "done",
                                                  "tool_call_id", json_object_get(call, "id")));
        struct said next = post(
            &v, with(json_pack("{s:O, s:i, s:i}", "messages", messages, "temperature", 0, "max_tokens", 5),
                     "{" TOOLS "}"));
        if (next.status != 200)
            fail_msg("%s", next.text);
        assert_true(said_number(&next, "cached_tokens") >= prompt);
        said_free(&next);
        said_free(&r);
        json_decref(messages);
    }
    served_close(&v);
}

static void t_logprobs(void **state)
{
    (void)state;
    struct served v;
    served_open(&v, NULL);
    struct said r = post(&v, with(request("Odds.", 1, 12), "{\"logprobs\": true, \"top_logprobs\": 4}"));
    json_t *choice = json_array_get(json_object_get(r.json, "choices"), 0), *token;
    json_t *list = json_object_get(json_object_get(choice, "logprobs"), "content");
    size_t i;
    assert_true(json_array_size(list) >= 1);
    json_array_foreach(list, i, token)
    {
        json_t *top = json_object_get(token, "top_logprobs");
        double p = json_number_value(json_object_get(token, "logprob")), last = 0;
        assert_int_equal(json_array_size(top), 4);
        for (size_t k = 0; k < 4; k++) {
            double q = json_number_value(json_object_get(json_array_get(top, k), "logprob"));
            assert_true(q <= last);
            last = q;
        }
        /* greedy: the token is the likeliest */
        assert_true(fabs(p - json_number_value(json_object_get(json_array_get(top, 0), "logprob"))) < 1e-3);
        assert_int_equal(json_integer_value(json_object_get(token, "weights_version")), 1);
    }
    said_free(&r);
    served_close(&v);
}

/* A stop text ends the reply before it, streamed or not, and the next turn goes on after what was said. */
static void t_stop(void **state)
{
    (void)state;
    struct served v;
    served_open(&v, NULL);
    struct said all = post(&v, request("Say a lot.", 0, 40));
    const char *text = said_content(&all), *at = text + strlen(text) / 2;
    char stop[4] = "zzz"; /* or two letters after the middle, which may stand before it, too */
    while (*at && ((at[0] | at[1]) & 0x80 || !at[1]))
        at++;
    if (*at)
        snprintf(stop, sizeof stop, "%.2s", at);
    for (int i = 0; i < 2; i++) {
        json_t *body = request("Say a lot.", 0, 40);
        json_object_set_new(body, "stop", json_pack("[s]", stop));
        json_object_set_new(body, "stream", json_boolean(i));
        struct said r = post(&v, body);
        const char *first = strstr(text, stop);
        size_t n = first ? (size_t)(first - text) : strlen(text);
        assert_int_equal(strlen(said_content(&r)), n);
        assert_memory_equal(said_content(&r), text, n);
        said_free(&r);
    }
    said_free(&all);
    served_close(&v);
}

/* ---- shapes that others' types have accepted -------------------------------------------------------- */

static void same_shape(const json_t *a, const json_t *b, const char *where)
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
        same_shape(v, json_object_get(b, key), path);
        free(path);
    }
    if (json_object_size(a) != json_object_size(b))
        fail_msg("%s has more members", where);
    if (json_array_size(a) && json_array_size(b))
        same_shape(json_array_get(a, 0), json_array_get(b, 0), where);
}

/* tests/scripts/serve_clients.py has recorded replies that the openai package validates. */
static void t_recorded(void **state)
{
    (void)state;
    static const struct {
        const char *file, *members;
    } cases[] = {{"plain", "{}"},
                 {"logprobs", "{\"logprobs\": true, \"top_logprobs\": 3}"},
                 {"ids", "{\"return_token_ids\": true}"},
                 {"tool", "{" TOOLS ", \"tool_choice\": \"required\"}"}};
    struct served v;
    served_open(&v, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = xasprintf("tests/cases/serve/%s.json", cases[i].file);
        json_t *was = json_load_file(path, 0, NULL);
        assert_non_null(was);
        struct said r = post(&v, with(request("Shape.", 1, 200), cases[i].members));
        same_shape(was, r.json, cases[i].file);
        said_free(&r);
        json_decref(was);
        free(path);
    }
    served_close(&v);
}

static void with_tls(struct service_options *o, struct server_options *s)
{
    s->cert = "tests/cases/serve/cert.pem";
    s->key = "tests/cases/serve/key.pem";
}

static void t_tls(void **state)
{
    (void)state;
    struct served v;
    served_open(&v, with_tls);
    struct said r = post(&v, request("Secret.", 1, 5));
    assert_int_equal(r.status, 0); /* nobody vouches for the certificate */
    said_free(&r);
    v.authority = "tests/cases/serve/cert.pem";
    r = post(&v, with(request("Secret.", 1, 5), "{\"stream\": true}"));
    assert_int_equal(r.status, 200);
    assert_true(json_is_true(json_object_get(r.json, "done")));
    said_free(&r);
    served_close(&v);
}

/* ---- clients ---------------------------------------------------------------------------------------- */

static void one_at_a_time(struct service_options *o, struct server_options *s)
{
    s->max_requests = 1;
}

static bool becomes(const struct served *v, const char *metric, double value)
{
    for (int i = 0; i < 200; i++) {
        if (fabs(served_metric(v, metric) - value) < 0.5)
            return true;
        clock_sleep_ms(20);
    }
    return false;
}

static void *long_request(void *arg)
{
    struct said r = post(arg, request("Go on and on.", 2, 3000));
    int status = r.status;
    said_free(&r);
    return (void *)(intptr_t)status;
}

static void t_hang_up(void **state)
{
    (void)state;
    struct served v;
    served_open(&v, one_at_a_time);
    json_t *body = with(request("Go on.", 2, 100000), "{\"stream\": true, \"temperature\": 1}");
    /* the end of a reply is a token like others: a schema keeps it from coming */
    with(body,
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
            check_note("the place of a client that hung up is free after %.0f ms", clock_ms_since(start));
    }
    assert_int_equal(cancelled, 5);
    /* another one finds the server busy, and is told when to come again */
    pthread_t t;
    pthread_create(&t, NULL, long_request, &v);
    struct said r = {0};
    for (int i = 0; i < 100 && r.status != 429; i++) {
        said_free(&r);
        r = post(&v, request("Me too.", 0, 3));
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

/* Seven conversations in turn where two fit in memory; returns the text of all replies. */
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
            struct said r = post(
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
    (void)state;
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
    assert_int_equal(rmdir(spill_dir), 0); /* its files are gone */
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
    (void)state;
    struct served v;
    served_open(&v, bounded);
    for (int i = 0; i < 40; i++) {
        char text[40];
        snprintf(text, sizeof text, "Conversation %d.", i);
        struct said r = post(&v, request(text, 1, 10));
        if (r.status != 200)
            fail_msg("%d %s", r.status, r.text);
        said_free(&r);
        assert_true(served_metric(&v, "state_bytes") <= 1 << 20);
    }
    check_note("40 conversations in 1 MiB: %.0f given up", served_metric(&v, "conversations_evicted"));
    assert_true(served_metric(&v, "conversations_evicted") > 0);
    served_close(&v);
}

/* ---- weights and the end ------------------------------------------------------------------------------ */

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
    json_t *body = with(request("Sample.", 1, 3000), "{\"return_token_ids\": true, \"stream\": true, "
                                                     "\"stream_options\": {\"include_usage\": true}}");
    with(body,
         "{\"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": \"a\", \"schema\": "
         "{\"type\": \"array\", \"items\": {\"type\": \"integer\"}, \"minItems\": 256}}}}");
    t->said = post(t->v, body);
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
    (void)state;
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
    /* now everything is sampled under the new weights, as by a server that began with them */
    struct said here = post(&v, with(request("Same.", 2, 30), "{\"return_token_ids\": true}"));
    versions_of(&here, &low, &high);
    assert_true(low == 2 && high == 2);
    said_free(&here);
    /* abort ends what runs */
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
    (void)state;
    struct served v;
    served_open(&v, NULL);
    struct sampler_thread t = {.v = &v};
    pthread_create(&t.thread, NULL, sample, &t);
    assert_true(becomes(&v, "requests_running", 1));
    assert_int_equal(server_drain(v.server, 30, NULL), 0);
    pthread_join(t.thread, NULL);
    assert_int_equal(t.said.status, 200);
    assert_true(json_is_true(json_object_get(t.said.json, "done")));
    said_free(&t.said);
    struct said r = served_get(&v, "/health");
    assert_int_equal(r.status, 0); /* nobody listens any more */
    said_free(&r);
    served_close(&v);
}

static void t_token(void **state)
{
    (void)state;
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
    assert_non_null(strstr(e.text, "nobody else"));
    const struct server_options open = {.listen = "0.0.0.0:0", .token = made, .max_requests = 1, .idle_s = 5};
    assert_null(server_start(NULL, &open, &e));
    assert_non_null(strstr(e.text, "--insecure"));
    free(made);
    free(read);
    free(path);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CLAIM("what cannot be done is refused by name, and the server goes on", t_refusals),
        CLAIM("each address wants its method, and the token", t_addresses),
        CLAIM("large and deep bodies are refused", t_too_large),
        CLAIM("a random model under a schema says JSON that fits it", t_schema),
        CLAIM("a tool that must be called is called with arguments that fit", t_tools),
        CLAIM("log-probabilities are those of the sampled tokens, in order", t_logprobs),
        CLAIM("a stop text ends a reply before it", t_stop),
        CLAIM("replies have the shapes that the openai package has accepted", t_recorded),
        CLAIM("over TLS a client gets the same, and knows whom it talks to", t_tls),
        CLAIM("a client that hangs up frees its place; one too many is told to come again", t_hang_up),
        CLAIM("spilled conversations go on with the same tokens", t_spill),
        CLAIM("states stay within their memory", t_bounded),
        CLAIM("weights are exchanged under a running request, and each token says which", t_weights),
        CLAIM("a server that ends lets replies end", t_drain),
        CLAIM("the token's file is its owner's, and other machines need TLS", t_token),
    };
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
