/* t_calls.c - tests the reader of tool calls (actions/calls.h): the calls in a text, the bytes that belong to
 * them, and the texts that are markup.
 */
#include "check.h"
#include "drawn_texts.h"

#include "actions/calls.h"

#include <jansson.h>

enum { MAX_TEXT = 1 << 16 };

/* ---- known tools ------------------------------------------------------------------------------------- */

static bool has_tool(const void *arg, const char *name)
{
    return !strcmp(name, "click") || !strcmp(name, "write") || !strcmp(name, "done");
}

static bool has_parameter(const void *arg, const char *tool, const char *name)
{
    return !strcmp(tool, "click") ? !strcmp(name, "x") || !strcmp(name, "y")
                                  : !strcmp(name, "content") || !strcmp(name, "enter");
}

static const char *nth_parameter(const void *arg, const char *tool, int i)
{
    static const char *const click[] = {"x", "y"};
    return strcmp(tool, "click") != 0 || i > 1 ? NULL : click[i];
}

static const struct calls_hints known = {has_tool, has_parameter, nth_parameter, NULL};

/* Returns "click {"x": 1} 7-40 | ..." for each call, or the message of a fault. */
static char *seen(const char *text, const struct calls_hints *hints, char **content)
{
    struct calls c;
    struct buf b, rest;
    calls_read(text, strlen(text), hints, &c);
    buf_init(&b, MAX_TEXT);
    buf_init(&rest, MAX_TEXT);
    buf_puts(&b, "");
    for (int i = 0; i < c.n; i++) {
        char *arguments = c.list[i].arguments ? json_dumps(c.list[i].arguments, JSON_COMPACT) : NULL;
        buf_printf(&b, "%s%s%s%s%s", i ? " | " : "", c.list[i].name ? c.list[i].name : "",
                   arguments ? arguments : "", c.list[i].fault ? c.list[i].why : "",
                   c.list[i].repairs ? " *" : "");
        free(arguments);
        assert_true(c.list[i].begin <= c.list[i].end && c.list[i].end <= strlen(text));
        assert_true(!i || c.list[i].begin >= c.list[i - 1].end);
        assert_true((c.list[i].fault == FAULT_NONE) == (c.list[i].arguments != NULL));
    }
    calls_content(text, strlen(text), &c, &rest);
    *content = buf_take(&rest);
    calls_free(&c);
    return buf_take(&b);
}

struct example {
    const char *text, *calls, *content; /* content NULL: only white space; calls: "*" marks a repaired one */
};

static void check_examples(const struct example *examples, size_t n, const struct calls_hints *hints)
{
    for (size_t i = 0; i < n; i++) {
        char *content, *have = seen(examples[i].text, hints, &content);
        const char *rest = content + strspn(content, " \n\r");
        size_t len = strlen(rest);
        while (len && strchr(" \n\r", rest[len - 1]))
            len--;
        const char *want = examples[i].content ? examples[i].content : "";
        if (strcmp(have, examples[i].calls) != 0)
            fail_msg("in\n%s\nexpected %s\ngot      %s", examples[i].text, examples[i].calls, have);
        if (len != strlen(want) || memcmp(rest, want, len) != 0)
            fail_msg("in\n%s\nexpected content '%s', got '%s'", examples[i].text, want, content);
        free(content);
        free(have);
    }
}

#define CLICK      "click{\"x\":\"1\",\"y\":\"2\"}"
#define XML(inner) "<tool_call>\n<function=click>\n" inner "</function>\n</tool_call>"
#define X          "<parameter=x>\n1\n</parameter>\n"
#define Y          "<parameter=y>\n2\n</parameter>\n"

