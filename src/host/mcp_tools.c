/* mcp_tools.c - tools/call: reads the arguments and reports invalid ones to the model. */
#include "host/mcp_impl.h"

#include "atspi/refs.h"
#include "base/embed.h"
#include "host/arguments.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

EMBED(mcp_tools, "src/host/mcp_tools.json");

#define ANSWER "run_answer" /* a tool that exists only with --confirm caller */

enum { STOP_S = 10, LOOK_S = 60, WAIT_DEFAULT_S = 45, WAIT_MAX_S = 3600 };

struct request { /* one tools/call */
    struct mcp *m;
    const json_t *id;
    const struct mcp_client *c;
    json_t *arguments, *params;
};

json_t *mcp_tools_list(bool caller_answers)
{
    json_error_t why;
    json_t *tools = json_loads(mcp_tools, 0, &why);
    if (!tools)
        bug("mcp_tools.json: %s", why.text);
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (!caller_answers &&
            !strcmp(json_string_value(json_object_get(json_array_get(tools, i), "name")), ANSWER))
            json_array_remove(tools, i--);
    return tools;
}

/* ---- arguments ----------------------------------------------------------------------------------------- */

static const char *text_of(const struct request *q, const char *key)
{
    return json_string_value(json_object_get(q->arguments, key));
}

static bool is_set(const struct request *q, const char *key)
{
    return json_is_true(json_object_get(q->arguments, key));
}

static double wait_of(const struct request *q, double standard)
{
    const json_t *wait = json_object_get(q->arguments, "wait_s");
    return wait ? fmin(fmax(json_number_value(wait), 0), WAIT_MAX_S) : standard;
}

/* Returns the run that run_id names, or NULL after replying that the run does not exist. */
static struct mcp_run *run_of(const struct request *q)
{
    struct mcp_run *r = mcp_run_find(q->m, text_of(q, "run_id"));
    if (!r)
        mcp_tool_error(q->m, q->id, q->c, "run '%.60s' not found", text_of(q, "run_id"));
    return r;
}

static struct mcp_call *wait_for_run(const struct request *q, struct mcp_run *r, enum mcp_wait wait,
                                     double seconds)
{
    struct mcp_call *c = mcp_call_new(q->m, q->id, q->c, wait, seconds);
    c->run = r;
    c->picture = is_set(q, "picture");
    return c;
}

/* ---- tools --------------------------------------------------------------------------------------------- */

static void tell_busy(const struct request *q, const struct mcp_run *r)
{
    mcp_tool_error(q->m, q->id, q->c, "%s is using display '%s': wait until it ends, or stop it", r->id,
                   host_display(q->m->host));
}

static void tool_run_task(const struct request *q)
{
    struct mcp_run *there = mcp_run_live(q->m);
    struct err e = ERR_INIT;
    if (there && !there->hand) {
        tell_busy(q, there);
        return;
    }
    if (there) { /* a client-driven run ends for a task */
        there->stopped = true;
        host_finish(there->work);
    }
    const struct work_order o = {.kind = WORK_TASK,
                                 .task = text_of(q, "task"),
                                 .max_steps =
                                     (int)json_integer_value(json_object_get(q->arguments, "max_steps"))};
    struct work *w = host_start(q->m->host, &o, &e);
    if (!w) {
        mcp_tool_error(q->m, q->id, q->c, "%s", e.text);
        return;
    }
    struct mcp_run *r = mcp_run_new(q->m, w, q->c);
    if (!q->c->tasks) {
        wait_for_run(q, r, WAIT_RUN, wait_of(q, WAIT_DEFAULT_S));
        return;
    }
    json_t *task = mcp_task(r);
    json_object_set_new(task, "resultType", json_string("task"));
    mcp_reply(q->m, q->id, q->c, task);
}

static void tool_run_status(const struct request *q)
{
    struct mcp_run *r = run_of(q);
    if (r)
        wait_for_run(q, r, WAIT_RUN, wait_of(q, 0));
}

