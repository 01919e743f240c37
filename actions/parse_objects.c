/* parse_objects.c - replies that are JSON.
 *
 * function   {"name": "click", "arguments": {...}}      arguments may be an object, or the same as a string
 *            <TOOLCALL>[{...}, ...]</TOOLCALL>           "parameters" is a synonym
 *            <tool_call>{...}</tool_call>                several of them, one after the other
 *     Text before the first tag is the thought.  Of several calls only the first is run
 *     (REPAIR_EXTRA_CALLS), unless the dialect has "run_all".  A call may be wrapped as Google's and
 *     OpenAI's servers give it: {"functionCall": {"name", "args"}}, {"function": {"name", "arguments"}}.
 *
 * holo3      {"note": null, "thought": "...", "tool_call": {"tool_name": "click_desktop", ...}}
 * holo1      {"note": "", "thought": "...", "action": {"action": "click_element", "element": "...", ...}}
 *     The tool's name is beside its arguments.  A batch ("tool_calls") is run in order; native function
 *     calls, which newer models may write instead, are read as above.
 *
 * anthropic  {"action": "left_click", "coordinate": [512, 384]}
 *     also as the content block {"type": "tool_use", "name": "computer", "input": {...}}, where another name
 *     is that of the action, or as a list of content blocks, whose actions are run in order.  Reasoning
 *     ("thinking") is passed over.
 *
 * openai     {"type": "computer_call", "action": {"type": "click", ...}, "pending_safety_checks": []}
 *     or the action alone, or "actions", a batch run in order, or a list of such items with messages and
 *     reasoning between.  A pending safety check goes to step.check, for a person.
 */
#include "actions/parse.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The value of the first key that is there, NULL none. */
static json_t *first_of(const json_t *object, const char *const *keys)
{
    json_t *v = NULL;
    for (; *keys && !v; keys++)
        v = json_object_get(object, *keys);
    return v;
}

/* The texts of a list of content are the thought; of one without an action they are the answer. */
static enum action_fault add_said(struct parse *p, const json_t *text)
{
    if (!json_string_length(text))
        return FAULT_NONE;
    const char *was = p->out->thought ? p->out->thought : "";
    char *both = xasprintf("%s%s%s", was, *was ? "\n" : "", json_string_value(text));
    enum action_fault f = parse_text(p, both, strlen(both), &p->out->thought);
    free(both);
    return f;
}

/* ---- function calls ---------------------------------------------------------------------------- */

/* Gemini's "safety_decision": {"decision": "require_confirmation", "explanation"} is beside the arguments. */
static enum action_fault take_safety_decision(struct parse *p, json_t *args)
{
    json_t *v = json_object_get(args, "safety_decision");
    const char *word = json_string_value(json_is_object(v) ? json_object_get(v, "decision") : v);
    if (word && !strncasecmp(word, "block", 5))
        return parse_fault(p, FAULT_DENIED, "the model's server forbids this action");
    if (v && !json_is_null(v) && (!word || !tools_has_word("regular|allowed", word, strlen(word))))
        parse_check(p, json_string_value(json_object_get(v, "explanation")));
    json_object_del(args, "safety_decision");
    return FAULT_NONE;
}

/* So is its "intent", why it does this. */
static enum action_fault take_intent(struct parse *p, json_t *args)
{
    enum action_fault f = add_said(p, json_object_get(args, "intent"));
    if (json_is_string(json_object_get(args, "intent")))
        json_object_del(args, "intent");
    return f;
}

static enum action_fault bind_function(struct parse *p, json_t *call)
{
    static const char *const synonyms[] = {"arguments", "parameters", "args", NULL};
    const char *name = json_string_value(json_object_get(call, "name"));
    json_t *args = first_of(call, synonyms);
    if (!name)
        return parse_fault(p, FAULT_SCHEMA, "a function call must have a 'name'");
    args = json_is_null(args) ? NULL : args;
    json_t *inner = NULL;
    enum action_fault f = FAULT_NONE;
    if (json_is_string(args)) {
        f = parse_json(p, json_string_value(args), json_string_length(args), &inner);
        args = inner;
    }
    if (!f && args && !json_is_object(args))
        f = parse_fault(p, FAULT_SCHEMA, "the arguments of '%s' must be an object", name);
    f = f ? f : take_safety_decision(p, args);
    f = f ? f : take_intent(p, args);
    f = f ? f : bind_call(p, name, args, NULL);
    json_decref(inner);
    return f;
}

/* A call, in its wrapper or without one, or a text beside the calls. */
static enum action_fault read_part(struct parse *p, json_t *part)
{
    static const char *const wrappers[] = {"functionCall", "function_call", "function", NULL};
    json_t *call = first_of(part, wrappers), *text = json_object_get(part, "text");
    if (!call && text && !json_object_get(part, "name"))
        return add_said(p, text);
    if (p->out->nactions && !p->d->run_all) {
        p->out->repairs |= REPAIR_EXTRA_CALLS;
        return FAULT_NONE;
    }
    return bind_function(p, json_is_object(call) ? call : part);
}