static void t_xml(void **state)
{
    static const struct example examples[] = {
        {XML(X Y), CLICK, NULL},
        {"First.\n\n" XML(X Y) "\nThen.", CLICK, "First.\n\n\nThen."},
        {"<function=click>\n" X Y "</function>\n</tool_call>", CLICK " *", NULL},
        {"I click.\n\n<function=click>\n" X Y "</function>", CLICK " *", "I click."},
        {XML("<parameter=x>\n1\n" Y), CLICK " *", NULL},
        {XML(X "<parameter=y>\n2\n"), CLICK " *", NULL},
        {"<tool_call>\n<function=click>\n" X "<parameter=y>\n2\n</tool_call>", CLICK " *", NULL},
        {"<tool_call>\n<function=click>\n" X "<parameter=y>\n2\n", CLICK " *", NULL},
        {"<tool_call>\n<function=click>\n" X "<parameter=y>\n2",
         "the call is cut off: '</parameter>' is missing *",
         "<tool_call>\n<function=click>\n" X "<parameter=y>\n2"},
        {"<tool_call>\n<function=click>\n" X Y, CLICK " *", NULL},
        {XML(X Y "</parameter>\n"), CLICK " *", NULL},
        {XML(X Y "</function>\n"), CLICK " *", NULL},
        {XML(X Y) "\n</tool_call>", CLICK " *", NULL},
        {"<tool_call>\n<function=click>\n" X Y "</tool_call>\n</function>", CLICK " *", NULL},
        {"<tool_call>\n<function=click>\n" X "<parameter=y>\n2\n</function>\n</parameter>\n</tool_call>",
         CLICK " *", NULL},
        {XML(X "<parameter=y>\n2\n</parameter1>\n"), CLICK " *", NULL},
        {XML(X "<parameter=y>\n2\n</parameter/>\n"), CLICK " *", NULL},
        {XML(X "<parameter=y>\n2\n</parameter\n"), CLICK " *", NULL},
        {XML(X "<parameter=y>\n2\n</parameterfunction>\n"), CLICK " *", NULL},
        {"<tool_call>\n<function=click>\n" X Y "</function_invocation>\n</tool_call>", CLICK " *", NULL},
        {"<tool_call><function=click><parameter=x>1</parameter><parameter=y>2</parameter></function></tool_call>",
         CLICK " *", NULL},
        {"<function=click><parameter=x>1<parameter=y>2</function>", CLICK " *", NULL},
        {"<tool_call>\n<function name=\"click\">\n<parameter name=\"x\">1</parameter>\n<parameter name='y'>2</parameter>\n"
         "</function>\n</tool_call>",
         CLICK " *", NULL},
        {"<function_calls>\n<invoke name=\"click\">\n<parameter name=\"x\">1</parameter>\n<parameter "
         "name=\"y\">2</parameter>\n</invoke>\n</function_calls>",
         CLICK " *", NULL},
        {"<tool_call>\n<function=click>\n<parameter=x=1</parameter>\n" Y "</function>\n</tool_call>",
         CLICK " *", NULL},
        {"```xml\n" XML(X Y) "\n```\nDone.", CLICK " *", "Done."},
        {"  <function=write>\n    <parameter=content>\n      if (a)\n        b();\n    </parameter>\n  </function>",
         "write{\"content\":\"if (a)\\n  b();\"} *", NULL},
        {"<function=click>\n" X Y "<function=done>\n</function>", CLICK " * | done{} *", NULL},
        {"<tool_call>\r\n<function=click>\r\n<parameter=x>\r\n1\r\n</parameter>\r\n<parameter=y>\r\n2\r\n</parameter>\r\n"
         "</function>\r\n</tool_call>",
         CLICK, NULL},
        {"<function=click>{\"x\": 1, \"y\": 2}</function>", "click{\"x\":1,\"y\":2} *", NULL},
        {XML(X Y) "\n" XML(X), CLICK " | click{\"x\":\"1\"}", NULL},
        {"<tool_call>\n<function=click>\n" X
         "<parameter=y>\n2\n<tool_call>\n<function=done>\n</function>\n</tool_call>",
         "the call is cut off: '</parameter>' is missing * | done{}",
         "<tool_call>\n<function=click>\n" X "<parameter=y>\n2"},
        {XML(X Y) "<|im_end|>", CLICK " *", NULL},
        {"I use <tool_call> now.\n" XML(X Y), CLICK, "I use <tool_call> now."},
        {"The tag <function=click> begins a call.", "", "The tag <function=click> begins a call."},
        {"<function=done> ends it.", "", "<function=done> ends it."},
        {"<function=done></function>", "done{} *", NULL},
        {"<tool_call>\n</tool_call>", "the call has no '<function=NAME>'", "<tool_call>\n</tool_call>"},
        {XML("<parameter=x>\n1\n</parameter>\n" X), "'x' is given twice *",
         XML("<parameter=x>\n1\n</parameter>\n" X)},
    };
    check_examples(examples, sizeof examples / sizeof *examples, &known);
}

