/* t_qa_paced.c - `holorun qa` without --jobs: which tests run at the same time. */
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
#define PORT "    env: { PORT: \"8000\" }\n"

static void begin(struct qa_program *q, const char *tests, const char *const *ids)
{
    qa_program_open(q);
    qa_program_suite(q, tests);
    for (; *ids; ids++)
        qa_program_reply(q, *ids, "DONE('Done.')\n");
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

static void t_beside(void **state)
{
    static const char *const ids[] = {"p1", "p2", "f1", NULL};
    struct qa_program q;
    struct room room = {0};
    int rooms = 0;
    begin(&q, "tests:\n" TEST("p1", PORT, "true") TEST("p2", PORT, "true") TEST("f1", "", "true"), ids);
    pid_t pid = qa_program_start(&q, WORDS("--quiet", "--dialect=pyautogui"));
    for (int i = 0; i < 1200 && !exists(&q, "p1", "end"); i++) { /* how often another test had room */
        rooms += room_left(&room);
        clock_sleep_ms(100);
    }
    qa_program_finish(&q, pid);
    if (q.o.code)
        fail_msg("exit %d: %s", q.o.code, q.o.err);
    assert_false(beside(&q, "p1", "p2"));
    check_note("%d times room for a test during the first", rooms);
    if (rooms > 3) /* else other programs used the cores */
        assert_true(beside(&q, "p1", "f1"));
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

static void t_failed(void **state)
{
    static const char *const ids[] = {"p1", "p2", NULL};
    struct qa_program q;
    begin(&q, "tests:\n" TEST("p1", PORT, "false") TEST("p2", PORT, "true"), ids);
    qa_program_run(&q, WORDS("--quiet", "--fail-fast", "--dialect=pyautogui"));
    assert_string_equal(qa_program_outcome(&q, "p1"), "failed");
    assert_string_equal(qa_program_outcome(&q, "p2"), "skipped");
    assert_false(exists(&q, "p2", "begin"));
    qa_program_close(&q);
}

static void t_late(void **state)
{
    static const char *const ids[] = {"p1", "p2", NULL};
    struct qa_program q;
    begin(&q, "tests:\n" TEST("p1", PORT, "true") TEST("p2", PORT, "true"), ids);
    qa_program_run(&q, WORDS("--quiet", "--max-time=3", "--dialect=pyautogui"));
    assert_string_equal(qa_program_outcome(&q, "p1"), "passed");
    assert_string_equal(qa_program_outcome(&q, "p2"), "skipped");
    assert_false(exists(&q, "p2", "begin"));
    qa_program_close(&q);
}

static const struct CMUnitTest tests[] = {
    CLAIM("tests with a port run one at a time, and a test without one beside them", t_beside),
    CLAIM("a test that waits for a port does not start after one that failed with --fail-fast", t_failed),
    CLAIM("a test that waits for a port does not start after --max-time", t_late),
};

CHECK_MAIN()
