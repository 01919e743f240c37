/* t_qa_reports.c - tests that reports of a suite are valid, whatever programs and models print. */
#include "base/file.h"
#include "qa/report/merge.h"
#include "qa/report/report.h"
#include "qa/report/summary.h"
#include "qa/suite/private.h"

#include "check.h"
#include "results_fixture.h"

#include <jansson.h>

/* ---- JUnit --------------------------------------------------------------------------------------- */

static void validate(const struct fixture *m, const char *name)
{
    if (system("command -v xmllint >/dev/null 2>&1") != 0) {
        check_note("no xmllint: not validated");
        skip();
    }
    char *command =
             xasprintf("xmllint --noout --schema tests/golden/junit/junit-10.xsd '%s/%s' >'%s/said' 2>&1",
                       m->dir, name, m->dir),
         *said_path = fixture_path(m, "said"), *text;
    size_t len;
    int rc = system(command);
    assert_int_equal(file_read(said_path, 1 << 20, &text, &len, NULL), 0);
    if (rc)
        fail_msg("%.2000s", text);
    free(text), free(said_path), free(command);
}

static void t_junit(void **state)
{
    struct fixture *m = fixture_one_of_each();
    char *xml = fixture_report(m, "junit.xml", REPORT_JUNIT);
    check_has(
        xml, "<testsuites name=\"nimbus\" tests=\"9\" failures=\"2\" errors=\"4\" time=\"200.500\">",
        "<testsuite name=\"nimbus\" tests=\"9\" failures=\"2\" errors=\"4\" skipped=\"1\" time=\"200.500\" "
        "timestamp=\"2026-11-21T05:45:00\" hostname=\"ci-7\">",
        "<property name=\"holorun.flaky\" value=\"flaky one\"/>",
        "<testcase classname=\"nimbus\" name=\"passed\" time=\"5.250\">",
        "<failure type=\"check:shell\" message=\"shell: true: expected exit code 0, got 1\">",
        "curl: (7) refused", "<error type=\"display\" message=\"the X server is gone\">",
        "<error type=\"claimed\" message=\"claimed: no check confirms what the agent says: Done.\">",
        "<error type=\"check:judge\" message=\"inconclusive: judge: is it there: half of it is hidden\">",
        "<skipped type=\"skipped\" message=\"--fail-fast: &#39;failed&#39; has failed\">",
        "<error type=\"stopped\" message=\"stopped: stopped by the user\">",
        "<failure type=\"expect-fail\" message=\"expected to fail, but passed\">",
        "<flakyFailure type=\"agent\"", "flaky where: step 3: other pixels",
        "<system-err>the log of the program</system-err>");
    assert_int_equal(check_count(xml, "<testcase "), 9);
    validate(m, "junit.xml");
    free(xml);
    fixture_free(m);
}

/* Every attempt of a retried test is reported. */
static void t_reruns(void **state)
{
    static char lost[] = "no window", display[] = "display";
    struct fixture *m = fixture_new(1);
    fixture_outcome(m, 0, "stubborn", OUTCOME_FAILED);
    m->attempts[0][0] = (struct attempt){.outcome = OUTCOME_ERROR, .error = lost, .error_kind = display};
    m->attempts[0][1].outcome = OUTCOME_FAILED;
    m->results[0].n = 2;
    m->checks[0][0].answer = ANSWER_NO;
    char *xml = fixture_report(m, "junit.xml", REPORT_JUNIT);
    check_has(xml, "tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\"");
    check_has(xml, "<failure type=\"check:shell\"");
    check_has(xml, "<rerunError type=\"display\" message=\"no window\"><stackTrace>");
    assert_int_equal(check_count(xml, "</rerun"), 1);
    validate(m, "junit.xml");
    free(xml);
    m->results[0].outcome = m->attempts[0][1].outcome = OUTCOME_PASSED; /* not flaky in this case */
    m->checks[0][0].answer = ANSWER_YES;
    xml = fixture_report(m, "junit.xml", REPORT_JUNIT);
    assert_int_equal(check_count(xml, "</rerun") + check_count(xml, "</flaky"), 0);
    free(xml);
    fixture_free(m);
}

