/* t_arguments.c - tests the reader of tool arguments: accepted spellings, and refused ones with their
 * messages. The schemas are those of the tools.
 */
#include "check.h"

#include "host/arguments.h"

#include <string.h>

struct row {
    const char *tool, *sent;
    const char *read; /* the arguments, or a part of the refusal's message */
    const char *ignored;
};

static json_t *tools;

static const json_t *schema_of(const char *name)
{
    const json_t *tool;
    size_t i;
    json_array_foreach(tools, i, tool)
    {
        if (!strcmp(json_string_value(json_object_get(tool, "name")), name))
            return json_object_get(tool, "inputSchema");
    }
    fail_msg("unknown tool %s", name);
    return NULL;
}

static void check(const struct row *r, bool refused)
{
    struct err e = ERR_INIT;
    json_t *sent = r->sent ? json_loads(r->sent, JSON_DECODE_ANY, NULL) : NULL, *ignored = json_array();
    if (r->sent && !sent)
        fail_msg("not JSON: %s", r->sent);
    json_t *read = arguments_read(schema_of(r->tool), sent, ignored, &e);
    if (refused ? read || !strstr(e.text, r->read) : !read)
        fail_msg("%s %s -> %s %s, not %s", r->tool, r->sent ? r->sent : "",
                 read ? json_dumps(read, 0) : "refused:", e.text, r->read);
    if (!refused) {
        json_t *wanted = json_loads(r->read, 0, NULL);
        if (!json_equal(read, wanted))
            fail_msg("%s %s -> %s, not %s", r->tool, r->sent ? r->sent : "", json_dumps(read, 0), r->read);
        char *names = json_dumps(ignored, JSON_COMPACT);
        assert_string_equal(names, r->ignored ? r->ignored : "[]");
        free(names);
        json_decref(wanted);
    }
    json_decref(sent);
    json_decref(read);
    json_decref(ignored);
}

#define CHECK(rows, refused)                                                                                 \
    do {                                                                                                     \
        for (size_t i = 0; i < sizeof(rows) / sizeof *(rows); i++)                                           \
            check(&(rows)[i], refused);                                                                      \
        check_note("%zu", sizeof(rows) / sizeof *(rows));                                                    \
    } while (0)

static void t_objects(void **state)
{
    static const struct row rows[] = {
        {"windows", NULL, "{}", NULL},
        {"windows", "null", "{}", NULL},
        {"windows", "[]", "{}", NULL},
        {"windows", "\"\"", "{}", NULL},
        {"windows", "\"null\"", "{}", NULL},
        {"windows", "\"{}\"", "{}", NULL},
        {"windows", "\"{\\\"display\\\": \\\":1\\\"}\"", "{\"display\": \":1\"}", NULL},
        {"windows", "\"\\\"{\\\\\\\"display\\\\\\\": \\\\\\\":1\\\\\\\"}\\\"\"", "{\"display\": \":1\"}",
         NULL},
        {"run_task",
         "{\"task\": \"a\", \"display\": null, \"max_steps\": null, \"wait_s\": \"null\", \"picture\": null}",
         "{\"task\": \"a\"}", NULL},
    };
    CHECK(rows, false);
}

#define STEPS(sent)                                                                                          \
    {                                                                                                        \
        "run_task", "{\"task\": \"a\", \"max_steps\": " sent "}", "{\"task\": \"a\", \"max_steps\": 100}",   \
            NULL                                                                                             \
    }
#define WAIT(sent, read)                                                                                     \
    {                                                                                                        \
        "run_status", "{\"run_id\": \"r\", \"wait_s\": " sent "}",                                           \
            "{\"run_id\": \"r\", \"wait_s\": " read "}", NULL                                                \
    }
#define ALLOW(sent, read)                                                                                    \
    {                                                                                                        \
        "run_answer", "{\"run_id\": \"r\", \"allow\": " sent "}",                                            \
            "{\"run_id\": \"r\", \"allow\": " read "}", NULL                                                 \
    }

