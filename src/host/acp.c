/* acp.c - messages of the protocol; see acp.h. */
#include "host/acp_impl.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "host/rpc_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { FINISH_MS = 2000, SESSIONS = 64, PROMPT_MAX = JOB_TASK_MAX };

/* ---- updates ------------------------------------------------------------------------------------------- */

void acp_update(struct acp *a, const struct acp_session *s, const char *kind, json_t *update)
{
    json_make_visible(update);
    json_object_set_new(update, "sessionUpdate", json_string(kind));
    rpc_tell(a->rpc, "session/update", json_pack("{s:s, s:o}", "sessionId", s->id, "update", update));
}

void acp_say(struct acp *a, const struct acp_session *s, const char *kind, const char *text)
{
    json_t *content =
        text && *text ? json_pack("{s:{s:s, s:s}}", "content", "type", "text", "text", text) : NULL;
    if (content)
        acp_update(a, s, kind, content);
}

/* ---- sessions ------------------------------------------------------------------------------------------ */

static struct acp_session *find(struct acp *a, const json_t *params)
{
    const char *id = json_string_value(json_object_get(params, "sessionId"));
    struct acp_session *s = a->sessions;
    while (s && (!id || strcmp(s->id, id) != 0))
        s = s->next;
    return s;
}

static struct acp_session *add_session(struct acp *a, const char *id)
{
    struct acp_session *s = xcalloc(1, sizeof *s);
    *s = (struct acp_session){.next = a->sessions, .seen = -1};
    snprintf(s->id, sizeof s->id, "%s", id);
    a->sessions = s;
    return s;
}

static void drop_session(struct acp *a, struct acp_session *s)
{
    struct acp_session **at = &a->sessions;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    json_decref(s->prompt);
    free(s->task);
    free(s->stop_reason);
    free(s->dir);
    free(s);
}

static int count(const struct acp *a)
{
    int n = 0;
    for (const struct acp_session *s = a->sessions; s; s = s->next)
        n++;
    return n;
}

static void new_session(struct acp *a, const json_t *id)
{
    char name[40];
    uint64_t salt[2];
    if (count(a) >= SESSIONS) {
        rpc_fail(a->rpc, id, RPC_BUSY, NULL, "too many sessions: %d are already open", SESSIONS);
        return;
    }
    if (getrandom(salt, sizeof salt, 0) != sizeof salt)
        salt[0] = salt[1] = (uint64_t)clock_ns();
    snprintf(name, sizeof name, "%016llx%016llx", (unsigned long long)salt[0], (unsigned long long)salt[1]);
    rpc_reply(a->rpc, id, json_pack("{s:s}", "sessionId", add_session(a, name)->id));
}

/* Returns whether id consists of 32 hexadecimal digits; other ids could name a file elsewhere. */
static bool is_session(const char *id)
{
    size_t n = id ? strlen(id) : 0;
    return n == 32 && strspn(id, "0123456789abcdef") == n;
}

static void load_session(struct acp *a, const json_t *id, const json_t *params)
{
    const char *name = json_string_value(json_object_get(params, "sessionId"));
    struct err e = ERR_INIT;
    if (find(a, params)) {
        rpc_fail(a->rpc, id, RPC_PARAMS, NULL, "the session is already open");
        return;
    }
    if (!is_session(name) || count(a) >= SESSIONS) {
        rpc_fail(a->rpc, id, RPC_PARAMS, NULL, "session not found");
        return;
    }
    struct acp_session *s = add_session(a, name);
    if (acp_recall(a, s, &e)) {
        drop_session(a, s);
        rpc_fail(a->rpc, id, RPC_PARAMS, NULL, "%s", e.text);
        return;
    }
    rpc_reply(a->rpc, id, json_object());
}

/* ---- a turn -------------------------------------------------------------------------------------------- */

int acp_begin(struct acp *a, struct acp_session *s, const char *task, struct err *e)
{
    const struct work_order o = {.kind = WORK_TASK, .task = task, .resume = s->dir, .stays = true};
    s->work = host_start(a->host, &o, e);
    s->idle = false;
    return s->work ? 0 : -1;
}