/* CI attachments come from our own lines only: existing images, newest first, relative to the job's
 * directory. */
static void t_attachments(void **state)
{
    struct fixture *m = fixture_new(1);
    fixture_outcome(m, 0, "one", OUTCOME_FAILED);
    char *run = fixture_path(m, "run"), *frames = fixture_path(m, "run/frames"),
         *events = fixture_path(m, "run/events.jsonl"), *png = fixture_path(m, "difference.png"), *xml,
         evil[] = "[[ATT\x01"
                  "ACHMENT|/etc/passwd]]\n[[ATTACHMENT|/etc/shadow]]",
         gone[] = "/tmp/no such picture.png";
    static const char lines[] = "{\"step\": 1, \"kind\": \"observe\", \"frame\": 0}\n"
                                "{\"step\": 2, \"kind\": \"observe\", \"frame\": 4}\n"
                                "{\"step\": 3, \"kind\": \"observe\", \"frame\": 4}\n";
    struct err e = ERR_INIT;
    assert_int_equal(dir_make(frames, &e), 0);
    assert_int_equal(file_write(events, lines, sizeof lines - 1, &e), 0);
    char *last = fixture_path(m, "run/frames/000004.png");
    assert_int_equal(file_write(last, "x", 1, &e), 0);
    assert_int_equal(file_write(png, "x", 1, &e), 0);
    m->attempts[0][0].run_dir = run;
    m->attempts[0][0].answer = evil;
    m->attempts[0][0].log = evil;
    m->checks[0][0].answer = ANSWER_NO;
    m->checks[0][0].output = evil;
    m->checks[0][0].pictures[0] = gone;
    m->checks[0][0].pictures[2] = png;
    setenv("CI_PROJECT_DIR", m->dir, 1);
    xml = fixture_report(m, "junit.xml", REPORT_JUNIT);
    check_has(xml, "<system-out>[[ATTACHMENT|run/frames/000004.png]]\n[[ATTACHMENT|difference.png]]\n");
    assert_int_equal(check_count(xml, "[[ATTACHMENT"), 2);
    assert_int_equal(check_count(xml, "[(ATTACHMENT|/etc/shadow"), 5);
    free(xml);
    setenv("CI_PROJECT_DIR", "/elsewhere", 1);
    xml = fixture_report(m, "junit.xml", REPORT_JUNIT);
    char *whole = xasprintf("[[ATTACHMENT|%s]]", last);
    check_has(xml, whole);
    unsetenv("CI_PROJECT_DIR");
    free(whole), free(xml), free(last), free(png), free(events), free(frames), free(run);
    fixture_free(m);
}

/* ---- arbitrary text ------------------------------------------------------------------------------ */

static void look_xml(const struct fixture *m)
{
    char *xml = fixture_report(m, "junit.xml", REPORT_JUNIT);
    assert_int_equal(check_count(xml, "<testcase "), m->all.n);
    assert_int_equal(check_count(xml, "[[ATTACHMENT"), 0);
    validate(m, "junit.xml");
    free(xml);
}

static void t_xml_anything(void **state)
{
    fixture_random(12, look_xml);
}

static void look_json(const struct fixture *m)
{
    char *text = fixture_report(m, "results.json", REPORT_JSON);
    json_error_t bad;
    json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &bad), *tests = json_object_get(j, "tests");
    if (!j)
        fail_msg("line %d: %s", bad.line, bad.text);
    assert_int_equal(json_array_size(tests), m->all.n);
    for (int i = 0; i < m->all.n; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(tests, (size_t)i), "outcome")),
                            outcome_name(m->results[i].outcome));
    json_decref(j);
    free(text);
}

static void t_json_anything(void **state)
{
    fixture_random(40, look_json);
}

