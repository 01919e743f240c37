/* t_remote_server.c - tests the features that a client detects in a server, and its records: image limits, ways to
 * send a schema, thinking switches, prices, profiles, native tools; exchanges without images and key.
 */
#include "check.h"

#include "base/clock.h"
#include "far.h"
#include "remote/protocol.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP                                                                                                 \
    "{\\\"note\\\": null, \\\"thought\\\": \\\"t\\\", \\\"tool_call\\\": {\\\"tool_name\\\": "               \
    "\\\"wait_desktop\\\", \\\"seconds\\\": 1}}"

static int pictures_in(const struct talk *t, int request)
{
    int n = 0;
    for (const char *s = t->server.requests[request]; (s = strstr(s, "image_url\":{")); s++)
        n++;
    return n;
}

static void t_pictures(void **state)
{
    static const struct far_turn turns[] = {
        {FAR_OK FAR_SAYS(STEP) FAR_STOP, 0},
        {FAR_ERROR("400 Bad Request", "At most 1 image(s) may be provided in one request."), 0},
        {FAR_OK FAR_SAYS(STEP) FAR_STOP, 0},
        {FAR_OK FAR_SAYS(STEP) FAR_STOP, 0}};
    struct talk t;
    talk_open(&t, turns, 4, NULL, NULL, NULL);
    talk_ok(&t, talk_show(&t, "one", 64, 48));
    talk_ok(&t, talk_show(&t, "two", 64, 48));
    talk_ok(&t, talk_show(&t, "three", 64, 48));
    assert_int_equal(pictures_in(&t, 1), 2);
    assert_int_equal(pictures_in(&t, 2), 1);
    assert_int_equal(pictures_in(&t, 3), 1);
    /* The newest image stays, and so does the wrapper of the older one. */
    talk_expect(&t, 2, "messages.1.content.1",
                "{\"type\":\"text\",\"text\":\"[Image omitted by context cleaning]\"}");
    talk_expect(&t, 2, "messages.1.content.0.text", "\"one<observation>\\n\"");
    talk_expect(&t, 2, "messages.3.content.1.type", "\"image_url\"");
    assert_int_equal(endpoint_max_images(t.endpoint), 1);
    talk_close(&t);
}

static void t_constraints(void **state)
{
    static const struct far_turn turns[] = {
        {FAR_ERROR("400 Bad Request", "Unrecognized request argument: response_format"), 0},
        {FAR_ERROR("422 Unprocessable", "extra fields: structured_outputs, seed"), 0},
        {FAR_OK FAR_SAYS(STEP) FAR_STOP, 0}};
    static const struct far_turn one = {FAR_OK FAR_SAYS(STEP) FAR_STOP, 0};
    static const struct {
        const char *profile, *path, *begin;
    } ways[] = {{"{\"constraint\": \"json_schema\"}", "json_schema.$defs.answer.type", "\"object\""},
                {"{\"constraint\": \"none\"}", "response_format", "(nothing)"},
                {"{\"leave_out\": [\"response_format\"]}", "structured_outputs.json.type", "\"object\""}};
    struct talk t;
    talk_open(&t, turns, 3, NULL, NULL, NULL);
    talk_ok(&t, talk_ask(&t, "Hello"));
    talk_expect(&t, 0, "response_format.json_schema.strict", "true");
    talk_expect(&t, 1, "structured_outputs.json.title", "\"Step\"");
    talk_expect(&t, 1, "seed", "7");
    talk_expect(&t, 2, "guided_json.title", "\"Step\"");
    talk_expect(&t, 2, "seed", "(nothing)");
    talk_close(&t);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        talk_open(&t, &one, 1, NULL, NULL, ways[i].profile);
        talk_ok(&t, talk_ask(&t, "Hello"));
        talk_expect(&t, 0, ways[i].path, ways[i].begin);
        talk_close(&t);
    }
}

