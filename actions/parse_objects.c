/* parse_objects.c - replies that are JSON, alone, in a code fence or between sentences.
 *
 * holo3      {"note": null, "thought": "...", "tool_call": {"tool_name": "click_desktop", ...}}
 * holo1      {"note": "", "thought": "...", "action": {"action": "click_element", "element": "...", ...}}
 *     The tool's name is next to its arguments.  A batch ("tool_calls") is run in order.
 *
 * anthropic  {"action": "left_click", "coordinate": [512, 384]}
 *     also as the content block {"type": "tool_use", "name": "computer", "input": {...}}, where a name other
 *     than "computer" names the action, or as a list of content blocks, whose actions are run in order.
 *     Reasoning ("thinking") is ignored.
 *
 * openai     {"type": "computer_call", "action": {"type": "click", ...}, "pending_safety_checks": []}
 *     or the action alone, or "actions", a batch run in order, or a list of such items with messages and
 *     reasoning between.  A pending safety check goes to step.check, for the user.
 *
 * Tool calls in any form of calls.h, which newer models may write instead, are read by parse_calls.c.
 */
#include "actions/parse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TRIES = 64 /* maximum number of JSON values that are tried between sentences */ };

/* Returns the value of the first existing key; NULL: none. */
static json_t *first_of(const json_t *object, const char *const *keys)
{
    json_t *v = NULL;
    for (; *keys && !v; keys++)
        v = json_object_get(object, *keys);
    return v;
}

/* Appends a text of a content list to the thought; without an action the thought becomes the answer. */
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

/* ---- JSON between sentences ------------------------------------------------------------------------- */

/* Returns whether a value is an object with one of the keys, or a list that begins with such an object. */
static bool has_key(const json_t *v, const char *const *keys)
{
    const json_t *object = json_is_array(v) ? json_array_get(v, 0) : v;
    return first_of(object, keys) != NULL;
}

/* Returns whether s[0..n) begins an object, or a list of them, whose first key is one of the keys.  Words in
 * square brackets, "[action: click]", do not. */
static bool begins_with_key(const char *s, size_t n, const char *const *keys)
{
    size_t at = 0;
    bool object = false;
    for (; at < n && (isspace((unsigned char)s[at]) || (s[at] && strchr("{[\"'", s[at]))); at++)
        object = object || s[at] == '{';
    if (!object)
        return false;
    for (int i = 0; keys[i]; i++) {
        size_t len = strlen(keys[i]);
        if (n - at > len && !memcmp(s + at, keys[i], len) && strchr("\"':", s[at + len]))
            return true;
    }
    return false;
}

/* Returns whether a reply is JSON from its first byte on; "[thought: ...]" is words. */
static bool begins_with_json(const char *s, size_t n)
{
    size_t at = 1;
    while (at < n && isspace((unsigned char)s[at]))
        at++;
    return n && (*s == '{' || (*s == '[' && !(at < n && isalpha((unsigned char)s[at]))));
}

/* Finds the first JSON value with one of the keys. Returns NULL if there is none, or if that value or a call
 * before it cannot be read (*broken). *e describes the last value that is not JSON. */
static json_t *find_json(const char *text, size_t len, const char *const *keys, struct json_in *in,
                         const char **at, bool *broken, struct err *e)
{
    static const char *const call[] = {"name", NULL};
    int tries = 0;
    *broken = false;
    for (const char *s = text, *end = text + len; s < end && tries < MAX_TRIES; s++) {
        if (*s != '{' && *s != '[')
            continue;
        tries++;
        *in = (struct json_in){.max_depth = JSON_IN_MAX_DEPTH};
        json_t *v = json_in(s, (size_t)(end - s), in, e);
        if (v && has_key(v, keys)) {
            *at = s;
            return v;
        }
        size_t n = (size_t)(end - s);
        *broken = !v && (begins_with_key(s, n, keys) || (!in->cut && begins_with_key(s, n, call)));
        if (*broken)
            return NULL; /* later values were meant to follow this one */
        s += v ? in->used - 1 : 0;
        json_decref(v);
    }
    return NULL;
}

/* Reads the JSON of a reply that has one of the keys, also between sentences, which are the thought. *out
 * stays NULL if the reply contains calls in another format, which are then bound. */
