/* dialect_grammar.c - builds the grammar of a reply from the dialect's tool table (see dialect.h).
 *
 * Each syntax has a function that builds a step around a call; arguments come from grammar_values.c.
 */
#include "actions/grammar_values.h"
#include "text/chat_template.h"

#include <string.h>

enum { MAX_OFFERED = 64, MANY = GX_EXACT + 1 };

/* ---- pocket ----------------------------------------------------------------------------------- */

static gx_node pocket_place(struct gx *x)
{
    gx_node bins[64];
    char spelling[16];
    for (int i = 0; i < 64; i++) {
        snprintf(spelling, sizeof spelling, "<%d>", i);
        bins[i] = gx_token(x, spelling);
    }
    gx_node bin = gx_alt(x, 64, bins);
    return GX_SEQ(x, gx_token(x, "<at>"), bin, bin);
}

static gx_node pocket_thought(struct gx *x)
{
    return gx_utf8(x, "<", 0, 40);
}

static gx_node pocket_click(struct gx *x, gx_node target)
{
    return GX_SEQ(x, gx_token(x, "<click>"), target);
}

static gx_node pocket_target(struct gx *x)
{
    return GX_SEQ(x, gx_utf8(x, "<", 1, 60), pocket_place(x));
}

/* A place alone, or the whole click. */
static gx_node pocket_ground(struct gx *x)
{
    return GX_ALT(x, pocket_place(x), GX_SEQ(x, pocket_thought(x), pocket_click(x, pocket_target(x))));
}

static gx_node pocket_step(struct gx *x, enum dialect_goal goal)
{
    gx_node thought = pocket_thought(x);
    gx_node done = GX_SEQ(x, gx_token(x, "<done>"), gx_utf8(x, "", 1, 200));
    if (goal == GOAL_ANSWER)
        return GX_SEQ(x, thought, done);
    gx_node target = pocket_target(x);
    gx_node click = pocket_click(x, target);
    gx_node write = GX_SEQ(x, gx_token(x, "<write>"), target, gx_utf8(x, "", 1, 200));
    return GX_SEQ(x, thought, GX_ALT(x, click, write, done));
}

/* ---- steps around a call ---------------------------------------------------------------------- */

static gx_node one_call(const struct grammar_builder *l, const struct tool *t)
{
    struct gx *x = l->x;
    switch (l->d->syntax) {
    case SYNTAX_HOLO3:
        return value_json_call(l, t, "tool_name");
    case SYNTAX_HOLO1:
    case SYNTAX_ANTHROPIC:
        return value_json_call(l, t, "action");
    case SYNTAX_OPENAI:
        return value_json_call(l, t, "type");
    case SYNTAX_FUNCTION:
        return GX_SEQ(x, gx_lit(x, "{\"name\": \""), gx_lit(x, t->name), gx_lit(x, "\", \"arguments\": "),
                      value_json_call(l, t, NULL), gx_lit(x, "}"));
    default:
        return value_call(l, t);
    }
}

/* Any offered tool; answer_only: those of kind ANSWER.  -1: there is none. */
static gx_node any_call(const struct grammar_builder *l, bool answer_only)
{
    const struct tools *tools = dialect_tools(l->d);
    gx_node calls[MAX_OFFERED];
    int n = 0;
    for (int i = 0; i < tools->n && n < MAX_OFFERED; i++)
        if (!tools->list[i].hidden && (!answer_only || tools->list[i].kind == ACT_ANSWER))
            calls[n++] = one_call(l, &tools->list[i]);
    return n ? gx_alt(l->x, n, calls) : -1;
}

static gx_node holo_step(const struct grammar_builder *l, gx_node call)
{
    struct gx *x = l->x;
    gx_node note = GX_ALT(x, gx_lit(x, "null"), gx_json_string(x, 1, MANY));
    return GX_SEQ(x, gx_lit(x, "{\"note\": "), note, gx_lit(x, ", \"thought\": "), gx_json_string(x, 1, MANY),
                  gx_lit(x, l->d->syntax == SYNTAX_HOLO3 ? ", \"tool_call\": " : ", \"action\": "), call,
                  gx_lit(x, "}"));
}

