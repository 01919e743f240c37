/* t_qa_red.c - tests that a suite which ends without a verdict is red everywhere: exit code, JUnit, TAP,
 * page, Markdown summary and terminal.  Each case is a suite of two tests; the test `good` passes if it
 * runs.
 */
#include "check.h"
#include "qa_program.h"

#include "base/clock.h"
#include "base/file.h"

#include <signal.h>

#define TRUE_CHECK "    checks: [{kind: shell, run: 'true'}]\n"

/* How a suite ends. */
enum end { ENDS, STOPPED, KILLED };

static const struct way {
    const char *name, *keys, *reply; /* keys, reply: of the test `bad` */
    const char *option, *value;
    int code;
    const char
        *group; /* of `bad`; " not run" if both may be unstarted; NULL: killed before the page exists */
    enum end end;
} ways[] = {
    {"out of steps", "    steps: 1\n" TRUE_CHECK, CLICK(400, 400) CLICK(400, 400) ANSWER("Done."), NULL, NULL,
     ERR_UNSURE, "1 inconclusive", ENDS},
    {"out of time", "    timeout_s: 0.5\n" TRUE_CHECK, WAIT(3) WAIT(3) ANSWER("Done."), NULL, NULL,
     ERR_UNSURE, "1 inconclusive", ENDS},
    {"only claimed", "    checks: [{kind: answer, match: Done}]\n", CLICK(400, 400) ANSWER("Done."), NULL,
     NULL, ERR_UNSURE, "1 claimed", ENDS},
    {"infeasible", TRUE_CHECK, ANSWER("No such page. [TASK=INFEASIBLE]"), NULL, NULL, ERR_FAILED, "1 failed",
     ENDS},
    {"a judge that does not know", "    checks: [{kind: judge, ask: Is it there?}]\n", ANSWER("Done."), NULL,
     NULL, ERR_UNSURE, "1 inconclusive", ENDS},
    {"no program", "    start: exit 7\n" TRUE_CHECK, ANSWER("Done."), NULL, NULL, ERR_ENV, "1 error", ENDS},
    {"the suite out of time", TRUE_CHECK, ANSWER("Done."), "--max-time", "0.05", ERR_TIME, " not run", ENDS},
    {"stopped", TRUE_CHECK, WAIT(60) ANSWER("Done."), NULL, NULL, ERR_STOPPED, "1 stopped", STOPPED},
    {"killed", TRUE_CHECK, WAIT(60) ANSWER("Done."), NULL, NULL, -1, NULL, KILLED},
};

static char *text_of(const struct qa_program *q, const char *name)
{
    char *path = xvfb_place(&q->x, name), *text = NULL;
    size_t len;
    file_read(path, 4 << 20, &text, &len, NULL);
    free(path);
    return text ? text : xstrdup("");
}

static void wait_for(const struct qa_program *q, const char *name)
{
    char *path = xvfb_place(&q->x, name);
    for (int i = 0; i < 600 && !file_exists(path); i++)
        clock_sleep_ms(50);
    assert_true(file_exists(path));
    free(path);
}

static void run_way(struct qa_program *q, const struct way *w, const char *undecided)
{
    bool last = !strcmp(w->name, "the suite out of time");
    char *tests = xasprintf("tests:\n%s  - id: bad\n    task: Wait.\n    setup: ['touch out.d/begun']\n%s%s",
                            last ? "  - id: good\n    task: Wait.\n" TRUE_CHECK : "", w->keys,
                            last ? "" : "  - id: good\n    task: Wait.\n" TRUE_CHECK);
    qa_program_suite(q, tests);
    qa_program_reply(q, "bad", w->reply);
    qa_program_reply(q, "good", ANSWER("Done."));
    char *junit = xvfb_place(&q->x, "copy.xml"), *summary = xvfb_place(&q->x, "summary.md");
    unlink(summary);
    setenv("GITHUB_STEP_SUMMARY", summary, 1);
    pid_t pid = qa_program_start(q, WORDS("--junit", junit, "--undecided", undecided, w->option, w->value));
    if (w->end != ENDS) {
        wait_for(q, "out.d/begun");
        clock_sleep_ms(1000);
        kill(pid, w->end == STOPPED ? SIGTERM : SIGKILL);
    }
    qa_program_finish(q, pid);
    free(tests), free(junit), free(summary);
}

static int system_in(const struct qa_program *q, const char *command)
{
    char *all = xasprintf("cd '%s' && { %s; } >/dev/null 2>&1", q->x.dir, command);
    int rc = system(all);
    free(all);
    return rc;
}

/* Counts elements as CI parsers do; the attributes must agree. */
static void check_junit(const struct qa_program *q, const struct way *w)
{
    for (const char *const *f = WORDS("out.d/junit.xml", "copy.xml"); *f; f++) {
        char *xml = text_of(q, *f);
        int failures = 0, errors = 0, elements = 0;
        const char *counts = strstr(xml, " failures=");
        if (!counts || sscanf(counts, " failures=\"%d\" errors=\"%d\"", &failures, &errors) != 2)
            fail_msg("%s: no counts in %s: %.300s", w->name, *f, xml);
        for (const char *p = xml; (p = strstr(p, "<")); p++)
            elements += !strncmp(p, "<failure ", 9) || !strncmp(p, "<error ", 7);
        if (!elements || elements != failures + errors)
            fail_msg("%s: %d elements, %d failures, %d errors in %s", w->name, elements, failures, errors,
                     *f);
        free(xml);
    }
    if (system("python3 -c 'import junitparser' 2>/dev/null") == 0)
        assert_int_equal(system_in(q,
                                   "python3 -c \"import junitparser, sys; x = junitparser.JUnitXml.fromfile("
                                   "'out.d/junit.xml'); sys.exit(0 if x.failures + x.errors else 9)\""),
                         0);
}

