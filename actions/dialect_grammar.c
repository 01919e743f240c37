/* dialect_grammar.c - the language of a reply, made from the dialect's tool table.
 *
 * Each syntax has one function that builds a step; they share the reply's end.  The contract is in
 * dialect.h: exactly the canonical form of what action_parse reads.
 */
#include "actions/tools.h"

#include <string.h>

/* ---- pocket ------------------------------------------------------------------------------------------ */

static gx_node pocket_place(struct gx *x)
{
    gx_node bins[64];
    char spelling[8];
    for (int i = 0; i < 64; i++) {
        snprintf(spelling, sizeof spelling, "<%d>", i);
        bins[i] = gx_token(x, spelling);
    }
    gx_node bin = gx_alt(x, 64, bins);
    return GX_SEQ(x, gx_token(x, "<at>"), bin, bin);
}

static gx_node pocket_reply(struct gx *x, enum dialect_goal goal)
{
    gx_node thought = gx_utf8(x, "<", 0, 40);
    gx_node done = GX_SEQ(x, gx_token(x, "<done>"), gx_utf8(x, "", 1, 200));
    if (goal == GOAL_ANSWER)
        return GX_SEQ(x, thought, done);
    gx_node place = pocket_place(x);
    if (goal == GOAL_GROUND)
        return place;
    gx_node target = GX_SEQ(x, gx_utf8(x, "<", 1, 60), place);
    gx_node click = GX_SEQ(x, gx_token(x, "<click>"), target);
    gx_node write = GX_SEQ(x, gx_token(x, "<write>"), target, gx_utf8(x, "", 1, 200));
    return GX_SEQ(x, thought, GX_ALT(x, click, write, done));
}

/* ---- all --------------------------------------------------------------------------------------------- */

static gx_node reply_end(const struct dialect *d, struct gx *x)
{
    gx_node end = GX_SEQ(x, gx_lit(x, "\n"), gx_token(x, "<SPECIAL_12>"));
    return d->syntax == SYNTAX_POCKET ? end : GX_ALT(x, gx_token(x, "<SPECIAL_12>"), end);
}

struct grammar *dialect_grammar_for(const struct dialect *d, enum dialect_goal goal, int w, int h,
                                    const struct tokenizer *t, struct err *e)
{
    struct gx *x = gx_new();
    (void)w;
    (void)h;
    gx_node reply;
    if (goal == GOAL_TEXT)
        reply = gx_utf8(x, "", 0, -1);
    else
        reply = pocket_reply(x, goal);
    struct grammar *g = grammar_compile(x, GX_SEQ(x, reply, reply_end(d, x)), t, e);
    gx_free(x);
    if (!g)
        err_prefix(e, "dialect '%s'", d->name);
    return g;
}

struct grammar *dialect_grammar(const struct dialect *d, enum dialect_goal goal, const struct tokenizer *t,
                                struct err *e)
{
    return dialect_grammar_for(d, goal, 0, 0, t, e);
}
