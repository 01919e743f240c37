/* calls.c - see calls.h. Finds the positions where a call begins, and passes each to the reader of its
 * format.
 */
#include "actions/calls_impl.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_TRIES = 256 /* values of JSON and calls in Python that are tried between sentences */ };

static const char *const wrappers[] = {
    "<tool_call>",      "<TOOLCALL>",    "[TOOL_CALLS]",     "<tool_calls>",   "<function_calls>",
    "<function_call>",  "<|tool_call|>", "<|tool_call>",     "<|tool_calls|>", "<|python_tag|>",
    "<|python_start|>", "[TOOL_CALL]",   "[AVAILABLE_TOOLS]"};
enum { N_WRAPPERS = sizeof wrappers / sizeof *wrappers, N_EXACT = 3, N_TAGS = 2 };

/* ---- shared ------------------------------------------------------------------------------------------ */

bool calls_is_tool(const struct calls_reader *r, const char *name, size_t n)
{
    char copy[CALLS_MAX_NAME];
    if (!n || n >= sizeof copy)
        return false;
    if (!calls_knows_tools(r))
        return true;
    memcpy(copy, name, n);
    copy[n] = 0;
    return r->hints->tool(r->hints->arg, copy);
}

bool calls_knows_tools(const struct calls_reader *r)
{
    return r->hints && r->hints->tool;
}

size_t calls_name(const char *s, const char *end)
{
    const char *from = s;
    while (s < end && (isalnum((unsigned char)*s) || (*s && strchr("_-.:", *s))))
        s++;
    return (size_t)(s - from);
}

bool calls_starts(const char *s, const char *end, const char *mark)
{
    size_t n = strlen(mark);
    return s && (size_t)(end - s) >= n && !strncasecmp(s, mark, n);
}

struct call *calls_add(struct calls_reader *r, const char *begin, const char *name, size_t n,
                       json_t *arguments)
{
    struct calls *out = r->out;
    if (out->n == CALLS_MAX) {
        json_decref(arguments);
        return NULL;
    }
    if (!out->list)
        out->list = xcalloc(CALLS_MAX, sizeof *out->list);
    struct call *c = &out->list[out->n++];
    *c = (struct call){.arguments = arguments, .begin = (size_t)(begin - r->text)};
    if (name) {
        n = n < CALLS_MAX_NAME ? n : CALLS_MAX_NAME - 1;
        c->name = xasprintf("%.*s", (int)utf8_valid_prefix(name, n), name);
    }
    return c;
}

void calls_add_fault(struct calls_reader *r, const char *begin, enum action_fault f, bool cut,
                     const char *fmt, ...)
{
    struct call *c = calls_add(r, begin, NULL, 0, NULL);
    char why[ERR_TEXT];
    if (!c)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    why[utf8_valid_prefix(why, strlen(why))] = 0;
    c->fault = f;
    c->cut = cut;
    c->why = xstrdup(why);
}

static void free_call(struct call *c)
{
    free(c->name);
    free(c->why);
    json_decref(c->arguments);
}

void calls_drop_last(struct calls_reader *r)
{
    free_call(&r->out->list[--r->out->n]);
}

void calls_free(struct calls *c)
{
    for (int i = 0; i < c->n; i++)
        free_call(&c->list[i]);
    free(c->list);
    free(c->said);
    *c = (struct calls){0};
}

static bool at_line_start(const struct calls_reader *r, const char *s)
{
    while (s > r->text && (s[-1] == ' ' || s[-1] == '\t'))
        s--;
    return s == r->text || s[-1] == '\n';
}

/* ---- a wrapped call ---------------------------------------------------------------------------------- */

/* Returns the position after a wrapper's opening tag, and its index in *which; NULL: no opening tag at s. */
static const char *wrapper_at(const char *s, const char *end, int *which)
{
    for (int i = 0; i < N_WRAPPERS; i++)
        if (calls_starts(s, end, wrappers[i])) {
            *which = i;
            return s + strlen(wrappers[i]);
        }
    return NULL;
}

static bool fence_at(const char *s, const char *end)
{
    return calls_starts(s, end, "```");
}

/* Returns the position after "```lang". */
static const char *skip_fence(const char *s, const char *end)
{
    s += 3;
    while (s < end && (isalnum((unsigned char)*s) || *s == '_' || *s == '-'))
        s++;
    return s;
}

