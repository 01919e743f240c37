/* t_qa_looks.c - tests of checks without the suite's model (the clipboard, the accessibility tree, text
 * recognized by the embedded model), and of the conditions that a test waits for before its agent starts.
 */
#include "check.h"
#include "qa_program.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/image.h"
#include "screen/screen.h"

static const json_t *check_at(const struct qa_program *q, const char *id, size_t i)
{
    const json_t *attempt = json_array_get(json_object_get(qa_program_test(q, id), "attempts"), 0);
    const json_t *check = json_array_get(json_object_get(attempt, "checks"), i);
    if (!check)
        fail_msg("%s has no check %zu: %s", id, i, field_text(qa_program_test(q, id), "why"));
    return check;
}

static void answers(const struct qa_program *q, const char *id, size_t i, const char *answer,
                    const char *says)
{
    const json_t *c = check_at(q, id, i);
    if (strcmp(field_text(c, "answer"), answer) != 0 || !strstr(field_text(c, "detail"), says))
        fail_msg("check %zu of %s: %s, %s", i, id, field_text(c, "answer"), field_text(c, "detail"));
}

static void start(struct qa_program *q, const char *tests, const char *const *ids)
{
    qa_program_open(q);
    qa_program_suite(q, tests);
    for (; *ids; ids++)
        qa_program_reply(q, *ids, ANSWER("Done."));
}

