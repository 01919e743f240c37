/* parse_holo.c - the step object of the Holo models.
 *
 *   {"note": null, "thought": "...", "tool_call": {"tool_name": "click_desktop", "element": "...", ...}}
 *   {"note": "", "thought": "...", "action": {"action": "click_element", "element": "...", ...}}
 *
 * The tool's name is beside its arguments.  A batch ("tool_calls") is run in order; native function calls,
 * which newer models may write instead, go to parse_function.
 */
#include "actions/parse.h"

#include <stdlib.h>
#include <string.h>

/* A string or null under one of two keys; *found: there is a string. */
static enum action_fault read_string(struct parse *p, json_t *root, const char *key, const char *other,
                                     char **out, bool *found)
{
    json_t *v = json_object_get(root, key);
    v = v ? v : json_object_get(root, other);
    *found = json_is_string(v);
    if (v && !json_is_string(v) && !json_is_null(v))
        return parse_fault(p, FAULT_SCHEMA, "'%s' must be a string", key);
    if (!*found || !json_string_length(v))
        return FAULT_NONE;
    return parse_text(p, json_string_value(v), json_string_length(v), out);
}

/* {"tool_name": NAME, ...}; nested {"name", "arguments"} is a function call. */
static enum action_fault bind_tool_call(struct parse *p, json_t *call, const char *tag)
{
    const char *tool = json_string_value(json_object_get(call, tag));
    if (!json_is_object(call))
        return parse_fault(p, FAULT_SCHEMA, "a tool call must be an object with '%s'", tag);
    if (tool)
        return bind_call(p, tool, call, tag);
    if (json_object_get(call, "name"))
        return parse_function_object(p, call);
    return parse_fault(p, FAULT_SCHEMA, "a tool call must have '%s'", tag);
}

static enum action_fault check_keys(struct parse *p, json_t *root)
{
    static const char *const known[] = {"note",       "notes",  "thought", "tool_call",
                                        "tool_calls", "action", NULL};
    const char *key = tools_unknown_key(root, known);
    return key ? parse_fault(p, FAULT_SCHEMA, "a step has no '%s'", key) : FAULT_NONE;
}

static enum action_fault bind_tool_calls(struct parse *p, json_t *root)
{
    json_t *call = json_object_get(root, "tool_call"), *calls = json_object_get(root, "tool_calls");
    json_t *action = json_object_get(root, "action"), *one;
    size_t i;
    enum action_fault f = FAULT_NONE;
    if ((call != NULL) + (calls != NULL) + (action != NULL) > 1)
        return parse_fault(p, FAULT_SCHEMA, "a step has one action");
    if (call)
        return bind_tool_call(p, call, "tool_name");
    if (action)
        return bind_tool_call(p, action, "action");
    if (calls && !json_is_array(calls))
        return parse_fault(p, FAULT_SCHEMA, "'tool_calls' must be a list");
    json_array_foreach(calls, i, one) f = f ? f : bind_tool_call(p, one, "tool_name");
    if (!f && !p->out->nactions)
        return parse_fault(p, FAULT_NO_ACTION, "the step holds no tool call");
    return f;
}

static enum action_fault read_step(struct parse *p, json_t *root)
{
    bool note, thought;
    if (json_is_array(root) || (json_object_get(root, "name") && !json_object_get(root, "thought")))
        return parse_function_object(p, root);
    enum action_fault f = check_keys(p, root);
    f = f ? f : read_string(p, root, "note", "notes", &p->out->note, &note);
    f = f ? f : read_string(p, root, "thought", "thought", &p->out->thought, &thought);
    if (!f && !thought)
        f = parse_fault(p, FAULT_SCHEMA, "the step needs a 'thought'");
    return f ? f : bind_tool_calls(p, root);
}

enum action_fault parse_holo(struct parse *p, const char *text, size_t len)
{
    json_t *root;
    if (len && *text == '<')
        return parse_function(p, text, len);
    enum action_fault f = parse_json(p, text, len, &root);
    f = f ? f : read_step(p, root);
    json_decref(root);
    return f;
}