static enum action_fault parse_function_object(struct parse *p, json_t *root)
{
    json_t *one;
    size_t i;
    if (json_is_object(root))
        return read_part(p, root);
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
    parse_trim(&text, &len);
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
    parse_trim(&thought, &n);
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

/* ---- Holo -------------------------------------------------------------------------------------- */

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

/* ---- the "computer" tool ----------------------------------------------------------------------- */

static enum action_fault answer_with_said(struct parse *p, const char *tag)
{
    if (p->out->nactions || !p->out->thought)
        return FAULT_NONE;
    json_t *call = json_pack("{s:s, s:s}", tag, "answer", "text", p->out->thought);
    enum action_fault f = call ? bind_call(p, "answer", call, tag) : FAULT_NONE;
    json_decref(call);
    return f;
}

/* Whether the type of a block or item is one of the words. */
static bool is_type(const json_t *v, const char *words)
{
    const char *is = json_string_value(json_object_get(v, "type"));
    return is && tools_has_word(words, is, strlen(is));
}

/* {"action": ...}, or of a toolset the name of its member beside the input. */
static enum action_fault bind_block(struct parse *p, json_t *root)
{
    json_t *input = json_object_get(root, "input"), *call = input ? input : root;
    const char *action = json_string_value(json_object_get(call, "action")),
               *name = json_string_value(json_object_get(root, "name"));
    if (is_type(root, "text"))
        return add_said(p, json_object_get(root, "text"));
    if (is_type(root, "thinking|redacted_thinking"))
        return FAULT_NONE;
    if (input && !json_is_object(input))
        return parse_fault(p, FAULT_SCHEMA, "the input of '%.40s' is cut off, or no JSON object",
                           name ? name : "?");
    if (input && name && strcmp(name, "computer") != 0)
        action = name;
    if (!action)
        return parse_fault(p, FAULT_SCHEMA, "an action needs the key 'action'");
    return bind_call(p, action, call, "action");
}

enum action_fault parse_anthropic(struct parse *p, const char *text, size_t len)
{
    json_t *root, *block;
    size_t i;
    enum action_fault f = parse_json(p, text, len, &root);
    json_array_foreach(root, i, block) if (!f) f = bind_block(p, block);
    if (!f && json_is_array(root))
        f = answer_with_said(p, "action");
    else if (!f)
        f = bind_block(p, root);
    json_decref(root);
    return f;
}

static enum action_fault bind_action(struct parse *p, json_t *action)
{
    const char *type = json_string_value(json_object_get(action, "type"));
    if (!type)
        return parse_fault(p, FAULT_SCHEMA, "an action needs the key 'type'");
    return bind_call(p, type, action, "type");
}

/* The text of the checks, for the person who is asked. */
static enum action_fault add_checks(struct parse *p, json_t *checks)
{
    json_t *one;
    size_t i;
    if (!checks || json_is_null(checks))
        return FAULT_NONE;
    if (!json_is_array(checks))
        return parse_fault(p, FAULT_SCHEMA, "'pending_safety_checks' must be a list");
    json_array_foreach(checks, i, one)
    {
        const char *message = json_string_value(json_object_get(one, "message")),
                   *code = json_string_value(json_object_get(one, "code"));
        parse_check(p, message && *message ? message : code);
    }
    return FAULT_NONE;
}

static enum action_fault bind_actions(struct parse *p, json_t *root)
{
    json_t *action = json_object_get(root, "action"), *actions = json_object_get(root, "actions"), *one;
    size_t i;
    enum action_fault f = add_checks(p, json_object_get(root, "pending_safety_checks"));
    if (!actions || json_is_null(actions))
        return f ? f : bind_action(p, action ? action : root);
    if (!json_is_array(actions))
        return parse_fault(p, FAULT_SCHEMA, "'actions' must be a list");
    json_array_foreach(actions, i, one) f = f ? f : bind_action(p, one);
    return f;
}

/* A computer call; a message or reasoning, with its text or, as the server gives it, a list of texts. */
static enum action_fault read_item(struct parse *p, json_t *item)
{
    static const char *const lists[] = {"content", "summary", NULL};
    json_t *part;
    size_t i;
    if (!is_type(item, "message|reasoning"))
        return bind_actions(p, item);
    enum action_fault f = add_said(p, json_object_get(item, "text"));
    json_array_foreach(first_of(item, lists), i, part) f = f ? f : add_said(p, json_object_get(part, "text"));
    return f;
}

enum action_fault parse_openai(struct parse *p, const char *text, size_t len)
{
    json_t *root, *item;
    size_t i;
    enum action_fault f = parse_json(p, text, len, &root);
    json_array_foreach(root, i, item) f = f ? f : read_item(p, item);
    if (!f && json_is_array(root))
        f = answer_with_said(p, "type");
    else if (!f)
        f = bind_actions(p, root);
    json_decref(root);
    return f;
}