static void t_scalars(void **state)
{
    static const struct row rows[] = {
        STEPS("100"),
        STEPS("100.0"),
        STEPS("1e2"),
        STEPS("\"100\""),
        STEPS("\" 100 \""),
        STEPS("\"1e2\""),
        STEPS("\"1E+2\""),
        STEPS("\"100.0\""),
        STEPS("\"\\\"100\\\"\""),
        STEPS("\"\\n100\""),
        WAIT("0.5", "0.5"),
        WAIT("\"0.5\"", "0.5"),
        WAIT("\"5e-1\"", "0.5"),
        WAIT("\"3\"", "3"),
        WAIT("0", "0"),
        ALLOW("true", "true"),
        ALLOW("\"true\"", "true"),
        ALLOW("\"True\"", "true"),
        ALLOW("\"FALSE\"", "false"),
        ALLOW("0", "false"),
        ALLOW("1", "true"),
        ALLOW("1.0", "true"),
        ALLOW("\"1\"", "true"),
        ALLOW("\"0\"", "false"),
        ALLOW("\"\\\"false\\\"\"", "false"),
        ALLOW("\" true \"", "true"),
        {"run_task", "{\"task\": 2026}", "{\"task\": \"2026\"}", NULL},
        {"run_task", "{\"task\": \"\\\"quoted\\\"\"}", "{\"task\": \"\\\"quoted\\\"\"}", NULL},
        {"act", "{\"action\": \"type\", \"text\": \"[1]\"}", "{\"action\": \"type\", \"text\": \"[1]\"}",
         NULL},
        {"act", "{\"action\": \"type\", \"text\": \"null\"}", "{\"action\": \"type\", \"text\": \"null\"}",
         NULL},
        {"act", "{\"action\": \"type\", \"text\": \"\"}", "{\"action\": \"type\", \"text\": \"\"}", NULL},
        {"act", "{\"action\": \"Click\"}", "{\"action\": \"click\"}", NULL},
        {"act", "{\"action\": \"DOUBLE_CLICK\"}", "{\"action\": \"double_click\"}", NULL},
        {"act", "{\"action\": \"doubleClick\"}", "{\"action\": \"double_click\"}", NULL},
        {"act", "{\"action\": \" double-click \"}", "{\"action\": \"double_click\"}", NULL},
        {"act", "{\"action\": \"\\\"scroll\\\"\", \"direction\": \"DOWN\"}",
         "{\"action\": \"scroll\", \"direction\": \"down\"}", NULL},
    };
    CHECK(rows, false);
}

#define KEYS(sent, read)                                                                                     \
    {                                                                                                        \
        "act", "{\"action\": \"key\", \"keys\": " sent "}", "{\"action\": \"key\", \"keys\": " read "}",     \
            NULL                                                                                             \
    }
#define REGION(sent)                                                                                         \
    {                                                                                                        \
        "screenshot", "{\"region\": " sent "}", "{\"region\": [0, 10, 200, 100]}", NULL                      \
    }

static void t_lists(void **state)
{
    static const struct row rows[] = {
        KEYS("[\"ctrl\", \"s\"]", "[\"ctrl\", \"s\"]"),
        KEYS("\"[\\\"ctrl\\\", \\\"s\\\"]\"", "[\"ctrl\", \"s\"]"),
        KEYS("\"\\\"[\\\\\\\"ctrl\\\\\\\", \\\\\\\"s\\\\\\\"]\\\"\"", "[\"ctrl\", \"s\"]"),
        KEYS("\"enter\"", "[\"enter\"]"),
        KEYS("\"ctrl+s\"", "[\"ctrl+s\"]"),
        KEYS("\"[\"", "[\"[\"]"),
        KEYS("\"\\\"\"", "[\"\\\"\"]"),
        KEYS("\"5\"", "[\"5\"]"),
        KEYS("5", "[\"5\"]"),
        KEYS("[\"alt\", 4]", "[\"alt\", \"4\"]"),
        KEYS("\"true\"", "[\"true\"]"),
        REGION("[0, 10, 200, 100]"),
        REGION("\"[0, 10, 200, 100]\""),
        REGION("[\"0\", 10.0, \" 200\", \"1e2\"]"),
        REGION("\"0,10,200,100\""),
        REGION("\"(0, 10, 200, 100)\""),
        REGION("{\"x\": 0, \"y\": 10, \"width\": 200, \"height\": 100}"),
        REGION("{\"x\": 0, \"y\": 10, \"w\": 200, \"h\": \"100\"}"),
        REGION("\"{\\\"x\\\": 0, \\\"y\\\": 10, \\\"width\\\": 200, \\\"height\\\": 100}\""),
    };
    CHECK(rows, false);
}

