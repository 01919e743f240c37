/* t_remote.c - a model behind an endpoint, against a server of this test that says exactly what it is told:
 * whole and streamed replies in pieces, refusals, redirects, cuts, silence.
 */
#include "check.h"

#include "base/clock.h"
#include "remote/chat_completions.h"
#include "remote/llm_remote.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the server ---------------------------------------------------------------------------------- */

enum { MAX_TURNS = 8, MAX_REQUEST = 1 << 20 };

struct turn {
    const char
        *reply; /* all bytes, headers included; "SILENCE" says nothing; CUT in it ends the connection */
    int piece;  /* bytes sent at once; 0: all */
};

struct server {
    int fd, port, n, served;
    const struct turn *turns;
    char *requests[MAX_TURNS];
    pthread_t thread;
};

static char *read_request(int fd)
{
    char *text = xcalloc(MAX_REQUEST, 1);
    size_t len = 0;
    for (;;) {
        ssize_t n = read(fd, text + len, MAX_REQUEST - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
        const char *body = strstr(text, "\r\n\r\n"), *size = strcasestr(text, "content-length:");
        if (body &&
            len >= (size_t)(body + 4 - text) + (size > body || !size ? 0 : strtoul(size + 15, NULL, 10)))
            break;
    }
    return text;
}

static void answer(int fd, const struct turn *t)
{
    const char *cut = strstr(t->reply, "CUT");
    size_t n = cut ? (size_t)(cut - t->reply) : strlen(t->reply);
    if (!strcmp(t->reply, "SILENCE")) {
        char c;
        (void)!read(fd, &c, 1); /* until the client hangs up */
        return;
    }
    for (size_t at = 0; at < n;) {
        size_t piece = t->piece && (size_t)t->piece < n - at ? (size_t)t->piece : n - at;
        if (write(fd, t->reply + at, piece) <= 0)
            return;
        at += piece;
        if (t->piece)
            clock_sleep_ms(1);
    }
}

static void *serve(void *arg)
{
    struct server *s = arg;
    while (s->served < s->n) {
        int fd = accept(s->fd, NULL, NULL);
        if (fd < 0)
            break;
        s->requests[s->served] = read_request(fd);
        answer(fd, &s->turns[s->served++]);
        close(fd);
    }
    return NULL;
}

static void server_open(struct server *s, const struct turn *turns, int n)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    *s = (struct server){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .turns = turns, .n = n};
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    getsockname(s->fd, (struct sockaddr *)&a, &len);
    s->port = ntohs(a.sin_port);
    pthread_create(&s->thread, NULL, serve, s);
}

static void server_close(struct server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
    for (int i = 0; i < s->served; i++)
        free(s->requests[i]);
}

/* ---- a conversation --------------------------------------------------------------------------------- */

struct talk {
    struct server server;
    struct endpoint *endpoint;
    struct dialect *dialect;
    struct llm *llm;
    struct err e;
    volatile int stop;
    struct generated g;
};

static void talk_open(struct talk *t, const struct turn *turns, int n)
{
    *t = (struct talk){.e = ERR_INIT};
    server_open(&t->server, turns, n);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/v1/", t->server.port);
    setenv("REMOTE_KEY", "sesame-open", 1);
    const struct endpoint_options o = {url, "tiny", "env:REMOTE_KEY", NULL};
    t->endpoint = endpoint_open(&o, NULL, &t->e);
    if (!t->endpoint)
        fail_msg("%s", t->e.text);
    assert_null(getenv("REMOTE_KEY"));
    t->dialect = dialect_load("holo3", &t->e);
    t->llm = llm_remote(t->endpoint, t->dialect, 7, "abc");
    llm_set_cancel(t->llm, &t->stop);
    assert_int_equal(t->llm->ops->begin(t->llm, "You are a test.", &t->e), 0);
}

static void talk_close(struct talk *t)
{
    generated_free(&t->g);
    llm_free(t->llm);
    dialect_free(t->dialect);
    endpoint_free(t->endpoint);
    server_close(&t->server);
}

