/* t_parse.c - tests reading replies of models, one case of tests/cases/parse/NAME.json at a time.
 *
 *   {"claim": ..., "dialect": "holo3", "text": ..., "size": [w, h],
 *    "note": ..., "thought": ..., "actions": [canonical JSON], "repairs": ["alias", ...]}
 *   {"claim": ..., "dialect": ..., "text": ..., "fault": "E_PARSE", "message": ...}
 *
 * The default size is [1000, 1000]. A text may be a list of strings, numbers of single bytes, and ["x", n]
 * for n times x, for content that JSON cannot hold. A case that once failed stays.
 */
#include "check.h"

#include "actions/action.h"
#include "actions/dialect.h"

#include "base/file.h"

#include <jansson.h>

enum { MAX_TEXT = 1 << 20 };

static const char *const repair_names[] = {"trailing-text", "trailing-comma", "control-char", "python",
                                           "number-string", "float",          "fence",        "alias",
                                           "midpoint",      "clamp",          "extra-calls",  "call"};
enum { NREPAIRS = sizeof repair_names / sizeof *repair_names };

static void put_text(struct buf *out, json_t *text)
{
    json_t *part;
    size_t i;
    if (json_is_string(text))
        buf_put(out, json_string_value(text), json_string_length(text));
    json_array_foreach(text, i, part)
    {
        if (json_is_integer(part))
            buf_putc(out, (char)json_integer_value(part));
        else if (json_is_string(part))
            buf_puts(out, json_string_value(part));
        else
            for (json_int_t n = json_integer_value(json_array_get(part, 1)); n > 0; n--)
                buf_puts(out, json_string_value(json_array_get(part, 0)));
    }
}

/* Returns the result in the form of a case. */
static json_t *result(enum action_fault f, const struct step *s, const struct err *e)
{
    json_t *r = json_object(), *actions = json_array(), *repairs = json_array();
    if (f) {
        json_object_set_new(r, "fault", json_string(action_fault_name(f)));
        json_object_set_new(r, "message", json_string(e->text));
        json_decref(actions);
        json_decref(repairs);
        return r;
    }
    if (s->note)
        json_object_set_new(r, "note", json_string(s->note));
    if (s->thought)
        json_object_set_new(r, "thought", json_string(s->thought));
    if (s->check)
        json_object_set_new(r, "check", json_string(s->check));
    for (int i = 0; i < s->nactions; i++) {
        struct buf json;
        buf_init(&json, MAX_TEXT);
        action_to_json(&s->actions[i], &json);
        json_array_append_new(actions, json_loadb(json.data, json.len, 0, NULL));
        buf_free(&json);
    }
    json_object_set_new(r, "actions", actions);
    for (int i = 0; i < NREPAIRS; i++)
        if (s->repairs >> i & 1)
            json_array_append_new(repairs, json_string(repair_names[i]));
    if (json_array_size(repairs))
        json_object_set(r, "repairs", repairs);
    json_decref(repairs);
    return r;
}

/* Returns the case without its input. */
static json_t *expected(json_t *c)
{
    static const char *const input[] = {"claim", "dialect", "text", "size"};
    json_t *want = json_copy(c);
    for (int i = 0; i < 4; i++)
        json_object_del(want, input[i]);
    return want;
}

static void complain(json_t *c, json_t *want, json_t *have)
{
    char *w = json_dumps(want, 0), *h = json_dumps(have, 0),
         *t = json_dumps(json_object_get(c, "text"), JSON_ENCODE_ANY);
    fail_msg("%s: %s\n  text     %.400s\n  expected %.600s\n  got      %.600s",
             json_string_value(json_object_get(c, "dialect")), json_string_value(json_object_get(c, "claim")),
             t, w, h);
}

/* Checks that the action's JSON, read back, gives the same JSON. */
static void check_round_trip(const struct step *s)
{
    for (int i = 0; i < s->nactions; i++) {
        struct err e = ERR_INIT;
        struct action back;
        struct buf one, two;
        buf_init(&one, MAX_TEXT);
        buf_init(&two, MAX_TEXT);
        action_to_json(&s->actions[i], &one);
        if (action_from_json(one.data, one.len, &back, &e))
            fail_msg("%s: %s", one.data, e.text);
        action_to_json(&back, &two);
        assert_string_equal(one.data, two.data);
        action_free(&back);
        buf_free(&one);
        buf_free(&two);
    }
}