/* Reads one call or list at r->at, inside a wrapper.  Returns the number of calls. */
static int read_inside(struct calls_reader *r, const char *begin)
{
    const char *s = r->at, *name;
    size_t n;
    bool exact;
    if (s == r->end)
        return 0;
    if (calls_opener(s, r->end, "function", &name, &n, &exact) ||
        calls_opener(s, r->end, "invoke", &name, &n, &exact))
        return calls_read_xml(r, begin);
    if (*s == '{')
        return calls_read_json(r, begin, true);
    if (*s == '[') {
        int got = calls_read_python(r, begin, false);
        return got ? got : calls_read_json(r, begin, true);
    }
    int got = calls_read_named_json(r, begin);
    return got ? got : calls_read_python(r, begin, true);
}

/* Skips doubled brackets and quotes of JSON where a closer or the end follows; returns how many. */
static int skip_brackets(struct calls_reader *r)
{
    const char *s = text_skip_space(r->at, r->end), *from = s;
    while (s < r->end && strchr("}]\"", *s))
        s = text_skip_space(s + 1, r->end);
    if (s == from || (s < r->end && calls_closer(s, r->end, NULL) == s && !fence_at(s, r->end)))
        return 0;
    r->at = s;
    return 1;
}

/* Skips closers and a closing fence behind a call; returns how many closers. */
static int skip_closers(struct calls_reader *r, bool fenced)
{
    int n = 2 * skip_brackets(r);
    for (;;) {
        const char *s = text_skip_space(r->at, r->end), *behind = calls_closer(s, r->end, NULL);
        if (behind > s) {
            n++;
        } else if (fenced && fence_at(s, r->end)) {
            behind = s + 3;
            fenced = false;
        } else {
            return n;
        }
        r->at = behind;
    }
}

/* Sets the end of the calls added since `from` to r->at and adds these repairs. */
static void finish(struct calls_reader *r, int from, unsigned repairs)
{
    for (int i = from; i < r->out->n; i++) {
        struct call *c = &r->out->list[i];
        c->repairs |= repairs;
        c->end = i + 1 < r->out->n ? r->out->list[i + 1].begin : (size_t)(r->at - r->text);
    }
}

/* Returns the start of "```lang\n" directly before s; s if there is none. */
static const char *fence_before(const struct calls_reader *r, const char *s)
{
    const struct call *last = r->out->n ? &r->out->list[r->out->n - 1] : NULL;
    const char *from = r->text + (last ? last->end : 0), *at = s;
    while (at > from && isspace((unsigned char)at[-1]))
        at--;
    const char *word = at;
    while (word > from && (isalnum((unsigned char)word[-1]) || word[-1] == '_' || word[-1] == '-'))
        word--;
    bool fence = word - from >= 3 && !memcmp(word - 3, "```", 3) && at_line_start(r, word - 3);
    return fence ? word - 3 : s;
}

/* Skips further wrappers and fences before the call.  Returns the repairs. */
static unsigned skip_openers(struct calls_reader *r, bool *fenced)
{
    unsigned repairs = 0;
    for (;;) {
        int which;
        const char *s = text_skip_space(r->at, r->end), *behind = wrapper_at(s, r->end, &which);
        if (behind) {
            repairs |= REPAIR_CALL;
        } else if (fence_at(s, r->end)) {
            repairs |= REPAIR_FENCE;
            behind = skip_fence(s, r->end);
            *fenced = true;
        } else {
            r->at = s;
            return repairs;
        }
        r->at = behind;
    }
}