static void tool_run_answer(const struct request *q)
{
    struct mcp_run *r = run_of(q);
    if (!r)
        return;
    if (r->ask || (r->question && q->c->modern && q->c->elicits)) {
        mcp_tool_error(q->m, q->id, q->c, "the user is being asked through your program and must answer");
        return;
    }
    if (!r->question) {
        mcp_tool_error(q->m, q->id, q->c, "%s is not waiting for an answer", r->id);
        return;
    }
    mcp_answer(q->m, r, json_is_true(json_object_get(q->arguments, "allow")));
    wait_for_run(q, r, r->hand ? WAIT_ACT : WAIT_RUN, wait_of(q, WAIT_DEFAULT_S))->picture = r->hand;
}

static void tool_run_stop(const struct request *q)
{
    struct mcp_run *r = run_of(q);
    if (!r)
        return;
    if (r->work) {
        r->stopped = true;
        host_stop(r->work);
    }
    wait_for_run(q, r, WAIT_END, STOP_S);
}

static void errand(const struct request *q, const struct work_order *o)
{
    struct err e = ERR_INIT;
    struct work *w = host_start(q->m->host, o, &e);
    if (w)
        mcp_call_new(q->m, q->id, q->c, WAIT_ERRAND, LOOK_S)->errand = w;
    else
        mcp_tool_error(q->m, q->id, q->c, "%s", e.text);
}

static void tool_screenshot(const struct request *q)
{
    const json_t *region = json_object_get(q->arguments, "region"); /* a list of four integers */
    struct work_order o = {.kind = WORK_LOOK,
                           .marks = is_set(q, "marks"),
                           .max_side = (int)json_integer_value(json_object_get(q->arguments, "max_size"))};
    if (region)
        o.region = (struct screen_rect){(int)json_integer_value(json_array_get(region, 0)),
                                        (int)json_integer_value(json_array_get(region, 1)),
                                        (int)json_integer_value(json_array_get(region, 2)),
                                        (int)json_integer_value(json_array_get(region, 3))};
    if (region && (o.region.w < 1 || o.region.h < 1))
        mcp_tool_error(q->m, q->id, q->c,
                       "argument 'region' must be [x, y, width, height] with a size of 1 or more");
    else
        errand(q, &o);
}

static void tool_windows(const struct request *q)
{
    const struct work_order o = {.kind = WORK_WINDOWS};
    errand(q, &o);
}

/* Returns the options of snapshot and find. */
static struct elements_order elements_of(const struct request *q)
{
    return (struct elements_order){.window = text_of(q, "window"),
                                   .all = is_set(q, "all"),
                                   .boxes = is_set(q, "boxes"),
                                   .json = is_set(q, "json"),
                                   .words = text_of(q, "words"),
                                   .role = text_of(q, "role"),
                                   .limit = (int)json_integer_value(json_object_get(q->arguments, "limit"))};
}

static void tool_snapshot(const struct request *q)
{
    const struct work_order o = {.kind = WORK_ELEMENTS, .elements = elements_of(q)};
    errand(q, &o);
}

static void tool_find(const struct request *q)
{
    struct work_order o = {.kind = WORK_ELEMENTS, .elements = elements_of(q)};
    const char *words = o.elements.words, *role = o.elements.role;
    o.elements.find = true;
    if ((!words || !words[strspn(words, " \t\n")]) && (!role || !*role))
        mcp_tool_error(q->m, q->id, q->c, "argument 'words' or 'role' is missing; find needs one of them");
    else
        errand(q, &o);
}

/* ---- act ----------------------------------------------------------------------------------------------- */

/* Returns the image to which coordinates refer, by default the last one; NULL: its number is unknown or too
 * old. */
static const struct mcp_picture *picture_of(const struct request *q)
{
    static const struct mcp_picture whole = {0, 0, 0, 1, 1};
    const json_t *named = json_object_get(q->arguments, "picture_id");
    json_int_t id = named ? json_integer_value(named) : q->m->n_pictures;
    if (id == 0 && !named)
        return &whole;
    const struct mcp_picture *p = &q->m->pictures[(id > 0 ? id - 1 : 0) % MCP_PICTURES];
    return id > 0 && p->id == id ? p : NULL;
}