#define AT(sent)                                                                                             \
    {                                                                                                        \
        "act", "{\"action\": \"click\", " sent "}", "{\"action\": \"click\", \"x\": 100, \"y\": 200}", NULL  \
    }

static void t_places(void **state)
{
    static const struct row rows[] = {
        AT("\"x\": 100, \"y\": 200"),
        AT("\"x\": \"100\", \"y\": 200.0"),
        AT("\"x\": \"100,200\""),
        AT("\"x\": \"(100, 200)\", \"y\": null"),
        AT("\"x\": [100, 200]"),
        AT("\"x\": \"[100, 200]\""),
        AT("\"x\": {\"x\": 100, \"y\": \"200\"}"),
        AT("\"coordinate\": [100, 200]"),
        AT("\"coordinates\": \"100,200\""),
        AT("\"Point\": {\"x\": 100, \"y\": 200}, \"x\": null"),
        AT("\"position\": \"[100, 200]\""),
        {"act", "{\"action\": \"drag\", \"x\": [1, 2], \"x2\": \"3, 4\"}",
         "{\"action\": \"drag\", \"x\": 1, \"y\": 2, \"x2\": 3, \"y2\": 4}", NULL},
        {"act", "{\"action\": \"click\", \"x\": 1, \"y\": 2, \"coordinate\": [3, 4]}",
         "{\"action\": \"click\", \"x\": 1, \"y\": 2}", "[\"coordinate\"]"},
    };
    CHECK(rows, false);
}

static void t_names(void **state)
{
    static const struct row rows[] = {
        {"windows", "{\"explanation\": \"to look\", \"n\": 1}", "{}", "[\"explanation\",\"n\"]"},
        {"screenshot", "{\"reason\": \"r\", \"coordinate\": [1, 2]}", "{}", "[\"reason\",\"coordinate\"]"},
        {"run_task", "{\"Task\": \"a\", \"maxSteps\": 5, \"WAIT-S\": 1}",
         "{\"task\": \"a\", \"max_steps\": 5, \"wait_s\": 1}", NULL},
        {"run_task", "{\"task\": \"a\", \"TASK\": \"b\"}", "{\"task\": \"a\"}", "[\"TASK\"]"},
    };
    CHECK(rows, false);
}

