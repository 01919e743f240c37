/* parse_uitars.c - replies of UI-TARS: a thought and calls.
 *
 *   Thought: ...
 *   Action: click(start_box='(279,81)')
 *
 * Points may be in any notation of place.h.  The text of type and finished goes up to the last quote,
 * because models do not escape quotes inside it; it is rejected if it could end earlier.  A closing quote may
 * be missing if the end is clear.  Of several actions, each on its own line and with or without "Action:",
 * the first is executed and the others are reported to the model. */
#include "actions/parse.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEY = 32, MAX_VALUE = PARSE_MAX_REPLY };

struct span {
    const char *at, *end;
};

static size_t span_len(const struct span *s)
{
    return (size_t)(s->end - s->at);
}

static void span_trim(struct span *s)
{
    size_t n = span_len(s);
    parse_trim(&s->at, &n);
    s->end = s->at + n;
}

static bool starts(const struct span *s, const char *mark)
{
    return span_len(s) >= strlen(mark) && !memcmp(s->at, mark, strlen(mark));
}

static bool drop_suffix(struct span *s, const char *mark)
{
    size_t n = strlen(mark);
    if (span_len(s) < n || memcmp(s->end - n, mark, n) != 0)
        return false;
    s->end -= n;
    span_trim(s);
    return true;
}

static bool drop_prefix(struct span *s, const char *mark)
{
    if (!starts(s, mark))
        return false;
    s->at += strlen(mark);
    span_trim(s);
    return true;
}

/* ---- marks ---------------------------------------------------------------------------------- */

static size_t identifier(const struct span *s)
{
    size_t n = 0;
    while (s->at + n < s->end && (isalnum((unsigned char)s->at[n]) || s->at[n] == '_'))
        n++;
    return n;
}

/* Returns the length of "Action:" at s, or 0. */
static size_t action_mark(const struct span *s)
{
    static const char *const marks[] = {"Action:", "Action\xef\xbc\x9a"};
    for (int i = 0; i < 2; i++)
        if (starts(s, marks[i]))
            return strlen(marks[i]);
    return 0;
}

/* Returns whether the text begins with a call of a tool: NAME(, or NAME alone on its line. */
static bool is_call(const struct parse *p, struct span s)
{
    char name[MAX_KEY];
    bool alias;
    span_trim(&s);
    size_t n = identifier(&s);
    if (!n || n >= sizeof name)
        return false;
    memcpy(name, s.at, n);
    name[n] = 0;
    s.at += n;
    return (s.at < s.end && *s.at == '(') ||
           ((s.at == s.end || *s.at == '\n' || *s.at == '\r') && tools_find(p->d->tools, name, &alias));
}

/* Returns an "Action:" with a call anywhere in a text; NULL: there is none. */
static const char *find_inside(const struct parse *p, const struct span *s)
{
    for (const char *at = s->at; (at = memchr(at, 'A', (size_t)(s->end - at))); at++) {
        struct span here = {at, s->end};
        size_t mark = action_mark(&here);
        here.at += mark;
        if (mark && is_call(p, here))
            return at;
    }
    return NULL;
}

/* ---- values ----------------------------------------------------------------------------------- */

static json_t *unescape(const char *s, size_t n)
{
    struct buf out;
    buf_init(&out, MAX_VALUE);
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        if (c == '\\' && i + 1 < n && strchr("'\"nt\\", s[i + 1]) && s[i + 1]) {
            c = s[++i] == 'n' ? '\n' : s[i] == 't' ? '\t' : s[i];
        }
        buf_putc(&out, c);
    }
    json_t *v = json_stringn(out.data, out.len);
    buf_free(&out);
    return v;
}

/* Returns whether `at` is preceded by an odd number of backslashes. */
static bool escaped(const struct span *s, const char *at)
{
    const char *from = at;
    while (from > s->at && from[-1] == '\\')
        from--;
    return (at - from) % 2;
}

/* Returns the end of a quoted value: the first unescaped quote; for free text the last quote before a
 * parenthesis, or the last quote if no parenthesis follows one. Returns NULL if another quote follows that
 * parenthesis, because both then belong to the text. */
static const char *closing_quote(const struct span *s, char quote, bool free_text)
{
    for (const char *at = s->end; free_text && at > s->at; at--)
        if (at[-1] == quote && at < s->end && *at == ')')
            return (at + 1 < s->end && at[1] == quote) || escaped(s, at - 1) ? NULL : at - 1;
    if (free_text) {
        const char *last = memrchr(s->at, quote, span_len(s));
        struct span rest = {last ? last + 1 : s->end, s->end};
        span_trim(&rest);
        return last && !escaped(s, last) && (!span_len(&rest) || *rest.at == ')') ? last : NULL;
    }
    for (const char *at = s->at; at < s->end; at++) {
        if (*at == '\\')
            at++;
        else if (*at == quote)
            return at;
    }
    return NULL;
}

