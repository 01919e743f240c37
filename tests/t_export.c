/* t_export.c - claims about runs in the layouts of others: every field that these document is there and
 * means what it should, actions in their words are read back by our own parsers, and nothing is readable
 * by anybody else.
 */
#include "check.h"
#include "program.h"

#include "actions/action.h"
#include "actions/dialect.h"
#include "base/file.h"
#include "replay/export.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static struct xvfb x;
static char run[200]; /* of the embedded model; "" until recorded */

static void forget(void)
{
    if (*run)
        xvfb_stop(&x);
}

static void record_once(void)
{
    struct outcome o = {0};
    if (*run)
        return;
    if (xvfb_start(&x, "640x480x24", NULL))
        skip();
    atexit(forget);
    char *runs = xvfb_place(&x, "runs");
    program_run(&x, &o,
                WORDS("run", "Book a flight", "--model", "assets/pocket/model", "--runs", runs, "-q", "-n",
                      "4", "--temperature", "0.9", "--seed", "7", "--settle-min", "1", "--settle-quiet", "30",
                      "--no-report", "--max-images", "2", "--dry-run"));
    if (o.code)
        fail_msg("exit %d: %s", o.code, o.err);
    char *dir = record_newest(runs, NULL);
    assert_non_null(dir);
    snprintf(run, sizeof run, "%s", dir);
    outcome_free(&o);
    free(dir);
    free(runs);
}

/* The path that export prints; the caller frees it. */
static char *export_as(const char *format, const char *reward)
{
    struct outcome o = {0};
    record_once();
    program_run(&x, &o, WORDS("export", run, "--format", format, reward));
    if (o.code)
        fail_msg("%s", o.err);
    char *to = xasprintf("%.*s", (int)strcspn(o.out, "\n"), o.out);
    outcome_free(&o);
    return to;
}

/* The objects of a file of lines. */
static json_t *lines_of(const char *dir, const char *name)
{
    char *path = xasprintf("%s/%s", dir, name), *text;
    size_t len;
    assert_int_equal(file_read(path, 256 << 20, &text, &len, NULL), 0);
    assert_true(len && text[len - 1] == '\n');
    json_t *list = json_array();
    for (char *p = text, *end; (end = strchr(p, '\n')); p = end + 1) {
        json_t *one = json_loadb(p, (size_t)(end - p), JSON_REJECT_DUPLICATES, NULL);
        assert_true(json_is_object(one));
        json_array_append_new(list, one);
    }
    free(text);
    free(path);
    return list;
}

/* Members with their types: s string, i integer, f number, b boolean, a list, o object; capital: may be
 * null. */
static void has(const json_t *object, const char *members)
{
    char copy[400], *save = NULL;
    snprintf(copy, sizeof copy, "%s", members);
    for (char *m = strtok_r(copy, " ", &save); m; m = strtok_r(NULL, " ", &save)) {
        const json_t *v = json_object_get(object, m + 2);
        char t = m[0];
        bool fits = v && ((t <= 'Z' && json_is_null(v)) || ((t | 32) == 's' && json_is_string(v)) ||
                          ((t | 32) == 'i' && json_is_integer(v)) || ((t | 32) == 'f' && json_is_number(v)) ||
                          ((t | 32) == 'b' && json_is_boolean(v)) || ((t | 32) == 'a' && json_is_array(v)) ||
                          ((t | 32) == 'o' && json_is_object(v)));
        if (!fits) {
            char *text = json_dumps(object, 0);
            fail_msg("no '%s' in %.300s", m, text);
        }
    }
}

