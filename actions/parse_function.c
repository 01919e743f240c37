/* parse_function.c - native function calls.
 *
 *   {"name": "click", "arguments": {...}}              arguments may be an object, or the same as a string
 *   <TOOLCALL>[{...}, ...]</TOOLCALL>                   "parameters" is a synonym
 *   <tool_call>{...}</tool_call>                        several of them, one after the other
 *
 * Text before the first tag is the thought.  Of several calls only the first is run (REPAIR_EXTRA_CALLS),
 * unless the dialect has "run_all".
 */
#include "actions/parse.h"

#include <ctype.h>
#include <string.h>

static enum action_fault bind_function(struct parse *p, json_t *call)
{
    const char *name = json_string_value(json_object_get(call, "name"));
    json_t *args = json_object_get(call, "arguments");
    args = args ? args : json_object_get(call, "parameters");
    if (!name)
        return parse_fault(p, FAULT_SCHEMA, "a function call must have a 'name'");
    json_t *inner = NULL;
    enum action_fault f = FAULT_NONE;
    if (json_is_string(args)) {
        f = parse_json(p, json_string_value(args), json_string_length(args), &inner);
        args = inner;
    }
    if (!f && args && !json_is_object(args))
        f = parse_fault(p, FAULT_SCHEMA, "the arguments of '%s' must be an object", name);
    f = f ? f : bind_call(p, name, args, NULL);
    json_decref(inner);
    return f;
}

enum action_fault parse_function_object(struct parse *p, json_t *root)
{
    bool all = dialect_tools(p->d)->run_all;
    json_t *one;
    size_t i;
    if (json_is_object(root)) {
        if (p->out->nactions && !all) {
            p->out->repairs |= REPAIR_EXTRA_CALLS;
            return FAULT_NONE;
        }
        return bind_function(p, root);
    }
    enum action_fault f = FAULT_NONE;
    json_array_foreach(root, i, one)
    {
        if (!json_is_object(one))
            f = f ? f : parse_fault(p, FAULT_SCHEMA, "a list of calls holds something else");
        f = f ? f : parse_function_object(p, one);
    }
    return f;
}

/* The content of a tag; text after the JSON is recorded. */
static enum action_fault parse_tagged(struct parse *p, const char *text, size_t len)
{
    json_t *root;
    while (len && isspace((unsigned char)*text))
        text++, len--;
    enum action_fault f = parse_json(p, text, len, &root);
    f = f ? f : parse_function_object(p, root);
    json_decref(root);
    return f;
}

static const char *find(const char *text, const char *end, const char *mark)
{
    return memmem(text, (size_t)(end - text), mark, strlen(mark));
}

enum action_fault parse_function(struct parse *p, const char *text, size_t len)
{
    static const char *const tags[][2] = {{"<TOOLCALL>", "</TOOLCALL>"}, {"<tool_call>", "</tool_call>"}};
    const char *end = text + len, *at = NULL;
    int k = 0;
    enum action_fault f = FAULT_NONE;
    if (len && (*text == '{' || *text == '['))
        return parse_tagged(p, text, len);
    for (; k < 2 && !at; k++)
        at = find(text, end, tags[k][0]);
    if (!at)
        return parse_fault(p, FAULT_NO_ACTION, "the reply holds no function call");
    const char *thought = text;
    size_t n = (size_t)(at - text);
    while (n && isspace((unsigned char)thought[n - 1]))
        n--;
    if (n)
        f = parse_text(p, thought, n, &p->out->thought);
    for (k--; !f && at; at = find(text, end, tags[k][0])) {
        const char *inside = at + strlen(tags[k][0]), *close = find(inside, end, tags[k][1]);
        if (!close)
            return parse_fault(p, FAULT_PARSE, "the call is cut off: '%s' is missing", tags[k][1]);
        f = parse_tagged(p, inside, (size_t)(close - inside));
        text = close + strlen(tags[k][1]);
    }
    return f;
}
