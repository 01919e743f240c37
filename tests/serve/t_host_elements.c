/* t_host_elements.c - the tools snapshot, find and act with ref of `holorun mcp`: invalid arguments, and dialogs
 * of zenity and yad that a client without pictures completes.  Their output is the judge.
 */
#include "check.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/image.h"
#include "driven.h"
#include "host/mcp.h"
#include "hosted.h"
#include "program.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 15000, ASKS = 40 };

/* ---- arguments ----------------------------------------------------------------------------------------- */

/* Returns the lines that a server without a display sends back; the caller frees them. */
static char *answer_to(struct mcp *m, const char *tool, const char *arguments)
{
    struct rpc *r = mcp_rpc(m);
    size_t n;
    char *line =
        xasprintf("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
                  "\"arguments\":%s}}\n",
                  tool, arguments);
    rpc_feed(r, line, strlen(line));
    free(line);
    const char *out = rpc_output(r, &n);
    char *copy = xasprintf("%.*s", (int)n, out);
    rpc_written(r, n);
    return copy;
}

static const struct {
    const char *tool, *arguments, *says;
} refusals[] = {
    {"act", "{\"action\":\"press\"}", "argument 'ref' is missing; press needs the ref of an element"},
    {"act", "{\"ref\":\"e1\"}", "argument 'action' is missing"},
    {"act", "{\"action\":\"press\",\"ref\":\"the button\"}",
     "must be a ref of snapshot, as e12; got 'the button'"},
    {"act", "{\"action\":\"press\",\"ref\":\"e0\"}", "must be a ref of snapshot"},
    {"act", "{\"action\":\"press\",\"ref\":-3}", "must be a ref of snapshot"},
    {"act", "{\"action\":\"press\",\"ref\":[\"e1\"]}", "argument 'ref' must be a string"},
    {"act", "{\"action\":\"fill\",\"ref\":\"e1\"}", "argument 'value' is missing; fill needs the text"},
    {"act", "{\"action\":\"choose\",\"ref\":\"e1\"}",
     "argument 'value' is missing; choose needs the name of"},
    {"act", "{\"action\":\"choose\",\"ref\":\"e1\",\"value\":\"\"}",
     "argument 'value' is empty; choose needs the name of"},
    {"act", "{\"action\":\"drag\",\"ref\":\"e1\",\"x\":1,\"y\":1}", "argument 'ref' does not go with drag"},
    {"act", "{\"action\":\"press\",\"ref\":\"e1\",\"button\":\"right\"}",
     "argument 'button' does not go with press and ref"},
    {"act", "{\"action\":\"click\",\"ref\":\"e1\",\"button\":\"middle\"}",
     "argument 'button' does not go with click and ref"},
    {"act", "{\"action\":\"click\",\"ref\":\"e1\",\"count\":3}",
     "argument 'count' does not go with click and ref"},
    {"act", "{\"action\":\"press\",\"ref\":\"e1\",\"hold\":[\"ctrl\"]}", "argument 'hold' does not go with"},
    {"act", "{\"action\":\"type\",\"ref\":\"e1\",\"text\":\"a\",\"press_enter\":true}",
     "argument 'press_enter' does not go with type and ref"},
    {"act", "{\"action\":\"scroll\",\"ref\":\"e1\",\"direction\":\"down\"}",
     "argument 'direction' does not go with scroll and ref"},
    {"act", "{\"action\":\"polish\",\"ref\":\"e1\"}", "argument 'action' must be one of press, "},
    {"find", "{}", "argument 'words' or 'role' is missing"},
    {"find", "{\"words\":\" \"}", "argument 'words' or 'role' is missing"},
    {"snapshot", "{\"limit\":5}", "argument 'limit' must be an integer from 100 to 20000"},
    {"snapshot", "{\"all\":\"often\"}", "argument 'all' must be a boolean"},
    /* correct calls: only the display is missing */
    {"act", "{\"action\":\"press\",\"ref\":\"e12\"}", "this server does not start runs"},
    {"act", "{\"action\":\"click\",\"ref\":12}", "this server does not start runs"},
    {"act", "{\"action\":\"click\",\"ref\":\"e1\",\"button\":\"right\"}", "this server does not start runs"},
    {"act", "{\"action\":\"double_click\",\"ref\":\"e1\",\"count\":2}", "this server does not start runs"},
    {"act", "{\"action\":\"type\",\"ref\":\"[e12]\",\"text\":\"a\"}", "this server does not start runs"},
    {"snapshot", "{\"all\":\"true\",\"limit\":\"200\"}", "this server does not start runs"},
    {"find", "{\"role\":\"button\"}", "this server does not start runs"},
};

