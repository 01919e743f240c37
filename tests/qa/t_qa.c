/* t_qa.c - tests of `holorun qa` as a process: outcomes, exit codes, workers, and files left behind. */
#include "check.h"
#include "qa_program.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/image.h"

#include <signal.h>
#include <sys/stat.h>

#define FOCUS CLICK(400, 400)

/* The client logs a key press for each letter. */
#define TYPED "grep -c key_press \"$HOME/events.jsonl\" | grep -qx 5"

static const char each_verdict[] =
    "tests:\n"
    "  - id: good\n    task: Type hello.\n    checks: [{kind: shell, run: '" TYPED "'}]\n"
    "  - id: wrong\n    task: Type hello.\n    checks: [{kind: shell, run: 'echo not there; false'}]\n"
    "  - id: claim\n    task: Type hello.\n    checks: [{kind: answer, match: Done}]\n"
    "  - id: turned\n    task: Type hello.\n    expect_fail: yes\n    checks: [{kind: file, path: nowhere}]\n"
    "  - id: crash\n    task: Type hello.\n    start: \"sh -c 'exec xmessage -name client hi' & sleep 1; "
    "exit 3\"\n"
    "    window: .\n    checks: [{kind: shell, run: 'true'}]\n"
    "  - id: no-program\n    task: Type hello.\n    start: exit 7\n"
    "  - id: window\n    task: Type hello.\n    checks: [{kind: window, title: ^client$}, {kind: window, "
    "title: other, absent: "
    "yes}]\n";

static void open_with(struct qa_program *q, const char *tests, const char *const *ids, const char *replies)
{
    qa_program_open(q);
    qa_program_suite(q, tests);
    for (; *ids; ids++)
        qa_program_reply(q, *ids, replies);
}

static void t_verdicts(void **state)
{
    struct qa_program q;
    open_with(&q, each_verdict, WORDS("good", "wrong", "claim", "turned", "window", "no-program", "crash"),
              FOCUS TYPE("hello") ANSWER("Done."));
    qa_program_run(&q, WORDS("--jobs", "3", "--only", "good", "--only", "wrong", "--only", "claim", "--only",
                             "turned", "--only", "window", "--only", "no-program"));
    assert_string_equal(qa_program_outcome(&q, "good"), "passed");
    assert_string_equal(qa_program_outcome(&q, "wrong"), "failed");
    assert_string_equal(qa_program_outcome(&q, "claim"), "claimed");
    assert_string_equal(qa_program_outcome(&q, "turned"), "passed");
    assert_string_equal(qa_program_outcome(&q, "window"), "passed");
    assert_string_equal(qa_program_outcome(&q, "no-program"), "error");
    assert_int_equal(q.o.code, ERR_FAILED);
    for (const char *const *f = WORDS("junit.xml", "results.tap", "report.html"); *f; f++) {
        char *name = xasprintf("out.d/%s", *f), *path = xvfb_place(&q.x, name);
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        free(name);
        free(path);
    }
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

static void t_exit_codes(void **state)
{
    static const struct {
        const char *only, *more;
        int code;
    } cases[] = {{"good", NULL, 0},
                 {"claim", NULL, ERR_UNSURE},
                 {"claim", "--accept-claims", 0},
                 {"no-program", NULL, ERR_ENV},
                 {"nothing", NULL, ERR_USAGE}};
    struct qa_program q;
    open_with(&q, each_verdict, WORDS("good", "claim", "no-program"), FOCUS TYPE("hello") ANSWER("Done."));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qa_program_run(&q, WORDS("--only", cases[i].only, cases[i].more));
        check_note("%s %s: %d", cases[i].only, cases[i].more ? cases[i].more : "", q.o.code);
        assert_int_equal(q.o.code, cases[i].code);
    }
    qa_program_close(&q);
}

