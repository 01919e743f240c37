/* parse_calls.c - replies that hold tool calls: reads them in any form (calls.h) and binds them to the
 * tool table.
 *
 *   I click the field.
 *   <tool_call>
 *   {"name": "click", "arguments": {"x": 512, "y": 40}}
 *   </tool_call>
 *
 * The text before the first call is the thought.  Of several calls the first is executed and the others are
 * reported to the model (REPAIR_EXTRA_CALLS), unless the dialect has "run_all".  The function "computer_use",
 * or "computer", names its tool in the argument "action".  The tool table says whether a value of the XML
 * form is a number or a list, or only looks like one.
 */
#include "actions/parse.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool parse_is_computer(const char *name)
{
    return tools_has_word("computer_use|computer", name, strlen(name));
}

/* ---- access of the call reader to the tool table ---------------------------------------------- */

static const struct tool_arg *find_arg(const struct tool *t, const char *name)
{
    for (int i = 0; t && i < t->nargs; i++)
        if (!strcmp(t->args[i].name, name) || tools_alias(t->args[i].aliases, name, true))
            return &t->args[i];
    return NULL;
}

static bool has_tool(const void *arg, const char *name)
{
    const struct dialect *d = arg;
    bool alias;
    return parse_is_computer(name) || tools_find(d->tools, name, &alias);
}

static bool has_parameter(const void *arg, const char *tool, const char *name)
{
    const struct dialect *d = arg;
    bool alias, found = !strcmp(name, "action");
    if (!parse_is_computer(tool))
        return find_arg(tools_find(d->tools, tool, &alias), name) || !strcmp(name, "safety_decision") ||
               !strcmp(name, "intent");
    for (int i = 0; i < d->tools->n && !found; i++)
        found = find_arg(&d->tools->list[i], name);
    return found;
}

static const char *nth_parameter(const void *arg, const char *tool, int i)
{
    const struct dialect *d = arg;
    bool alias;
    const struct tool *t = tools_find(d->tools, tool, &alias);
    return t && i < t->nargs ? t->args[i].name : NULL;
}

/* ---- values of the XML form ---------------------------------------------------------------------------- */

/* Returns a list whose strings may be Python's, or NULL. */
static json_t *python_list(const struct parse *p, const char *text, size_t len)
{
    struct err why = ERR_INIT;
    struct json_in in = {.max_depth = JSON_IN_MAX_DEPTH};
    json_t *v = len && *text == '[' ? json_in(text, len, &in, &why) : NULL;
    if (v && in.used == len) {
        p->out->repairs |= in.repairs;
        return v;
    }
    json_decref(v);
    return NULL;
}

/* Converts a value to the argument's type. Returns NULL if it is not valid UTF-8. */
static json_t *read_value(const struct parse *p, const struct tool_arg *arg, const char *text, size_t len)
{
    enum param_type type = arg ? registry_param(arg->id)->type : PARAM_STRING;
    if (type == PARAM_STRING || type == PARAM_ANY)
        return json_stringn(text, len);
    parse_trim(&text, &len);
    if (type == PARAM_ENUM || type == PARAM_KEY)
        return json_stringn(text, len);
    if (len == 4 && !memcmp(text, "True", 4))
        return json_true();
    if (len == 5 && !memcmp(text, "False", 5))
        return json_false();
    json_t *v = json_loadb(text, len, JSON_DECODE_ANY, NULL);
    v = v ? v : python_list(p, text, len);
    if (type == PARAM_KEYS && !json_is_array(v)) { /* the key 5 is not a number */
        json_decref(v);
        v = NULL;
    }
    return v ? v : json_stringn(text, len);
}

static json_t *read_values(const struct parse *p, const struct tool *t, json_t *texts)
{
    const char *key;
    json_t *v, *args = json_object();
    json_object_foreach(texts, key, v) json_object_set_new(
        args, key, read_value(p, find_arg(t, key), json_string_value(v), json_string_length(v)));
    return args;
}

/* ---- a call -------------------------------------------------------------------------------------------- */

/* Appends a text to the thought. */
static enum action_fault add_said(struct parse *p, const char *text)
{
    if (!text || !*text)
        return FAULT_NONE;
    const char *was = p->out->thought ? p->out->thought : "";
    char *both = xasprintf("%s%s%s", was, *was ? "\n" : "", text);
    enum action_fault f = parse_text(p, both, strlen(both), &p->out->thought);
    free(both);
    return f;
}

