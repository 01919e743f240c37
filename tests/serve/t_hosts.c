/* t_hosts.c - tests holorun as the server or agent of other programs: replays transcripts of real clients,
 * and tests misbehaving ones.
 *
 * The transcripts in tests/cases/hosts were made by tests/hosts/mcp_client.py and acp_client.py with the
 * Python packages mcp 2.3.0 (both protocol eras) and agent-client-protocol 0.12.1.
 */
#include "check.h"

#include "base/clock.h"
#include "driven.h"
#include "hosted.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAVE       CLICK(300, 300) TYPE("abc") ANSWER("Done.")
#define PAY        CLICK_ON("Pay now", 300, 300) ANSWER("Paid.")
#define AGAIN      SAVE CLICK(300, 300) ANSWER("Again.")
#define LONG       TYPE(HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED) ANSWER("Done.")
#define PLAIN_LONG TYPE(PLAIN PLAIN PLAIN PLAIN) ANSWER("Done.")
#define PLAIN      FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY
#define FIFTY      "ab cd ef gh ab cd ef gh ab cd ef gh ab cd ef gh ab cd ef gh "

static int code(const json_t *answer)
{
    return (int)json_integer_value(json_object_get(json_object_get(answer, "error"), "code"));
}

/* ---- transcripts ------------------------------------------------------------------------------------------ */

static const struct transcript {
    const char *file, *command, *replies, *event; /* event: event of the window before the run is stopped */
    int n, presses;
    const char *more; /* an option */
} transcripts[] = {
    {"session-booking", "mcp", SAVE, NULL, 0, 1},
    {"session-denied", "mcp", PAY, NULL, 0, 0},
    {"session-asking", "mcp", PAY, NULL, 0, 0, "--confirm=caller"},
    {"session-acts", "mcp", SAVE, NULL, 0, 1},
    {"session-lenient", "mcp", SAVE, NULL, 0, 3},
    {"modern-lenient", "mcp", SAVE, NULL, 0, 3},
    {"acp-lenient", "acp", SAVE SAVE SAVE, NULL, 0, 3},
    {"modern-booking", "mcp", SAVE, NULL, 0, 1},
    {"modern-allowed", "mcp", PAY, NULL, 0, 1},
    {"modern-denied", "mcp", PAY, NULL, 0, 0},
    {"modern-stop", "mcp", PLAIN_LONG, "key_press", 10, 0},
    {"session-cancel", "mcp", PLAIN_LONG, "key_press", 10, 0},
    {"acp-booking", "acp", SAVE, NULL, 0, 1},
    {"acp-stop", "acp", PLAIN_LONG, "key_press", 10, 0},
    {"acp-denied", "acp", PAY, NULL, 0, 0},
    {"acp-twice", "acp", AGAIN, NULL, 0, 2},
};

/* All on one display: leftovers of a run would disturb the next. */
static void t_transcripts(void **state)
{
    struct stage t;
    int keys = 0;
    driven_open(&t);
    for (size_t i = 0; i < sizeof transcripts / sizeof *transcripts; i++) {
        const struct transcript *x = &transcripts[i];
        struct hosted h;
        char *path = xasprintf("tests/cases/hosts/%s.jsonl", x->file);
        hosted_start_with(&h, &t, x->command, x->replies, WORDS(x->more));
        hosted_play(&h, path, x->event, keys + x->n);
        assert_int_equal(hosted_end(&h), 0);
        int presses = 0, typed = 0;
        json_t *seen = stage_events(&t, NULL);
        for (size_t k = 0; k < json_array_size(seen); k++) {
            presses += !strcmp(word(seen, k, "event"), "button_press");
            typed += !strcmp(word(seen, k, "event"), "key_press");
        }
        if (presses != x->presses || typed > 1500)
            fail_msg("%s: %d presses, %d keys", path, presses, typed);
        keys += typed;
        driven_left_nothing(&t);
        stage_clear(&t);
        free(path);
    }
    check_note("%zu transcripts", sizeof transcripts / sizeof *transcripts);
    stage_close(&t);
}