static enum action_fault read_json(struct parse *p, const char *text, size_t len, const char *const *keys,
                                   json_t **out)
{
    struct err why = ERR_INIT;
    struct json_in in = {0};
    const char *at = NULL;
    bool broken;
    *out = NULL;
    if (begins_with_json(text, len))
        return parse_json(p, text, len, out);
    *out = find_json(text, len, keys, &in, &at, &broken, &why);
    if (!*out) {
        enum action_fault f = broken ? FAULT_NO_ACTION : parse_calls(p, text, len);
        return f != FAULT_NO_ACTION
                   ? f
                   : parse_fault(p, FAULT_PARSE, "%s", *why.text ? why.text : "expected a JSON object");
    }
    const char *rest = at + in.used;
    size_t before = (size_t)(at - text);
    parse_beside(p, text, before);
    parse_rest(p, rest, (size_t)(text + len - rest));
    parse_trim(&text, &before);
    p->out->repairs |= in.repairs | REPAIR_CALL;
    return before ? parse_text(p, text, before, &p->out->thought) : FAULT_NONE;
}

/* ---- Holo -------------------------------------------------------------------------------------- */

/* Reads a string or null under one of two keys; *found: there is a string. */
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
        return parse_call_object(p, call);
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
        return parse_fault(p, FAULT_SCHEMA, "a step must have exactly one action");
    if (call)
        return bind_tool_call(p, call, "tool_name");
    if (action)
        return bind_tool_call(p, action, "action");
    if (calls && !json_is_array(calls))
        return parse_fault(p, FAULT_SCHEMA, "'tool_calls' must be a list");
    json_array_foreach(calls, i, one) f = f ? f : bind_tool_call(p, one, "tool_name");
    if (!f && !p->out->nactions)
        return parse_fault(p, FAULT_NO_ACTION, "the step contains no tool call");
    return f;
}

static enum action_fault read_step(struct parse *p, json_t *root)
{
    bool note, thought;
    if (json_is_array(root) || (json_object_get(root, "name") && !json_object_get(root, "thought")))
        return parse_call_object(p, root);
    enum action_fault f = check_keys(p, root);
    f = f ? f : read_string(p, root, "note", "notes", &p->out->note, &note);
    f = f ? f : read_string(p, root, "thought", "thought", &p->out->thought, &thought);
    if (!f && !thought)
        f = parse_fault(p, FAULT_SCHEMA, "the step needs a 'thought'");
    return f ? f : bind_tool_calls(p, root);
}

enum action_fault parse_holo(struct parse *p, const char *text, size_t len)
{
    static const char *const keys[] = {"thought", "tool_call", "tool_calls", "action", "note", NULL};
    json_t *root;
    enum action_fault f = read_json(p, text, len, keys, &root);
    if (!f && root)
        f = read_step(p, root);
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

/* Returns whether the type of a block or item is one of the words. */
static bool is_type(const json_t *v, const char *words)
{
    const char *is = json_string_value(json_object_get(v, "type"));
    return is && tools_has_word(words, is, strlen(is));
}

/* Binds {"action": ...}, or for a toolset the member whose name is next to the input. */
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
        return parse_fault(p, FAULT_SCHEMA, "the input of '%.40s' is cut off or not a JSON object",
                           name ? name : "?");
    if (input && name && strcmp(name, "computer") != 0)
        action = name;
    if (!action && name && !input)
        return parse_call_object(p, root);
    if (!action)
        return parse_fault(p, FAULT_SCHEMA, "an action needs the key 'action'");
    return bind_call(p, action, call, "action");
}

enum action_fault parse_anthropic(struct parse *p, const char *text, size_t len)
{
    static const char *const keys[] = {"action", "input", "type", NULL};
    json_t *root, *block;
    size_t i;
    enum action_fault f = read_json(p, text, len, keys, &root);
    json_array_foreach(root, i, block) if (!f) f = bind_block(p, block);
    if (!f && json_is_array(root))
        f = answer_with_said(p, "action");
    else if (!f && root)
        f = bind_block(p, root);
    json_decref(root);
    return f;
}

static enum action_fault bind_action(struct parse *p, json_t *action)
{
    const char *type = json_string_value(json_object_get(action, "type"));
    if (!type && json_object_get(action, "name"))
        return parse_call_object(p, action);
    if (!type)
        return parse_fault(p, FAULT_SCHEMA, "an action needs the key 'type'");
    return bind_call(p, type, action, "type");
}

/* Adds the texts of the checks, for the user who is asked. */
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

/* Reads a computer call; or a message or reasoning, with its text or, as the server sends it, a list of
 * texts. */
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
    static const char *const keys[] = {"type", "action", "actions", NULL};
    json_t *root, *item;
    size_t i;
    enum action_fault f = read_json(p, text, len, keys, &root);
    json_array_foreach(root, i, item) f = f ? f : read_item(p, item);
    if (!f && json_is_array(root))
        f = answer_with_said(p, "type");
    else if (!f && root)
        f = bind_actions(p, root);
    json_decref(root);
    return f;
}
