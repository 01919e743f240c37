/* t_host_replies.c - tests other requests of MCP and ACP clients than tool calls, and the size of replies.
 *
 * Requests are answered by the server in this process, which starts nothing; images come from the program.
 */
#include "check.h"

#include "driven.h"
#include "host/acp.h"
#include "host/mcp.h"
#include "hosted.h"

#include <X11/Xutil.h>
#include <math.h>
#include <string.h>

/* 57,344 times DEL: 13 bytes each in a reply, which contains the text twice. */
#define DEL_8 "\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f"
#define DEL_128                                                                                              \
    DEL_8 DEL_8 DEL_8 DEL_8 DEL_8 DEL_8 DEL_8 DEL_8 DEL_8 DEL_8 DEL_8 DEL_8 DEL_8 DEL_8 DEL_8 DEL_8
#define DEL_2K                                                                                               \
    DEL_128 DEL_128 DEL_128 DEL_128 DEL_128 DEL_128 DEL_128 DEL_128 DEL_128 DEL_128 DEL_128 DEL_128 DEL_128  \
        DEL_128 DEL_128 DEL_128
#define DELS                                                                                                 \
    DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K \
        DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K DEL_2K

/* ---- requests ------------------------------------------------------------------------------------------- */

struct exchange {
    const char *sent;   /* without the members "jsonrpc" */
    const char *answer; /* part of the lines sent back; "": none */
};

static char *answers(struct rpc *r, const char *sent)
{
    char *line = xasprintf("%s\n", sent);
    size_t n;
    rpc_feed(r, line, strlen(line));
    const char *out = rpc_output(r, &n);
    char *copy = xasprintf("%.*s", (int)n, out);
    rpc_written(r, n);
    free(line);
    return copy;
}

static void exchange(struct rpc *r, const struct exchange *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool array = *rows[i].sent == '[';
        char *line = array ? xstrdup(rows[i].sent) : xasprintf("{\"jsonrpc\":\"2.0\",%s}", rows[i].sent);
        char *got = answers(r, line);
        if (*rows[i].answer ? !strstr(got, rows[i].answer) : *got != 0)
            fail_msg("%s -> %s, not %s", line, got, rows[i].answer);
        free(got);
        free(line);
    }
}

#define EXCHANGE(r, rows) exchange(r, rows, sizeof(rows) / sizeof *(rows))
#define BEGIN(version)                                                                                       \
    "\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":" version ",\"capabilities\":{}}"
#define ASK(method, params) "\"id\":\"x\",\"method\":\"" method "\",\"params\":" params
#define MODERN(more)        "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}" more "}"
#define RESULT(text)        "\"id\":\"x\",\"result\":" text
#define ERROR(code)         "\"id\":\"x\",\"error\":{\"code\":" code ","

