/* t_reports.c - what people and CI read of a suite: valid for whoever reads it, whatever programs and models have said. */
#include "base/buf.h"
#include "base/file.h"
#include "base/image.h"
#include "qa/live.h"
#include "qa/report.h"
#include "qa/words.h"

#include "check.h"

#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- names ---------------------------------------------------------------------------------------------------------- */

#define STANDS_IN __attribute__((weak)) /* for the module's own, which is linked when it is there */

STANDS_IN const char *check_kind_name(enum check_kind k)
{
    static const char *const names[] = {"shell", "answer", "window", "file", "process",
                                        "port",  "region", "text",   "judge"};
    return names[k];
}

STANDS_IN bool check_by_model(enum check_kind k)
{
    return k == CHECK_TEXT || k == CHECK_JUDGE;
}

/* ---- a suite's results, as long as they are looked at --------------------------------------------------------------- */

enum { MAX_TESTS = 64 };

struct made {
    char dir[64];
    struct suite suite;
    struct test tests[MAX_TESTS];
    struct attempt attempts[MAX_TESTS][2];
    struct check_result checks[MAX_TESTS][2];
    struct result results[MAX_TESTS];
    struct results all;
};

static struct made *made_new(int n)
{
    struct made *m = calloc(1, sizeof *m);
    snprintf(m->dir, sizeof m->dir, "/tmp/holorun-t-reports-XXXXXX");
    assert_non_null(mkdtemp(m->dir));
    m->suite =
        (struct suite){.name = "nimbus", .path = "qa/nimbus.yaml", .dir = "qa", .tests = m->tests, .n = n};
    m->all = (struct results){.suite = &m->suite,
                              .results = m->results,
                              .n = n,
                              .jobs = 4,
                              .started = "2026-11-21T05:45:00Z",
                              .seconds = 200.5,
                              .dir = m->dir,
                              .model = "pocket",
                              .dialect = "h",
                              .version = "1",
                              .host = "ci-7",
                              .memory_weights = 1000,
                              .memory_state = 20,
                              .memory_most = 3000};
    for (int i = 0; i < n; i++) {
        struct test *t = &m->tests[i];
        *t = (struct test){.id = "t", .suite = "nimbus", .task = "do it", .line = 3 + i, .n_checks = 2};
        t->checks[0] =
            (struct check){.kind = CHECK_SHELL, .name = "shell: true", .text = "true", .line = 4 + i};
        t->checks[1] =
            (struct check){.kind = CHECK_JUDGE, .name = "judge: is it there", .text = "is it there"};
        for (int k = 0; k < 2; k++)
            m->checks[i][k] = (struct check_result){.check = &t->checks[k], .answer = ANSWER_YES, .ms = 12};
        for (int k = 0; k < 2; k++)
            m->attempts[i][k] = (struct attempt){.outcome = OUTCOME_PASSED,
                                                 .status = "answered",
                                                 .steps = 3,
                                                 .seconds = 4.5,
                                                 .checks = m->checks[i],
                                                 .n_checks = 2};
        m->results[i] = (struct result){
            .test = t, .attempts = m->attempts[i], .n = 1, .worker = i % 4, .began = i, .seconds = 5.25};
    }
    return m;
}

static void made_free(struct made *m)
{
    char *command = xasprintf("rm -rf '%s'", m->dir);
    assert_int_equal(system(command), 0);
    free(command);
    free(m);
}

static char *place(const struct made *m, const char *name)
{
    return xasprintf("%s/%s", m->dir, name);
}

static void set_outcome(struct made *m, int i, const char *id, enum outcome o)
{
    m->tests[i].id = id;
    m->results[i].outcome = o;
    m->attempts[i][0].outcome = o;
}

static char failing_detail[] = "expected exit code 0, got 1", failing_output[] = "curl: (7) refused\n",
            unsure[] = "half of it is hidden", lost[] = "the X server is gone", display[] = "display",
            said[] = "Done.", where[] = "step 3: other pixels", hung[] = "the log of the program";

