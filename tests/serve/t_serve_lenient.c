/* t_serve_lenient.c - tests requests of real clients: their prompts, headers, refusals and token counts. The
 * requests are in cases/serve.
 */
#include "check.h"
#include "served.h"

#include "base/file.h"
#include "serve/body_text.h"
#include "serve/notes.h"

static char *picture, *data; /* a data URL, and its base64 part */

/* Inserts the image at the case's placeholders. */
static void put_picture(json_t *v)
{
    const char *key;
    json_t *one;
    size_t i;
    json_object_foreach(v, key, one)
    {
        if (json_is_string(one) && !strcmp(json_string_value(one), "$PICTURE"))
            json_object_set_new(v, key, json_string(picture));
        else if (json_is_string(one) && !strcmp(json_string_value(one), "$DATA"))
            json_object_set_new(v, key, json_string(data));
        else
            put_picture(one);
    }
    json_array_foreach(v, i, one) put_picture(one);
}

static json_t *read_cases(const char *path)
{
    json_t *cases = json_load_file(path, 0, NULL), *part = served_picture(3);
    picture = xstrdup(json_string_value(json_object_get(json_object_get(part, "image_url"), "url")));
    data = strchr(picture, ',') + 1;
    json_decref(part);
    assert_non_null(cases);
    put_picture(cases);
    return cases;
}

static void set_default(json_t *body, const char *key, json_t *value)
{
    if (json_object_get(body, key))
        json_decref(value);
    else
        json_object_set_new(body, key, value);
}

static struct said ask(const struct served *v, const char *path, const json_t *body)
{
    json_t *copy = json_deep_copy(body);
    bool responses = !strcmp(path, "/v1/responses"),
         limited = json_object_get(copy, "n_predict") || json_object_get(copy, "max_completion_tokens");
    if (!limited)
        set_default(copy, responses ? "max_output_tokens" : "max_tokens", json_integer(8));
    set_default(copy, "temperature", json_integer(0));
    return served_post(v, path, copy);
}

/* Returns the text of a reply in any protocol. */
static char *text_of(json_t *v, struct buf *out)
{
    static const char *const names[] = {"text", "content", "message", "choices", "output", NULL};
    json_t *one;
    size_t i;
    json_array_foreach(v, i, one) text_of(one, out);
    for (i = 0; names[i]; i++) {
        one = json_object_get(v, names[i]);
        if (json_is_string(one))
            buf_puts(out, json_string_value(one));
        else if (one && !json_is_null(one))
            text_of(one, out);
    }
    return out->data;
}

static json_int_t prompt_of(const struct said *r)
{
    json_t *usage = json_object_get(r->json, "usage");
    json_int_t n = json_integer_value(json_object_get(usage, "prompt_tokens"));
    return n + json_integer_value(json_object_get(usage, "input_tokens")) +
           json_integer_value(json_object_get(usage, "cache_read_input_tokens"));
}

static const char *of(const json_t *c, const char *key)
{
    const char *text = json_string_value(json_object_get(c, key));
    return text ? text : "";
}

/* Sends a case and the equivalent chat completion. */
static int check_accepted(const struct served *v, const json_t *c)
{
    struct said r = ask(v, of(c, "path"), json_object_get(c, "body"));
    const json_t *like = json_object_get(c, "like");
    bool good = r.status == 200 && !strcmp(r.ignored, of(c, "ignored"));
    good = good && (*of(c, "warning") ? strstr(r.warning, of(c, "warning")) != NULL : !*r.warning);
    if (!good)
        print_error("%s: %d [%s] [%s] %.300s\n", of(c, "name"), r.status, r.ignored, r.warning, r.text);
    if (good && like) {
        struct said want = ask(v, "/v1/chat/completions", like);
        struct buf a, b;
        buf_init(&a, 1 << 20);
        buf_init(&b, 1 << 20);
        good = want.status == 200 && prompt_of(&r) == prompt_of(&want) &&
               !strcmp(text_of(r.json, &a), text_of(want.json, &b));
        if (!good)
            print_error("%s: %s, not %s\n", of(c, "name"), r.text, want.text);
        buf_free(&a);
        buf_free(&b);
        said_free(&want);
    }
    said_free(&r);
    return !good;
}

