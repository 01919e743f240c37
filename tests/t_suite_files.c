/* t_suite_files.c - our own suites (tests/suites) are valid and up to date with their generators. */
#include "check.h"

#include "base/err.h"
#include "qa/suite/suite.h"

#include <stdlib.h>
#include <string.h>

static void t_read(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int tests;
    } ours[] = {{"tests/suites/miniwob.yaml", 2200}, {"tests/suites/flights.yaml", 20},
                {"tests/suites/dialogs.yaml", 60},   {"tests/suites/waits.yaml", 40},
                {"tests/suites/crowd.yaml", 100},    {"tests/suites/desktop.yaml", 14}};
    for (size_t k = 0; k < sizeof ours / sizeof *ours; k++) {
        struct err e = ERR_INIT;
        struct suite *s = suite_read(ours[k].path, &e);
        if (!s)
            fail_msg("%s", e.text);
        assert_int_equal(s->n, ours[k].tests);
        for (int i = 0; i < s->n; i++) {
            const struct test *t = &s->tests[i];
            assert_string_equal(t->display, "xvfb:640x480");
            assert_true(t->n_checks > 0 && check_evidence(t->checks[0].kind) != BY_MODEL);
            /* all variables are expanded */
            assert_null(strstr(t->checks[0].text, "{title}"));
            assert_null(strstr(t->start, "{page}"));
            assert_null(strstr(t->window, "{says}"));
        }
        suite_free(s);
    }
}

static void t_made(void **state)
{
    (void)state;
    static const char *const made[] = {"flights", "dialogs", "waits", "crowd"};
    if (system("python3 -c 'import random' 2>/dev/null")) {
        printf("           there is no Python here\n");
        skip();
    }
    for (size_t k = 0; k < sizeof made / sizeof *made; k++) {
        char *again =
            xasprintf("python3 -B tests/scripts/demo_cases.py --suite %s | cmp - tests/suites/%s.yaml",
                      made[k], made[k]);
        assert_int_equal(system(again), 0);
        free(again);
    }
    assert_int_equal(system("python3 -B tests/scripts/demo_cases.py | cmp - tests/cases/demo_many.tsv"), 0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CLAIM("our suites can be read, and each test has a check that no model answers", t_read),
        CLAIM("the demo's suites are what their script makes", t_made),
    };
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
