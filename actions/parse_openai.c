/* parse_openai.c - the computer call.
 *
 *   {"type": "computer_call", "action": {"type": "click", "button": "left", "x": 156, "y": 50},
 *    "pending_safety_checks": []}
 *
 * or the action alone, or "actions", a batch run in order.  A pending safety check needs a person's
 * acknowledgement: nothing is done.
 */
#include "actions/parse.h"

static enum action_fault bind_action(struct parse *p, json_t *action)
{
    const char *type = json_string_value(json_object_get(action, "type"));
    if (!type)
        return parse_fault(p, FAULT_SCHEMA, "an action needs the key 'type'");
    return bind_call(p, type, action, "type");
}

static enum action_fault bind_actions(struct parse *p, json_t *root)
{
    json_t *checks = json_object_get(root, "pending_safety_checks");
    json_t *action = json_object_get(root, "action"), *actions = json_object_get(root, "actions"), *one;
    size_t i;
    enum action_fault f = FAULT_NONE;
    if (checks && !json_is_null(checks) && !(json_is_array(checks) && !json_array_size(checks)))
        return parse_fault(p, FAULT_DENIED, "a pending safety check wants a person to look first");
    if (!actions)
        return bind_action(p, action ? action : root);
    if (!json_is_array(actions))
        return parse_fault(p, FAULT_SCHEMA, "'actions' must be a list");
    json_array_foreach(actions, i, one) f = f ? f : bind_action(p, one);
    return f;
}

enum action_fault parse_openai(struct parse *p, const char *text, size_t len)
{
    json_t *root;
    enum action_fault f = parse_json(p, text, len, &root);
    f = f ? f : bind_actions(p, root);
    json_decref(root);
    return f;
}