/* Every file below is for its owner alone, and none is left over. */
static void is_private(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 077, 0);
    assert_null(strstr(path, ".tmp"));
    if (!S_ISDIR(st.st_mode))
        return;
    DIR *d = opendir(path);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') {
            char *below = xasprintf("%s/%s", path, e->d_name);
            is_private(below);
            free(below);
        }
    closedir(d);
}

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
    char *to = export_as("osworld", "--reward=1"), *text;
    json_t *list = lines_of(to, "traj.jsonl"), *one;
    size_t i, len, n = json_array_size(list);
    assert_true(n >= 4);
    json_array_foreach(list, i, one)
    {
        has(one,
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
    static const char *const files[][2] = {{"instruction.txt", "Book a flight"}, {"result.txt", "1\n"}};
    for (int k = 0; k < 2; k++) {
        char *path = xasprintf("%s/%s", to, files[k][0]);
        assert_int_equal(file_read(path, 1000, &text, &len, NULL), 0);
        assert_string_equal(text, files[k][1]);
        free(text);
        free(path);
    }
    char *first = xasprintf("%s/step_0.png", to);
    assert_true(file_exists(first));
    is_private(to);
    free(first);
    json_decref(list);
    free(to);
}

static void t_holo(void **state)
{
    (void)state;
    char *to = export_as("holo", NULL);
    json_t *list = lines_of(to, "events.jsonl"), *line;
    size_t i;
    int seen = 0, said = 0, did = 0;
    json_array_foreach(list, i, line)
    {
        has(line, "s:ts o:event");
        assert_int_equal(strlen(field_text(line, "ts")), 24);
        const json_t *event = json_object_get(line, "event");
        const char *kind = field_text(event, "kind");
        if (i == 0) {
            assert_string_equal(kind, "message_event");
            has(event, "s:caller_id a:content");
        } else if (!strcmp(kind, "observation_event")) {
            const json_t *o = json_object_get(event, "observation"), *image = json_object_get(o, "image");
            has(o, "o:image O:cursor_position o:viewport_size");
            has(image, "s:type s:media_type s:source");
            assert_string_equal(field_text(image, "media_type"), "image/png");
            assert_int_equal(strncmp(field_text(image, "source"), "iVBORw0KGgo", 11), 0);
            assert_int_equal(field_int(json_object_get(o, "viewport_size"), "width"), 640);
            seen++;
        } else if (!strcmp(kind, "policy_event")) {
            has(event, "s:content S:reasoning_content a:tool_reqs");
            has(json_array_get(json_object_get(event, "tool_reqs"), 0), "s:id s:tool_name o:args");
            said++;
        } else if (!strcmp(kind, "tool_result")) {
            has(event, "o:tool_req s:result");
            did++;
        } else if (!strcmp(kind, "answer_event")) {
            has(event, "s:answer");
        } else {
            assert_string_equal(kind, "error_event");
            has(event, "s:error s:origin");
        }
    }
    assert_true(seen >= 4 && said >= 4 && did >= 3);
    is_private(to);
    json_decref(list);
    free(to);
}

static void t_uitars(void **state)
{
    (void)state;
    char *to = export_as("uitars", NULL);
    json_t *all = json_load_file(to, 0, NULL), *turn;
    size_t i;
    int seen = 0, said = 0;
    has(all, "s:version s:instruction s:systemPrompt s:modelName s:status s:logTime a:conversations");
    json_array_foreach(json_object_get(all, "conversations"), i, turn)
    {
        has(turn, "s:from s:value o:timing");
        has(json_object_get(turn, "timing"), "i:start i:end i:cost");
        if (!strcmp(field_text(turn, "value"), "<image>")) {
            has(turn, "s:screenshotBase64 o:screenshotContext");
            has(json_object_get(turn, "screenshotContext"), "o:size s:mime f:scaleFactor");
            seen++;
        } else if (!strcmp(field_text(turn, "from"), "gpt")) {
            const json_t *parsed = json_array_get(json_object_get(turn, "predictionParsed"), 0);
            has(parsed, "S:reflection s:thought s:action_type o:action_inputs");
            reads_back("uitars", field_text(turn, "value"), NULL);
            said++;
        }
    }
    assert_true(seen >= 4 && said >= 4);
    is_private(to);
    json_decref(all);
    free(to);
}

static void check_numbers(const json_t *line)
{
    const json_t *ids = json_object_get(line, "completion_ids"),
                 *mask = json_object_get(line, "completion_mask"),
                 *plain = json_object_get(line, "completion_logprobs"),
                 *masked = json_object_get(line, "completion_logprobs_masked");
    size_t n = json_array_size(ids);
    double sums[2] = {0, 0};
    assert_true(n && json_array_size(mask) == n && json_array_size(plain) == n &&
                json_array_size(masked) == n);
    for (size_t k = 0; k < n; k++) {
        double p = json_number_value(json_array_get(plain, k)),
               q = json_number_value(json_array_get(masked, k));
        bool sampled = json_integer_value(json_array_get(mask, k)) == 1;
        assert_int_equal(json_is_null(json_array_get(plain, k)), !sampled);
        assert_true(json_is_number(json_array_get(masked, k)));
        sums[0] += p;
        sums[1] += q;
        assert_true(q <= 0 && p <= 0 && (sampled || q == 0));
        assert_true(!sampled || q >= p - 1e-4); /* a mask takes mass from others */
    }
    assert_true(sums[1] > sums[0]);
}

static void check_images(const char *to, const json_t *line)
{
    const json_t *images = json_object_get(line, "images"),
                 *spans = json_object_get(line, "image_token_span"),
                 *ids = json_object_get(line, "prompt_ids");
    size_t n = json_array_size(images);
    assert_true(n >= 1 && n <= 2 && json_array_size(spans) == n);
    for (size_t i = 0; i < n; i++) {
        const json_t *span = json_array_get(spans, i);
        int64_t a = json_integer_value(json_array_get(span, 0)),
                b = json_integer_value(json_array_get(span, 1));
        assert_int_equal(b - a, 256); /* rows of a 640x480 screen of this model */
        for (int64_t k = a; k < b; k++)
            assert_int_equal(json_integer_value(json_array_get(ids, (size_t)k)),
                             json_integer_value(json_array_get(ids, (size_t)a)));
        char *path = xasprintf("%s/%s", to, json_string_value(json_array_get(images, i)));
        struct image im;
        assert_int_equal(image_read_png(&im, path, NULL), 0);
        image_free(&im);
        free(path);
    }
}

/* As many tokens as the run has written down that it was asked with. */
static void check_prompt(const struct record *r, const json_t *line)
{
    int known = 0;
    for (int i = 0; i < r->n; i++) {
        const struct event *v = &r->events[i];
        if (strcmp(v->kind, "generate") != 0 || v->step != field_int(line, "step"))
            continue;
        assert_int_equal(json_array_size(json_object_get(line, "prompt_ids")),
                         field_int(v->fields, "prompt_tokens"));
        known++;
    }
    assert_true(known > 0);
}

static void t_rl(void **state)
{
    (void)state;
    char *to = export_as("rl", NULL);
    json_t *list = lines_of(to, "trajectory.jsonl"), *line;
    size_t i, n = json_array_size(list);
    struct record r;
    assert_int_equal(record_open(&r, run, NULL), 0);
    assert_true(n >= 4);
    json_array_foreach(list, i, line)
    {
        has(line,
            "s:env s:traj_id i:step a:prompt_ids a:completion_ids a:completion_mask a:completion_logprobs "
            "a:completion_logprobs_masked f:temperature f:top_p i:seed a:images a:image_token_span F:reward "
            "b:done S:verdict F:advantage");
        assert_int_equal(field_int(line, "seed"), 7);
        assert_true(fabs(field_number(line, "temperature") - 0.9) < 1e-6);
        assert_int_equal(field_bool(line, "done"), i + 1 == n);
        check_numbers(line);
        check_prompt(&r, line);
        check_images(to, line);
    }
    /* a prompt goes on where the conversation before it was: the first tokens are the same */
    const json_t *p = json_object_get(json_array_get(list, 0), "prompt_ids"),
                 *q = json_object_get(json_array_get(list, 1), "prompt_ids");
    for (size_t k = 0; k < 4; k++)
        assert_int_equal(json_integer_value(json_array_get(p, k)), json_integer_value(json_array_get(q, k)));
    is_private(to);
    record_free(&r);
    json_decref(list);
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

static void t_refused(void **state)
{
    (void)state;
    struct outcome o = {0};
    record_once();
    program_run(&x, &o, WORDS("export", run));
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.err, "--format is missing: osworld, holo, uitars or rl"));
    program_run(&x, &o, WORDS("export", run, "--format", "rl", "-o", "/proc/nowhere"));
    ONE_LINE(&o, ERR_ENV, "/proc/nowhere");
    outcome_free(&o);
}

static const struct CMUnitTest tests[] = {
    CLAIM("osworld: traj.jsonl with its fields, screenshots by name, texts", t_osworld),
    CLAIM("holo: events of the documented kinds with their fields", t_holo),
    CLAIM("uitars: one object, conversations that its own grammar reads", t_uitars),
    CLAIM("rl: ids, probabilities before and after the mask, images and their rows", t_rl),
    CLAIM("actions in the words of pyautogui and UI-TARS are read back as what they were", t_words),
    CLAIM("without a layout, or nowhere to write: one line", t_refused),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
