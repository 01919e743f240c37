/* t_suite_files.c - tests that the suites in tests/suites are valid and up to date with their generators. */
#include "check.h"

#include "base/err.h"
#include "qa/suite/suite.h"

#include <stdlib.h>
#include <string.h>

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
    CLAIM("our suites can be read, and each test has a check that needs no model", t_read),
    CLAIM("generated suites are up to date", t_made),
    CLAIM("dialogs of three toolkits, alone and among windows, can be done right", t_right),
};

CHECK_MAIN()
