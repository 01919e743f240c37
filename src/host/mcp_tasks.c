/* mcp_tasks.c - the extension io.modelcontextprotocol/tasks.
 * A client that declares the extension gets a task from run_task; it polls, answers and cancels the task by
 * its id, which is the run's id. */
#include "host/mcp_impl.h"

#include "base/json.h"

#include <string.h>

static const char *status_of(const struct mcp_run *r)
{
    if (r->work)
        return r->question && r->client.elicits ? "input_required" : "working";
    return r->stopped ? "cancelled" : "completed";
}

json_t *mcp_task(const struct mcp_run *r)
{
    json_t *task =
        json_pack("{s:s, s:s, s:s, s:s, s:n, s:i}", "taskId", r->id, "status", status_of(r), "createdAt",
                  r->created, "lastUpdatedAt", r->updated, "ttlMs", "pollIntervalMs", MCP_POLL_MS);
    const char *end = json_string_value(json_object_get(r->result, "answer"));
    const char *message = r->question ? r->question_text : end ? end : r->last_action;
    if (message)
        json_object_set_new(task, "statusMessage", json_visible_string(message));
    return task;
}

static void get(struct mcp *m, const json_t *id, const struct mcp_client *c, const struct mcp_run *r)
{
    json_t *task = mcp_task(r);
    if (!r->work && !r->stopped)
        json_object_set_new(task, "result", mcp_run_result(m, r, NULL));
    else if (r->work && r->question && r->client.elicits)
        json_object_set_new(task, "inputRequests", mcp_input_requests(r));
    mcp_reply(m, id, c, task);
}

bool mcp_tasks_request(struct mcp *m, const json_t *id, const struct mcp_client *c, const char *method,
                       json_t *params)
{
    bool gets = !strcmp(method, "tasks/get"), updates = !strcmp(method, "tasks/update");
    bool cancels = !strcmp(method, "tasks/cancel");
    if (!c->modern || !(gets || updates || cancels))
        return false;
    if (!c->tasks) {
        rpc_fail(m->rpc, id, MCP_NEEDS_CAPABILITY,
                 json_pack("{s:{s:{s:{}}}}", "requiredCapabilities", "extensions", MCP_TASKS),
                 "this method needs the extension " MCP_TASKS);
        return true;
    }
    struct mcp_run *r = mcp_run_find(m, json_string_value(json_object_get(params, "taskId")));
    if (!r) {
        rpc_fail(m->rpc, id, RPC_PARAMS, NULL, "task not found or expired");
    } else if (gets) {
        get(m, id, c, r);
    } else {
        if (updates)
            mcp_take_responses(m, r, json_object_get(params, "inputResponses"));
        if (cancels && r->work) {
            r->stopped = true;
            host_stop(r->work);
        }
        mcp_reply(m, id, c, json_object());
    }
    return true;
}
