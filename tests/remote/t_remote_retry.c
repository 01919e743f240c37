/* t_remote_retry.c - tests failures of endpoints by class: which are retried, for how long, and how a lasting
 * failure is reported. The replies have the formats of real servers and gateways.
 */
#include "check.h"

#include "base/clock.h"
#include "base/retry.h"
#include "far.h"
#include "program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EVENT(json)        "data: " json "\n\n"
#define STATUS(line, body) "HTTP/1.1 " line "\r\nConnection: close\r\n\r\n" body
#define GOOD               FAR_OK FAR_SAYS("good") FAR_STOP FAR_DONE

static const char messages_good[] = FAR_OK EVENT("{\"type\": \"message_start\", \"message\": {}}")
    EVENT("{\"type\": \"content_block_start\", \"index\": 0, \"content_block\": {\"type\": \"text\", "
          "\"text\": \"good\"}}")
        EVENT("{\"type\": \"message_delta\", \"delta\": {\"stop_reason\": \"end_turn\"}}")
            EVENT("{\"type\": \"message_stop\"}");
static const char responses_good[] = FAR_OK EVENT(
    "{\"type\": \"response.completed\", \"response\": {\"status\": \"completed\", \"output\": [{\"type\": "
    "\"message\", \"content\": [{\"type\": \"output_text\", \"text\": \"good\"}]}]}}");

/* ---- transient failures ------------------------------------------------------------------------ */

static const char *const passing[] = {
    STATUS("408 Request Timeout", ""),
    STATUS("409 Conflict", "{\"error\": {\"message\": \"another request changes this resource\"}}"),
    STATUS("429 Too Many Requests", "slow down"),
    STATUS("500 Internal Server Error", "Internal Server Error"),
    STATUS("502 Bad Gateway", "<html><head><title>502 Bad Gateway</title></head></html>"),
    STATUS("503 Busy", "{\"error\": {\"code\": 503, \"message\": \"Loading model\", \"type\": "
                       "\"unavailable_error\"}}"),
    STATUS("504 Gateway Timeout", ""),
    STATUS("507 Insufficient Storage", ""),
    STATUS("520 Unknown", "error code: 520"),
    STATUS("521 Down", "error code: 521"),
    STATUS("522 Timed out", "error code: 522"),
    STATUS("523 Unreachable", "error code: 523"),
    STATUS("524 Timeout", "error code: 524"),
    STATUS("529 Overloaded", "{\"type\": \"error\", \"error\": {\"type\": \"overloaded_error\", \"message\": "
                             "\"Overloaded\"}}"),
    STATUS("599 Network", ""),
    /* a quota per minute is transient */
    STATUS("429 Quota",
           "[{\"error\": {\"code\": 429, \"message\": \"You exceeded your current quota, please check "
           "your plan and billing details.\", \"status\": \"RESOURCE_EXHAUSTED\", \"details\": "
           "[{\"@type\": \"type.googleapis.com/google.rpc.RetryInfo\", \"retryDelay\": \"0.01s\"}]}}]"),
    STATUS("429 Slow",
           "{\"error\": {\"message\": \"Rate limit reached. Please try again in 12ms.\", \"code\": "
           "\"rate_limit_exceeded\"}}"),
    "CUT",
    FAR_OK "CUT",
    STATUS("503 Loading", "{\"error\": \"Model x is currently loading\", \"estimated_time\": 0.01}"),
    /* errors under status 200 */
    FAR_JSON "{\"error\": {\"message\": \"Provider returned error\", \"code\": 502, \"metadata\": {\"raw\": "
             "\"upstream\"}}}",
    FAR_JSON
    "{\"error\": {\"message\": \"litellm.RateLimitError\", \"type\": \"throttling_error\", \"code\": "
    "\"429\"}}",
    FAR_JSON "{\"error\": \"llama runner process has terminated\"}",
    FAR_JSON "{\"detail\": \"Internal Server Error\"}",
    FAR_JSON
    "{\"object\": \"error\", \"message\": \"the engine is dead\", \"type\": \"InternalServerError\", "
    "\"code\": 500}",
    FAR_JSON "{\"type\": \"error\", \"error\": {\"type\": \"api_error\", \"message\": \"Internal\"}}",
    FAR_JSON "[{\"error\": {\"code\": 503, \"message\": \"The model is overloaded.\", \"status\": "
             "\"UNAVAILABLE\"}}]",
    FAR_JSON "{\"message\": \"The upstream server is timing out\"}",
    FAR_JSON "{\"code\": 50505, \"message\": \"Model service overloaded. Please try again later.\"}",
    FAR_JSON "{\"choices\": [{\"message\": {\"content\": \"ha",
    FAR_JSON "{\"choices\": [{\"message\": {\"content\": null}, \"finish_reason\": \"error\"}]}",
    FAR_JSON "{\"choices\": [{\"message\": {\"content\": \"\"}, \"error\": {\"code\": 524, \"message\": "
             "\"provider\"}}]}",
    FAR_JSON "",
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nupstream connect error or "
    "disconnect/reset before headers",
    /* errors within a stream */
    FAR_OK EVENT("{\"error\": {\"message\": \"out of memory\"}}"),
    FAR_OK FAR_SAYS("half") EVENT("{\"error\": {\"code\": 502, \"message\": \"Provider disconnected\"}, "
                                  "\"choices\": [{\"delta\": {}, \"finish_reason\": \"error\"}]}"),
    FAR_OK EVENT("{\"object\": \"error\", \"message\": \"EngineDeadError\", \"code\": 500}"),
    FAR_OK FAR_SAYS("half") EVENT("{\"detail\": \"Service Unavailable\"}"),
    FAR_OK "event: error\n" EVENT("{\"type\": \"error\", \"error\": {\"type\": \"overloaded_error\", "
                                  "\"message\": \"Overloaded\"}}"),
    FAR_OK FAR_SAYS("half") "error: {\"code\": 500, \"message\": \"failed to decode\", \"type\": "
                            "\"server_error\"}\n\n",
    FAR_OK EVENT("upstream request timeout"),
    FAR_OK FAR_SAYS("half"),
    FAR_OK FAR_SAYS("half") FAR_USAGE,
    FAR_OK FAR_SAYS("half") "data: {\"choices\": [{\"delta\": {\"content\": \"x",
    FAR_OK FAR_SAYS("half") "CUT",
    FAR_OK ": ping\n\n",
    FAR_OK EVENT("{\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 0, \"id\": \"a\", \"function\": "
                 "{\"name\": \"click\", \"arguments\": \"{\\\"x\\\": \"}}]}}]}"),
};