#define WRITE(text)                                                                                          \
    "<tool_call>\n<function=write>\n<parameter=content>\n" text "\n</parameter>\n</function>\n</tool_call>"

/* If the call is well formed, markup within a line or of unknown tools is text. */
static void t_text(void **state)
{
    static const char *const texts[] = {
        "a </parameter> b",
        "use <parameter=x> and <function=click> here",
        "<b>x</b> </function>",
        "end with </parameter>",
        "<function=demo>\n</function>\n</tool_call>",
        "<parameter=speed>\n5",
        "  indented\n\n\nlines\n",
        "",
        "\n",
        "</parameters>",
        "a\tb",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct calls c;
        char *reply = xasprintf(WRITE("%s"), texts[i]);
        calls_read(reply, strlen(reply), &known, &c);
        if (c.n != 1 || c.list[0].fault || c.list[0].repairs ||
            strcmp(json_string_value(json_object_get(c.list[0].arguments, "content")), texts[i]) != 0)
            fail_msg("'%s' is read as '%s'", texts[i],
                     c.n && !c.list[0].fault
                         ? json_string_value(json_object_get(c.list[0].arguments, "content"))
                         : "a fault");
        calls_free(&c);
        free(reply);
    }
}

static void t_json(void **state)
{
#define JSON_CALL "{\"name\": \"click\", \"arguments\": {\"x\": 1, \"y\": 2}}"
#define READ      "click{\"x\":1,\"y\":2}"
    static const struct example examples[] = {
        {"<tool_call>\n" JSON_CALL "\n</tool_call>", READ, NULL},
        {JSON_CALL, READ, NULL},
        {"<TOOLCALL>[" JSON_CALL "]</TOOLCALL>", READ, NULL},
        {"[TOOL_CALLS][" JSON_CALL "]", READ, NULL},
        {"[TOOL_CALLS]click{\"x\": 1, \"y\": 2}", READ " *", NULL},
        {"[TOOL_CALLS]click[ARGS]{\"x\": 1, \"y\": 2}", READ " *", NULL},
        {"[TOOL_CALLS]click[CALL_ID]a1[ARGS]{\"x\": 1, \"y\": 2}", READ " *", NULL},
        {"```json\n" JSON_CALL "\n```", READ " *", NULL},
        {"Sure:\n```\n" JSON_CALL "\n```\nDone.", READ " *", "Sure:\n\nDone."},
        {"I call " JSON_CALL " now.", READ " *", "I call  now."},
        {"{\"name\": \"click\", \"parameters\": {\"x\": 1, \"y\": 2}}", READ, NULL},
        {"{\"type\": \"tool_use\", \"name\": \"click\", \"input\": {\"x\": 1, \"y\": 2}}", READ, NULL},
        {"{\"name\": \"click\", \"args\": {\"x\": 1, \"y\": 2}}", READ, NULL},
        {"{\"name\": \"click\", \"x\": 1, \"y\": 2}", READ " *", NULL},
        {"{\"name\": \"click\", \"arguments\": \"{\\\"x\\\": 1, \\\"y\\\": 2}\"}", READ, NULL},
        {"{\"name\": \"click\", \"arguments\": \"```json\\n{\\\"x\\\": 1, \\\"y\\\": 2}\\n```\"}", READ " *",
         NULL},
        {"{\"name\": \"done\", \"arguments\": \"\"}", "done{}", NULL},
        {"{\"name\": \"done\", \"arguments\": null}", "done{}", NULL},
        {"{\"name\": \"done\", \"arguments\": \"{}\\\"\\\"\"}", "done{} *", NULL},
        {"{\"function\": {\"name\": \"click\", \"arguments\": {\"x\": 1, \"y\": 2}}, \"type\": \"function\"}",
         READ, NULL},
        {"{\"tool_calls\": [" JSON_CALL ", " JSON_CALL "]}", READ " | " READ, NULL},
        {"<tool_call>{\"name\": \"click\", \"arguments\": {\"x\": 1, \"y\": 2}</tool_call>", READ " *", NULL},
        {"<tool_call>{\"name\": \"click\", \"arguments\": {\"x\": 1, \"y\": 2}}}</tool_call>", READ " *",
         NULL},
        {"<tool_call>{{\"name\": \"click\", \"arguments\": {\"x\": 1, \"y\": 2}}}</tool_call>", READ " *",
         NULL},
        {"<tool_call>{'name': 'click', 'arguments': {'x': 1, 'y': 2}}</tool_call>", READ " *", NULL},
        {"<tool_call>{name: \"click\", arguments: {x: 1, y: 2}}</tool_call>", READ " *", NULL},
        {"<tool_call>{\"name\": \"click\", \"arguments\": {\"x\": 1, \"y\": 2},}</tool_call>", READ " *",
         NULL},
        {"<tool_call>{\"name\": \"click\"}, \"arguments\": {\"x\": 1, \"y\": 2}}</tool_call>", READ " *",
         NULL},
        {"<TOOLCALL>[{\"name\": \"click\", \"arguments\": {\"x\": 1, \"y\": 2]}}</TOOLCALL>", READ " *",
         NULL},
        {"<tool_call>\n" JSON_CALL, READ " *", NULL},
        {"<tool_call>\n{\"name\": \"click\", \"arguments\": {\"x\": 1, \"y\": 2}", READ " *", NULL},
        {"<TOOLCALL>[{\"name\": \"click\", \"arguments\": {\"x\": 1, \"y\": 2}}", READ " *", NULL},
        {"<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>", "a function call must have a 'name'",
         "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>"},
        {"<function=click>{\"x\": \"a", "the JSON is cut off inside a string *",
         "<function=click>{\"x\": \"a"},
        {"<function=click>{\"x\": 1, \"y", "the JSON is cut off inside a string *",
         "<function=click>{\"x\": 1, \"y"},
        {"<tool_call>\n" JSON_CALL "\n<tool_call>\n" JSON_CALL "\n</tool_call>", READ " * | " READ, NULL},
        {"<tool_call>{\"name\": \"write\", \"arguments\": {\"content\": \"a </tool_call> }\"}}</tool_call>",
         "write{\"content\":\"a </tool_call> }\"}", NULL},
        {"<|python_tag|>" JSON_CALL "<|eom_id|>", READ " *", NULL},
        {"<tool_call>{\"name\": \"click\", \"arguments\": {\"x\": 1, \"y\": 2",
         "the JSON is cut off: 2 brackets are still open *",
         "<tool_call>{\"name\": \"click\", \"arguments\": {\"x\": 1, \"y\": 2"},
        {"I fly.\n{\"name\": \"fly\", \"x\": 1},\n" JSON_CALL, "a call before another one names no tool",
         "I fly.\n{\"name\": \"fly\", \"x\": 1},\n" JSON_CALL},
        {JSON_CALL "\n<tool_call>\n" JSON_CALL "\n</tool_call>",
         "a call without a wrapper is before one in a wrapper: write one call",
         JSON_CALL "\n<tool_call>\n" JSON_CALL "\n</tool_call>"},
        {"The object {\"name\": \"Bingo\", \"age\": 30} is JSON.", "",
         "The object {\"name\": \"Bingo\", \"age\": 30} is JSON."},
        {"Items [1] and [2].", "", "Items [1] and [2]."},
        {"Nothing.", "", "Nothing."},
    };
    check_examples(examples, sizeof examples / sizeof *examples, &known);
}