static void run_case(json_t *c, const struct dialect *d)
{
    struct err e = ERR_INIT;
    struct step s;
    struct buf text;
    json_t *size = json_object_get(c, "size");
    int w = size ? (int)json_integer_value(json_array_get(size, 0)) : 1000;
    int h = size ? (int)json_integer_value(json_array_get(size, 1)) : 1000;
    buf_init(&text, MAX_TEXT);
    put_text(&text, json_object_get(c, "text"));
    enum action_fault f = action_parse(text.data, text.len, d, w, h, &s, &e);
    json_t *have = result(f, &s, &e), *want = expected(c);
    if (!json_equal(have, want))
        complain(c, want, have);
    if (f) {
        assert_int_equal(s.nactions, 0);
        assert_null(s.note);
        assert_null(s.thought);
    }
    check_round_trip(&s);
    json_decref(have);
    json_decref(want);
    step_free(&s);
    /* Truncated anywhere, the text must not cause memory errors (sanitizers check). */
    for (size_t n = 0; n < text.len && text.len < 300; n++) {
        char *cut = xmalloc(n + 1, 1);
        memcpy(cut, text.data, n);
        action_parse(cut, n, d, w, h, &s, &e);
        step_free(&s);
        free(cut);
    }
    buf_free(&text);
}

static void run_file(const char *name)
{
    struct err e = ERR_INIT;
    char *path = xasprintf("tests/cases/parse/%s.json", name), *data;
    size_t len, i;
    json_error_t je;
    json_t *c;
    if (file_read(path, 1 << 20, &data, &len, &e))
        fail_msg("%s", e.text);
    json_t *cases = json_loadb(data, len, 0, &je);
    if (!cases)
        fail_msg("%s:%d: %s", path, je.line, je.text);
    struct dialect *d = NULL;
    json_array_foreach(cases, i, c)
    {
        const char *dialect = json_string_value(json_object_get(c, "dialect"));
        if (!d || strcmp(d->name, dialect) != 0) {
            dialect_free(d);
            d = dialect_load(dialect, &e);
            if (!d)
                fail_msg("%s", e.text);
        }
        run_case(c, d);
    }
    check_note("%zu cases", json_array_size(cases));
    dialect_free(d);
    json_decref(cases);
    free(data);
    free(path);
}