/* Continues a conversation in another process. */
static void t_loaded(void **state)
{
    struct stage t;
    struct hosted h;
    driven_open(&t);
    hosted_start(&h, &t, "acp", SAVE);
    hosted_say(
        &h,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\",\"params\":{\"cwd\":\"/\",\"mcpServers\":[]}}");
    char *id = xstrdup(
        json_string_value(json_object_get(json_object_get(hosted_answer(&h, 1), "result"), "sessionId")));
    char *ask = xasprintf(
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"%s\","
        "\"prompt\":[{\"type\":\"text\",\"text\":\"Press Save\"}]}}",
        id);
    char *load = xasprintf(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/load\",\"params\":{\"sessionId\":\"%s\","
        "\"cwd\":\"/\",\"mcpServers\":[]}}",
        id);
    hosted_say(&h, ask);
    hosted_answer(&h, 2);
    assert_int_equal(hosted_end(&h), 0);
    hosted_start(&h, &t, "acp", SAVE);
    hosted_say(&h, load);
    assert_non_null(json_object_get(hosted_answer(&h, 1), "result"));
    json_t *first = json_array_get(h.heard, 0);
    const json_t *update = json_object_get(json_object_get(first, "params"), "update");
    assert_string_equal(json_string_value(json_object_get(update, "sessionUpdate")), "user_message_chunk");
    hosted_say(&h, ask);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(hosted_answer(&h, 2), "result"), "stopReason")),
        "end_turn");
    assert_int_equal(hosted_end(&h), 0);
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 2);
    char *look = xasprintf("grep -q '\"kind\": \"recall\"' '%s'/runs/*/events.jsonl", t.x.dir);
    assert_int_equal(system(look), 0); /* the conversation was continued */
    free(look);
    free(id);
    free(ask);
    free(load);
    stage_close(&t);
}

/* ---- misbehaving clients
 * ------------------------------------------------------------------------------------ */

static void start_typing(struct hosted *h, const struct stage *t, int id)
{
    hosted_start(h, t, "mcp", LONG);
    hosted_say(h, HELLO);
    hosted_answer(h, 1);
    char *call = xasprintf(TOOL(% d, "run_task", "{\"task\":\"Type\",\"wait_s\":600}"), id);
    hosted_say(h, call);
    free(call);
    driven_wait(t, "key_press", 20);
}

/* The client closes its ends or is killed: the run stops, and nothing stays pressed. */
static void t_dies(void **state)
{
    for (int how = 0; how < 3; how++) {
        struct stage t;
        struct hosted h;
        driven_open(&t);
        start_typing(&h, &t, 2);
        if (how == 1)
            close(h.out); /* closes the reader, then the writer */
        if (how == 1)
            h.out = dup(0);
        if (how == 2)
            kill(h.pid, SIGTERM);
        int ended = hosted_end(&h);
        assert_int_equal(ended, how == 2 ? ERR_STOPPED : 0);
        size_t n = json_array_size(stage_events(&t, "key_press"));
        assert_true(n < 1500);
        driven_left_nothing(&t);
        stage_close(&t);
    }
}

/* The server is killed: its guard releases the pressed keys. */
static void t_killed(void **state)
{
    struct stage t;
    struct hosted h;
    driven_open(&t);
    start_typing(&h, &t, 2);
    kill(h.pid, SIGKILL);
    assert_int_equal(hosted_end(&h), -1);
    for (int i = 0; i < 1000 && (pressed(t.other) || borrowed_keycodes(t.other)); i++)
        clock_sleep_ms(5);
    assert_int_equal(pressed(t.other), 0);
    assert_int_equal(borrowed_keycodes(t.other), 0);
    stage_close(&t);
}

/* Measures the time from the cancelling line to the last key; only noted, because the machine may be busy. */
static void t_latency(void **state)
{
    struct stage t;
    struct hosted h;
    driven_open(&t);
    start_typing(&h, &t, 2);
    int64_t start = clock_ns();
    hosted_say(&h,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":2}}");
    long keys = -1, now = 0;
    double last = 0;
    while (clock_ms_since(start) < 400) { /* until nothing has arrived for a while */
        now = (long)json_array_size(stage_events(&t, "key_press"));
        last = now != keys ? clock_ms_since(start) : last;
        keys = now;
    }
    hosted_say(&h, TOOL(3, "run_task", "{\"task\":\"Again\",\"wait_s\":0}"));
    assert_string_equal(hosted_status(hosted_answer(&h, 3)), "running"); /* the display is free again */
    check_note("%ld keys, the last one seen at %.0f ms", keys, last);
    assert_true(keys < 1500);
    assert_int_equal(hosted_end(&h), 0);
    driven_left_nothing(&t);
    stage_close(&t);
}