static void t_arguments(void **state)
{
    struct host *h = host_open(NULL, "", 0, NULL, NULL);
    struct mcp *m = mcp_new(h, "1");
    (void)state;
    rpc_feed(mcp_rpc(m), HELLO "\n", strlen(HELLO) + 1);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        char *got = answer_to(m, refusals[i].tool, refusals[i].arguments);
        if (!strstr(got, refusals[i].says) || !strstr(got, "\"isError\":true"))
            fail_msg("%s %s -> %s", refusals[i].tool, refusals[i].arguments, got);
        free(got);
    }
    char *value = xcalloc((1 << 20) + 1, 1);
    memset(value, 'x', 1 << 20);
    char *arguments = xasprintf("{\"action\":\"fill\",\"ref\":\"e1\",\"value\":\"%s\"}", value);
    char *got = answer_to(m, "act", arguments);
    if (!strstr(got, "argument 'value' has 1048576 bytes; at most 16384 can be typed") || strlen(got) > 2000)
        fail_msg("%.500s", got);
    free(got);
    free(arguments);
    free(value);
    mcp_free(m);
    host_close(h);
}

/* ---- schema -------------------------------------------------------------------------------------------- */

static const json_t *property(const json_t *tools, const char *tool, const char *name)
{
    const json_t *one;
    size_t i;
    json_array_foreach(tools, i, one)
    {
        if (!strcmp(json_string_value(json_object_get(one, "name")), tool))
            return json_object_get(json_object_get(json_object_get(one, "inputSchema"), "properties"), name);
    }
    return NULL;
}

static void t_schema(void **state)
{
    static const char *const types[] = {"string", "integer", "number", "boolean", "array", NULL};
    json_t *tools = json_load_file("src/host/mcp_tools.json", 0, NULL), *one, *p;
    const char *key;
    size_t i;
    (void)state;
    json_array_foreach(tools, i, one)
    {
        json_t *schema = json_object_get(one, "inputSchema"), *hints = json_object_get(one, "annotations");
        assert_string_equal(json_string_value(json_object_get(schema, "type")), "object");
        assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
        assert_true(json_is_boolean(json_object_get(hints, "readOnlyHint")));
        assert_true(strlen(json_string_value(json_object_get(one, "description"))) > 20);
        json_object_foreach(json_object_get(schema, "properties"), key, p)
        {
            if (!text_listed(types, json_string_value(json_object_get(p, "type"))))
                fail_msg("type of %s", key);
        }
    }
    static const char *const named[][2] = {
        {"act", "ref"},        {"act", "value"},       {"snapshot", "window"}, {"snapshot", "all"},
        {"snapshot", "limit"}, {"snapshot", "boxes"},  {"snapshot", "json"},   {"find", "words"},
        {"find", "role"},      {"screenshot", "marks"}};
    for (i = 0; i < sizeof named / sizeof *named; i++)
        if (!property(tools, named[i][0], named[i][1]))
            fail_msg("%s has no %s", named[i][0], named[i][1]);
    json_decref(tools);
}

/* ---- a client without pictures ------------------------------------------------------------------------- */

struct client {
    struct stage t;
    struct hosted h;
    char *out; /* file with the output of the program */
    int id;
};

static bool can_read(void)
{
    return zenity_fits() && program_exists("dbus-daemon") && file_exists("/usr/libexec/at-spi-bus-launcher");
}

