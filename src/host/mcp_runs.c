/* mcp_runs.c - runs as the client sees them, and the calls that wait for them.
 *
 * Events update the state of a run; mcp_settle() then answers every call whose wait is over.  A question of
 * the gate is put to the user in the way that the client supports: elicitation/create in a session, or the
 * result "input_required" of the waiting call in the protocol version without sessions.  If a client cannot
 * ask, the action is denied.  Only with --confirm caller does the run get the status "asking"; the client may
 * then answer with the tool run_answer. */
#include "host/mcp_impl.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- runs ---------------------------------------------------------------------------------------------- */

/* Writes a random id: a client that knows the id may stop the run and answer its questions. */
static void name_run(char out[24])
{
    uint64_t salt;
    if (getrandom(&salt, sizeof salt, 0) != sizeof salt)
        salt = (uint64_t)clock_ns();
    snprintf(out, 24, "run-%016llx", (unsigned long long)salt);
}

void mcp_run_free(struct mcp_run *r)
{
    free(r->dir);
    free(r->last_action);
    free(r->thought);
    free(r->question_text);
    free(r->refused);
    json_decref(r->outcome);
    json_decref(r->result);
    free(r);
}

static void forget_oldest(struct mcp *m)
{
    struct mcp_run **last = NULL;
    int n = 0;
    for (struct mcp_run **at = &m->runs; *at; at = &(*at)->next) {
        n++;
        last = (*at)->work ? last : at;
    }
    if (n <= MCP_RUNS || !last)
        return;
    struct mcp_run *old = *last;
    for (const struct mcp_call *c = m->calls; c; c = c->next)
        if (c->run == old)
            return;
    *last = old->next;
    mcp_run_free(old);
}

struct mcp_run *mcp_run_new(struct mcp *m, struct work *w, const struct mcp_client *c)
{
    struct mcp_run *r = xcalloc(1, sizeof *r);
    *r = (struct mcp_run){.next = m->runs, .work = w, .client = *c};
    r->frame = r->seen = -1;
    r->client.progress = r->client.ignored = NULL;
    name_run(r->id);
    clock_iso(r->created);
    clock_iso(r->updated);
    m->runs = r;
    forget_oldest(m);
    return r;
}

struct mcp_run *mcp_run_find(struct mcp *m, const char *id)
{
    struct mcp_run *r = m->runs;
    while (r && (!id || strcmp(r->id, id) != 0))
        r = r->next;
    return r;
}

struct mcp_run *mcp_run_live(struct mcp *m)
{
    struct mcp_run *r = m->runs;
    while (r && (!r->work || r->stopped))
        r = r->next;
    return r;
}

static void put(json_t *to, const char *key, const char *text)
{
    if (text && *text)
        json_object_set_new(to, key, json_visible_string(text));
}

static json_t *mcp_run_state(const struct mcp_run *r)
{
    json_t *s = json_pack("{s:s, s:s, s:i}", "run_id", r->id, "status", r->question ? "asking" : "running",
                          "step", r->step);
    put(s, "last_action", r->last_action);
    put(s, "thought", r->work ? r->thought : NULL);
    put(s, "question", r->question ? r->question_text : NULL);
    put(s, "refused", r->refused);
    put(s, "run_dir", r->dir);
    if (r->result) {
        static const char *const keys[] = {"status", "meaning", "answer", "said",    "did",     "actions",
                                           "error",  "limit",   "steps",  "seconds", "run_dir", "report"};
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            json_t *value = json_object_get(r->result, keys[i]);
            if (value && !json_is_null(value))
                json_object_set(s, keys[i], value);
        }
    }
    return s;
}

/* Returns whether the run's exit code is not 0.  A stop requested by this client does not count as a
 * failure. */
static bool has_failed(const struct mcp_run *r)
{
    json_int_t code = json_integer_value(json_object_get(r->result, "code"));
    return code && !(r->stopped && code == ERR_STOPPED);
}

json_t *mcp_run_result(struct mcp *m, const struct mcp_run *r, const json_t *picture)
{
    json_t *state = mcp_run_state(r), *content = picture ? mcp_picture(m, picture, 0, 0, state) : NULL;
    return mcp_tool_result(state, content, has_failed(r));
}

/* ---- questions ----------------------------------------------------------------------------------------- */

