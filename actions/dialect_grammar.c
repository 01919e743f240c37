/* dialect_grammar.c - builds the grammar of a reply from the dialect's tool table (see dialect.h).
 *
 * Arguments come from the registry's type and the dialect's narrower range; bind_values.c accepts every
 * value of these grammars without a repair.  Each syntax has a function that builds a step around a call.
 */
#include "actions/grammar_impl.h"
#include "actions/parse.h"
#include "actions/syntax.h"
#include "text/chat_template.h"

#include <stdlib.h>
#include <string.h>

enum {
    ANY_EXTENT = 16384, /* pixels, if the size of the image is unknown */
    MAX_POINTS = 8,     /* maximum points of a path */
    MAX_TITLE = 80,
    MAX_WORDS = 16,
    MAX_OFFERED = 64,
};

gx_node grammar_lit(struct gx *x, const char *format, const char *name)
{
    const char *slot = strstr(format, "%s");
    char *text = xasprintf("%.*s%s%s", (int)(slot - format), format, name, slot + 2);
    gx_node node = gx_lit(x, text);
    free(text);
    return node;
}

/* Matches "part, part, ...", min to max of them. */
static gx_node listed(struct gx *x, gx_node part, const char *between, int min, int max)
{
    gx_node more = gx_repeat(x, GX_SEQ(x, gx_lit(x, between), part), min > 0 ? min - 1 : 0, max - 1);
    gx_node some = GX_SEQ(x, part, more);
    return min > 0 ? some : gx_repeat(x, some, 0, 1);
}

/* Matches one of the words of "a|b|c", each written as in `format`. */
gx_node grammar_words(struct gx *x, const char *values, const char *format)
{
    gx_node parts[MAX_WORDS];
    int n = 0;
    for (const char *s = values; *s && n < MAX_WORDS; s += *s == '|') {
        size_t len = strcspn(s, "|");
        char *word = xasprintf("%.*s", (int)len, s);
        parts[n++] = grammar_lit(x, format, word);
        free(word);
        s += len;
    }
    return gx_alt(x, n, parts);
}

/* ---- numbers and places ----------------------------------------------------------------------- */

static gx_node value_coord(const struct grammar_builder *l, bool vertical)
{
    int w = l->w, h = l->h;
    if (w && h)
        dialect_shown_size(l->d, &w, &h);
    int extent = vertical ? h : w;
    switch (l->d->coords) {
    case COORD_NORM1000:
        return gx_int(l->x, 0, 1000);
    case COORD_NORM1:
        return GX_SEQ(l->x, gx_lit(l->x, "0."), gx_repeat(l->x, gx_set(l->x, "0-9"), 1, 3));
    case COORD_PIXEL:
    case COORD_NATIVE:
    case COORD_PX28:
    case COORD_FIT:
        break;
    }
    return gx_int(l->x, 0, (extent > 0 ? extent : ANY_EXTENT) - 1);
}

/* Matches: open x between y close. */
static gx_node point(const struct grammar_builder *l, const char *open, const char *between,
                     const char *close)
{
    struct gx *x = l->x;
    return GX_SEQ(x, gx_lit(x, open), value_coord(l, false), gx_lit(x, between), value_coord(l, true),
                  gx_lit(x, close));
}

static gx_node region(const struct grammar_builder *l)
{
    return GX_SEQ(l->x, point(l, "[", ", ", ", "), point(l, "", ", ", "]"));
}

static gx_node number(struct gx *x, int min, int max)
{
    gx_node half = GX_SEQ(x, gx_int(x, min, max > min ? max - 1 : max), gx_lit(x, "."), gx_set(x, "1-9"));
    return max > min ? GX_ALT(x, gx_int(x, min, max), half) : gx_int(x, min, max);
}

/* ---- texts and keys --------------------------------------------------------------------------- */

/* Matches a text in single quotes, with backslash escapes.  Scripts are inside a code fence, so they escape
 * backticks. */
static gx_node quoted(const struct grammar_builder *l, int min, int max, bool one_line)
{
    struct gx *x = l->x;
    bool script = l->d->syntax->script;
    gx_node escape = GX_SEQ(x, gx_lit(x, "\\"), gx_set(x, one_line ? "'\\\\" : "'\\\\nt"));
    if (script)
        escape = GX_ALT(x, escape, gx_lit(x, "\\x60"));
    gx_node unit = GX_ALT(x, gx_utf8(x, script ? "'\\`" : "'\\", 1, 1), escape);
    return GX_SEQ(x, gx_lit(x, "'"), gx_repeat(x, unit, min, max), gx_lit(x, "'"));
}

