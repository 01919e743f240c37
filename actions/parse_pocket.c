/* parse_pocket.c - replies of the embedded models.
 *
 *     {thought}<VERB>{element}<at>PLACE{rest}
 *     {thought}<VERB>{element}<at>PLACE<to>{element}<at>PLACE
 *     {thought}<VERB>{rest}
 *
 * VERB is a tool of the dialect; its arguments determine its form and the meaning of {rest}: a text, keys to
 * hold during a click, "down 3" for the wheel, a chord.  A mark is a single token, spelled out in the text.
 * Thought and element contain no "<", so the first mark is the verb and the first <at> ends the element; the
 * rest is taken verbatim.
 *
 * PLACE is x and y, each a patch of 16 pixels and an eighth of it: "<12><.3>" is 16 * 12 + 2 * 3 + 1 =
 * 199. */
#include "actions/parse.h"
#include "actions/pocket_impl.h"

#include "base/utf8.h"

#include <string.h>

enum { MAX_THOUGHT = 40, PATCH = 16, EIGHTH = 2 };

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

/* Returns the length of the text up to the next "<", or to the end. */
static size_t text_length(const struct cursor *c)
{
    const char *mark = memchr(c->at, '<', (size_t)(c->end - c->at));
    return (size_t)((mark ? mark : c->end) - c->at);
}

/* Reads the number of a mark "<12>" or, after a point, "<.3>"; returns -1 if there is none. */
static int read_number(struct cursor *c, const char *open)
{
    struct cursor s = *c;
    int v = 0, n = 0;
    if (!accept(&s, open))
        return -1;
    for (; s.at < s.end && *s.at >= '0' && *s.at <= '9' && n < 3; n++)
        v = v * 10 + (*s.at++ - '0');
    if (!n || n > 2 || (n > 1 && s.at[-2] == '0') || !accept(&s, ">"))
        return -1;
    *c = s;
    return v;
}

/* Reads a coordinate, the middle of an eighth; returns -1 if there is none. */
static int read_coord(struct cursor *c)
{
    int v = read_number(c, "<"), part = v < 0 ? -1 : read_number(c, "<.");
    if (part < 0 || part >= PATCH / EIGHTH)
        return -1;
    return PATCH * v + EIGHTH * part + EIGHTH / 2;
}

static enum action_fault read_place(struct parse *p, struct cursor *c, json_t *args, const char *x_name,
                                    const char *y_name)
{
    if (!accept(c, "<at>"))
        return parse_fault(p, FAULT_PARSE, "a position '<at><x><y>' must follow the element");
    int x = read_coord(c), y = x < 0 ? -1 : read_coord(c);
    if (y < 0)
        return parse_fault(p, FAULT_PARSE, "two coordinates such as '<12><.3><20><.0>' must follow '<at>'");
    json_object_set_new(args, x_name, json_integer(x));
    json_object_set_new(args, y_name, json_integer(y));
    return FAULT_NONE;
}

/* Adds s[0..n) as a text argument of the tool. */
static enum action_fault add_text(struct parse *p, json_t *args, const struct tool_arg *arg, const char *s,
                                  size_t n)
{
    size_t count = utf8_count(s, n);
    char *copy = NULL;
    const char *what = arg->id == P_ELEMENT ? "an element" : "a text";
    if (count < (size_t)arg->min || count > (size_t)arg->max)
        return parse_fault(p, FAULT_SCHEMA, "%s must have %d to %d characters, this one has %zu", what,
                           arg->min, arg->max, count);
    enum action_fault f = parse_text(p, s, n, &copy);
    if (!f)
        json_object_set_new(args, arg->name, json_string(copy));
    free(copy);
    return f;
}