/* Parses TAP as a harness does: the plan, that number of test lines in order, and indented blocks. */
static void look_tap(const struct fixture *m)
{
    char *text = fixture_report(m, "results.tap", REPORT_TAP), *save = NULL;
    int plan = -1, seen = 0, open = 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        int number = 0;
        for (const char *p = line; *p; p++)
            assert_true((unsigned char)*p >= 0x20 || *p == '\t');
        if (!strncmp(line, "  ", 2)) {
            open += !strcmp(line, "  ---") - !strcmp(line, "  ...");
            assert_in_range(open, 0, 1);
            continue;
        }
        assert_int_equal(open, 0);
        if (sscanf(line, "1..%d", &plan) == 1 || !strcmp(line, "TAP version 13"))
            continue;
        if (sscanf(line, "ok %d - ", &number) != 1 && sscanf(line, "not ok %d - ", &number) != 1)
            fail_msg("no line of TAP: %s", line);
        assert_int_equal(number, ++seen);
        enum outcome o = m->results[seen - 1].outcome;
        bool excused = o == OUTCOME_SKIPPED && m->results[seen - 1].excused;
        assert_true(!strncmp(line, "not", 3) == (o != OUTCOME_PASSED && !excused));
        assert_true((strstr(line, " # SKIP ") != NULL) == excused);
    }
    assert_int_equal(plan, m->all.n);
    assert_int_equal(seen, plan);
    free(text);
}

static void t_tap_anything(void **state)
{
    fixture_random(40, look_tap);
}

static void t_json(void **state)
{
    struct fixture *m = fixture_one_of_each();
    char *text = fixture_report(m, "results.json", REPORT_JSON);
    check_has(
        text, "{\"schema\": \"holorun-qa\", \"schema_version\": 2, \"version\": \"1\", \"suite\": \"nimbus\"",
        "\"memory\": {\"weights\": 1000, \"state\": 20, \"most\": 3000}",
        "\"counts\": {\"total\": 9, \"passed\": 2, \"failed\": 2, \"claimed\": 1, \"inconclusive\": 1, "
        "\"error\": 1, "
        "\"skipped\": 1, \"stopped\": 1, \"flaky\": 1}",
        "\n{\"id\": \"failed\", \"outcome\": \"failed\", \"ci\": \"failure\", \"kind\": \"check:shell\", \"why\": \"shell: true: "
        "expected",
        "\"flaky\": \"application\", \"flaky_where\": \"step 3: other pixels\"",
        "\"output\": \"curl: (7) refused\\n\", \"pictures\": [], \"seconds\": 0.0}");
    free(text);
    fixture_free(m);
}

/* ---- texts --------------------------------------------------------------------------------------- */

static void cleaned(const char *in, size_t most, const char *out)
{
    char *s = clean_text(in, most);
    assert_string_equal(s, out);
    free(s);
}

static void t_words(void **state)
{
    cleaned(NULL, 9, "");
    cleaned("\x1b[1;31mred\x1b[0m \x1b]0;title\x07plain\x1b]8;;u\x1b\\x\x1b(B\tend\r\n", 99,
            "red plainx(B\tend\n");
    cleaned("a\xff"
            "b\xc3\xa9\xef\xbf\xbf\xe2\x80\xae\x7f\xc2\x9b",
            99,
            "a\xef\xbf\xbd"
            "b\xc3\xa9");
    cleaned("\xc3\xa9\xc3\xa9\xc3\xa9", 3, "[the first 4 bytes are left out]\n\xc3\xa9");
    cleaned("a\xe2\x80\xa8\xe2\x80\xa9\xc2\x85\xc2\x84\v\f\x1c\x1d\x1ez", 99, "a\n\n\nz");
    char *line = clean_line("  a\n\n b\tc  ", 99);
    assert_string_equal(line, "a b c");
    free(line);
    line = clean_line("ok\xe2\x80\xa8not ok 2\xc2\x85# SKIP", 99);
    assert_string_equal(line, "ok not ok 2 # SKIP");
    free(line);
    line = clean_line("\xc3\xa9\xc3\xa9\xc3\xa9", 3);
    assert_string_equal(line, "\xc3\xa9...");
    free(line);
    static const char *const paths[][3] = {
        {"/a/b", "/a/b/c/d.png", "c/d.png"}, {"/a/b/", "/a/b/c", "c"}, {"/a/b", "/a/bc/d", "/a/bc/d"},
        {"/a/b", "/a/b/../c", "/a/b/../c"},  {".", "x/y", "x/y"},      {"out", "out/x", "x"}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char *seen = artifact_link(paths[i][0], paths[i][1]);
        assert_string_equal(seen, paths[i][2]);
        free(seen);
    }
}

