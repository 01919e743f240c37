/* parse_xml.c - function calls as Qwen3.5, and Holo 3.1 with native tools, write them:
 *
 *   thought
 *
 *   <tool_call>
 *   <function=click_desktop>
 *   <parameter=x>
 *   500
 *   </parameter>
 *   </function>
 *   </tool_call>
 *
 * A value is text between two line breaks.  Whether it is a number or a list, or only looks like one, the
 * tool table says: a text to type stays text.  A JSON object inside the tags is read as parse_function
 * reads it.  Of several calls only the first is run (REPAIR_EXTRA_CALLS), unless the dialect has "run_all".
 */
#include "actions/parse.h"

#include <string.h>

struct reader {
    struct parse *p;
    const char *at, *end;
};

/* Moves behind the next mark; what stands before it is text[0..len).  false: there is none. */
static bool take_until(struct reader *r, const char *mark, const char **text, size_t *len)
{
    const char *found = r->at < r->end ? memmem(r->at, (size_t)(r->end - r->at), mark, strlen(mark)) : NULL;
    if (!found)
        return false;
    *text = r->at;
    *len = (size_t)(found - r->at);
    r->at = found + strlen(mark);
    return true;
}

static bool next_is(struct reader *r, const char *mark)
{
    while (r->at < r->end && strchr(" \t\r\n", *r->at))
        r->at++;
    size_t n = strlen(mark);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, mark, n) != 0)
        return false;
    r->at += n;
    return true;
}

static const struct tool_arg *find_arg(const struct tool *t, const char *name)
{
    for (int i = 0; t && i < t->nargs; i++)
        if (!strcmp(t->args[i].name, name) || tools_alias(t->args[i].aliases, name, true))
            return &t->args[i];
    return NULL;
}

/* A list whose strings are Python's, or NULL. */
static json_t *python_list(const struct parse *p, const char *text, size_t len)
{
    struct err why = ERR_INIT;
    size_t used = 0;
    unsigned repairs = 0;
    json_t *v = len && *text == '[' ? json_in(text, len, true, &repairs, &used, &why) : NULL;
    if (used == len)
        p->out->repairs |= repairs;
    else
        json_decref(v);
    return used == len ? v : NULL;
}

/* A value as the argument's type wants it; NULL: it is not valid UTF-8. */
static json_t *read_value(const struct parse *p, const struct tool_arg *arg, const char *text, size_t len)
{
    enum param_type type = arg ? registry_param(arg->id)->type : PARAM_STRING;
    if (type == PARAM_STRING || type == PARAM_ENUM || type == PARAM_KEY || type == PARAM_ANY)
        return json_stringn(text, len);
    parse_trim(&text, &len);
    if (len == 4 && !memcmp(text, "True", 4))
        return json_true();
    if (len == 5 && !memcmp(text, "False", 5))
        return json_false();
    json_t *v = json_loadb(text, len, JSON_DECODE_ANY, NULL);
    v = v ? v : python_list(p, text, len);
    if (type == PARAM_KEYS && !json_is_array(v)) { /* the key 5 is no number */
        json_decref(v);
        v = NULL;
    }
    return v ? v : json_stringn(text, len);
}

/* A value stands between two line breaks, which are not part of it. */
static void drop_breaks(const char **text, size_t *len)
{
    if (*len && **text == '\n') {
        (*text)++;
        (*len)--;
    }
    if (*len && (*text)[*len - 1] == '\n')
        (*len)--;
}

/* Into the texts of a call, by their names. */
static enum action_fault read_parameter(struct reader *r, json_t *texts)
{
    const char *name, *text;
    size_t n, len;
    if (!take_until(r, ">", &name, &n) || !take_until(r, "</parameter>", &text, &len))
        return parse_fault(r->p, FAULT_PARSE, "the call is cut off: '</parameter>' is missing");
    char *key = xasprintf("%.*s", (int)n, name);
    drop_breaks(&text, &len);
    json_t *v = json_stringn(text, len);
    enum action_fault f = FAULT_NONE;
    if (json_object_get(texts, key))
        f = parse_fault(r->p, FAULT_SCHEMA, "'%s' is given twice", key);
    else if (!v)
        f = parse_fault(r->p, FAULT_TEXT, "the text is not valid UTF-8");
    else if (json_object_set(texts, key, v))
        f = parse_fault(r->p, FAULT_PARSE, "a parameter has no name");
    json_decref(v);
    free(key);
    return f;
}

/* The texts as values of the types that the tool wants: that of the function's name, else of "action", which
 * is how a single function offers all of them. */
static json_t *read_values(const struct parse *p, const char *name, json_t *texts)
{
    bool alias;
    const char *key, *action = json_string_value(json_object_get(texts, "action"));
    const struct tool *t = tools_find(p->d->tools, name, &alias);
    json_t *v, *args = json_object();
    t = t || !action ? t : tools_find(p->d->tools, action, &alias);
    json_object_foreach(texts, key, v) json_object_set_new(
        args, key, read_value(p, find_arg(t, key), json_string_value(v), json_string_length(v)));
    return args;
}

enum action_fault parse_xml_call(struct parse *p, const char **at, const char *end, char **name,
                                 json_t **args)
{
    struct reader r = {p, *at, end};
    const char *word;
    size_t n;
    *name = NULL;
    *args = NULL;
    if (!next_is(&r, "<function=") || !take_until(&r, ">", &word, &n))
        return parse_fault(p, FAULT_PARSE, "the call has no '<function=NAME>'");
    json_t *texts = json_object();
    enum action_fault f = FAULT_NONE;
    while (!f && next_is(&r, "<parameter="))
        f = read_parameter(&r, texts);
    if (!f && !next_is(&r, "</function>"))
        f = parse_fault(p, FAULT_PARSE, "the call is cut off: '</function>' is missing");
    if (!f) {
        *name = xasprintf("%.*s", (int)n, word);
        *args = read_values(p, *name, texts);
        *at = r.at;
    }
    json_decref(texts);
    return f;
}

/* After "<tool_call>". */
static enum action_fault read_call(struct reader *r)
{
    char *name;
    json_t *args;
    enum action_fault f = parse_xml_call(r->p, &r->at, r->end, &name, &args);
    if (!f && !next_is(r, "</tool_call>"))
        f = parse_fault(r->p, FAULT_PARSE, "the call is cut off: '</tool_call>' is missing");
    f = f ? f : bind_call(r->p, name, args, NULL);
    json_decref(args);
    free(name);
    return f;
}

enum action_fault parse_xml(struct parse *p, const char *text, size_t len)
{
    struct reader r = {p, text, text + len};
    const char *before;
    size_t n;
    bool any = take_until(&r, "<tool_call>", &before, &n);
    if (!any && len && (*text == '{' || *text == '['))
        return parse_function(p, text, len);
    if (!any)
        return parse_fault(p, FAULT_NO_ACTION, "the reply holds no function call");
    struct reader look = r;
    if (next_is(&look, "{"))
        return parse_function(p, text, len);
    parse_trim(&before, &n);
    enum action_fault f = n ? parse_text(p, before, n, &p->out->thought) : FAULT_NONE;
    f = f ? f : read_call(&r);
    while (!f && take_until(&r, "<tool_call>", &before, &n)) {
        if (!p->d->run_all) {
            p->out->repairs |= REPAIR_EXTRA_CALLS;
            return FAULT_NONE;
        }
        f = read_call(&r);
    }
    return f;
}
