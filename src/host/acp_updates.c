/* acp_updates.c - translates the events of a run into updates of its session.
 *
 *     thought ─► agent_thought_chunk      action ─► tool_call      exec ─► tool_call_update, then its image
 *     plan ─► plan      question ─► session/request_permission     answer ─► agent_message_chunk */
#include "host/acp_impl.h"

#include "actions/registry.h"
#include "base/buf.h"
#include "base/json.h"
#include "host/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAN_MAX = 20 };

static const char *text_in(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

/* ---- the plan ------------------------------------------------------------------------------------------ */

/* Sends a plan whose lines look like "2. Choose the date [running]" (actions/bind_values.c); at most PLAN_MAX
 * entries. */
static void show_plan(struct acp *a, const struct acp_session *s, const char *text)
{
    static const char *const words[][2] = {
        {"todo", "pending"}, {"running", "in_progress"}, {"done", "completed"}, {"failed", "completed"}};
    json_t *entries = json_array();
    for (const char *line = text; *line && json_array_size(entries) < PLAN_MAX;) {
        size_t n = strcspn(line, "\n"), head = strspn(line, "0123456789");
        const char *bracket = memrchr(line, '[', n), *status = "pending";
        size_t end = bracket && bracket > line ? (size_t)(bracket - line - 1) : n;
        for (size_t i = 0; bracket && i < sizeof words / sizeof *words; i++)
            if (!strncmp(bracket + 1, words[i][0], strlen(words[i][0])))
                status = words[i][1];
        head = !strncmp(line + head, ". ", 2) ? head + 2 : 0;
        json_t *content = head < end ? json_stringn(line + head, end - head) : NULL;
        if (content)
            json_array_append_new(entries, json_pack("{s:o, s:s, s:s}", "content", content, "priority",
                                                     "medium", "status", status));
        line += n + (line[n] == '\n');
    }
    acp_update(a, s, "plan", json_pack("{s:o}", "entries", entries));
}

/* ---- steps --------------------------------------------------------------------------------------------- */

static void call_name(const struct acp_session *s, int call, char out[64])
{
    snprintf(out, 64, "step-%d", call);
}

static json_t *text_content(const char *text)
{
    return json_pack("[{s:s, s:{s:s, s:s}}]", "type", "content", "content", "type", "text", "text", text);
}

static json_t *picture_content(const char *data)
{
    return json_pack("[{s:s, s:{s:s, s:s, s:s}}]", "type", "content", "content", "type", "image", "data",
                     data, "mimeType", "image/png");
}

static void begin_call(struct acp *a, struct acp_session *s, const json_t *event)
{
    const json_t *action = json_object_get(event, "action");
    const char *kind = text_in(action, "kind");
    char name[64];
    if (!strcmp(kind, "plan")) {
        show_plan(a, s, text_in(action, "text"));
        return;
    }
    if (action_ends_run(registry_kind(kind)))
        return;
    call_name(s, ++s->calls, name);
    s->called = true;
    json_t *raw = action ? json_deep_copy(action) : json_object();
    acp_update(a, s, "tool_call",
               json_pack("{s:s, s:s, s:s, s:s, s:o}", "toolCallId", name, "title", text_in(event, "what"),
                         "kind", !strcmp(kind, "observe") || !strcmp(kind, "wait") ? "read" : "execute",
                         "status", "in_progress", "rawInput", raw));
}

static void end_call(struct acp *a, struct acp_session *s, const char *why)
{
    char name[64];
    if (!s->called)
        return;
    s->called = false;
    call_name(s, s->calls, name);
    json_t *update = json_pack("{s:s, s:s}", "toolCallId", name, "status", *why ? "failed" : "completed");
    if (*why)
        json_object_set_new(update, "content", text_content(why));
    acp_update(a, s, "tool_call_update", update);
}

/* Fetches the screenshot on which the step was decided.  The agent loop has already written it to disk. */
static void fetch_picture(struct acp *a, struct acp_session *s)
{
    autofree char *path = s->dir && s->seen >= 0 ? xasprintf("%s/frames/%06d.png", s->dir, s->seen) : NULL;
    const struct work_order o = {.kind = WORK_PICTURE, .path = path};
    struct work *w = path ? host_start(a->host, &o, NULL) : NULL;
    if (!w)
        return;
    struct acp_picture *p = xcalloc(1, sizeof *p);
    *p = (struct acp_picture){a->pictures, w, s, s->calls};
    a->pictures = p;
    s->pictures++;
}

static void take_picture(struct acp *a, struct acp_picture **at, const json_t *event)
{
    autofree struct acp_picture *p = *at;
    const char *data = json_string_value(json_object_get(json_object_get(event, "picture"), "data"));
    char name[64];
    *at = p->next;
    call_name(p->session, p->call, name);
    if (data)
        acp_update(a, p->session, "tool_call_update",
                   json_pack("{s:s, s:o}", "toolCallId", name, "content", picture_content(data)));
    p->session->pictures--;
    acp_end_turn(a, p->session, NULL);
}

void acp_show(struct acp *a, struct acp_session *s, const char *kind, const json_t *event)
{
    if (!strcmp(kind, "step"))
        acp_say(a, s, "agent_thought_chunk", text_in(event, "thought"));
    else if (!strcmp(kind, "action"))
        begin_call(a, s, event);
    else if (!strcmp(kind, "exec"))
        end_call(a, s, text_in(event, "error"));
    else if (!strcmp(kind, "gate") && json_is_false(json_object_get(event, "pass")))
        end_call(a, s, *text_in(event, "error") ? text_in(event, "error") : "not allowed");
}

/* ---- permission ---------------------------------------------------------------------------------------- */

/* Returns the image of a question in base64, owned by the caller; NULL: the question has none. */
static char *crop_of(const json_t *event)
{
    const char *path = text_in(json_object_get(event, "question"), "crop");
    struct image im = {0};
    json_auto_t *picture = *path && !image_read_png(&im, path, NULL) ? look_picture(&im, 0) : NULL;
    const char *data = json_string_value(json_object_get(picture, "data"));
    char *copy = data ? xstrdup(data) : NULL;
    image_free(&im);
    return copy;
}

static void ask(struct acp *a, struct acp_session *s, const json_t *event)
{
    char name[64], *crop = crop_of(event);
    json_t *content = text_content(text_in(event, "text"));
    if (crop)
        json_array_extend(content, picture_content(crop));
    free(crop);
    call_name(s, s->calls, name);
    s->question = (int)json_integer_value(json_object_get(event, "n"));
    json_t *call = json_pack("{s:s, s:s, s:s, s:o}", "toolCallId", name, "title",
                             text_in(json_object_get(event, "question"), "what"), "status", "pending",
                             "content", content);
    json_make_visible(call);
    s->ask = rpc_ask(a->rpc, "session/request_permission",
                     json_pack("{s:s, s:o, s:[{s:s, s:s, s:s}, {s:s, s:s, s:s}]}", "sessionId", s->id,
                               "toolCall", call, "options", "optionId", "allow", "name", "Allow this once",
                               "kind", "allow_once", "optionId", "reject", "name", "Do not allow it", "kind",
                               "reject_once"));
}

static void close_question(struct acp *a, struct acp_session *s)
{
    if (s->ask)
        rpc_forget(a->rpc, s->ask);
    s->ask = 0;
    s->question = 0;
}

/* ---- the end of a turn --------------------------------------------------------------------------------- */

/* Returns the stop reason of a turn.  The protocol has none for a task that was not done: the turn's last
 * text reports that. */
static const char *stop_reason(const struct acp_session *s, const struct status_row *row)
{
    if (s->cancelled)
        return "cancelled";
    if (row == status_row(AGENT_TOKENS))
        return "max_tokens";
    return !row->own && row->verdict == STATUS_UNFINISHED && row->exit ? "max_turn_requests" : "end_turn";
}

static void end_turn(struct acp *a, struct acp_session *s, const json_t *event)
{
    const char *why = text_in(event, "error"), *answer = text_in(event, "answer");
    const struct status_row *row = status_find(text_in(event, "status"));
    bool worded = row == status_row(AGENT_ANSWERED) || json_object_get(event, "said");
    end_call(a, s, *why ? why : "");
    if (!s->prompt)
        return;
    if (*answer && !worded && row) { /* the model's own words: the status precedes them */
        autofree char *text = xasprintf("%s: %s", row->meaning, answer);
        acp_say(a, s, "agent_message_chunk", text);
    } else {
        acp_say(a, s, "agent_message_chunk", answer);
    }
    if (row == status_row(AGENT_FAILED) && !s->cancelled) {
        acp_fail_turn(a, s, *why ? why : "the run failed");
        return;
    }
    if (*why && !s->cancelled)
        acp_say(a, s, "agent_message_chunk", why);
    else if (!*answer)
        acp_say(a, s, "agent_message_chunk", text_in(event, "meaning"));
    if (row != status_row(AGENT_ANSWERED) && json_array_size(json_object_get(event, "actions")))
        acp_say(a, s, "agent_message_chunk", text_in(event, "did"));
    s->ended = row ? row : status_row(AGENT_FAILED);
    acp_end_turn(a, s, stop_reason(s, s->ended));
}

/* Ends the run of a session.  A task that was passed to the run as it ended starts another run. */
static void end_run(struct acp *a, struct acp_session *s, const json_t *event)
{
    struct err e = ERR_INIT;
    autofree char *task = s->task;
    close_question(a, s);
    s->work = NULL;
    s->idle = false;
    s->task = NULL;
    if (!task) {
        end_turn(a, s, event);
    } else if (acp_begin(a, s, task, &e)) {
        acp_fail_turn(a, s, e.text);
    }
}

/* ---- events -------------------------------------------------------------------------------------------- */

static void follow(struct acp *a, struct acp_session *s, const json_t *event, const char *kind)
{
    if (!strcmp(kind, "start")) {
        free(s->dir);
        s->dir = xstrdup(text_in(event, "dir"));
        acp_remember(s, s->dir);
    } else if (!strcmp(kind, "task")) {
        free(s->task);
        s->task = NULL;
    } else if (!strcmp(kind, "observe")) {
        s->seen = (int)json_integer_value(json_object_get(event, "frame"));
    } else if (!strcmp(kind, "question")) {
        ask(a, s, event);
    } else if (!strcmp(kind, "question_over")) {
        close_question(a, s);
    } else if (!strcmp(kind, "idle")) {
        s->idle = true;
        end_turn(a, s, event);
    } else if (!strcmp(kind, "done")) {
        end_run(a, s, event);
    } else {
        bool called = s->called;
        acp_show(a, s, kind, event);
        if (called && !s->called)
            fetch_picture(a, s);
    }
}

void acp_event(struct acp *a, struct work *w, const json_t *event)
{
    const char *kind = json_string_value(json_object_get(event, "kind"));
    for (struct acp_session *s = a->sessions; s && kind; s = s->next)
        if (s->work == w) {
            follow(a, s, event, kind);
            return;
        }
    for (struct acp_picture **p = &a->pictures; *p; p = &(*p)->next)
        if ((*p)->errand == w) {
            take_picture(a, p, event);
            return;
        }
}