static void t_python(void **state)
{
    static const struct example examples[] = {
        {"[click(x=1, y=2)]", READ, NULL},
        {"[click(x=1, y=2), done()]", READ " | done{}", NULL},
        {"I click.\n[click(x=1, y=2)]", READ " *", "I click."},
        {"click(x=1, y=2)", READ, NULL},
        {"click(1, 2)", READ " *", NULL},
        {"[click(x=1, y=2)", READ " *", NULL},
        {"functions.click(x=1, y=2)", READ " *", NULL},
        {"```tool_code\nclick(x=1, y=2)\n```", READ " *", NULL},
        {"<|python_start|>[click(x=1, y=2)]<|python_end|>", READ " *", NULL},
        {"<tool_call>click(x=1, y=2)</tool_call>", READ, NULL},
        {"write(content=\"a, b)\", enter=true)", "write{\"content\":\"a, b)\",\"enter\":true}", NULL},
        {"write(content={\"a\": [1]})", "write{\"content\":{\"a\":[1]}}", NULL},
        {"I would click(x=1) here.", "", "I would click(x=1) here."},
        {"default_api.click(x=1, y=2)", READ " *", NULL},
        {"link.click(x=1, y=2);", "", "link.click(x=1, y=2);"},
        {"link.click();", "", "link.click();"},
        {"fly(x=1)", "", "fly(x=1)"},
        {"[fly(x=1)]", "", "[fly(x=1)]"},
    };
    check_examples(examples, sizeof examples / sizeof *examples, &known);
}