static void check_all(const struct qa_program *q, const struct way *w)
{
    check_junit(q, w);
    if (system("command -v prove >/dev/null 2>&1") == 0)
        assert_int_not_equal(system_in(q, "prove --exec cat out.d/results.tap"), 0);
    assert_int_equal(q->o.code, w->code);
    assert_string_not_equal(field_text(qa_program_test(q, "bad"), "ci"), "passed");
    assert_string_not_equal(field_text(qa_program_test(q, "bad"), "ci"), "skipped");
    if (!w->group)
        return;
    assert_int_equal(json_integer_value(json_object_get(q->results, "exit_code")), w->code);
    char *page = text_of(q, "out.d/report.html"), *summary = text_of(q, "summary.md");
    const char *headline = strstr(page, "<span class=\"status bad\">");
    const char *says = headline ? headline + 25 : "";
    if (strncmp(*w->group == ' ' ? says + strspn(says, "12") : says, w->group, strlen(w->group)) != 0)
        fail_msg("%s: the page says %.80s", w->name, strstr(page, "<span class=\"status"));
    if (!strstr(summary, "## \xe2\x9d\x8c quality: ") || !strstr(summary, w->group))
        fail_msg("%s: %.200s", w->name, summary);
    if (!strstr(q->o.err, "\nnot passed   exit code ") || !strstr(q->o.err, w->group))
        fail_msg("%s: %s", w->name, q->o.err);
    free(page), free(summary);
}

static void t_red(void **state)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct qa_program q;
        qa_program_open(&q);
        run_way(&q, &ways[i], "error");
        check_all(&q, &ways[i]);
        check_note("%s: %d", ways[i].name, q.o.code);
        qa_program_close(&q);
    }
}

static void t_undecided(void **state)
{
    static const struct {
        const char *undecided, *element, *tap;
        int code;
    } cases[] = {{"failure", "<failure type=\"claimed\"", "\nnot ok 1 - bad\n", ERR_FAILED},
                 {"skipped", "<skipped type=\"claimed\"", "\nok 1 - bad # SKIP claimed: ", 0}};
    struct qa_program q;
    qa_program_open(&q);
    for (int i = 0; i < 2; i++) {
        run_way(&q, &ways[2], cases[i].undecided);
        char *xml = text_of(&q, "out.d/junit.xml"), *tap = text_of(&q, "out.d/results.tap");
        assert_int_equal(q.o.code, cases[i].code);
        assert_non_null(strstr(xml, cases[i].element));
        assert_non_null(strstr(tap, cases[i].tap));
        free(xml), free(tap);
    }
    qa_program_close(&q);
}

/* A test with `expect: infeasible` passes if the run reports that, and fails if the run succeeds. */
static void t_infeasible(void **state)
{
    struct qa_program q;
    qa_program_open(&q);
    qa_program_suite(&q, "  expect: infeasible\ntests:\n  - id: no\n    task: Open page 9.\n" TRUE_CHECK
                         "  - id: yes\n    task: Open page 1.\n" TRUE_CHECK
                         "  - id: own\n    task: Open page 2.\n    expect: done\n" TRUE_CHECK);
    qa_program_reply(&q, "no", ANSWER("No such page. [TASK=INFEASIBLE]"));
    qa_program_reply(&q, "yes", ANSWER("Done."));
    qa_program_reply(&q, "own", ANSWER("Done."));
    qa_program_run(&q, WORDS("--jobs", "3", "--quiet"));
    assert_string_equal(qa_program_outcome(&q, "no"), "passed");
    assert_string_equal(qa_program_outcome(&q, "yes"), "failed");
    assert_string_equal(qa_program_outcome(&q, "own"), "passed");
    assert_non_null(strstr(field_text(qa_program_test(&q, "yes"), "why"), "was expected to say that"));
    qa_program_close(&q);
}

/* An unreadable suite leaves no report of an earlier run that CI might publish. */
static void t_stale(void **state)
{
    struct qa_program q;
    qa_program_open(&q);
    run_way(&q, &ways[2], "skipped");
    assert_int_equal(q.o.code, 0);
    qa_program_suite(&q, "tests:\n  - id: bad\n    tsak: Wait.\n");
    char *copy = xvfb_place(&q.x, "copy.xml"), *junit = xvfb_place(&q.x, "out.d/junit.xml");
    assert_true(file_exists(copy) && file_exists(junit));
    qa_program_run(&q, WORDS("--junit", copy));
    assert_int_equal(q.o.code, ERR_USAGE);
    assert_false(file_exists(copy) || file_exists(junit));
    free(copy), free(junit);
    qa_program_close(&q);
}

static const struct CMUnitTest tests[] = {
    CLAIM("suites that end without a verdict in nine ways are red in exit code, JUnit, TAP, page and summary",
          t_red),
    CLAIM("--undecided makes undecided tests failures, or skipped", t_undecided),
    CLAIM("an agent that reports an infeasible task passes where that is expected, and only there",
          t_infeasible),
    CLAIM("a suite that cannot be read leaves no reports of an earlier run", t_stale),
};

CHECK_MAIN()