static gx_node step(const struct grammar_builder *l, gx_node call)
{
    struct gx *x = l->x;
    switch (l->d->syntax) {
    case SYNTAX_HOLO3:
    case SYNTAX_HOLO1:
        return holo_step(l, call);
    case SYNTAX_UITARS:
        return GX_SEQ(x, gx_lit(x, "Thought: "), gx_utf8(x, "", 1, MANY), gx_lit(x, "\nAction: "), call);
    case SYNTAX_PYAUTOGUI:
        return GX_SEQ(x, gx_lit(x, "## Action:\n"), gx_utf8(x, "#`", 1, MANY),
                      gx_lit(x, "\n## Code:\n```python\n"), call, gx_lit(x, "\n```"));
    default:
        return call;
    }
}

/* ---- the localizer ---------------------------------------------------------------------------- */

static gx_node ground(const struct grammar_builder *l)
{
    struct gx *x = l->x;
    const char *open = "{\"x\": ", *between = ", \"y\": ", *close = "}";
    if (l->d->syntax == SYNTAX_POCKET)
        return pocket_ground(x);
    if (l->d->syntax == SYNTAX_HOLO1) {
        open = "Click(";
        between = ", ";
        close = ")";
    } else if (l->d->syntax == SYNTAX_UITARS) {
        open = "Action: click(start_box='(";
        between = ",";
        close = ")')";
    }
    return GX_SEQ(x, gx_lit(x, open), value_coord(l, false), gx_lit(x, between), value_coord(l, true),
                  gx_lit(x, close));
}

/* ---- a verdict -------------------------------------------------------------------------------- */

/* The reason comes first, so that the verdict depends on it; its length is bounded. */
static gx_node verdict(struct gx *x)
{
    gx_node words = GX_ALT(x, gx_lit(x, "YES"), gx_lit(x, "NO"), gx_lit(x, "UNKNOWN"));
    return GX_SEQ(x, gx_lit(x, "{\"reason\": "), gx_json_string(x, 1, GX_EXACT - 1),
                  gx_lit(x, ", \"verdict\": \""), words, gx_lit(x, "\"}"));
}

/* ---- reasoning -------------------------------------------------------------------------------- */

/* The rest of an open think block: any text without "</".  The closing mark is one token in some
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
    if ((goal == GOAL_TEXT || goal == GOAL_VERDICT) && d->syntax == SYNTAX_POCKET)
        return gx_utf8(l->x, "", 0, -1);
    if (goal == GOAL_TEXT)
        return gx_repeat(l->x, GX_ALT(l->x, gx_utf8(l->x, "", 1, 1), gx_set(l->x, "\\x0a\\x09")), 0, -1);
    if (goal == GOAL_VERDICT)
        return verdict(l->x);
    if (goal == GOAL_GROUND && !*d->ground)
        return err_set(e, ERR_USAGE, "dialect '%s' has no question for a place (key 'ground')", d->name);
    if (goal == GOAL_GROUND)
        return ground(l);
    if (d->syntax == SYNTAX_POCKET)
        return pocket_step(l->x, goal);
    gx_node call = any_call(l, goal == GOAL_ANSWER);
    if (call < 0)
        return err_set(e, ERR_USAGE, "dialect '%s' offers no tool %s", d->name,
                       goal == GOAL_ANSWER ? "of kind 'answer'" : "at all");
    return step(l, call);
}

struct grammar *dialect_grammar(const struct dialect *d, enum dialect_goal goal, const struct tokenizer *t,
                                struct err *e)
{
    struct gx *x = gx_new();
    struct grammar *g = NULL;
    const struct grammar_builder l = {x, d};
    gx_node text = reply(&l, goal, e);
    if (text >= 0) {
        if (d->think && (goal == GOAL_STEP || goal == GOAL_ANSWER))
            text = GX_SEQ(x, reasoning(x, t), text);
        gx_node last = gx_token(x, chat_end_mark(t)), end = GX_SEQ(x, gx_lit(x, "\n"), last);
        if (d->syntax != SYNTAX_POCKET)
            end = GX_ALT(x, last, end);
        g = grammar_compile(x, GX_SEQ(x, text, end), t, e);
        if (!g)
            err_prefix(e, "dialect '%s'", d->name);
    }
    gx_free(x);
    return g;
}
