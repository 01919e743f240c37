/* parse_qwen.c - replies of the Qwen-VL family with its function "computer_use".
 *
 *   Action: click the field
 *   <tool_call>
 *   {"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [512, 40]}}
 *   </tool_call>
 *
 * Newer ones write the call as <function=computer_use><parameter=action>left_click</parameter>...</function>.
 * Servers that read calls themselves give the JSON alone.  Python's literals are read too, as Fara's reader
 * does.  What stands before the first call is the thought.
 * Of several calls the first is run (REPAIR_EXTRA_CALLS), unless the dialect has "run_all".
 */
#include "actions/parse.h"

#include <stdlib.h>
#include <string.h>

static const char open_tag[] = "<tool_call>", close_tag[] = "</tool_call>";

static const char *find(const char *text, const char *end, const char *mark)
{
    return memmem(text, (size_t)(end - text), mark, strlen(mark));
}

/* ---- a call -------------------------------------------------------------------------------------- */

/* Functions beside computer_use have their own name: another function's "action" is none of ours. */
static enum action_fault bind_named(struct parse *p, const char *name, json_t *args)
{
    const char *action = json_string_value(json_object_get(args, "action"));
    bool computer = tools_has_word("computer_use|computer", name, strlen(name));
    if (p->out->nactions && !p->d->run_all) {
        p->out->repairs |= REPAIR_EXTRA_CALLS;
        return FAULT_NONE;
    }
    if (!json_is_object(args))
        return parse_fault(p, FAULT_SCHEMA, "the arguments of '%.60s' must be an object", name);
    if (computer && !action)
        return parse_fault(p, FAULT_SCHEMA, "the arguments of '%.60s' need an 'action'", name);
    return bind_call(p, computer ? action : name, args, computer ? "action" : NULL);
}

static enum action_fault bind_json(struct parse *p, const char *text, size_t len)
{
    json_t *root, *inner = NULL;
    enum action_fault f = parse_json(p, text, len, &root);
    json_t *args = json_object_get(root, "arguments");
    const char *name = json_string_value(json_object_get(root, "name"));
    if (!f && json_is_string(args)) {
        f = parse_json(p, json_string_value(args), json_string_length(args), &inner);
        args = inner;
    }
    if (!f)
        f = name ? bind_named(p, name, args)
                 : parse_fault(p, FAULT_SCHEMA, "a function call must have a 'name'");
    json_decref(inner);
    json_decref(root);
    return f;
}

static enum action_fault bind_xml(struct parse *p, const char *text, const char *end)
{
    char *name;
    json_t *args;
    enum action_fault f = parse_xml_call(p, &text, end, &name, &args);
    f = f ? f : bind_named(p, name, args);
    json_decref(args);
    free(name);
    return f;
}

/* ---- the reply -------------------------------------------------------------------------------------- */

static enum action_fault bind_one(struct parse *p, const char *text, size_t len)
{
    parse_trim(&text, &len);
    return len && *text == '<' ? bind_xml(p, text, text + len) : bind_json(p, text, len);
}

/* Without "Action:" or "Thought:" before it. */
static enum action_fault read_thought(struct parse *p, const char *text, size_t len)
{
    static const char *const labels[] = {"Action:", "Thought:"};
    parse_trim(&text, &len);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        size_t n = strlen(labels[i]);
        if (len >= n && !memcmp(text, labels[i], n)) {
            text += n;
            len -= n;
            parse_trim(&text, &len);
        }
    }
    return len ? parse_text(p, text, len, &p->out->thought) : FAULT_NONE;
}

enum action_fault parse_qwen(struct parse *p, const char *text, size_t len)
{
    const char *end = text + len, *at = find(text, end, open_tag);
    if (len && (*text == '{' || !strncmp(text, "<function=", len < 10 ? len : 10)))
        return bind_one(p, text, len);
    if (!at)
        return parse_fault(p, FAULT_NO_ACTION, "the reply holds no '%s'", open_tag);
    enum action_fault f = read_thought(p, text, (size_t)(at - text));
    for (; !f && at; at = find(text, end, open_tag)) {
        const char *inside = at + sizeof open_tag - 1, *close = find(inside, end, close_tag);
        if (!close)
            return parse_fault(p, FAULT_PARSE, "the call is cut off: '%s' is missing", close_tag);
        f = bind_one(p, inside, (size_t)(close - inside));
        text = close + sizeof close_tag - 1;
    }
    return f;
}