/* Matches a JSON string without line ends and tabs, for an address. */
static gx_node json_line(struct gx *x, int min, int max)
{
    gx_node escape = GX_SEQ(x, gx_lit(x, "\\"), gx_set(x, "\"\\\\"));
    gx_node unit = GX_ALT(x, gx_utf8(x, "\"\\", 1, 1), escape);
    return GX_SEQ(x, gx_lit(x, "\""), gx_repeat(x, unit, min, max), gx_lit(x, "\""));
}

/* Matches a key name or character, without quotes. */
static gx_node key_name(struct gx *x)
{
    gx_node parts[64];
    int n = 0;
    for (int i = 0; keys_modifiers[i]; i++)
        parts[n++] = gx_lit(x, keys_modifiers[i]);
    for (int i = 0; keys_offered[i]; i++)
        parts[n++] = gx_lit(x, keys_offered[i]);
    parts[n++] = gx_set(x, "a-z0-9!#$%&()*,./:;<=>?@\\-^_~");
    return gx_alt(x, n, parts);
}

gx_node grammar_chord(struct gx *x, const char *between, int max)
{
    gx_node modifiers[8];
    int n = 0;
    for (; keys_modifiers[n]; n++)
        modifiers[n] = GX_SEQ(x, gx_lit(x, keys_modifiers[n]), gx_lit(x, between));
    return GX_SEQ(x, gx_repeat(x, gx_alt(x, n, modifiers), 0, max - 1), key_name(x));
}

static gx_node in_quotes(struct gx *x, const char *quote, gx_node inside)
{
    return GX_SEQ(x, gx_lit(x, quote), inside, gx_lit(x, quote));
}

/* Matches one goal in JSON; status: the allowed words. */
static gx_node goal(struct gx *x, const char *status)
{
    return GX_SEQ(x, gx_lit(x, "{\"title\": "), gx_json_string(x, 1, MAX_TITLE), gx_lit(x, ", \"status\": "),
                  grammar_words(x, status, "\"%s\""), gx_lit(x, "}"));
}

/* Matches a list of goals with at most one running goal. */
static gx_node goals(struct gx *x, int max)
{
    static const char rest[] = "todo|done|failed";
    int half = (max - 1) / 2;
    gx_node before = GX_SEQ(x, goal(x, rest), gx_lit(x, ", ")),
            after = GX_SEQ(x, gx_lit(x, ", "), goal(x, rest));
    gx_node one = GX_SEQ(x, gx_repeat(x, before, 0, half), goal(x, "running"), gx_repeat(x, after, 0, half));
    return GX_SEQ(x, gx_lit(x, "["), GX_ALT(x, listed(x, goal(x, rest), ", ", 1, max), one), gx_lit(x, "]"));
}

/* ---- one value -------------------------------------------------------------------------------- */

int grammar_chord_length(const struct tool *t)
{
    return action_takes(t->kind, P_KEYS) ? 4 : 1;
}

gx_node grammar_json_value(const struct grammar_builder *l, const struct tool *t, const struct tool_arg *a)
{
    struct gx *x = l->x;
    switch (registry_param(a->id)->type) {
    case PARAM_INT:
        return gx_int(x, a->min, a->max);
    case PARAM_NUMBER:
        return number(x, a->min, a->max);
    case PARAM_BOOL:
        return GX_ALT(x, gx_lit(x, "true"), gx_lit(x, "false"));
    case PARAM_ENUM:
        return grammar_words(x, a->values, "\"%s\"");
    case PARAM_COORD:
        return value_coord(l, a->id == P_Y || a->id == P_Y2);
    case PARAM_POINT:
        return point(l, "[", ", ", "]");
    case PARAM_REGION:
        return region(l);
    case PARAM_PATH:
        return GX_SEQ(x, gx_lit(x, "["),
                      listed(x, point(l, "{\"x\": ", ", \"y\": ", "}"), ", ", 2, MAX_POINTS), gx_lit(x, "]"));
    case PARAM_KEY:
        return in_quotes(x, "\"", grammar_chord(x, "+", grammar_chord_length(t)));
    case PARAM_KEYS:
        return GX_SEQ(x, gx_lit(x, "["), listed(x, in_quotes(x, "\"", key_name(x)), ", ", a->min, a->max),
                      gx_lit(x, "]"));
    case PARAM_GOALS:
        return goals(x, a->max);
    case PARAM_STRING:
    case PARAM_ANY:
        break;
    }
    return action_is(t->kind, ACTION_ADDRESS) ? json_line(x, a->min, a->max)
                                              : gx_json_string(x, a->min, a->max);
}

