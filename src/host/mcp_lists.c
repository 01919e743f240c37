/* mcp_lists.c - lists, prompts, resources and log messages.
 *
 * The server offers neither prompts nor resources.  It still declares both capabilities and answers with
 * empty lists instead of "unknown method", because several hosts request the lists of every server and drop a
 * server that answers with an error. */
#include "host/mcp_impl.h"

#include "base/json.h"

#include <string.h>

enum { LIST_TTL_MS = 3600000, NO_RESOURCE = -32002 };

static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                     "error", "critical", "alert",  "emergency"};
enum { LEVELS = sizeof levels / sizeof *levels };

json_t *mcp_cacheable(const struct mcp_client *c, json_t *object)
{
    if (c->modern) {
        json_object_set_new(object, "ttlMs", json_integer(LIST_TTL_MS));
        json_object_set_new(object, "cacheScope", json_string("public"));
    }
    return object;
}

/* Answers with a list.  Each list has one page, so any cursor is invalid. */
static void list(struct mcp *m, const json_t *id, const struct mcp_client *c, const char *key,
                 const json_t *params)
{
    const json_t *cursor = json_object_get(params, "cursor");
    bool first = !cursor || json_is_null(cursor) || (json_is_string(cursor) && !json_string_length(cursor));
    json_auto_t *items = strcmp(key, "tools") != 0 ? json_array() : json_incref(m->tools);
    if (first)
        mcp_reply(m, id, c, mcp_cacheable(c, json_pack("{s:O}", key, items)));
    else
        rpc_fail(m->rpc, id, RPC_PARAMS, NULL, "invalid cursor; the list has a single page");
}

static void get_prompt(struct mcp *m, const json_t *id, const json_t *params)
{
    const char *name = json_string_value(json_object_get(params, "name"));
    if (name)
        rpc_fail(m->rpc, id, RPC_PARAMS, NULL, "unknown prompt '%.80s'", name);
    else
        rpc_fail(m->rpc, id, RPC_PARAMS, NULL, "'name' is missing or not a string");
}

/* Rejects resources/read.  2026-07-28 changed the error code for a missing resource. */
static void read_resource(struct mcp *m, const json_t *id, const struct mcp_client *c, const json_t *params)
{
    const char *uri = json_string_value(json_object_get(params, "uri"));
    if (uri)
        rpc_fail(m->rpc, id, c->modern ? RPC_PARAMS : NO_RESOURCE, json_pack("{s:s}", "uri", uri),
                 "resource '%.200s' not found", uri);
    else
        rpc_fail(m->rpc, id, RPC_PARAMS, NULL, "'uri' is missing or not a string");
}

static void set_level(struct mcp *m, const json_t *id, const struct mcp_client *c, const json_t *params)
{
    const char *level = json_string_value(json_object_get(params, "level"));
    int i = 0;
    while (i < LEVELS && (!level || strcmp(levels[i], level) != 0))
        i++;
    if (i == LEVELS) {
        rpc_fail(m->rpc, id, RPC_PARAMS, NULL,
                 "'level' must be one of the eight levels from debug to emergency");
        return;
    }
    m->log_from = i + 1;
    mcp_reply(m, id, c, json_object());
}

void mcp_log(struct mcp *m, enum mcp_level level, const struct mcp_run *r, const char *key, const char *text)
{
    if (!m->log_from || (int)level + 1 < m->log_from || !text)
        return;
    rpc_tell(m->rpc, "notifications/message",
             json_pack("{s:s, s:s, s:{s:s, s:i, s:o}}", "level", levels[level], "logger", "holorun", "data",
                       "run_id", r->id, "step", r->step, key, json_visible_string(text)));
}

bool mcp_lists_request(struct mcp *m, const json_t *id, const struct mcp_client *c, const char *method,
                       const json_t *params)
{
    static const char *const lists[][2] = {{"tools/list", "tools"},
                                           {"prompts/list", "prompts"},
                                           {"resources/list", "resources"},
                                           {"resources/templates/list", "resourceTemplates"}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!strcmp(method, lists[i][0])) {
            list(m, id, c, lists[i][1], params);
            return true;
        }
    if (!strcmp(method, "prompts/get"))
        get_prompt(m, id, params);
    else if (!strcmp(method, "resources/read"))
        read_resource(m, id, c, params);
    else if (!strcmp(method, "logging/setLevel") && !c->modern)
        set_level(m, id, c, params);
    else
        return false;
    return true;
}