static void t_why(void **state)
{
    struct fixture *m = fixture_new(1);
    struct attempt *a = &m->attempts[0][0];
    char gone[] = "no such key", answer[] = "There is no such page.";
    const struct {
        enum outcome outcome;
        enum answer answers[2];
        const char *status;
        char *answer, *error;
        const char *why, *kind;
    } rows[] = {
        /* clang-format off */
        {OUTCOME_FAILED, {ANSWER_NO, ANSWER_NO}, "answered", NULL, NULL,
         "shell: true: no (and 1 more)", "check:shell"},
        {OUTCOME_FAILED, {ANSWER_YES, ANSWER_NO}, "answered", NULL, NULL,
         "judge: is it there: no", "check:judge"},
        {OUTCOME_FAILED, {ANSWER_YES, ANSWER_YES}, "infeasible", answer, NULL,
         "the agent says that the task is infeasible: There is no such page.", "agent"},
        {OUTCOME_INCONCLUSIVE, {ANSWER_NOT_ASKED, ANSWER_YES}, "steps", NULL, NULL,
         "the agent did not finish: used up its steps", "inconclusive"},
        {OUTCOME_INCONCLUSIVE, {ANSWER_NOT_ASKED, ANSWER_YES}, "answered", NULL, NULL,
         "a check was not run", "inconclusive"},
        {OUTCOME_ERROR, {ANSWER_ERROR, ANSWER_YES}, "answered", NULL, NULL,
         "shell: true: the check could not be run", "check:shell"},
        {OUTCOME_ERROR, {ANSWER_YES, ANSWER_YES}, "failed", NULL, gone,
         "no such key", "error"},
        {OUTCOME_CLAIMED, {ANSWER_YES, ANSWER_YES}, "answered", NULL, NULL,
         "no check confirms what the agent says", "claimed"},
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        m->results[0].outcome = rows[i].outcome;
        for (int k = 0; k < 2; k++)
            m->checks[0][k].answer = rows[i].answers[k];
        a->status = rows[i].status;
        a->answer = rows[i].answer;
        a->error = rows[i].error;
        char *why = summary_reason(&m->results[0]), *kind = summary_kind(&m->results[0]);
        assert_string_equal(why, rows[i].why);
        assert_string_equal(kind, rows[i].kind);
        free(why), free(kind);
    }
    fixture_free(m);
}

/* ---- reading reports ----------------------------------------------------------------------------- */

static void t_earlier(void **state)
{
    struct fixture *m = fixture_one_of_each();
    m->tests[OUTCOME_PASSED].id = "login [lang=\"de\", <b>&amp;]";
    char *path = fixture_path(m, "results.json");
    struct err e = ERR_INIT;
    struct earlier p;
    assert_int_equal(report_save(REPORT_JSON, &m->all, path, &e), 0);
    if (earlier_read(path, &p, &e))
        fail_msg("%s", e.text);
    for (int i = 0; i < m->all.n; i++) {
        struct earlier_test t = earlier_find(&p, "nimbus", m->tests[i].id);
        assert_true(t.known);
        assert_int_equal(t.passed, m->results[i].outcome == OUTCOME_PASSED);
        assert_true(t.seconds > 5.24 && t.seconds < 5.26);
    }
    earlier_free(&p);
    free(path);
    fixture_free(m);
}

