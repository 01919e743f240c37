/* calls_python.c - calls in Python (see calls.h): [NAME(KEY=VALUE)], or NAME(KEY=VALUE) on its own line. */
#include "actions/calls_impl.h"

#include "actions/python_in.h"
#include "base/buf.h"

#include <ctype.h>
#include <string.h>

/* Returns the name without the module in which a model lists its tools, as in "functions.click", if only the
 * rest is a tool.  "button.click" is a statement of a program. */
static const char *plain_name(const struct calls_reader *r, const char *name)
{
    static const char *const modules[] = {"functions.", "tools.", "default_api.", "api.", "computer_use."};
    const char *plain = name;
    for (size_t i = 0; i < sizeof modules / sizeof *modules && plain == name; i++)
        if (!strncmp(name, modules[i], strlen(modules[i])) &&
            isalpha((unsigned char)name[strlen(modules[i])]))
            plain = name + strlen(modules[i]);
    if (plain == name || !calls_knows_tools(r))
        return plain;
    bool known = calls_is_tool(r, name, strlen(name)), rest = calls_is_tool(r, plain, strlen(plain));
    return !known && rest ? plain : name;
}

/* Adds positional arguments under the names of the parameters.  Returns false if a parameter is missing or
 * given twice. */
static bool name_arguments(const struct calls_reader *r, const char *tool, const struct python_call *call)
{
    const struct calls_hints *h = r->hints;
    json_t *v;
    size_t i;
    json_array_foreach(call->list, i, v)
    {
        const char *name = h && h->nth ? h->nth(h->arg, tool, (int)i) : NULL;
        if (!name || json_object_get(call->keywords, name))
            return false;
        json_object_set(call->keywords, name, v);
    }
    return true;
}

/* Returns whether text at s is a call: of a known tool, or in brackets if no tools are known. */
static bool is_meant(const struct calls_reader *r, const char *s, bool bracket)
{
    size_t n = calls_name(s, r->end);
    char name[CALLS_MAX_NAME];
    if (!n || n >= sizeof name || !isalpha((unsigned char)*s))
        return false;
    memcpy(name, s, n);
    name[n] = 0;
    if (!isalnum((unsigned char)name[n - 1]) && name[n - 1] != '_')
        return false;
    const char *plain = plain_name(r, name), *open = s + n;
    while (open < r->end && *open == ' ')
        open++;
    if (open == r->end || *open != '(')
        return false;
    return calls_knows_tools(r) ? calls_is_tool(r, plain, strlen(plain)) : bracket;
}

/* Reads one call.  Returns 1, or 0 if it is rejected; fault: rejections are added as faults. */
static int read_one(struct calls_reader *r, const char *begin, bool fault)
{
    struct err e = ERR_INIT;
    struct python_in in = {.at = r->at, .end = r->end, .e = &e};
    struct python_call call;
    int n = 0;
    if (python_read_call(&in, &call)) {
        if (fault)
            calls_add_fault(r, begin, FAULT_PARSE, in.cut, "%s", e.text);
        r->at = fault ? r->end : r->at;
        return fault;
    }
    const char *name = plain_name(r, call.name);
    r->at = in.at;
    if (call.called && name_arguments(r, name, &call)) {
        struct call *c = calls_add(r, begin, name, strlen(name), json_incref(call.keywords));
        if (c)
            c->repairs = json_array_size(call.list) || name != call.name ? REPAIR_CALL : 0;
        n = c != NULL;
    } else if (fault) {
        calls_add_fault(r, begin, FAULT_SCHEMA, false, "the arguments of '%s' need names", name);
        n = 1;
    }
    python_call_free(&call);
    return n;
}

/* Reads "[a(x=1), b()]"; a missing bracket at the end is tolerated.  Returns the number of calls. */
static int read_list(struct calls_reader *r, const char *begin)
{
    int n = 0;
    r->at = text_skip_space(r->at + 1, r->end);
    while (r->at < r->end && *r->at != ']') {
        if (!is_meant(r, r->at, true))
            break;
        int one = read_one(r, n ? r->at : begin, true);
        n += one;
        if (!one || r->out->list[r->out->n - 1].fault)
            return n;
        r->at = text_skip_space(r->at, r->end);
        if (r->at < r->end && *r->at == ',')
            r->at = text_skip_space(r->at + 1, r->end);
    }
    if (r->at < r->end && *r->at == ']')
        r->at++;
    else if (n)
        r->out->list[r->out->n - 1].repairs |= REPAIR_CALL;
    return n;
}

int calls_read_python(struct calls_reader *r, const char *begin, bool sure)
{
    const char *s = r->at;
    if (s == r->end)
        return 0;
    if (*s == '[') {
        const char *first = text_skip_space(s + 1, r->end);
        int n = is_meant(r, first, true) ? read_list(r, begin) : 0;
        r->at = n ? r->at : s;
        return n;
    }
    if (!is_meant(r, s, sure))
        return 0;
    int n = read_one(r, begin, true);
    const char *behind = r->at;
    while (behind < r->end && strchr(" \t\r;", *behind))
        behind++;
    bool line_ends = behind == r->end || *behind == '\n' || *behind == '<' || *behind == '`';
    if (n && !sure && !line_ends && !r->out->list[r->out->n - 1].fault) /* a sentence about a call */
        calls_drop_last(r);
    else
        return n;
    r->at = s;
    return 0;
}
