/* t_dialect.c - tests dialects: the files load, and everything derived from one table agrees. */
#include "check.h"
#include "dialects.h"
#include "place.h"

#include "actions/action.h"
#include "actions/dialect.h"

#include "base/file.h"
#include "base/sha256.h"

#include <jansson.h>
#include <unistd.h>

/* ---- files ---------------------------------------------------------------------------------------- */

static const char *const filled[] = {"date",   "Monday", "max_steps", "100",     "max_time_s",
                                     "1800",   "os",     "Linux",     "width",   "1280",
                                     "height", "720",    "task",      "Book it", NULL};

static void t_builtins(void **state)
{
    for (const char *const *name = dialect_names(); *name; name++) {
        struct err e = ERR_INIT;
        struct dialect *d = dialect_need(*name);
        const char *slots[32] = {"schema", d->schema, "tools", d->tool_list};
        for (int i = 0; filled[i]; i++)
            slots[4 + i] = filled[i];
        struct buf text;
        buf_init(&text, 1 << 20);
        assert_string_equal(d->name, *name);
        assert_int_equal(dialect_fill(d->system, slots, &text, &e), 0);
        assert_int_equal(strlen(d->sha256), 64);
        check_note("%-10s system %5zu bytes, schema %5zu, tools %4zu", *name, text.len, strlen(d->schema),
                   strlen(d->tool_list));
        buf_free(&text);
        dialect_free(d);
    }
}

static void refused(const char *json, const char *expected)
{
    struct err e = ERR_INIT;
    struct dialect *d = dialect_parse(json, strlen(json), "t", &e);
    if (d || !strstr(e.text, expected))
        fail_msg("for %s\nexpected '%s', got '%s'", json, expected, d ? "a dialect" : e.text);
    assert_int_equal(e.kind, ERR_USAGE);
}

#define BASE "\"name\": \"t\", \"syntax\": \"holo3\", \"coords\": \"norm1000\""

static void t_refusals(void **state)
{
    refused("{", "line 1");
    refused("[]", "must be a JSON object");
    refused("{\"name\": \"t\"}", "'syntax' is missing");
    refused("{" BASE ", \"colour\": 1}", "unknown key 'colour'");
    refused("{" BASE ", \"screne\": 1}", "unknown key 'screne'; did you mean 'screen'?");
    refused("{" BASE ", \"max_images\": 9}", "'max_images' must be an integer from 1 to 4");
    refused("{" BASE ", \"top_p\": \"x\"}", "'top_p' must be a number");
    refused("{" BASE ", \"think\": 1}", "'think' must be true or false");
    refused("{" BASE ", \"ground\": 1}", "'ground' must be a string");
    refused("{" BASE ", \"window\": \"all\"}", "'window' must be one of 'sawtooth' 'strict'");
    refused("{" BASE ", \"screen\": [1]}", "'screen' must be");
    refused("{" BASE ", \"system\": \"{colour}\"}", "unknown slot '{colour}'");
    refused("{" BASE ", \"system_file\": \"../x.txt\"}", "'system_file' must name");
    refused("{" BASE ", \"system_file\": \"none.txt\"}", "not a built-in text");
    refused("{" BASE ", \"tools\": \"none\"}", "not a built-in");
    refused("{" BASE ", \"tools\": [{\"name\": \"a\"}]}", "tool 'a': a tool without 'kind'");
    refused("{" BASE ", \"tools\": [{\"name\": \"a\", \"kind\": \"fly\"}]}", "unknown kind of action 'fly'");
    refused("{" BASE ", \"tools\": [{\"name\": \"a\", \"kind\": \"wait\", \"x\": 1}]}", "unknown key 'x'");
    refused("{" BASE ", \"tools\": [{\"name\": \"a\", \"kind\": \"wait\", \"args\": [\"keys\"]}]}",
            "does not take 'keys'");
    refused("{" BASE ", \"tools\": [{\"name\": \"a\", \"kind\": \"click\", \"with\": {\"text\": 1}}]}",
            "does not take 'text'");
    static const struct {
        const char *arg, *expected;
    } args[] = {
        {"{\"name\": \"x\", \"max\": \"1\"}", "an integer expected for 'max'"},
        {"{\"name\": \"a b\", \"is\": \"x\"}", "letters"},
        {"{\"name\": \"\", \"is\": \"x\"}", "1 to 64"},
        {"{\"name\": \"count\", \"max\": 4}", "outside the possible range for 'count'"},
        {"{\"name\": \"count\", \"min\": 3, \"max\": 2}", "min is above max"},
        {"{\"name\": \"element\", \"min\": 300, \"max\": 400}", "from 0 to 256"},
        {"{\"name\": \"button\", \"values\": \"left|fourth\"}", "values that do not exist"},
        {"{\"name\": \"button\", \"values\": \"\"}", "values that do not exist"},
        {"{\"name\": \"x\", \"aliases\": \"y\"}", "a list of strings expected for 'aliases'"},
        {"{\"name\": \"x\", \"colour\": 1}", "unknown key 'colour'"},
        {"{\"is\": \"x\"}", "without 'name'"},
        {"5", "without 'name'"},
    };
    for (size_t i = 0; i < sizeof args / sizeof *args; i++) {
        char *json = xasprintf("{%s, \"tools\": [{\"name\": \"a\", \"kind\": \"click\", \"args\": [%s]}]}",
                               BASE, args[i].arg);
        refused(json, args[i].expected);
        free(json);
    }
    refused("{" BASE ", \"name\": \"u\"}", "duplicate");
}