/* Outcomes, answers and actions do not depend on the number of workers. */
static void t_many(void **state)
{
    enum { N = 8 };
    struct qa_program q;
    qa_program_open(&q);
    qa_program_suite(&q, "tests:\n  - id: \"t{n}\"\n    matrix: { n: 1..8 }\n    task: Type hello.\n"
                         "    checks: [{kind: shell, run: '" TYPED "'}, {kind: answer, match: '^{n}$'}]\n");
    for (int i = 1; i <= N; i++) {
        char *id = xasprintf("t%d", i),
             *text = xasprintf("%s" ANSWER("%d"), i % 3 ? FOCUS TYPE("hello") : FOCUS, i);
        qa_program_reply(&q, id, text);
        free(id);
        free(text);
    }
    for (int round = 0; round < 2; round++) {
        qa_program_run(&q, WORDS("--jobs", round ? "1" : "8"));
        assert_int_equal(q.o.code, ERR_FAILED);
        for (int i = 1; i <= N; i++) {
            char *id = xasprintf("t%d", i);
            assert_string_equal(qa_program_outcome(&q, id), i % 3 ? "passed" : "failed");
            free(id);
        }
    }
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

static void t_setup(void **state)
{
    struct qa_program q;
    qa_program_open(&q);
    qa_program_suite(
        &q, "  setup: [\"echo once >> out.d/log\"]\n  teardown: [\"echo last >> out.d/log\"]\n"
            "tests:\n  - id: a\n    task: Wait.\n    setup: ['echo a > \"$HOME/made\"']\n"
            "    teardown: ['cat \"$HOME/made\" >> out.d/log']\n    checks: [{kind: file, path: made, match: "
            "a}]\n"
            "  - id: b\n    task: Wait.\n    setup: ['false']\n    checks: [{kind: shell, run: 'true'}]\n");
    qa_program_reply(&q, "a", ANSWER("Done."));
    qa_program_reply(&q, "b", ANSWER("Done."));
    qa_program_run(&q, WORDS("--quiet"));
    assert_string_equal(qa_program_outcome(&q, "a"), "passed");
    assert_string_equal(qa_program_outcome(&q, "b"), "error");
    char *path = xvfb_place(&q.x, "out.d/log"), *text;
    size_t len;
    assert_int_equal(file_read(path, 1000, &text, &len, NULL), 0);
    assert_string_equal(text, "once\na\nlast\n");
    free(text);
    free(path);
    qa_program_close(&q);
}

/* A test that passes on its retry had another screen or another reply. */
static void t_flaky(void **state)
{
    struct qa_program q;
    qa_program_open(&q);
    qa_program_suite(&q,
                     "  retries: 1\n  flaky_max: 0\ntests:\n  - id: a\n    task: Wait.\n    checks: [{kind: "
                     "shell, run: 'test -e "
                     "out.d/again || { touch out.d/again; false; }'}]\n");
    qa_program_reply(&q, "a", FOCUS ANSWER("Done."));
    qa_program_run(&q, WORDS("--quiet"));
    assert_string_equal(qa_program_outcome(&q, "a"), "passed");
    assert_string_not_equal(field_text(qa_program_test(&q, "a"), "flaky"), "");
    assert_int_equal(q.o.code, ERR_UNSURE);
    check_note("%s", field_text(qa_program_test(&q, "a"), "flaky"));
    qa_program_close(&q);
}

/* A secret of two tests is typed in both, and is in no file or environment. */
static void t_secret(void **state)
{
    struct qa_program q;
    qa_program_open(&q);
    qa_program_suite(&q,
                     "  secrets: [\"PASSWORD=env:QA_CANARY\"]\ntests:\n  - id: \"t{n}\"\n    matrix: { n: "
                     "1..2 }\n    task: "
                     "Sign in.\n    checks: [{kind: shell, run: 'grep -c key_press \"$HOME/events.jsonl\" | "
                     "grep -qx 10'}, "
                     "{kind: shell, run: 'test -z \"$QA_CANARY\"'}]\n");
    qa_program_reply(&q, "t1", FOCUS TYPE("{{PASSWORD}}") ANSWER("xqzkvwpqyj"));
    qa_program_reply(&q, "t2", FOCUS TYPE("{{PASSWORD}}") ANSWER("Done."));
    setenv("QA_CANARY", "xqzkvwpqyj", 1);
    qa_program_run(&q, WORDS("--jobs", "2", "--quiet"));
    unsetenv("QA_CANARY");
    assert_string_equal(qa_program_outcome(&q, "t1"), "passed");
    assert_string_equal(qa_program_outcome(&q, "t2"), "passed");
    char *command = xasprintf("grep -rl xqzkvwpqyj '%s/out.d'", q.x.dir);
    assert_int_not_equal(system(command), 0);
    free(command);
    qa_program_close(&q);
}

/* Returns the content of a results file; the caller frees it. */
static char *report_text(const struct qa_program *q, const char *name)
{
    char *file = xasprintf("out.d/%s", name), *path = xvfb_place(&q->x, file), *text = NULL;
    size_t len;
    file_read(path, 1 << 20, &text, &len, NULL);
    free(path);
    free(file);
    return text ? text : xstrdup("");
}

/* The output of a failed setup, of a test or of the suite, is shown with secrets masked. */
static void t_secret_setup(void **state)
{
    static const char *const keys[] = {"", "  setup: ['echo xqzkvwpqyj; exit 3']\n"};
    struct qa_program q;
    qa_program_open(&q);
    for (int i = 0; i < 2; i++) {
        char *yaml = xasprintf("  secrets: [\"OWN=env:QA_CANARY\", \"OTHER=env:QA_OTHER\"]\n%stests:\n  - "
                               "id: a\n    task: Sign in.\n"
                               "    setup: ['echo xqzkvwpqyj and abcdwords; exit 3']\n",
                               keys[i]);
        qa_program_suite(&q, yaml);
        qa_program_reply(&q, "a", ANSWER("Done."));
        setenv("QA_CANARY", "xqzkvwpqyj", 1);
        setenv("QA_OTHER", "abcdwords", 1);
        qa_program_run(&q, WORDS("--jobs", "1"));
        unsetenv("QA_CANARY");
        unsetenv("QA_OTHER");
        assert_string_equal(qa_program_outcome(&q, "a"), "error");
        char *json = report_text(&q, "results.json");
        const char *const told[] = {json, q.o.err};
        for (int k = 0; k < 2; k++) {
            assert_non_null(strstr(told[k], "{{OWN}}"));
            assert_null(strstr(told[k], "xqzkvwpqyj"));
            assert_null(strstr(told[k], "abcdwords"));
        }
        free(json);
        free(yaml);
    }
    qa_program_close(&q);
}

/* Checks the final screen and the end of the log. */
static void t_picture(void **state)
{
    struct qa_program q;
    open_with(
        &q,
        "tests:\n  - id: late\n    task: Wait.\n    window: ^other$\n    start_timeout_s: 3\n    setup: "
        "['(sleep 0.3; yes a line | head -c 42000; printf \"\\0end\\n\") &']\n"
        "  - id: unset\n    task: Wait.\n    setup: ['echo first; echo second; exit 3']\n"
        "  - id: same\n    task: Wait.\n    checks: [{kind: shell, run: 'false'}]\n"
        "  - id: good\n    task: Wait.\n    checks: [{kind: shell, run: 'true'}]\n",
        WORDS("late", "unset", "same", "good"), ANSWER("Done."));
    qa_program_run(&q, WORDS("--jobs", "3", "--quiet"));
    assert_int_equal(q.o.code, ERR_FAILED);
    const json_t *late = json_array_get(json_object_get(qa_program_test(&q, "late"), "attempts"), 0);
    assert_non_null(strstr(field_text(late, "error"), "no window whose title matches '^other$' within 3 s"));
    assert_non_null(strstr(field_text(late, "error"), "open windows: 'client'"));
    assert_int_equal(strncmp(field_text(late, "log"), "[earlier output is left out]\na line\n", 36), 0);
    assert_non_null(strstr(field_text(late, "log"), "a line\n end\n"));
    const json_t *unset = json_array_get(json_object_get(qa_program_test(&q, "unset"), "attempts"), 0);
    assert_non_null(strstr(field_text(unset, "error"), "exit code 3; output: second)"));
    assert_string_equal(field_text(unset, "log"), "first\nsecond\n");
    struct image im = {0};
    assert_int_equal(image_read_png(&im, field_text(late, "picture"), NULL), 0);
    assert_int_equal(im.w, 800);
    uint8_t most = 0;
    for (int i = 0; i < 3 * im.w * im.h; i++)
        most = im.rgb[i] > most ? im.rgb[i] : most;
    assert_true(most > 128); /* the client's window, on a black screen */
    image_free(&im);
    char *junit = report_text(&q, "junit.xml"), *page = report_text(&q, "report.html");
    assert_non_null(strstr(junit, "/pictures/late-1/end.png]]"));
    assert_null(strstr(junit, "/pictures/same-1/end.png]]"));
    assert_non_null(strstr(page, "final screen"));
    for (const char *const *id = WORDS("same", "good"); *id; id++) {
        const json_t *a = json_array_get(json_object_get(qa_program_test(&q, *id), "attempts"), 0);
        char *part = xasprintf("/runs/%s/", *id);
        assert_true(json_is_null(
            json_object_get(a, "picture"))); /* the last frame shows it, or the test has no screen */
        assert_non_null(strstr(field_text(a, "run"), part));
        free(part);
    }
    free(junit);
    free(page);
    qa_program_close(&q);
}

static void wait_for_a_run(const struct qa_program *q)
{
    char *runs = xvfb_place(&q->x, "out.d/runs/t1"), *run = NULL;
    for (int i = 0; i < 600 && !run; i++) {
        clock_sleep_ms(50);
        run = record_newest(runs, NULL);
    }
    assert_non_null(run);
    free(run);
    free(runs);
}

/* A new run removes the reports of an earlier one. */
static void t_kept(void **state)
{
    struct qa_program q;
    qa_program_open(&q);
    qa_program_reply(&q, "a", ANSWER("Done."));
    qa_program_reply(&q, "b", ANSWER("Done."));
#define TWO                                                                                                  \
    "tests:\n  - id: a\n    task: Wait.\n    checks: [{kind: shell, run: 'true'}]\n"                         \
    "  - id: b\n    task: Wait.\n    checks: [{kind: shell, run: 'true'}]\n"
    qa_program_suite(&q, TWO);
    qa_program_run(&q, WORDS("--quiet"));
    assert_int_equal(q.o.code, 0);
    qa_program_suite(&q, "  setup: ['touch left', 'echo Traceback; echo no database; echo; exit 9']\n  "
                         "teardown: ['rm left']\n" TWO);
    qa_program_run(&q, WORDS("--quiet"));
    ONE_LINE(&q.o, ERR_ENV, "the suite's setup", "exit code 9", "output: no database)");
    assert_string_equal(qa_program_outcome(&q, "a"), "error");
    assert_string_equal(qa_program_outcome(&q, "b"), "error");
    assert_int_equal(json_integer_value(json_object_get(q.results, "exit_code")), ERR_ENV);
    char *junit = report_text(&q, "junit.xml"), *page = report_text(&q, "report.html"),
         *left = xvfb_place(&q.x, "left");
    check_has(junit, "tests=\"2\" failures=\"0\" errors=\"2\"", "no database");
    assert_non_null(strstr(page, "no database"));
    assert_false(file_exists(left));
    assert_int_equal(qa_program_remains(&q), 0);
    free(junit);
    free(page);
    free(left);
    qa_program_close(&q);
}

static void t_stopped(void **state)
{
    struct qa_program q;
    qa_program_open(&q);
    qa_program_suite(
        &q,
        "  teardown: [\"echo away > out.d/away\"]\n"
        "tests:\n  - id: \"t{n}\"\n    matrix: { n: 1..6 }\n    task: Wait.\n    checks: [{kind: shell, run: "
        "'true'}]\n");
    for (const char *const *id = WORDS("t1", "t2", "t3", "t4", "t5", "t6"); *id; id++)
        qa_program_reply(&q, *id, WAIT(60) ANSWER("Done."));
    pid_t pid = qa_program_start(&q, WORDS("--jobs", "2"));
    wait_for_a_run(&q);
    kill(pid, SIGTERM);
    qa_program_finish(&q, pid);
    assert_int_equal(q.o.code, ERR_STOPPED);
    assert_string_equal(qa_program_outcome(&q, "t1"), "stopped");
    assert_string_equal(qa_program_outcome(&q, "t6"), "skipped");
    char *away = xvfb_place(&q.x, "out.d/away");
    assert_true(file_exists(away));
    free(away);
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

static void t_killed(void **state)
{
    struct qa_program q;
    qa_program_open(&q);
    qa_program_suite(&q, "tests:\n  - id: \"t{n}\"\n    matrix: { n: 1..3 }\n    task: Wait.\n    setup: "
                         "['setsid sleep 1000 &']\n");
    for (const char *const *id = WORDS("t1", "t2", "t3"); *id; id++)
        qa_program_reply(&q, *id, WAIT(60) ANSWER("Done."));
    pid_t pid = qa_program_start(&q, WORDS("--jobs", "3"));
    wait_for_a_run(&q);
    kill(pid, SIGKILL);
    qa_program_finish(&q, pid);
    assert_int_equal(q.o.code, -1);
    assert_string_equal(qa_program_outcome(&q, "t1"), "skipped");
    char *junit = report_text(&q, "junit.xml");
    check_has(junit, "tests=\"3\" failures=\"0\" errors=\"3\" skipped=\"0\"", "still running or waiting");
    free(junit);
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

static void t_list(void **state)
{
    struct qa_program q;
    qa_program_open(&q);
    qa_program_suite(&q, each_verdict);
    qa_program_run(&q, WORDS("--list", "--only", "w*"));
    assert_int_equal(q.o.code, 0);
    check_has(q.o.out, "wrong", "window");
    assert_null(strstr(q.o.out, "claim"));
    qa_program_suite(&q, "tests:\n  - id: a\n    task: x\n    chekcs: []\n");
    qa_program_run(&q, WORDS("--list"));
    ONE_LINE(&q.o, ERR_USAGE, "suite.yaml:", "chekcs", "checks");
    qa_program_close(&q);
}

static const struct CMUnitTest tests[] = {
    CLAIM("each outcome is reported: passed, failed, claimed, expect_fail, error; reports are private",
          t_verdicts),
    CLAIM("the exit code sums up all tests", t_exit_codes),
    CLAIM("eight workers give the same results as one", t_many),
    CLAIM("setup runs once and for each test, teardown whatever the outcome", t_setup),
    CLAIM("a test that passes only on a retry is flaky", t_flaky),
    CLAIM("a secret of two tests is typed in both, and is in no report, run or environment", t_secret),
    CLAIM("the output of a failed setup is shown with its secret masked", t_secret_setup),
    CLAIM("a failed test shows its final screen unless the last screenshot does; each test has a directory",
          t_picture),
    CLAIM("if the suite's setup fails every test is an error in new reports, and teardown runs", t_kept),
    CLAIM("a signal stops all tests, skips those that have not started, and teardown runs", t_stopped),
    CLAIM("a killed run leaves reports that say so, and no process, lock or directory", t_killed),
    CLAIM("--list shows the tests that would run; a misspelled key is reported with the right one", t_list),
};

CHECK_MAIN()
