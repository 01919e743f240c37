/* t_suite_select.c - tests of specs, the selection of tests, and lists of them. */
#include "check.h"

#include "base/file.h"
#include "qa/report/report.h"
#include "suite_fixture.h"

#include <dirent.h>
#include <jansson.h>
#include <unistd.h>

/* ---- specs --------------------------------------------------------------------------------------- */

static struct suite *suite_at(const char *text)
{
    struct err e = ERR_INIT;
    struct suite *s = suite_read(suite_fixture_file("s.yaml", text), &e);
    if (!s)
        fail_msg("%s", e.text);
    return s;
}

static void t_spec(void **state)
{
    struct err e = ERR_INIT;
    char *text;
    size_t len;
    if (file_read("tests/cases/suite/auth-gating.md", 1 << 16, &text, &len, &e))
        fail_msg("%s", e.text);
    suite_fixture_file("auth.md", text);
    free(text);
    struct suite *s = suite_at(
        "suite: { vars: { port: 5173 }, timeout_s: 9, display: xvfb:640x480, checks: [{ kind: port, port: 1 "
        "}] }\n"
        "tests:\n"
        "  - spec: auth.md\n"
        "    start: browse {url}\n"
        "  - { id: other, spec: auth.md, timeout_s: 3, display: xvfb:800x600, vars: { url: http://there },\n"
        "      secrets: [USER=file:/u] }\n");
    const struct test *t = test_of(s, "auth-gating");
    assert_true(t->timeout == 240);
    assert_string_equal(t->display, "xvfb:1024x768");
    assert_string_equal(t->start, "browse http://localhost:5173");
    same_list(t->secrets, LIST("USER=env:USER", "PASSWORD=env:PASSWORD"));
    assert_true(has(t->env, "HOLORUN_VAR_URL=http://localhost:5173"));
    assert_int_equal(t->n_checks, 2);
    assert_int_equal(t->checks[0].kind, CHECK_PORT);
    assert_int_equal(t->checks[1].kind, CHECK_ANSWER);
    assert_true(!strchr(t->task, '\r') && !strstr(t->task, "## Task") && !strstr(t->task, "timeout_s"));
    const char *p = after(t->task, "# Who is logged out sees no dashboard\n\nThe program keeps");
    p = after(p, "Address: http://localhost:5173\n");
    p = after(p, "Before you begin:\nThe browser shows");
    p = after(p, "Task:\n1. Open http://localhost:5173/dashboard.\n2. Log in as {{USER}} with the password "
                 "{{PASSWORD}}.\n\n"
                 "```sh\n## not a section\n```\n");
    p = after(p, "Expected result:\nThe dashboard");
    p = after(p, "How to decide:\n- FAIL if the dashboard");
    p = after(p, "- PASS only if");
    p = after(p, "## Notes\nAwk says {print}.\n");
    after(p, "\nVERDICT: PASSED\nVERDICT: FAILED\n");
    t = test_of(s, "other");
    assert_true(t->timeout == 3);
    assert_string_equal(t->display, "xvfb:800x600");
    same_list(t->secrets, LIST("USER=file:/u", "PASSWORD=env:PASSWORD"));
    after(t->task, "Open http://there/dashboard");
    suite_free(s);
}