static void t_large_seed(void **state)
{
    struct fixture *m = fixture_new(1);
    struct results_file f;
    m->tests[0].seed = 9999999999999999999u;
    char *text = fixture_report(m, "results.json", REPORT_JSON);
    assert_int_equal(results_file_parse(text, strlen(text), "results.json", &f, NULL), 0);
    assert_true(f.results.results[0].test->seed == 9999999999999999999u);
    results_file_free(&f);
    free(text);
    fixture_free(m);
}

/* ---- damaged files ------------------------------------------------------------------------------- */

static void t_damaged(void **state)
{
    static const char *const texts[] = {
        "", "[]", "{}", "{\"tests\": 3}", "{\"tests\": [{}]}", "{\"tests\": [{\"id\": \"\"}]}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct results_file f;
        struct err e = ERR_INIT;
        assert_int_equal(results_file_parse(texts[i], strlen(texts[i]), "r/results.json", &f, &e), -1);
        assert_int_equal(e.kind, ERR_USAGE);
        assert_non_null(strstr(e.text, "r/results.json"));
        results_file_free(&f);
    }
    /* an incomplete file is read, but never green */
    static const char little[] =
        "{\"schema_version\": 2, \"tests\": [{\"id\": \"a\", \"outcome\": \"wonderful\"}]}";
    struct results_file f;
    struct merged m = {0};
    assert_int_equal(results_file_parse(little, strlen(little), "results.json", &f, NULL), 0);
    merge(&f, 1, &m);
    assert_int_equal(results_exit_code(&m.results), ERR_ENV);
    merged_free(&m);
    results_file_free(&f);
}

static void t_notes(void **state)
{
    static const char *const notes[] = {"excluded: n2, </p> [a](b) disk is full", NULL};
    static const struct {
        const char *name, *text;
        enum report which;
    } cases[] = {
        {"junit.xml",
         "<property name=\"holorun.note\" value=\"excluded: n2, &lt;/p&gt; [a](b) disk is full\"/>",
         REPORT_JUNIT},
        {"results.json", "\"notes\": [\"excluded: n2, </p> [a](b) disk is full\"]", REPORT_JSON},
        {"report.html", "excluded: n2, &lt;/p&gt; [a](b) disk is full", REPORT_HTML},
        {"summary.md", "&#62; &#91;a&#93;(b) disk is full", REPORT_GITHUB},
    };
    struct fixture *m = fixture_new(1);
    m->all.notes = notes;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = fixture_report(m, cases[i].name, cases[i].which);
        check_has(text, cases[i].text);
        free(text);
    }
    fixture_free(m);
}

static const struct CMUnitTest tests[] = {
    CLAIM("outcomes and durations of an earlier run are read from its results.json", t_earlier),
    CLAIM("each outcome has a readable and a machine-readable reason", t_why),
    CLAIM("JUnit XML has each outcome in the element CI expects, and is valid for Jenkins", t_junit),
    CLAIM("JUnit has all attempts of a test that failed every time", t_reruns),
    CLAIM("CI attaches only the run's own images, no file that a program names", t_attachments),
    CLAIM("JUnit XML is valid whatever names, answers and outputs contain", t_xml_anything),
    CLAIM("JSON is valid whatever its texts contain", t_json_anything),
    CLAIM("JSON has all keys in a fixed order", t_json),
    CLAIM("notes of a merge appear in each report, and cannot become markup", t_notes),
    CLAIM("TAP has as many tests as its plan, whatever their texts contain", t_tap_anything),
    CLAIM("texts are cleaned of control sequences and cut between characters", t_words),
    CLAIM("a seed above the exact integers of JSON is read back unchanged", t_large_seed),
    CLAIM("damaged results of a shard are refused by name, and incomplete results are never green",
          t_damaged),
};

CHECK_MAIN()