/* Reads all calls after a wrapper's opening tag.  Returns false if the wrapper is only mentioned. */
static bool read_wrapped(struct calls_reader *r, int which, const char *behind)
{
    const char *s = r->at, *begin = fence_before(r, s);
    int from = r->out->n, got, all = 0;
    bool fenced = begin != s;
    unsigned repairs = (which < N_EXACT ? 0u : REPAIR_CALL) | (fenced ? REPAIR_FENCE : 0u);
    r->at = behind;
    repairs |= skip_openers(r, &fenced);
    const char *inside = r->at;
    while ((got = read_inside(r, all ? r->at : begin)) > 0) {
        all += got;
        r->at = text_skip_space(r->at, r->end);
        if (r->at < r->end && (*r->at == ',' || *r->at == ';'))
            r->at = text_skip_space(r->at + 1, r->end);
        if (r->out->list[r->out->n - 1].fault)
            break;
    }
    bool empty = !all && (inside == r->end || calls_closer(inside, r->end, NULL) > inside);
    if (!all && !empty) {
        r->at = behind;
        return false;
    }
    if (empty)
        calls_add_fault(r, begin, FAULT_PARSE, inside == r->end,
                        inside == r->end ? "the call is cut off after '%s'"
                                         : "the call has no '<function=NAME>'",
                        wrappers[which]);
    int closers = skip_closers(r, fenced);
    if (closers != (which < N_TAGS) && which != 2)
        repairs |= REPAIR_CALL;
    finish(r, from, repairs);
    return true;
}

/* ---- a call without a wrapper ------------------------------------------------------------------------ */

static bool read_bare_xml(struct calls_reader *r)
{
    const char *s = r->at, *name, *behind;
    size_t n;
    bool exact;
    behind = calls_opener(s, r->end, "function", &name, &n, &exact);
    behind = behind ? behind : calls_opener(s, r->end, "invoke", &name, &n, &exact);
    if (!behind || (!at_line_start(r, s) && !(calls_knows_tools(r) && calls_is_tool(r, name, n))))
        return false;
    const char *begin = fence_before(r, s);
    int from = r->out->n;
    if (calls_read_xml(r, begin) <= 0)
        return false;
    const struct call *c = &r->out->list[r->out->n - 1];
    bool empty = c->arguments && !json_object_size(c->arguments) && c->cut;
    if (empty &&
        (!at_line_start(r, s) || text_skip_space(r->at, r->end) < r->end)) { /* the call is only mentioned */
        calls_drop_last(r);
        return false;
    }
    skip_closers(r, begin != s);
    finish(r, from, REPAIR_CALL | (begin != s ? REPAIR_FENCE : 0u));
    return true;
}

struct scan {
    struct calls_reader r;
    int tries;
    bool bare;          /* JSON or Python without a wrapper was read */
    struct calls aside; /* a fault before all calls, reported if no call was found */
};

/* Drops the calls added since `from`, except the first fault.  Before all calls the fault is put aside; after
 * a call it is kept, because a further call may depend on the unreadable one. */
static void keep_fault(struct scan *s, int from)
{
    struct calls *out = s->r.out;
    struct calls_reader to = s->r;
    struct call fault = {0}, *kept = NULL;
    for (int i = from; i < out->n && !fault.fault; i++) {
        if (!out->list[i].fault)
            continue;
        fault = out->list[i];
        out->list[i] = (struct call){0};
    }
    while (out->n > from)
        calls_drop_last(&s->r);
    to.out = from ? out : &s->aside;
    if (fault.fault && (from || !s->aside.n))
        kept = calls_add(&to, to.text + fault.begin, NULL, 0, NULL);
    fault.end = (size_t)(to.at - to.text);
    if (kept)
        *kept = fault;
    else
        free_call(&fault);
}

/* Returns the first wrapper at the start of a line in [from, to), else to: strings of JSON have no line
 * breaks, so data that is not closed before it does not contain it. */
static const char *up_to_wrapper(const char *from, const char *to, const char *end)
{
    int which;
    for (const char *at = from; (at = memchr(at, '\n', (size_t)(to - at)));)
        if (++at < to && wrapper_at(at, end, &which))
            return at;
    return to;
}

