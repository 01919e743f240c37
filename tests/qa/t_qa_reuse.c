/* t_qa_reuse.c - tests that repeat their last run that passed (reuse: run); the model is a server that counts
 * its requests, and the program under test writes its events. */
#include "check.h"
#include "far.h"
#include "qa_program.h"

#include "base/file.h"

#include <pthread.h>
#include <unistd.h>

/* The window's place and its environment come from files, which are not part of the suite. */
#define TEST(task)                                                                                           \
    "  reuse: run\n"                                                                                         \
    "tests:\n  - id: a\n"                                                                                    \
    "    start: exec env $(cat \"{dir}/variable\") $XCLIENT \"$HOME/events.jsonl\" --title client "          \
    "--geometry $(cat \"{dir}/geometry\")\n"                                                                 \
    "    task: " task "\n    checks:\n"                                                                      \
    "      - { kind: file, path: events.jsonl, match: button_press }\n"                                      \
    "      - { kind: shell, run: 'test ! -e \"{dir}/broken\"' }\n"

struct model {
    struct far_server server;
    char *url, *last; /* the last request */
    const char *answer;
    int requests;
    pthread_mutex_t lock;
};

/* Clicks when it sees the first screenshot of a conversation, then gives the answer. */
static char *say(void *arg, int n, const char *request)
{
    struct model *m = arg;
    pthread_mutex_lock(&m->lock);
    m->requests++;
    free(m->last);
    m->last = xstrdup(request);
    pthread_mutex_unlock(&m->lock);
    return far_stream(strstr(request, "pyautogui.click(300, 200)") ? m->answer : "pyautogui.click(300, 200)");
}

static void put(const struct qa_program *q, const char *name, const char *text)
{
    char *path = xvfb_place(&q->x, name);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    free(path);
}

static void begin(struct qa_program *q, struct model *m)
{
    *m = (struct model){.answer = "DONE('Clicked.')"};
    pthread_mutex_init(&m->lock, NULL);
    qa_program_open(q);
    char *client = realpath(helper_path("xclient"), NULL);
    setenv("XCLIENT", client, 1);
    free(client);
    put(q, "variable", "UNUSED=1");
    put(q, "geometry", "600x400+50+50");
    qa_program_suite(q, TEST("Click into the window."));
    far_open_with(&m->server, say, m);
    m->url = far_address(&m->server);
    q->model = "counted";
}

static void end(struct qa_program *q, struct model *m)
{
    assert_int_equal(qa_program_remains(q), 0);
    far_close(&m->server);
    free(m->url);
    free(m->last);
    pthread_mutex_destroy(&m->lock);
    qa_program_close(q);
}

/* Runs the suite, and expects the outcome. Returns the number of repeated replies. */
static int repeats(struct qa_program *q, struct model *m, const char *option, const char *outcome)
{
    m->requests = 0;
    qa_program_run(q, WORDS("--quiet", "--base-url", m->url, "--dialect", "pyautogui", option));
    const json_t *attempt = json_array_get(json_object_get(qa_program_test(q, "a"), "attempts"), 0);
    if (strcmp(qa_program_outcome(q, "a"), outcome) != 0)
        fail_msg("%s, expected %s: %s; %s", qa_program_outcome(q, "a"), outcome,
                 field_text(qa_program_test(q, "a"), "why"), q->o.err);
    return (int)field_int(attempt, "reused");
}

/* Also expects the number of repeated replies and that of requests. */
static void runs(struct qa_program *q, struct model *m, const char *option, const char *outcome, int reused,
                 int requests)
{
    assert_int_equal(repeats(q, m, option, outcome), reused);
    assert_int_equal(m->requests, requests);
}

#define ANEW "--jobs=1"

static void t_repeats(void **state)
{
    struct qa_program q;
    struct model m;
    begin(&q, &m);
    runs(&q, &m, ANEW, "passed", 0, 2);
    runs(&q, &m, ANEW, "passed", 1, 1);
    runs(&q, &m, ANEW, "passed", 1, 1);
    end(&q, &m);
}