static void t_session(void **state)
{
    static const struct exchange rows[] = {
        {ASK("ping", "{}"), RESULT("{}")},
        {ASK("prompts/list", "{}"), ERROR("-32600")}, /* before initialize */
        {"\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":0}", ""},
        {BEGIN("\"2025-06-18\""),
         "\"capabilities\":{\"tools\":{},\"prompts\":{},\"resources\":{},\"logging\":{}}"},
        {"\"method\":\"notifications/initialized\"", ""},
        {ASK("prompts/list", "{}"), RESULT("{\"prompts\":[]}}")},
        {ASK("prompts/list", "null"), RESULT("{\"prompts\":[]}}")},
        {ASK("resources/list", "{\"cursor\":null}"), RESULT("{\"resources\":[]}}")},
        {ASK("resources/list", "{\"cursor\":\"\",\"_meta\":{\"progressToken\":1}}"),
         RESULT("{\"resources\":[]}}")},
        {ASK("resources/templates/list", "[]"), RESULT("{\"resourceTemplates\":[]}}")},
        {ASK("resources/templates/list", "{\"cursor\":\"2\"}"), ERROR("-32602")},
        {ASK("tools/list", "{\"cursor\":\"2\"}"), ERROR("-32602")},
        {ASK("tools/list", "{\"_meta\":null}"), RESULT("{\"tools\":[")},
        {ASK("prompts/get", "{\"name\":\"a\"}"), ERROR("-32602") "\"message\":\"unknown prompt 'a'\""},
        {ASK("prompts/get", "{}"), ERROR("-32602") "\"message\":\"'name' is missing"},
        {ASK("resources/read", "{\"uri\":\"a:b\"}"),
         ERROR("-32002") "\"message\":\"resource 'a:b' not found\",\"data\":{\"uri\":\"a:b\"}"},
        {ASK("resources/read", "{\"uri\":7}"), ERROR("-32602")},
        {ASK("resources/subscribe", "{\"uri\":\"a:b\"}"), ERROR("-32601")},
        {ASK("completion/complete", "{}"), ERROR("-32601")}, /* not declared */
        {ASK("logging/setLevel", "{\"level\":\"warning\"}"), RESULT("{}")},
        {ASK("logging/setLevel", "{\"level\":\"loud\"}"), ERROR("-32602")},
        {ASK("logging/setLevel", "{}"), ERROR("-32602")},
        {ASK("notifications/initialized", "{}"), ERROR("-32601")},
        {"\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"none\",\"reason\":null}", ""},
        {"\"method\":\"notifications/cancelled\"", ""},
        {"\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":2}", ""},
        {"\"method\":\"notifications/roots/list_changed\"", ""},
        {"\"method\":\"notifications/none\",\"params\":null", ""},
        {"\"method\":\"tools/call\",\"params\":{\"name\":\"windows\"}", ""}, /* without an id */
        {ASK("tools/call", "{\"name\":\"none\"}"), ERROR("-32602") "\"message\":\"unknown tool 'none'\""},
        {ASK("tools/call", "{\"name\":\"windows\",\"arguments\":null}"), "this server does not start runs"},
        {ASK("tools/call", "{\"name\":\"windows\",\"arguments\":\"{}\"}"), "this server does not start runs"},
        {ASK("tools/call", "{\"name\":\"run_stop\",\"arguments\":{\"run_id\":true}}"),
         "argument 'run_id' must be a string; got boolean true\"},\"isError\":true"},
        {ASK("tools/call", "{\"name\":\"windows\",\"arguments\":{\"a\":1}}"),
         "{\"type\":\"text\",\"text\":\"Unknown arguments were ignored: 'a'\"}"},
    };
    struct host *h = host_open(NULL, "", 0, NULL, NULL);
    struct mcp *m = mcp_new(h, "1");
    EXCHANGE(mcp_rpc(m), rows);
    mcp_free(m);
    host_close(h);
}

static void t_versions(void **state)
{
    static const struct exchange rows[] = {
        {BEGIN("\"2024-11-05\""), "\"protocolVersion\":\"2024-11-05\""},
        {BEGIN("\"2025-03-26\""), "\"protocolVersion\":\"2025-03-26\""},
        {BEGIN("\"2025-11-25\""), "\"protocolVersion\":\"2025-11-25\""},
        {BEGIN("\"2099-01-01\""), "\"protocolVersion\":\"2025-11-25\""},
        {BEGIN("\"2026-07-28\""), "\"protocolVersion\":\"2025-11-25\""}, /* that version has no initialize */
        {BEGIN("\"\""), "\"protocolVersion\":\"2025-11-25\""},
        {BEGIN("1"), "\"code\":-32602"},
        {BEGIN("null"), "\"code\":-32602"},
    };
    static const struct exchange batch[] = {
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"},"
         "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"prompts/list\"}]",
         "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{\"prompts\":[]}}]\n"},
        {"[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}]", ""},
    };
    static const struct exchange modern[] = {
        {ASK("server/discover", MODERN("")),
         "\"capabilities\":{\"tools\":{},\"prompts\":{},\"resources\":{},\"extensions\":"},
        {ASK("prompts/list", MODERN("")),
         RESULT("{\"prompts\":[],\"ttlMs\":3600000,\"cacheScope\":\"public\",\"resultType\":\"complete\"")},
        {ASK("resources/templates/list", MODERN("")), RESULT("{\"resourceTemplates\":[],\"ttlMs\":")},
        {ASK("resources/list", MODERN(",\"cursor\":\"2\"")), ERROR("-32602")},
        {ASK("resources/read", MODERN(",\"uri\":\"a:b\"")), ERROR("-32602")},
        {ASK("prompts/get", MODERN(",\"name\":\"a\"")), ERROR("-32602")},
        /* removed in this version */
        {ASK("logging/setLevel", MODERN(",\"level\":\"info\"")), ERROR("-32601")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct host *h = host_open(NULL, "", 0, NULL, NULL);
        struct mcp *m = mcp_new(h, "1");
        exchange(mcp_rpc(m), &rows[i], 1);
        if (i < 2)
            EXCHANGE(mcp_rpc(m), batch);
        EXCHANGE(mcp_rpc(m), modern);
        mcp_free(m);
        host_close(h);
    }
}

