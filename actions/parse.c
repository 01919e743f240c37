/* parse.c - parses a reply into a step.
 *
 * Strips the reasoning and one code fence, then calls the parser of the dialect's syntax.  Reasoning is
 * never searched for actions: it may contain examples.
 */
#include "actions/parse.h"
#include "actions/syntax.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DROPPED = 160, MAX_ALL_DROPPED = 400 /* maximum bytes of actions that are not executed */ };

/* ---- shared ----------------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return isspace((unsigned char)c) != 0;
}

void parse_trim(const char **text, size_t *len)
{
    while (*len && is_space(**text))
        (*text)++, (*len)--;
    while (*len && is_space((*text)[*len - 1]))
        (*len)--;
}

enum action_fault parse_fault(struct parse *p, enum action_fault f, const char *fmt, ...)
{
    char text[ERR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    text[utf8_valid_prefix(text, strlen(text))] = 0;
    err_set(p->e, ERR_FAILED, "%s", text);
    return f;
}

void parse_check(struct parse *p, const char *text)
{
    const char *was = p->out->check ? p->out->check : "";
    char *both = xasprintf("%s%s%.*s", was, *was ? "; " : "",
                           (int)utf8_valid_prefix(text ? text : "?", text ? strnlen(text, 300) : 1),
                           text ? text : "?");
    free(p->out->check);
    p->out->check = both;
}

void parse_dropped(struct parse *p, const char *text, size_t len)
{
    const char *was = p->out->dropped ? p->out->dropped : "";
    parse_trim(&text, &len);
    size_t shown = utf8_valid_prefix(text, len < MAX_DROPPED ? len : MAX_DROPPED);
    char *both = xasprintf("%s%s%.*s%s", was, *was ? "; " : "", (int)shown, text, shown < len ? "..." : "");
    for (char *s = both; *s; s++)
        *s = (unsigned char)*s < 0x20 ? ' ' : *s;
    if (strlen(was) < MAX_ALL_DROPPED) {
        free(p->out->dropped);
        p->out->dropped = both;
    } else {
        free(both);
    }
}

struct action *parse_add(struct parse *p, enum action_kind kind)
{
    struct step *s = p->out;
    if (s->nactions == STEP_MAX_ACTIONS)
        return NULL;
    struct action *a = &s->actions[s->nactions++];
    *a = (struct action){.kind = kind, .button = 1, .count = 1};
    a->x = a->y = a->x2 = a->y2 = ACTION_ABSENT;
    return a;
}

static enum action_fault check_text(struct parse *p, const char *text, size_t len)
{
    if (len > ACTION_MAX_TEXT)
        return parse_fault(p, FAULT_TEXT, "the text is longer than %d bytes", ACTION_MAX_TEXT);
    if (utf8_valid_prefix(text, len) != len)
        return parse_fault(p, FAULT_TEXT, "the text is not valid UTF-8");
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 && text[i] != '\n' && text[i] != '\t')
            return parse_fault(p, FAULT_TEXT, "the text has the control character 0x%02x", (unsigned)text[i]);
    return FAULT_NONE;
}

enum action_fault parse_text(struct parse *p, const char *text, size_t len, char **out)
{
    enum action_fault f = check_text(p, text, len);
    if (f)
        return f;
    char *copy = xmalloc(len + 1, 1);
    memcpy(copy, text, len);
    copy[len] = 0;
    free(*out);
    *out = copy;
    return FAULT_NONE;
}

enum action_fault parse_element(struct parse *p, const char *text, size_t len, char out[ACTION_MAX_ELEMENT])
{
    enum action_fault f = check_text(p, text, len);
    if (f)
        return f;
    size_t n = utf8_valid_prefix(text, len < ACTION_MAX_ELEMENT ? len : ACTION_MAX_ELEMENT - 1);
    for (size_t i = 0; i < n; i++) /* the element is one line wherever it is shown or compared */
        out[i] = (unsigned char)text[i] < 0x20 ? ' ' : text[i];
    out[n] = 0;
    return FAULT_NONE;
}

/* words after the marks of a code fence */
static const char *const fence_words[] = {"python", "json", "xml", "tool_code", "tool_call", "text", "py"};
enum { FENCE_WORDS = sizeof fence_words / sizeof *fence_words };

/* Returns the length of the fence's word that the text begins with, 0: none. */
static size_t fence_word(const char *s, size_t len)
{
    for (size_t i = 0; i < FENCE_WORDS; i++)
        if (len >= strlen(fence_words[i]) && !memcmp(s, fence_words[i], strlen(fence_words[i])))
            return strlen(fence_words[i]);
    return 0;
}

static bool is_tool(const struct parse *p, const char *name)
{
    bool alias;
    return *name && (parse_is_computer(name) || tools_find(p->d->tools, name, &alias));
}

/* Returns whether the text calls a tool of the dialect, as NAME( or NAME{, also directly after a fence's
 * word. */
static bool names_tool(const struct parse *p, const char *text, size_t len)
{
    for (const char *s = text; s < text + len; s++) {
        char name[64] = "";
        const char *from = s;
        if (*s != '(' && *s != '{')
            continue;
        while (from > text && s - from < (ptrdiff_t)sizeof name - 1 &&
               (isalnum((unsigned char)from[-1]) || from[-1] == '_' || from[-1] == '.'))
            from--;
        memcpy(name, from, (size_t)(s - from));
        name[s - from] = 0;
        const char *dot = strrchr(name, '.');
        if (is_tool(p, name) || is_tool(p, dot ? dot + 1 : "") ||
            is_tool(p, name + fence_word(name, strlen(name))))
            return true;
    }
    return false;
}

