/* calls_xml.c - one call in XML (see calls.h), from its opening tag to its end. */
#include "actions/calls_impl.h"

#include "actions/json_in.h"
#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char value_closers[] = "parameter|arg_value", function_closers[] = "function|invoke",
                  wrapper_closers[] = "tool_call|toolcall|tool_calls";

enum {
    LEAST_CUT = 5,    /* bytes of a truncated closer on the line of its value */
    MAX_CLOSERS = 16, /* maximum number of closers that are checked after a value */
};

struct xml {
    struct calls_reader *r;
    char tool[CALLS_MAX_NAME];
    json_t *texts;
    unsigned repairs;
    bool cut;
};

static const char *parameter_at(const char *s, const char *end, const char **name, size_t *n, bool *exact)
{
    return calls_opener(s, end, "parameter", name, n, exact);
}

static const char *function_at(const char *s, const char *end, const char **name, size_t *n)
{
    bool exact;
    const char *behind = calls_opener(s, end, "function", name, n, &exact);
    return behind ? behind : calls_opener(s, end, "invoke", name, n, &exact);
}

/* Returns whether the tool has a parameter of this name; true if unknown. */
static bool is_parameter(const struct xml *x, const char *name, size_t n)
{
    const struct calls_hints *h = x->r->hints;
    char copy[CALLS_MAX_NAME];
    if (!h || !h->parameter || !calls_is_tool(x->r, x->tool, strlen(x->tool)))
        return true;
    memcpy(copy, name, n);
    copy[n] = 0;
    return h->parameter(h->arg, x->tool, copy);
}

/* ---- the end of a value ------------------------------------------------------------------------------ */

struct value {
    const char *begin, *end; /* borrowed from the text */
    const char *next;        /* position after the closer of this value */
    bool one_line;           /* the value begins on the line of its tag */
    bool closed;             /* the value ends with its own closer, on a separate line if it begins on a
                              * separate line */
    bool whole;              /* false: the text ends in the middle of the last line */
};

struct inner { /* calls that are open within a value, as in a text about XML */
    int functions, wrappers;
    const char *closed; /* the position after the closer of the last function */
};

/* Returns whether the line begins with the tag at s. */
static bool begins_line(const struct value *v, const char *s)
{
    while (s > v->begin && (s[-1] == ' ' || s[-1] == '\t'))
        s--;
    return s > v->begin ? s[-1] == '\n' : !v->one_line;
}

/* Returns whether another part of a call follows, or the end of the text. */
static bool part_follows(const struct xml *x, const char *s)
{
    const char *end = x->r->end, *name;
    size_t n;
    bool exact;
    s = text_skip_space(s, end);
    if (s == end || calls_closer(s, end, NULL) > s || calls_starts(s, end, "```") ||
        calls_starts(s, end, "<tool_call"))
        return true;
    return function_at(s, end, &name, &n) ||
           (parameter_at(s, end, &name, &n, &exact) && is_parameter(x, name, n));
}

/* Returns whether only tags follow on the line of the closer before s. */
static bool tags_to_line_end(const struct xml *x, const char *s)
{
    const char *end = x->r->end, *name;
    size_t n;
    bool exact;
    for (int i = 0;; i++) {
        while (s < end && (*s == ' ' || *s == '\t' || *s == '\r'))
            s++;
        const char *behind = calls_closer(s, end, NULL);
        if (behind == s || i == MAX_CLOSERS)
            return i == MAX_CLOSERS || s == end || *s == '\n' || calls_starts(s, end, "```") ||
                   calls_starts(s, end, "<tool_call") || function_at(s, end, &name, &n) ||
                   parameter_at(s, end, &name, &n, &exact);
        s = behind;
    }
}

/* Returns whether the tag at s is on the line of the opening tag of its value. */
static bool on_first_line(const struct value *v, const char *s)
{
    return v->one_line && !memchr(v->begin, '\n', (size_t)(s - v->begin));
}

/* Returns whether the closer before `behind` is part of a well-formed text, because the closers of the value
 * follow it. */
static bool closers_follow(const struct xml *x, const char *behind, bool own_line, bool of_value)
{
    const char *end = x->r->end, *s = text_skip_space(behind, end),
               *after = calls_closer(s, end, value_closers);
    if (after == s || (of_value && own_line))
        return false;
    s = text_skip_space(after, end);
    return !own_line || calls_closer(s, end, function_closers) > s;
}

