/* parse_uitars.c - replies of UI-TARS: a thought and calls.
 *
 *   Thought: ...
 *   Action: click(start_box='(279,81)')
 *
 * Points may be in any notation of place.h.  The text of type and finished goes up to the last quote,
 * because models do not escape quotes inside it.  Several actions are separated by blank lines; of several
 * "Action:" the last one counts.
 */
#include "actions/parse.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEY = 32, MAX_VALUE = JSON_IN_MAX_LEN };

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
    size_t n = strlen(mark);
    return span_len(s) >= n && !memcmp(s->at, mark, n);
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

/* ---- values ----------------------------------------------------------------------------------- */

static json_t *unescape(const char *s, size_t n)
{
    struct buf out;
    buf_init(&out, MAX_VALUE);
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        if (c == '\\' && i + 1 < n && strchr("'\"nt\\", s[i + 1]) && s[i + 1]) {
            c = s[++i];
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
        }
        buf_putc(&out, c);
    }
    json_t *v = json_stringn(out.data, out.len);
    buf_free(&out);
    return v;
}

/* The end of a quoted value: the first unescaped quote; for free text the last one before a parenthesis, or
 * without a parenthesis the last one. */
static const char *closing_quote(const struct span *s, char quote, bool free_text)
{
    for (const char *at = s->end; free_text && at > s->at; at--)
        if (at[-1] == quote && at < s->end && *at == ')')
            return at - 1;
    if (free_text)
        return memrchr(s->at, quote, span_len(s));
    for (const char *at = s->at; at < s->end; at++) {
        if (*at == '\\')
            at++;
        else if (*at == quote)
            return at;
    }
    return NULL;
}

/* The end of a value without quotes: before ", name=" or the last parenthesis. */
static const char *closing_bare(const struct span *s)
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
        if (k > name && k < s->end && *k == '=')
            return at;
    }
    return s->end[-1] == ')' && s->end - s->at > 1 ? s->end - 1 : s->end;
}

static enum action_fault read_value(struct parse *p, struct span *s, const char *key, json_t *args)
{
    bool free_text = !strcmp(key, "content");
    const char *from = s->at, *to;
    if (s->at < s->end && (*s->at == '\'' || *s->at == '"')) {
        struct span rest = {++from, s->end};
        to = closing_quote(&rest, *s->at, free_text);
        if (!to)
            return parse_fault(p, FAULT_PARSE, "the value of '%s' is cut off", key);
        s->at = to + 1;
    } else if (s->at < s->end) {
        s->at = to = closing_bare(s);
    } else {
        return parse_fault(p, FAULT_PARSE, "'%s' has no value", key);
    }
    json_t *v = unescape(from, (size_t)(to - from));
    if (!v)
        return parse_fault(p, FAULT_TEXT, "the value of '%s' is not valid UTF-8", key);
    json_object_set_new(args, key, v);
    return FAULT_NONE;
}

/* ---- calls ------------------------------------------------------------------------------------ */

static size_t identifier(const struct span *s)
{
    size_t n = 0;
    while (s->at + n < s->end && (isalnum((unsigned char)s->at[n]) || s->at[n] == '_'))
        n++;
    return n;
}

static enum action_fault read_args(struct parse *p, struct span *s, json_t *args)
{
    for (;;) {
        char key[MAX_KEY];
        while (s->at < s->end && (isspace((unsigned char)*s->at) || *s->at == ','))
            s->at++;
        if (s->at == s->end)
            return FAULT_NONE; /* the closing parenthesis was forgotten */
        if (*s->at == ')') {
            s->at++;
            span_trim(s);
            p->out->repairs |= s->at < s->end ? REPAIR_TRAILING_TEXT : 0;
            return FAULT_NONE;
        }
        size_t n = identifier(s);
        if (!n || n >= sizeof key)
            return parse_fault(p, FAULT_PARSE, "an argument must be name='value'");
        memcpy(key, s->at, n);
        key[n] = 0;
        s->at += n;
        span_trim(s);
        if (!starts(s, "="))
            return parse_fault(p, FAULT_PARSE, "an argument must be name='value'");
        s->at++;
        span_trim(s);
        enum action_fault f = read_value(p, s, key, args);
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
    enum action_fault f = read_args(p, &s, args);
    f = f ? f : bind_call(p, name, args, NULL);
    json_decref(args);
    return f;
}

/* The end of the first action: a blank line after ")" and before another call. */
static const char *end_of_action(const struct span *s)
{
    for (const char *at = s->at; (at = memmem(at, (size_t)(s->end - at), "\n\n", 2)); at += 2) {
        struct span before = {s->at, at}, after = {at, s->end};
        span_trim(&before);
        span_trim(&after);
        size_t n = identifier(&after);
        if (span_len(&before) && before.end[-1] == ')' && n && after.at + n < after.end && after.at[n] == '(')
            return at;
    }
    return s->end;
}

/* ---- the reply -------------------------------------------------------------------------------- */

/* The last "Action:" at the beginning of a line, else the last one after a space, as one that is quoted is
 * not; or NULL.  *n: its length. */
static const char *find_action(const struct span *s, size_t *n)
{
    static const char *const marks[] = {"Action:", "Action\xef\xbc\x9a"};
    const char *found = NULL;
    for (const char *line = s->at; line && line < s->end;) {
        struct span here = {line, s->end};
        for (int i = 0; i < 2; i++)
            if (starts(&here, marks[i])) {
                found = line;
                *n = strlen(marks[i]);
            }
        line = memchr(line, '\n', (size_t)(s->end - line));
        line = line ? line + 1 : NULL;
    }
    for (const char *at = s->end; !found && at > s->at; at--) {
        struct span here = {at, s->end};
        if (isspace((unsigned char)at[-1]) && starts(&here, marks[0])) {
            found = at;
            *n = strlen(marks[0]);
        }
    }
    return found;
}

enum action_fault parse_uitars(struct parse *p, const char *text, size_t len)
{
    struct span s = {text, text + len}, thought = {text, text};
    size_t n;
    enum action_fault f = FAULT_NONE;
    while (drop_suffix(&s, "[EOS]") || drop_suffix(&s, "</computer_env>")) {
    }
    drop_prefix(&s, "<computer_env>");
    const char *mark = find_action(&s, &n);
    if (mark) {
        thought = (struct span){s.at, mark};
        s.at = mark + n;
    }
    if (!drop_prefix(&thought, "Thought:"))
        drop_prefix(&thought, "Thought\xef\xbc\x9a");
    span_trim(&thought);
    drop_suffix(&thought, "<computer_env>");
    if (span_len(&thought))
        f = parse_text(p, thought.at, span_len(&thought), &p->out->thought);
    span_trim(&s);
    while (!f && s.at < s.end) {
        struct span one = {s.at, end_of_action(&s)};
        s.at = one.end;
        span_trim(&one);
        span_trim(&s);
        if (p->out->nactions && !p->d->run_all) {
            p->out->repairs |= REPAIR_EXTRA_CALLS;
            return FAULT_NONE;
        }
        f = read_call(p, one);
    }
    return f;
}
