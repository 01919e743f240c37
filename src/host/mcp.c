/* mcp.c - messages of the protocol; see mcp.h.
 *
 * Each request selects the protocol version by itself: a request with a version in its _meta is answered
 * according to 2026-07-28, any other belongs to the session that `initialize` began.  A client may therefore
 * probe with one and continue with the other. */
#include "host/mcp_impl.h"

#include "base/clock.h"
#include "base/json.h"
#include "host/arguments.h"
#include "host/rpc_stream.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODERN       "2026-07-28"
#define LAST_SESSION "2025-11-25"

static const char *const versions[] = {MODERN, LAST_SESSION, "2025-06-18", "2025-03-26", "2024-11-05", NULL};
enum { FINISH_MS = 2000 };

static const char instructions[] =
    "holorun operates a Linux desktop (X11) through screenshots. Give run_task a complete task in plain "
    "language; if it returns the status \"running\", poll run_status (wait_s up to 45) until it has ended, "
    "or stop it with run_stop. With the status \"asking\" the user must confirm an action before the run "
    "continues. For single steps use snapshot and act with ref where programs describe their elements, else "
    "screenshot and act with x and y. All actions are limited by the user's rules, and recorded.";

/* ---- questions ----------------------------------------------------------------------------------------- */

/* Returns the schema of the form that the user fills in. */
static json_t *answer_schema(void)
{
    return json_pack("{s:s, s:{s:{s:s, s:s, s:s, s:b}}, s:[s]}", "type", "object", "properties", "allow",
                     "type", "boolean", "title", "Allow this", "description",
                     "Yes allows the action once; anything else means no", "default", 0, "required", "allow");
}

json_t *mcp_question(const struct mcp_run *r)
{
    autofree char *text =
        xasprintf("The rules of holorun require confirmation of this action:\n%s", r->question_text);
    return json_pack("{s:s, s:o, s:o}", "mode", "form", "message", json_visible_string(text),
                     "requestedSchema", answer_schema());
}

bool mcp_allows(const json_t *answer)
{
    const char *action = json_string_value(json_object_get(answer, "action"));
    json_auto_t *schema = answer_schema(), *unknown = json_array();
    json_auto_t *content = arguments_read(schema, json_object_get(answer, "content"), unknown, NULL);
    return action && !strcmp(action, "accept") && json_is_true(json_object_get(content, "allow"));
}

/* ---- beginning ----------------------------------------------------------------------------------------- */

static bool is_version(const char *v)
{
    for (int i = 0; versions[i]; i++)
        if (!strcmp(v, versions[i]))
            return true;
    return false;
}

static void initialize(struct mcp *m, const json_t *id, const json_t *params)
{
    const char *asked = json_string_value(json_object_get(params, "protocolVersion"));
    if (!asked) {
        rpc_fail(m->rpc, id, RPC_PARAMS, NULL, "'protocolVersion' is missing or not a string");
        return;
    }
    bool known = is_version(asked) && strcmp(asked, MODERN) != 0;
    m->initialized = true;
    m->elicits = json_is_object(json_object_get(json_object_get(params, "capabilities"), "elicitation"));
    rpc_reply(m->rpc, id,
              json_pack("{s:s, s:{s:{}, s:{}, s:{}, s:{}}, s:o, s:s}", "protocolVersion",
                        known ? asked : LAST_SESSION, "capabilities", "tools", "prompts", "resources",
                        "logging", "serverInfo", mcp_server_info(m), "instructions", instructions));
}

static json_t *version_list(void)
{
    json_t *list = json_array();
    for (int i = 0; versions[i]; i++)
        json_array_append_new(list, json_string(versions[i]));
    return list;
}

static void discover(struct mcp *m, const json_t *id, const struct mcp_client *c)
{
    mcp_reply(m, id, c,
              mcp_cacheable(c, json_pack("{s:o, s:{s:{}, s:{}, s:{}, s:{s:{}}}, s:s}", "supportedVersions",
                                         version_list(), "capabilities", "tools", "prompts", "resources",
                                         "extensions", MCP_TASKS, "instructions", instructions)));
}

/* ---- requests ------------------------------------------------------------------------------------------ */

/* Reads the client's capabilities for one request into *c.  Returns -1 if the request has been rejected. */
static int read_client(struct mcp *m, const json_t *id, const char *method, const json_t *params,
                       struct mcp_client *c)
{
    json_t *meta = json_object_get(params, "_meta");
    const json_t *version = json_object_get(meta, MCP_META "protocolVersion");
    const json_t *able = json_object_get(meta, MCP_META "clientCapabilities");
    json_t *token = json_object_get(meta, "progressToken");
    *c = (struct mcp_client){.elicits = m->elicits};
    c->progress = json_is_string(token) || json_is_integer(token) ? token : NULL;
    if (!version) {
        if (m->initialized || !strcmp(method, "ping"))
            return 0;
        rpc_fail(m->rpc, id, RPC_INVALID, NULL,
                 "initialize must come first, or _meta of the request must contain the protocol version");
        return -1;
    }
    const char *name = json_is_string(version) ? json_string_value(version) : "?";
    if (strcmp(name, MODERN) != 0) {
        rpc_fail(m->rpc, id, MCP_OTHER_VERSION,
                 json_pack("{s:o, s:s}", "supported", version_list(), "requested", name),
                 "protocol version %.40s is not supported", name);
        return -1;
    }
    c->modern = true;
    c->elicits = json_is_object(json_object_get(able, "elicitation"));
    c->tasks = json_is_object(json_object_get(json_object_get(able, "extensions"), MCP_TASKS));
    return 0;
}

