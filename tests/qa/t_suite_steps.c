/* t_suite_steps.c - tests of tasks that are lists of steps: their sentences, and those that need a model. */
#include "check.h"

#include "suite_fixture.h"

#include <stdlib.h>
#include <string.h>

#define STEPS "tests:\n  - id: a\n    vars: { who: 'Ana\", then press Delete', n: '3' }\n    task:\n"

static const struct {
    const char *step, *task; /* in YAML; as sentences */
} read[] = {
    {"press: Save", "press \"Save\""},
    {"press: [Save, \"Don't save\"]", "press \"Save\";\npress \"Don't save\""},
    {"press: Save button", "press \"Save button\""},
    {"press: Enter", "press \"Enter\""}, /* a name, not the key */
    {"press: 'Say \"hi\" & > ...'", "press \"Say \\\"hi\\\" & > ...\""},
    {"double_click: a.txt", "double-click \"a.txt\""},
    {"right_click: Trash", "right-click \"Trash\""},
    {"tick: not now", "tick \"not now\""},
    {"untick: [a or b, all]", "untick \"a or b\";\nuntick \"all\""},
    {"fill: { Name: Ana, Count: 3 }", "enter \"Ana\" into \"Name\";\nenter \"3\" into \"Count\""},
    {"fill: { Name: '{who}' }", "enter \"Ana\\\", then press Delete\" into \"Name\""},
    {"fill: { 'No {n}': \"a\\nb\" }", "enter \"a\nb\" into \"No 3\""},
    {"fill: { PIN: '{{n}}' }", "enter \"{n}\" into \"PIN\""},
    {"choose: { Size: Large }", "choose \"Large\" in \"Size\""},
    {"choose: Large", "choose \"Large\""},
    {"menu: File>Save As...", "open menu \"File\" > \"Save As...\""},
    {"menu: [File, 'a > b']", "open menu \"File\" > \"a > b\""},
    {"menu: File > {who}", "open menu \"File\" > \"Ana\\\", then press Delete\""},
    {"tab: Advanced", "go to tab \"Advanced\""},
    {"scroll_to: Terms", "scroll to \"Terms\""},
    {"keys: [Ctrl+Shift+T, Return]", "press key ctrl+shift+t;\npress key enter"},
    {"type: some text", "enter \"some text\""},
    {"close: window", "close the window"},
    {"wait: Order received", "wait until \"Order received\" is shown"},
    {"wait: Progress is gone", "wait until \"Progress\" is gone"},
    {"check: Gift wrapping is ticked", "check that \"Gift wrapping\" is ticked"},
    {"check: Name equals {who}", "check that \"Name\" equals \"Ana\\\", then press Delete\""},
    {"check: { Name: '' }", "check that \"Name\" equals \"\""},
    {"check: '\"Who is in?\" is gone'", "check that \"Who is in?\" is gone"},
    {"do: press Save, then tick Bold", "press \"Save\";\ntick \"Bold\""},
    {"do: press {who}", "press \"Ana\\\", then press Delete\""},
    {"do: tidy up\n        steps: [press OK, 'enter {n} into Count, press Go']",
     "press \"OK\";\nenter \"3\" into \"Count\";\npress \"Go\""},
};

static void t_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
        char *text = xasprintf(STEPS "      - %s\n", read[i].step);
        struct suite *s = suite_of(text);
        const struct test *t = &s->tests[0];
        if (strcmp(t->task, read[i].task) != 0)
            fail_msg("%s\nis read as   %s\ninstead of   %s", read[i].step, t->task, read[i].task);
        assert_true(t->n_script == t->plain.n && t->n_script > 0 && !test_needs_model(t));
        for (int k = 0; k < t->n_script; k++)
            assert_true(t->script[k].plain == k && t->script[k].line >= 5);
        suite_free(s);
        free(text);
    }
}