/* Returns the bracket that closes the one at s->at; NULL: there is none. */
static const char *closing_bracket(const struct span *s)
{
    char open = *s->at, close = open == '(' ? ')' : ']';
    int depth = 0;
    for (const char *at = s->at; at < s->end; at++) {
        depth += (*at == open) - (*at == close);
        if (!depth)
            return at;
    }
    return NULL;
}

/* Returns the first comma with another argument, ", name=", or NULL.  x and y are parts of a position. */
static const char *next_argument(const struct span *s)
{
    for (const char *at = s->at; at < s->end; at++) {
        if (*at != ',')
            continue;
        const char *k = at + 1;
        while (k < s->end && *k == ' ')
            k++;
        const char *name = k;
        while (k < s->end && (isalpha((unsigned char)*k) || *k == '_'))
            k++;
        bool axis = k == name + 1 && (*name == 'x' || *name == 'y');
        if (k > name && k < s->end && *k == '=' && !axis)
            return at;
    }
    return NULL;
}

/* Returns the end of an unquoted value: after its bracket, else before ", name=" or the last parenthesis. */
static const char *closing_bare(const struct span *s)
{
    const char *bracket = s->at < s->end && (*s->at == '(' || *s->at == '[') ? closing_bracket(s) : NULL;
    const char *next = bracket ? NULL : next_argument(s);
    if (bracket || next)
        return bracket ? bracket + 1 : next;
    return s->end > s->at && s->end[-1] == ')' && s->end - s->at > 1 ? s->end - 1 : s->end;
}

/* Returns the end of a text without closing quote, before the parenthesis at the end of the call; NULL: the
 * text may continue. */
static const char *unclosed_text(const struct span *s)
{
    const char *end = s->end - 1;
    bool plain = span_len(s) > 1 && *end == ')' &&
                 (isalnum((unsigned char)end[-1]) || (unsigned char)end[-1] > 0x7f || strchr(".!?", end[-1]));
    for (const char *at = s->at; plain && at < end; at++)
        plain = *at != '(' && *at != ')';
    return plain ? end : NULL;
}

/* Returns the end of another value without closing quote; NULL: the value may be cut off. */
static const char *unclosed_value(const struct span *s, bool box)
{
    const char *end = closing_bare(s);
    if (end < s->end || (box && span_len(s) && strchr(")]>", end[-1])))
        return end;
    return NULL;
}

/* Returns whether the quotes of a text may be doubled quotes of the value: the text begins with one, or ends
 * with two, or with an unmatched one. */
static bool odd_quotes(const char *s, const char *end, char quote)
{
    int n = 0, last = 0;
    bool escaped = false;
    for (const char *at = s; at < end; at++) {
        bool here = !escaped && *at == quote;
        n += here;
        last = here ? last + 1 : 0;
        escaped = !escaped && *at == '\\';
    }
    return (s < end && *s == quote) || last > 1 || (last && n % 2);
}

/* Returns the first of the characters in from..to, or to. */
static const char *first_of(const char *from, const char *to, const char *characters)
{
    while (from < to && !strchr(characters, *from))
        from++;
    return from;
}

/* Returns whether a text that ends at `to` could also end at an earlier quote: at the first one, or at one
 * whose parenthesis is followed by another call. */
static bool ends_before(const struct parse *p, const struct span *s, const char *to, char quote)
{
    int n = 0;
    for (const char *at = s->at; at < to; at += *at == '\\' ? 2 : 1) {
        struct span behind = {at + 1, s->end};
        while (*at == quote && behind.at < to && strchr(" \t;,)", *behind.at))
            behind.at++;
        if (*at == quote && at[1] == ')' && (!n || is_call(p, behind)))
            return true;
        n += *at == quote;
    }
    return false;
}