static void t_names(void **state)
{
    struct err e = ERR_INIT;
    assert_null(dialect_load("holo9", &e));
    check_has(e.text, "unknown dialect 'holo9'", "pocket-wide");
    char dir[PLACE_PATH];
    assert_non_null(mkdtemp(place_template(dir)));
    char *json = xasprintf("%s/own.json", dir), *text = xasprintf("%s/own.txt", dir),
         *model = xasprintf("%s/holorun.json", dir);
    static const char body[] = "{" BASE ", \"system_file\": \"own.txt\", \"tools\": \"holo3\"}";
    assert_int_equal(file_write(json, body, sizeof body - 1, &e), 0);
    assert_int_equal(file_write(text, "Hello {task}", 12, &e), 0);
    char *name = dialect_for_model(dir, &e);
    assert_string_equal(name, "holo3");
    free(name);
    assert_int_equal(file_write(model, "{\"dialect\": \"own.json\"}", 23, &e), 0);
    name = dialect_for_model(dir, &e);
    assert_string_equal(name, json);
    struct dialect *d = dialect_need(name);
    assert_string_equal(d->system, "Hello {task}");
    dialect_free(d);
    free(name);
    assert_int_equal(file_write(model, "{}", 2, &e), 0);
    assert_null(dialect_for_model(dir, &e));
    assert_int_equal(e.kind, ERR_MODEL);
    unlink(json), unlink(text), unlink(model), rmdir(dir);
    free(json), free(text), free(model);
}

static void t_fill(void **state)
{
    struct err e = ERR_INIT;
    struct buf b;
    const char *slots[] = {"a", "{b}", "bc", "2", NULL};
    buf_init(&b, 1000);
    assert_int_equal(dialect_fill("{a}{bc} {} {\"a\": 1} {A} {a", slots, &b, &e), 0);
    assert_string_equal(b.data, "{b}2 {} {\"a\": 1} {A} {a");
    assert_int_equal(dialect_fill("{d}", slots, &b, &e), -1);
    assert_non_null(strstr(e.text, "'{d}'"));
    buf_free(&b);
}

/* ---- the schema ------------------------------------------------------------------------------------ */

static void t_schema(void **state)
{
    struct dialect *d = dialect_need("holo3");
    json_t *root = json_loads(d->schema, 0, NULL);
    assert_non_null(root);
    json_t *any = json_object_get(json_object_get(json_object_get(root, "properties"), "tool_call"), "anyOf");
    json_t *defs = json_object_get(root, "$defs");
    assert_int_equal(json_array_size(any), 16);
    assert_int_equal(json_object_size(defs), 16);
    static const char click[] =
        "{\"additionalProperties\": false, \"description\": \"Click an element\", \"properties\": "
        "{\"tool_name\": {\"const\": "
        "\"click_desktop\", \"title\": \"Tool Name\", \"type\": \"string\"}, \"element\": ";
    char *text = json_dumps(json_object_get(defs, "click_desktop"), 0);
    assert_int_equal(strncmp(text, click, sizeof click - 1), 0);
    check_has(text, "\"required\": [\"tool_name\", \"element\", \"x\", \"y\"]",
              "\"maximum\": 1000, \"minimum\": 0");
    free(text);
    json_decref(root);
    dialect_free(d);
    d = dialect_need("holo1");
    assert_non_null(strstr(d->schema, "{'anyOf': [{'type': 'string'}, {'type': 'null'}], 'default': None,"));
    assert_null(strstr(d->schema, "write_element'"));
    dialect_free(d);
}

static void t_lists(void **state)
{
    struct dialect *d = dialect_need("anthropic-computer");
    assert_non_null(strstr(d->tool_list,
                           "\n{\"action\": \"scroll\", \"coordinate\"?: [x, y], \"scroll_direction\": "
                           "\"up|down|left|right\", \"scroll_amount\": 1..100}: Turn the mouse wheel"));
    assert_null(strstr(d->tool_list, "cursor_position"));
    assert_string_equal(d->schema, "");
    dialect_free(d);
    d = dialect_need("pyautogui");
    assert_non_null(
        strstr(d->tool_list, "\npyautogui.press(keys, presses=1): Press a key and release it.\n"));
    dialect_free(d);
    d = dialect_need("holo31");
    assert_non_null(
        strstr(d->schema, "{\"type\": \"function\", \"function\": {\"name\": \"click_desktop\", "));
    dialect_free(d);
}

static void t_hash(void **state)
{
    static const char *const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    static const char *const million = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
    struct sha256 s;
    char hex[65];
    sha256_begin(&s);
    sha256_add(&s, "a", 1);
    sha256_add(&s, "bc", 2);
    sha256_end(&s, hex);
    assert_string_equal(hex, abc);
    sha256_begin(&s);
    for (int i = 0; i < 100000; i++)
        sha256_add(&s, "aaaaaaaaaa", 10);
    sha256_end(&s, hex);
    assert_string_equal(hex, million);
    struct dialect *one = dialect_need("holo1"), *two = dialect_need("holo15"), *same = dialect_need("holo1");
    assert_string_equal(one->sha256, same->sha256);
    assert_string_not_equal(one->sha256, two->sha256);
    dialect_free(one);
    dialect_free(two);
    dialect_free(same);
}

static const struct CMUnitTest tests[] = {
    CLAIM("every built-in dialect loads and its system prompt can be filled", t_builtins),
    CLAIM("a dialect file with a mistake is refused with the key named", t_refusals),
    CLAIM("dialects are found by name, by path, and by the model that needs them", t_names),
    CLAIM("slots are filled once and unknown ones refused", t_fill),
    CLAIM("the schema lists the tools of the table in its order", t_schema),
    CLAIM("tools are listed the way the family writes them", t_lists),
    CLAIM("a dialect is identified by the SHA-256 of its bytes", t_hash),
};

CHECK_MAIN()
