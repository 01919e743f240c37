/* t_qa_freeze.c - `holorun qa --freeze`: sentences of a suite become steps, on zenity's dialogs; zenity's own
 * output is the judge, and no model is used. */
#include "check.h"
#include "qa_program.h"

#include "base/file.h"
#include "qa/suite/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* zenity's form with a list; `label` names the field. */
#define FORM(label)                                                                                          \
    "    start: zenity --forms --title=Order --add-entry=" label                                             \
    " --add-combo=Size --combo-values='Small|Large' >\"$HOME/out.txt\"\n"                                    \
    "    window: ^Order$\n"
#define PRINTS(text) "    checks:\n      - { kind: file, path: out.txt, match: '^" text "$', seconds: 2 }\n"

static void open_suite(struct qa_program *q, const char *tests)
{
    if (!zenity_fits() || !program_exists("dbus-daemon") || !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    qa_program_open(q);
    qa_program_suite(q, tests);
    q->model = "/nonexistent/model";
}

/* Returns the suite as it is now; the caller frees it. */
static char *suite_now(const struct qa_program *q)
{
    char *path = xvfb_place(&q->x, "suite.yaml"), *text = NULL;
    size_t n;
    struct err e = ERR_INIT;
    if (file_read(path, 1 << 20, &text, &n, &e))
        fail_msg("%s", e.text);
    free(path);
    return text;
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("the text lacks\n%s\n--\n%s", part, text);
}

static void put_suite(const struct qa_program *q, const char *text)
{
    char *path = xvfb_put(&q->x, "suite.yaml", text);
    free(path);
}

static const char sentences[] =
    "tests:\n"
    "  - id: right\n" FORM(
        "Name") "    task:\n"
                "      # a comment\n"
                "      - do: Set the name to Ana Lima, the size to Large\n"
                "          and press OK\n" PRINTS("Ana Lima.Large") "  - id: refuted\n" FORM(
                    "Name") "    task:\n"
                            "      - do: Fill in the name Rui and press OK\n" PRINTS("Ana.*") "  - id: unclear\n" FORM(
                                "Name") "    task:\n"
                                        "      - do: Fill in the name unless it is raining\n" PRINTS("Ana.*");

static void t_written(void **state)
{
    struct qa_program q;
    char hash[SUITE_HASH];
    (void)state;
    open_suite(&q, sentences);
    char *before = suite_now(&q);
    qa_program_run(&q, WORDS("--freeze", "--update=diff"));
    char *text = suite_now(&q);
    assert_string_equal(text, before); /* printed, not written */
    has(q.o.out, "+          - \"choose \\\"Large\\\" in \\\"Size\\\"\"\n");
    assert_int_equal(q.o.code, ERR_FAILED);
    free(text);
    qa_program_run(&q, WORDS("--freeze", "--quiet"));
    text = suite_now(&q);
    suite_sentence_hash("Set the name to Ana Lima, the size to Large and press OK", hash);
    char *added = xasprintf("          and press OK\n"
                            "        steps:\n"
                            "          - \"enter \\\"Ana Lima\\\" into \\\"Name\\\"\"\n"
                            "          - \"choose \\\"Large\\\" in \\\"Size\\\"\"\n"
                            "          - \"press \\\"OK\\\"\"\n"
                            "        steps_of: %s\n",
                            hash);
    has(text, added);
    assert_int_equal(strlen(text), strlen(before) + strlen(added) - strlen("          and press OK\n"));
    assert_string_equal(qa_program_outcome(&q, "right"), "passed");
    assert_string_equal(qa_program_outcome(&q, "refuted"), "failed");
    assert_string_equal(qa_program_outcome(&q, "unclear"), "error");
    assert_int_equal(json_array_size(json_object_get(qa_program_test(&q, "right"), "attempts")), 2);
    qa_program_run(&q, WORDS("--only", "right", "--quiet"));
    assert_int_equal(q.o.code, 0);
    free(added);
    free(text);
    free(before);
    qa_program_close(&q);
}

/* Freezes the sentence on line 3, and compares the text. */
static void freezes(const char *text, const char *sentence, const char *expected)
{
    const struct frozen f = {3, sentence, "press \"OK\""};
    char hash[SUITE_HASH];
    struct buf out, diff;
    struct err e = ERR_INIT;
    suite_sentence_hash(sentence, hash);
    buf_init(&out, 1 << 16);
    buf_init(&diff, 1 << 16);
    if (suite_freeze(text, &f, 1, &out, &diff, &e))
        fail_msg("%s", e.text);
    char *whole = xasprintf(expected, hash);
    assert_string_equal(out.data, whole);
    free(whole);
    buf_free(&out);
    buf_free(&diff);
}

static void t_layout(void **state)
{
    (void)state;
    freezes(
        "a:\n# b\n- do: |\n    one\n\n    # two\n\n- do: x\n", "one\n\n# two\n",
        "a:\n# b\n- do: |\n    one\n\n    # two\n  steps:\n    - \"press \\\"OK\\\"\"\n  steps_of: %s\n\n- "
        "do: x\n");
    freezes(
        "a:\n# b\n- do: one\n  steps:\n  - press Old\n  # why\n\n  steps_of: 1\n  # of x\n- do: x\n", "one",
        "a:\n# b\n- do: one\n  # why\n  steps:\n    - \"press \\\"OK\\\"\"\n  steps_of: %s\n  # of x\n- do: "
        "x\n");
}

static void t_others(void **state)
{
    struct qa_program q;
    struct stat st;
    (void)state;
    open_suite(
        &q,
        "tests:\n  - id: right\n" FORM(
            "Name") "    task:\n      - steps_of: 0123456789abcdef\n"
                    "        steps: [press \"Cancel\"]\n        do: Fill in the name Ana and press OK\n" PRINTS(
                        "Ana.*"));
    char *path = xvfb_place(&q.x, "suite.yaml"), *before = suite_now(&q);
    qa_program_run(&q, WORDS("--freeze", "--quiet"));
    char *text = suite_now(&q);
    assert_string_equal(text, before);
    assert_int_equal(q.o.code, ERR_USAGE);
    free(text);
    free(before);
    put_suite(&q,
              "suite: { name: t }\n"
              "tests:\n  - id: right\n" FORM("Name") "    task:\n      - do: Fill in the name Ana and press "
                                                     "OK\n" PRINTS("Ana.*"));
    assert_int_equal(chmod(path, 0644), 0);
    qa_program_run(&q, WORDS("--freeze", "--quiet"));
    text = suite_now(&q);
    has(text, "steps_of");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    free(text);
    free(path);
    qa_program_close(&q);
}

#define FROZEN(label)                                                                                        \
    "tests:\n"                                                                                               \
    "  - id: right\n" FORM(label) "    task:\n"                                                              \
                                  "      - do: Enter \"Ana\" as the name and press OK\n"                     \
                                  "        steps:\n"                                                         \
                                  "          - enter \"Ana\" into \"Name\"\n"                                \
                                  "          - press \"OK\"\n" PRINTS("Ana.*")

static void t_changed(void **state)
{
    struct qa_program q;
    (void)state;
    open_suite(&q, FROZEN("Name"));
    qa_program_run(&q, WORDS("--freeze", "--quiet"));
    char *text = suite_now(&q);
    assert_null(strstr(text, "steps_of")); /* the steps were found: nothing is planned or written */
    assert_int_equal(q.o.code, 0);
    free(text);
    put_suite(&q, "suite: { name: t }\n" FROZEN("'Full name'"));
    qa_program_run(&q, WORDS("--quiet"));
    assert_string_equal(qa_program_outcome(&q, "right"), "failed"); /* not planned without --freeze */
    qa_program_run(&q, WORDS("--freeze"));
    text = suite_now(&q);
    has(q.o.err, "re-planned   right, line");
    has(text, "        steps:\n          - \"enter \\\"Ana\\\" into \\\"Full name\\\"\"\n"
              "          - \"press \\\"OK\\\"\"\n        steps_of: ");
    free(text);
    qa_program_close(&q);
}

static void t_refused(void **state)
{
    struct qa_program q;
    (void)state;
    open_suite(&q, "tests:\n  - id: a\n    task:\n      - do: order a shirt\n        steps_of: "
                   "0123456789abcdef\n");
    qa_program_run(&q, WORDS("--quiet"));
    ONE_LINE(&q.o, ERR_USAGE, "suite.yaml:", "key 'steps_of': expected the key steps beside it");
    qa_program_close(&q);
}

static const struct CMUnitTest tests[] = {
    CLAIM("steps are written after two passes, and for no test that fails", t_written),
    CLAIM("empty lines of a sentence and comments between its steps stay", t_layout),
    CLAIM("a suite keeps its mode, and is not written if a line is not where it is expected", t_others),
    CLAIM("steps that find no element are planned again, with their own word", t_changed),
    CLAIM("steps_of without steps is refused in one line", t_refused),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