static enum action_fault read_value(struct parse *p, struct span *s, const char *key, json_t *args)
{
    bool free_text = !strcmp(key, "content"), box = strstr(key, "box") || strstr(key, "point");
    const char *from = s->at, *to;
    if (s->at < s->end && (*s->at == '\'' || *s->at == '"')) {
        struct span rest = {++from, s->end};
        to = closing_quote(&rest, *s->at, free_text);
        const char *next = box ? next_argument(&rest) : NULL;
        bool unclosed = !to || (next && next < to);
        if (unclosed)
            to = free_text ? unclosed_text(&rest) : unclosed_value(&rest, box);
        if (!to)
            return parse_fault(p, FAULT_PARSE, "the value of '%s' is cut off", key);
        if (free_text && find_inside(p, &(struct span){from, to}))
            return parse_fault(p, FAULT_PARSE, "'%s' contains another action: write one action", key);
        if (free_text && (odd_quotes(from, to, from[-1]) || ends_before(p, &rest, to, from[-1])))
            return parse_fault(p, FAULT_PARSE, "the quotes of '%s' do not match: write \\' within a text",
                               key);
        p->out->repairs |= unclosed ? REPAIR_CALL : 0;
        s->at = unclosed ? to : to + 1;
    } else if (s->at < s->end) {
        s->at = to = closing_bare(s);
        bool quotes = free_text && first_of(from, to, "'\"()\n") < to;
        if (quotes || to == s->end)
            return parse_fault(p, FAULT_PARSE, "the value of '%s' %s", key,
                               quotes ? "needs quotes" : "is cut off");
    } else {
        return parse_fault(p, FAULT_PARSE, "'%s' has no value", key);
    }
    if (json_object_get(args, key))
        return parse_fault(p, FAULT_SCHEMA, "'%s' is given twice", key);
    if (json_object_set_new(args, key, unescape(from, (size_t)(to - from))))
        return parse_fault(p, FAULT_TEXT, "the value of '%s' is not valid UTF-8", key);
    return FAULT_NONE;
}

/* ---- calls ------------------------------------------------------------------------------------ */

/* Reads the name of the next argument: NAME=, or for a value without a name that of parameter i of the
 * tool. */
static enum action_fault read_key(struct parse *p, struct span *s, const char *tool, int i, char key[MAX_KEY])
{
    bool alias;
    const struct tool *t = tools_find(p->d->tools, tool, &alias);
    struct span after = *s;
    size_t n = s->at < s->end && isdigit((unsigned char)*s->at) ? 0 : identifier(s);
    after.at += n;
    span_trim(&after);
    if (n && n < MAX_KEY && starts(&after, "=")) {
        memcpy(key, s->at, n);
        key[n] = 0;
        s->at = after.at + 1;
    } else if (!n && t && i < t->nargs && strlen(t->args[i].name) < MAX_KEY) {
        memcpy(key, t->args[i].name, strlen(t->args[i].name) + 1);
        p->out->repairs |= REPAIR_CALL;
    } else {
        return parse_fault(p, FAULT_PARSE, "an argument must be name='value'");
    }
    span_trim(s);
    return FAULT_NONE;
}

/* Accepts the end of the text instead of a closing parenthesis, which models forget. Returns a fault if an
 * argument may be missing: after a comma, or if the tool takes arguments and the call has none. */
static enum action_fault without_parenthesis(struct parse *p, const char *tool, int nargs, bool comma)
{
    bool alias, takes = false;
    const struct tool *t = tools_find(p->d->tools, tool, &alias);
    for (int i = 0; t && i < t->nargs; i++)
        takes = takes || !t->args[i].hidden;
    if (!comma && (!takes || nargs))
        return FAULT_NONE;
    return parse_fault(p, FAULT_PARSE, "the call of '%s' is cut off: %s", tool,
                       comma ? "an argument must follow the comma" : "')' is missing");
}

static enum action_fault read_args(struct parse *p, struct span *s, const char *tool, json_t *args)
{
    for (int i = 0;; i++) {
        char key[MAX_KEY];
        bool comma = false;
        for (; s->at < s->end && (isspace((unsigned char)*s->at) || *s->at == ','); s->at++)
            comma = comma || *s->at == ',';
        if (s->at == s->end)
            return without_parenthesis(p, tool, i, comma);
        if (*s->at == ')') {
            s->at++;
            span_trim(s);
            if (span_len(s))
                parse_rest(p, s->at, span_len(s));
            return FAULT_NONE;
        }
        enum action_fault f = read_key(p, s, tool, i, key);
        f = f ? f : read_value(p, s, key, args);
        if (f)
            return f;
    }
}

static enum action_fault read_call(struct parse *p, struct span s)
{
    char name[MAX_KEY];
    size_t n = identifier(&s);
    if (!n || n >= sizeof name)
        return parse_fault(p, FAULT_PARSE, "an action must be name(arguments)");
    memcpy(name, s.at, n);
    name[n] = 0;
    s.at += n;
    span_trim(&s);
    if (s.at < s.end && !drop_prefix(&s, "("))
        return parse_fault(p, FAULT_PARSE, "an action must be name(arguments)");
    json_t *args = json_object();
    enum action_fault f = read_args(p, &s, name, args);
    f = f ? f : bind_call(p, name, args, NULL);
    json_decref(args);
    return f;
}