static int ask(struct talk *t, const char *text)
{
    const struct llm_request r = {.goal = GOAL_STEP,
                                  .sampling = {.temperature = 0.5f, .top_p = 1, .max_tokens = 90}};
    const struct chat_part part = {.text = text};
    generated_free(&t->g);
    if (text)
        assert_int_equal(t->llm->ops->user(t->llm, &part, 1, CHAT_PLACE_INLINE, &t->e), 0);
    return t->llm->ops->speak(t->llm, &r, &t->g, &t->e);
}

/* The body of request i as JSON. */
static json_t *body(struct talk *t, int i)
{
    json_t *root = json_loads(strstr(t->server.requests[i], "\r\n\r\n") + 4, 0, NULL);
    assert_non_null(root);
    return root;
}

#define OK      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define JSON    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
#define SAYS(s) "data: {\"choices\": [{\"delta\": {\"content\": \"" s "\"}}]}\n\n"
#define STOP    "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}\n\n"
#define USAGE                                                                                                \
    "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 100, \"completion_tokens\": 9, "                 \
    "\"prompt_tokens_details\": {\"cached_tokens\": 80}}}\n\n"
#define DONE "data: [DONE]\n\n"
#define ERROR(status, text)                                                                                  \
    "HTTP/1.1 " status "\r\nConnection: close\r\n\r\n{\"error\": {\"message\": \"" text "\"}}"

static void t_conversation(void **state)
{
    (void)state;
    static const struct turn turns[] = {{OK SAYS("one") SAYS(" two") STOP USAGE DONE, 3},
                                        {OK SAYS("three") STOP DONE, 0},
                                        {OK SAYS("again") STOP DONE, 0}};
    struct talk t;
    talk_open(&t, turns, 3);
    assert_int_equal(ask(&t, "Hello"), 0);
    assert_string_equal(t.g.text.data, "one two");
    assert_int_equal(t.g.n, 9);
    assert_int_equal(t.g.finish, FINISH_STOP);
    struct session_stats s = t.llm->ops->stats(t.llm);
    assert_int_equal(s.prefilled, 20);
    assert_int_equal(s.reused, 80);
    struct llm_mark *mark = t.llm->ops->mark(t.llm, &t.e);
    assert_int_equal(ask(&t, "More"), 0);
    assert_string_equal(t.g.text.data, "three");
    assert_int_equal(t.llm->ops->rewind(t.llm, mark, &t.e), 0);
    assert_int_equal(ask(&t, "Otherwise"), 0);
    json_t *first = body(&t, 0), *third = body(&t, 2), *messages = json_object_get(third, "messages");
    assert_string_equal(json_string_value(json_object_get(first, "model")), "tiny");
    assert_int_equal(json_array_size(json_object_get(first, "messages")), 2);
    assert_int_equal(json_array_size(messages),
                     4); /* system, Hello, one two, Otherwise: More was taken back */
    assert_string_equal(json_string_value(json_object_get(json_array_get(messages, 2), "content")),
                        "one two");
    assert_non_null(json_object_get(first, "response_format"));
    assert_non_null(strstr(t.server.requests[0], "Authorization: Bearer sesame-open\r\n"));
    assert_non_null(strstr(t.server.requests[0], "x-session-id: abc\r\n"));
    json_decref(first);
    json_decref(third);
    t.llm->ops->mark_free(mark);
    talk_close(&t);
}

static void t_shapes(void **state)
{
    (void)state;
    static const struct {
        struct turn turn;
        const char *text;
        enum finish finish;
    } cases[] = {
        {{OK
          "data:{\"choices\": [{\"delta\": {\"reasoning\": \"hm\", \"content\": \"a\"}, \"finish_reason\": "
          "\"length\"}]}\r\n\r\ndata: [DONE]\r\n\r\n",
          1},
         "a",
         FINISH_LENGTH},
        {{OK "data: {\"choices\": [{\"delta\": {\"reasoning_content\": \"only here\"}}]}\n\n" STOP DONE, 0},
         "only here",
         FINISH_STOP},
        {{OK
          "data: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 0, \"function\": {\"name\": \"click\", "
          "\"arguments\": \"{\\\"x\\\":\"}}]}}]}\n\ndata: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 0, "
          "\"function\": {\"arguments\": \" 5}\"}}]}}]}\n\n" STOP DONE,
          0},
         "{\"name\": \"click\", \"arguments\": {\"x\": 5}}",
         FINISH_STOP},
        {{JSON "{\n \"choices\": [{\"message\": {\"content\": \"whole\"},\n \"finish_reason\": \"stop\"}]\n}",
          7},
         "whole",
         FINISH_STOP},
        {{JSON "{\"choices\": [{\"message\": {\"content\": [{\"type\": \"text\", \"text\": \"part\"}]}}]}",
          0},
         "part",
         FINISH_STOP},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct talk t;
        talk_open(&t, &cases[i].turn, 1);
        if (ask(&t, "Hello"))
            fail_msg("case %zu: %s", i, t.e.text);
        assert_string_equal(t.g.text.data, cases[i].text);
        assert_int_equal(t.g.finish, cases[i].finish);
        talk_close(&t);
    }
}