static int in_view(const json_t *value, int from, double scale)
{
    double v = from + (json_number_value(value) + 0.5) * scale;
    return (int)fmin(fmax(floor(v), INT32_MIN / 2), INT32_MAX / 2);
}

/* Returns the call in the dialect "host", with coordinates of the view; the caller frees it. */
static char *act_call(const struct request *q, const struct mcp_picture *p)
{
    static const char *const ours[] = {"action", "display", "picture_id", "picture", "x2", "y2", "value"};
    json_t *arguments = json_deep_copy(q->arguments);
    const char *name = text_of(q, "action");
    json_t *x = json_object_get(arguments, "x"), *y = json_object_get(arguments, "y");
    const json_t *x2 = json_object_get(q->arguments, "x2"), *y2 = json_object_get(q->arguments, "y2");
    if (x)
        json_integer_set(x, in_view(x, p->x, p->x_scale));
    if (y)
        json_integer_set(y, in_view(y, p->y, p->y_scale));
    if (!strcmp(name, "drag") && x && y && x2 && y2) {
        json_t *path = json_pack("[{s:O, s:O}, {s:i, s:i}]", "x", x, "y", y, "x",
                                 in_view(x2, p->x, p->x_scale), "y", in_view(y2, p->y, p->y_scale));
        json_object_del(arguments, "x");
        json_object_del(arguments, "y");
        json_object_set_new(arguments, "path", path);
    }
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        json_object_del(arguments, ours[i]);
    json_auto_t *call = json_pack("{s:s, s:o}", "name", name, "arguments", arguments);
    return json_dumps(call, JSON_COMPACT);
}

/* Returns the client-driven run, starting it if there is none; NULL after replying with the reason. */
static struct mcp_run *find_hand(const struct request *q)
{
    struct mcp_run *r = mcp_run_live(q->m);
    struct err e = ERR_INIT;
    if (r && !r->hand) {
        tell_busy(q, r);
        return NULL;
    }
    for (const struct mcp_call *c = q->m->calls; r && c; c = c->next)
        if (c->run == r && c->wait == WAIT_ACT) {
            mcp_tool_error(q->m, q->id, q->c, "another act is in progress: wait until it ends");
            return NULL;
        }
    if (r && r->question) {
        mcp_tool_error(q->m, q->id, q->c,
                       "%s is waiting for confirmation of the previous act: wait for the answer", r->id);
        return NULL;
    }
    if (r)
        return r;
    const struct work_order o = {.kind = WORK_HAND, .task = "single actions for another program"};
    struct work *w = host_start(q->m->host, &o, &e);
    if (!w) {
        mcp_tool_error(q->m, q->id, q->c, "%s", e.text);
        return NULL;
    }
    r = mcp_run_new(q->m, w, q->c);
    r->hand = true;
    return r;
}

/* Returns whether a drag has all its coordinates; else reports the missing one. */
static bool has_places(const struct request *q)
{
    static const char *const places[] = {"x", "y", "x2", "y2"};
    for (size_t i = 0; !strcmp(text_of(q, "action"), "drag") && i < sizeof places / sizeof *places; i++)
        if (!json_object_get(q->arguments, places[i])) {
            mcp_tool_error(q->m, q->id, q->c, "argument '%s' is missing; drag needs x, y, x2 and y2",
                           places[i]);
            return false;
        }
    return true;
}

/* Passes a call to the client-driven run, and waits for its result.  Takes ownership of call. */
static void pass_call(const struct request *q, char *call, bool picture)
{
    struct mcp_run *r = find_hand(q);
    if (r) {
        r->client = *q->c;
        r->client.progress = r->client.ignored = NULL;
        json_decref(r->outcome);
        r->outcome = NULL;
        free(r->refused);
        r->refused = NULL;
        wait_for_run(q, r, WAIT_ACT, WAIT_MAX_S)->picture = picture;
        host_act(r->work, call);
    }
    free(call);
}

