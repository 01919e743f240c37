/* t_qa_ahead.c - desktops that `holorun qa` opens before their test has begun. */
#include "check.h"
#include "qa_program.h"

#include "base/clock.h"
#include "base/file.h"

#include <signal.h>
#include <unistd.h>

/* A test that has its own variable, display and home folder, and leaves a file there. */
#define TEST(id, size, home)                                                                                 \
    "  - id: " id "\n    task: Do nothing.\n    display: xvfb:" size "\n    env: { WHO: " id " }\n" home     \
    "    setup: 'ls \"$HOME\" >{dir}/" id                                                                    \
    ".ls; echo \"$WHO $(xprop -root _NET_DESKTOP_GEOMETRY)\" >{dir}/" id ".env; "                            \
    "touch \"$HOME/used\"'\n"                                                                                \
    "    checks: [{ kind: shell, run: 'test \"$WHO\" = " id "' }]\n"

static const char tests_of_suite[] = "tests:\n" TEST("a", "640x480", "") TEST("b", "800x600", "")
    TEST("c", "640x480", "    home: skeleton\n") TEST("d", "640x480", "");

static void begin(struct qa_program *q)
{
    if (!program_exists("xprop") || !program_exists("openbox"))
        skip();
    qa_program_open(q);
    char *folder = xvfb_place(&q->x, "skeleton"), *file = xvfb_place(&q->x, "skeleton/kept");
    assert_int_equal(dir_make(folder, NULL) || file_write(file, "", 0, NULL), 0);
    free(folder);
    free(file);
    qa_program_suite(q, tests_of_suite);
    for (const char *id = "abcd"; *id; id++)
        qa_program_reply(q, (char[]){*id, 0}, "DONE('Done.')\n");
}

static char *text_of(const struct qa_program *q, const char *name)
{
    char *path = xvfb_place(&q->x, name), *text;
    size_t n;
    assert_int_equal(file_read(path, 4096, &text, &n, NULL), 0);
    free(path);
    return text;
}

static void t_own(void **state)
{
    struct qa_program q;
    begin(&q);
    qa_program_run(&q, WORDS("--quiet", "--jobs=1", "--dialect=pyautogui"));
    if (q.o.code)
        fail_msg("exit %d: %s", q.o.code, q.o.err);
    for (int i = 0; i < 4; i++) {
        char env[] = {(char)('a' + i), '.', 'e', 'n', 'v', 0}, ls[] = {(char)('a' + i), '.', 'l', 's', 0};
        char *files = text_of(&q, ls), *seen = text_of(&q, env);
        assert_int_equal(seen[0], 'a' + i);
        if (!strstr(seen, i == 1 ? "= 800, 600" : "= 640, 480"))
            fail_msg("test %d: %s", i, seen);
        assert_string_equal(files, i == 2 ? "kept\n" : "");
        free(files);
        free(seen);
    }
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

static void t_unused(void **state)
{
    struct qa_program q;
    begin(&q);
    qa_program_reply(&q, "a", "FAIL('Not possible.')\n");
    qa_program_run(&q, WORDS("--quiet", "--jobs=1", "--fail-fast", "--dialect=pyautogui"));
    assert_string_equal(qa_program_outcome(&q, "b"), "skipped");
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

/* Test `a` ends with a check of some seconds and leaves its end, in seconds since the machine's start; `b`
 * leaves when its X server started, in ticks. */
static const char two_tests[] =
    "tests:\n"
    "  - id: a\n    task: Do nothing.\n    checks:\n"
    "      - { kind: shell, run: 'sleep $PAUSE; cut -d\" \" -f1 /proc/uptime >{dir}/a.end' }\n"
    "  - id: b\n    task: Do nothing.\n"
    "    setup: 'cut -d\" \" -f22 /proc/$(cat /tmp/.X$(echo $DISPLAY | tr -d :)-lock | tr -d \" \")/stat "
    ">{dir}/b.server'\n"
    "    checks: [{ kind: shell, run: 'true' }]\n";

static void t_before(void **state)
{
    struct qa_program q;
    begin(&q);
    qa_program_suite(&q, two_tests);
    setenv("PAUSE", "3", 1);
    qa_program_run(&q, WORDS("--quiet", "--jobs=1", "--dialect=pyautogui"));
    if (q.o.code)
        fail_msg("exit %d: %s", q.o.code, q.o.err);
    char *end = text_of(&q, "a.end"), *server = text_of(&q, "b.server");
    double ahead = strtod(end, NULL) - strtod(server, NULL) / (double)sysconf(_SC_CLK_TCK);
    check_note("the server of the second test started %.2f s before the end of the first", ahead);
    assert_true(ahead > 1);
    free(end);
    free(server);
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

static void t_stopped(void **state)
{
    struct qa_program q;
    pid_t servers[8];
    int n = 0;
    begin(&q);
    qa_program_suite(&q, two_tests);
    setenv("PAUSE", "60", 1);
    pid_t pid = qa_program_start(&q, WORDS("--quiet", "--jobs=1", "--dialect=pyautogui"));
    for (int i = 0; i < 400 && n < 2; i++) {
        clock_sleep_ms(50);
        n = qa_program_processes(&q, "Xvfb", servers, 8);
    }
    kill(pid, SIGINT);
    qa_program_finish(&q, pid);
    assert_int_equal(n, 2);
    assert_string_equal(qa_program_outcome(&q, "b"), "skipped");
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

static const struct CMUnitTest tests[] = {
    CLAIM("each test has its own variables, display and home folder", t_own),
    CLAIM("a desktop that no test has used is closed", t_unused),
    CLAIM("a desktop is opened while the test before still runs", t_before),
    CLAIM("a stopped suite closes the desktop that waits for the next test", t_stopped),
};

CHECK_MAIN()