static void answer_turn(struct acp *a, struct acp_session *s)
{
    if (!s->stop_reason || s->pictures)
        return;
    if (s->prompt)
        rpc_reply(a->rpc, s->prompt,
                  json_pack("{s:s, s:{s:{s:s, s:b}}}", "stopReason", s->stop_reason, "_meta", "holorun",
                            "status", s->ended->name, "done", s->ended == status_row(AGENT_ANSWERED)));
    json_decref(s->prompt);
    s->prompt = NULL;
    free(s->stop_reason);
    s->stop_reason = NULL;
    s->cancelled = false;
}

/* The reply to the prompt is sent after the turn's last image. */
void acp_end_turn(struct acp *a, struct acp_session *s, const char *reason)
{
    if (reason) {
        free(s->stop_reason);
        s->stop_reason = xstrdup(reason);
    }
    answer_turn(a, s);
}

void acp_fail_turn(struct acp *a, struct acp_session *s, const char *why)
{
    if (s->prompt)
        rpc_fail(a->rpc, s->prompt, RPC_INTERNAL, NULL, "%s", why);
    json_decref(s->prompt);
    s->prompt = NULL;
    s->cancelled = false;
}

/* Returns the blocks of a prompt as a new list.  Some editors send a string, a single block, or the list as
 * JSON text. */
static json_t *prompt_blocks(const json_t *prompt)
{
    json_t *plain = json_is_string(prompt) ? json_loads(json_string_value(prompt), 0, NULL) : NULL;
    const json_t *first = json_is_array(plain) ? json_array_get(plain, 0) : plain;
    if (plain && !json_is_string(json_object_get(first, "type"))) { /* a plain text that is valid JSON */
        json_decref(plain);
        plain = NULL;
    }
    json_t *v = plain ? plain : json_incref((json_t *)(uintptr_t)prompt);
    if (json_is_array(v))
        return v;
    return v ? json_pack("[o]", v) : json_array();
}

/* Returns the texts of a prompt and the URIs of its links, joined by newlines, owned by the caller.  Returns
 * NULL if there are none or they exceed PROMPT_MAX bytes. */
static char *read_prompt(const json_t *prompt)
{
    autobuf text = buf_of(PROMPT_MAX);
    json_auto_t *blocks = prompt_blocks(prompt);
    const json_t *block;
    size_t i;
    json_array_foreach(blocks, i, block)
    {
        const json_t *resource = json_object_get(block, "resource");
        const char *said = json_string_value(json_is_string(block) ? block : json_object_get(block, "text"));
        said = said ? said : json_string_value(json_object_get(resource, "text"));
        said = said ? said : json_string_value(json_object_get(block, "uri"));
        if (said)
            buf_printf(&text, "%s%s", text.len ? "\n" : "", said);
    }
    return text.len && !text.full ? buf_take(&text) : NULL;
}

static void take_prompt(struct acp *a, const json_t *id, const json_t *params)
{
    struct acp_session *s = find(a, params);
    struct err e = ERR_INIT;
    char *task = s && !s->prompt ? read_prompt(json_object_get(params, "prompt")) : NULL;
    if (!task) {
        rpc_fail(a->rpc, id, RPC_PARAMS, NULL, "%s",
                 !s          ? "'sessionId' does not name an open session"
                 : s->prompt ? "the previous prompt of the session has not finished"
                             : "'prompt' must be a list of content blocks with text, of at most 64 KiB");
        return;
    }
    s->prompt = json_deep_copy(id);
    s->cancelled = false;
    if (s->work && s->idle) {
        s->idle = false;
        s->task = task;
        host_next_task(s->work, task);
        return;
    }
    if (s->work) /* the run is about to end; then the task begins */
        s->task = xstrdup(task);
    else if (acp_begin(a, s, task, &e))
        acp_fail_turn(a, s, e.text);
    free(task);
}

static void cancel(struct acp *a, const json_t *params)
{
    struct acp_session *s = find(a, params);
    if (!s || !s->prompt)
        return; /* the turn has ended */
    s->cancelled = true;
    free(s->task);
    s->task = NULL;
    if (s->work)
        host_stop(s->work);
}

