/* t_suite_files.c - tests of what valid suites say: checks, variables, matrices, stdin; and that the suites in
 * tests/suites are valid and up to date with their generators. */
#include "check.h"
#include "suite_fixture.h"

#include "base/err.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST   "tests:\n  - id: a\n    task: t\n" /* three lines; more keys of the test follow */
#define CHECKS TEST "    checks:\n"               /* line 4; checks from line 5 */
#define SHA    "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef"

static void t_checks(void **state)
{
    struct suite *s = suite_of(
        CHECKS "      - { kind: shell, run: \"awk '{print}' {id}.txt\", when: always, seconds: 0.5 }\n"
               "      - { kind: answer, match: \"^VERDICT: PASSED\\\\d{2}\" }\n"
               "      - { kind: window, title: Nimbus, class: nim, absent: yes }\n"
               "      - { kind: file, path: out.txt, match: x+, sha256: " SHA " }\n"
               "      - { kind: process, name: xterm, absent: no }\n"
               "      - { kind: port, port: 5173 }\n"
               "      - { kind: region, png: a.png, area: [1, 2, 3, 4], max_diff: 0.5, tolerance: 0 }\n"
               "      - { kind: region, png: b.png, label: the bar }\n"
               "      - { kind: clipboard, match: two, selection: primary, absent: yes }\n"
               "      - { kind: element, name: OK, role: button, window: Ask, content: c, state: checked }\n"
               "      - { kind: text, text: Log out, by: reading }\n"
               "      - { kind: text, text: Log out }\n"
               "      - { kind: judge, ask: 'Is it {id}?', passes: 2, frames: 3 }\n");
    const struct test *t = &s->tests[0];
    const struct check *c = t->checks;
    assert_int_equal(t->n_checks, 13);
    for (int i = 0; i < 13; i++)
        assert_int_equal(c[i].line, 5 + i);
    assert_string_equal(c[0].text, "awk '{print}' a.txt");
    assert_true(c[0].line == 5);
    assert_string_equal(c[0].name, "shell: awk '{print}' a.txt");
    assert_true(c[0].always && c[0].seconds == 0.5 && !c[1].always && c[1].seconds == 0);
    assert_string_equal(c[1].text, "^VERDICT: PASSED\\d{2}");
    assert_true(!strcmp(c[2].text, "Nimbus") && !strcmp(c[2].text2, "nim") && c[2].absent &&
                c[2].seconds == 5);
    assert_string_equal(c[2].name, "no window: Nimbus");
    assert_true(!strcmp(c[3].text, "out.txt") && !strcmp(c[3].text2, "x+"));
    assert_string_equal(c[3].sha256, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    assert_true(!strcmp(c[4].text, "xterm") && !c[4].absent);
    assert_int_equal(c[5].port, 5173);
    assert_string_equal(c[5].name, "port: 5173");
    assert_true(c[6].area[0] == 1 && c[6].area[1] == 2 && c[6].area[2] == 3 && c[6].area[3] == 4);
    assert_true(c[6].max_diff == 0.5 && c[6].tolerance == 0 && c[7].max_diff == 0.01 && c[7].tolerance == 16);
    assert_true(c[7].area[2] == 0 && !strcmp(c[7].name, "the bar"));
    assert_true(c[8].primary && c[8].absent && !strcmp(c[8].text, "two") && c[8].seconds == 5);
    assert_true(!strcmp(c[9].text, "OK") && !strcmp(c[9].text2, "button") && !strcmp(c[9].window, "Ask"));
    assert_true(!strcmp(c[9].content, "c") && !strcmp(c[9].state, "checked"));
    assert_true(c[10].reading && !c[11].reading);
    assert_string_equal(c[10].name, "text, read by the embedded model: Log out");
    assert_string_equal(c[11].text, "Log out");
    assert_true(c[12].passes == 2 && c[12].frames == 3 && c[11].seconds == 600);
    assert_string_equal(c[12].text, "Is it a?");
    for (int i = 0; i < 13; i++)
        assert_int_equal(check_evidence(c[i].kind) == BY_MODEL, i >= 10);
    suite_free(s);
}

/* ---- variables and matrices ---------------------------------------------------------------------- */

static void t_variables(void **state)
{
    struct suite *s = suite_of(
        "suite:\n"
        "  seed: 3\n"
        "  vars: { base: A, url: '{base}/x', empty: '' }\n"
        "  start: run {url} ${base} ${HOME} {nobody} {{base}} {{x}} {Base} '{print $1}' {base\n"
        "tests:\n"
        "  - id: one\n"
        "    task: '{url} {seed} {{USER}} {{url}} {{nobody}} { {} {a b} {\"k\": {\"l\": 1}} {empty}|{id}'\n"
        "    secrets: USER=env:WHO\n"
        "  - id: two\n"
        "    task: '{url} {more}'\n"
        "    vars: { base: B, more: '{url}{id}{{id}}' }\n");
    assert_string_equal(test_of(s, "one")->start,
                        "run A/x ${base} ${HOME} {nobody} {base} {{x}} {Base} '{print $1}' {base");
    assert_string_equal(test_of(s, "one")->task,
                        "A/x 3 {{USER}} {url} {nobody} { {} {a b} {\"k\": {\"l\": 1}} |one");
    assert_string_equal(test_of(s, "two")->task, "B/x B/xtwo{id}");
    suite_free(s);
}

static void t_matrix(void **state)
{
    struct suite *s = suite_of("suite:\n  seed: 5\n  vars: { page: none, file: 'p/{page}.html' }\n"
                               "tests:\n"
                               "  - id: '{page}-{seed}'\n"
                               "    matrix: { page: [click, drag, '1..3'], seed: [1000000..1000001, 9] }\n"
                               "    task: On {file} {seed}\n"
                               "  - id: plain\n"
                               "    matrix: { n: 1..3 }\n"
                               "    task: '{n}'\n"
                               "    steps: '{n}'\n"
                               "  - id: last\n"
                               "    task: '{page}'\n");
    static const char *const ids[] = {
        "click-1000000", "click-1000001", "click-9", "drag-1000000", "drag-1000001", "drag-9", "1..3-1000000",
        "1..3-1000001",  "1..3-9",        "plain-1", "plain-2",      "plain-3",      "last"};
    assert_int_equal(s->n, 13);
    for (int i = 0; i < s->n; i++)
        assert_string_equal(s->tests[i].id, ids[i]);
    const struct test *t = test_of(s, "drag-1000001");
    assert_string_equal(t->task, "On p/drag.html 1000001");
    assert_int_equal(t->seed, 1000001);
    same_list(t->matrix, LIST("page=drag", "seed=1000001"));
    assert_true(has(t->env, "HOLORUN_VAR_PAGE=drag") && has(t->env, "HOLORUN_VAR_SEED=1000001"));
    assert_int_equal(test_of(s, "plain-3")->steps, 3);
    assert_int_equal(test_of(s, "plain-3")->seed, 5);
    assert_string_equal(test_of(s, "last")->task, "none");
    suite_free(s);
}

static void t_stdin(void **state)
{
    struct err e = ERR_INIT;
    char here[4096];
    suite_fixture_open();
    const char *path = suite_fixture_file("s.yaml", TEST "    start: \"ls {dir}\"\n");
    int old = dup(0), in = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(old >= 0 && in >= 0 && dup2(in, 0) == 0);
    struct suite *s = suite_read("-", &e);
    assert_true(dup2(old, 0) == 0);
    close(old);
    close(in);
    if (!s)
        fail_msg("%s", e.text);
    assert_non_null(getcwd(here, sizeof here));
    assert_string_equal(s->dir, here);
    assert_string_equal(s->name, "stdin");
    assert_string_equal(after(s->tests[0].start, "ls "), here);
    suite_free(s);
    suite_fixture_close();
}
/* ---- our suites ---------------------------------------------------------------------------------- */

static void t_read(void **state)
{
    static const struct {
        const char *path;
        int tests;
        const char *display;
    } ours[] = {{"tests/suites/miniwob.yaml", 2200, "xvfb:640x480"},
                {"tests/suites/flights.yaml", 20, "xvfb:640x480"},
                {"tests/suites/dialogs.yaml", 60, "xvfb:640x480"},
                {"tests/suites/waits.yaml", 40, "xvfb:640x480"},
                {"tests/suites/crowd.yaml", 100, "xvfb:640x480"},
                {"tests/suites/desktop.yaml", 14, "xvfb:640x480"},
                {"tests/suites/steps.yaml", 10, "xvfb:640x480"},
                {"tests/suites/toolkits.yaml", 180, "xvfb:640x480"},
                {"tests/suites/windows.yaml", 100, "xvfb:1024x768"},
                {"tests/suites/forms.yaml", 100, "xvfb:640x480"}};
    for (size_t k = 0; k < sizeof ours / sizeof *ours; k++) {
        struct err e = ERR_INIT;
        struct suite *s = suite_read(ours[k].path, &e);
        if (!s)
            fail_msg("%s", e.text);
        assert_int_equal(s->n, ours[k].tests);
        for (int i = 0; i < s->n; i++) {
            const struct test *t = &s->tests[i];
            assert_string_equal(t->display, ours[k].display);
            assert_true(t->n_checks > 0 && check_evidence(t->checks[0].kind) != BY_MODEL);
            /* all variables are expanded */
            assert_null(strstr(t->checks[0].text, "{title}"));
            assert_null(strstr(t->start, "{page}"));
            assert_null(strstr(t->start, "{dialogs}"));
            assert_null(strstr(t->window, "{says}"));
        }
        suite_free(s);
    }
}

/* Skips the test if the command fails. */
static void wants(const char *command, const char *what)
{
    if (system(command)) {
        printf("           there is no %s here\n", what);
        skip();
    }
}

static void t_made(void **state)
{
    static const char *const made[] = {"demo_cases.py --suite flights | cmp - tests/suites/flights.yaml",
                                       "demo_cases.py --suite dialogs | cmp - tests/suites/dialogs.yaml",
                                       "demo_cases.py --suite waits | cmp - tests/suites/waits.yaml",
                                       "demo_cases.py --suite crowd | cmp - tests/suites/crowd.yaml",
                                       "demo_cases.py | cmp - tests/cases/demo_many.tsv",
                                       "toolkit_cases.py | cmp - tests/suites/toolkits.yaml",
                                       "toolkit_cases.py --windows | cmp - tests/suites/windows.yaml",
                                       "form_cases.py | cmp - tests/suites/forms.yaml"};
    wants("python3 -c 'import random' 2>/dev/null", "Python");
    for (size_t k = 0; k < sizeof made / sizeof *made; k++) {
        char *again = xasprintf("python3 -B tests/scripts/%s", made[k]);
        assert_int_equal(system(again), 0);
        free(again);
    }
}

/* Tests one dialog of each toolkit and both kinds of desktop; `make qa-right` tests all of them. */
static void t_right(void **state)
{
    wants("command -v Xvfb openbox xprop >/dev/null && test -x ./holorun",
          "X server, openbox, xprop or program");
    wants(
        "/usr/bin/python3 -c 'import gi, PyQt5.QtWidgets, tkinter; gi.require_version(\"Gtk\", \"3.0\")' 2>&-",
        "GTK, Qt and Tk for Python");
    static const char *const sets[][2] = {
        {"toolkits", "--only gtk-buttons-1 --only qt-ticks-21 --only tk-fields-46"},
        {"windows --windows", "--only ok-there-1 --only ok-not-there-1"}};
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        char *run = xasprintf("set -- %s; suite=$1; shift; d=$(mktemp -d) && "
                              "python3 -B tests/scripts/toolkit_cases.py \"$@\" --right $d/right %s 2>&- && "
                              "./holorun qa tests/suites/$suite.yaml --dialect pyautogui --fake $d/right %s "
                              "--out $d/out >$d/log 2>&1 || { cat $d/log; false; }",
                              sets[k][0], sets[k][1], sets[k][1]);
        assert_int_equal(system(run), 0);
        free(run);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("every kind of check is read with all its keys", t_checks),
    CLAIM("variables are expanded, and all other braces stay", t_variables),
    CLAIM("a matrix makes one test for each combination", t_matrix),
    CLAIM("paths of a suite from stdin are relative to the current directory", t_stdin),
    CLAIM("our suites can be read, and each test has a check that needs no model", t_read),
    CLAIM("generated suites are up to date", t_made),
    CLAIM("dialogs of three toolkits, alone and among windows, can be done right", t_right),
};

CHECK_MAIN()