static void close_question(struct mcp *m, struct mcp_run *r)
{
    if (r->ask) {
        rpc_tell(m->rpc, "notifications/cancelled",
                 json_pack("{s:I, s:s}", "requestId", (json_int_t)r->ask, "reason", "the question is over"));
        rpc_forget(m->rpc, r->ask);
    }
    r->ask = 0;
    r->question = 0;
}

void mcp_answer(struct mcp *m, struct mcp_run *r, bool allow)
{
    int n = r->question;
    close_question(m, r);
    if (n && r->work)
        host_answer(r->work, n, allow);
}

/* Writes the key of the open question, unique within its run. */
static void question_key(const struct mcp_run *r, char out[16])
{
    snprintf(out, 16, "allow-%d", r->question);
}

json_t *mcp_input_requests(const struct mcp_run *r)
{
    char key[16];
    question_key(r, key);
    return json_pack("{s:{s:s, s:o}}", key, "method", "elicitation/create", "params", mcp_question(r));
}

void mcp_take_responses(struct mcp *m, struct mcp_run *r, const json_t *responses)
{
    char key[16];
    question_key(r, key);
    const json_t *answer = r->question && r->client.elicits ? json_object_get(responses, key) : NULL;
    if (answer)
        mcp_answer(m, r, mcp_allows(answer));
}

/* Denies a question that only the user may answer, because this client cannot ask the user. */
static void refuse_question(struct mcp_run *r)
{
    free(r->refused);
    r->refused =
        xasprintf("not done: the rules require confirmation, and the client cannot ask its user (MCP "
                  "elicitation): %s\n"
                  "The user can allow it with --policy, be asked with --confirm cmd:COMMAND, or let the "
                  "calling program answer with --confirm caller.",
                  r->question_text);
    host_cannot_ask(r->work, r->question);
    r->question = 0;
}

static void open_question(struct mcp *m, struct mcp_run *r, const json_t *event)
{
    const char *text = json_string_value(json_object_get(event, "text"));
    r->question = (int)json_integer_value(json_object_get(event, "n"));
    free(r->question_text);
    r->question_text = xstrdup(text ? text : "");
    if (!r->client.elicits && !host_caller_answers(m->host)) {
        refuse_question(r);
        return;
    }
    if (r->client.elicits && !r->client.modern)
        r->ask = rpc_ask(m->rpc, "elicitation/create", mcp_question(r));
}

/* ---- calls --------------------------------------------------------------------------------------------- */

struct mcp_call *mcp_call_new(struct mcp *m, const json_t *id, const struct mcp_client *c, enum mcp_wait wait,
                              double seconds)
{
    struct mcp_call *call = xcalloc(1, sizeof *call);
    *call = (struct mcp_call){.next = m->calls, .id = json_deep_copy(id), .client = *c, .wait = wait};
    call->client.progress = c->progress ? json_deep_copy(c->progress) : NULL;
    call->client.ignored = json_incref(c->ignored);
    call->until = clock_ns() + (int64_t)(seconds * 1e9);
    m->calls = call;
    return call;
}

void mcp_call_free(struct mcp *m, struct mcp_call *c)
{
    struct mcp_call **at = &m->calls;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    json_decref(c->id);
    json_decref(c->client.progress);
    json_decref(c->client.ignored);
    free(c);
}

/* Returns the result with which the call itself asks: the client repeats the call with the answer. */
static json_t *input_required(const struct mcp_run *r)
{
    return json_pack("{s:s, s:o, s:s}", "resultType", "input_required", "inputRequests",
                     mcp_input_requests(r), "requestState", r->id);
}

/* Starts fetching the last screenshot, if the call wants it; the call then waits for the errand.  Returns
 * false if there is nothing to fetch. */
static bool fetch_picture(struct mcp *m, struct mcp_call *c)
{
    if (!c->picture || c->run->frame < 0 || !c->run->dir)
        return false;
    autofree char *path = xasprintf("%s/frames/%06d.png", c->run->dir, c->run->frame);
    const struct work_order o = {.kind = WORK_PICTURE, .path = path};
    c->picture = false;
    c->errand = host_start(m->host, &o, NULL);
    if (c->errand)
        c->wait = WAIT_ERRAND;
    return c->errand != NULL;
}