void parse_beside(struct parse *p, const char *text, size_t len)
{
    static const char *const marks[] = {"<function",  "<invoke",   "<parameter",
                                        "<tool_call", "<TOOLCALL", "[TOOL_CALLS"};
    const char *object = memchr(text, '{', len), *end = text + len;
    size_t left = object ? (size_t)(end - object) : 0;
    bool call = object && (memchr(object, '"', left) || memchr(object, '\'', left));
    const char *from = call ? object : text;
    for (size_t i = 0; !call && i < sizeof marks / sizeof *marks; i++)
        call = memmem(text, len, marks[i], strlen(marks[i])) != NULL;
    if (call || names_tool(p, text, len))
        parse_dropped(p, from, (size_t)(end - from));
}

void parse_rest(struct parse *p, const char *text, size_t len)
{
    parse_trim(&text, &len);
    p->out->repairs |= len ? REPAIR_TRAILING_TEXT : 0;
    parse_beside(p, text, len);
}

enum action_fault parse_json(struct parse *p, const char *text, size_t len, json_t **out)
{
    struct err why = ERR_INIT;
    struct json_in in = {.max_depth = JSON_IN_MAX_DEPTH};
    *out = json_in(text, len, &in, &why);
    if (!*out)
        return parse_fault(p, FAULT_PARSE, "%s", why.text);
    p->out->repairs |= in.repairs;
    parse_rest(p, text + in.used, len - in.used);
    return FAULT_NONE;
}

/* ---- entry ----------------------------------------------------------------------------------------- */

/* Strips leading white space.  The end is kept, because a line break there shows that the last line is
 * complete (calls.h). */
static void trim_left(const char **s, size_t *n)
{
    while (*n && is_space(**s))
        (*s)++, (*n)--;
}

/* Strips "...</think>", also if the template has opened the block.  Returns -1 if the block is still open.
 * Without d->think a text that begins with JSON is unchanged: the mark is then inside a string. */
static int strip_reasoning(const char **s, size_t *n, bool think)
{
    static const char open[] = "<think>", close[] = "</think>";
    if (!think && *n && (**s == '{' || **s == '['))
        return 0;
    const char *end = memmem(*s, *n, close, sizeof close - 1);
    if (end) {
        *n -= (size_t)(end - *s) + sizeof close - 1;
        *s = end + sizeof close - 1;
        trim_left(s, n);
        return 0;
    }
    return *n >= sizeof open - 1 && !memcmp(*s, open, sizeof open - 1) ? -1 : 0;
}

const char *parse_fence_end(const char *s, const char *end)
{
    const char *line = memchr(s, '\n', (size_t)(end - s)), *code = s + 3;
    for (const char *at = code; line && at < line; at++)
        if (strchr("{[(<", *at))
            line = NULL; /* the code begins on the line of its fence */
    return line ? line + 1 : code + fence_word(code, (size_t)(end - code));
}

/* Strips ```lang\n ... ``` around the whole text; the closing fence may be missing. */
static bool strip_fence(const char **s, size_t *n)
{
    if (*n < 3 || memcmp(*s, "```", 3) != 0)
        return false;
    const char *code = parse_fence_end(*s, *s + *n);
    *n -= (size_t)(code - *s);
    *s = code;
    size_t whole = *n;
    while (whole && is_space((*s)[whole - 1]))
        whole--;
    if (whole >= 3 && !memcmp(*s + whole - 3, "```", 3))
        for (*n = whole - 3; *n && is_space((*s)[*n - 1]);)
            (*n)--; /* the line break before the fence does not belong to the text */
    trim_left(s, n);
    return true;
}

/* Rejects a text with markup of calls: it comes from a call that was misread, or from a model that has lost
 * its format, and must not reach a window. */
static enum action_fault check_markup(struct parse *p)
{
    for (int i = 0; i < p->out->nactions; i++) {
        const struct action *a = &p->out->actions[i];
        const char *texts[] = {a->text ? a->text : "", a->element};
        for (int k = 0; k < 2; k++) {
            size_t n;
            const char *mark = calls_markup(texts[k], strlen(texts[k]), &n);
            if (mark)
                return parse_fault(
                    p, FAULT_TEXT,
                    "the %s of '%s' contains markup of a tool call, '%.*s'; nothing was executed, "
                    "write the call again without it",
                    k ? "element" : "text", action_kind_name(a->kind), (int)n, mark);
        }
    }
    return FAULT_NONE;
}

enum action_fault action_parse(const char *text, size_t len, const struct dialect *d, int w, int h,
                               struct step *out, struct err *e)
{
    enum action_fault f = FAULT_NONE;
    struct parse p = {d, w, h, d->coords, out, e};
    *out = (struct step){0};
    if (w < 1 || h < 1)
        bug("a step for a screen of %d x %d", w, h);
    if (len > PARSE_MAX_REPLY)
        return parse_fault(&p, FAULT_PARSE, "the reply is longer than %d bytes", PARSE_MAX_REPLY);
    if (!d->syntax->one_line) {
        trim_left(&text, &len);
        if (strip_reasoning(&text, &len, d->think))
            f = parse_fault(&p, FAULT_PARSE, "the reply ends inside its reasoning");
        if (!f && strip_fence(&text, &len))
            out->repairs |= REPAIR_FENCE;
        if (!f && !len)
            f = parse_fault(&p, FAULT_NO_ACTION, "the reply contains no action");
    }
    f = f ? f : d->syntax->parse(&p, text, len);
    if (!f && !out->nactions)
        f = parse_fault(&p, FAULT_NO_ACTION, "the reply contains no action");
    if (!f && !d->verbatim)
        f = check_markup(&p);
    if (f)
        step_free(out);
    return f;
}