/* Returns the deed that an action is: a deed of deed.c, or with a ref also a mouse action; NULL: none. */
static const char *deed_of(const struct request *q)
{
    const char *action = text_of(q, "action"), *button = text_of(q, "button");
    bool with_ref = text_of(q, "ref") != NULL;
    static const char *const deeds[] = {"press", "double_press", "right_press", "fill",      "choose",
                                        "tick",  "untick",       "focus",       "scroll_to", NULL};
    static const char *const mouse[][2] = {
        {"click", "press"}, {"double_click", "double_press"}, {"type", "fill"}, {"scroll", "scroll_to"}};
    if (text_listed(deeds, action))
        return action;
    if (with_ref && !strcmp(action, "click") && button && !strcmp(button, "right"))
        return "right_press";
    if (with_ref && !strcmp(action, "click") &&
        json_integer_value(json_object_get(q->arguments, "count")) == 2)
        return "double_press";
    for (size_t i = 0; with_ref && i < sizeof mouse / sizeof *mouse; i++)
        if (!strcmp(mouse[i][0], action))
            return mouse[i][1];
    return NULL;
}

/* Returns a deed as host_act() takes it; the caller frees it. */
static char *deed_call(const struct request *q, const char *deed, uint32_t ref, const char *value)
{
    json_auto_t *call = json_pack("{s:s, s:I, s:s?, s:b}", "deed", deed, "ref", (json_int_t)ref, "value",
                                  value, "picture", is_set(q, "picture"));
    return json_dumps(call, JSON_COMPACT);
}

/* Returns the first argument that a deed cannot follow and that must not be ignored, since the call asks for
 * something else; NULL: none. */
static const char *odd_argument(const struct request *q, const char *deed)
{
    const char *button = text_of(q, "button");
    json_int_t count = json_integer_value(json_object_get(q->arguments, "count"));
    if (button && strcmp(button, strcmp(deed, "right_press") ? "left" : "right") != 0)
        return "button";
    if (count && count != 1 + !strcmp(deed, "double_press"))
        return "count";
    if (json_array_size(json_object_get(q->arguments, "hold")))
        return "hold";
    if (is_set(q, "press_enter"))
        return "press_enter";
    if (json_is_false(json_object_get(q->arguments, "overwrite")) && !strcmp(deed, "fill"))
        return "overwrite";
    return text_of(q, "direction") ? "direction" : NULL;
}

/* Does a deed on an element that the call names by its ref. */
static void tool_deed(const struct request *q, const char *deed)
{
    const char *odd = odd_argument(q, deed);
    const char *ref = text_of(q, "ref"), *value = text_of(q, "value");
    bool needs = !strcmp(deed, "fill") || !strcmp(deed, "choose");
    uint32_t number = ref ? refs_read(ref) : 0;
    value = value ? value : text_of(q, "text");
    if (!ref)
        mcp_tool_error(q->m, q->id, q->c,
                       "argument 'ref' is missing; %s needs the ref of an element, which snapshot lists",
                       deed);
    else if (!number)
        mcp_tool_error(q->m, q->id, q->c, "argument 'ref' must be a ref of snapshot, as e12; got '%.60s'",
                       ref);
    else if (odd)
        mcp_tool_error(q->m, q->id, q->c, "argument '%s' does not go with %s and ref; leave out ref, or '%s'",
                       odd, text_of(q, "action"), odd);
    else if (needs && (!value || (!*value && !strcmp(deed, "choose"))))
        mcp_tool_error(q->m, q->id, q->c, "argument 'value' is %s; %s needs %s", value ? "empty" : "missing",
                       deed, !strcmp(deed, "fill") ? "the text" : "the name of the option");
    else if (needs && strlen(value) > HOST_VALUE_BYTES)
        mcp_tool_error(q->m, q->id, q->c, "argument 'value' has %zu bytes; at most %d can be typed",
                       strlen(value), HOST_VALUE_BYTES);
    else
        pass_call(q, deed_call(q, deed, number, needs ? value : NULL), false);
}

