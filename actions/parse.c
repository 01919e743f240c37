/* parse.c - parses a reply into a step.
 *
 * Strips the reasoning and one code fence, then calls the parser of the dialect's syntax.  Reasoning is
 * never searched for actions: it may contain examples.
 */
#include "actions/parse.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static parse_fn *const parsers[] = {
    [SYNTAX_HOLO3] = parse_holo,    [SYNTAX_HOLO1] = parse_holo,
    [SYNTAX_UITARS] = parse_uitars, [SYNTAX_ANTHROPIC] = parse_anthropic,
    [SYNTAX_OPENAI] = parse_openai, [SYNTAX_PYAUTOGUI] = parse_pyautogui,
    [SYNTAX_POCKET] = parse_pocket, [SYNTAX_FUNCTION] = parse_function,
    [SYNTAX_XML] = parse_xml,       [SYNTAX_QWEN] = parse_qwen,
};

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
    for (size_t i = 0; i < n; i++) /* it is one line wherever it is shown or matched */
        out[i] = (unsigned char)text[i] < 0x20 ? ' ' : text[i];
    out[n] = 0;
    return FAULT_NONE;
}

enum action_fault parse_json(struct parse *p, const char *text, size_t len, json_t **out)
{
    struct err why = ERR_INIT;
    size_t used = 0;
    bool python = p->d->syntax == SYNTAX_HOLO1 || p->d->syntax == SYNTAX_QWEN;
    *out = json_in(text, len, python, &p->out->repairs, &used, &why);
    if (!*out)
        return parse_fault(p, FAULT_PARSE, "%s", why.text);
    while (used < len && is_space(text[used]))
        used++;
    p->out->repairs |= used < len ? REPAIR_TRAILING_TEXT : 0;
    return FAULT_NONE;
}

/* ---- entry ----------------------------------------------------------------------------------------- */

/* Strips "...</think>", also when the template has opened the block; -1 when it is still open.  Without
 * d->think a text that begins with JSON is left alone: the mark is then inside a string. */
static int strip_reasoning(const char **s, size_t *n, bool think)
{
    static const char open[] = "<think>", close[] = "</think>";
    if (!think && *n && (**s == '{' || **s == '['))
        return 0;
    const char *end = memmem(*s, *n, close, sizeof close - 1);
    if (end) {
        *n -= (size_t)(end - *s) + sizeof close - 1;
        *s = end + sizeof close - 1;
        parse_trim(s, n);
        return 0;
    }
    return *n >= sizeof open - 1 && !memcmp(*s, open, sizeof open - 1) ? -1 : 0;
}

/* Strips ```lang\n ... ``` around the whole text; the closing fence may be missing. */
static bool strip_fence(const char **s, size_t *n)
{
    if (*n < 3 || memcmp(*s, "```", 3) != 0)
        return false;
    const char *line = memchr(*s, '\n', *n);
    size_t skip = line ? (size_t)(line - *s) + 1 : 3;
    *s += skip;
    *n -= skip;
    parse_trim(s, n);
    if (*n >= 3 && !memcmp(*s + *n - 3, "```", 3))
        *n -= 3;
    parse_trim(s, n);
    return true;
}

enum action_fault action_parse(const char *text, size_t len, const struct dialect *d, int w, int h,
                               struct step *out, struct err *e)
{
    enum action_fault f = FAULT_NONE;
    struct parse p = {d, w, h, d->coords, out, e};
    *out = (struct step){0};
    if (w < 1 || h < 1)
        bug("a step for a screen of %d x %d", w, h);
    if (len > JSON_IN_MAX_LEN)
        return parse_fault(&p, FAULT_PARSE, "the reply is longer than %d bytes", JSON_IN_MAX_LEN);
    if (d->syntax != SYNTAX_POCKET) {
        parse_trim(&text, &len);
        if (strip_reasoning(&text, &len, d->think))
            f = parse_fault(&p, FAULT_PARSE, "the reply ends inside its reasoning");
        if (!f && strip_fence(&text, &len))
            out->repairs |= REPAIR_FENCE;
        if (!f && !len)
            f = parse_fault(&p, FAULT_NO_ACTION, "the reply holds no action");
    }
    f = f ? f : parsers[d->syntax](&p, text, len);
    if (!f && !out->nactions)
        f = parse_fault(&p, FAULT_NO_ACTION, "the reply holds no action");
    if (f)
        step_free(out);
    return f;
}