static void answer_call(struct mcp *m, struct mcp_call *c, const json_t *picture)
{
    bool asks = c->run->question && c->client.modern && c->client.elicits;
    mcp_reply(m, c->id, &c->client, asks ? input_required(c->run) : mcp_run_result(m, c->run, picture));
    mcp_call_free(m, c);
}

/* Returns whether a call must report the open question.  If elicitation/create is open, the call waits on. */
static bool must_say(const struct mcp_call *c)
{
    return c->run->question && !c->run->ask;
}

void mcp_settle(struct mcp *m)
{
    int64_t now = clock_ns();
    for (struct mcp_call *c = m->calls, *next; c; c = next) {
        next = c->next;
        if (c->wait == WAIT_ERRAND || !c->run)
            continue;
        bool ready = !c->run->work || now >= c->until || (c->wait != WAIT_END && must_say(c));
        if (ready && !fetch_picture(m, c))
            answer_call(m, c, NULL);
    }
}

void mcp_cancel(struct mcp *m, const json_t *id)
{
    for (struct mcp_call *c = m->calls; c && id; c = c->next) {
        if (!json_equal(c->id, id))
            continue;
        if (c->run && c->run->work) {
            c->run->stopped = true;
            host_stop(c->run->work);
        }
        if (c->errand)
            host_stop(c->errand);
        rpc_drop(m->rpc, id);
        mcp_call_free(m, c);
        return;
    }
}

/* ---- pictures ------------------------------------------------------------------------------------------ */

json_t *mcp_picture(struct mcp *m, const json_t *picture, int x, int y, json_t *told)
{
    const char *data = json_string_value(json_object_get(picture, "data"));
    double w = json_number_value(json_object_get(picture, "w"));
    double h = json_number_value(json_object_get(picture, "h"));
    if (!data || w < 1 || h < 1)
        return NULL;
    struct mcp_picture *p = &m->pictures[m->n_pictures % MCP_PICTURES];
    *p = (struct mcp_picture){++m->n_pictures, x, y, json_number_value(json_object_get(picture, "of_w")) / w,
                              json_number_value(json_object_get(picture, "of_h")) / h};
    json_object_set_new(told, "picture_id", json_integer(p->id));
    json_object_set_new(told, "picture_size",
                        json_pack("[O, O]", json_object_get(picture, "w"), json_object_get(picture, "h")));
    json_object_set_new(told, "scale", json_real(p->x_scale));
    return json_pack("{s:s, s:s, s:s}", "type", "image", "data", data, "mimeType", "image/png");
}

/* ---- events -------------------------------------------------------------------------------------------- */

static void tell_progress(struct mcp *m, const struct mcp_run *r)
{
    for (const struct mcp_call *c = m->calls; c; c = c->next) {
        if (c->run != r || !c->client.progress)
            continue;
        json_t *params = json_pack("{s:O, s:i}", "progressToken", c->client.progress, "progress", r->step);
        put(params, "message", r->last_action);
        rpc_tell(m->rpc, "notifications/progress", params);
    }
}

static void set_text(char **at, const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    free(*at);
    *at = text ? xstrdup(text) : NULL;
}

static struct mcp_call *call_for(struct mcp *m, const struct mcp_run *r, enum mcp_wait wait)
{
    struct mcp_call *c = m->calls;
    while (c && (c->run != r || c->wait != wait))
        c = c->next;
    return c;
}

/* Answers a call on a ref with its effect in lines. */
static void answer_deed(struct mcp *m, const struct mcp_run *r, struct mcp_call *c, const json_t *event,
                        const char *report)
{
    bool ok = json_is_true(json_object_get(event, "ok"));
    json_t *unused = json_object(), *picture = json_object_get(event, "picture");
    autofree char *text =
        xasprintf("%s%s%s", report, !ok && r->refused ? "\n" : "", !ok && r->refused ? r->refused : "");
    json_t *content = picture ? mcp_picture(m, picture, 0, 0, unused) : NULL;
    mcp_reply(m, c->id, &c->client, mcp_text_result(text, content, !ok));
    json_decref(unused);
    mcp_call_free(m, c);
}