static void tool_act(const struct request *q)
{
    const char *deed = deed_of(q);
    if (deed) {
        tool_deed(q, deed);
        return;
    }
    const struct mcp_picture *p = picture_of(q);
    const json_t *wanted = json_object_get(q->arguments, "picture");
    if (!p) {
        mcp_tool_error(q->m, q->id, q->c,
                       "argument 'picture_id' is not the number of one of the last %d pictures",
                       MCP_PICTURES);
        return;
    }
    if (text_of(q, "ref")) {
        mcp_tool_error(q->m, q->id, q->c, "argument 'ref' does not go with %s; use press, fill or focus",
                       text_of(q, "action"));
        return;
    }
    if (!has_places(q))
        return;
    pass_call(q, act_call(q, p), !json_is_false(wanted));
}

/* ---- choosing the tool --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*call)(const struct request *q);
} tools[] = {
    {"run_task", tool_run_task}, {"run_status", tool_run_status}, {ANSWER, tool_run_answer},
    {"run_stop", tool_run_stop}, {"screenshot", tool_screenshot}, {"act", tool_act},
    {"windows", tool_windows},   {"snapshot", tool_snapshot},     {"find", tool_find},
};

/* Continues a call that the client repeats with the answer to the question in its first result.  Returns
 * false if this is not such a call. */
static bool go_on(const struct request *q)
{
    const char *state = json_string_value(json_object_get(q->params, "requestState"));
    if (!state || !q->c->modern)
        return false;
    struct mcp_run *r = mcp_run_find(q->m, state);
    if (!r) {
        rpc_fail(q->m->rpc, q->id, RPC_PARAMS, NULL, "unknown requestState: its run was not found");
        return true;
    }
    mcp_take_responses(q->m, r, json_object_get(q->params, "inputResponses"));
    struct mcp_call *c = wait_for_run(q, r, r->hand ? WAIT_ACT : WAIT_RUN, wait_of(q, WAIT_DEFAULT_S));
    c->picture |= r->hand;
    mcp_take_outcome(q->m, r, c);
    return true;
}

static const json_t *schema_of(const struct mcp *m, const char *name)
{
    const json_t *tool;
    size_t i;
    json_array_foreach(m->tools, i, tool)
    {
        if (!strcmp(json_string_value(json_object_get(tool, "name")), name))
            return json_object_get(tool, "inputSchema");
    }
    return NULL;
}

void mcp_call_tool(struct mcp *m, const json_t *id, const struct mcp_client *c, json_t *params)
{
    const char *name = json_string_value(json_object_get(params, "name"));
    struct mcp_client client = *c;
    struct err e = ERR_INIT;
    size_t t = 0;
    while (t < sizeof tools / sizeof *tools && (!name || strcmp(tools[t].name, name) != 0))
        t++;
    if (t == sizeof tools / sizeof *tools) {
        rpc_fail(m->rpc, id, RPC_PARAMS, NULL, "unknown tool '%.60s'", name ? name : "");
        return;
    }
    const json_t *schema = schema_of(m, name);
    if (!schema) {
        mcp_tool_error(
            m, id, c,
            "the tool '%s' is disabled: only the user may confirm actions; start holorun mcp with --confirm "
            "caller to let the calling program answer",
            name);
        return;
    }
    client.ignored = json_array();
    json_auto_t *arguments = arguments_read(schema, json_object_get(params, "arguments"), client.ignored, &e);
    const struct request q = {m, id, &client, arguments, params};
    if (!arguments || host_check_display(m->host, text_of(&q, "display"), &e))
        mcp_tool_error(m, id, &client, "%s", e.text);
    else if (!go_on(&q))
        tools[t].call(&q);
    json_decref(client.ignored);
}
