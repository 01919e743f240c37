/* parse_pocket.c - the words of the pocket model.
 *
 *   {thought}<click>{element}<at><BX><BY>
 *   {thought}<write>{element}<at><BX><BY>{text}     click into it, replace what it holds by text
 *   {thought}<done>{answer}
 *
 * The marks are single tokens, spelled out in the text.  Thought and element contain no "<", so the first
 * mark is the verb and the first <at> ends the element; the text after the second bin is taken verbatim.
 */
#include "actions/parse.h"

#include "base/utf8.h"

#include <string.h>

enum { MAX_THOUGHT = 40, MAX_ELEMENT = 60, MAX_TEXT = 200 };

struct cursor {
    const char *at, *end;
};

static bool accept(struct cursor *c, const char *mark)
{
    size_t n = strlen(mark);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, mark, n) != 0)
        return false;
    c->at += n;
    return true;
}

/* Text up to the next "<", or to the end. */
static size_t text_length(const struct cursor *c)
{
    const char *mark = memchr(c->at, '<', (size_t)(c->end - c->at));
    return (size_t)((mark ? mark : c->end) - c->at);
}

/* The bin "<12>", spelled as its token; -1 when there is none. */
static int read_bin(struct cursor *c)
{
    int v = 0, n = 0;
    const char *s = c->at;
    if (s == c->end || *s++ != '<')
        return -1;
    for (; s < c->end && *s >= '0' && *s <= '9' && n < 3; n++)
        v = v * 10 + (*s++ - '0');
    if (!n || n > 2 || (n > 1 && c->at[1] == '0') || s == c->end || *s != '>')
        return -1;
    c->at = s + 1;
    return v;
}

static enum action_fault read_point(struct parse *p, struct cursor *c, struct action *a)
{
    if (!accept(c, "<at>"))
        return parse_fault(p, FAULT_PARSE, "a place '<at><x><y>' must follow the element");
    int x = read_bin(c), y = x < 0 ? -1 : read_bin(c);
    if (y < 0)
        return parse_fault(p, FAULT_PARSE, "two bins such as '<12><33>' must follow '<at>'");
    a->nx = x;
    a->ny = y;
    return coords_to_pixels(p, "x, y", (struct dialect_numbers){.x = x, .y = y}, &a->x, &a->y);
}

static enum action_fault check_length(struct parse *p, const char *what, const char *s, size_t n,
                                      size_t least, size_t most)
{
    size_t count = utf8_count(s, n);
    if (count < least || count > most)
        return parse_fault(p, FAULT_SCHEMA, "%s must have %zu to %zu characters, this one has %zu", what,
                           least, most, count);
    return FAULT_NONE;
}

static enum action_fault read_target(struct parse *p, struct cursor *c, struct action *a)
{
    size_t n = text_length(c);
    enum action_fault f = check_length(p, "an element", c->at, n, 1, MAX_ELEMENT);
    f = f ? f : parse_element(p, c->at, n, a->element);
    c->at += n;
    return f ? f : read_point(p, c, a);
}

static enum action_fault read_rest(struct parse *p, struct cursor *c, struct action *a)
{
    size_t n = (size_t)(c->end - c->at);
    enum action_fault f = check_length(p, "a text", c->at, n, 1, MAX_TEXT);
    f = f ? f : parse_text(p, c->at, n, &a->text);
    c->at = c->end;
    return f;
}

enum action_fault parse_pocket(struct parse *p, const char *text, size_t len)
{
    struct cursor c = {text, text + len};
    if (len && text[len - 1] == '\n')
        c.end--;
    size_t n = text_length(&c);
    enum action_fault f = check_length(p, "a thought", text, n, 0, MAX_THOUGHT);
    f = f || !n ? f : parse_text(p, text, n, &p->out->thought);
    if (f)
        return f;
    c.at += n;
    if (c.at == c.end)
        return parse_fault(p, FAULT_NO_ACTION, "the reply holds no action");
    if (accept(&c, "<click>")) {
        f = read_target(p, &c, parse_add(p, ACT_CLICK));
    } else if (accept(&c, "<write>")) {
        struct action *a = parse_add(p, ACT_TYPE);
        a->overwrite = true;
        f = read_target(p, &c, a);
        f = f ? f : read_rest(p, &c, a);
    } else if (accept(&c, "<done>")) {
        f = read_rest(p, &c, parse_add(p, ACT_ANSWER));
    } else {
        return parse_fault(p, FAULT_UNSUPPORTED,
                           "expected '<click>', '<write>' or '<done>' after the thought");
    }
    if (!f && c.at != c.end)
        f = parse_fault(p, FAULT_PARSE, "text after the end of the step");
    return f;
}
