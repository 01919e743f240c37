/* t_qa_steps.c - tasks in steps in `holorun qa`, on zenity's dialogs and without a model; zenity's own output
 * is the judge. */
#include "check.h"
#include "qa_program.h"

#include "base/file.h"
#include "base/image.h"
#include "qa/suite/suite.h"

#include <unistd.h>

/* A dialog with the fields Name and City, whose output goes to ID.txt. */
#define FORM                                                                                                 \
    "    start: zenity --forms --title=Order --add-entry=Name --add-entry=City >\"$OUT/{id}.txt\"\n"         \
    "    window: ^Order$\n"

/* Opens a suite of tests. No model can be opened: a test that asks for one fails. */
static void open_suite(struct qa_program *q, const char *tests)
{
    if (!zenity_fits() || !program_exists("dbus-daemon") || !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    qa_program_open(q);
    qa_program_suite(q, tests);
    q->model = "/nonexistent/model";
}

/* Returns what a program wrote into a file of the test's folder, "" if nothing; the caller frees it. */
static char *printed(const struct qa_program *q, const char *name)
{
    char *path = xvfb_place(&q->x, name), *text = NULL;
    size_t n;
    if (file_read(path, 1 << 20, &text, &n, NULL))
        text = xstrdup("");
    free(path);
    return text;
}

static void says(const struct qa_program *q, const char *name, const char *expected)
{
    char *text = printed(q, name);
    if (strcmp(text, expected) != 0)
        fail_msg("%s: '%s', expected '%s'\n%s%s", name, text, expected, q->o.out, q->o.err);
    free(text);
}

static void contains(const struct qa_program *q, const char *name, const char *const *parts)
{
    char *text = printed(q, name);
    for (; *parts; parts++)
        if (!strstr(text, *parts))
            fail_msg("%s lacks '%s': %s", name, *parts, text);
    free(text);
}

static const char *text_of(const struct qa_program *q, const char *id, const char *key)
{
    return field_text(qa_program_test(q, id), key);
}

/* ---- what steps do ------------------------------------------------------------------------------- */

static const char dialogs[] =
    "  env: { OUT: \"{dir}\" }\n"
    "tests:\n"
    "  - id: forms\n"
    "    start: zenity --forms --title=Order --add-entry=Name --add-combo=Size --combo-values='Small|Large'"
    " >\"$OUT/forms.txt\"\n"
    "    window: ^Order$\n"
    "    task:\n"
    "      - fill: { Name: \"a > b & 'c' ... \\\"d\\\", then press Cancel\" }\n"
    "      - choose: { Size: Large }\n"
    "      - check: 'Size equals Large'\n"
    "      - press: OK\n"
    "  - id: list\n"
    "    start: zenity --list --checklist --title=Fruit --column=Pick --column=Fruit FALSE Apple TRUE Pear "
    "FALSE \"Plum, then press Cancel\" FALSE Fig >\"$OUT/list.txt\"\n"
    "    window: ^Fruit$\n"
    "    vars: { plum: 'Plum, then press Cancel' }\n"
    "    task:\n"
    "      - tick: [Apple, '{plum}']\n"
    "      - untick: Pear\n"
    "      - check: '{plum} is ticked'\n"
    "      - do: check that Pear is unticked, then press OK\n"
    "  - id: keys\n"
    "    start: zenity --entry --title=Entry --text=City >\"$OUT/keys.txt\"\n"
    "    window: ^Entry$\n"
    "    task:\n"
    "      - wait: City\n"
    "      - type: Lisbon\n"
    "      - keys: [ctrl+a, Delete]\n"
    "      - type: Rome\n"
    "      - keys: Enter\n"
    "      - wait: Entry is gone\n";

static void t_dialogs(void **state)
{
    struct qa_program q;
    (void)state;
    open_suite(&q, dialogs);
    qa_program_run(&q, WORDS("--quiet"));
    says(&q, "forms.txt", "a > b & 'c' ... \"d\", then press Cancel|Large\n");
    says(&q, "list.txt", "Apple|Plum, then press Cancel\n");
    says(&q, "keys.txt", "Rome\n");
    if (q.o.code)
        fail_msg("exit %d: %s; %s; %s", q.o.code, text_of(&q, "forms", "why"), text_of(&q, "list", "why"),
                 text_of(&q, "keys", "why"));
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

/* Names reach the dialog as they are, whatever a sentence would make of them. */
static const char odd[] = "  env: { OUT: \"{dir}\" }\n"
                          "tests:\n"
                          "  - id: button\n"
                          "    start: zenity --question --title=Odd --no-markup --text=x --ok-label=\"$ODD\""
                          " --cancel-label=No && echo pressed >\"$OUT/odd.txt\"\n"
                          "    env: { ODD: \"Say \\\"hi\\\" & 'bye' > ...\" }\n"
                          "    window: ^Odd$\n"
                          "    task:\n"
                          "      - check: '\"Say \\\"hi\\\" & ''bye'' > ...\" is enabled'\n"
                          "      - press: \"Say \\\"hi\\\" & 'bye' > ...\"\n"
                          "      - wait: Odd is gone\n";

static void t_odd(void **state)
{
    struct qa_program q;
    (void)state;
    open_suite(&q, odd);
    qa_program_run(&q, WORDS("--quiet"));
    says(&q, "odd.txt", "pressed\n");
    assert_string_equal(qa_program_outcome(&q, "button"), "passed");
    contains(&q, "out.d/results.json", WORDS("pressed 'Say \\\"hi\\\" & 'bye' > ...'; the window closed"));
    qa_program_close(&q);
}

/* The items of an open menu are in a window of their own. */
static const char menus[] = "  env: { OUT: \"{dir}\" }\n"
                            "tests:\n"
                            "  - id: menu\n"
                            "    start: exec l3afpad \"$OUT/menu.txt\"\n"
                            "    window: menu.txt\n"
                            "    task:\n"
                            "      - type: milk and bread\n"
                            "      - menu: File > Save\n"
                            "      - menu: Help > About\n"
                            "      - press: Close\n"
                            "      - check: Close is gone\n";

static void t_menus(void **state)
{
    struct qa_program q;
    (void)state;
    open_suite(&q, menus);
    if (!program_exists("l3afpad"))
        skip();
    qa_program_run(&q, WORDS("--quiet"));
    char *text = printed(&q, "menu.txt");
    if (strncmp(text, "milk and bread", 14) != 0 || strcmp(qa_program_outcome(&q, "menu"), "passed") != 0)
        fail_msg("'%s': %s", text, text_of(&q, "menu", "why"));
    free(text);
    qa_program_close(&q);
}

/* ---- failures ------------------------------------------------------------------------------------ */

static const char failures[] = "  env: { OUT: \"{dir}\" }\n"
                               "tests:\n"
                               "  - id: missing\n" FORM "    task:\n"
                               "      - fill: { Name: Ana }\n"
                               "      - press: Okey\n"
                               "      - press: OK\n"
                               "  - id: differs\n" FORM "    task:\n"
                               "      - fill: { Name: Ana }\n"
                               "      - check: { Name: Bob }\n"
                               "  - id: undescribed\n"
                               "    start: xterm -title Order\n"
                               "    window: ^Order$\n"
                               "    task: [{ press: OK }]\n"
                               "  - id: unchecked\n" FORM "    task: [{ press: OK }]\n";

static void t_missing(void **state)
{
    struct qa_program q;
    (void)state;
    open_suite(&q, failures);
    qa_program_run(&q, WORDS("--quiet", "--only", "missing", "--only", "differs", "--jobs", "2"));
    assert_int_equal(q.o.code, ERR_FAILED);
    assert_string_equal(qa_program_outcome(&q, "missing"), "failed");
    assert_string_equal(text_of(&q, "missing", "kind"), "step:not found");
    const char *reason = text_of(&q, "missing", "why");
    for (const char *const *part =
             WORDS("suite.yaml:14: step 2 of 3, press \"Okey\": 'Okey' is not on the screen",
                   "nearest: push button \"OK\"");
         *part; part++)
        if (!strstr(reason, *part))
            fail_msg("'%s' lacks '%s'", reason, *part);
    says(&q, "missing.txt", "");
    assert_string_equal(qa_program_outcome(&q, "differs"), "failed");
    assert_string_equal(text_of(&q, "differs", "kind"), "step:failed");
    assert_non_null(strstr(text_of(&q, "differs", "why"), "'Name' contains 'Ana'"));
    qa_program_close(&q);
}

static void t_undescribed(void **state)
{
    struct qa_program q;
    (void)state;
    open_suite(&q, failures);
    if (!program_exists("xterm"))
        skip();
    qa_program_run(&q, WORDS("--quiet", "--only", "un*"));
    assert_string_equal(qa_program_outcome(&q, "undescribed"), "error");
    assert_string_equal(text_of(&q, "undescribed", "kind"), "elements");
    assert_string_equal(qa_program_outcome(&q, "unchecked"), "claimed");
    assert_int_equal(q.o.code, ERR_ENV);
    qa_program_close(&q);
}

static void t_refused(void **state)
{
    struct qa_program q;
    char *text;
    (void)state;
    open_suite(&q, failures);
    qa_program_run(&q, WORDS("--only", "missing", "--no-elements"));
    ONE_LINE(&q.o, ERR_USAGE, "suite.yaml:9: test 'missing'", "need the elements of programs",
             "--no-elements");
    qa_program_suite(&q, "tests:\n  - id: a\n    elements: no\n    task: [{ press: OK }]\n");
    qa_program_run(&q, WORDS("--quiet"));
    ONE_LINE(&q.o, ERR_USAGE, "suite.yaml:8: test 'a'", "elements: no");
    qa_program_suite(&q,
                     "tests:\n  - id: a\n    task:\n      - do: order a shirt\n        steps: [press OK]\n"
                     "        steps_of: 0123456789abcdef\n");
    qa_program_run(&q, WORDS("--quiet"));
    char hash[SUITE_HASH];
    suite_sentence_hash("order  a\nshirt", hash);
    ONE_LINE(&q.o, ERR_USAGE, "suite.yaml:8: test 'a': line 12: the steps were made for another sentence",
             hash);
    text = printed(&q, "out.d/results.json");
    assert_string_equal(text, ""); /* nothing was started */
    free(text);
    qa_program_close(&q);
}

/* ---- sentences ----------------------------------------------------------------------------------- */

/* A sentence with steps, one that is understood, and one that only a model can perform. */
static const char sentences[] = "  env: { OUT: \"{dir}\" }\n"
                                "tests:\n"
                                "  - id: frozen\n" FORM "    task:\n"
                                "      - do: order something for Ana\n"
                                "        steps: [enter Ana into Name, enter Rome into City]\n"
                                "      - check: { Name: Ana }\n"
                                "      - do: press OK\n"
                                "  - id: mixed\n" FORM "    task:\n"
                                "      - fill: { Name: Ana }\n"
                                "      - do: make the order as good as you can\n"
                                "      - check: { Name: Ana }\n"
                                "      - press: OK\n";

static void t_sentences(void **state)
{
    struct qa_program q;
    (void)state;
    open_suite(&q, sentences);
    qa_program_run(&q, WORDS("--quiet", "--only", "frozen"));
    says(&q, "frozen.txt", "Ana|Rome\n");
    assert_string_equal(qa_program_outcome(&q, "frozen"), "passed");
    qa_program_run(&q, WORDS("--quiet", "--only", "mixed"));
    assert_int_not_equal(q.o.code, 0); /* the model is missing */
    q.model = NULL;
    qa_program_reply(&q, "mixed", WAIT(0.1) ANSWER("It is good."));
    qa_program_run(&q, WORDS("--quiet", "--only", "mixed"));
    says(&q, "mixed.txt", "Ana|\n");
    assert_string_equal(qa_program_outcome(&q, "mixed"), "passed");
    contains(&q, "out.d/results.json",
             WORDS("It is good.\", \"proof\": false", "pressed 'OK'; the window closed"));
    qa_program_close(&q);
}

/* ---- reports and secrets ------------------------------------------------------------------------- */

static void t_reports(void **state)
{
    struct qa_program q;
    (void)state;
    open_suite(
        &q, "  env: { OUT: \"{dir}\" }\n"
            "tests:\n"
            "  - id: sign-in\n"
            "    start: zenity --forms --title=Sign --add-entry=Name --add-password=PIN >\"$OUT/pin.txt\"\n"
            "    window: ^Sign$\n"
            "    secrets: [PIN=env:QA_STEPS_PIN]\n"
            "    task:\n"
            "      - fill: { Name: Ana, PIN: \"{{PIN}}\" }\n"
            "      - check: OK is enabled\n"
            "      - press: OK\n");
    setenv("QA_STEPS_PIN", "sesame-4711", 1);
    qa_program_run(&q, WORDS("--quiet"));
    unsetenv("QA_STEPS_PIN");
    says(&q, "pin.txt", "Ana|sesame-4711\n");
    assert_string_equal(qa_program_outcome(&q, "sign-in"), "passed");
    contains(&q, "out.d/junit.xml",
             WORDS("step: line 14: enter &quot;{{PIN}}&quot; into &quot;PIN&quot;: done",
                   "step: line 15: check that &quot;OK&quot; is enabled: done; &#39;OK&#39; is enabled",
                   "step: line 16: press &quot;OK&quot;: done; pressed &#39;OK&#39;"));
    contains(&q, "out.d/report.html", WORDS("<b>press &quot;OK&quot;</b>", "pressed &#39;OK&#39;"));
    for (const char *const *name = WORDS("out.d/junit.xml", "out.d/report.html", "out.d/results.json"); *name;
         name++) {
        char *text = printed(&q, *name);
        assert_null(strstr(text, "sesame"));
        free(text);
    }
    qa_program_close(&q);
}

/* A model takes over while the secret is on the screen: its screenshot must not depend on the secret. */
static void t_covered(void **state)
{
    static const char *const pins[] = {"1734905", "9043517"}; /* of the same width */
    struct image seen[2] = {{0}};
    struct qa_program q;
    (void)state;
    open_suite(&q, "  env: { OUT: \"{dir}\" }\n"
                   "tests:\n"
                   "  - id: shared\n" FORM "    secrets: [PIN=env:QA_STEPS_PIN]\n"
                   "    task:\n"
                   "      - fill: { Name: \"{{PIN}}\" }\n"
                   "      - do: make the order as good as you can\n");
    q.model = NULL;
    qa_program_reply(&q, "shared", WAIT(0.1) ANSWER("It is good."));
    for (int i = 0; i < 2; i++) {
        struct err e = ERR_INIT;
        setenv("QA_STEPS_PIN", pins[i], 1);
        qa_program_run(&q, WORDS("--quiet"));
        unsetenv("QA_STEPS_PIN");
        const json_t *attempts = json_object_get(qa_program_test(&q, "shared"), "attempts");
        char *path = xasprintf("%s/frames/000000.png", field_text(json_array_get(attempts, 0), "run"));
        if (image_read_png(&seen[i], path, &e))
            fail_msg("%s", e.text);
        free(path);
    }
    assert_true(image_equal(&seen[0], &seen[1]));
    image_free(&seen[0]);
    image_free(&seen[1]);
    qa_program_close(&q);
}

/* ---- the documentation --------------------------------------------------------------------------- */

/* Copies the indented block that begins with "  suite:", without its indentation; the caller frees it. */
static char *example_in(const char *help)
{
    struct buf b;
    const char *at = strstr(help, "  suite:\n");
    assert_non_null(at);
    buf_init(&b, 1 << 16);
    for (size_t n; (n = strcspn(at, "\n")) && !strncmp(at, "  ", 2); at += n + 1) {
        buf_put(&b, at + 2, n - 2);
        buf_putc(&b, '\n');
    }
    return buf_take(&b);
}

static void t_example(void **state)
{
    struct qa_program q;
    OUTCOME(o);
    (void)state;
    open_suite(&q, "");
    program_run(&q.x, &o, WORDS("help", "steps"));
    char *suite = example_in(o.out), *path = xvfb_put(&q.x, "suite.yaml", suite);
    qa_program_run(&q, WORDS("--quiet"));
    if (q.o.code)
        fail_msg("exit %d\n%s\n%s", q.o.code, q.o.err, suite);
    assert_string_equal(qa_program_outcome(&q, "shirt"), "passed");
    free(path);
    free(suite);
    qa_program_close(&q);
}

static const struct CMUnitTest tests[] = {
    CLAIM("steps do in a dialog what they say, without a model", t_dialogs),
    CLAIM("a name with quotes and marks is pressed as it is", t_odd),
    CLAIM("an item of an open menu is pressed", t_menus),
    CLAIM("a step that fails names itself, its line and the nearest names", t_missing),
    CLAIM("a program without elements is an error, steps without a check are a claim", t_undescribed),
    CLAIM("steps without elements or of another sentence are refused in one line", t_refused),
    CLAIM("a sentence is performed by its steps, by its words, or by the model", t_sentences),
    CLAIM("reports show each step with its effect and no secret", t_reports),
    CLAIM("a model that continues after steps sees no secret that they typed", t_covered),
    CLAIM("the example of the help runs as it is printed", t_example),
};

CHECK_MAIN()