/* Reads unwrapped JSON or Python at s->r.at.  Returns true if it moved past it. */
static bool read_bare(struct scan *s)
{
    struct calls_reader *r = &s->r;
    const char *at = r->at, *begin = fence_before(r, at);
    bool fenced = begin != at, first = text_skip_space(r->text, r->end) == (fenced ? begin : at);
    bool line = at_line_start(r, at), bracket = *at == '{' || *at == '[';
    int from = r->out->n, got = 0;
    if (s->tries >= MAX_TRIES || (!bracket && !line))
        return false;
    if (*at != '{')
        got = calls_read_python(r, begin, false);
    if (!got && bracket) {
        s->tries++;
        const char *inside = text_skip_space(at + 1, r->end);
        bool json = *at == '{' || (inside < r->end && strchr("{[\"'", *inside));
        got = calls_read_json(r, begin, json && (first || fenced));
    }
    if (got <= 0 || r->out->list[r->out->n - 1].fault) {
        r->at = got > 0 ? at + 1 : r->at;
        keep_fault(s, from);
        r->at = got == 0 ? up_to_wrapper(at, r->at, r->end) : r->at;
        return got == 0 && r->at > at;
    }
    if (!from && s->aside.n) { /* an earlier call cannot be read, and this one was meant to run after it */
        while (r->out->n)
            calls_drop_last(r);
        r->at = r->end;
        return true;
    }
    unsigned repairs = (fenced ? REPAIR_FENCE : 0u) | (first ? 0u : REPAIR_CALL);
    repairs |= skip_closers(r, fenced) ? REPAIR_CALL : 0u;
    finish(r, from, repairs);
    s->bare = true;
    return true;
}

/* Refuses a reply with a call in a wrapper behind one without: the first may be a quotation in the thought,
 * or the step before the second. */
static void refuse_mixed(struct scan *s)
{
    size_t begin = s->r.out->list[0].begin;
    while (s->r.out->n)
        calls_drop_last(&s->r);
    calls_add_fault(&s->r, s->r.text + begin, FAULT_PARSE, false,
                    "a call without a wrapper is before one in a wrapper: write one call");
    s->r.at = s->r.end;
    s->r.out->list[0].end = (size_t)(s->r.end - s->r.text);
}

static void step(struct scan *s)
{
    struct calls_reader *r = &s->r;
    const char *at = r->at, *behind;
    int which;
    if (*at == '<' || *at == '[') {
        behind = wrapper_at(at, r->end, &which);
        if (behind && read_wrapped(r, which, behind)) {
            if (s->bare)
                refuse_mixed(s);
            return;
        }
        if (!behind && *at == '<' && read_bare_xml(r))
            return;
    }
    r->at = at;
    if ((*at == '{' || *at == '[' || isalpha((unsigned char)*at)) && read_bare(s))
        return;
    if (r->at == at)
        r->at++;
}

void calls_read(const char *text, size_t n, const struct calls_hints *hints, struct calls *out)
{
    struct scan s = {.r = {text, text, text + n, hints, out}};
    *out = (struct calls){0};
    while (s.r.at < s.r.end && out->n < CALLS_MAX)
        step(&s);
    if (!out->n && s.aside.n) {
        calls_add_fault(&s.r, text + s.aside.list[0].begin, s.aside.list[0].fault, s.aside.list[0].cut, "%s",
                        s.aside.list[0].why);
        out->list[0].end = n;
    }
    calls_free(&s.aside);
}

void calls_content(const char *text, size_t n, const struct calls *c, struct buf *out)
{
    size_t at = 0;
    for (int i = 0; i < c->n; i++) {
        const struct call *one = &c->list[i];
        if (one->fault || one->begin < at)
            continue;
        buf_put(out, text + at, one->begin - at);
        at = one->end;
    }
    buf_put(out, text + at, n - at);
}

/* Returns whether a call in Python may begin with the name: "click (", or "functions.click(". */
static bool opens_python(const struct calls_reader *r, const char *name, size_t n)
{
    const char *dot = memrchr(name, '.', n), *open = name + n;
    while (open < r->end && *open == ' ')
        open++;
    if (open < r->end && *open != '(')
        return false;
    return calls_is_tool(r, name, n) || (dot && calls_is_tool(r, dot + 1, (size_t)(name + n - dot - 1)));
}

size_t calls_safe_prefix(const char *text, size_t n, const struct calls_hints *hints)
{
    struct calls_reader r = {.text = text, .at = text, .end = text + n, .hints = hints};
    for (const char *s = text; s < r.end; s++) {
        size_t name = isalpha((unsigned char)*s) && at_line_start(&r, s) ? calls_name(s, r.end) : 0;
        if (*s == '<' || *s == '[' || *s == '{' || *s == '`')
            return (size_t)(s - text);
        if (name && (s + name == r.end || opens_python(&r, s, name)))
            return (size_t)(s - text);
    }
    return n;
}