static void ask_again(const char *failure, const char *good, const char *api, const char *dialect)
{
    const struct far_turn turns[] = {{failure, 0}, {failure, 0}, {good, 0}};
    struct talk t;
    talk_open(&t, turns, 3, api, dialect, NULL);
    if (talk_ask(&t, "Hello"))
        fail_msg("%.200s: %s", failure, t.e.text);
    if (!strstr(t.g.text.data, "good") || strstr(t.g.text.data, "half") || t.server.served != 3)
        fail_msg("%.200s: %s", failure, t.g.text.data);
    char *first = strstr(t.server.requests[0], "\r\n\r\n"), *last = strstr(t.server.requests[2], "\r\n\r\n");
    assert_string_equal(first, last);
    talk_close(&t);
}

static void t_passing(void **state)
{
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        ask_again(passing[i], GOOD, NULL, NULL);
    check_note("%zu failures", sizeof passing / sizeof *passing);
}

static const char *const messages_passing[] = {
    STATUS("529 Overloaded", "{\"type\": \"error\", \"error\": {\"type\": \"overloaded_error\"}}"),
    FAR_JSON
    "{\"type\": \"error\", \"error\": {\"type\": \"overloaded_error\", \"message\": \"Overloaded\"}}",
    FAR_OK
    "event: error\n" EVENT("{\"type\": \"error\", \"error\": {\"details\": null, \"type\": "
                           "\"overloaded_error\", \"message\": \"Overloaded\"}, \"request_id\": \"r\"}"),
    FAR_OK EVENT("{\"type\": \"message_start\", \"message\": {}}")
        EVENT("{\"type\": \"error\", \"error\": {\"type\": \"rate_limit_error\", \"message\": \"slow\"}}"),
    FAR_OK EVENT("{\"error\": {\"message\": \"upstream\", \"code\": 502}}"),
    FAR_OK EVENT("{\"type\": \"message_start\", \"message\": {}}") EVENT(
        "{\"type\": \"content_block_start\", \"index\": 0, \"content_block\": {\"type\": \"text\", \"text\": "
        "\"half\"}}"),
    FAR_JSON "{\"detail\": \"Internal Server Error\"}",
};