static void expect(struct hosted *h, const char *line, int id, int error)
{
    hosted_say(h, line);
    json_t *got = id ? hosted_answer(h, id) : hosted_hear(h);
    if (code(got) != error)
        fail_msg("%.80s: %s", line, json_dumps(got, 0));
}

static void t_wrong(void **state)
{
    struct stage t;
    struct hosted h;
    driven_open(&t);
    hosted_start(&h, &t, "mcp", SAVE);
    expect(&h, TOOL(9, "windows", "{}"), 9, -32600); /* before initialize */
    hosted_say(&h, HELLO);
    hosted_answer(&h, 1);
    expect(&h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/fly\"}", 2, -32601);
    expect(&h, TOOL(3, "fly", "{}"), 3, -32602);
    expect(&h, "no JSON", 0, -32700);
    expect(&h, "[]", 0, -32600);
    expect(&h, "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", 0, -32600);
    expect(&h, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\",\"params\":[1]}", 4, -32600);
    expect(
        &h,
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
        "protocolVersion\":\"1999-01-01\"}}}",
        5, -32022);
    expect(
        &h,
        "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"tasks/get\",\"params\":{\"taskId\":\"x\",\"_meta\":{\"io."
        "modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}",
        6, -32021);
    hosted_say(&h, "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}"); /* no request was sent */
    hosted_say(&h,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":3}}");
    hosted_say(&h, TOOL(10, "run_stop", "{\"run_id\":\"run-0\"}"));
    assert_true(hosted_is_error(hosted_answer(&h, 10)));
    hosted_say(&h, TOOL(11, "run_task", "{\"task\":[7]}"));
    assert_true(hosted_is_error(hosted_answer(&h, 11)));
    hosted_say(&h, TOOL(12, "run_task", "{\"task\":\"Press Save\",\"wait_s\":20}"));
    hosted_say(&h, TOOL(12, "run_status", "{\"run_id\":\"x\"}")); /* an id in use */
    assert_int_equal(code(hosted_answer(&h, 12)), -32600);
    assert_string_equal(hosted_status(hosted_answer(&h, 12)), "answered"); /* ... does not disturb the run */
    hosted_bytes(&h, "{\"jsonrpc\":", 11);                                 /* half a line is not a message */
    assert_int_equal(hosted_end(&h), 0);
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 1);
    driven_left_nothing(&t);
    stage_close(&t);
}

/* 100 MB in a line, then many requests at once, while a run types: one error, all answers, and the run
 * continues. */
static void t_floods(void **state)
{
    enum { MEGABYTES = 100, PINGS = 200 };
    struct stage t;
    struct hosted h;
    driven_open(&t);
    start_typing(&h, &t, 2);
    char *megabyte = xcalloc(1 << 20, 1);
    memset(megabyte, 'a', 1 << 20);
    for (int i = 0; i < MEGABYTES; i++)
        hosted_bytes(&h, megabyte, 1 << 20);
    free(megabyte);
    assert_int_equal(code(hosted_hear(&h)), -32600);
    hosted_say(&h, "");
    for (int i = 0; i < PINGS; i++) {
        char line[80];
        snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}", 100 + i);
        hosted_say(&h, line);
    }
    hosted_answer(&h, 100 + PINGS - 1);
    assert_int_equal(json_array_size(h.heard), 1 + 1 + PINGS); /* initialize, the error, an answer for each */
    assert_int_equal(hosted_end(&h), 0);
    driven_left_nothing(&t);
    stage_close(&t);
}

/* ---- tasks and polling
 * --------------------------------------------------------------------------------------- */

#define META(more)                                                                                           \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/"       \
    "clientCapabilities\":{\"elicitation\":{},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}" more   \
    "}"

static json_t *task_get(struct hosted *h, const char *method, const char *task, const char *more, int id)
{
    char *line = xasprintf(
        "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\",\"params\":{\"taskId\":\"%s\"%s," META("") "}}", id,
        method, task, more);
    hosted_say(h, line);
    free(line);
    return json_object_get(hosted_answer(h, id), "result");
}

static const char *task_status(const json_t *result)
{
    const char *s = json_string_value(json_object_get(result, "status"));
    return s ? s : "";
}