static void answer_act(struct mcp *m, const struct mcp_run *r, struct mcp_call *c, const json_t *event)
{
    const char *report = json_string_value(json_object_get(event, "report"));
    if (report) {
        answer_deed(m, r, c, event, report);
        return;
    }

    static const char *const keys[] = {"what", "changed", "rule", "text", "step"};
    bool ok = json_is_true(json_object_get(event, "ok"));
    json_t *told = json_pack("{s:s, s:b}", "run_id", r->id, "done", ok), *picture = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(event, keys[i]))
            json_object_set(told, keys[i], json_object_get(event, keys[i]));
    put(told, "refused", ok ? NULL : r->refused);
    if (c->picture && json_object_get(event, "picture"))
        picture = mcp_picture(m, json_object_get(event, "picture"), 0, 0, told);
    mcp_reply(m, c->id, &c->client, mcp_tool_result(told, picture, !ok));
    mcp_call_free(m, c);
}

/* Ends a call to act that is done or was rejected.  Without a waiting request the result is kept. */
static void end_act(struct mcp *m, struct mcp_run *r, const json_t *event)
{
    struct mcp_call *c = call_for(m, r, WAIT_ACT);
    json_decref(r->outcome);
    r->outcome = c ? NULL : json_deep_copy(event);
    if (c)
        answer_act(m, r, c, event);
}

bool mcp_take_outcome(struct mcp *m, struct mcp_run *r, struct mcp_call *c)
{
    json_t *outcome = r->outcome;
    r->outcome = NULL;
    if (outcome)
        answer_act(m, r, c, outcome);
    json_decref(outcome);
    return outcome;
}

static void follow(struct mcp *m, struct mcp_run *r, const json_t *event, const char *kind)
{
    clock_iso(r->updated);
    if (!strcmp(kind, "start")) {
        set_text(&r->dir, event, "dir");
    } else if (!strcmp(kind, "observe")) {
        r->seen = (int)json_integer_value(json_object_get(event, "frame"));
    } else if (!strcmp(kind, "step")) {
        set_text(&r->thought, event, "thought");
    } else if (!strcmp(kind, "action")) {
        r->step = (int)json_integer_value(json_object_get(event, "step"));
        set_text(&r->last_action, event, "what");
        mcp_log(m, MCP_INFO, r, "action", r->last_action);
        tell_progress(m, r);
    } else if (!strcmp(kind, "exec")) { /* the agent loop has written the frame to disk */
        r->frame = r->seen;
    } else if (!strcmp(kind, "question")) {
        open_question(m, r, event);
        mcp_log(m, MCP_NOTICE, r, "question", r->question_text);
    } else if (!strcmp(kind, "question_over")) {
        close_question(m, r);
    } else if (!strcmp(kind, "act")) {
        end_act(m, r, event);
    } else if (!strcmp(kind, "done")) {
        close_question(m, r);
        r->result = json_deep_copy(event);
        mcp_log(m, has_failed(r) ? MCP_ERROR : MCP_INFO, r, "status",
                json_string_value(json_object_get(event, "status")));
        r->frame = r->seen;
        r->work = NULL;
    }
}

/* Answers a call with the result of its errand: a screenshot, the window list, or a run's last screenshot. */
static void end_errand(struct mcp *m, struct mcp_call *c, const json_t *event)
{
    const char *why = json_string_value(json_object_get(event, "error"));
    const char *text = json_string_value(json_object_get(event, "text"));
    const json_t *picture = json_object_get(event, "picture");
    c->errand = NULL;
    if (c->run) {
        answer_call(m, c, picture);
        return;
    }
    if (why) {
        mcp_tool_error(m, c->id, &c->client, "%s", why);
    } else if (text) {
        mcp_reply(m, c->id, &c->client, mcp_text_result(text, NULL, false));
    } else {
        json_t *told = json_deep_copy(event), *content = NULL;
        json_object_del(told, "kind");
        json_object_del(told, "picture");
        if (picture)
            content = mcp_picture(m, picture, (int)json_integer_value(json_object_get(event, "x")),
                                  (int)json_integer_value(json_object_get(event, "y")), told);
        mcp_reply(m, c->id, &c->client, mcp_tool_result(told, content, false));
    }
    mcp_call_free(m, c);
}

void mcp_event(struct mcp *m, struct work *w, const json_t *event)
{
    const char *kind = json_string_value(json_object_get(event, "kind"));
    for (struct mcp_run *r = m->runs; r && kind; r = r->next)
        if (r->work == w) {
            follow(m, r, event, kind);
            return;
        }
    for (struct mcp_call *c = m->calls; c; c = c->next)
        if (c->errand == w) {
            end_errand(m, c, event);
            return;
        }
}