/* Reads a direction and a number, such as "down 3". */
static enum action_fault read_wheel(struct parse *p, struct cursor *c, json_t *args,
                                    const struct tool_arg *direction, const struct tool_arg *amount)
{
    const char *gap = memchr(c->at, ' ', (size_t)(c->end - c->at));
    int notches = 0;
    const char *s = gap ? gap + 1 : c->end;
    for (; s < c->end && *s >= '0' && *s <= '9' && notches < 1000; s++)
        notches = notches * 10 + (*s - '0');
    if (!gap || !notches || s < c->end || !amount)
        return parse_fault(p, FAULT_PARSE,
                           "a direction and a number, such as 'down 3', must follow the position");
    json_object_set_new(args, direction->name, json_stringn(c->at, (size_t)(gap - c->at)));
    json_object_set_new(args, amount->name, json_integer(notches));
    c->at = c->end;
    return FAULT_NONE;
}

/* Returns whether s[0..n) consists of modifiers joined by "+"; any other held key would be the rest of a
 * word. */
static bool only_modifiers(const char *s, size_t n)
{
    for (const char *end = s + n; s <= end; s++) {
        const char *plus = memchr(s, '+', (size_t)(end - s));
        size_t len = (size_t)((plus ? plus : end) - s);
        bool known = false;
        for (int i = 0; keys_modifiers[i]; i++)
            known = known || (strlen(keys_modifiers[i]) == len && !memcmp(keys_modifiers[i], s, len));
        if (!known)
            return false;
        s += len;
    }
    return true;
}

/* Reads the part after the place, or after the verb of a tool without a place. */
static enum action_fault read_rest(struct parse *p, struct cursor *c, const struct tool *t, json_t *args)
{
    size_t n = (size_t)(c->end - c->at);
    const char *s = c->at;
    const struct tool_arg *text = tools_arg(t, P_TEXT),
                          *keys = tools_arg(t, t->kind == ACT_KEY ? P_KEYS : P_HOLD);
    if (tools_arg(t, P_DIRECTION))
        return read_wheel(p, c, args, tools_arg(t, P_DIRECTION), tools_arg(t, P_AMOUNT));
    if (!text && (!keys || !n))
        return n ? parse_fault(p, FAULT_PARSE, "text after the end of the step") : FAULT_NONE;
    if (n && memchr(s, '\n', n))
        return parse_fault(p, FAULT_PARSE, "text after the end of the step");
    c->at = c->end;
    if (text)
        return add_text(p, args, text, s, n);
    json_t *chord = json_stringn(s, n);
    if (!chord)
        return parse_fault(p, FAULT_TEXT, "the keys are not valid UTF-8");
    if (keys->id == P_HOLD && !only_modifiers(s, n)) {
        json_decref(chord);
        return parse_fault(p, FAULT_KEY, "'%.*s' is not a key to hold down: ctrl, shift, alt or super",
                           (int)utf8_valid_prefix(s, n < 40 ? n : 40), s);
    }
    json_object_set_new(args, keys->name, chord);
    return FAULT_NONE;
}

static enum action_fault read_target(struct parse *p, struct cursor *c, const struct tool *t, json_t *args)
{
    const struct tool_arg *element = tools_arg(t, P_ELEMENT), *x = tools_arg(t, P_X), *y = tools_arg(t, P_Y);
    const struct tool_arg *x2 = tools_arg(t, P_X2), *y2 = tools_arg(t, P_Y2);
    size_t n = text_length(c);
    enum action_fault f = add_text(p, args, element, c->at, n);
    c->at += n;
    f = f ? f : read_place(p, c, args, x->name, y->name);
    if (f || !x2 || !y2)
        return f;
    if (!accept(c, "<to>"))
        return parse_fault(p, FAULT_PARSE,
                           "'<to>', an element and a position must follow the first position");
    c->at += text_length(c);
    return read_place(p, c, args, x2->name, y2->name);
}

/* Returns the tool whose mark is at the cursor, and skips the mark.  NULL: none; the fault lists the known
 * marks. */