/* A task asks, is answered, and is polled until it is done; another is cancelled. */
static void t_tasks(void **state)
{
    struct stage t;
    struct hosted h;
    int id = 10, polls = 0;
    driven_open(&t);
    hosted_start(&h, &t, "mcp", CLICK_ON("Pay now", 300, 300) WAIT(1) ANSWER("Paid."));
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        char *line = xasprintf(
            "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{\"name\":\"run_task\","
            "\"arguments\":{\"task\":\"Pay\"}," META("") "}}",
            ++id);
        hosted_say(&h, line);
        free(line);
        json_t *task = json_object_get(hosted_answer(&h, id), "result");
        assert_string_equal(json_string_value(json_object_get(task, "resultType")), "task");
        char *name = xstrdup(json_string_value(json_object_get(task, "taskId")));
        while (!strcmp(task_status(task), "working")) {
            clock_sleep_ms(20);
            task = task_get(&h, "tasks/get", name, "", ++id);
        }
        assert_string_equal(task_status(task), "input_required");
        assert_non_null(json_object_get(json_object_get(task, "inputRequests"), "allow-1"));
        task_get(
            &h, cancelled ? "tasks/cancel" : "tasks/update", name,
            cancelled
                ? ""
                : ",\"inputResponses\":{\"allow-1\":{\"action\":\"accept\",\"content\":{\"allow\":\"true\"}}}",
            ++id);
        do {
            clock_sleep_ms(20);
            task = task_get(&h, "tasks/get", name, "", ++id);
            polls++;
        } while (!strcmp(task_status(task), "working") || !strcmp(task_status(task), "input_required"));
        assert_string_equal(task_status(task), cancelled ? "cancelled" : "completed");
        free(name);
    }
    check_note("%d polls", polls);
    assert_int_equal(hosted_end(&h), 0);
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 1);
    driven_left_nothing(&t);
    stage_close(&t);
}

/* A window opens over the target between screenshot and action; the next action is based on an image with the
 * window. */
static void t_shown(void **state)
{
    struct stage t;
    struct hosted h;
    driven_open(&t);
    hosted_start(&h, &t, "mcp", SAVE);
    hosted_say(&h, HELLO);
    hosted_answer(&h, 1);
    for (int i = 0; i < 2; i++) {
        hosted_say(&h, i ? TOOL(20, "screenshot", "{}") : TOOL(10, "screenshot", "{}"));
        hosted_answer(&h, 10 + 10 * i);
        Window w =
            XCreateSimpleWindow(t.other, DefaultRootWindow(t.other), 200 + i, 200, 200, 200, 0, 0, 0xffff80);
        XSelectInput(t.other, w, ButtonPressMask);
        XStoreName(t.other, w, "Chat");
        XMapRaised(t.other, w);
        XSync(t.other, False);
        hosted_say(&h, i ? TOOL(21, "act", "{\"action\":\"click\",\"x\":300,\"y\":300}")
                         : TOOL(11, "act", "{\"action\":\"click\",\"x\":300,\"y\":300}"));
        json_t *answer = hosted_answer(&h, 11 + 10 * i);
        char *text = json_dumps(answer, 0);
        if (!strstr(text, "'Chat'") || !strstr(text, "nothing was pressed"))
            fail_msg("%.600s", text);
        free(text);
        XEvent ev;
        XSync(t.other, False);
        assert_false(XCheckTypedEvent(t.other, ButtonPress, &ev));
    }
    hosted_say(&h, TOOL(30, "act", "{\"action\":\"click\",\"x\":300,\"y\":300}"));
    hosted_answer(&h, 30);
    XEvent ev;
    XSync(t.other, False);
    assert_true(XCheckTypedEvent(t.other, ButtonPress, &ev)); /* the window got it */
    assert_int_equal(hosted_end(&h), 0);
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 0);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("transcripts of real clients give the same messages again", t_transcripts),
    CLAIM("a session begun by another process is loaded and continued", t_loaded),
    CLAIM("a client that dies leaves no run and nothing pressed", t_dies),
    CLAIM("a killed server leaves nothing pressed", t_killed),
    CLAIM("cancelling a request stops its run", t_latency),
    CLAIM("each invalid message gets one error and has no other effect", t_wrong),
    CLAIM("the server survives a line of 100 MB and a flood of requests", t_floods),
    CLAIM("an action is not performed on content that its caller has not seen", t_shown),
    CLAIM("a task asks, is answered, polled and cancelled", t_tasks),
};

CHECK_MAIN()