static void t_profile(void **state)
{
    static const struct far_turn turns[] = {
        {FAR_OK
         "data: {\"choices\": [{\"delta\": {\"reasoning_content\": \"hm\", \"content\": \"a\"}}]}\n\n" FAR_STOP
             FAR_USAGE FAR_DONE,
         0},
        {FAR_OK FAR_SAYS("b") FAR_STOP FAR_DONE, 0}};
    static const char profile[] =
        "{\"thinking\": \"enable_thinking\", \"send_reasoning\": \"reasoning_content\", \"request\": {\"top_k\": 20}, "
        "\"price\": {\"prompt\": 10, \"cached\": 1, \"reply\": 100, \"currency\": \"EUR\"}}";
    struct talk t;
    talk_open(&t, turns, 2, NULL, "gemini", profile);
    talk_ok(&t, talk_ask(&t, "Hello"));
    const struct llm_usage *u = t.llm->ops->usage(t.llm);
    assert_string_equal(u->currency, "EUR");
    assert_true(fabs(u->cost - (20 * 10 + 80 * 1 + 9 * 100) / 1e6) < 1e-12);
    assert_true(u->first_ms >= 0);
    talk_ok(&t, talk_ask(&t, "More"));
    talk_expect(&t, 0, "chat_template_kwargs", "{\"enable_thinking\":false}");
    talk_expect(&t, 0, "top_k", "20");
    talk_expect(&t, 1, "messages.2.reasoning_content", "\"hm\"");
    talk_close(&t);
    static const struct {
        const char *text, *says;
    } wrong[] = {{"[]", "not a JSON object"},
                 {"{\"constraint\": \"grammar\"}", "must be one of: response_format, structured_outputs"},
                 {"{\"max_images\": 0}", "'max_images' must be a number from 1 to 64"},
                 {"{\"price\": 3}", "'price' must be an object"},
                 {"{\"speed\": 3}", "unknown key 'speed'"},
                 {"{\"tries\": 2, \"tries\": 3}", "duplicate"},
                 {"{\"api\": \"soap\"}", "must be one of: chat, responses, messages"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct err e = ERR_INIT;
        struct profile p;
        profile_init(&p);
        if (profile_parse(&p, wrong[i].text, strlen(wrong[i].text), "p.json", &e) != -1 ||
            e.kind != ERR_USAGE || !strstr(e.text, wrong[i].says))
            fail_msg("case %zu: %s", i, e.text);
        profile_free(&p);
    }
}

/* ---- alternatives ------------------------------------------------------------------------------------ */

#define TOP(token, p)        "{\"token\": \"" token "\", \"logprob\": " p "}"
#define TOKEN(token, p, top) "{\"token\": \"" token "\", \"logprob\": " p ", \"top_logprobs\": [" top "]}"
#define SURE(token)          TOKEN(token, "0", TOP(token, "0"))
#define PIECE(text, tokens)                                                                                  \
    "data: {\"choices\": [{\"delta\": {\"content\": \"" text "\"}, \"logprobs\": {\"content\": [" tokens     \
    "]}}]}\n\n"
#define BEFORE  "{\\\"note\\\": null, \\\"thought\\\": \\\"t\\\", \\\"tool_call\\\": {\\\"tool_name\\\": \\\""
#define BETWEEN "_desktop\\\", \\\"element\\\": \\\"it\\\", \\\"x\\\": "
/* ln 0.7, 0.2, 0.1: click, answer, double_click; ln 0.5, 0.3, 0.2: 4.., 3.., 9.. */
#define ODDS                                                                                                 \
    PIECE(BEFORE, SURE(BEFORE))                                                                              \
    PIECE("click", TOKEN("click", "-0.35667494",                                                             \
                         TOP("click", "-0.35667494") "," TOP("answer", "-1.6094379") "," TOP("double",       \
                                                                                             "-2.3025851"))) \
    PIECE(BETWEEN, SURE("_desktop") "," SURE("\\\", \\\"element\\\": \\\"it\\\", \\\"x\\\": "))              \
    PIECE("412", TOKEN("4", "-0.69314718",                                                                   \
                       TOP("4", "-0.69314718") "," TOP("3", "-1.2039728") "," TOP(                           \
                           "9", "-1.6094379")) "," SURE("1") "," SURE("2"))                                  \
    PIECE(", \\\"y\\\": 96}}",                                                                               \
          SURE(", \\\"y\\\": ") "," TOKEN("9", "-0.69314718",                                                \
                                          TOP("9", "-0.69314718")) "," SURE("6") "," SURE("}}"))

static int candidates(struct talk *t, enum slot_kind kind, struct beam_candidate *out, int max)
{
    struct slot slots[SLOTS_MAX];
    int n = dialect_slots(t->dialect, t->g.text.data, t->g.text.len, slots, SLOTS_MAX), i = 0;
    while (i < n && slots[i].kind != kind)
        i++;
    assert_true(i < n);
    const struct beam_request x = {.goal = GOAL_STEP, .said = &t->g, .slot = &slots[i]};
    return t->llm->ops->beam_search(t->llm, NULL, &x, out, max, &t->e);
}

static void expect_candidate(const struct beam_candidate *c, const char *text, double p)
{
    if (strcmp(c->text, text) != 0 || fabs(c->p - p) > 1e-4)
        fail_msg("%s, %g in place of %s, %g", c->text, c->p, text, p);
}

static void t_odds(void **state)
{
    static const struct far_turn turns[] = {
        {FAR_OK ODDS FAR_STOP FAR_USAGE FAR_DONE, 0},
        {FAR_ERROR("400 Bad Request", "top_logprobs is not available for this model"), 0},
        {FAR_OK FAR_SAYS(STEP) FAR_STOP, 0}};
    struct beam_candidate found[4];
    struct talk t;
    talk_open(&t, turns, 3, NULL, NULL, NULL);
    t.alternatives = 8;
    talk_ok(&t, talk_ask(&t, "Hello"));
    talk_expect(&t, 0, "logprobs", "true");
    talk_expect(&t, 0, "top_logprobs", "20");
    assert_int_equal(t.g.n, 11);
    assert_int_equal(t.g.choices[t.g.n - 1].end, t.g.text.len);
    assert_int_equal(candidates(&t, SLOT_VERB, found, 4), 3);
    expect_candidate(&found[0], "click_desktop", 0.7);
    expect_candidate(&found[1], "answer", 0.2);
    expect_candidate(&found[2], "double_click_desktop", 0.1);
    assert_int_equal(candidates(&t, SLOT_POINT, found, 2), 2);
    expect_candidate(&found[0], "412, \"y\": 96", 0.25);
    expect_candidate(&found[1], "312, \"y\": 96", 0.15);
    assert_true(endpoint_gives_odds(t.endpoint));
    talk_ok(&t, talk_ask(&t, "More"));
    talk_expect(&t, 2, "logprobs", "(nothing)");
    assert_null(t.g.choices);
    assert_false(endpoint_gives_odds(t.endpoint));
    talk_close(&t);
}

/* ---- warnings printed once ---------------------------------------------------------------------------- */

#define READ(cached)                                                                                         \
    "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 2000, \"completion_tokens\": 9, "                \
    "\"prompt_tokens_details\": {\"cached_tokens\": " cached "}}}\n\n"

static bool was_told(const struct talk *t, const char *key)
{
    return json_object_get(t->endpoint->told, key) != NULL;
}

static void t_told(void **state)
{
    static const struct far_turn cached[] = {{FAR_OK FAR_SAYS(STEP) FAR_STOP READ("0") FAR_DONE, 0},
                                             {FAR_OK FAR_SAYS(STEP) FAR_STOP READ("1500") FAR_DONE, 0}},
                                 none[] = {{FAR_OK FAR_SAYS(STEP) FAR_STOP READ("0") FAR_DONE, 0},
                                           {FAR_OK FAR_SAYS(STEP) FAR_STOP READ("0") FAR_DONE, 0}},
                                 thought = {FAR_OK "data: {\"choices\": [{\"delta\": {\"reasoning\": \"" STEP
                                                   "\"}}]}\n\n" FAR_STOP,
                                            0};
    struct talk t;
    talk_open(&t, cached, 2, NULL, NULL, NULL);
    talk_ok(&t, talk_ask(&t, "Hello"));
    talk_ok(&t, talk_ask(&t, "More"));
    assert_false(was_told(&t, "uncached"));
    talk_close(&t);
    talk_open(&t, none, 2, NULL, NULL, NULL);
    talk_ok(&t, talk_ask(&t, "Hello"));
    assert_false(was_told(&t, "uncached")); /* the first turn has no prefix in common */
    talk_ok(&t, talk_ask(&t, "More"));
    assert_true(was_told(&t, "uncached"));
    talk_close(&t);
    talk_open(&t, &thought, 1, NULL, NULL, NULL);
    talk_ok(&t, talk_ask(&t, "Hello"));
    assert_true(was_told(&t, "answer in the reasoning"));
    assert_non_null(strstr(t.g.text.data, "wait_desktop"));
    talk_close(&t);
}

/* ---- a stop ----------------------------------------------------------------------------------------- */

static void *stop_soon(void *arg)
{
    clock_sleep_ms(150);
    __atomic_store_n((volatile int *)arg, 2, __ATOMIC_RELAXED);
    return NULL;
}

static void t_stop(void **state)
{
    static const struct far_turn turns[] = {
        {"SILENCE", 0},                                                           /* before the first byte */
        {FAR_OK FAR_SAYS("half") "STALL", 0},                                     /* within the stream */
        {"HTTP/1.1 503 Busy\r\nRetry-After: 30\r\nConnection: close\r\n\r\n", 0}, /* waiting to ask again */
    };
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        double best = 1e9; /* best of five, because this machine may be busy */
        for (int k = 0; k < 5; k++) {
            struct talk t;
            pthread_t thread;
            talk_open(&t, &turns[i], 1, NULL, NULL, NULL);
            int64_t start = clock_ns();
            pthread_create(&thread, NULL, stop_soon, (void *)(uintptr_t)&t.stop);
            assert_int_equal(talk_ask(&t, "Hello"), 0);
            double ms = clock_ms_since(start) - 150;
            best = ms < best ? ms : best;
            assert_int_equal(t.g.finish, FINISH_CANCELLED);
            pthread_join(thread, NULL);
            talk_close(&t);
        }
        check_note("%.0f ms after the stop", best);
        assert_true(best < 50);
    }
}