static void t_unknown(void **state)
{
    static const struct example examples[] = {
        {XML(X Y), CLICK, NULL},
        {XML("<parameter=x>\n1\n" Y), CLICK " *", NULL},
        {"{\"name\": \"fly\", \"arguments\": {\"to\": \"a\"}}", "fly{\"to\":\"a\"}", NULL},
        {"[fly(x=1)]", "fly{\"x\":1}", NULL},
        {"fly(x=1)", "", "fly(x=1)"},
        {"print(1)", "", "print(1)"},
        {"Here is {\"name\": \"Bingo\", \"age\": 30}.", "", "Here is {\"name\": \"Bingo\", \"age\": 30}."},
    };
    check_examples(examples, sizeof examples / sizeof *examples, NULL);
}

/* ---- values, markup, time ------------------------------------------------------------------------------ */

static void t_types(void **state)
{
    static const char reply[] =
        "<tool_call>\n<function=f>\n<parameter=n>\n42\n</parameter>\n<parameter=s>\n42\n"
        "</parameter>\n<parameter=b>\nTrue\n</parameter>\n<parameter=o>\n{\"a\": [1]}\n"
        "</parameter>\n<parameter=r>\n4.5\n</parameter>\n<parameter=u>\n[1, 2]\n</parameter>\n"
        "<parameter=i>\n4.5\n</parameter>\n</function>\n</tool_call>";
    json_t *schema = json_pack("{s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}, s:{s:[s,s]}, s:{s:s}}", "n", "type",
                               "integer", "s", "type", "string", "b", "type", "boolean", "o", "type",
                               "object", "r", "type", "null", "number", "i", "type", "integer");
    struct calls c;
    calls_read(reply, strlen(reply), NULL, &c);
    assert_int_equal(c.n, 1);
    assert_true(c.list[0].texts);
    calls_convert(&c.list[0], schema);
    char *have = json_dumps(c.list[0].arguments, JSON_COMPACT);
    assert_string_equal(
        have, "{\"n\":42,\"s\":\"42\",\"b\":true,\"o\":{\"a\":[1]},\"r\":4.5,\"u\":[1,2],\"i\":\"4.5\"}");
    free(have);
    calls_free(&c);
    json_decref(schema);
}