static const struct tool *read_verb(struct parse *p, struct cursor *c)
{
    const struct tools *tools = p->d->tools;
    char names[512] = "", mark[80];
    for (int i = 0; i < tools->n; i++) {
        snprintf(mark, sizeof mark, "<%s>", tools->list[i].name);
        if (accept(c, mark))
            return &tools->list[i];
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s'%s'",
                 i == 0              ? ""
                 : i == tools->n - 1 ? " or "
                                     : ", ",
                 mark);
    }
    parse_fault(p, FAULT_UNSUPPORTED, "expected %s after the thought", names);
    return NULL;
}

static enum action_fault read_thought(struct parse *p, struct cursor *c)
{
    size_t n = text_length(c), count = utf8_count(c->at, n);
    if (count > MAX_THOUGHT)
        return parse_fault(p, FAULT_SCHEMA, "a thought must have 0 to %d characters, this one has %zu",
                           MAX_THOUGHT, count);
    enum action_fault f = n ? parse_text(p, c->at, n, &p->out->thought) : FAULT_NONE;
    c->at += n;
    return !f && c->at == c->end ? parse_fault(p, FAULT_NO_ACTION, "the reply contains no action") : f;
}

enum action_fault parse_pocket(struct parse *p, const char *text, size_t len)
{
    struct cursor c = {text, text + len};
    if (len && text[len - 1] == '\n')
        c.end--;
    enum action_fault f = read_thought(p, &c);
    if (f)
        return f;
    const struct tool *t = read_verb(p, &c);
    if (!t)
        return FAULT_UNSUPPORTED;
    json_t *args = json_object();
    f = tools_arg(t, P_X) ? read_target(p, &c, t, args) : FAULT_NONE;
    f = f ? f : read_rest(p, &c, t, args);
    f = f ? f : bind_call(p, t->name, args, NULL);
    json_decref(args);
    return f;
}

/* ---- the localizer's answer ----------------------------------------------------------------------- */

enum { MAX_REPLY = 1000, IMAGE_SIDE = 1 << 14 };

/* Parses a click, its end "<at><x><y>", or the word for an absent element. */
static enum action_fault pocket_place(struct parse *p, const char *text, size_t len, struct place *out)
{
    char step[MAX_REPLY + 16];
    bool place_alone = len >= 4 && !memcmp(text, "<at>", 4);
    if (len > MAX_REPLY)
        return parse_fault(p, FAULT_PARSE, "an answer with a position has at most %d bytes", MAX_REPLY);
    int size = snprintf(step, sizeof step, "%s%.*s", place_alone ? "<click>-" : "", (int)len, text);
    enum action_fault f = parse_pocket(p, step, (size_t)size);
    const struct action *a = &p->out->actions[0];
    if (!f && a->kind != ACT_CLICK && a->kind != ACT_INFEASIBLE)
        f = parse_fault(p, FAULT_SCHEMA, "expected a position or a click");
    if (!f)
        *out = (struct place){.absent = a->kind == ACT_INFEASIBLE, .n = {.x = a->nx, .y = a->ny}};
    step_free(p->out);
    return f;
}

int pocket_read_place(const struct dialect *d, const char *text, size_t len, struct place *out, struct err *e)
{
    /* a large image, so that every number is in range */
    struct step step = {0};
    struct parse p = {d, IMAGE_SIDE, IMAGE_SIDE, d->coords, &step, e};
    *out = (struct place){0};
    parse_trim(&text, &len);
    enum action_fault f = pocket_place(&p, text, len, out);
    step_free(&step);
    return f ? -1 : 0;
}

char *pocket_step_begin(const struct dialect *d, int kind, const char *element)
{
    const struct tools *tools = d->tools;
    bool plain = !strpbrk(element, "<\n");
    for (int i = 0; plain && i < tools->n; i++) {
        const struct tool_arg *arg = tools_arg(&tools->list[i], P_ELEMENT);
        if ((int)tools->list[i].kind == kind && arg &&
            utf8_count(element, strlen(element)) <= (size_t)arg->max)
            return xasprintf("<%s>%s<at>", tools->list[i].name, element);
    }
    return NULL;
}
