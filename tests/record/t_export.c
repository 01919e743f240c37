/* t_export.c - tests export formats of other projects: their documented fields are present and correct,
 * exported actions are read back by our parsers, and no file is readable by others.
 */
#include "exported.h"

#include "check.h"

#include "actions/action.h"
#include "actions/dialect.h"
#include "base/file.h"
#include "replay/export.h"

/* Checks that an action in the words of a dialect parses as that kind. */
static void reads_back(const char *dialect, const char *text, const char *kind)
{
    struct dialect *d = dialect_load(dialect, NULL);
    struct step s = {0};
    struct err e = ERR_INIT;
    if (action_parse(text, strlen(text), d, 640, 480, &s, &e) != FAULT_NONE)
        fail_msg("'%s' is not %s: %s", text, dialect, e.text);
    bool found = !kind;
    for (int i = 0; i < s.nactions; i++)
        found = found || !strcmp(action_kind_name(s.actions[i].kind), kind);
    if (!found)
        fail_msg("'%s' in %s is not '%s'", text, dialect, kind);
    step_free(&s);
    dialect_free(d);
}

static void t_osworld(void **state)
{
    char *to = exported_as("osworld", "--reward=1"), *text;
    json_t *list = exported_lines(to, "traj.jsonl"), *one;
    size_t i, len, n = json_array_size(list);
    assert_true(n >= 4);
    json_array_foreach(list, i, one)
    {
        exported_has(
            one,
            "i:step_num s:action_timestamp s:action s:response f:reward b:done o:info S:screenshot_file");
        const char *when = field_text(one, "action_timestamp");
        assert_true(strlen(when) == 15 && when[8] == '@' && strspn(when, "0123456789") == 8);
        assert_int_equal(field_bool(one, "done"), i + 1 == n);
        assert_true(field_number(one, "reward") == (i + 1 == n ? 1 : 0));
        reads_back("pyautogui", field_text(one, "action"), NULL);
        const char *name = field_text(one, "screenshot_file");
        if (*name) {
            char *want = xasprintf("step_%d_%s.png", (int)field_int(one, "step_num"), when),
                 *path = xasprintf("%s/%s", to, name);
            struct image im;
            assert_string_equal(name, want);
            assert_int_equal(image_read_png(&im, path, NULL), 0);
            image_free(&im);
            free(want);
            free(path);
        }
    }
    static const char *const files[][2] = {
        {"instruction.txt", "Book the 9:40 flight from Paris to Rome on 12 May for Ana Lima"},
        {"result.txt", "1\n"}};
    for (int k = 0; k < 2; k++) {
        char *path = xasprintf("%s/%s", to, files[k][0]);
        assert_int_equal(file_read(path, 1000, &text, &len, NULL), 0);
        assert_string_equal(text, files[k][1]);
        free(text);
        free(path);
    }
    char *first = xasprintf("%s/step_0.png", to);
    assert_true(file_exists(first));
    exported_private(to);
    free(first);
    json_decref(list);
    free(to);
}

static void t_words(void **state)
{
    static const struct {
        const char *action, *python, *kind;
    } cases[] = {
        {"{\"kind\": \"click\", \"x\": 5, \"y\": 6, \"button\": \"right\", \"count\": 1}",
         "pyautogui.click(x=5, y=6, button=\"right\")", "click"},
        {"{\"kind\": \"click\", \"x\": 5, \"y\": 6, \"button\": \"left\", \"count\": 2}",
         "pyautogui.doubleClick(x=5, y=6, button=\"left\")", "click"},
        {"{\"kind\": \"type\", \"text\": \"it's \\\"q\\\"\", \"press_enter\": true, \"overwrite\": false}",
         "pyautogui.write(\"it's \\\"q\\\"\"); pyautogui.press(\"enter\")", "type"},
        {"{\"kind\": \"key\", \"keys\": [\"Control_L\", \"c\"], \"count\": 1}",
         "pyautogui.hotkey(\"ctrl\", \"c\")", "key"},
        {"{\"kind\": \"scroll\", \"x\": 9, \"y\": 8, \"dx\": 0, \"dy\": 3}",
         "pyautogui.moveTo(9, 8); pyautogui.scroll(-3)", "scroll"},
        {"{\"kind\": \"drag\", \"x\": 1, \"y\": 2, \"x2\": 30, \"y2\": 40, \"button\": \"left\"}",
         "pyautogui.moveTo(1, 2); pyautogui.dragTo(30, 40, duration=0.5, button=\"left\")", "drag"},
        {"{\"kind\": \"mouse_down\", \"button\": \"left\"}", "pyautogui.mouseDown(button=\"left\")",
         "mouse_down"},
        {"{\"kind\": \"mouse_up\", \"x\": 7, \"y\": 8, \"button\": \"right\"}",
         "pyautogui.mouseUp(x=7, y=8, button=\"right\")", "mouse_up"},
        {"{\"kind\": \"key_down\", \"keys\": [\"Shift_L\"]}", "pyautogui.keyDown(\"shift\")", "key_down"},
        {"{\"kind\": \"key_up\", \"keys\": [\"Shift_L\"]}", "pyautogui.keyUp(\"shift\")", "key_up"},
        {"{\"kind\": \"hold_and_tap\", \"keys\": [\"Control_L\", \"a\", \"c\"], \"nhold\": 1}",
         "pyautogui.keyDown(\"ctrl\"); pyautogui.press(\"a\"); pyautogui.press(\"c\"); "
         "pyautogui.keyUp(\"ctrl\")",
         "key_down"},
        {"{\"kind\": \"wait\", \"ms\": 1500}", "time.sleep(1.5)", "wait"},
        {"{\"kind\": \"answer\", \"text\": \"Done.\"}", "DONE", "answer"},
        {"{\"kind\": \"infeasible\", \"text\": \"No.\"}", "FAIL", "infeasible"},
        {"{\"kind\": \"goto\", \"text\": \"a.example\"}",
         "pyautogui.hotkey(\"ctrl\", \"l\"); pyautogui.write(\"a.example\"); pyautogui.press(\"enter\")",
         "key"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *action = json_loads(cases[i].action, 0, NULL);
        char *python = export_python(action);
        assert_string_equal(python, cases[i].python);
        reads_back("pyautogui", python, cases[i].kind);
        json_decref(action);
        free(python);
    }
}

static void t_default(void **state)
{
    struct outcome o = {0};
    exported_run();
    program_run(exported_display(), &o, WORDS("export", exported_run()));
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "/export-osworld\n"));
    outcome_free(&o);
}

static void t_refused(void **state)
{
    struct outcome o = {0};
    exported_run();
    program_run(exported_display(), &o,
                WORDS("export", exported_run(), "--format", "rl", "-o", "/proc/nowhere"));
    ONE_LINE(&o, ERR_ENV, "/proc/nowhere");
    program_run(exported_display(), &o, WORDS("export", exported_run(), "--format", "holo"));
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.err, "--format must be one of osworld|rl|verl|atif, not 'holo'\n"));
    outcome_free(&o);
}

static const struct CMUnitTest tests[] = {
    CLAIM("osworld: traj.jsonl with its fields, screenshots by name, texts", t_osworld),
    CLAIM("exported pyautogui calls are read back as actions of the same kind", t_words),
    CLAIM("the default format is osworld", t_default),
    CLAIM("an unwritable place or an unknown format: one line", t_refused),
};

CHECK_MAIN()
