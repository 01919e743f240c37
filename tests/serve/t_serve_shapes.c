/* t_serve_shapes.c - tests refusals of `holorun serve` and the format of its replies. */
#include "check.h"
#include "served.h"

#include "serve/json_schema.h"

/* ---- refusals ------------------------------------------------------------------------------------- */

#define USER "\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]"
#define IMAGE                                                                                                \
    "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", \"image_url\": {\"url\": \""
#define FORMAT(schema)                                                                                       \
    "{" USER ", \"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": \"a\", "        \
    "\"schema\": " schema "}}}"

static void t_refusals(void **state)
{
    static const struct {
        const char *body, *says;
        int status;
    } cases[] = {
        {"", "not a JSON object", 400},
        {"{\"messages\": [", "not a JSON object", 400},
        {"[1]", "not a JSON object", 400},
        {"{}", "'messages' must be a list", 400},
        {"{\"messages\": []}", "'messages' must be a list", 400},
        {"{\"messages\": [{\"role\": \"pope\", \"content\": \"x\"}]}", "message 1: invalid 'role'", 400},
        {"{\"messages\": [{\"role\": \"assistant\", \"content\": \"x\"}]}", "the last message", 400},
        {"{" USER ", \"temperature\": -1}", "'temperature'", 400},
        {"{" USER ", \"max_tokens\": 0}", "'max_tokens'", 400},
        {"{" USER ", \"n\": 3}", "'n' must be 1", 400},
        {"{" USER ", \"frequency_penalty\": 2.5}", "'frequency_penalty' must be a number from -2 to 2", 400},
        {"{" USER ", \"logit_bias\": {\"3\": 5}}", "'logit_bias' is not supported", 400},
        {"{" USER ", \"top_logprobs\": 3}", "'top_logprobs' needs", 400},
        {"{" USER ", \"top_logprobs\": 50, \"logprobs\": true}", "'top_logprobs'", 400},
        {"{" USER ", \"stop\": [\"a\", 7]}", "'stop'", 400},
        {"{" USER ", \"model\": \"gpt\"}", "model 'gpt' not found; this server has 'tiny'", 404},
        {"{" USER ", \"tool_choice\": \"required\"}", "'tool_choice' needs 'tools'", 400},
        {IMAGE "http://127.0.0.1/x.png\"}}]}]}", "does not fetch", 400},
        {IMAGE "data:image/webp;base64,UklGRgAAAABXRUJQ\"}}]}]}", "must be PNG or JPEG, not WebP", 400},
        {IMAGE "data:image/png;base64,!!!!\"}}]}]}", "invalid base64", 400},
        {IMAGE "data:image/png;base64,AAAA\"}}]}]}", "PNG or JPEG, not an unknown format", 400},
        {IMAGE "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA//8AAP//CAIAAAA=\"}}]}]}", "65535x65535", 400},
        {IMAGE "\"}}]}]}", "an image needs a data URL", 400},
        {IMAGE "DATA:IMAGE/PNG;BASE64,\"}}]}]}", "without data", 400},
        {IMAGE "file:///etc/passwd\"}}]}]}", "does not fetch", 400},
        {IMAGE "data:image/jpeg;base64,iVBORw0KGgo=\"}}]}]}", "truncated", 400},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", \"image_url\": 7}]}]}",
         "message 1: ", 400},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"input_audio\"}]}]}",
         "message 1: ", 400},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [null, 3]}]}", "message 1: ", 400},
        {"{\"messages\": [null]}", "message 1: ", 400},
        {"{" USER ", " USER "}", "not a JSON object", 400},
        {"{" USER "} trailing", "not a JSON object", 400},
        {"{" USER ", \"max_tokens\": 5.5}", "'max_tokens'", 400},
        {"{" USER ", \"temperature\": \"hot\"}", "'temperature'", 400},
        {"{" USER ", \"temperature\": 1e999}", "not a JSON object", 400},
        {"{" USER ", \"stream\": \"yes\"}", "'stream'", 400},
        {"{" USER ", \"seed\": 1.5}", "'seed'", 400},
        {"{" USER ", \"tools\": {}}", "'tools'", 400},
        {"{" USER ", \"tools\": [{\"type\": \"function\"}]}", "tool 1 must be a function with a name", 400},
        {FORMAT("{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"type\": \"object\", \"required\": [\"b\"], "
                "\"properties\": {\"b\": {\"$ref\": \"#/$defs/a\"}}}}}"),
         "the schema requires itself", 400},
        {FORMAT("{\"$ref\": \"other.json\"}"), "is not in this schema", 400},
        {FORMAT("{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"text\"}}}"), "'#/properties/a'",
         400},
    };
    struct served v;
    int wrong = 0;
    served_open(&v, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct said r =
            served_send(&v, "/v1/chat/completions", SERVED_TOKEN, cases[i].body, strlen(cases[i].body), -1);
        const char *says = json_string_value(json_object_get(json_object_get(r.json, "error"), "message"));
        bool good = r.status == cases[i].status && says && strstr(says, cases[i].says);
        if (!good)
            print_error("case %zu, %.80s: %d %s\n", i, cases[i].body, r.status, r.text);
        wrong += !good;
        said_free(&r);
    }
    assert_int_equal(wrong, 0);
    struct said r = served_chat(&v, served_request("still here", 1, 3));
    assert_int_equal(r.status, 200);
    said_free(&r);
    served_close(&v);
}

