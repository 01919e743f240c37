/* t_qa_kept.c - programs that `holorun qa` keeps open between tests: reuse: program. */
#include "check.h"
#include "qa_program.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The setup notes the variable of the test and the HOME of the desktop. */
#define TEST_WITH(id, vars, setup, more)                                                                     \
    "  - id: " id "\n    task: Do nothing.\n    reuse: program\n    vars: { word: of-" id vars " }\n" more   \
    "    setup: 'echo \"$HOLORUN_VAR_WORD $HOME\" >{dir}/" id ".seen; touch \"$HOME/" id "\"; " setup "'\n"  \
    "    wait_until: [{ kind: shell, run: 'test -e \"$HOME/" id "\"' }]\n"                                   \
    "    checks:\n      - { kind: shell, run: 'test \"$HOLORUN_VAR_WORD\" = of-" id "' }\n"
#define TEST(id, more)     TEST_WITH(id, "", ":", more)
#define SHELL_CHECK(shell) "      - { kind: shell, run: '" shell "' }\n"

static void begin(struct qa_program *q, const char *tests)
{
    qa_program_open(q);
    qa_program_suite(q, tests);
    for (const char *id = "abcd"; *id; id++)
        qa_program_reply(q, (char[]){*id, 0}, "DONE('Done.')\n");
}

static char *seen_by(const struct qa_program *q, char id)
{
    char name[] = {id, '.', 's', 'e', 'e', 'n', 0};
    char *path = xvfb_place(&q->x, name), *text;
    size_t n;
    assert_int_equal(file_read(path, 4096, &text, &n, NULL), 0);
    free(path);
    return text;
}

/* Returns whether the tests ran on the same desktop, and each with its own variable. */
static bool same_desktop(const struct qa_program *q, char a, char b)
{
    char *one = seen_by(q, a), *two = seen_by(q, b);
    assert_true(!strncmp(one, "of-", 3) && one[3] == a && !strncmp(two, "of-", 3) && two[3] == b);
    bool same = !strcmp(one + 4, two + 4);
    free(one);
    free(two);
    return same;
}

static const char *program_of(const struct qa_program *q, const char *id)
{
    const json_t *attempt = json_array_get(json_object_get(qa_program_test(q, id), "attempts"), 0);
    const char *of = json_string_value(json_object_get(attempt, "program_of"));
    return of ? of : "";
}

static void run(struct qa_program *q)
{
    qa_program_run(q, WORDS("--quiet", "--jobs=1", "--retries=1", "--dialect=pyautogui"));
    assert_int_equal(qa_program_remains(q), 0);
}

static void run_all(struct qa_program *q)
{
    run(q);
    if (q->o.code)
        fail_msg("exit %d: %s", q->o.code, q->o.err);
}

static void t_kept(void **state)
{
    struct qa_program q;
    begin(&q, "tests:\n" TEST_WITH("a", ", more: x", ":", "") TEST("b", "") SHELL_CHECK(
                  "test -z \"$HOLORUN_VAR_MORE\"") TEST("c", "    env: { OTHER: x }\n") TEST("d", ""));
    run_all(&q);
    assert_true(same_desktop(&q, 'a', 'b'));
    assert_false(same_desktop(&q, 'a', 'c'));
    assert_string_equal(program_of(&q, "a"), "");
    assert_string_equal(program_of(&q, "b"), "a");
    assert_string_equal(program_of(&q, "c"), "");
    assert_string_equal(program_of(&q, "d"), "b");
    qa_program_close(&q);
}

static void t_variables(void **state)
{
    struct qa_program q;
    char *client = realpath(helper_path("xclient"), NULL);
    char *start = xasprintf(
        "    start: 'exec \"%s\" \"$HOME/events.jsonl\" --title \"client $HOLORUN_VAR_WORD\"'\n", client);
    char *tests = xasprintf("tests:\n" TEST("a", "%s") TEST("b", "%s"), start, start);
    begin(&q, tests);
    run_all(&q);
    assert_false(same_desktop(&q, 'a', 'b'));
    assert_string_equal(program_of(&q, "b"), "");
    free(tests);
    free(start);
    free(client);
    qa_program_close(&q);
}

static void t_stuck(void **state)
{
    struct qa_program q;
    begin(&q, "tests:\n" TEST("a", "") SHELL_CHECK("touch \"$HOME/stuck\"")
                  TEST_WITH("b", "", "echo broken; test ! -e \"$HOME/stuck\"", ""));
    run_all(&q);
    assert_false(same_desktop(&q, 'a', 'b'));
    assert_string_equal(program_of(&q, "b"), "");
    qa_program_close(&q);
}

static const char *log_of(const struct qa_program *q, const char *id)
{
    const json_t *attempt = json_array_get(json_object_get(qa_program_test(q, id), "attempts"), 0);
    const char *log = json_string_value(json_object_get(attempt, "log"));
    return log ? log : "";
}

/* The program prints the lines of a pipe, into which each setup writes one. */
static void t_log(void **state)
{
    struct qa_program q;
    char *client = realpath(helper_path("xclient"), NULL);
    char *start =
        xasprintf("    start: 'mkfifo \"$HOME/say\"; while :; do cat \"$HOME/say\"; done & exec \"%s\" "
                  "\"$HOME/events.jsonl\" --title client'\n",
                  client);
    char *tests = xasprintf("tests:\n" TEST_WITH("a", "", "echo line of a >\"$HOME/say\"", "%s")
                                TEST_WITH("b", "", "echo line of b >\"$HOME/say\"", "%s"),
                            start, start);
    begin(&q, tests);
    run_all(&q);
    assert_string_equal(program_of(&q, "b"), "a");
    assert_string_equal(log_of(&q, "a"), "line of a\n");
    assert_string_equal(log_of(&q, "b"), "line of b\n");
    free(tests);
    free(start);
    free(client);
    qa_program_close(&q);
}

static void t_unneeded(void **state)
{
    struct qa_program q;
    begin(&q, "tests:\n" TEST_WITH("a", "", "echo \"$HOME\" >{dir}/home", "")
                  TEST("b", "    env: { OTHER: x }\n") SHELL_CHECK("test ! -e \"$(cat {dir}/home)\""));
    run_all(&q);
    qa_program_close(&q);
}

static void t_failed(void **state)
{
    struct qa_program q;
    begin(&q, "tests:\n" TEST("a", "") "      - { kind: shell, run: 'false' }\n" TEST("b", ""));
    run(&q);
    assert_string_equal(qa_program_outcome(&q, "a"), "failed");
    assert_int_equal(json_array_size(json_object_get(qa_program_test(&q, "a"), "attempts")), 1);
    assert_string_equal(qa_program_outcome(&q, "b"), "passed");
    assert_string_equal(program_of(&q, "b"), "");
    qa_program_close(&q);
}

static const struct CMUnitTest tests[] = {
    CLAIM(
        "a program stays open for a test with the same start and variables, which has its own task variables",
        t_kept),
    CLAIM("a program whose start names a variable is not used by a test with another value", t_variables),
    CLAIM("a program that the setup cannot reset is replaced by a new one", t_stuck),
    CLAIM("the log of a test has only the lines of this test", t_log),
    CLAIM("a program that no further test can use is closed at once", t_unneeded),
    CLAIM("a test that did not pass leaves no program and is not repeated", t_failed),
};

CHECK_MAIN()