static void t_refused(void **state)
{
    static const struct row rows[] = {
        {"windows", "5", "'arguments' must be an object; got integer", NULL},
        {"windows", "[1]", "'arguments' must be an object; got list", NULL},
        {"windows", "\"display\"", "'arguments' must be an object; got string", NULL},
        {"run_task", "{}", "argument 'task' is missing; it must be a string", NULL},
        {"run_task", "{\"task\": null}", "argument 'task' is null; it must be a string", NULL},
        {"run_task", "{\"task\": {\"a\": 1}}", "argument 'task' must be a string; got object {\"a\":1}",
         NULL},
        {"run_task", "{\"task\": true}", "argument 'task' must be a string; got boolean true", NULL},
        {"run_task", "{\"task\": \"a\", \"max_steps\": \"12px\"}",
         "argument 'max_steps' must be an integer from 1 to 1000; got string \"12px\"", NULL},
        {"run_task", "{\"task\": \"a\", \"max_steps\": \"\"}", "got string \"\"", NULL},
        {"run_task", "{\"task\": \"a\", \"max_steps\": \"ten\"}", "got string \"ten\"", NULL},
        {"run_task", "{\"task\": \"a\", \"max_steps\": \"0x10\"}", "got string \"0x10\"", NULL},
        {"run_task", "{\"task\": \"a\", \"max_steps\": \"1,000\"}", "got string \"1,000\"", NULL},
        {"run_task", "{\"task\": \"a\", \"max_steps\": 1.5}", "got number 1.5", NULL},
        {"run_task", "{\"task\": \"a\", \"max_steps\": \"1.5\"}", "got string \"1.5\"", NULL},
        {"run_task", "{\"task\": \"a\", \"max_steps\": true}", "got boolean true", NULL},
        {"run_task", "{\"task\": \"a\", \"max_steps\": [5]}", "got list [5]", NULL},
        {"run_task", "{\"task\": \"a\", \"max_steps\": 0}", "from 1 to 1000; got integer 0", NULL},
        {"run_task", "{\"task\": \"a\", \"max_steps\": \"1001\"}", "from 1 to 1000; got string \"1001\"",
         NULL},
        {"run_task", "{\"task\": \"a\", \"max_step\": 5}",
         "unknown argument 'max_step'; did you mean 'max_steps'?", NULL},
        {"run_task", "{\"task\": \"a\", \"maxSteps\": 5, \"max-steps\": 6}", "'max_steps' was sent twice",
         NULL},
        {"run_status", "{\"run_id\": \"r\", \"wait_s\": \"NaN\"}",
         "must be a number from 0 to 3600; got string \"NaN\"", NULL},
        {"run_status", "{\"run_id\": \"r\", \"wait_s\": \"1e999\"}", "got string \"1e999\"", NULL},
        {"run_status", "{\"run_id\": \"r\", \"wait_s\": -1}", "got integer -1", NULL},
        {"run_status", "{\"run_id\": [\"r\"]}", "argument 'run_id' must be a string; got list", NULL},
        {"run_answer", "{\"run_id\": \"r\", \"allow\": \"yes\"}",
         "argument 'allow' must be a boolean (true or false); got string \"yes\"", NULL},
        {"run_answer", "{\"run_id\": \"r\", \"allow\": 2}", "got integer 2", NULL},
        {"run_answer", "{\"run_id\": \"r\", \"allow\": \"null\"}", "argument 'allow' is null", NULL},
        {"screenshot", "{\"region\": [0, 0, 10]}",
         "argument 'region' must be a list of 4 integers; got list [0,0,10]", NULL},
        {"screenshot", "{\"region\": \"0,0,10\"}", "got string \"0,0,10\"", NULL},
        {"screenshot", "{\"region\": [0, 0, 10, \"5px\"]}", "got list [0,0,10,\"5px\"]", NULL},
        {"screenshot", "{\"region\": {\"x\": 0, \"y\": 0, \"right\": 9, \"bottom\": 9}}", "got object", NULL},
        {"screenshot", "{\"region\": [0, 0, null, 10]}", "got list", NULL},
        {"screenshot", "{\"region\": [4294967296, 0, 10, 10]}", "got list [4294967296,0,10,10]", NULL},
        {"act", "{\"action\": \"fly\"}", "argument 'action' must be one of press, double_press,", NULL},
        {"act", "{\"action\": 5}", "got integer 5", NULL},
        {"act", "{\"action\": \"click\", \"x\": \"100,200\", \"y\": 5}", "argument 'y' was sent twice", NULL},
        {"act", "{\"action\": \"click\", \"y\": 5, \"x\": [100, 200]}", "argument 'y' was sent twice", NULL},
        {"act", "{\"action\": \"click\", \"x\": [100, 200, 300]}",
         "argument 'x' must be an integer; got list [100,200,300]", NULL},
        {"act", "{\"action\": \"click\", \"x\": [100, \"2px\"]}",
         "argument 'y' must be an integer; got string \"2px\"", NULL},
        {"act", "{\"action\": \"click\", \"x\": 10.5, \"y\": 1}",
         "argument 'x' must be an integer; got number 10.5", NULL},
        {"act", "{\"action\": \"click\", \"coordinate\": [1, 2, 3, 4]}",
         "argument 'coordinate' must be a pair [x, y]", NULL},
        {"act", "{\"action\": \"click\", \"buton\": \"right\"}",
         "unknown argument 'buton'; did you mean 'button'?", NULL},
        {"act", "{\"action\": \"key\", \"keys\": {\"a\": 1}}",
         "argument 'keys' must be a list of strings; got object", NULL},
        {"act", "{\"action\": \"key\", \"keys\": [[\"a\"]]}",
         "argument 'keys' must be a list of strings; got list", NULL},
    };
    CHECK(rows, true);
}

static const struct CMUnitTest tests[] = {
    CLAIM("arguments may be absent, null, a list or JSON text", t_objects),
    CLAIM("numbers, booleans and words are read in other spellings", t_scalars),
    CLAIM("lists are read from JSON text, one value and objects", t_lists),
    CLAIM("points are read from pairs", t_places),
    CLAIM("names are matched without case, and unknown ones are reported", t_names),
    CLAIM("no value is guessed, and a refusal names the argument and both types", t_refused),
};

int main(int argc, char **argv)
{
    tools = json_load_file("src/host/mcp_tools.json", 0, NULL);
    return tools ? check_main(argc, argv, tests, sizeof tests / sizeof *tests) : 1;
}