static const char *const responses_passing[] = {
    FAR_OK EVENT(
        "{\"type\": \"error\", \"sequence_number\": 2, \"error\": {\"type\": "
        "\"service_unavailable_error\", \"code\": \"server_is_overloaded\", \"message\": \"Our servers are "
        "currently overloaded. Please try again later.\", \"param\": null}}"),
    FAR_OK EVENT("{\"type\": \"error\", \"code\": \"rate_limit_exceeded\", \"message\": \"slow\", \"param\": "
                 "null}"),
    FAR_OK EVENT(
        "{\"type\": \"response.failed\", \"response\": {\"status\": \"failed\", \"output\": [], \"error\": "
        "{\"code\": \"server_error\", \"message\": \"An error occurred\"}}}"),
    FAR_OK EVENT(
        "{\"type\": \"response.failed\", \"response\": {\"status\": \"failed\", \"output\": [], \"error\": "
        "null}}"),
    FAR_OK EVENT("{\"type\": \"response.output_text.delta\", \"delta\": \"half\"}"),
    FAR_OK EVENT("{\"type\": \"response.output_text.delta\", \"delta\": \"half\"}") "data: [DONE]\n\n",
    FAR_JSON "{\"error\": {\"message\": \"Internal\", \"type\": \"server_error\"}}",
    FAR_JSON "{\"status\": \"failed\", \"output\": [], \"error\": {\"code\": \"server_error\"}}",
};

static void t_other_protocols(void **state)
{
    for (size_t i = 0; i < sizeof messages_passing / sizeof *messages_passing; i++)
        ask_again(messages_passing[i], messages_good, "messages", "anthropic-computer");
    for (size_t i = 0; i < sizeof responses_passing / sizeof *responses_passing; i++)
        ask_again(responses_passing[i], responses_good, "responses", "openai-computer");
}

/* ---- lasting failures ---------------------------------------------------------------------------------------- */

