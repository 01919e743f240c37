/* t_remote.c - tests a model behind an endpoint, against a scripted server: whole and streamed replies in
 * pieces, errors, redirects, cuts, silence.
 */
#include "check.h"

#include "base/clock.h"
#include "base/http.h"
#include "far.h"
#include "place.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void t_conversation(void **state)
{
    static const struct far_turn turns[] = {
        {FAR_OK FAR_SAYS("one") FAR_SAYS(" two") FAR_STOP FAR_USAGE FAR_DONE, 3},
        {FAR_OK FAR_SAYS("three") FAR_STOP FAR_DONE, 0},
        {FAR_OK FAR_SAYS("again") FAR_STOP FAR_DONE, 0}};
    struct talk t;
    talk_open(&t, turns, 3, NULL, NULL, NULL);
    assert_int_equal(talk_ask(&t, "Hello"), 0);
    assert_string_equal(t.g.text.data, "one two");
    assert_int_equal(t.g.n, 9);
    assert_int_equal(t.g.finish, FINISH_STOP);
    struct session_stats s = t.llm->ops->stats(t.llm);
    assert_int_equal(s.prefilled, 20);
    assert_int_equal(s.reused, 80);
    struct llm_mark *mark = t.llm->ops->mark(t.llm, &t.e);
    assert_int_equal(talk_ask(&t, "More"), 0);
    assert_string_equal(t.g.text.data, "three");
    assert_int_equal(t.llm->ops->rewind(t.llm, mark, &t.e), 0);
    assert_int_equal(talk_ask(&t, "Otherwise"), 0);
    json_t *first = talk_body(&t, 0), *third = talk_body(&t, 2),
           *messages = json_object_get(third, "messages");
    assert_string_equal(json_string_value(json_object_get(first, "model")), "tiny");
    assert_int_equal(json_array_size(json_object_get(first, "messages")), 2);
    assert_int_equal(json_array_size(messages), 4); /* system, Hello, one two, Otherwise: More was rewound */
    assert_string_equal(json_string_value(json_object_get(json_array_get(messages, 2), "content")),
                        "one two");
    assert_non_null(json_object_get(first, "response_format"));
    check_has(t.server.requests[0], "Authorization: Bearer sesame-open\r\n", "x-session-id: abc\r\n");
    json_decref(first);
    json_decref(third);
    t.llm->ops->mark_free(mark);
    talk_close(&t);
}

static void t_shapes(void **state)
{
    static const struct {
        struct far_turn turn;
        const char *text;
        enum finish finish;
    } cases[] = {
        {{FAR_OK
          "data:{\"choices\": [{\"delta\": {\"reasoning\": \"hm\", \"content\": \"a\"}, \"finish_reason\": "
          "\"length\"}]}\r\n\r\ndata: [DONE]\r\n\r\n",
          1},
         "a",
         FINISH_LENGTH},
        {{FAR_OK
          "data: {\"choices\": [{\"delta\": {\"reasoning_content\": \"only here\"}}]}\n\n" FAR_STOP FAR_DONE,
          0},
         "only here",
         FINISH_STOP},
        {{FAR_OK
          "data: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 0, \"function\": {\"name\": \"click\", "
          "\"arguments\": \"{\\\"x\\\":\"}}]}}]}\n\ndata: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 0, "
          "\"function\": {\"arguments\": \" 5}\"}}]}}]}\n\n" FAR_STOP FAR_DONE,
          0},
         "{\"name\": \"click\", \"arguments\": {\"x\": 5}}",
         FINISH_STOP},
        {{FAR_JSON
          "{\n \"choices\": [{\"message\": {\"content\": \"whole\"},\n \"finish_reason\": \"stop\"}]\n}",
          7},
         "whole",
         FINISH_STOP},
        {{FAR_OK "data: {\"choices\": [{\"delta\": {\"content\": \"a\\u0000b\"}}]}\n\n" FAR_STOP FAR_DONE, 0},
         "a", /* the last byte is invalid UTF-8 */
         FINISH_STOP},
        {{FAR_JSON
          "{\"choices\": [{\"message\": {\"content\": [{\"type\": \"text\", \"text\": \"part\"}]}}]}",
          0},
         "part",
         FINISH_STOP},
        {{"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99999\r\n\r\n" FAR_SAYS(
              "whole before the cut") FAR_STOP,
          0},
         "whole before the cut",
         FINISH_STOP},
        {{FAR_JSON "\n\n  {\"choices\": [{\"message\": {\"content\": \"kept alive\"}}]}", 2},
         "kept alive",
         FINISH_STOP},
        /* a byte order mark, in pieces */
        {{FAR_OK "\xef\xbb\xbf" FAR_SAYS("marked") FAR_STOP FAR_DONE, 1}, "marked", FINISH_STOP},
        {{FAR_JSON "\xef\xbb\xbf{\"choices\": [{\"message\": {\"content\": \"marked\"}}]}", 2},
         "marked",
         FINISH_STOP},
        /* a refusal by the model */
        {{FAR_JSON "{\"choices\": [{\"message\": {\"content\": null, \"refusal\": \"I will not.\"}}]}", 0},
         "I will not.",
         FINISH_STOP},
        /* invalid JSON in arguments is left to the parser */
        {{FAR_JSON "{\"choices\": [{\"message\": {\"content\": null, \"tool_calls\": [{\"id\": 7, "
                   "\"function\": {\"name\": \"click\", \"arguments\": \"{\\\"x\\\": 5\"}}]}}]}",
          0},
         "{\"name\": \"click\", \"arguments\": \"{\\\"x\\\": 5\"}",
         FINISH_STOP},
        /* impossible counts are ignored */
        {{FAR_JSON "{\"choices\": [{\"message\": {\"content\": \"odd\"}}], \"usage\": {\"prompt_tokens\": "
                   "9223372036854775807, \"completion_tokens\": -3, \"prompt_tokens_details\": "
                   "{\"cached_tokens\": \"x\"}}}",
          0},
         "odd",
         FINISH_STOP},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct talk t;
        talk_open(&t, &cases[i].turn, 1, NULL, NULL, "{\"first_byte_s\": 5, \"tries\": 1}");
        if (talk_ask(&t, "Hello"))
            fail_msg("case %zu: %s", i, t.e.text);
        assert_string_equal(t.g.text.data, cases[i].text);
        assert_int_equal(t.g.finish, cases[i].finish);
        talk_close(&t);
    }
}