/* Returns whether the call continues after the closer: the same closer appears again before the next call. */
static bool comes_again(const struct xml *x, const char *behind, const char *words)
{
    const char *end = x->r->end, *name;
    size_t n;
    for (const char *s = behind; (s = memchr(s, '<', (size_t)(end - s))); s++) {
        if (calls_closer(s, end, words) > s)
            return true;
        if (calls_starts(s, end, "<tool_call>") || function_at(s, end, &name, &n))
            return false;
    }
    return false;
}

/* Returns whether the closer from s to behind, one of the words, ends the value. */
static bool ends_value(const struct xml *x, const struct value *v, const char *s, const char *behind,
                       const char *words)
{
    bool line = begins_line(v, s), first = on_first_line(v, s);
    if (!tags_to_line_end(x, behind))
        return first && part_follows(x, behind);
    if (part_follows(x, behind))
        return !closers_follow(x, behind, line || (first && words == value_closers), words == value_closers);
    return (line || first) && !comes_again(x, behind, words);
}

/* Returns whether the closer of a function or of the wrapper belongs to a call inside the value. */
static bool closes_inner(const struct xml *x, struct inner *in, const char *s, const char *behind,
                         bool function)
{
    int *open = function ? &in->functions : &in->wrappers;
    if (*open > 0) {
        --*open;
        in->closed = function ? behind : in->closed;
        return true;
    }
    const char *next = text_skip_space(behind, x->r->end);
    return !function && in->closed && text_skip_space(in->closed, s) == s &&
           calls_closer(next, x->r->end, value_closers) > next;
}

/* Returns whether the text ends within an opening tag of a parameter at s. */
static bool cut_opener(const char *s, const char *end)
{
    static const char tag[] = "<parameter";
    size_t n = (size_t)(end - s);
    return !memchr(s, '>', n) && !memchr(s, '\n', n) &&
           !memcmp(s, tag, n < sizeof tag - 1 ? n : sizeof tag - 1);
}

/* Returns whether another call begins at s, as opposed to a tag in a text. */
static bool next_call(const struct xml *x, const char *s)
{
    const char *end = x->r->end, *name;
    size_t n;
    if (!calls_knows_tools(x->r))
        return false;
    bool wrapper = calls_starts(s, end, "<tool_call>");
    const char *at = wrapper ? text_skip_space(s + strlen("<tool_call>"), end) : s;
    return (wrapper && at < end && *at == '{') ||
           (function_at(at, end, &name, &n) && calls_is_tool(x->r, name, n));
}

/* Returns whether the value ends before the tag at s.  v->next: where reading continues. */
static bool ends_at(const struct xml *x, struct value *v, struct inner *in, const char *s)
{
    const char *end = x->r->end, *behind, *name;
    size_t n;
    bool exact, line = begins_line(v, s), first_line = on_first_line(v, s);
    v->next = s;
    v->closed = false;
    behind = calls_closer(s, end, NULL);
    if (behind == end && behind > s && end[-1] != '>' && !line && !(first_line && end - s >= LEAST_CUT))
        return false; /* "</" may be text that is cut off */
    if ((behind = calls_closer(s, end, value_closers)) > s) {
        v->next = behind;
        v->closed =
            !v->one_line && line && behind[-1] == '>' && behind - s == (ptrdiff_t)strlen("</parameter>");
        return ends_value(x, v, s, behind, value_closers);
    }
    if (parameter_at(s, end, &name, &n, &exact))
        return (line || first_line) && is_parameter(x, name, n);
    if ((behind = calls_closer(s, end, function_closers)) > s)
        return !closes_inner(x, in, s, behind, true) && ends_value(x, v, s, behind, function_closers);
    if ((behind = calls_closer(s, end, wrapper_closers)) > s)
        return !closes_inner(x, in, s, behind, false) && ends_value(x, v, s, behind, wrapper_closers);
    if (line && next_call(x, s))
        return true;
    in->functions += function_at(s, end, &name, &n) != NULL;
    in->wrappers += calls_starts(s, end, "<tool_call>");
    behind = calls_closer(s, end, NULL); /* a special token at the end of the reply */
    return (behind > s && part_follows(x, behind)) || (line && cut_opener(s, end));
}

/* Returns whether a value that ends with the text has more than one line: the others may be sentences after
 * the call. */
static bool several_lines(const struct value *v)
{
    const char *s = memchr(v->begin, '\n', (size_t)(v->end - v->begin));
    return s && text_skip_space(s, v->end) < v->end;
}

/* Returns whether the value is a list or an object without its end. */
static bool open_list(const struct value *v)
{
    const char *s = text_skip_space(v->begin, v->end), *last = v->end;
    while (last > s && isspace((unsigned char)last[-1]))
        last--;
    return last > s && ((*s == '[' && last[-1] != ']') || (*s == '{' && last[-1] != '}'));
}