static const struct {
    const char *reply, *says;
    enum err_kind kind;
} lasting[] = {
    {STATUS("400 Bad Request", "{\"error\": {\"message\": \"no\"}}"), "request refused (400): no", ERR_MODEL},
    {STATUS("401 Unauthorized", "{\"detail\": \"Invalid API key\"}"), "key refused (401): Invalid API key",
     ERR_ENV},
    {STATUS("403 Forbidden", "{\"message\": \"Forbidden\"}"), "key refused (403)", ERR_ENV},
    {STATUS("404 Not Found", "{\"error\": {\"message\": \"model 'x' not found\"}}"),
     "not found (404): model 'x' not found; --base-url ends with /v1", ERR_ENV},
    {STATUS("405 Not Allowed", ""), "request refused (405): no reason given", ERR_MODEL},
    {STATUS("413 Too Large", "<html>"), "request refused (413)", ERR_MODEL},
    {STATUS("422 Unprocessable", "{\"detail\": [{\"loc\": [\"body\"], \"msg\": \"Field required\"}]}"),
     "request refused (422): Field required", ERR_MODEL},
    {STATUS("402 Payment Required", "{\"error\": {\"message\": \"Insufficient Balance\"}}"),
     "quota used up (402)", ERR_ENV},
    {STATUS("429 Quota", "{\"error\": {\"message\": \"You exceeded your current quota\", \"type\": "
                         "\"insufficient_quota\", \"code\": \"insufficient_quota\"}}"),
     "quota used up (429): You exceeded", ERR_ENV},
    {STATUS("400 Bad Request",
            "{\"type\": \"error\", \"error\": {\"type\": \"invalid_request_error\", \"message\": "
            "\"Your credit balance is too low\"}}"),
     "quota used up (400): Your credit", ERR_ENV},
    {STATUS("400 Bad Request",
            "[{\"error\": {\"code\": 400, \"message\": \"API key not valid. Please pass a valid "
            "API key.\", \"status\": \"INVALID_ARGUMENT\"}}]"),
     "key refused (400): API key not valid", ERR_ENV},
    {FAR_JSON "{\"error\": {\"message\": \"bad\", \"type\": \"invalid_request_error\"}}",
     "request refused: bad", ERR_MODEL},
    {FAR_JSON
     "{\"object\": \"error\", \"message\": \"too long\", \"type\": \"BadRequestError\", \"code\": 400}",
     "request refused (400): too long", ERR_MODEL},
    {FAR_JSON "{\"detail\": [{\"msg\": \"Field required\"}]}", "request refused: Field required", ERR_MODEL},
    {FAR_JSON "{\"error\": {\"code\": 401, \"message\": \"No auth credentials found\"}}", "key refused (401)",
     ERR_ENV},
    {FAR_JSON "{\"error\": {\"message\": \"The model `x` does not exist\", \"code\": \"model_not_found\"}}",
     "not found: The model", ERR_ENV},
    {FAR_JSON "{\"error\": {\"message\": \"empty\", \"code\": \"insufficient_quota\"}}",
     "quota used up: empty", ERR_ENV},
    {FAR_OK FAR_SAYS("half")
         EVENT("{\"error\": {\"message\": \"the request exceeds the available context size\", "
               "\"type\": \"exceed_context_size_error\", \"code\": 400}}"),
     "request refused (400): the request exceeds", ERR_MODEL},
    {FAR_OK EVENT(
         "{\"type\": \"error\", \"error\": {\"type\": \"authentication_error\", \"message\": \"no\"}}"),
     "key refused: no", ERR_ENV},
    {FAR_JSON "{\"choices\": [{\"message\": {\"content\": null}, \"finish_reason\": \"content_filter\"}]}",
     "reply withheld", ERR_MODEL},
    {"HTTP/1.1 429 Slow\r\nRetry-After: 4000\r\nConnection: close\r\n\r\n",
     "rate limited (429): no reason given; the server asks to wait 4000 s", ERR_ENV},
    {"HTTP/1.1 503 Busy\r\nRetry-After: Fri, 01 Jan 2038 00:00:00 GMT\r\nConnection: close\r\n\r\n",
     "overloaded (503): no reason given; the server asks to wait", ERR_ENV},
};

static void t_lasting(void **state)
{
    for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++) {
        const struct far_turn turns[] = {{lasting[i].reply, 0}, {GOOD, 0}};
        struct talk t;
        talk_open(&t, turns, 2, NULL, NULL, NULL);
        assert_int_equal(talk_ask(&t, "Hello"), -1);
        if (t.e.kind != lasting[i].kind || !strstr(t.e.text, lasting[i].says) || t.server.served != 1)
            fail_msg("%.100s: %d, %d requests: %s", lasting[i].reply, t.e.kind, t.server.served, t.e.text);
        talk_close(&t);
    }
}

/* A member that is refused by name under status 200 is omitted, as under status 400. */
static void t_learned(void **state)
{
    static const struct far_turn turns[] = {
        {FAR_JSON "{\"object\": \"error\", \"message\": \"unknown member response_format\", \"code\": 400}",
         0},
        {GOOD, 0}};
    struct talk t;
    talk_open(&t, turns, 2, NULL, NULL, NULL);
    if (talk_ask(&t, "Hello"))
        fail_msg("%s", t.e.text);
    char *left = talk_at(&t, 1, "response_format");
    assert_string_equal(left, "(nothing)");
    free(left);
    talk_close(&t);
}

