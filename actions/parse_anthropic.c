/* parse_anthropic.c - the input object of the "computer" tool.
 *
 *   {"action": "left_click", "coordinate": [512, 384]}
 *
 * also as the content block {"type": "tool_use", "name": "computer", "input": {...}}.
 */
#include "actions/parse.h"

enum action_fault parse_anthropic(struct parse *p, const char *text, size_t len)
{
    json_t *root;
    enum action_fault f = parse_json(p, text, len, &root);
    json_t *input = json_object_get(root, "input");
    json_t *call = input ? input : root;
    const char *action = json_string_value(json_object_get(call, "action"));
    if (!f && !action)
        f = parse_fault(p, FAULT_SCHEMA, "an action needs the key 'action'");
    f = f ? f : bind_call(p, action, call, "action");
    json_decref(root);
    return f;
}