static void t_clipboard(void **state)
{
    struct qa_program q;
    if (!program_exists("xclip"))
        skip();
    start(
        &q,
        "tests:\n  - id: some\n    task: Look.\n    setup: [\"printf 'two words' | xclip -selection clipboard\", "
        "\"head -c 900000 /dev/zero | tr '\\\\0' a | xclip -selection primary\"]\n    checks:\n"
        "      - { kind: clipboard, match: ^two words$ }\n"
        "      - { kind: clipboard, match: '^(?:a{1000}){900}$', selection: primary }\n"
        "      - { kind: clipboard, match: three, absent: yes }\n"
        "      - { kind: clipboard, match: three, seconds: 0.5 }\n"
        "  - id: empty\n    task: Look.\n    checks:\n"
        "      - { kind: clipboard, match: ., seconds: 0.5 }\n"
        "      - { kind: clipboard, match: ., absent: yes }\n",
        WORDS("some", "empty"));
    qa_program_run(&q, WORDS("--jobs", "2", "--quiet"));
    answers(&q, "some", 0, "yes", "got 9 bytes: 'two words'");
    answers(&q, "some", 1, "yes", "got 900000 bytes");
    answers(&q, "some", 2, "yes", "CLIPBOARD not to match");
    answers(&q, "some", 3, "no", "got 9 bytes");
    answers(&q, "empty", 0, "no", "it contains no text");
    answers(&q, "empty", 1, "yes", "it contains no text");
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

static void t_elements(void **state)
{
    struct qa_program q;
    if (!zenity_fits() || !program_exists("dbus-daemon") || !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    start(&q,
          "tests:\n  - id: tree\n    task: Look.\n"
          "    start: zenity --question --title=Ask --text='Delete all files?'\n    window: ^Ask$\n"
          "    wait_until: { kind: element, role: push button, name: ^Yes$ }\n    checks:\n"
          "      - { kind: element, role: push button, name: ^No$, window: ^Ask$, state: focusable }\n"
          "      - { kind: element, role: label, name: Delete all }\n"
          "      - { kind: element, name: ^Cancel$, absent: yes }\n"
          "      - { kind: element, role: check box, name: ^Yes$, seconds: 0 }\n"
          "      - { kind: element, role: ^button$, name: ^Yes$ }\n" /* the role in newer versions */
          "  - id: off\n    task: Look.\n    elements: no\n    checks:\n"
          "      - { kind: shell, run: 'test -z \"$DBUS_SESSION_BUS_ADDRESS$GTK_A11Y\"' }\n"
          "  - id: silent\n    task: Look.\n    checks:\n"
          "      - { kind: element, name: ^Cancel$, absent: yes, seconds: 0 }\n",
          WORDS("tree", "off", "silent"));
    qa_program_run(&q, WORDS("--jobs", "2", "--quiet"));
    answers(&q, "tree", 0, "yes", "there is push button 'No' in 'Ask'");
    answers(&q, "tree", 1, "yes", "label 'Delete all files?'");
    answers(&q, "tree", 2, "yes", "there is none among ");
    answers(&q, "tree", 3, "no", "the name is there with another role or state");
    answers(&q, "tree", 4, "yes", "push button 'Yes'");
    answers(&q, "off", 0, "yes", "");
    answers(&q, "silent", 0, "error", "no program on the desktop publishes its elements");
    assert_int_equal(qa_program_remains(&q), 0); /* the session bus ends with its desktop */
    qa_program_close(&q);
}

static void t_reading(void **state)
{
    struct qa_program q;
    char *form = realpath(helper_path("form"), NULL);
    if (!form)
        skip();
    char *tests = xasprintf("  display: xvfb:640x480\n  wm: ''\n"
                            "  start: exec '%s' 'dialog.html?seed=1&kind=buttons&labels=Tippom%%7CDonkey'\n"
                            "  window: ^DIALOG\ntests:\n  - id: read\n    task: Look.\n    checks:\n"
                            "      - { kind: text, by: reading, text: Tippom }\n"
                            "  - id: gone\n    task: Look.\n    checks:\n"
                            "      - { kind: text, by: reading, text: Girtrichia }\n"
                            "      - { kind: text, by: reading, text: Girtrichia, absent: yes }\n",
                            form);
    qa_program_open(&q);
    char *whole = xasprintf("suite:\n  name: quality\n%s", tests);
    free(xvfb_put(&q.x, "suite.yaml", whole));
    qa_program_reply(&q, "read", ANSWER("Done."));
    qa_program_reply(&q, "gone", ANSWER("Done."));
    qa_program_run(&q, WORDS("--jobs", "2", "--quiet"));
    answers(&q, "read", 0, "yes", "the embedded model reads: ");
    assert_string_equal(field_text(check_at(&q, "read", 0), "by"), "the embedded model's reading");
    assert_string_equal(qa_program_outcome(&q, "read"), "passed");
    assert_true(json_is_true(json_object_get(qa_program_test(&q, "read"), "judged")));
    answers(&q, "gone", 0, "unknown", ""); /* unrecognized text may still be there */
    answers(&q, "gone", 1, "unknown", "");
    assert_string_equal(qa_program_outcome(&q, "gone"), "inconclusive");
    check_note("%s", field_text(check_at(&q, "gone", 0), "detail"));
    free(form), free(tests), free(whole);
    qa_program_close(&q);
}

static void t_wait(void **state)
{
    struct qa_program q;
    start(&q,
          "tests:\n  - id: late\n    task: Look.\n    setup: ['(sleep 1; touch \"$HOME/ready\") &']\n"
          "    wait_until:\n      - { kind: file, path: ready }\n      - { kind: window, title: ^client$ }\n"
          "    checks: [{ kind: shell, run: 'test -e \"$HOME/ready\"' }]\n"
          "  - id: never\n    task: Look.\n    wait_until: { kind: window, title: ^other$, seconds: 1 }\n"
          "    checks: [{ kind: shell, run: 'true' }]\n",
          WORDS("late", "never"));
    qa_program_run(&q, WORDS("--jobs", "2", "--quiet"));
    assert_string_equal(qa_program_outcome(&q, "late"), "passed");
    assert_string_equal(qa_program_outcome(&q, "never"), "error");
    const char *reason = field_text(qa_program_test(&q, "never"), "why");
    if (!strstr(reason, "until window: ^other$: expected a window titled '^other$', there is 'client'"))
        fail_msg("%s", reason);
    qa_program_close(&q);
}

/* Uses `holorun wait` as a step of a script. */
static void t_wait_command(void **state)
{
    struct xvfb x;
    OUTCOME(o);
    if (xvfb_start(&x, "640x480x24", NULL))
        skip();
    char *form = realpath(helper_path("form"), NULL), *png = xvfb_place(&x, "screen.png");
    if (!form)
        skip();
    pid_t late =
        program_start(&x, WORDS("wait", "--window", "^DIALOG", "--text", "Tippom", "--seconds", "30"));
    clock_sleep_ms(500); /* the window opens after the wait has started */
    xvfb_spawn(&x, "form.log",
               (const char *const[]){form, "dialog.html?seed=1&kind=buttons&labels=Tippom%7CDonkey", NULL});
    program_finish(&x, late, &o);
    if (o.code)
        fail_msg("%d: %s", o.code, o.err);
    struct screen *s = screen_open(&(const struct screen_options){.display = NULL}, NULL);
    struct image now = {0};
    assert_non_null(s);
    assert_int_equal(screen_capture(s, &now, NULL) || image_write_png(&now, png, NULL), 0);
    image_free(&now);
    screen_close(s);
    program_run(&x, &o, WORDS("wait", "--region", png, "--area", "0,0,640,480"));
    assert_int_equal(o.code, 0);
    program_run(&x, &o, WORDS("wait", "--window", "^Other$", "--seconds", "0.3"));
    ONE_LINE(&o, ERR_TIME, "until window: expected a window titled '^Other$', there is 'DIALOG");
    program_run(&x, &o, WORDS("wait", "--window", "DIALOG", "--absent", "--seconds", "0.3"));
    ONE_LINE(&o, ERR_TIME, "expected no window titled 'DIALOG'");
    program_run(&x, &o, WORDS("wait", "--region", "/no/such.png", "--seconds", "0.3"));
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.err, "cannot open '/no/such.png'"));
    static const char *const options[] = {"--window", "--class"};
    for (size_t i = 0; i < 2; i++) {
        program_run(&x, &o, WORDS("wait", options[i], "(", "--seconds", "30"));
        assert_int_equal(o.code, ERR_USAGE);
        assert_non_null(strstr(o.err, "missing closing parenthesis at character 2 of '('"));
    }
    program_run(&x, &o, WORDS("wait", "--area", "1,2,3", "--region", png));
    assert_int_equal(o.code, ERR_USAGE);
    free(form), free(png);
    xvfb_stop(&x);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the clipboard and the primary selection are checked, whole and in parts", t_clipboard),
    CLAIM("elements in the accessibility tree are found by role, name, window and state", t_elements),
    CLAIM("a text that the embedded model recognizes is present, one that it does not is undecided",
          t_reading),
    CLAIM("a script waits for a window, an image or a text on the screen", t_wait_command),
    CLAIM("a test waits for windows, files or elements before its agent starts", t_wait),
};

CHECK_MAIN()