static void start(struct client *c, const char *command)
{
    *c = (struct client){.id = 1};
    driven_open(&c->t);
    c->out = xvfb_place(&c->t.x, "printed");
    char *line = xasprintf("%s >'%s'", command, c->out);
    hosted_start_with(&c->h, &c->t, "mcp", ANSWER("Done."), WORDS("--on", "desk:800x600", "--start", line));
    hosted_say(&c->h, HELLO);
    hosted_answer(&c->h, 1);
    free(line);
}

static void end(struct client *c)
{
    assert_int_equal(hosted_end(&c->h), 0);
    assert_int_equal(json_array_size(stage_events(&c->t, NULL)), 0);
    driven_left_nothing(&c->t);
    free(c->out);
    stage_close(&c->t);
}

/* Calls a tool, and returns its answer, borrowed. */
static const json_t *call(struct client *c, const char *tool, const char *arguments)
{
    char *line =
        xasprintf("{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
                  "\"arguments\":%s}}",
                  ++c->id, tool, arguments);
    hosted_say(&c->h, line);
    free(line);
    return hosted_answer(&c->h, c->id);
}

static const char *text_of(const json_t *answer)
{
    const json_t *content = json_object_get(json_object_get(answer, "result"), "content");
    const char *text = json_string_value(json_object_get(json_array_get(content, 0), "text"));
    return text ? text : "";
}

/* Returns the ref of the first line of a snapshot with these words, waiting until it is there. */
static int ref_of(struct client *c, const char *words)
{
    const char *text = "";
    for (int i = 0; i < ASKS; i++, clock_sleep_ms(300)) {
        text = text_of(call(c, "snapshot", "{}"));
        for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
            char *line = xasprintf("%.*s", (int)strcspn(at, "\n"), at);
            bool has = strstr(line, words) && line[strspn(line, " ")] == 'e';
            int ref = has ? atoi(line + strspn(line, " ") + 1) : 0;
            free(line);
            if (ref)
                return ref;
            if (!at[strcspn(at, "\n")])
                break;
        }
    }
    fail_msg("no %s in: %s", words, text);
    return 0;
}

/* Does a deed, and returns the report. */
static const char *act(struct client *c, const char *action, int ref, const char *value, bool works)
{
    char *arguments =
        value ? xasprintf("{\"action\":\"%s\",\"ref\":\"e%d\",\"value\":\"%s\"}", action, ref, value)
              : xasprintf("{\"action\":\"%s\",\"ref\":\"e%d\"}", action, ref);
    const json_t *answer = call(c, "act", arguments);
    if (hosted_is_error(answer) == works)
        fail_msg("%s -> %s", arguments, text_of(answer));
    free(arguments);
    return text_of(answer);
}

/* Waits until the program has printed this. */
static void prints(const struct client *c, const char *expected)
{
    char *text = NULL;
    size_t n = 0;
    for (int ms = 0; ms < PATIENCE_MS; ms += 50, clock_sleep_ms(50)) {
        free(text);
        text = NULL;
        if (file_read(c->out, 1 << 16, &text, &n, NULL) == 0 && !strcmp(text, expected))
            break;
    }
    assert_string_equal(text, expected);
    free(text);
}

static void t_form(void **state)
{
    struct client c;
    (void)state;
    if (!can_read())
        skip();
    start(&c, "zenity --forms --add-entry=Name --add-combo=Size --combo-values='Small|Large'");
    int name = ref_of(&c, "field \"Name\"");
    check_has(act(&c, "fill", name, "Ana Lima", true), "e");
    const char *text = act(&c, "fill", name, "Eva \\\"E\\\" Lima", true);
    check_has(text, "filled field \"Name\"\nchanged:\n");
    check_has(text, "field \"Name\" = \"Eva \\\"E\\\" Lima\" focused");
    check_has(act(&c, "choose", ref_of(&c, "list \"Size\""), "Large", true),
              "chose \"Large\" in list \"Size\"");
    check_has(act(&c, "fill", ref_of(&c, "button \"OK\""), "x", false), "cannot be filled; nothing was done");
    check_has(act(&c, "tick", name, NULL, false), "cannot be ticked; press it; nothing was done");
    check_has(act(&c, "press", ref_of(&c, "button \"OK\""), NULL, true), "pressed button \"OK\"; a window");
    prints(&c, "Eva \"E\" Lima|Large\n");
    end(&c);
}

