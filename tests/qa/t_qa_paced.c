/* t_qa_paced.c - which tests `holorun qa` runs at the same time: without --jobs those that use no port, as
 * far as the machine has room, and with --jobs those that use no existing display, however busy it is. */
#include "check.h"
#include "qa_program.h"

#include "base/clock.h"
#include "base/file.h"
#include "qa/run/room.h"

#define NOW "cut -d\" \" -f1 /proc/uptime >{dir}/"

/* A test that leaves the times of its begin and end, in seconds since the machine's start. */
#define TEST(id, keys, last)                                                                                 \
    "  - id: " id "\n    task: Do nothing.\n" keys "    setup: '" NOW id ".begin'\n"                         \
    "    checks: [{ kind: shell, run: 'sleep 4; " NOW id ".end; " last "' }]\n"
#define PORT    "    env: { PORT: \"8000\" }\n"
#define DISPLAY "    display: \"%1$s\"\n"

/* Writes a suite whose %1$s is the display of a server that runs meanwhile. */
static void begin(struct qa_program *q, struct xvfb *server, const char *tests)
{
    if (xvfb_start(server, "800x600x24", NULL))
        skip();
    qa_program_open(q);
    char *text = xasprintf(tests, server->display);
    qa_program_suite(q, text);
    free(text);
    qa_program_reply(q, "s1", "DONE('Done.')\n");
    qa_program_reply(q, "s2", "DONE('Done.')\n");
    qa_program_reply(q, "f1", "DONE('Done.')\n");
}

static void end(struct qa_program *q, struct xvfb *server)
{
    qa_program_close(q);
    xvfb_stop(server);
}

static bool exists(const struct qa_program *q, const char *id, const char *what)
{
    char *name = xasprintf("%s.%s", id, what), *path = xvfb_place(&q->x, name);
    bool found = file_exists(path);
    free(name);
    free(path);
    return found;
}

static double when(const struct qa_program *q, const char *id, const char *what)
{
    char *name = xasprintf("%s.%s", id, what), *path = xvfb_place(&q->x, name), *text = NULL;
    size_t n;
    assert_int_equal(file_read(path, 256, &text, &n, NULL), 0);
    double seconds = strtod(text, NULL);
    free(text);
    free(path);
    free(name);
    return seconds;
}

static bool beside(const struct qa_program *q, const char *a, const char *b)
{
    return when(q, a, "begin") < when(q, b, "end") && when(q, b, "begin") < when(q, a, "end");
}

#define THREE(keys) "tests:\n" TEST("s1", keys, "true") TEST("s2", keys, "true") TEST("f1", "", "true")

static void t_port(void **state)
{
    struct qa_program q;
    struct xvfb server;
    struct room room = {0};
    int rooms = 0;
    begin(&q, &server, THREE(PORT));
    pid_t pid = qa_program_start(&q, WORDS("--quiet", "--dialect=pyautogui"));
    for (int i = 0; i < 1200 && !exists(&q, "s1", "end"); i++) { /* how often another test had room */
        rooms += room_left(&room);
        clock_sleep_ms(100);
    }
    qa_program_finish(&q, pid);
    if (q.o.code)
        fail_msg("exit %d: %s", q.o.code, q.o.err);
    assert_false(beside(&q, "s1", "s2"));
    check_note("%d times room for a test during the first", rooms);
    if (rooms > 3) /* else other programs used the cores */
        assert_true(beside(&q, "s1", "f1"));
    assert_int_equal(qa_program_remains(&q), 0);
    end(&q, &server);
}

static void t_display(void **state)
{
    struct qa_program q;
    struct xvfb server;
    begin(&q, &server, THREE(DISPLAY));
    qa_program_run(&q, WORDS("--quiet", "--jobs=2", "--dialect=pyautogui"));
    if (q.o.code)
        fail_msg("exit %d: %s", q.o.code, q.o.err);
    assert_false(beside(&q, "s1", "s2"));
    assert_true(beside(&q, "s1", "f1"));
    end(&q, &server);
}

#define TWO(keys, last) "tests:\n" TEST("s1", keys, last) TEST("s2", keys, "true")

/* Expects that the second test does not start, although a worker was idle. */
static void stops(const char *tests, const char *jobs, const char *stop, const char *first)
{
    struct qa_program q;
    struct xvfb server;
    begin(&q, &server, tests);
    qa_program_run(&q, WORDS("--quiet", "--dialect=pyautogui", stop, jobs));
    assert_string_equal(qa_program_outcome(&q, "s1"), first);
    assert_string_equal(qa_program_outcome(&q, "s2"), "skipped");
    assert_false(exists(&q, "s2", "begin"));
    end(&q, &server);
}

static void t_failed(void **state)
{
    stops(TWO(PORT, "false"), "--quiet", "--fail-fast", "failed");
    stops(TWO(DISPLAY, "false"), "--jobs=2", "--fail-fast", "failed");
}

static void t_late(void **state)
{
    stops(TWO(PORT, "true"), "--quiet", "--max-time=3", "passed");
    stops(TWO(DISPLAY, "true"), "--jobs=2", "--max-time=3", "passed");
}

static const struct CMUnitTest tests[] = {
    CLAIM("without --jobs tests with a port run one at a time, and one without beside them", t_port),
    CLAIM("tests on an existing display run one at a time, and one on its own beside them", t_display),
    CLAIM("a test that waits for a port or display does not start after one that failed with --fail-fast",
          t_failed),
    CLAIM("a test that waits for a port or display does not start after --max-time", t_late),
};

CHECK_MAIN()