static gx_node call_value(const struct grammar_builder *l, const struct tool *t, const struct tool_arg *a)
{
    struct gx *x = l->x;
    bool script = l->d->syntax->script;
    switch (registry_param(a->id)->type) {
    case PARAM_ENUM:
        return grammar_words(x, a->values, "'%s'");
    case PARAM_POINT:
        return point(l, "'(", ",", ")'");
    case PARAM_KEY:
        return in_quotes(x, "'", script ? key_name(x) : grammar_chord(x, " ", grammar_chord_length(t)));
    case PARAM_KEYS:
        if (script)
            return listed(x, in_quotes(x, "'", key_name(x)), ", ", a->min, a->max);
        return in_quotes(x, "'", grammar_chord(x, " ", a->max > 4 ? 4 : a->max));
    case PARAM_STRING:
        return quoted(l, a->min, a->max, action_is(t->kind, ACTION_ADDRESS));
    default:
        return grammar_json_value(l, t, a);
    }
}

/* ---- calls ------------------------------------------------------------------------------------ */

/* Matches one argument with its name; in scripts keys have no name: hotkey('ctrl', 'c'). */
static gx_node named(const struct grammar_builder *l, const struct tool *t, const struct tool_arg *a)
{
    struct gx *x = l->x;
    if (!l->d->syntax->single_quotes)
        return GX_SEQ(x, grammar_lit(x, "\"%s\": ", a->name), grammar_json_value(l, t, a));
    gx_node value = call_value(l, t, a);
    if (l->d->syntax->script && registry_param(a->id)->type == PARAM_KEYS)
        return value;
    return GX_SEQ(x, grammar_lit(x, "%s=", a->name), value);
}

int grammar_offered(const struct tool *t, int i)
{
    while (i < t->nargs && t->args[i].hidden)
        i++;
    return i;
}

/* Matches the arguments from i on; after: they follow a comma.  Both coordinates of a point are given, or
 * none. */
static gx_node arguments(const struct grammar_builder *l, const struct tool *t, int i, bool after)
{
    struct gx *x = l->x;
    i = grammar_offered(t, i);
    if (i >= t->nargs)
        return gx_lit(x, "");
    const struct tool_arg *a = &t->args[i];
    gx_node one = named(l, t, a);
    int next = grammar_offered(t, i + 1);
    if ((a->id == P_X || a->id == P_X2) && next < t->nargs && (int)t->args[next].id == (int)a->id + 1) {
        one = GX_SEQ(x, one, gx_lit(x, ", "), named(l, t, &t->args[next]));
        next++;
    }
    if (after)
        one = GX_SEQ(x, gx_lit(x, ", "), one);
    if (a->required)
        return GX_SEQ(x, one, arguments(l, t, next, true));
    if (after)
        return GX_SEQ(x, gx_repeat(x, one, 0, 1), arguments(l, t, next, true));
    return GX_ALT(x, GX_SEQ(x, one, arguments(l, t, next, true)), arguments(l, t, next, false));
}

/* Matches {"tag": "NAME", "arg": value, ...}; tag NULL: arguments only.  Optional arguments may be
 * omitted. */
static gx_node value_json_call(const struct grammar_builder *l, const struct tool *t, const char *tag)
{
    struct gx *x = l->x;
    gx_node open = gx_lit(x, "{");
    if (tag)
        open = GX_SEQ(x, grammar_lit(x, "{\"%s\": ", tag), grammar_lit(x, "\"%s\"", t->name));
    return GX_SEQ(x, open, arguments(l, t, 0, tag != NULL), gx_lit(x, "}"));
}