static void t_answers(void **state)
{
    struct qa_program q;
    struct model m;
    begin(&q, &m);
    qa_program_suite(&q, TEST("How many events are there?") "      - { kind: answer, match: '^7$' }\n");
    m.answer = "DONE('7')";
    runs(&q, &m, ANEW, "passed", 0, 2);
    m.answer = "DONE('8')";
    runs(&q, &m, ANEW, "failed", 1, 1);
    end(&q, &m);
}

/* Without a window manager the title is not on the screen, but the model reads it with the elements. */
static void t_text_differs(void **state)
{
    struct qa_program q;
    struct model m;
    if (!zenity_fits() || !program_exists("dbus-daemon") || !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    begin(&q, &m);
    qa_program_suite(&q, "  reuse: run\ntests:\n  - id: a\n    elements: text\n    wm: ''\n"
                         "    start: zenity --question --title=\"$(cat \"{dir}/title\")\" --text=Go?\n"
                         "    window: ^Ask\n    task: Click.\n"
                         "    wait_until: { kind: element, name: ^Yes$ }\n"
                         "    checks: [{ kind: shell, run: 'true' }]\n");
    put(&q, "title", "Ask for one");
    runs(&q, &m, ANEW, "passed", 0, 2);
    runs(&q, &m, ANEW, "passed", 1, 1);
    put(&q, "title", "Ask for two");
    runs(&q, &m, ANEW, "passed", 0, 2);
    end(&q, &m);
}

static const json_t *attempt_of(const struct qa_program *q, size_t i)
{
    return json_array_get(json_object_get(qa_program_test(q, "a"), "attempts"), i);
}

static void t_fails(void **state)
{
    struct qa_program q;
    struct model m;
    begin(&q, &m);
    runs(&q, &m, ANEW, "passed", 0, 2);
    put(&q, "broken", "");
    runs(&q, &m, ANEW, "failed", 1, 1);
    const char *reason = field_text(qa_program_test(&q, "a"), "why");
    if (!strstr(reason, "1 of 2 replies repeat an earlier run; --fresh "))
        fail_msg("the reason does not name --fresh: %s", reason);
    runs(&q, &m, ANEW, "failed", 0, 2);
    assert_null(strstr(field_text(qa_program_test(&q, "a"), "why"), "--fresh"));
    end(&q, &m);
}

static void t_retry(void **state)
{
    struct qa_program q;
    struct model m;
    begin(&q, &m);
    qa_program_suite(&q, "  retries: 1\n" TEST("Click into the window."));
    runs(&q, &m, ANEW, "passed", 0, 2);
    put(&q, "broken", "");
    runs(&q, &m, ANEW, "failed", 1, 3);
    assert_int_equal(field_int(attempt_of(&q, 1), "reused"), 0);
    end(&q, &m);
}

static void t_names(void **state)
{
    static const char *const reports[] = {"out.d/report.html", "out.d/junit.xml", "out.d/results.json"};
    struct qa_program q;
    struct model m;
    begin(&q, &m);
    runs(&q, &m, ANEW, "passed", 0, 2);
    runs(&q, &m, ANEW, "passed", 1, 1);
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        char *path = xvfb_place(&q.x, reports[i]), *text;
        size_t n;
        assert_int_equal(file_read(path, 8 << 20, &text, &n, NULL), 0);
        if (!strstr(text, i < 2 ? "1 of 2 replies as in " : "\"reused_from\": \"/"))
            fail_msg("%s does not name the earlier run: %s", reports[i], text);
        free(text);
        free(path);
    }
    end(&q, &m);
}

/* The setup of the second run does what another process may do: it replaces the record. */
static void t_replaced(void **state)
{
    struct qa_program q;
    struct model m;
    begin(&q, &m);
    qa_program_suite(&q, TEST("Click into the window.") "    setup: sh \"{dir}/script\"\n");
    put(&q, "script", ":\n");
    runs(&q, &m, ANEW, "passed", 0, 2);
    put(&q, "script",
        "cd \"$(dirname \"$0\")\" && p=$(find . -path '*/passed/*-*' -prune -type d) && mv \"$p\" gone && "
        "mkdir \"$p\" && echo other >\"$p/run\"\n");
    runs(&q, &m, ANEW, "passed", 1, 1);
    assert_non_null(strstr(field_text(attempt_of(&q, 0), "reused_from"), "/out.d/"));
    end(&q, &m);
}