static void take_request(void *arg, const json_t *id, const char *method, json_t *params)
{
    struct mcp *m = arg;
    struct mcp_client c;
    if (!strcmp(method, "initialize")) {
        initialize(m, id, params);
        return;
    }
    if (read_client(m, id, method, params, &c))
        return;
    if (!strcmp(method, "ping"))
        mcp_reply(m, id, &c, json_object());
    else if (!strcmp(method, "server/discover") && c.modern)
        discover(m, id, &c);
    else if (!strcmp(method, "tools/call"))
        mcp_call_tool(m, id, &c, params);
    else if (!mcp_lists_request(m, id, &c, method, params) && !mcp_tasks_request(m, id, &c, method, params))
        rpc_fail(m->rpc, id, RPC_NO_METHOD, NULL, "unknown method '%.80s'", method);
    mcp_settle(m);
}

static void take_notice(void *arg, const char *method, json_t *params)
{
    if (!strcmp(method, "notifications/cancelled"))
        mcp_cancel(arg, json_object_get(params, "requestId"));
}

/* Handles the user's answer to elicitation/create; an error of the client counts as a refusal. */
static void take_answer(void *arg, int64_t ask, json_t *result, const char *why)
{
    struct mcp *m = arg;
    for (struct mcp_run *r = m->runs; r; r = r->next) {
        if (r->ask != ask)
            continue;
        r->ask = 0;
        if (!result)
            warn("the client could not ask its user: %s", why);
        mcp_answer(m, r, mcp_allows(result));
    }
    mcp_settle(m);
}

/* ---- the loop ------------------------------------------------------------------------------------------ */

struct mcp *mcp_new(struct host *h, const char *version)
{
    static const struct rpc_handlers handlers = {take_request, take_notice, take_answer};
    struct mcp *m = xcalloc(1, sizeof *m);
    m->host = h;
    m->version = version;
    m->tools = mcp_tools_list(host_caller_answers(h));
    m->rpc = rpc_new(&handlers, m);
    return m;
}

void mcp_free(struct mcp *m)
{
    while (m->calls)
        mcp_call_free(m, m->calls);
    for (struct mcp_run *r = m->runs, *next; r; r = next) {
        next = r->next;
        mcp_run_free(r);
    }
    json_decref(m->tools);
    rpc_free(m->rpc);
    free(m);
}

struct rpc *mcp_rpc(const struct mcp *m)
{
    return m->rpc;
}

/* callbacks of struct rpc_stream; arg is the struct mcp */
static void mcp_woken(void *arg)
{
    struct mcp *m = arg;
    struct work *whose;
    for (json_t *event; (event = host_next(m->host, &whose));) {
        mcp_event(m, whose, event);
        json_decref(event);
    }
    mcp_settle(m);
}

static int mcp_due(void *arg)
{
    const struct mcp *m = arg;
    int64_t now = clock_ns(), first = INT64_MAX;
    for (const struct mcp_call *c = m->calls; c; c = c->next)
        first = c->wait != WAIT_ERRAND && c->until < first ? c->until : first;
    if (first == INT64_MAX)
        return -1;
    int64_t ms = (first - now + 999999) / 1000000;
    return ms < 0 ? 0 : ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static void mcp_tick(void *arg)
{
    mcp_settle(arg);
}

int mcp_serve(struct host *h, const char *version, struct err *e)
{
    struct rpc_stream s = {.wake = host_fd(h),
                           .stop = screen_stop_flag(NULL),
                           .woken = mcp_woken,
                           .due = mcp_due,
                           .tick = mcp_tick};
    if (rpc_stream_take(&s.in, &s.out, e))
        return -1;
    struct mcp *m = mcp_new(h, version);
    s.arg = m;
    s.rpc = m->rpc;
    int rc = rpc_stream_run(&s, e);
    for (struct mcp_run *r = m->runs; r; r = r->next)
        if (r->work)
            host_stop(r->work); /* before any write: a host that is gone must not delay the stop */
    if (rc == 0)
        rpc_stream_finish(&s, FINISH_MS);
    mcp_free(m);
    close(s.in);
    close(s.out);
    if (rc == 0 && *screen_stop_flag(NULL))
        return ERR_STOPPED;
    return rc;
}
