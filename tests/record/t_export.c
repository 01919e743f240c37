/* t_export.c - claims about runs in the layouts of others: every field that these document is there and
 * means what it should, actions in their words are read back by our own parsers, and nothing is readable
 * by anybody else.
 */
#include "exported.h"

#include "check.h"

#include "actions/action.h"
#include "actions/dialect.h"
#include "base/file.h"
#include "replay/export.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

/* An action in the words of a dialect is that kind of action. */
static void reads_back(const char *dialect, const char *text, const char *kind)
{
    struct dialect *d = dialect_load(dialect, NULL);
    struct step s = {0};
    struct err e = ERR_INIT;
    if (action_parse(text, strlen(text), d, 640, 480, &s, &e) != FAULT_NONE)
        fail_msg("'%s' is no %s: %s", text, dialect, e.text);
    bool found = !kind;
    for (int i = 0; i < s.nactions; i++)
        found = found || !strcmp(action_kind_name(s.actions[i].kind), kind);
    if (!found)
        fail_msg("'%s' in %s is no '%s'", text, dialect, kind);
    step_free(&s);
    dialect_free(d);
}

static void t_osworld(void **state)
{
    (void)state;
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

static void t_holo(void **state)
{
    (void)state;
    char *to = exported_as("holo", NULL);
    json_t *list = exported_lines(to, "events.jsonl"), *line;
    size_t i;
    int seen = 0, said = 0, did = 0;
    json_array_foreach(list, i, line)
    {
        exported_has(line, "s:ts o:event");
        assert_int_equal(strlen(field_text(line, "ts")), 24);
        const json_t *event = json_object_get(line, "event");
        const char *kind = field_text(event, "kind");
        if (i == 0) {
            assert_string_equal(kind, "message_event");
            exported_has(event, "s:caller_id a:content");
        } else if (!strcmp(kind, "observation_event")) {
            const json_t *o = json_object_get(event, "observation"), *image = json_object_get(o, "image");
            exported_has(o, "o:image O:cursor_position o:viewport_size");
            exported_has(image, "s:type s:media_type s:source");
            assert_string_equal(field_text(image, "media_type"), "image/png");
            assert_int_equal(strncmp(field_text(image, "source"), "iVBORw0KGgo", 11), 0);
            assert_int_equal(field_int(json_object_get(o, "viewport_size"), "width"), 640);
            seen++;
        } else if (!strcmp(kind, "policy_event")) {
            exported_has(event, "s:content S:reasoning_content a:tool_reqs");
            exported_has(json_array_get(json_object_get(event, "tool_reqs"), 0), "s:id s:tool_name o:args");
            said++;
        } else if (!strcmp(kind, "tool_result")) {
            exported_has(event, "o:tool_req s:result");
            did++;
        } else if (!strcmp(kind, "answer_event")) {
            exported_has(event, "s:answer");
        } else {
            assert_string_equal(kind, "error_event");
            exported_has(event, "s:error s:origin");
        }
    }
    assert_true(seen >= 4 && said >= 4 && did >= 3);
    exported_private(to);
    json_decref(list);
    free(to);
}

static void t_uitars(void **state)
{
    (void)state;
    char *to = exported_as("uitars", NULL);
    json_t *all = json_load_file(to, 0, NULL), *turn;
    size_t i;
    int seen = 0, said = 0;
    exported_has(all,
                 "s:version s:instruction s:systemPrompt s:modelName s:status s:logTime a:conversations");
    json_array_foreach(json_object_get(all, "conversations"), i, turn)
    {
        exported_has(turn, "s:from s:value o:timing");
        exported_has(json_object_get(turn, "timing"), "i:start i:end i:cost");
        if (!strcmp(field_text(turn, "value"), "<image>")) {
            exported_has(turn, "s:screenshotBase64 o:screenshotContext");
            exported_has(json_object_get(turn, "screenshotContext"), "o:size s:mime f:scaleFactor");
            seen++;
        } else if (!strcmp(field_text(turn, "from"), "gpt")) {
            const json_t *parsed = json_array_get(json_object_get(turn, "predictionParsed"), 0);
            exported_has(parsed, "S:reflection s:thought s:action_type o:action_inputs");
            reads_back("uitars", field_text(turn, "value"), NULL);
            said++;
        }
    }
    assert_true(seen >= 4 && said >= 4);
    exported_private(to);
    json_decref(all);
    free(to);
}

static void t_words(void **state)
{
    (void)state;
    static const struct {
        const char *action, *python, *kind, *uitars, *uikind;
    } cases[] = {
        {"{\"kind\": \"click\", \"x\": 5, \"y\": 6, \"button\": \"right\", \"count\": 1}",
         "pyautogui.click(x=5, y=6, button=\"right\")", "click", "right_single(start_box='(5,6)')", "click"},
        {"{\"kind\": \"click\", \"x\": 5, \"y\": 6, \"button\": \"left\", \"count\": 2}",
         "pyautogui.doubleClick(x=5, y=6, button=\"left\")", "click", "left_double(start_box='(5,6)')",
         "click"},
        {"{\"kind\": \"type\", \"text\": \"it's \\\"q\\\"\", \"press_enter\": true, \"overwrite\": false}",
         "pyautogui.write(\"it's \\\"q\\\"\"); pyautogui.press(\"enter\")", "type",
         "type(content='it\\'s \"q\"\\n')", "type"},
        {"{\"kind\": \"key\", \"keys\": [\"Control_L\", \"c\"], \"count\": 1}",
         "pyautogui.hotkey(\"ctrl\", \"c\")", "key", "hotkey(key='ctrl c')", "key"},
        {"{\"kind\": \"scroll\", \"x\": 9, \"y\": 8, \"dx\": 0, \"dy\": 3}",
         "pyautogui.moveTo(9, 8); pyautogui.scroll(-3)", "scroll",
         "scroll(start_box='(9,8)', direction='down')", "scroll"},
        {"{\"kind\": \"drag\", \"x\": 1, \"y\": 2, \"x2\": 30, \"y2\": 40, \"button\": \"left\"}",
         "pyautogui.moveTo(1, 2); pyautogui.dragTo(30, 40, duration=0.5, button=\"left\")", "drag",
         "drag(start_box='(1,2)', end_box='(30,40)')", "drag"},
        {"{\"kind\": \"mouse_down\", \"button\": \"left\"}", "pyautogui.mouseDown(button=\"left\")",
         "mouse_down", NULL, NULL},
        {"{\"kind\": \"mouse_up\", \"x\": 7, \"y\": 8, \"button\": \"right\"}",
         "pyautogui.mouseUp(x=7, y=8, button=\"right\")", "mouse_up", NULL, NULL},
        {"{\"kind\": \"key_down\", \"keys\": [\"Shift_L\"]}", "pyautogui.keyDown(\"shift\")", "key_down",
         "press(key='shift')", "key_down"},
        {"{\"kind\": \"key_up\", \"keys\": [\"Shift_L\"]}", "pyautogui.keyUp(\"shift\")", "key_up",
         "release(key='shift')", "key_up"},
        {"{\"kind\": \"hold_and_tap\", \"keys\": [\"Control_L\", \"a\", \"c\"], \"nhold\": 1}",
         "pyautogui.keyDown(\"ctrl\"); pyautogui.press(\"a\"); pyautogui.press(\"c\"); "
         "pyautogui.keyUp(\"ctrl\")",
         "key_down", NULL, NULL},
        {"{\"kind\": \"wait\", \"ms\": 1500}", "time.sleep(1.5)", "wait", "wait()", "wait"},
        {"{\"kind\": \"answer\", \"text\": \"Done.\"}", "DONE", "answer", "finished(content='Done.')",
         "answer"},
        {"{\"kind\": \"infeasible\", \"text\": \"No.\"}", "FAIL", "infeasible", NULL, NULL},
        {"{\"kind\": \"goto\", \"text\": \"a.example\"}",
         "pyautogui.hotkey(\"ctrl\", \"l\"); pyautogui.write(\"a.example\"); pyautogui.press(\"enter\")",
         "key", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *action = json_loads(cases[i].action, 0, NULL), *inputs;
        const char *type;
        char *python = export_python(action), *uitars = export_uitars_action(action, &type, &inputs);
        assert_string_equal(python, cases[i].python);
        reads_back("pyautogui", python, cases[i].kind);
        if (cases[i].uitars) {
            char *text = xasprintf("Thought: so\nAction: %s", uitars);
            assert_string_equal(uitars, cases[i].uitars);
            reads_back("uitars", text, cases[i].uikind);
            free(text);
        }
        json_decref(inputs);
        json_decref(action);
        free(python);
        free(uitars);
    }
}

static void t_default(void **state)
{
    (void)state;
    struct outcome o = {0};
    exported_run();
    program_run(exported_display(), &o, WORDS("export", exported_run()));
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "/export-osworld\n"));
    char *path = xvfb_place(exported_display(), "run.json"), *text;
    size_t len;
    program_run(exported_display(), &o, WORDS("export", exported_run(), "-o", path));
    assert_int_equal(o.code, 0);
    assert_int_equal(file_read(path, 64 << 20, &text, &len, NULL), 0);
    assert_int_equal(*text, '{'); /* one object, as UI-TARS reads it */
    free(text);
    free(path);
    outcome_free(&o);
}

static void t_refused(void **state)
{
    (void)state;
    struct outcome o = {0};
    exported_run();
    program_run(exported_display(), &o,
                WORDS("export", exported_run(), "--format", "rl", "-o", "/proc/nowhere"));
    ONE_LINE(&o, ERR_ENV, "/proc/nowhere");
    outcome_free(&o);
}

static const struct CMUnitTest tests[] = {
    CLAIM("osworld: traj.jsonl with its fields, screenshots by name, texts", t_osworld),
    CLAIM("holo: events of the documented kinds with their fields", t_holo),
    CLAIM("uitars: one object, conversations that its own grammar reads", t_uitars),
    CLAIM("actions in the words of pyautogui and UI-TARS are read back as what they were", t_words),
    CLAIM("without a layout it is osworld, or uitars for a file that ends in .json", t_default),
    CLAIM("nowhere to write: one line", t_refused),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