static void t_markup(void **state)
{
    static const char *const marked[] = {
        "a <tool_call> b", "</tool_call>", "<TOOLCALL>",       "</parameter>",    "<parameter=x>",
        "<function=f>",    "</function>",  "<invoke name=",    "</invoke>",       "<|im_end|>",
        "<|box_start|>",   "[TOOL_CALLS]", "</parameter",      "</Parameter >",   "</function_call>",
        "<arg_key>",       "<Function=a>", "a\n</parameter1>", "<tool_response>", "<|endoftext|>"};
    static const char *const plain[] = {
        "<b>bold</b>",  "a < b | c > d", "x <| y",  "<parameters>",      "<table></table>",
        "</functions>", "function=1",    "[tools]", "<p>parameter=</p>", "<|",
        "</p"};
    size_t len;
    for (size_t i = 0; i < sizeof marked / sizeof *marked; i++)
        if (!calls_markup(marked[i], strlen(marked[i]), &len))
            fail_msg("'%s' is not seen as markup", marked[i]);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (calls_markup(plain[i], strlen(plain[i]), &len))
            fail_msg("'%s' is seen as markup", plain[i]);
}

static void t_stream(void **state)
{
    static const struct {
        const char *text;
        size_t safe;
    } cases[] = {{"I click now.", 12}, {"I click <", 8}, {"First.\nclick(", 7},
                 {"First.\ncli", 7},   {"a [1]", 2},     {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(calls_safe_prefix(cases[i].text, strlen(cases[i].text), &known), cases[i].safe);
}

/* Texts of repeated call beginnings, 64 KiB each, take less than two seconds of CPU in total. */
static void t_time(void **state)
{
    static const char *const units[] = {
        "<tool_call>",   "</parameter>x", "<function=click>", "{\"a\":", "[", "<parameter=x>",
        "</function>\n", "click(",        "{\"name\": \"",    "```",     "<", "[TOOL_CALLS]"};
    enum { SIZE = 64 << 10 };
    double begin = drawn_cpu_ms();
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct buf b;
        struct calls c;
        buf_init(&b, SIZE + 100);
        buf_puts(&b, i & 1 ? "<tool_call>\n<function=write>\n<parameter=content>\n" : "");
        while (b.len < SIZE)
            buf_puts(&b, units[i]);
        calls_read(b.data, b.len, &known, &c);
        calls_free(&c);
        buf_free(&b);
    }
    double ms = drawn_cpu_ms() - begin;
    check_note("%.0f ms for %zu texts of %d KiB", ms, sizeof units / sizeof *units, SIZE >> 10);
    assert_true(ms < 2000 || CHECK_SANITIZED);
}

static const struct CMUnitTest tests[] = {
    CLAIM("calls in XML are read, well formed or not, and the rest is content", t_xml),
    CLAIM("markup within a line of a well-formed call is text", t_text),
    CLAIM("calls in JSON are read, with and without tags", t_json),
    CLAIM("calls in Python are read on a separate line", t_python),
    CLAIM("without known tools any name is accepted, except in Python without brackets", t_unknown),
    CLAIM("texts of the XML form become values of the schema's types", t_types),
    CLAIM("call markup is found in a text, other markup is not", t_markup),
    CLAIM("content before the possible beginning of a call can be streamed", t_stream),
    CLAIM("texts of repeated call beginnings are read within two seconds of CPU", t_time),
};

CHECK_MAIN()