static void t_second_try(void **state)
{
    (void)state;
    static const struct turn turns[] = {
        {ERROR("400 Bad Request", "unknown member response_format"), 0},
        {"HTTP/1.1 503 Busy\r\nRetry-After: 0.1\r\nConnection: close\r\n\r\n", 0},
        {OK SAYS("half") "CUT", 0},
        {OK SAYS("good") STOP DONE, 0},
    };
    struct talk t;
    talk_open(&t, turns, 4);
    if (ask(&t, "Hello"))
        fail_msg("%s", t.e.text);
    assert_string_equal(t.g.text.data, "good"); /* and not what had come before the cut */
    json_t *last = body(&t, 3);
    assert_null(json_object_get(last, "response_format"));
    assert_int_equal(json_array_size(json_object_get(last, "messages")), 2);
    json_decref(last);
    talk_close(&t);
}

static void t_refused(void **state)
{
    (void)state;
    static const struct {
        struct turn turn;
        enum err_kind kind;
        const char *says;
    } cases[] = {
        {{ERROR("401 Unauthorized", "no such key"), 0}, ERR_ENV, "refuses the key (401): no such key"},
        {{ERROR("404 Not Found", "no model"), 0}, ERR_ENV, "-m names the model"},
        {{ERROR("400 Bad Request", "too long"), 0}, ERR_MODEL, "answers 400: too long"},
        {{"HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/\r\nConnection: close\r\n\r\n", 0},
         ERR_ENV,
         "the address it means, http://elsewhere.example/"},
        {{OK "data: {\"error\": {\"message\": \"out of memory\"}}\n\n", 0},
         ERR_MODEL,
         "broke off: out of memory"},
        {{OK "data: {\"choices\": [\n\n", 0}, ERR_MODEL, "an event that is not JSON"},
        {{JSON "{\"choices\": []}", 0}, ERR_MODEL, "holds no message"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct talk t;
        talk_open(&t, &cases[i].turn, 1);
        assert_int_equal(ask(&t, "Hello"), -1);
        if (t.e.kind != cases[i].kind || !strstr(t.e.text, cases[i].says) || strstr(t.e.text, "sesame"))
            fail_msg("case %zu: %d %s", i, t.e.kind, t.e.text);
        talk_close(&t);
    }
}

static void *stop_soon(void *arg)
{
    clock_sleep_ms(200);
    *(volatile int *)arg = 2;
    return NULL;
}

static void t_stop(void **state)
{
    (void)state;
    static const struct turn silent = {"SILENCE", 0};
    struct talk t;
    pthread_t thread;
    talk_open(&t, &silent, 1);
    pthread_create(&thread, NULL, stop_soon, (void *)(uintptr_t)&t.stop);
    int64_t start = clock_ns();
    assert_int_equal(ask(&t, "Hello"), 0);
    double ms = clock_ms_since(start) - 200;
    check_note("%.0f ms after the stop", ms);
    assert_int_equal(t.g.finish, FINISH_CANCELLED);
    assert_true(ms < 1000); /* a server that says nothing has 300 s */
    pthread_join(thread, NULL);
    talk_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("turns go as messages with key and session, a rewind takes some back, tokens are counted",
          t_conversation),
    CLAIM("thoughts, tool calls, parts, streams in any pieces and whole replies are read", t_shapes),
    CLAIM("what is refused by name is left out, a busy or broken server is asked again", t_second_try),
    CLAIM("refusals are one line without the key, a redirect is not followed", t_refused),
    CLAIM("a stop ends a transfer", t_stop),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