static void t_fresh(void **state)
{
    struct qa_program q;
    struct model m;
    begin(&q, &m);
    runs(&q, &m, ANEW, "passed", 0, 2);
    runs(&q, &m, "--fresh", "passed", 0, 2);
    runs(&q, &m, "--max-steps=50", "passed", 0, 2);
    qa_program_suite(&q, TEST("Click into the client."));
    runs(&q, &m, ANEW, "passed", 0, 2);
    end(&q, &m);
}

static void t_first_differs(void **state)
{
    struct qa_program q;
    struct model m;
    begin(&q, &m);
    runs(&q, &m, ANEW, "passed", 0, 2);
    put(&q, "geometry", "600x400+80+50");
    runs(&q, &m, ANEW, "passed", 0, 2);
    runs(&q, &m, ANEW, "passed", 1, 1); /* the moved window is the one that passed last */
    end(&q, &m);
}

static void t_continues(void **state)
{
    struct qa_program q;
    struct model m;
    begin(&q, &m);
    runs(&q, &m, ANEW, "passed", 0, 2);
    runs(&q, &m, ANEW, "passed", 1, 1);
    assert_non_null(strstr(m.last, "Click into the window."));
    end(&q, &m);
}

/* Clicks six times, at places that depend on the replies in the conversation. */
static char *say_six(void *arg, int n, const char *request)
{
    struct model *m = arg;
    int clicks = 0;
    for (const char *at = request; (at = strstr(at, "pyautogui.click(3")); at++)
        clicks++;
    pthread_mutex_lock(&m->lock);
    m->requests++;
    pthread_mutex_unlock(&m->lock);
    char *text = clicks < 6 ? xasprintf("pyautogui.click(3%d0, 200)", clicks) : xstrdup("DONE('Clicked.')");
    char *reply = far_stream(text);
    free(text);
    return reply;
}

/* With a file `late`, a second window opens after the fourth click. The context keeps fewer screenshots. */
static void t_long(void **state)
{
    static const char suite[] =
        "  reuse: run\n"
        "tests:\n  - id: a\n"
        "    start: '(until [ \"$(grep -c button_press \"$HOME/e\")\" = 4 ]; do sleep .02; done; "
        "test ! -e \"{dir}/late\" || exec $XCLIENT \"$HOME/f\" --title late --geometry 90x90+660+450) & "
        "exec $XCLIENT \"$HOME/e\" --title client --geometry 600x400+50+50'\n"
        "    task: Click six times.\n    checks:\n"
        "      - { kind: shell, run: 'test $(grep -c button_press \"$HOME/e\") = 6' }\n";
    struct qa_program q;
    struct model m;
    begin(&q, &m);
    far_close(&m.server);
    free(m.url);
    far_open_with(&m.server, say_six, &m);
    m.url = far_address(&m.server);
    qa_program_suite(&q, suite);
    runs(&q, &m, ANEW, "passed", 0, 7);
    runs(&q, &m, ANEW, "passed", 6, 1);
    put(&q, "late", "");
    int repeated = repeats(&q, &m, ANEW, "passed"); /* the window may open during a later step */
    assert_in_range(repeated, 4, 6);
    assert_int_equal(m.requests, 7 - repeated);
    end(&q, &m);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a test that passed is repeated, and the model gives only the last reply", t_repeats),
    CLAIM("the answer is the model's of this run, and its check can fail", t_answers),
    CLAIM("if only the text with the screen differs the model decides", t_text_differs),
    CLAIM("a repetition that fails names --fresh, and the next run asks the model for all", t_fails),
    CLAIM("a retry asks the model for all replies", t_retry),
    CLAIM("each report names the run that was repeated", t_names),
    CLAIM("a record is read as it was found, even if it is replaced while the test starts", t_replaced),
    CLAIM("--fresh, another option and another task let the model decide", t_fresh),
    CLAIM("if the first screen differs the model decides all steps", t_first_differs),
    CLAIM("after repeated replies the model continues the same conversation", t_continues),
    CLAIM("it does so after more steps than the context has screenshots", t_long),
};

CHECK_MAIN()