/* An error after the end of a reply does not invalidate it: the action was read. */
static void t_whole(void **state)
{
    static const char *const replies[] = {
        FAR_OK FAR_SAYS("good") FAR_STOP EVENT("{\"error\": {\"message\": \"late\"}}"),
        FAR_OK FAR_SAYS("good") FAR_STOP "CUT",
        "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" FAR_SAYS("good") FAR_STOP,
        FAR_OK FAR_SAYS("good") FAR_STOP "data: {\"cho",
    };
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        const struct far_turn turns[] = {{replies[i], 0}, {GOOD, 0}};
        struct talk t;
        talk_open(&t, turns, 2, NULL, NULL, NULL);
        if (talk_ask(&t, "Hello") || t.server.served != 1)
            fail_msg("case %zu: %d requests, %s", i, t.server.served, t.e.text);
        assert_string_equal(t.g.text.data, "good");
        talk_close(&t);
    }
}

/* Number of tries, total time, stop. */
static void t_bounds(void **state)
{
    static const struct far_turn busy[] = {{FAR_ERROR("503 Busy", "busy"), 0},
                                           {FAR_ERROR("503 Busy", "busy"), 0},
                                           {FAR_ERROR("503 Busy", "busy"), 0},
                                           {GOOD, 0}};
    struct talk t;
    talk_open(&t, busy, 4, NULL, NULL, "{\"tries\": 3}");
    assert_int_equal(talk_ask(&t, "Hello"), -1);
    assert_int_equal(t.server.served, 3);
    assert_non_null(strstr(t.e.text, "overloaded (503): busy; gave up after 3 tries in 0 s"));
    talk_close(&t);
    talk_open(&t, busy, 4, NULL, NULL, "{\"retry_s\": 0}");
    assert_int_equal(talk_ask(&t, "Hello"), -1);
    assert_int_equal(t.server.served, 1);
    talk_close(&t);
    talk_open(&t, busy, 4, NULL, NULL, NULL);
    t.stop = 1;
    int64_t start = clock_ns();
    assert_int_equal(talk_ask(&t, "Hello"), 0);
    assert_int_equal(t.g.finish, FINISH_CANCELLED);
    assert_true(clock_ms_since(start) < 1000);
    talk_close(&t);
}

/* ---- times, without a clock ------------------------------------------------------------------------------ */