static void t_acp(void **state)
{
    static const struct exchange rows[] = {
        {ASK("initialize", "{\"protocolVersion\":\"1\",\"clientCapabilities\":null}"),
         RESULT("{\"protocolVersion\":1,")},
        {ASK("initialize", "{\"protocolVersion\":99}"), RESULT("{\"protocolVersion\":1,")},
        {ASK("initialize", "null"), ERROR("-32602")},
        {ASK("session/new", "{\"cwd\":null,\"mcpServers\":null}"), RESULT("{\"sessionId\":")},
        {ASK("session/prompt", "{\"sessionId\":null,\"prompt\":\"a\"}"),
         ERROR("-32602") "\"message\":\"'sessionId' does not name an open session"},
        {ASK("session/load", "{\"sessionId\":\"../x\"}"), ERROR("-32602")},
        {ASK("session/set_mode", "{}"), ERROR("-32601")},
        {ASK("session/cancel", "{}"), RESULT("{}")},
        {"\"method\":\"session/cancel\",\"params\":null", ""},
        {"\"method\":\"none\"", ""},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"authenticate\"}]",
         "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]\n"},
    };
    static const char *const prompts[] = {"\"a\"",
                                          "[\"a\"]",
                                          "{\"type\":\"text\",\"text\":\"a\"}",
                                          "\"[1]\"",
                                          "\"[{\\\"type\\\":\\\"text\\\",\\\"text\\\":\\\"a\\\"}]\"",
                                          "[null,{\"type\":\"resource_link\",\"uri\":\"a:b\"}]"};
    static const char *const empty[] = {"null", "[]", "\"\"", "5", "[{\"type\":\"image\",\"data\":\"\"}]"};
    struct host *h = host_open(NULL, "", 0, NULL, NULL);
    struct acp *a = acp_new(h, "1");
    EXCHANGE(acp_rpc(a), rows);
    char *got = answers(acp_rpc(a), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\"}");
    char id[33] = "";
    sscanf(strstr(got, "sessionId"), "sessionId\":\"%32[0-9a-f]", id);
    free(got);
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts + sizeof empty / sizeof *empty; i++) {
        bool good = i < sizeof prompts / sizeof *prompts;
        const char *prompt = good ? prompts[i] : empty[i - sizeof prompts / sizeof *prompts];
        char *line = xasprintf(
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"%s\",\"prompt\":%s}}",
            id, prompt);
        got = answers(acp_rpc(a), line);
        if (!strstr(got, good ? "this server does not start runs" : "'prompt' must be a list"))
            fail_msg("%s -> %s", line, got);
        free(got);
        free(line);
    }
    acp_free(a);
    host_close(h);
}

/* ---- pictures and long texts ------------------------------------------------------------------------------ */

enum { LINE_LIMIT = 1048576, PICTURE_LIMIT = 900 << 10 }; /* a client's limit, and ours in base64 */

/* Paints the window of the stage with random colours: its screenshot takes 1.9 MB in base64. */
static void paint_noise(const struct stage *t)
{
    enum { W = 800, H = 600 };
    uint32_t *pixels = xcalloc((size_t)W * H, sizeof *pixels), v = 1;
    Window root, parent, *children = NULL;
    unsigned n = 0;
    for (size_t i = 0; i < (size_t)W * H; i++)
        pixels[i] = (v = v * 1664525 + 1013904223) >> 8;
    XImage *im =
        XCreateImage(t->other, DefaultVisual(t->other, 0), 24, ZPixmap, 0, (char *)pixels, W, H, 32, 0);
    GC gc = XCreateGC(t->other, DefaultRootWindow(t->other), 0, NULL);
    XQueryTree(t->other, DefaultRootWindow(t->other), &root, &parent, &children, &n);
    for (unsigned i = 0; i < n; i++)
        XPutImage(t->other, children[i], gc, im, 0, 0, 0, 0, W, H);
    XSync(t->other, False);
    XFree(children);
    XFreeGC(t->other, gc);
    XDestroyImage(im); /* frees the pixels, too */
}

/* Checks the size of an answer and of its image, and that the scale is reported. Returns the size of the
 * image. */