static void t_wrong_specs(void **state)
{
    static const struct {
        const char *text, *says;
    } specs[] = {
        {"## Setup\nx\n", "x.md: expected a section \"## Task\" that says what to do (the spec of "},
        {"---\nid: a\n---\n## Task\n\n", "x.md: expected a section \"## Task\""},
        {"---\nid: a\n## Task\nx\n", "x.md:1: expected a second line of ---"},
        {"---\nid: a\nurls: b\n---\n## Task\nx\n",
         "x.md:3: key 'urls': no such key, did you mean 'url'?; the front matter of a spec has id, "},
        {"---\n- a\n---\n## Task\nx\n", "x.md:2: expected keys between the two lines of ---"},
        {"---\nid: a\ntimeout_s: soon\n---\n## Task\nx\n",
         "x.md:3: key 'timeout_s': expected a number from 0.1"},
        {"---\nviewport: 3\n---\n## Task\nx\n",
         "x.md:2: key 'viewport': expected { width: 1280, height: 720 }"},
        {"---\nviewport: { width: 3, height: 100 }\n---\n## Task\nx\n",
         "x.md:2: key 'width': expected a whole number from 64"},
        {"---\nviewport:\n  width: 300\n  height: 100\n  hight: 1\n---\n## Task\nx\n",
         "x.md:5: key 'hight': no such key"},
        {"---\ncredentials: [hunter2]\n---\n## Task\nx\n",
         "x.md:2: key 'credentials': expected names of secrets in capital"},
        {"---\ncredentials: { A: hunter2 }\n---\n## Task\nx\n",
         "x.md:2: key 'credentials': expected names of secrets"},
        {"---\nid: a\n\tb: c\n---\n## Task\nx\n", "x.md:3: not YAML"},
        {"## Task\n\xff\n", "x.md: not valid UTF-8"},
        {"## Task\nx\n", "s.yaml:2: expected the key id, in this test or in its spec"},
        {"---\nid: a b\n---\n## Task\nx\n", "s.yaml:2: expected an id of at most 100 letters"},
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct err e = ERR_INIT;
        char path[200];
        suite_fixture_file("x.md", specs[i].text);
        snprintf(path, sizeof path, "%s", suite_fixture_file("s.yaml", "tests:\n  - spec: x.md\n"));
        struct suite *s = suite_read(path, &e);
        if (s || e.kind != ERR_USAGE || !strstr(e.text, specs[i].says) || strstr(e.text, "hunter2"))
            fail_msg("instead of '%s': '%s'", specs[i].says, s ? "accepted" : e.text);
    }
    struct err e = ERR_INIT;
    assert_null(suite_read(suite_fixture_file("s.yaml", "tests:\n  - spec: none.md\n"), &e));
    after(after(e.text, "none.md': No such file or directory (the spec of "), "s.yaml:2)");
    assert_null(suite_read(suite_fixture_file("s.yaml", "tests:\n  - spec: /dev/null\n"), &e));
    after(e.text, "'/dev/null' is not a regular file (the spec of ");
    assert_null(suite_read("/no/such/suite.yaml", &e));
    assert_string_equal(e.text, "cannot open '/no/such/suite.yaml': No such file or directory");
    assert_int_equal(e.kind, ERR_USAGE);
}

/* ---- selection ----------------------------------------------------------------------------------- */

static const char many[] = "suite: { name: n }\n"
                           "tests:\n"
                           "  - { id: login, task: t, tags: [auth, fast] }\n"
                           "  - { id: logout, task: t, tags: [auth] }\n"
                           "  - { id: search, task: t, tags: [slow] }\n"
                           "  - { id: page, task: t, matrix: { n: 1..3 } }\n";

/* Returns the ids of the selected tests, each followed by a space, or the error. */
static const char *chosen(const char *text, struct suite_selection c)
{
    static char ids[1000];
    struct err e = ERR_INIT;
    struct suite *s = suite_of(text);
    int n = suite_select(s, &c, &e), found = 0;
    *ids = 0;
    for (int i = 0; i < s->n; i++) {
        if (!s->tests[i].selected)
            continue;
        found++;
        strncat(strncat(ids, s->tests[i].id, 120), " ", 2);
    }
    suite_free(s);
    assert_true(n < 0 || n == found);
    return n < 0 ? strcpy(ids, e.text) : ids;
}