static void t_accepted(void **state)
{
    struct served v;
    json_t *cases = read_cases("tests/cases/serve/accepted.json"), *c;
    size_t i;
    int wrong = 0;
    served_open(&v, NULL);
    json_array_foreach(cases, i, c) wrong += check_accepted(&v, c);
    check_note("%zu requests", json_array_size(cases));
    assert_int_equal(wrong, 0);
    assert_true(json_array_size(cases) >= 70);
    served_close(&v);
    json_decref(cases);
    free(picture);
}

/* Requests with the members and blocks of Codex and Claude Code, whole and streamed. */
static void t_agents(void **state)
{
    static const char *const files[] = {"codex", "claude_code"}, *const ends[] = {
                                                                     "event: response.incomplete",
                                                                     "event: message_stop"};
    struct served v;
    served_open(&v, NULL);
    for (int i = 0; i < 2; i++) {
        char *path = xasprintf("tests/cases/serve/%s.json", files[i]);
        json_t *c = read_cases(path), *body = json_object_get(c, "body");
        struct said r = ask(&v, of(c, "path"), body);
        bool ended = strstr(r.text, ends[i]) || strstr(r.text, "event: response.completed");
        if (r.status != 200 || !ended || strcmp(r.ignored, of(c, "ignored")) != 0)
            fail_msg("%s: %d [%s] %s", path, r.status, r.ignored, r.text);
        said_free(&r);
        json_object_set_new(body, "stream", json_false());
        assert_int_equal(check_accepted(&v, c), 0);
        json_decref(c);
        free(picture);
        free(path);
    }
    served_close(&v);
}

static void t_refused(void **state)
{
    struct served v;
    json_t *cases = read_cases("tests/cases/serve/refused.json"), *c;
    size_t i;
    int wrong = 0;
    served_open(&v, NULL);
    json_array_foreach(cases, i, c)
    {
        struct said r = served_post(&v, of(c, "path"), json_incref(json_object_get(c, "body")));
        json_t *error = json_object_get(r.json, "error");
        bool good = r.status == (int)json_integer_value(json_object_get(c, "status")) &&
                    strstr(of(error, "message"), of(c, "says"));
        if (!good)
            print_error("%zu, %s: %d %s\n", i, of(c, "says"), r.status, r.text);
        wrong += !good;
        said_free(&r);
    }
    assert_int_equal(wrong, 0);
    served_close(&v);
    json_decref(cases);
    free(picture);
}

/* ---- invalid JSON -------------------------------------------------------------------------------------- */