static json_int_t check_picture(const json_t *answer, json_int_t size[2])
{
    const json_t *content = json_object_get(json_object_get(answer, "result"), "content"), *one, *side;
    size_t i, data = 0;
    char *line = json_dumps(answer, JSON_COMPACT);
    json_array_foreach(content, i, one) data += json_string_length(json_object_get(one, "data"));
    if (strlen(line) >= LINE_LIMIT || data > PICTURE_LIMIT || data < PICTURE_LIMIT / 2)
        fail_msg("%zu bytes, %zu of them in the picture", strlen(line), data);
    side = json_object_get(hosted_told(answer), "picture_size");
    size[0] = json_integer_value(json_array_get(side, 0));
    size[1] = json_integer_value(json_array_get(side, 1));
    double scale = json_number_value(json_object_get(hosted_told(answer), "scale"));
    assert_true(scale > 1 && fabs(scale - 800.0 / (double)size[0]) < 1e-6);
    free(line);
    return json_integer_value(json_object_get(hosted_told(answer), "picture_id"));
}

/* Counts log messages with this member. */
static int log_messages(const struct hosted *h, const char *key)
{
    const json_t *message;
    size_t i;
    int n = 0;
    json_array_foreach(h->heard, i, message)
    {
        const char *method = json_string_value(json_object_get(message, "method"));
        const json_t *data = json_object_get(json_object_get(message, "params"), "data");
        n += method && !strcmp(method, "notifications/message") && json_object_get(data, key);
    }
    return n;
}

/* Clicks in pixels of a reduced image reach the corresponding point. */
static void t_pictures(void **state)
{
    struct stage t;
    struct hosted h;
    json_int_t size[2], later[2];
    driven_open(&t);
    paint_noise(&t);
    hosted_start(&h, &t, "mcp", CLICK(300, 300) STEP("\"answer\", \"content\": \"It is pressed. " DELS "\""));
    hosted_say(&h, HELLO);
    hosted_answer(&h, 1);
    hosted_say(
        &h, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"logging/setLevel\",\"params\":{\"level\":\"info\"}}");
    hosted_say(&h, TOOL(2, "screenshot", "{\"max_size\":8192}"));
    json_int_t id = check_picture(hosted_answer(&h, 2), size);
    hosted_say(&h, TOOL(3, "screenshot", "{\"region\":[100,50,64,64]}"));
    hosted_answer(&h, 3);
    static const double places[][2] = {{0.2, 0.2}, {0.75, 0.75}, {0.5, 0.25}, {0.223, 0.777}};
    for (int i = 0; i < 4; i++) {
        json_int_t x = (json_int_t)((double)size[0] * places[i][0]),
                   y = (json_int_t)((double)size[1] * places[i][1]);
        char *call =
            xasprintf(TOOL(% d, "act", "{\"action\":\"click\",\"x\":\"%d,%d\",\"picture_id\":\"%d\"}"),
                      10 + i, (int)x, (int)y, (int)id);
        hosted_say(&h, call);
        check_picture(hosted_answer(&h, 10 + i), later);
        json_t *presses = stage_events(&t, "button_press");
        assert_int_equal(json_array_size(presses), i + 1);
        assert_int_equal(field(presses, (size_t)i, "x"), (int)(((double)x + 0.5) * 800 / (double)size[0]));
        assert_int_equal(field(presses, (size_t)i, "y"), (int)(((double)y + 0.5) * 600 / (double)size[1]));
        free(call);
    }
    hosted_say(&h, TOOL(4, "run_task", "{\"task\":\"Press it\",\"wait_s\":20,\"picture\":true}"));
    const json_t *answer = hosted_answer(&h, 4);
    assert_string_equal(json_string_value(json_object_get(hosted_told(answer), "status")), "answered");
    check_picture(answer, later);
    assert_non_null(
        strstr(json_string_value(json_object_get(hosted_told(answer), "answer")), " bytes omitted]"));
    assert_int_equal(log_messages(&h, "action"), 4 + 1 + 2);
    assert_int_equal(log_messages(&h, "status"), 2); /* of the actions, and of the task */
    check_note("%d x %d", (int)size[0], (int)size[1]);
    assert_int_equal(hosted_end(&h), 0);
    driven_left_nothing(&t);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("requests about prompts, resources and logging get the specified answers", t_session),
    CLAIM("each version is supported, with batches and unknown versions", t_versions),
    CLAIM("an editor's requests are read in other spellings", t_acp),
    CLAIM("a reply stays below 1 MB, and points in its image are right", t_pictures),
};

CHECK_MAIN()