/* One of each. */
static struct made *one_of_each(void)
{
    struct made *m = made_new(OUTCOMES + 2);
    for (int o = 0; o < OUTCOMES; o++)
        set_outcome(m, o, outcome_name((enum outcome)o), (enum outcome)o);
    m->checks[OUTCOME_FAILED][0] = (struct check_result){.check = &m->tests[OUTCOME_FAILED].checks[0],
                                                         .answer = ANSWER_NO,
                                                         .detail = failing_detail,
                                                         .output = failing_output};
    m->attempts[OUTCOME_FAILED][0].log = hung;
    m->attempts[OUTCOME_CLAIMED][0].answer = said;
    m->checks[OUTCOME_INCONCLUSIVE][1].answer = ANSWER_UNKNOWN;
    m->checks[OUTCOME_INCONCLUSIVE][1].detail = unsure;
    m->attempts[OUTCOME_ERROR][0].error = lost;
    m->attempts[OUTCOME_ERROR][0].error_kind = display;
    m->results[OUTCOME_SKIPPED].n = 0;
    m->results[OUTCOME_SKIPPED].reason = "--fail-fast: 'failed' has failed";
    set_outcome(m, OUTCOMES, "flaky one", OUTCOME_PASSED);
    m->results[OUTCOMES].n = 2;
    m->results[OUTCOMES].flaky = FLAKY_APPLICATION;
    m->results[OUTCOMES].flaky_where = where;
    m->attempts[OUTCOMES][0].outcome = OUTCOME_FAILED;
    m->attempts[OUTCOMES][0].n_checks = 0;
    set_outcome(m, OUTCOMES + 1, "meant to fail", OUTCOME_FAILED);
    m->tests[OUTCOMES + 1].expect_fail = true;
    return m;
}