static void t_ticks(void **state)
{
    struct client c;
    (void)state;
    if (!can_read())
        skip();
    start(&c, "zenity --list --checklist --column=Pick --column=Fruit FALSE Apple TRUE Pear");
    int ok = ref_of(&c, "button \"OK\"");
    check_has(act(&c, "tick", ref_of(&c, "cell \"Apple\""), NULL, true), "ticked cell \"Apple\"");
    check_has(act(&c, "tick", ref_of(&c, "cell \"Apple\""), NULL, true), "it was so already");
    check_has(act(&c, "untick", ref_of(&c, "cell \"Pear\""), NULL, true), "unticked cell \"Pear\"");
    check_has(text_of(call(&c, "find", "{\"words\":\"pear\"}")), "cell \"Pear\"");
    check_has(act(&c, "press", 999999, NULL, false), "e999999 was not in a snapshot; call snapshot first");
    act(&c, "press", ok, NULL, true);
    prints(&c, "Apple\n");
    const char *text = act(&c, "press", ok, NULL, false);
    check_has(text, "was button \"OK\" and is gone; call snapshot again; nothing was done");
    assert_null(strchr(text, '\n'));
    end(&c);
}

/* The gate sees a deed as it sees a click, and a rule of the user stops it. */
static void t_rules(void **state)
{
    struct client c;
    (void)state;
    if (!can_read())
        skip();
    start(&c, "zenity --question --text=Sure --ok-label='Delete all' --cancel-label=Keep");
    const char *text = act(&c, "press", ref_of(&c, "button \"Delete all\""), NULL, false);
    check_has(text, "button \"Delete all\"");
    check_has(text, "the client cannot ask its user");
    ref_of(&c, "button \"Delete all\""); /* it is still there */
    act(&c, "press", ref_of(&c, "button \"Keep\""), NULL, true);
    end(&c);
}

static void t_marks(void **state)
{
    struct client c;
    (void)state;
    if (!can_read())
        skip();
    start(&c, "zenity --question --text=Sure");
    ref_of(&c, "button \"Yes\"");
    const json_t *answer = call(&c, "screenshot", "{\"marks\":true,\"max_size\":400}");
    const json_t *told = hosted_told(answer);
    assert_false(hosted_is_error(answer));
    assert_true(json_integer_value(json_object_get(told, "marks")) >= 2);
    assert_true(json_number_value(json_object_get(told, "scale")) == 2.0);
    const json_t *content = json_object_get(json_object_get(answer, "result"), "content");
    assert_string_equal(json_string_value(json_object_get(json_array_get(content, 1), "type")), "image");
    assert_true(hosted_is_error(call(&c, "snapshot", "{\"window\":\"no such window\"}")));
    json_t *all = json_loads(text_of(call(&c, "snapshot", "{\"json\":true}")), 0, NULL);
    assert_true(json_array_size(json_object_get(all, "elements")) >= 4);
    assert_true(json_is_true(json_object_get(all, "complete")));
    json_decref(all);
    act(&c, "press", ref_of(&c, "button \"No\""), NULL, true);
    end(&c);
}

static const struct CMUnitTest tests[] = {
    CLAIM("calls with missing, malformed or huge arguments are refused in one line", t_arguments),
    CLAIM("the schemas of the tools have types, hints and the options of the help", t_schema),
    CLAIM("a form is filled, and deeds that do not suit an element are refused", t_form),
    CLAIM("ticks are verified, and a ref of a closed dialog is refused", t_ticks),
    CLAIM("a rule that asks the user stops a deed", t_rules),
    CLAIM("a screenshot has marks, and a snapshot is JSON on request", t_marks),
};

CHECK_MAIN()