static void t_addresses(void **state)
{
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

/* Returns a body that unpacks to `n` black images of w x h; their files are small. */
static json_t *black_pictures(int n, int w, int h)
{
    struct image im = {.w = w, .h = h, .rgb = xcalloc((unsigned long)w * (unsigned long)h, 3)};
    json_t *parts = json_array();
    struct buf url;
    void *png;
    uint64_t len;
    assert_int_equal(image_encode_png(&im, &png, &len, NULL), 0);
    buf_init(&url, 16 << 20);
    buf_puts(&url, "data:image/png;base64,");
    buf_put_base64(&url, png, len);
    for (int i = 0; i < n; i++)
        json_array_append_new(parts,
                              json_pack("{s:s, s:{s:s}}", "type", "image_url", "image_url", "url", url.data));
    buf_free(&url);
    free(png);
    image_free(&im);
    return json_pack("{s:[{s:s, s:o}], s:i}", "messages", "role", "user", "content", parts, "max_tokens", 3);
}

static void roomy(struct service_options *o, struct server_options *s)
{
    s->max_body = 64 << 20;
}

/* Many in one message, and one alone; narrow ones are accepted. */
static void t_many_pixels(void **state)
{
    struct served v;
    served_open(&v, roomy);
    struct said r = served_chat(&v, black_pictures(30, 4096, 4096));
    if (r.status != 400 || !strstr(r.text, "more than 128 million pixels"))
        fail_msg("%d %.200s", r.status, r.text);
    said_free(&r);
    r = served_chat(&v, black_pictures(1, 5000, 4000));
    assert_int_equal(r.status, 400);
    assert_non_null(strstr(r.text, "5000x4000"));
    said_free(&r);
    r = served_chat(&v, black_pictures(1, 1, 1));
    assert_int_equal(r.status, 200);
    said_free(&r);
    r = served_chat(&v, black_pictures(1, 16000, 1));
    assert_true(r.status == 200 || r.status == 400);
    said_free(&r);
    served_close(&v);
}

/* ---- replies ---------------------------------------------------------------------------------------- */

/* A random model's reply under a schema is valid JSON for it. */
static void t_schema(void **state)
{
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
        json_t *body = served_with(served_request("Click.", i % 2, 200), schema);
        json_object_set_new(body, "seed", json_integer(i));
        json_object_set_new(body, "stream", json_boolean(i % 3 == 0));
        struct said r = served_chat(&v, body);
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
    struct said r = served_chat(&v, served_with(served_request("Any.", 0, 400),
                                                "{\"response_format\": {\"type\": \"json_object\"}}"));
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
    struct served v;
    served_open(&v, NULL);
    for (int i = 0; i < 8; i++) {
        json_t *body = served_with(served_request("Click.", 1, 200),
                                   i % 2 ? "{" TOOLS ", \"tool_choice\": \"required\"}"
                                         : "{" TOOLS ", \"tool_choice\": {\"type\": "
                                           "\"function\", \"function\": {\"name\": \"click\"}}}");
        json_object_set_new(body, "stream", json_boolean(i % 4 > 1));
        json_object_set_new(body, "temperature", json_real(1.0));
        json_t *messages = json_incref(json_object_get(body, "messages"));
        struct said r = served_chat(&v, body);
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
        struct said next = served_chat(&v, served_with(json_pack("{s:O, s:i, s:i}", "messages", messages,
                                                                 "temperature", 0, "max_tokens", 5),
                                                       "{" TOOLS "}"));
        if (next.status != 200)
            fail_msg("%s", next.text);
        assert_true(said_number(&next, "cached_tokens") >= prompt - 40); /* less the opening of the reply */
        said_free(&next);
        said_free(&r);
        json_decref(messages);
    }
    served_close(&v);
}

static void t_logprobs(void **state)
{
    struct served v;
    served_open(&v, NULL);
    struct said r = served_chat(
        &v, served_with(served_request("Odds.", 1, 12), "{\"logprobs\": true, \"top_logprobs\": 4}"));
    json_t *choice = json_array_get(json_object_get(r.json, "choices"), 0), *token;
    json_t *list = json_object_get(json_object_get(choice, "logprobs"), "content");
    size_t i;
    assert_true(json_array_size(list) >= 1 ||
                said_number(&r, "completion_tokens") <= 1); /* it may end at once */
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
        /* greedy: the token has the largest logprob */
        assert_true(fabs(p - json_number_value(json_object_get(json_array_get(top, 0), "logprob"))) < 1e-3);
        assert_int_equal(json_integer_value(json_object_get(token, "weights_version")), 1);
    }
    said_free(&r);
    served_close(&v);
}