static void find_end(const struct xml *x, const char *s, struct value *v)
{
    const char *end = x->r->end;
    struct inner in = {0};
    *v = (struct value){.begin = s, .whole = true};
    while (s < end && (*s == ' ' || *s == '\t'))
        s++;
    while (s < end && *s == '\r')
        s++;
    v->one_line = s < end && *s != '\n';
    if (!v->one_line)
        v->begin = s += s < end;
    for (; (s = memchr(s, '<', (size_t)(end - s))); s++)
        if (ends_at(x, v, &in, s)) {
            v->end = s;
            v->whole = v->next > s || !next_call(x, s);
            return;
        }
    v->end = v->next = end;
    v->closed = false;
    const char *last = end;
    while (last > v->begin && (last[-1] == ' ' || last[-1] == '\t'))
        last--;
    v->whole = last > v->begin && last[-1] == '\n' && !several_lines(v) && !open_list(v);
}

/* ---- parameters -------------------------------------------------------------------------------------- */

/* Returns how far all lines of a value are indented, if its closer is indented: the XML is pretty-printed. */
static size_t indentation(const struct value *v, const char *to)
{
    const char *closer = v->end;
    size_t least = SIZE_MAX;
    while (closer > v->begin && (closer[-1] == ' ' || closer[-1] == '\t'))
        closer--;
    if (closer == v->end)
        return 0;
    for (const char *line = v->begin; line < to;) {
        const char *s = line, *end = memchr(line, '\n', (size_t)(to - line));
        while (s < to && (*s == ' ' || *s == '\t'))
            s++;
        if (s < to && *s != '\n' && *s != '\r' && (size_t)(s - line) < least)
            least = (size_t)(s - line);
        line = end ? end + 1 : to;
    }
    return least == SIZE_MAX || least < (size_t)(v->end - closer) ? 0 : least;
}

/* Drops the line break in front of the closer, with the closer's indentation, and the CRs of CRLF. */
static json_t *text_of(struct xml *x, struct value *v)
{
    const char *to = v->end;
    bool own = v->next > v->end && calls_closer(v->end, x->r->end, value_closers) > v->end;
    while (to > v->begin && (to[-1] == ' ' || to[-1] == '\t' || (!own && isspace((unsigned char)to[-1]))))
        to--;
    if (!own)
        v->end = to; /* an empty line is left where a closer is missing */
    if (to > v->begin && to[-1] == '\n') {
        to--;
        while (to > v->begin && to[-1] == '\r')
            to--;
    } else {
        to = v->end;
    }
    size_t indent = own && !v->one_line ? indentation(v, to) : 0;
    char *copy = xmalloc((size_t)(to - v->begin) + 1, 1), *out = copy;
    x->repairs |= indent ? REPAIR_CALL : 0;
    for (const char *s = v->begin; s < to; s++) {
        if (s == v->begin || s[-1] == '\n') {
            const char *line = s;
            while (s < to && (size_t)(s - line) < indent && (*s == ' ' || *s == '\t'))
                s++;
        }
        if (s < to && *s == '\r' && s + 1 < to && (s[1] == '\n' || s[1] == '\r'))
            x->repairs |= REPAIR_CONTROL_CHAR;
        else if (s < to)
            *out++ = *s;
    }
    json_t *text = json_stringn(copy, (size_t)(out - copy));
    free(copy);
    return text;
}

/* Returns whether the last line of a value is a code fence, which may be the one around the call. */
static bool ends_with_fence(const struct value *v)
{
    const char *last = v->end;
    while (last > v->begin && isspace((unsigned char)last[-1]))
        last--;
    return last - v->begin >= 3 && !memcmp(last - 3, "```", 3);
}

/* Reads the parameter whose value begins at s.  Returns false after adding a fault. */
static bool read_parameter(struct xml *x, const char *begin, const char *name, size_t n, const char *s)
{
    struct value v;
    char key[CALLS_MAX_NAME];
    memcpy(key, name, n);
    key[n] = 0;
    find_end(x, s, &v);
    x->r->at = v.next;
    x->repairs |= v.closed ? 0 : REPAIR_CALL;
    bool own = calls_closer(v.end, x->r->end, value_closers) > v.end;
    if (!v.whole || (!own && (s[-1] != '>' || ends_with_fence(&v)))) {
        calls_add_fault(x->r, begin, FAULT_PARSE, true, "the call is cut off: '</parameter>' is missing");
        return false;
    }
    json_t *text = text_of(x, &v);
    if (!text)
        calls_add_fault(x->r, begin, FAULT_TEXT, false, "the text is not valid UTF-8");
    else if (json_object_get(x->texts, key))
        calls_add_fault(x->r, begin, FAULT_SCHEMA, false, "'%s' is given twice", key);
    else if (!json_object_set(x->texts, key, text)) {
        json_decref(text);
        return true;
    }
    json_decref(text);
    return false;
}