static void t_only(void **state)
{
    static const struct {
        const char *only[4], *ids;
    } cases[] = {
        {{"login"}, "login "},
        {{"log*"}, "login logout "},
        {{"page-?"}, "page-1 page-2 page-3 "},
        {{"tag:auth"}, "login logout "},
        {{"tag:*st", "page-2"}, "login page-2 "},
        {{NULL}, "login logout search page-1 page-2 page-3 "},
        {{"login", "serch"},
         "s.yaml: no test has the id 'serch'; did you mean 'search'?; holorun qa --list shows all"},
        {{"tag:aut"}, "s.yaml: no test has the tag 'aut'; did you mean 'auth'?; holorun qa --list shows all"},
        {{"[l]ogin"}, "s.yaml: no test has the id '[l]ogin'"},
        {{""}, "s.yaml: no test has the id ''"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *ids = chosen(many, (struct suite_selection){.only = cases[i].only});
        if (strncmp(ids, cases[i].ids, strlen(cases[i].ids)) != 0)
            fail_msg("instead of '%s': '%s'", cases[i].ids, ids);
    }
}

static const char *report(const char *text)
{
    return suite_fixture_file("report", text);
}

static void t_rerun(void **state)
{
    static const char json[] =
        " {\"suite\": \"n\", \"tests\": [{\"id\": \"login\", \"outcome\": \"claimed\"},\n"
        "{\"id\": \"search\", \"outcome\": \"passed\"}, {\"id\": \"page-1\", \"outcome\": \"skipped\"},\n"
        "{\"id\": \"page-2\", \"outcome\": \"failed\"}, {\"id\": \"page-2\", \"outcome\": \"passed\"},\n"
        "{\"id\": \"page-3\", \"outcome\": \"error\"}]}";
    static const char passed[] = "{\"tests\": [{\"id\": \"login\", \"outcome\": \"passed\"}]}";
    static const char other[] =
        "{\"suite\": \"o\", \"tests\": [{\"id\": \"login\", \"outcome\": \"failed\"}]}";
    struct suite_selection c = {.rerun_failed = report(json)};
    assert_string_equal(chosen(many, c), "login page-1 page-3 ");
    c.only = LIST("page-*", "logout");
    assert_string_equal(chosen(many, c), "page-1 page-3 ");
    assert_string_equal(chosen(many, (struct suite_selection){.rerun_failed = report(passed)}), "");
    after(chosen(many, (struct suite_selection){.rerun_failed = report("{\"tests\": []}")}),
          "has none of the tests of s.yaml (suite 'n')");
    after(chosen(many, (struct suite_selection){.rerun_failed = report(other)}), "has none of the tests");
}

/* The results.json of a run selects the tests that did not pass. */
static void t_round_trip(void **state)
{
    struct suite *s = suite_of(many);
    struct result results[6] = {{0}};
    struct results all = {
        .suite = s, .results = results, .n = 6, .jobs = 1, .started = "2026-11-21T05:45:00Z"};
    static const enum outcome outcomes[] = {OUTCOME_PASSED, OUTCOME_FAILED,       OUTCOME_CLAIMED,
                                            OUTCOME_ERROR,  OUTCOME_INCONCLUSIVE, OUTCOME_SKIPPED};
    for (int i = 0; i < 6; i++)
        results[i] = (struct result){.test = &s->tests[i], .outcome = outcomes[i], .seconds = i};
    char path[200];
    struct err e = ERR_INIT;
    snprintf(path, sizeof path, "%s", report(""));
    if (report_save(REPORT_JSON, &all, path, &e))
        fail_msg("%s", e.text);
    assert_string_equal(chosen(many, (struct suite_selection){.rerun_failed = path}),
                        "logout search page-1 page-2 page-3 ");
    /* 5 + 2 + 1 and 4 + 3 + 0 */
    assert_string_equal(chosen(many, (struct suite_selection){.shard = "1/2", .shard_times = path}),
                        "logout search page-3 ");
    suite_free(s);
}

static void t_wrong_reports(void **state)
{
    static const struct {
        const char *text, *says;
    } reports[] = {
        {"", "report:1: expected the results.json of an earlier run: "},
        {"<testsuites/>", "report:1: expected the results.json of an earlier run: "},
        {"[]", "report' is not a results.json"},
        {"{\"tests\": 1}", "is not a results.json: expected {\"tests\": "},
        {"{\"tests\": [{\"id\": 1, \"outcome\": \"passed\"}]}", "report: test 1: expected an id"},
        {"{\"tests\": [", "report:1: expected the results.json"},
    };
    int bad = 0;
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        const char *said = chosen(many, (struct suite_selection){.rerun_failed = report(reports[i].text)});
        if (!strstr(said, reports[i].says)) {
            print_error("instead of '%s': '%s'\n", reports[i].says, said);
            bad++;
        }
    }
    char *longer = repeat("{\"tests\": [{\"outcome\": \"passed\", \"id\": \"", "x", 1001, "\"}]}");
    after(chosen(many, (struct suite_selection){.rerun_failed = report(longer)}),
          "an id of at most 1000 bytes");
    free(longer);
    after(chosen(many, (struct suite_selection){.rerun_failed = "/no/such"}), "cannot open '/no/such'");
    assert_int_equal(bad, 0);
}

/* Each test is in one shard, whatever their number. */
static void each_in_one(struct suite *s, int shards, const char *times)
{
    int *in = calloc((size_t)s->n, sizeof *in);
    for (int k = 1; k <= shards; k++) {
        char text[24];
        struct err e = ERR_INIT;
        snprintf(text, sizeof text, "%d/%d", k, shards);
        for (int i = 0; i < s->n; i++)
            s->tests[i].selected = true;
        assert_true(suite_select(s, &(struct suite_selection){.shard = text, .shard_times = times}, &e) >= 0);
        for (int i = 0; i < s->n; i++)
            in[i] += s->tests[i].selected;
    }
    for (int i = 0; i < s->n; i++)
        assert_int_equal(in[i], 1);
    free(in);
}