#define FILE_TEST(name)                                                                                      \
    static void t_##name(void **state)                                                                       \
    {                                                                                                        \
        run_file(#name);                                                                                     \
    }
FILE_TEST(pocket)
FILE_TEST(holo3_tools)
FILE_TEST(holo3_aliases)
FILE_TEST(holo3_steps)
FILE_TEST(json)
FILE_TEST(coordinates)
FILE_TEST(keys)
FILE_TEST(holo1)
FILE_TEST(xml)
FILE_TEST(uitars)
FILE_TEST(pyautogui)
FILE_TEST(fara)
FILE_TEST(gemini)
FILE_TEST(qwen)
FILE_TEST(uitars15)
FILE_TEST(holo31)
FILE_TEST(openai_computer)
FILE_TEST(anthropic_computer)

static void t_describe(void **state)
{
    static const struct {
        const char *json, *line;
    } cases[] = {
        {"{\"kind\": \"click\", \"x\": 312, \"y\": 240, \"element\": \"Save\"}", "click \"Save\" at 312,240"},
        {"{\"kind\": \"click\", \"x\": 1, \"y\": 2, \"count\": 2, \"button\": \"right\", \"hold\": "
         "[\"Control_L\"]}",
         "Control_L+right-double-click at 1,2"},
        {"{\"kind\": \"click\"}", "click"},
        {"{\"kind\": \"type\", \"x\": 120, \"y\": 60, \"text\": \"Paris\", \"element\": \"From\"}",
         "type \"Paris\" into \"From\" at 120,60"},
        {"{\"kind\": \"type\", \"text\": \"a\\nb\", \"overwrite\": true, \"press_enter\": true}",
         "write \"a\\nb\" and press Enter"},
        {"{\"kind\": \"key\", \"keys\": [\"Control_L\", \"s\"], \"count\": 3}", "press Control_L+s 3 times"},
        {"{\"kind\": \"hold_and_tap\", \"keys\": [\"Alt_L\", \"Tab\", \"Tab\"], \"nhold\": 1}",
         "hold Alt_L, tap Tab, Tab"},
        {"{\"kind\": \"scroll\", \"x\": 5, \"y\": 6, \"dy\": -3, \"element\": \"list\"}",
         "scroll up 3 in \"list\" at 5,6"},
        {"{\"kind\": \"scroll\", \"dx\": 2}", "scroll right 2"},
        {"{\"kind\": \"drag\", \"x\": 1, \"y\": 2, \"x2\": 3, \"y2\": 4}", "drag at 1,2 to 3,4"},
        {"{\"kind\": \"key_down\", \"keys\": [\"Shift_L\"]}", "key down Shift_L"},
        {"{\"kind\": \"mouse_up\", \"button\": \"right\"}", "mouse up right"},
        {"{\"kind\": \"wait\", \"ms\": 1500}", "wait 1.5 s"},
        {"{\"kind\": \"answer\", \"text\": \"Booked.\"}", "answer \"Booked.\""},
        {"{\"kind\": \"answer\", \"text\": "
         "\"0123456789012345678901234567890123456789012345678901234567890123456789\"}",
         "answer \"012345678901234567890123456789012345678901234567890123456789...\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = ERR_INIT;
        struct action a;
        struct buf line;
        buf_init(&line, 4096);
        if (action_from_json(cases[i].json, strlen(cases[i].json), &a, &e))
            fail_msg("%s: %s", cases[i].json, e.text);
        action_describe(&a, &line);
        assert_string_equal(line.data, cases[i].line);
        action_free(&a);
        buf_free(&line);
    }
}

static void t_bad_json(void **state)
{
    static const char *const cases[] = {
        "",
        "[]",
        "{}",
        "{\"kind\": \"fly\"}",
        "{\"kind\": \"none\"}",
        "{\"kind\": \"click\", \"x\": 1.5}",
        "{\"kind\": \"click\", \"x\": 99999999999}",
        "{\"kind\": \"click\", \"button\": \"sixth\"}",
        "{\"kind\": \"click\", \"count\": 300}",
        "{\"kind\": \"key\", \"keys\": [\"nokey\"]}",
        "{\"kind\": \"key\", \"keys\": [1]}",
        "{\"kind\": \"key\", \"keys\": [\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\"]}",
        "{\"kind\": \"hold_and_tap\", \"keys\": [\"a\"], \"nhold\": 2}",
        "{\"kind\": \"scroll\", \"dx\": 40000}",
        "{\"kind\": \"wait\", \"ms\": -1}",
        "{\"kind\": \"drag\", \"path\": [[1, 2]]}",
        "{\"kind\": \"drag\", \"path\": [[1, 2], [3]]}"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = ERR_INIT;
        struct action a;
        if (!action_from_json(cases[i], strlen(cases[i]), &a, &e))
            fail_msg("accepted: %s", cases[i]);
        assert_true(*e.text);
        assert_null(a.text);
        assert_null(a.path);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("the actions of the pocket model", t_pocket),
    CLAIM("every tool of the holo3 dialect", t_holo3_tools),
    CLAIM("all other names used by the family", t_holo3_aliases),
    CLAIM("the step around the tool call", t_holo3_steps),
    CLAIM("JSON with common errors of models: some are repaired, others refused", t_json),
    CLAIM("all coordinate spaces follow one definition", t_coordinates),
    CLAIM("key names become keysyms", t_keys),
    CLAIM("the holo1 actions", t_holo1),
    CLAIM("function calls in XML", t_xml),
    CLAIM("UI-TARS calls, well formed and not", t_uitars),
    CLAIM("pyautogui scripts are read, never run", t_pyautogui),
    CLAIM("the replies of Qwen, in JSON and in XML", t_qwen),
    CLAIM("the replies of Fara", t_fara),
    CLAIM("the replies of UI-TARS 1.5", t_uitars15),
    CLAIM("the functions of Gemini, of both generations", t_gemini),
    CLAIM("the functions of Holo 3.1", t_holo31),
    CLAIM("the computer calls of OpenAI, in the format of its server", t_openai_computer),
    CLAIM("the computer toolset of Anthropic", t_anthropic_computer),
    CLAIM("an action in one line", t_describe),
    CLAIM("an action in bad JSON is refused", t_bad_json),
};

CHECK_MAIN()