/* Text of a file that a report has written. */
static char *written(const struct made *m, const char *name,
                     int (*write)(const struct results *r, const char *path, struct err *e))
{
    char *path = place(m, name), *text;
    size_t len;
    struct err e = ERR_INIT;
    if (write(&m->all, path, &e) || file_read(path, 64 << 20, &text, &len, &e))
        fail_msg("%s", e.text);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(strlen(text), len); /* no NUL inside */
    free(path);
    return text;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

static void has(const char *text, const char *what)
{
    if (!strstr(text, what))
        fail_msg("it lacks: %s\nin: %.4000s", what, text);
}

/* ---- JUnit ---------------------------------------------------------------------------------------------------------- */

static void validate(const struct made *m, const char *name)
{
    if (system("command -v xmllint >/dev/null 2>&1") != 0) {
        check_note("no xmllint: not validated");
        skip();
    }
    char *command =
             xasprintf("xmllint --noout --schema tests/golden/junit/junit-10.xsd '%s/%s' >'%s/said' 2>&1",
                       m->dir, name, m->dir),
         *said_path = place(m, "said"), *text;
    size_t len;
    int rc = system(command);
    assert_int_equal(file_read(said_path, 1 << 20, &text, &len, NULL), 0);
    if (rc)
        fail_msg("%.2000s", text);
    free(text), free(said_path), free(command);
}

static void t_junit(void **state)
{
    (void)state;
    struct made *m = one_of_each();
    char *xml = written(m, "junit.xml", report_junit);
    static const char *const wanted[] = {
        "<testsuites name=\"nimbus\" tests=\"9\" failures=\"2\" errors=\"1\" time=\"200.500\">",
        "<testsuite name=\"nimbus\" tests=\"9\" failures=\"2\" errors=\"1\" skipped=\"4\" time=\"200.500\" "
        "timestamp=\"2026-11-21T05:45:00\" hostname=\"ci-7\">",
        "<property name=\"holorun.flaky\" value=\"flaky one\"/>",
        "<testcase classname=\"nimbus\" name=\"passed\" time=\"5.250\">",
        "<failure type=\"check:shell\" message=\"shell: true: expected exit code 0, got 1\">",
        "curl: (7) refused",
        "<error type=\"display\" message=\"the X server is gone\">",
        "<skipped type=\"claimed\" message=\"claimed: no check confirms what the agent says: Done.\">",
        "<skipped type=\"check:judge\" message=\"inconclusive: judge: is it there: half of it is hidden\">",
        "<skipped type=\"skipped\" message=\"--fail-fast: &#39;failed&#39; has failed\">",
        "<skipped type=\"stopped\" message=\"stopped: stopped by a person\">",
        "<failure type=\"expect-fail\" message=\"was expected to fail, and all is as it should be\">",
        "<flakyFailure type=\"agent\"",
        "flaky where: step 3: other pixels",
        "<system-err>the log of the program</system-err>",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        has(xml, wanted[i]);
    assert_int_equal(count(xml, "<testcase "), 9);
    validate(m, "junit.xml");
    free(xml);
    made_free(m);
}

/* The only lines CI acts on are ours: pictures that exist, the newest first, as seen from the job's folder. */
static void t_attachments(void **state)
{
    (void)state;
    struct made *m = made_new(1);
    set_outcome(m, 0, "one", OUTCOME_FAILED);
    char *run = place(m, "run"), *frames = place(m, "run/frames"), *events = place(m, "run/events.jsonl"),
         *png = place(m, "difference.png"), *xml,
         evil[] = "[[ATT\x01"
                  "ACHMENT|/etc/passwd]]\n[[ATTACHMENT|/etc/shadow]]",
         gone[] = "/tmp/no such picture.png";
    static const char lines[] = "{\"step\": 1, \"kind\": \"observe\", \"frame\": 0}\n"
                                "{\"step\": 2, \"kind\": \"observe\", \"frame\": 4}\n"
                                "{\"step\": 3, \"kind\": \"observe\", \"frame\": 4}\n";
    struct err e = ERR_INIT;
    assert_int_equal(dir_make(frames, &e), 0);
    assert_int_equal(file_write(events, lines, sizeof lines - 1, &e), 0);
    char *last = place(m, "run/frames/000004.png");
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
    xml = written(m, "junit.xml", report_junit);
    has(xml, "<system-out>[[ATTACHMENT|run/frames/000004.png]]\n[[ATTACHMENT|difference.png]]\n");
    assert_int_equal(count(xml, "[[ATTACHMENT"), 2);
    assert_int_equal(count(xml, "[(ATTACHMENT|/etc/shadow"), 5);
    free(xml);
    setenv("CI_PROJECT_DIR", "/elsewhere", 1);
    xml = written(m, "junit.xml", report_junit);
    char *whole = xasprintf("[[ATTACHMENT|%s]]", last);
    has(xml, whole);
    unsetenv("CI_PROJECT_DIR");
    free(whole), free(xml), free(last), free(png), free(events), free(frames), free(run);
    made_free(m);
}

/* ---- anything may stand in a text ----------------------------------------------------------------------------------- */

/* Bytes of every kind, with much of what means something to somebody. */
static char *random_text(uint64_t *seed, char *pool[], int *used)
{
    static const char *const bits[] = {
        "]]>",          "<",      "&",         "\"",   "'",    "\x1b[31m", "\x1b]0;x\a", "[[ATTACHMENT|/x]]",
        "\n",           "# TODO", "\\",        "...",  "---",  "\r",       "\xc3",       "\xef\xbf\xbf",
        "\xed\xa0\x80", "<!--",   "<![CDATA[", "1..9", "ok 1", "|",        "`",          "\xf0\x9f\x98\x80"};
    struct buf b;
    buf_init(&b, 4096);
    int n = (int)(check_random(seed) * 30);
    for (int i = 0; i < n; i++) {
        if (check_random(seed) < .5)
            buf_puts(&b, bits[(size_t)(check_random(seed) * (double)(sizeof bits / sizeof *bits))]);
        else
            buf_putc(&b, (char)(1 + (int)(check_random(seed) * 255)));
    }
    pool[*used] = buf_take(&b);
    buf_free(&b);
    return pool[(*used)++];
}

static struct made *random_results(uint64_t *seed, char *pool[], int *used)
{
    struct made *m = made_new(1 + (int)(check_random(seed) * 20));
#define TEXT random_text(seed, pool, used)
    m->suite.name = TEXT;
    m->all.host = TEXT;
    m->all.model = TEXT;
    for (int i = 0; i < m->all.n; i++) {
        set_outcome(m, i, TEXT, (enum outcome)(int)(check_random(seed) * OUTCOMES));
        struct attempt *a = m->attempts[i];
        m->tests[i].suite = m->suite.name;
        m->tests[i].task = TEXT;
        m->tests[i].checks[0].name = TEXT;
        m->results[i].n = (int)(check_random(seed) * 3);
        m->results[i].flaky = m->results[i].n > 1 ? (enum flaky)(int)(check_random(seed) * 4) : FLAKY_NOT;
        m->results[i].flaky_where = TEXT;
        m->results[i].reason = TEXT;
        a[0].answer = TEXT;
        a[0].error = a[1].error = TEXT;
        a[0].error_kind = TEXT;
        a[1].log = TEXT;
        a[0].run_dir = TEXT;
        for (int k = 0; k < 2; k++) {
            m->checks[i][k].answer = (enum answer)(int)(check_random(seed) * 5);
            m->checks[i][k].detail = TEXT;
            m->checks[i][k].output = TEXT;
        }
    }
#undef TEXT
    return m;
}

enum { POOL = 64 * 24 };

static void for_random_results(int rounds, void (*look)(const struct made *m))
{
    static char *pool[POOL];
    uint64_t seed = check_seed();
    for (int round = 0; round < rounds; round++) {
        int used = 0;
        struct made *m = random_results(&seed, pool, &used);
        assert_true(used < POOL);
        look(m);
        made_free(m);
        while (used)
            free(pool[--used]);
    }
}

static void look_xml(const struct made *m)
{
    char *xml = written(m, "junit.xml", report_junit);
    assert_int_equal(count(xml, "<testcase "), m->all.n);
    assert_int_equal(count(xml, "[[ATTACHMENT"), 0);
    validate(m, "junit.xml");
    free(xml);
}

static void t_xml_anything(void **state)
{
    (void)state;
    for_random_results(12, look_xml);
}

static void look_json(const struct made *m)
{
    char *text = written(m, "results.json", report_json);
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
    (void)state;
    for_random_results(40, look_json);
}

/* As a harness reads it: the plan, as many test lines in order, and nothing else but blocks of two spaces. */
static void look_tap(const struct made *m)
{
    char *text = written(m, "results.tap", report_tap), *save = NULL;
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
        if (sscanf(line, "1..%d", &plan) == 1 || !strcmp(line, "TAP version 14"))
            continue;
        if (sscanf(line, "ok %d - ", &number) != 1 && sscanf(line, "not ok %d - ", &number) != 1)
            fail_msg("no line of TAP: %s", line);
        assert_int_equal(number, ++seen);
        enum outcome o = m->results[seen - 1].outcome;
        assert_true(!strncmp(line, "not", 3) == (o == OUTCOME_FAILED || o == OUTCOME_ERROR ||
                                                 o == OUTCOME_CLAIMED || o == OUTCOME_INCONCLUSIVE));
        assert_true((strstr(line, " # TODO ") != NULL) ==
                    (o == OUTCOME_CLAIMED || o == OUTCOME_INCONCLUSIVE));
        assert_true((strstr(line, " # SKIP ") != NULL) == (o == OUTCOME_SKIPPED || o == OUTCOME_STOPPED));
    }
    assert_int_equal(plan, m->all.n);
    assert_int_equal(seen, plan);
    free(text);
}

static void t_tap_anything(void **state)
{
    (void)state;
    for_random_results(40, look_tap);
}

static void t_json(void **state)
{
    (void)state;
    struct made *m = one_of_each();
    char *text = written(m, "results.json", report_json);
    static const char *const wanted[] = {
        "{\"schema\": \"holorun-qa\", \"schema_version\": 1, \"version\": \"1\", \"suite\": \"nimbus\"",
        "\"memory\": {\"weights\": 1000, \"state\": 20, \"most\": 3000}",
        "\"counts\": {\"total\": 9, \"passed\": 2, \"failed\": 2, \"claimed\": 1, \"inconclusive\": 1, "
        "\"error\": 1, "
        "\"skipped\": 1, \"stopped\": 1, \"flaky\": 1}",
        "\n{\"id\": \"failed\", \"outcome\": \"failed\", \"kind\": \"check:shell\", \"why\": \"shell: true: "
        "expected",
        "\"flaky\": \"application\", \"flaky_where\": \"step 3: other pixels\"",
        "\"output\": \"curl: (7) refused\\n\", \"pictures\": [], \"seconds\": 0.000}",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        has(text, wanted[i]);
    free(text);
    made_free(m);
}

/* ---- words ---------------------------------------------------------------------------------------------------------- */

static void cleaned(const char *in, size_t most, const char *out)
{
    char *s = words_clean(in, most);
    assert_string_equal(s, out);
    free(s);
}

static void t_words(void **state)
{
    (void)state;
    cleaned(NULL, 9, "");
    cleaned("\x1b[1;31mred\x1b[0m \x1b]0;title\x07plain\x1b]8;;u\x1b\\x\x1b(B\tend\r\n", 99,
            "red plainx(B\tend\n");
    cleaned("a\xff"
            "b\xc3\xa9\xef\xbf\xbf\xe2\x80\xae\x7f\xc2\x9b",
            99,
            "a\xef\xbf\xbd"
            "b\xc3\xa9");
    cleaned("\xc3\xa9\xc3\xa9\xc3\xa9", 3, "[the first 4 bytes are left out]\n\xc3\xa9");
    char *line = words_line("  a\n\n b\tc  ", 99);
    assert_string_equal(line, "a b c");
    free(line);
    line = words_line("\xc3\xa9\xc3\xa9\xc3\xa9", 3);
    assert_string_equal(line, "\xc3\xa9...");
    free(line);
    static const char *const paths[][3] = {
        {"/a/b", "/a/b/c/d.png", "c/d.png"}, {"/a/b/", "/a/b/c", "c"}, {"/a/b", "/a/bc/d", "/a/bc/d"},
        {"/a/b", "/a/b/../c", "/a/b/../c"},  {".", "x/y", "x/y"},      {"out", "out/x", "x"}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char *seen = words_path(paths[i][0], paths[i][1]);
        assert_string_equal(seen, paths[i][2]);
        free(seen);
    }
}

/* ---- live ----------------------------------------------------------------------------------------------------------- */

/* What `show` writes to stderr, which is a file meanwhile. */
static char *shown(void (*show)(struct made *m), struct made *m)
{
    char *path = place(m, "stderr"), *text;
    size_t len;
    fflush(stderr);
    int old = dup(2), fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(old >= 0 && fd >= 0 && dup2(fd, 2) == 2);
    show(m);
    fflush(stderr);
    assert_true(dup2(old, 2) == 2);
    close(old), close(fd);
    assert_int_equal(file_read(path, 8 << 20, &text, &len, NULL), 0);
    free(path);
    return text;
}

static struct live *shared_live;

static void *end_some(void *arg)
{
    struct made *m = arg;
    for (int i = 0; i < m->all.n; i++) {
        live_start(shared_live, &m->tests[i], m->results[i].worker);
        live_tick(shared_live);
        live_end(shared_live, &m->results[i]);
    }
    return NULL;
}

static void show_crowd(struct made *m)
{
    pthread_t threads[8];
    shared_live = live_begin(8 * m->all.n, 4, false);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, end_some, m), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    live_summary(shared_live, &m->all, "qa/report.html");
    live_free(shared_live);
}

static void t_live(void **state)
{
    (void)state;
    struct made *m = one_of_each();
    m->tests[0].id = "evil\x1b[2J\x9b\xe2\x80\xae\nid";
    char *text = shown(show_crowd, m);
    assert_int_equal(count(text, "[72/72] "), 1);
    assert_int_equal(count(text, "passed           5.2 s  evil\xef\xbf\xbd id\n"), 8);
    assert_int_equal(
        count(text, "failed           5.2 s  failed - shell: true: expected exit code 0, got 1\n"), 8);
    for (const char *p = text; *p; p++)
        assert_true((unsigned char)*p >= 0x20 || *p == '\n');
    has(text, "\nclaimed      claimed - no check confirms what the agent says: Done.\n");
    has(text, "\nflaky        flaky one - flaky, passed on attempt 2: ");
    has(text, "\n2 passed (1 flaky), 2 failed, 1 claimed, 1 inconclusive, 1 error, 1 skipped, 1 stopped in 3 "
              "min 21 s\n"
              "report       qa/report.html\n");
    free(text);
    made_free(m);
}

static const struct CMUnitTest tests[] = {
    CLAIM("JUnit XML has each outcome in the element CI expects, and is valid for Jenkins", t_junit),
    CLAIM("what CI attaches are the run's own pictures, and no file a program has named", t_attachments),
    CLAIM("JUnit XML is valid whatever stands in names, answers and outputs", t_xml_anything),
    CLAIM("JSON can be read whatever stands in it", t_json_anything),
    CLAIM("JSON has ids, outcomes and all else in a fixed order", t_json),
    CLAIM("TAP has as many tests as its plan says, whatever stands in them", t_tap_anything),
    CLAIM("texts lose what steers terminals and readers, and are cut between characters", t_words),
    CLAIM("lines of tests that end at once stay whole, and no id steers the terminal", t_live),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