static void t_second_try(void **state)
{
    static const struct far_turn turns[] = {
        {FAR_ERROR("400 Bad Request", "unknown member response_format"), 0},
        {"HTTP/1.1 503 Busy\r\nRetry-After: 0.3\r\nConnection: close\r\n\r\n", 0},
        {FAR_OK FAR_SAYS("half") "CUT", 0},
        {FAR_OK FAR_SAYS("good") FAR_STOP FAR_DONE, 0},
    };
    struct talk t;
    talk_open(&t, turns, 4, NULL, NULL, NULL);
    int64_t start = clock_ns();
    if (talk_ask(&t, "Hello"))
        fail_msg("%s", t.e.text);
    assert_true(clock_ms_since(start) >= 300);  /* the delay that the server requested */
    assert_string_equal(t.g.text.data, "good"); /* without the text before the cut */
    json_t *last = talk_body(&t, 3);
    assert_null(json_object_get(last, "response_format"));
    assert_int_equal(json_array_size(json_object_get(last, "messages")), 2);
    json_decref(last);
    talk_close(&t);
}

static void t_refused(void **state)
{
    static const struct {
        struct far_turn turn;
        enum err_kind kind;
        const char *says;
    } cases[] = {
        {{FAR_ERROR("401 Unauthorized", "no such key"), 0}, ERR_ENV, "key refused (401): no such key"},
        {{FAR_ERROR("404 Not Found", "no model"), 0}, ERR_ENV, "-m names the model"},
        {{FAR_ERROR("400 Bad Request", "too long"), 0}, ERR_MODEL, "request refused (400): too long"},
        {{"HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/\r\nConnection: close\r\n\r\n", 0},
         ERR_ENV,
         "moved (302): http://elsewhere.example/; pass that address to --base-url"},
        {{FAR_OK "data: {\"error\": {\"message\": \"out of memory\"}}\n\n", 0},
         ERR_ENV,
         "server error: out of memory"},
        {{FAR_OK "data: {\"choices\": [\n\n", 0}, ERR_MODEL, "an event that is not JSON"},
        {{FAR_OK "data: {\"choices\": [", 0}, ERR_ENV, "the stream ended in the middle of a reply"},
        {{FAR_JSON "{\"choices\": []}", 0}, ERR_MODEL, "contains no message"},
        {{FAR_JSON "{\"choices\": null}", 0}, ERR_MODEL, "contains no message"},
        {{FAR_JSON "{\"error\": {\"message\": \"no credit\"}}", 0}, ERR_ENV, "quota used up: no credit"},
        {{FAR_JSON
          "{\"choices\": [{\"message\": {\"content\": null}, \"finish_reason\": \"content_filter\"}]}",
          0},
         ERR_MODEL,
         "reply withheld"},
        {{"HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\n<html>\n<b>\x1b[31mOops</b>\n", 0},
         ERR_ENV,
         "server error (500): <html>?<b>?[31mOops</b>"},
        {{"HTTP/1.1 404 No\r\nConnection: close\r\n\r\n<html>\r\nnowhere</html>\n", 0},
         ERR_ENV,
         "not found (404): <html>??nowhere</html>"},
        {{FAR_ERROR("422 No", "\\u001b[2J\\nsecond line"), 0},
         ERR_MODEL,
         "request refused (422): ?[2J?second line"},
        {{FAR_JSON "[1]", 0}, ERR_ENV, "a list instead of a reply, beginning with: [1]"},
        {{FAR_JSON "{\"choices\": [ENDLESS\"and so on\", ", 0}, ERR_ENV, "more than 64 MiB in one reply"},
        {{FAR_OK "data: ENDLESSand so on", 0}, ERR_MODEL, "an event of more than 16 MiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct talk t;
        talk_open(&t, &cases[i].turn, 1, NULL, NULL, "{\"tries\": 1}");
        assert_int_equal(talk_ask(&t, "Hello"), -1);
        if (t.e.kind != cases[i].kind || !strstr(t.e.text, cases[i].says) || strstr(t.e.text, "sesame"))
            fail_msg("case %zu: %d %s", i, t.e.kind, t.e.text);
        assert_true(t.server.endless < (size_t)100 << 20);
        talk_close(&t);
    }
}

/* An invalid address or key is reported before a request is sent, without printing a possible key. */
static void t_addresses(void **state)
{
    static const struct {
        const char *url, *key, *says;
    } cases[] = {
        {"", NULL, "an address such as"},
        {"127.0.0.1:8000/v1", NULL, "'127.0.0.1:8000/v1': expected an address such as"},
        {"http://", NULL, "an address such as"},
        {"https:///v1", NULL, "an address such as"},
        {"ftp://127.0.0.1/v1", NULL, "an address such as"},
        {"me:sesame@127.0.0.1/v1", NULL, "an address such as"},
        {"http://me:sesame@127.0.0.1:9/v1", NULL, "a user name or password before '@'"},
        {"http://127.0.0.1:9/v1?key=sesame", NULL, "contains '?'"},
        {"http://127.0.0.1:9/v1#sesame", NULL, "contains '#'"},
        {"http://127.0.0.1:99999/v1", NULL, "is not an address"},
        {"http://exa mple/v1", NULL, "is not an address"},
        {"http://127.0.0.1:9/v1", "sesame-open", "--key expects env:VARIABLE or file:PATH"},
        {"http://127.0.0.1:9/v1", "env:HOLORUN_NO_SUCH_KEY", "--key: environment variable"},
        {"http://127.0.0.1:9/v1", "file:/no/such/file", "--key: cannot open '/no/such/file'"},
        {"http://127.0.0.1:9/v1", "file:/", "--key: cannot read '/'"},
        {"http://127.0.0.1:9/v1", "file:/dev/null", "--key is shorter than"},
        /* valid addresses without a server */
        {"HTTP://127.0.0.1:9/v1//", NULL, "127.0.0.1:9: "},
        {"http://[::1]:9/v1", NULL, "[::1]:9: "},
    };
    char profile[PLACE_PATH];
    int fd = mkstemp(place_template(profile));
    assert_int_equal(write(fd, "{\"tries\": 1}", 12), 12);
    close(fd);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = ERR_INIT;
        const struct endpoint_options o = {.base_url = cases[i].url, .key = cases[i].key, .profile = profile};
        if (endpoint_open(&o, NULL, &e) || !strstr(e.text, cases[i].says) || strstr(e.text, "sesame"))
            fail_msg("case %zu, %s: %s", i, cases[i].url, e.text);
    }
    unlink(profile);
}