/* Returns the next parameter of this call, skipping text outside of calls; NULL: the call ends before. */
static const char *next_parameter(const struct xml *x, const char **name, size_t *n, bool *exact)
{
    const char *end = x->r->end, *from = x->r->at, *behind, *word;
    size_t len;
    for (const char *s = from; (s = memchr(s, '<', (size_t)(end - s))); s++) {
        behind = parameter_at(s, end, name, n, exact);
        if (behind && is_parameter(x, *name, *n)) {
            *exact = *exact && s == from;
            return behind;
        }
        if (function_at(s, end, &word, &len) || calls_starts(s, end, "<tool_call") ||
            (s > from && calls_closer(s, end, NULL) > s))
            return NULL;
    }
    return NULL;
}

/* Reads parameters up to the end of the function.  Returns false after adding a fault. */
static bool read_parameters(struct xml *x, const char *begin)
{
    struct calls_reader *r = x->r;
    for (;;) {
        const char *s = r->at = text_skip_space(r->at, r->end), *name, *behind;
        size_t n;
        bool exact;
        if (s == r->end) {
            x->cut = true;
            x->repairs |= REPAIR_CALL;
            return true;
        }
        if ((behind = calls_closer(s, r->end, value_closers)) > s) { /* a stray closer */
            x->repairs |= REPAIR_CALL;
            r->at = behind;
            continue;
        }
        if ((behind = calls_closer(s, r->end, function_closers)) > s) {
            x->repairs |= calls_starts(s, r->end, "</function>") ? 0 : REPAIR_CALL;
            r->at = behind;
            return true;
        }
        behind = parameter_at(s, r->end, &name, &n, &exact);
        behind = behind ? behind : next_parameter(x, &name, &n, &exact);
        if (!behind && cut_opener(s, r->end)) {
            calls_add_fault(r, begin, FAULT_PARSE, true, "the call is cut off in the tag of a parameter");
            r->at = r->end;
            return false;
        }
        if (!behind) {
            x->cut = calls_closer(s, r->end, wrapper_closers) == s;
            x->repairs |= REPAIR_CALL;
            return true;
        }
        x->repairs |= exact ? 0 : REPAIR_CALL;
        if (!read_parameter(x, begin, name, n, behind))
            return false;
    }
}

/* Reads <function=NAME>{"x": 1}</function>.  Returns false after adding a fault. */
static bool read_object(struct xml *x, const char *begin)
{
    struct calls_reader *r = x->r;
    struct json_in in = {.max_depth = JSON_IN_DEEPEST};
    struct err e = ERR_INIT;
    json_t *v = json_in(r->at, (size_t)(r->end - r->at), &in, &e);
    r->at += in.used;
    if (!v) {
        calls_add_fault(r, begin, FAULT_PARSE, in.cut, "%s", e.text);
        return false;
    }
    json_decref(x->texts);
    x->texts = v;
    x->repairs |= in.repairs | REPAIR_CALL;
    const char *s = text_skip_space(r->at, r->end), *behind = calls_closer(s, r->end, function_closers);
    r->at = behind > s ? behind : r->at;
    return true;
}

int calls_read_xml(struct calls_reader *r, const char *begin)
{
    struct xml x = {.r = r, .texts = json_object()};
    const char *name, *s = r->at;
    size_t n;
    bool exact, object;
    const char *behind = calls_opener(s, r->end, "function", &name, &n, &exact);
    if (!behind)
        behind = calls_opener(s, r->end, "invoke", &name, &n, &exact);
    x.repairs = exact && calls_starts(s, r->end, "<function=") ? 0 : REPAIR_CALL;
    memcpy(x.tool, name, n);
    r->at = text_skip_space(behind, r->end);
    object = r->at < r->end && *r->at == '{';
    if (!(object ? read_object : read_parameters)(&x, begin)) {
        json_decref(x.texts);
        return 1;
    }
    struct call *c = calls_add(r, begin, name, n, x.texts);
    if (!c)
        return 0;
    c->texts = !object;
    c->cut = x.cut;
    c->repairs = x.repairs;
    return 1;
}
