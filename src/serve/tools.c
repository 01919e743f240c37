/* tools.c - converts the tools of a request and the choice among them; see tools.h. */
#include "serve/tools.h"

#include "base/json.h"
#include "text/conversation.h"

#include <stdint.h>
#include <string.h>

/* ---- the list ---------------------------------------------------------------------------------------- */

/* Returns the members of a function, at the position that its protocol uses; NULL if the tool is not a
 * function. */
static const json_t *function_of(const json_t *tool)
{
    const char *type = json_text(tool, "type");
    const json_t *inner = json_object_get(tool, "function");
    if (json_is_object(inner))
        return inner;
    if (!type || !strcmp(type, "function") || json_object_get(tool, "input_schema"))
        return tool;
    return NULL;
}

static json_t *cleaned(const json_t *function)
{
    static const char *const dropped[] = {"type",          "strict",         "cache_control",
                                          "defer_loading", "input_examples", "eager_input_streaming",
                                          "input_schema",  "allowed_callers"};
    json_t *f = json_copy((json_t *)(uintptr_t)function), *schema = json_object_get(f, "input_schema"), *v;
    const char *key;
    void *next;
    if (json_is_object(schema) && !json_object_get(f, "parameters"))
        json_object_set(f, "parameters", schema);
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        json_object_del(f, dropped[i]);
    json_object_foreach_safe(f, next, key, v) if (json_is_null(v)) json_object_del(f, key);
    return json_pack("{s:s, s:o}", "type", "function", "function", f);
}

static int settle_tool(json_t *out, const json_t *tool, size_t i, struct notes *n, struct err *e)
{
    const json_t *f = function_of(tool);
    const char *type = json_text(tool, "type");
    if (!json_is_object(tool))
        return err_set(e, ERR_USAGE, "tool %zu is not an object", i);
    if (f && (!json_text(f, "name") || !*json_text(f, "name")))
        return err_set(e, ERR_USAGE, "tool %zu must be a function with a name", i);
    if (f) {
        json_array_append_new(out, cleaned(f));
        return 0;
    }
    if (!strncmp(type, "computer", 8))
        return err_set(
            e, ERR_USAGE,
            "tool %zu: '%.60s' is not supported, because only its vendor's models know its actions; describe "
            "the actions as functions",
            i, type);
    notes_ignore(n, "tools: %.60s", type);
    return 0;
}

static int settle_list(json_t *root, struct notes *n, struct err *e)
{
    json_t *list = json_object_get(root, "tools"), *tool, *out = json_array();
    size_t i;
    int rc = 0;
    json_array_foreach(list, i, tool) if (rc == 0) rc = settle_tool(out, tool, i + 1, n, e);
    if (rc == 0 && json_is_array(list))
        json_object_set(root, "tools", out);
    json_decref(out);
    return rc;
}

/* ---- the choice -------------------------------------------------------------------------------------- */

/* Returns the name in a choice of one tool, or in an entry of allowed tools. */
static const char *chosen(const json_t *choice)
{
    const char *name = json_text(json_object_get(choice, "function"), "name");
    return name ? name : json_text(choice, "name");
}

static bool allows(const json_t *allowed, const char *name)
{
    json_t *one;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)allowed, i, one)
    {
        const char *other = chosen(one);
        if (other && !strcmp(other, name))
            return true;
    }
    return false;
}

/* Handles {"type": "allowed_tools", "mode": "auto" | "required", "tools": [...]}: removes all other tools. */
static void keep_allowed(json_t *root, const json_t *choice)
{
    const json_t *inner = json_object_get(choice, "allowed_tools");
    const json_t *of = json_is_object(inner) ? inner : choice, *allowed = json_object_get(of, "tools");
    const char *mode = json_text(of, "mode");
    json_t *list = json_object_get(root, "tools"), *kept, *tool;
    size_t i;
    if (json_array_size(list) > CONVERSATION_PARTS)
        return; /* rejected later */
    kept = json_array();
    json_array_foreach(list, i, tool) if (allows(allowed, chosen(tool))) json_array_append(kept, tool);
    json_object_set_new(root, "tools", kept);
    json_object_set_new(root, "tool_choice", json_string(mode && !strcmp(mode, "required") ? mode : "auto"));
}

static int settle_choice(json_t *root, struct err *e)
{
    static const char *const words[][2] = {
        {"auto", "auto"}, {"none", "none"}, {"required", "required"}, {"any", "required"}};
    const json_t *choice = json_object_get(root, "tool_choice");
    const char *type = json_is_string(choice) ? json_string_value(choice) : json_text(choice, "type"),
               *name = chosen(choice);
    if (!choice || json_is_null(choice))
        return 0;
    for (size_t i = 0; type && i < sizeof words / sizeof *words; i++)
        if (!strcmp(type, words[i][0]))
            return json_object_set_new(root, "tool_choice", json_string(words[i][1]));
    if (type && !strcmp(type, "allowed_tools")) {
        keep_allowed(root, choice);
        return 0;
    }
    if (json_is_object(choice) && name && (!type || !strcmp(type, "function") || !strcmp(type, "tool")))
        return json_object_set_new(root, "tool_choice",
                                   json_pack("{s:s, s:{s:s}}", "type", "function", "function", "name", name));
    return err_set(e, ERR_USAGE,
                   "'tool_choice' must be auto, none, required, or a function of 'tools', not '%.60s'",
                   type ? type : "");
}

int tools_settle(json_t *root, struct notes *n, struct err *e)
{
    return settle_list(root, n, e) || settle_choice(root, e) ? -1 : 0;
}