/* ---- the record ------------------------------------------------------------------------------------- */

static int keep(void *arg, const char *json, size_t n)
{
    json_t *list = arg, *one = json_loadb(json, n, 0, NULL);
    assert_non_null(one);
    json_array_append_new(list, one);
    return 0;
}

static void t_recorded(void **state)
{
    static const struct far_turn turns[] = {
        {FAR_OK FAR_SAYS("one") FAR_STOP, 0},
        {FAR_ERROR("400 Bad Request", "the key sesame-open is not good enough"), 0}};
    struct talk t;
    json_t *list = json_array();
    talk_open(&t, turns, 2, NULL, NULL, NULL);
    llm_remote_log(t.llm, keep, list);
    talk_ok(&t, talk_show(&t, "Save.", 64, 48));
    assert_int_equal(talk_show(&t, "", 64, 48), -1);
    assert_null(strstr(t.e.text, "sesame"));
    char *text = json_dumps(list, 0);
    assert_null(strstr(text, "base64"));
    assert_null(strstr(text, "sesame")); /* from the server's reply */
    assert_non_null(strstr(text, "the key {{KEY}} is not good enough"));
    free(text);
    json_t *first = json_array_get(list, 0), *second = json_array_get(list, 1);
    json_t *messages = json_object_get(json_object_get(second, "request"), "messages");
    assert_int_equal(json_integer_value(json_object_get(first, "kept")), 0);
    assert_int_equal(json_integer_value(json_object_get(second, "kept")), 2);
    assert_int_equal(json_array_size(messages), 2); /* the reply and the messages after it */
    assert_int_equal(json_integer_value(json_object_get(second, "status")), 400);
    const char *reply = json_string_value(json_object_get(first, "reply"));
    assert_non_null(strstr(reply, "data: {\"choices\""));
    json_t *part = json_array_get(json_object_get(json_array_get(messages, 1), "content"), 1);
    const char *url = json_string_value(json_object_get(json_object_get(part, "image_url"), "url"));
    assert_int_equal(strncmp(url, "sha256:", 7), 0);
    assert_int_equal(strlen(url), 7 + 64);
    talk_close(&t);
    json_decref(list);
}

static const struct CMUnitTest tests[] = {
    CLAIM("an image limit is learned from a refusal; the newest images stay", t_pictures),
    CLAIM("a schema is sent in the way that the server accepts", t_constraints),
    CLAIM("a profile switches thinking, returns it, has prices, and its mistakes are reported", t_profile),
    CLAIM("a server without a cache, and an answer in the reasoning, are reported", t_told),
    CLAIM("alternative verbs and points come from top_logprobs, if the server has them", t_odds),
    CLAIM("a stop ends a transfer within 50 ms in each phase", t_stop),
    CLAIM("exchanges are recorded without images, keys and repeated messages", t_recorded),
};

CHECK_MAIN()