/* ---- messages ------------------------------------------------------------------------------------------ */

static void initialize(struct acp *a, const json_t *id, const json_t *params)
{
    if (!json_object_get(params, "protocolVersion")) {
        rpc_fail(a->rpc, id, RPC_PARAMS, NULL, "'protocolVersion' is missing");
        return;
    }
    rpc_reply(a->rpc, id,
              json_pack("{s:i, s:{s:b, s:{s:b, s:b, s:b}}, s:{s:s, s:s, s:s}, s:[]}", "protocolVersion", 1,
                        "agentCapabilities", "loadSession", 1, "promptCapabilities", "image", 0, "audio", 0,
                        "embeddedContext", 1, "agentInfo", "name", "holorun", "title", "holorun", "version",
                        a->version, "authMethods"));
}

static void take_request(void *arg, const json_t *id, const char *method, json_t *params)
{
    struct acp *a = arg;
    if (!strcmp(method, "initialize"))
        initialize(a, id, params);
    else if (!strcmp(method, "session/new"))
        new_session(a, id);
    else if (!strcmp(method, "session/load"))
        load_session(a, id, params);
    else if (!strcmp(method, "session/prompt"))
        take_prompt(a, id, params);
    else if (!strcmp(method, "authenticate"))
        rpc_reply(a->rpc, id, json_object());
    else if (!strcmp(method, "session/cancel")) { /* a notification, which some editors send with an id */
        cancel(a, params);
        rpc_reply(a->rpc, id, json_object());
    } else
        rpc_fail(a->rpc, id, RPC_NO_METHOD, NULL, "unknown method '%.80s'", method);
}

static void take_notice(void *arg, const char *method, json_t *params)
{
    if (!strcmp(method, "session/cancel"))
        cancel(arg, params);
}

/* Answers the gate's question with the user's choice; an error of the client counts as a refusal. */
static void take_answer(void *arg, int64_t ask, json_t *result, const char *why)
{
    struct acp *a = arg;
    const json_t *outcome = json_object_get(result, "outcome");
    const char *option = json_string_value(json_object_get(outcome, "optionId"));
    for (struct acp_session *s = a->sessions; s; s = s->next) {
        if (s->ask != ask)
            continue;
        s->ask = 0;
        if (!result)
            warn("the client could not ask its user: %s", why);
        if (s->work && s->question)
            host_answer(s->work, s->question, option && !strcmp(option, "allow"));
    }
}

/* ---- the loop ------------------------------------------------------------------------------------------ */

struct acp *acp_new(struct host *h, const char *version)
{
    static const struct rpc_handlers handlers = {take_request, take_notice, take_answer};
    struct acp *a = xcalloc(1, sizeof *a);
    a->host = h;
    a->version = version;
    a->rpc = rpc_new(&handlers, a);
    return a;
}

void acp_free(struct acp *a)
{
    while (a->sessions)
        drop_session(a, a->sessions);
    for (struct acp_picture *p = a->pictures, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    rpc_free(a->rpc);
    free(a);
}

struct rpc *acp_rpc(const struct acp *a)
{
    return a->rpc;
}

static void acp_woken(void *arg)
{
    struct acp *a = arg;
    struct work *whose;
    for (json_t *event; (event = host_next(a->host, &whose));) {
        acp_event(a, whose, event);
        json_decref(event);
    }
}

int acp_serve(struct host *h, const char *version, struct err *e)
{
    struct rpc_stream s = {.wake = host_fd(h), .stop = screen_stop_flag(NULL), .woken = acp_woken};
    if (rpc_stream_take(&s.in, &s.out, e))
        return -1;
    struct acp *a = acp_new(h, version);
    s.arg = a;
    s.rpc = a->rpc;
    int rc = rpc_stream_run(&s, e);
    for (const struct acp_session *x = a->sessions; x; x = x->next)
        if (x->work)
            host_stop(x->work);
    if (rc == 0)
        rpc_stream_finish(&s, FINISH_MS);
    acp_free(a);
    close(s.in);
    close(s.out);
    return rc == 0 && *screen_stop_flag(NULL) ? ERR_STOPPED : rc;
}