static void t_headers(void **state)
{
    enum { NOW = 1795937400 }; /* 2026-11-29 07:30:00 UTC */
    static const struct {
        const char *name, *value;
        double after, reset;
    } cases[] = {
        {"Retry-After", "7", 7, 0},
        {"retry-after", " 0.25", 0.25, 0},
        {"Retry-After", "120s", 120, 0},
        {"Retry-After", "Sun, 29 Nov 2026 07:31:30 GMT", 90, 0},
        {"Retry-After", "Sunday, 29-Nov-26 07:31:30 GMT", 90, 0},
        {"Retry-After", "Sun, 29 Nov 2026 07:29:00 GMT", 0, 0},
        {"Retry-After", "0", 0, 0},
        {"Retry-After", "-5", 0, 0},
        {"Retry-After", "soon", 0, 0},
        {"Retry-After", "", 0, 0},
        {"Retry-After", "nan", 0, 0},
        {"retry-after-ms", "1500", 1.5, 0},
        {"retry-after-ms", "1e300", 366 * 86400, 0},
        {"Retry-After", "1e300", 366 * 86400, 0},
        {"retry-after-ms", "x", 0, 0},
        {"x-ratelimit-reset-requests", "6m0s", 0, 360},
        {"x-ratelimit-reset-tokens", "20ms", 0, 0.02},
        {"X-RateLimit-Reset", "1795937430", 0, 30},
        {"X-RateLimit-Reset", "1795937430500", 0, 30.5},
        {"x-ratelimit-reset", "12", 0, 12},
        {"RateLimit-Reset", "12", 0, 12},
        {"anthropic-ratelimit-requests-reset", "2026-11-29T07:30:45Z", 0, 45},
        {"anthropic-ratelimit-requests-reset", "2026-11-29T07:30:45z ", 0, 45},
        {"anthropic-ratelimit-tokens-reset", "2026-11-29T08:30:45.5+01:00", 0, 45},
        {"x-ratelimit-limit-requests", "60", 0, 0},
        {"x-other", "60", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct retry_hint h = {0};
        retry_header(&h, cases[i].name, cases[i].value, NOW);
        if (fabs(h.after - cases[i].after) > 1e-6 || fabs(h.reset - cases[i].reset) > 1e-3)
            fail_msg("%s: %s: %g, %g", cases[i].name, cases[i].value, h.after, h.reset);
    }
    assert_true(fabs(retry_in_text("Please try again in 1.318s. Visit") - 1.318) < 1e-9);
    assert_true(fabs(retry_in_text("Please try again in 7m12.5s") - 432.5) < 1e-9);
    assert_true(fabs(retry_in_text("Please retry after 6 seconds.") - 6) < 1e-9);
    assert_true(retry_in_text("Please retry in a moment") == 0);
}

static void t_waits(void **state)
{
    const struct retry_limits l = {.tries = 12, .total_s = 100, .first_s = 1};
    const struct failure busy = {.class = FAILURE_OVERLOADED}, asked = {.class = FAILURE_RATE, .after = 7},
                         reset = {.class = FAILURE_RATE, .reset = 0.02}, refused = {.class = FAILURE_REQUEST},
                         late = {.class = FAILURE_RATE, .reset = 40};
    static const double waits[] = {1, 2, 4, 8, 16, 30, 30};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        assert_true(retry_wait(&l, &busy, (int)i + 1, 0, 0) == waits[i]);
        /* never less than requested */
        assert_true(retry_wait(&l, &busy, (int)i + 1, 0, 1) == 1.25 * waits[i]);
    }
    assert_true(retry_wait(&l, &asked, 3, 0, 0) == 7);
    assert_true(retry_wait(&l, &reset, 3, 0, 0) == 4); /* another limit may be exhausted */
    assert_true(retry_wait(&l, &late, 3, 0, 0) == 40);
    assert_true(retry_wait(&l, &busy, 12, 0, 0) < 0);
    assert_true(retry_wait(&l, &busy, 3, 97, 0) < 0);
    assert_true(retry_wait(&l, &asked, 1, 94, 0) < 0);
    assert_true(retry_wait(&l, &refused, 1, 0, 0) < 0);
}

/* ---- the help ---------------------------------------------------------------------------------------------- */

static void t_help(void **state)
{
    struct xvfb x;
    OUTCOME(o);
    xvfb_folder(&x);
    program_run(&x, &o, WORDS("help", "--man"));
    char *status = strstr(o.out, ".SH EXIT STATUS"), *third = status ? strstr(status, ".B 3\n") : NULL,
         *fourth = third ? strstr(third, ".B 4\n") : NULL, *fifth = fourth ? strstr(fourth, ".B 5\n") : NULL;
    assert_non_null(fifth);
    *fourth = *fifth = 0;
    for (int c = FAILURE_NONE + 1; c < FAILURE_CLASSES; c++) {
        const char *text = failure_exit(c) == ERR_ENV     ? third
                           : failure_exit(c) == ERR_MODEL ? fourth + 1
                                                          : "";
        if (!strstr(text, failure_name(c)))
            fail_msg("the help does not name '%s' under exit code %d", failure_name(c), failure_exit(c));
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("a transient failure repeats the request, whatever reports it", t_passing),
    CLAIM("a transient failure repeats the request in Messages and Responses, too", t_other_protocols),
    CLAIM("a lasting failure ends at once with the name and exit code of its class", t_lasting),
    CLAIM("a member refused by name in an error body is omitted", t_learned),
    CLAIM("a complete reply is not requested again, whatever follows it", t_whole),
    CLAIM("retries end after the number of tries, the total time or a stop", t_bounds),
    CLAIM("headers and texts about delays are read", t_headers),
    CLAIM("delays are those the server requests, else grow with jitter, within the limits", t_waits),
    CLAIM("the help lists each class under its exit code", t_help),
};

CHECK_MAIN()
