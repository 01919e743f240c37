/* t_qa_kept.c - programs that `holorun qa` keeps open between tests: reuse: program. */
#include "check.h"
#include "qa_program.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The setup notes the variable of the test, and display and number of the process under test. */
#define TEST(id, more)                                                                                       \
    "  - id: " id "\n    task: Do nothing.\n    reuse: program\n    vars: { word: of-" id " }\n" more        \
    "    setup: 'echo \"$HOLORUN_VAR_WORD $DISPLAY $(cut -d\" \" -f4 /proc/$PPID/stat)\" >{dir}/" id         \
    ".seen; "                                                                                                \
    "touch \"$HOME/" id "\"'\n"                                                                              \
    "    checks:\n      - { kind: shell, run: 'test \"$HOLORUN_VAR_WORD\" = of-" id "' }\n"

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

static void t_kept(void **state)
{
    struct qa_program q;
    begin(&q, "tests:\n" TEST("a", "") TEST("b", "") TEST("c", "    env: { OTHER: x }\n") TEST("d", ""));
    run(&q);
    if (q.o.code)
        fail_msg("exit %d: %s", q.o.code, q.o.err);
    assert_true(same_desktop(&q, 'a', 'b'));
    assert_false(same_desktop(&q, 'a', 'c'));
    assert_string_equal(program_of(&q, "a"), "");
    assert_string_equal(program_of(&q, "b"), "a");
    assert_string_equal(program_of(&q, "c"), "");
    assert_string_equal(program_of(&q, "d"), ""); /* one job keeps one desktop */
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
    CLAIM("a test that did not pass leaves no program and is not repeated", t_failed),
};

CHECK_MAIN()