gx_node grammar_json_call(const struct grammar_builder *l, const struct tool *t)
{
    return value_json_call(l, t, l->d->syntax->tag);
}

gx_node grammar_function_call(const struct grammar_builder *l, const struct tool *t)
{
    struct gx *x = l->x;
    return GX_SEQ(x, gx_lit(x, "{\"name\": \""), gx_lit(x, t->name), gx_lit(x, "\", \"arguments\": "),
                  value_json_call(l, t, NULL), gx_lit(x, "}"));
}

gx_node grammar_text_call(const struct grammar_builder *l, const struct tool *t)
{
    return GX_SEQ(l->x, grammar_lit(l->x, "%s(", t->name), arguments(l, t, 0, false), gx_lit(l->x, ")"));
}

/* Matches any offered tool; answer_only: only tools of kind ANSWER.  Returns -1 if there is none. */
static gx_node any_call(const struct grammar_builder *l, bool answer_only)
{
    const struct tools *tools = l->d->tools;
    gx_node calls[MAX_OFFERED];
    int n = 0;
    for (int i = 0; i < tools->n && n < MAX_OFFERED; i++)
        if (!tools->list[i].hidden && (!answer_only || tools->list[i].kind == ACT_ANSWER))
            calls[n++] = l->d->syntax->call(l, &tools->list[i]);
    return n ? gx_alt(l->x, n, calls) : -1;
}

/* ---- steps around a call ---------------------------------------------------------------------- */

gx_node grammar_holo_step(const struct grammar_builder *l, gx_node call)
{
    struct gx *x = l->x;
    gx_node note = GX_ALT(x, gx_lit(x, "null"), gx_json_string(x, 1, MANY));
    return GX_SEQ(x, gx_lit(x, "{\"note\": "), note, gx_lit(x, ", \"thought\": "), gx_json_string(x, 1, MANY),
                  grammar_lit(x, ", \"%s\": ", l->d->syntax->action), call, gx_lit(x, "}"));
}

gx_node grammar_uitars_step(const struct grammar_builder *l, gx_node call)
{
    struct gx *x = l->x;
    return GX_SEQ(x, gx_lit(x, "Thought: "), gx_utf8(x, "", 1, MANY), gx_lit(x, "\nAction: "), call);
}

gx_node grammar_qwen_step(const struct grammar_builder *l, gx_node call)
{
    struct gx *x = l->x;
    return GX_SEQ(x, gx_lit(x, "Action: "), gx_utf8(x, "<", 1, MANY),
                  gx_lit(x, "\n<tool_call>\n{\"name\": \"computer_use\", \"arguments\": "), call,
                  gx_lit(x, "}\n</tool_call>"));
}

gx_node grammar_pyautogui_step(const struct grammar_builder *l, gx_node call)
{
    struct gx *x = l->x;
    return GX_SEQ(x, gx_lit(x, "## Action:\n"), gx_utf8(x, "#`", 1, MANY),
                  gx_lit(x, "\n## Code:\n```python\n"), call, gx_lit(x, "\n```"));
}

/* ---- the localizer ---------------------------------------------------------------------------- */

static gx_node json_ground(const struct grammar_builder *l)
{
    return point(l, "{\"x\": ", ", \"y\": ", "}");
}

gx_node grammar_holo1_ground(const struct grammar_builder *l)
{
    return point(l, "Click(", ", ", ")");
}

gx_node grammar_uitars_ground(const struct grammar_builder *l)
{
    return point(l, "Action: click(start_box='(", ",", ")')");
}

/* ---- a verdict -------------------------------------------------------------------------------- */

/* Matches a verdict.  The reason comes first, so that the verdict depends on it; its length is bounded. */
static gx_node verdict(struct gx *x)
{
    gx_node words = GX_ALT(x, gx_lit(x, "YES"), gx_lit(x, "NO"), gx_lit(x, "UNKNOWN"));
    return GX_SEQ(x, gx_lit(x, "{\"reason\": "), gx_json_string(x, 1, GX_EXACT - 1),
                  gx_lit(x, ", \"verdict\": \""), words, gx_lit(x, "\"}"));
}

/* ---- reasoning -------------------------------------------------------------------------------- */

/* Matches the rest of an open think block: any text without "</".  The closing mark is one token in some
 * vocabularies and plain text in others. */