static void t_texts(void **state)
{
    static const struct {
        const char *text, *same, *warning;
    } cases[] = {
        {"\xef\xbb\xbf{\"a\": 1}", "{\"a\": 1}", ""},
        {"{\"a\": \"x\\u0000y\"}", "{\"a\": \"x\\ufffdy\"}", "invalid Unicode"},
        {"{\"a\": \"\\ud83d\"}", "{\"a\": \"\\ufffd\"}", "invalid Unicode"},
        {"{\"a\": \"\\ude00\\ud83d\\n\"}", "{\"a\": \"\\ufffd\\ufffd\\n\"}", "invalid Unicode"},
        {"{\"a\": \"\\ud83d\\ude00 \\ud800\"}", "{\"a\": \"\\ud83d\\ude00 \\ufffd\"}", "invalid Unicode"},
        {"{\"a\": \"\\\\ud800\\u0000\"}", "{\"a\": \"\\\\ud800\\ufffd\"}", "invalid Unicode"},
        {"{\"a\": \"x\xff\xc3y\"}", "{\"a\": \"x\\ufffd\\ufffdy\"}", "invalid Unicode"},
        {"{\"a\": 18446744073709551615, \"b\": [9223372036854775807, -9223372036854775808]}",
         "{\"a\": 18446744073709551615.0, \"b\": [9223372036854775807, -9223372036854775808]}",
         "beyond 64 bits"},
        {"{\"a\": [-99999999999999999999, 1.99999999999999999999, 2e1, \"99999999999999999999\"]}",
         "{\"a\": [-99999999999999999999.0, 1.99999999999999999999, 2e1, \"99999999999999999999\"]}",
         "beyond 64 bits"},
        {"{\"a\": ", NULL, ""},
        {"{\"a\": \"\\ud8", NULL, ""},
        {"{\"a\": \"\\u0000", NULL, ""},
        {"{\"a\": 1e999}", NULL, ""},
        {"", NULL, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct notes n = {{0}, {0}};
        json_error_t why;
        json_t *v = body_text_load(cases[i].text, strlen(cases[i].text), 0, &n, &why),
               *want = cases[i].same ? json_loads(cases[i].same, 0, NULL) : NULL;
        if ((v == NULL) != (want == NULL) || (v && !json_equal(v, want)) ||
            !strstr(n.warning, cases[i].warning))
            fail_msg("%s: [%s]", cases[i].text, n.warning);
        assert_true(*cases[i].warning || !*n.warning);
        json_decref(v);
        json_decref(want);
    }
}

/* ---- counting ----------------------------------------------------------------------------------------- */

/* For each accepted request of the two protocols that can count tokens. */
static void t_counted(void **state)
{
    struct served v;
    json_t *cases = read_cases("tests/cases/serve/accepted.json"), *c;
    size_t i;
    int counted = 0;
    served_open(&v, NULL);
    json_array_foreach(cases, i, c)
    {
        bool messages = !strcmp(of(c, "path"), "/v1/messages"),
             responses = !strcmp(of(c, "path"), "/v1/responses");
        if (!messages && !responses)
            continue;
        json_t *body = json_deep_copy(json_object_get(c, "body"));
        json_object_set_new(body, "stream", json_false());
        struct said n =
            served_post(&v, messages ? "/v1/messages/count_tokens" : "/v1/responses/input_tokens", body);
        struct said r = ask(&v, of(c, "path"), json_object_get(c, "body"));
        if (n.status != 200 || json_integer_value(json_object_get(n.json, "input_tokens")) != prompt_of(&r))
            fail_msg("%s: %s, not as %s", of(c, "name"), n.text, r.text);
        if (responses)
            assert_string_equal(of(n.json, "object"), "response.input_tokens");
        counted++;
        said_free(&n);
        said_free(&r);
    }
    check_note("%d requests", counted);
    struct said bad = served_post(&v, "/v1/messages/count_tokens", json_pack("{s:[]}", "messages"));
    assert_int_equal(bad.status, 400);
    assert_string_equal(of(bad.json, "type"), "error");
    said_free(&bad);
    served_close(&v);
    json_decref(cases);
    free(picture);
}

/* ---- headers ------------------------------------------------------------------------------------------ */

/* A streamed reply has them, too. */
static void t_streamed(void **state)
{
    struct served v;
    served_open(&v, NULL);
    struct said r = served_chat(
        &v, served_with(served_request("Go.", 0, 4), "{\"stream\": true, \"verbosity\": \"low\"}"));
    assert_int_equal(r.status, 200);
    assert_string_equal(r.ignored, "verbosity");
    said_free(&r);
    served_close(&v);
}

static void t_notes(void **state)
{
    struct notes n = {{0}, {0}};
    notes_ignore(&n, "a");
    notes_ignore(&n, "ab");
    notes_ignore(&n, "a");
    notes_ignore(&n, "b\r\nc");
    notes_warn(&n, "one");
    notes_warn(&n, "two");
    notes_warn(NULL, "nothing");
    assert_string_equal(n.ignored, "a, ab, b??c");
    assert_string_equal(n.warning, "one; two");
    for (int i = 0; i < 1000; i++)
        notes_ignore(&n, "member %d", i);
    assert_true(strlen(n.ignored) <= NOTES_BYTES + 7);
    assert_string_equal(n.ignored + strlen(n.ignored) - 5, ", ...");
}

static const struct CMUnitTest tests[] = {
    CLAIM("requests of real clients are accepted, with the prompt of their plain form", t_accepted),
    CLAIM("requests of Codex and Claude Code are answered, whole and streamed", t_agents),
    CLAIM("a request whose meaning would change is refused with its member, message or tool", t_refused),
    CLAIM("slightly invalid JSON is read, and replacements are reported", t_texts),
    CLAIM("counted tokens equal the prompt tokens of the same request", t_counted),
    CLAIM("a streamed reply names the ignored members", t_streamed),
    CLAIM("notes name each member once, in bytes that a header carries", t_notes),
};

CHECK_MAIN()