/* A stop text ends the reply before it, streamed or not, and the next turn continues after the reply. */
static void t_stop(void **state)
{
    struct served v;
    served_open(&v, NULL);
    struct said all = served_chat(&v, served_request("Say a lot.", 0, 40));
    const char *text = said_content(&all), *at = text + strlen(text) / 2;
    char stop[4] = "zzz"; /* or two letters after the middle, which may also occur before it */
    while (*at && ((at[0] | at[1]) & 0x80 || !at[1]))
        at++;
    if (*at)
        snprintf(stop, sizeof stop, "%.2s", at);
    for (int i = 0; i < 2; i++) {
        json_t *body = served_request("Say a lot.", 0, 40);
        json_object_set_new(body, "stop", json_pack("[s]", stop));
        json_object_set_new(body, "stream", json_boolean(i));
        struct said r = served_chat(&v, body);
        const char *first = strstr(text, stop);
        size_t n = first ? (size_t)(first - text) : strlen(text);
        assert_int_equal(strlen(said_content(&r)), n);
        assert_memory_equal(said_content(&r), text, n);
        said_free(&r);
    }
    said_free(&all);
    served_close(&v);
}

/* ---- formats accepted by the package ---------------------------------------------------------------- */

/* tests/scripts/serve_clients.py recorded replies that the openai package validates. */
static void t_recorded(void **state)
{
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
        struct said r = served_chat(&v, served_with(served_request("Shape.", 1, 200), cases[i].members));
        said_same_shape(was, r.json, cases[i].file);
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
    struct served v;
    served_open(&v, with_tls);
    struct said r = served_chat(&v, served_request("Secret.", 1, 5));
    assert_int_equal(r.status, 0); /* the client has no CA for the certificate */
    said_free(&r);
    v.authority = "tests/cases/serve/cert.pem";
    r = served_chat(&v, served_with(served_request("Secret.", 1, 5), "{\"stream\": true}"));
    assert_int_equal(r.status, 200);
    assert_true(json_is_true(json_object_get(r.json, "done")));
    said_free(&r);
    served_close(&v);
}

static const struct CMUnitTest tests[] = {
    CLAIM("invalid requests are refused by name, and the server continues", t_refusals),
    CLAIM("each address needs its method, and the token", t_addresses),
    CLAIM("large and deep bodies are refused", t_too_large),
    CLAIM("small files that unpack to many pixels are refused before all are in memory", t_many_pixels),
    CLAIM("a random model under a schema replies with valid JSON", t_schema),
    CLAIM("a required tool is called with valid arguments", t_tools),
    CLAIM("log-probabilities are those of the sampled tokens, in order", t_logprobs),
    CLAIM("a stop text ends a reply before it", t_stop),
    CLAIM("replies have the formats that the openai package accepts", t_recorded),
    CLAIM("TLS gives the same replies, and clients verify the server", t_tls),
};

CHECK_MAIN()