static void *stop_soon(void *arg)
{
    clock_sleep_ms(200);
    *(volatile int *)arg = 2;
    return NULL;
}

static void t_stop(void **state)
{
    static const struct far_turn silent = {"SILENCE", 0};
    struct talk t;
    pthread_t thread;
    talk_open(&t, &silent, 1, NULL, NULL, NULL);
    pthread_create(&thread, NULL, stop_soon, (void *)(uintptr_t)&t.stop);
    int64_t start = clock_ns();
    assert_int_equal(talk_ask(&t, "Hello"), 0);
    double ms = clock_ms_since(start) - 200;
    check_note("%.0f ms after the stop", ms);
    assert_int_equal(t.g.finish, FINISH_CANCELLED);
    assert_true(ms < 1000); /* the timeout for a silent server is 300 s */
    pthread_join(thread, NULL);
    talk_close(&t);
}

/* After the first bytes the silence alone would be accepted for two minutes. */
static void t_endless(void **state)
{
    static const struct far_turn half = {"HTTP/1.1 200 OK\r\n\r\nabcSTALL", 0};
    struct far_server server;
    struct http_client *c = http_open();
    struct http_reply reply;
    struct err e = ERR_INIT;
    far_open(&server, &half, 1);
    char *url = far_address(&server);
    const struct http_request q = {.url = url, .whole_s = 0.3};
    assert_int_equal(http_send(c, &q, &reply, &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.text, "its reply was not complete after 0.3 s"));
    assert_true(reply.broken);
    http_reply_free(&reply);
    http_close(c);
    far_close(&server);
    free(url);
}

static const struct CMUnitTest tests[] = {
    CLAIM("turns are sent with key and session, a rewind removes some, tokens are counted", t_conversation),
    CLAIM("thoughts, tool calls, parts, streams in any pieces and whole replies are read", t_shapes),
    CLAIM("members refused by name are omitted, a busy or broken server is retried", t_second_try),
    CLAIM("refusals are one line without the key, a redirect is not followed", t_refused),
    CLAIM("an invalid address or key is reported without it, and nothing is sent", t_addresses),
    CLAIM("a stop ends a transfer", t_stop),
    CLAIM("a reply that does not end is abandoned", t_endless),
};

CHECK_MAIN()