static void t_shards(void **state)
{
    struct suite *s = suite_of("tests:\n  - { id: 'a{n}-{m}', task: t, matrix: { n: 1..20, m: 1..15 } }\n");
    char times[200];
    snprintf(times, sizeof times, "%s",
             report("{\"tests\": [{\"id\": \"a1-1\", \"outcome\": \"passed\", \"seconds\": 100},"
                    "{\"id\": \"a2-1\", \"outcome\": \"passed\", \"seconds\": 1}]}"));
    uint64_t seed = check_seed();
    for (int i = 0; i < 12; i++) {
        int n = i < 4 ? i + 1 : 1 + (int)(check_random(&seed) * 400);
        each_in_one(s, n, NULL);
        each_in_one(s, n, times);
    }
    suite_free(s);

    /* FNV-1a of "a" is 0xaf63dc4c8601ec8c, of "foobar" 0x85944171f73967e8 */
    static const char two[] = "tests:\n  - { id: a, task: t }\n  - { id: foobar, task: t }\n";
    assert_string_equal(chosen(two, (struct suite_selection){.shard = "48/97"}), "a ");
    assert_string_equal(chosen(two, (struct suite_selection){.shard = "94/97"}), "foobar ");
    assert_string_equal(chosen(many, (struct suite_selection){.shard = "1/1"}),
                        "login logout search page-1 page-2 page-3 ");
    static const char *const refusals[] = {"0/3", "4/3",  "1",    "1/",  "/2", "-1/2",
                                           "1/0", "1/2x", " 1/2", "a/b", ""};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        after(chosen(many, (struct suite_selection){.shard = refusals[i]}),
              "expected a shard as 2/5 (the second of five), auto or auto/5, not '");
}

static void t_shards_by_time(void **state)
{
    static const char times[] = "{\"tests\": [{\"id\": \"login\", \"outcome\": \"passed\", \"seconds\": 1},\n"
                                "{\"id\": \"logout\", \"outcome\": \"passed\", \"seconds\": 2},\n"
                                "{\"id\": \"search\", \"outcome\": \"passed\", \"seconds\": 7},\n"
                                "{\"id\": \"page-1\", \"outcome\": \"failed\", \"seconds\": 6}]}";
    struct suite_selection c = {.shard = "1/2", .shard_times = report(times)};
    /* page-2 and page-3 take the average, 4: 7 + 4 + 1 and 6 + 4 + 2 */
    assert_string_equal(chosen(many, c), "login search page-3 ");
    c.shard = "2/2";
    assert_string_equal(chosen(many, c), "logout page-1 page-2 ");
    c.only = LIST("page-*");
    assert_string_equal(chosen(many, c), "page-1 page-2 ");
}

/* ---- lists, warnings, help ----------------------------------------------------------------------- */

/* Returns the output of suite_print(); the caller frees it. */
static char *printed(const struct suite *s, bool json)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    suite_print(f, s, json);
    fclose(f);
    return text;
}

static void t_list(void **state)
{
    struct suite *s =
        suite_of("suite: { name: n }\n"
                 "tests:\n"
                 "  - { id: a, task: \"\\n  Say \\\"hi\\\" \\e[31m.\\nThen go.\", tags: [x, y] }\n"
                 "  - { id: longer, task: t }\n"
                 "  - { id: left-out, task: t }\n");
    s->tests[2].selected = false;
    char *text = printed(s, false);
    assert_string_equal(text, "a       x,y  Say \"hi\" ?[31m.\n"
                              "longer       t\n");
    free(text);
    text = printed(s, true);
    json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(all);
    const json_t *tests = json_object_get(all, "tests"), *first = json_array_get(tests, 0);
    assert_int_equal(json_array_size(tests), 2);
    assert_string_equal(json_string_value(json_object_get(all, "suite")), "n");
    assert_string_equal(json_string_value(json_object_get(first, "id")), "a");
    assert_int_equal(json_integer_value(json_object_get(first, "line")), 3);
    assert_int_equal(json_array_size(json_object_get(first, "tags")), 2);
    assert_string_equal(json_string_value(json_object_get(first, "task")),
                        "\n  Say \"hi\" \033[31m.\nThen go.");
    json_decref(all);
    free(text);
    suite_free(s);
}