/* Gemini's "safety_decision": {"decision": "require_confirmation", "explanation"} is next to the
 * arguments. */
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

/* Moves Gemini's "intent", the reason for the action, which is next to the arguments, to the thought. */
static enum action_fault take_intent(struct parse *p, json_t *args)
{
    json_t *v = json_object_get(args, "intent");
    if (!json_is_string(v))
        return FAULT_NONE;
    enum action_fault f = add_said(p, json_string_value(v));
    json_object_del(args, "intent");
    return f;
}

static enum action_fault bind_named(struct parse *p, const char *name, json_t *args, bool texts)
{
    bool alias, computer = parse_is_computer(name);
    const char *action = json_string_value(json_object_get(args, "action"));
    if (computer && !action && !tools_find(p->d->tools, name, &alias))
        return parse_fault(p, FAULT_SCHEMA, "the arguments of '%.60s' need an 'action'", name);
    char *word = xstrdup(computer && action ? action : name);
    json_t *values = texts ? read_values(p, tools_find(p->d->tools, word, &alias), args) : json_incref(args);
    const struct tool *t = tools_find(p->d->tools, word, &alias);
    if (!computer && action && t && !strcmp(action, word) && !find_arg(t, "action")) {
        json_object_del(values, "action"); /* {"name": "type", "arguments": {"action": "type", ...}} */
        p->out->repairs |= REPAIR_CALL;
    }
    enum action_fault f = take_safety_decision(p, values);
    f = f ? f : take_intent(p, values);
    f = f ? f : bind_call(p, word, values, computer && action ? "action" : NULL);
    json_decref(values);
    free(word);
    return f;
}

static enum action_fault bind_one(struct parse *p, const struct call *c)
{
    if (c->fault)
        return parse_fault(p, c->fault, "%s", c->why);
    p->out->cut = c->cut;
    p->out->repairs |= c->repairs;
    return bind_named(p, c->name, c->arguments, c->texts);
}

/* ---- the reply ----------------------------------------------------------------------------------------- */

/* Reads the thought, without a preceding "Action:" or "Thought:". */
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

/* Reports a call that is not executed, without its markup. */
static void drop(struct parse *p, const struct call *c)
{
    char *arguments = c->arguments ? json_dumps(c->arguments, JSON_COMPACT) : NULL;
    char *line = c->name ? xasprintf("%s %s", c->name, arguments ? arguments : "")
                         : xstrdup("a call that cannot be read");
    parse_dropped(p, line, strlen(line));
    p->out->repairs |= REPAIR_EXTRA_CALLS;
    free(line);
    free(arguments);
}

static enum action_fault bind_all(struct parse *p, const char *text, size_t len, const struct calls *c)
{
    enum action_fault f = c->n ? read_thought(p, text, c->list[0].begin) : FAULT_NONE;
    f = f ? f : add_said(p, c->said);
    for (int i = 0; !f && i < c->n; i++) {
        const struct call *one = &c->list[i];
        if (!p->out->nactions || p->d->run_all)
            f = bind_one(p, one);
        else
            drop(p, one);
    }
    if (!f && c->n) {
        size_t end = c->list[c->n - 1].end;
        parse_beside(p, text, c->list[0].begin);
        parse_rest(p, text + end, len - end);
    }
    return f;
}

enum action_fault parse_calls(struct parse *p, const char *text, size_t len)
{
    const struct calls_hints hints = {has_tool, has_parameter, nth_parameter, p->d};
    struct calls c;
    calls_read(text, len, &hints, &c);
    bool list = len && (*text == '[' || *text == '{' || c.said);
    enum action_fault f = bind_all(p, text, len, &c);
    if (!f && !c.n && !list)
        f = parse_fault(p, FAULT_NO_ACTION, "the reply contains no function call");
    calls_free(&c);
    return f;
}

enum action_fault parse_call_object(struct parse *p, const json_t *object)
{
    char *text = json_dumps(object, 0);
    enum action_fault f = text ? parse_calls(p, text, strlen(text))
                               : parse_fault(p, FAULT_SCHEMA, "a tool call must be an object with 'name'");
    free(text);
    return f;
}