static gx_node reasoning(struct gx *x, const struct tokenizer *t)
{
    static const char close[] = "</think>";
    int32_t id = tokenizer_find(t, close);
    gx_node scalar = GX_ALT(x, gx_utf8(x, "<", 1, 1), gx_set(x, "\\x0a\\x09"),
                            GX_SEQ(x, gx_lit(x, "<"), gx_utf8(x, "</", 1, 1)));
    gx_node mark = id >= 0 && tokenizer_is_special(t, id) ? gx_token(x, close) : gx_lit(x, close);
    return GX_SEQ(x, gx_repeat(x, scalar, 0, -1), mark, gx_repeat(x, gx_lit(x, "\n"), 0, 2));
}

/* ---- the reply -------------------------------------------------------------------------------- */

static gx_node reply(const struct grammar_builder *l, enum dialect_goal goal, struct err *e)
{
    const struct dialect *d = l->d;
    if (goal == GOAL_VERDICT && d->yes_no)
        return GX_ALT(l->x, gx_lit(l->x, "yes"), gx_lit(l->x, "no"));
    if (goal == GOAL_TEXT && d->syntax->one_line)
        return gx_utf8(l->x, "", 0, -1);
    if (goal == GOAL_TEXT)
        return gx_repeat(l->x, GX_ALT(l->x, gx_utf8(l->x, "", 1, 1), gx_set(l->x, "\\x0a\\x09")), 0, -1);
    if (goal == GOAL_VERDICT)
        return verdict(l->x);
    if (goal == GOAL_GROUND && !*d->ground)
        return err_set(e, ERR_USAGE, "dialect '%s' cannot ask for a position (it has no key 'ground')",
                       d->name);
    if (goal == GOAL_GROUND)
        return (d->syntax->ground ? d->syntax->ground : json_ground)(l);
    gx_node call = any_call(l, goal == GOAL_ANSWER);
    if (call < 0)
        return err_set(e, ERR_USAGE, "dialect '%s' offers no tool %s", d->name,
                       goal == GOAL_ANSWER ? "of kind 'answer'" : "at all");
    return d->syntax->step ? d->syntax->step(l, call) : call;
}

struct grammar *dialect_grammar(const struct dialect *d, enum dialect_goal goal, const struct tokenizer *t,
                                int w, int h, struct err *e)
{
    struct gx *x = gx_new();
    struct grammar *g = NULL;
    bool known = w > 0 && h > 0;
    const struct grammar_builder l = {x, d, t, known ? w : d->screen_w, known ? h : d->screen_h};
    gx_node text = reply(&l, goal, e);
    if (text >= 0) {
        if (d->think && (goal == GOAL_STEP || goal == GOAL_ANSWER))
            text = GX_SEQ(x, reasoning(x, t), text);
        gx_node last = gx_token(x, chat_end_mark(t)), end = GX_SEQ(x, gx_lit(x, "\n"), last);
        if (!d->syntax->one_line)
            end = GX_ALT(x, last, end);
        g = grammar_compile(x, GX_SEQ(x, text, end), t, e);
        if (!g)
            err_prefix(e, "dialect '%s'", d->name);
    }
    gx_free(x);
    return g;
}

bool dialect_grammar_is_sized(const struct dialect *d)
{
    return d->coords != COORD_NORM1000 && d->coords != COORD_NORM1;
}

struct grammar *dialect_words_grammar(const struct dialect *d, enum slot_kind kind, const char *given,
                                      const char *const *words, int n, const struct tokenizer *t,
                                      struct err *e)
{
    const char *mark = d->syntax->word_end[kind];
    if (!mark) {
        err_set(e, ERR_USAGE, "dialect '%s' has no slot of this kind for words", d->name);
        return NULL;
    }
    gx_node *any = xmalloc((size_t)n, sizeof *any);
    struct gx *x = gx_new();
    for (int i = 0; i < n; i++)
        any[i] = gx_lit(x, words[i]);
    gx_node end = kind == SLOT_NAME ? gx_token(x, mark) : gx_lit(x, mark);
    struct grammar *g = grammar_compile(x, GX_SEQ(x, gx_lit(x, given), gx_alt(x, n, any), end), t, e);
    gx_free(x);
    free(any);
    return g;
}