static void t_warnings(void **state)
{
    struct suite *s = suite_of(
        "tests:\n"
        "  - { id: none, task: t }\n"
        "  - { id: word, task: t, checks: [{ kind: answer, match: x }] }\n"
        "  - { id: judged, task: t, checks: [{ kind: answer, match: x }, { kind: text, text: y }] }\n"
        "  - { id: good, task: t, checks: [{ kind: judge, ask: x }, { kind: port, port: 1 }] }\n"
        "  - { id: many, task: t, matrix: { n: 1..30 } }\n");
    char text[8000] = "";
    FILE *f = tmpfile();
    assert_non_null(f);
    fflush(stderr);
    int old = dup(2);
    dup2(fileno(f), 2);
    suite_warn(s);
    fflush(stderr);
    dup2(old, 2);
    close(old);
    rewind(f);
    assert_true(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    const char *p = after(text, "s.yaml:2: test 'none' has no check but the agent's own answer");
    p = after(p, "s.yaml:3: test 'word' has no check but the agent's");
    p = after(p, "s.yaml:4: test 'judged' has no check but by a model");
    p = after(p, "s.yaml:6: test 'many-17' has no check but");
    after(p, "s.yaml: 13 more tests like these\n");
    assert_true(!strstr(text, "'good'") && !strstr(text, "many-18"));
    suite_free(s);
}

/* Every key that a message lists must be in the help. */
static void t_help(void **state)
{
    static const char *const unknown[] = {"suite: { q: 1 }\ntests: [{ id: a, task: t }]\n",
                                          "tests: [{ id: a, task: t, q: 1 }]\n",
                                          "tests: [{ id: a, task: t, checks: [{ kind: %s, q: 1 }] }]\n"};
    static const char *const kinds[] = {"shell", "answer", "window", "file", "process",
                                        "port",  "region", "text",   "judge"};
    int keys = 0;
    for (int i = 0; i < 11; i++) {
        char text[200], *rest = NULL;
        struct err e = ERR_INIT;
        snprintf(text, sizeof text, unknown[i < 2 ? i : 2], i < 2 ? "" : kinds[i - 2]); /* NOLINT */
        assert_null(suite_parse(text, strlen(text), "s.yaml", &e));
        char *list = strstr(e.text, " has ");
        assert_non_null(list);
        for (char *key = strtok_r(list + 5, ", ", &rest); key; key = strtok_r(NULL, ", ", &rest), keys++) {
            const char *p = suite_keys_help;
            size_t n = strlen(key);
            while ((p = strstr(p, key)) && (strchr("abcdefghijklmnopqrstuvwxyz_", p[-1]) ||
                                            strchr("abcdefghijklmnopqrstuvwxyz_", p[n])))
                p += n;
            if (!p)
                fail_msg("the help does not have the key '%s'", key);
        }
    }
    assert_true(keys > 80);
    check_note("%d keys", keys);
}

static void t_examples(void **state)
{
    DIR *d = opendir("tests/suites");
    int n = 0;
    assert_non_null(d);
    for (struct dirent *one; (one = readdir(d));) {
        struct err e = ERR_INIT;
        char path[300];
        size_t len = strlen(one->d_name);
        if (len < 6 || strcmp(one->d_name + len - 5, ".yaml") != 0)
            continue;
        snprintf(path, sizeof path, "tests/suites/%s", one->d_name);
        struct suite *s = suite_read(path, &e);
        if (!s)
            fail_msg("%s", e.text);
        n += s->n;
        suite_free(s);
    }
    closedir(d);
    assert_true(n >= 4);
    check_note("%d tests", n);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a spec becomes a task for a tester who judges by the screen alone", t_spec),
    CLAIM("an invalid spec is refused with its line and the suite's line", t_wrong_specs),
    CLAIM("tests are selected by id and tag", t_only),
    CLAIM("tests that did not pass in an earlier run are selected", t_rerun),
    CLAIM("the results.json of a run gives the tests to repeat and the duration of each", t_round_trip),
    CLAIM("a file that is not a results.json is refused with its line", t_wrong_reports),
    CLAIM("every test is in exactly one shard", t_shards),
    CLAIM("a list has a line for each selected test, and no control characters", t_list),
    CLAIM("tests that only a model or the agent decides get a warning", t_warnings),
    CLAIM("the help documents every key", t_help),
    CLAIM("the suites that come with the program can be read", t_examples),
    CLAIM("shards by time have equal durations", t_shards_by_time),
};

CHECK_MAIN_WITH(suite_fixture_open(), suite_fixture_close())
