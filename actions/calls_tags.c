/* calls_tags.c - the tags of calls, well spelt and misspelt, and markup in texts (see calls.h). */
#include "actions/calls_impl.h"

#include "base/buf.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { MAX_TAIL = 40 /* maximum bytes of a closing tag after its word */ };

static const char *const closing_words[] = {"parameter", "function", "tool_call",  "toolcall",    "invoke",
                                            "arg_value", "arg_key",  "tool_calls", "antml:invoke"};
enum { N_WORDS = sizeof closing_words / sizeof *closing_words };

/* Returns whether the word is in "a|b|c"; names NULL: any word. */
static bool is_named(const char *names, const char *word)
{
    size_t n = strlen(word);
    for (const char *s = names; s && *s; s += *s == '|') {
        size_t len = strcspn(s, "|");
        if (len == n && !memcmp(s, word, n))
            return true;
        s += len;
    }
    return !names;
}

/* Returns the position after the rest of a closing tag: after ">", which may be missing at the end of the
 * line.  NULL: s is not the rest of such a tag. */
static const char *tail(const char *s, const char *end)
{
    const char *stop = end - s > MAX_TAIL ? s + MAX_TAIL : end;
    if (s < end && (*s == 's' || *s == 'S')) /* </parameters> is another word */
        return NULL;
    for (; s < stop; s++) {
        if (*s == '>')
            return s + 1;
        if (*s == '<' || *s == '\n')
            return s;
    }
    return s == end ? s : NULL;
}

/* Returns whether the text ends within the mark at s, after at least two bytes of the mark. */
static bool cut_mark(const char *s, const char *end, const char *mark)
{
    size_t n = (size_t)(end - s);
    return n >= 2 && n < strlen(mark) && !strncasecmp(s, mark, n);
}

/* Returns the position after a special token "<|word|>" of a chat template; s if there is none. */
static const char *special_token(const char *s, const char *end)
{
    if (end - s < 5 || s[0] != '<' || s[1] != '|')
        return s;
    const char *at = s + 2;
    while (at < end && (isalnum((unsigned char)*at) || *at == '_' || *at == '-'))
        at++;
    return at > s + 2 && end - at >= 2 && at[0] == '|' && at[1] == '>' ? at + 2 : s;
}

const char *calls_closer(const char *s, const char *end, const char *names)
{
    static const char *const others[] = {"[/TOOL_CALLS]", "[/TOOL_CALL]", "<tool_call/>", "[EOS]", "</s>"};
    for (int i = 0; s < end && *s == '<' && i < N_WORDS; i++) {
        char mark[32];
        snprintf(mark, sizeof mark, "</%s", closing_words[i]);
        if (!is_named(names, closing_words[i]))
            continue;
        const char *behind = calls_starts(s, end, mark) ? tail(s + strlen(mark), end) : NULL;
        if (behind)
            return behind;
        if (calls_starts(s, end, "</tool_calls>") && !names)
            return s + strlen("</tool_calls>");
        if (cut_mark(s, end, mark))
            return end;
    }
    for (size_t i = 0; !names && i < sizeof others / sizeof *others; i++)
        if (calls_starts(s, end, others[i]))
            return s + strlen(others[i]);
    return names ? s : special_token(s, end);
}

/* Returns the position after an opening tag whose ">" is missing at s; NULL: its name may be cut off.  A
 * parameter or an object must follow a function. */
static const char *without_bracket(const char *s, const char *end, const char *word)
{
    const char *next = text_skip_space(s, end);
    if (next == end || (s < end && *s != '<' && *s != '\n' && *s != '\r'))
        return NULL;
    bool part = !strcmp(word, "parameter") || calls_starts(next, end, "<parameter") || *next == '{';
    return part ? s : NULL;
}

const char *calls_opener(const char *s, const char *end, const char *word, const char **name, size_t *n,
                         bool *exact)
{
    size_t len = strlen(word);
    if (s == end || *s != '<' || !calls_starts(s + 1, end, word))
        return NULL;
    const char *at = s + 1 + len;
    *exact = at < end && *at == '=';
    at = text_skip_space(at, end);
    if (calls_starts(at, end, "name"))
        at = text_skip_space(at + 4, end);
    if (at == end || *at != '=')
        return NULL;
    at++;
    while (at < end && (*at == ' ' || *at == '"' || *at == '\'')) {
        *exact = false;
        at++;
    }
    *name = at;
    *n = calls_name(at, end);
    at += *n;
    if (!*n || *n >= CALLS_MAX_NAME)
        return NULL;
    if (at < end && *at == '>')
        return at + 1;
    *exact = false;
    while (at < end && (*at == ' ' || *at == '"' || *at == '\'' || *at == '/'))
        at++;
    if (at < end && *at == '=') /* such as <parameter=KEY=VALUE */
        return at + 1;
    if (at < end && *at == '>')
        return at + 1;
    return without_bracket(at, end, word);
}

/* ---- markup in a text -------------------------------------------------------------------------------- */

const char *calls_markup(const char *text, size_t n, size_t *len)
{
    static const char *const marks[] = {
        "<tool_call",       "</tool_call",    "<toolcall",       "</toolcall",      "[TOOL_CALLS]",
        "<function=",       "<parameter=",    "<invoke name",    "</invoke>",       "<function name=",
        "<parameter name=", "<function_call", "</function_call", "<arg_key>",       "</arg_key>",
        "<arg_value>",      "</arg_value>",   "<tool_response>", "</tool_response>"};
    const char *end = text + n;
    for (const char *s = text; s < end; s++) {
        const char *behind = s;
        if (*s != '<' && *s != '[')
            continue;
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
            if (calls_starts(s, end, marks[i]))
                behind = s + strlen(marks[i]);
        if (behind == s && *s == '<')
            behind = calls_closer(s, end, "parameter|function");
        if (behind == s)
            behind = special_token(s, end);
        if (behind > s && !(behind == end && end - s < 6)) {
            *len = (size_t)(behind - s);
            return s;
        }
    }
    return NULL;
}