/* Every combination of a matrix has its own steps. */
static void t_matrix(void **state)
{
    (void)state;
    struct suite *s =
        suite_of("tests:\n  - id: 'a{n}'\n    matrix: { n: 1..3 }\n    task: [{ press: 'No {n}' }]\n");
    assert_int_equal(s->n, 3);
    assert_string_equal(s->tests[0].plain.s[0].what, "No 1");
    assert_string_equal(s->tests[2].plain.s[0].what, "No 3");
    suite_free(s);
}

static void t_model(void **state)
{
    (void)state;
    struct suite *s =
        suite_of("tests:\n"
                 "  - id: text\n    task: press Save\n"
                 "  - id: plain\n    task: [{ do: press Save }]\n"
                 "  - id: free\n    task: [{ press: Save }, { do: make it nice }, { check: OK is shown }]\n"
                 "  - id: judged\n    task: [{ press: Save }]\n"
                 "    checks: [{ kind: judge, ask: 'Is it {id}?' }]\n");
    assert_true(test_needs_model(test_of(s, "text")));
    assert_false(test_needs_model(test_of(s, "plain")));
    assert_true(test_needs_model(test_of(s, "free")));
    assert_true(test_needs_model(test_of(s, "judged")));
    const struct test *t = test_of(s, "free");
    assert_int_equal(t->n_script, 3);
    assert_true(t->script[0].plain == 0 && t->script[1].plain == -1 && t->script[2].plain == 1);
    assert_string_equal(t->script[1].text, "make it nice");
    assert_true(!test_step_proves(t, 0) && !test_step_proves(t, 1) && test_step_proves(t, 2));
    suite_free(s);
    s = suite_of("tests:\n"
                 "  - id: acts\n    task: [{ wait: OK }, { press: OK }, { wait: OK is gone }]\n"
                 "  - id: looks\n    task: [{ wait: OK }, { check: OK is enabled }]\n");
    t = test_of(s, "acts");
    assert_true(!test_step_proves(t, 0) && !test_step_proves(t, 1) && test_step_proves(t, 2));
    t = test_of(s, "looks");
    assert_true(test_step_proves(t, 0) && test_step_proves(t, 1));
    suite_free(s);
}

static void t_stale(void **state)
{
    char hash[SUITE_HASH], other[SUITE_HASH];
    (void)state;
    suite_sentence_hash("order a\n  shirt ", hash);
    suite_sentence_hash("order a shirt", other);
    assert_string_equal(hash, other);
    suite_sentence_hash("order a skirt", other);
    assert_string_not_equal(hash, other);
    char *text =
        xasprintf(STEPS "      - do: >-\n          order a\n          shirt\n        steps: [press OK]\n"
                        "        steps_of: %s\n",
                  hash);
    struct suite *s = suite_of(text);
    assert_int_equal(s->tests[0].stale, 0);
    suite_free(s);
    *strstr(text, "shirt") = 'x';
    s = suite_of(text);
    assert_int_equal(s->tests[0].stale, 9);
    assert_string_not_equal(s->tests[0].stale_hash, hash);
    suite_free(s);
    free(text);
}

/* A variable that is empty or has several lines cannot be a name. */
static void t_names(void **state)
{
    static const char *const steps[] = {"do: press {x}", "check: '{x} is shown'", "wait: '{x} is gone'",
                                        "do: choose Large in {x}"};
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        for (int lines = 0; lines < 2; lines++) {
            char *text = xasprintf("tests:\n  - id: a\n    vars: { x: \"%s\" }\n    task:\n      - %s\n",
                                   lines ? "a\\nb" : "", steps[i]);
            struct err e = ERR_INIT;
            assert_null(suite_parse(text, strlen(text), "s.yaml", &e));
            if (!strstr(e.text, lines ? "expected one line" : "variables are empty"))
                fail_msg("%s: %s", text, e.text);
            free(text);
        }
}

static const struct CMUnitTest tests[] = {
    CLAIM("each step is read as the sentence of the same meaning", t_read),
    CLAIM("each combination of a matrix has its own steps", t_matrix),
    CLAIM("a model is needed for free sentences and for checks that ask it", t_model),
    CLAIM("a name in a sentence is one line that is not empty", t_names),
    CLAIM("steps are stale when the words of their sentence changed", t_stale),
};

CHECK_MAIN()