/* ---- the reply -------------------------------------------------------------------------------- */

/* Returns whether a call is complete, so that a call on a further line does not belong to its text. */
static bool is_complete(struct span s)
{
    span_trim(&s);
    size_t n = span_len(&s);
    if (n < 2 || s.end[-1] != ')')
        return false;
    bool text = memmem(s.at, n, "content", strlen("content")) != NULL;
    return !text || s.end[-2] == '\'' || s.end[-2] == '"';
}

/* Returns the end of the first action: the end of its line if another call (with or without "Action:"), a
 * thought or a code fence follows, possibly after sentences. */
static const char *end_of_action(const struct parse *p, const struct span *s)
{
    const char *complete = NULL;
    for (const char *at = s->at; (at = memchr(at, '\n', (size_t)(s->end - at))); at++) {
        struct span before = {s->at, at}, after = {at, s->end};
        span_trim(&after);
        bool other = starts(&after, "Thought:") || starts(&after, "```");
        after.at += action_mark(&after);
        complete = complete ? complete : is_complete(before) ? at : NULL;
        if (complete && (other || is_call(p, after)))
            return complete;
    }
    return s->end;
}

/* Returns the first "Action:" that begins a line and is followed by a call; else the last one that begins a
 * line; else the last one after white space, which excludes quoted ones; or NULL. *n: its length. */
static const char *find_action(const struct parse *p, const struct span *s, size_t *n)
{
    const char *found = NULL;
    for (const char *line = s->at; line && line < s->end;) {
        struct span here = {line, s->end};
        size_t mark = action_mark(&here);
        here.at += mark;
        if (mark) {
            found = line;
            *n = mark;
        }
        if (mark && is_call(p, here))
            return found;
        line = memchr(line, '\n', (size_t)(s->end - line));
        line = line ? line + 1 : NULL;
    }
    for (const char *at = s->end; !found && at > s->at; at--) {
        struct span here = {at, s->end};
        if (isspace((unsigned char)at[-1]) && starts(&here, "Action:")) {
            found = at;
            *n = strlen("Action:");
        }
    }
    return found;
}

/* Moves to the next call, after its "Action:".  Returns false if there is none. */
static bool next_action(const struct parse *p, struct span *s)
{
    size_t n;
    if (is_call(p, *s))
        return true;
    const char *mark = find_action(p, s, &n);
    s->at = mark ? mark + n : s->end;
    span_trim(s);
    return mark && span_len(s);
}

/* Executes the first action from s on and reports the others; with "run_all" it executes all. */
static enum action_fault read_actions(struct parse *p, struct span s)
{
    enum action_fault f = FAULT_NONE;
    span_trim(&s);
    while (!f && s.at < s.end) {
        struct span one = {s.at, end_of_action(p, &s)};
        s.at = one.end;
        span_trim(&one);
        span_trim(&s);
        if (!p->out->nactions || p->d->run_all) {
            f = read_call(p, one);
        } else {
            parse_dropped(p, one.at, span_len(&one));
            p->out->repairs |= REPAIR_EXTRA_CALLS;
        }
        struct span rest = s;
        if (!f && span_len(&s) && !next_action(p, &s))
            parse_rest(p, rest.at, span_len(&rest));
    }
    return f;
}

enum action_fault parse_uitars(struct parse *p, const char *text, size_t len)
{
    struct span s = {text, text + len}, thought = {text, text};
    size_t n;
    enum action_fault f = FAULT_NONE;
    span_trim(&s);
    while (drop_suffix(&s, "[EOS]") || drop_suffix(&s, "</computer_env>") || drop_suffix(&s, "```") ||
           drop_suffix(&s, "<|im_end|>")) {
    }
    drop_prefix(&s, "<computer_env>");
    const char *mark = find_action(p, &s, &n);
    if (!mark && span_len(&s) && strchr("<{[", *s.at))
        return parse_calls(p, text, len);
    if (mark) {
        thought = (struct span){s.at, mark};
        s.at = mark + n;
    }
    if (!drop_prefix(&thought, "Thought:"))
        drop_prefix(&thought, "Thought\xef\xbc\x9a");
    span_trim(&thought);
    drop_suffix(&thought, "<computer_env>");
    const char *quoted = find_inside(p, &thought);
    if (quoted)
        parse_dropped(p, quoted, (size_t)(thought.end - quoted));
    drop_suffix(&thought, "```");
    if (span_len(&thought))
        f = parse_text(p, thought.at, span_len(&thought), &p->out->thought);
    return f ? f : read_actions(p, s);
}
