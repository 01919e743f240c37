/* parse_qwen.c - replies of the Qwen-VL family with its function "computer_use".
 *
 *   Action: click the field
 *   <tool_call>
 *   {"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [512, 40]}}
 *   </tool_call>
 *
 * Newer ones write the call as <function=computer_use><parameter=action>left_click</parameter>...</function>.
 * Servers that read calls themselves give the JSON alone.  What stands before the first call is the thought.
 * Of several calls the first is run (REPAIR_EXTRA_CALLS), unless the dialect has "run_all".
 */
#include "actions/parse.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WORD = 64 };

static const char open_tag[] = "<tool_call>", close_tag[] = "</tool_call>";

static const char *find(const char *text, const char *end, const char *mark)
{
    return memmem(text, (size_t)(end - text), mark, strlen(mark));
}

/* ---- a call -------------------------------------------------------------------------------------- */

/* Functions beside computer_use have their own name. */
static enum action_fault bind_named(struct parse *p, const char *name, json_t *args)
{
    const char *action = json_string_value(json_object_get(args, "action"));
    if (p->out->nactions && !p->d->run_all) {
        p->out->repairs |= REPAIR_EXTRA_CALLS;
        return FAULT_NONE;
    }
    if (!json_is_object(args))
        return parse_fault(p, FAULT_SCHEMA, "the arguments of '%.60s' must be an object", name);
    return bind_call(p, action ? action : name, args, action ? "action" : NULL);
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
    if (!f && !name)
        f = parse_fault(p, FAULT_SCHEMA, "a function call must have a 'name'");
    f = f ? f : bind_named(p, name, args);
    json_decref(inner);
    json_decref(root);
    return f;
}

/* ---- the XML form ---------------------------------------------------------------------------------- */

/* "<function=NAME>" or "<parameter=NAME>" at text: the name, and what follows; NULL: it is something else. */
static const char *read_open(const char *text, const char *end, const char *mark, char name[MAX_WORD])
{
    size_t n = strlen(mark);
    const char *close =
        (size_t)(end - text) > n && !memcmp(text, mark, n) ? memchr(text, '>', (size_t)(end - text)) : NULL;
    size_t len = close ? (size_t)(close - text) - n : 0;
    if (!close || !len || len >= MAX_WORD)
        return NULL;
    memcpy(name, text + n, len);
    name[len] = 0;
    return close + 1;
}

/* Texts are meant as they are; of other types JSON is written. */
static bool is_text(const struct parse *p, const char *action, const char *key)
{
    bool alias;
    const struct tool *t = tools_find(p->d->tools, action, &alias);
    for (int i = 0; t && i < t->nargs; i++)
        if (!strcmp(t->args[i].name, key) || tools_alias(t->args[i].aliases, key, true)) {
            enum param_type type = registry_param(t->args[i].id)->type;
            return type == PARAM_STRING || type == PARAM_KEY || type == PARAM_ENUM;
        }
    return true;
}

static json_t *decode(const struct parse *p, json_t *texts, const char *name)
{
    const char *key, *action = json_string_value(json_object_get(texts, "action"));
    json_t *v, *args = json_object();
    json_object_foreach(texts, key, v)
    {
        json_t *read = is_text(p, action ? action : name, key)
                           ? NULL
                           : json_loadb(json_string_value(v), json_string_length(v), JSON_DECODE_ANY, NULL);
        json_object_set_new(args, key, read ? read : json_incref(v));
    }
    return args;
}

static enum action_fault bind_xml(struct parse *p, const char *text, const char *end)
{
    char name[MAX_WORD], key[MAX_WORD];
    json_t *texts = json_object();
    const char *at = read_open(text, end, "<function=", name);
    enum action_fault f = at ? FAULT_NONE : parse_fault(p, FAULT_PARSE, "the call has no '<function=NAME>'");
    while (!f && (at = find(at, end, "<parameter="))) {
        const char *value = read_open(at, end, "<parameter=", key);
        const char *close = value ? find(value, end, "</parameter>") : NULL;
        if (!close) {
            f = parse_fault(p, FAULT_PARSE, "the call is cut off: '</parameter>' is missing");
            break;
        }
        size_t n = (size_t)(close - value);
        parse_trim(&value, &n);
        json_t *v = json_stringn(value, n);
        if (!v)
            f = parse_fault(p, FAULT_TEXT, "the text is not valid UTF-8");
        else
            json_object_set_new(texts, key, v);
        at = close;
    }
    json_t *args = f ? NULL : decode(p, texts, name);
    f = f ? f : bind_named(p, name, args);
    json_decref(args);
    json_decref(texts);
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
