/* grammar_pocket.c - the grammar of the embedded models' replies, generated from the dialect's tools
 * (parse_pocket.c). */
#include "actions/grammar_impl.h"
#include "actions/pocket_impl.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATCH = 16, PATCHES = 64 };

/* Matches one of the tokens "<0>" to "<n-1>", or "<.0>" to "<.n-1>". */
static gx_node pocket_number(struct gx *x, const char *format, int n)
{
    gx_node parts[PATCHES];
    char spelling[16];
    for (int i = 0; i < n; i++) {
        snprintf(spelling, sizeof spelling, format, i);
        parts[i] = gx_token(x, spelling);
    }
    return gx_alt(x, n, parts);
}

/* Matches a patch of 16 pixels and an eighth of it, inside of `extent` pixels. */
static gx_node pocket_coord(const struct grammar_builder *l, int extent)
{
    int patches = extent / PATCH < PATCHES ? extent / PATCH : PATCHES, rest = (extent - patches * PATCH) / 2;
    char last[16];
    if (patches == PATCHES || (patches && !rest))
        return GX_SEQ(l->x, pocket_number(l->x, "<%d>", patches), pocket_number(l->x, "<.%d>", 8));
    snprintf(last, sizeof last, "<%d>", patches);
    rest = rest < 1 ? 1 : rest > 8 ? 8 : rest;
    gx_node part = GX_SEQ(l->x, gx_token(l->x, last), pocket_number(l->x, "<.%d>", rest));
    if (!patches)
        return part;
    return GX_ALT(l->x, GX_SEQ(l->x, pocket_number(l->x, "<%d>", patches), pocket_number(l->x, "<.%d>", 8)),
                  part);
}

static gx_node pocket_place(const struct grammar_builder *l)
{
    int w = l->w, h = l->h;
    if (w && h)
        dialect_shown_size(l->d, &w, &h);
    else
        w = h = PATCH * PATCHES;
    return GX_SEQ(l->x, gx_token(l->x, "<at>"), pocket_coord(l, w), pocket_coord(l, h));
}

static gx_node pocket_thought(struct gx *x)
{
    return gx_utf8(x, "<", 0, 40);
}

static gx_node pocket_target(const struct grammar_builder *l, const struct tool_arg *element)
{
    return GX_SEQ(l->x, gx_utf8(l->x, "<", element->min, element->max), pocket_place(l));
}

/* Matches the part after the position, or after the verb of a tool without a position (see
 * parse_pocket.c). */
static gx_node pocket_rest(const struct grammar_builder *l, const struct tool *t)
{
    struct gx *x = l->x;
    const struct tool_arg *text = tools_arg(t, P_TEXT), *wheel = tools_arg(t, P_DIRECTION),
                          *amount = tools_arg(t, P_AMOUNT);
    if (text)
        return gx_utf8(x, "", text->min, text->max);
    if (wheel && amount)
        return GX_SEQ(x, grammar_words(x, wheel->values, "%s"), gx_lit(x, " "), gx_int(x, 1, amount->max));
    if (t->kind == ACT_KEY)
        return grammar_chord(x, "+", 4);
    if (tools_arg(t, P_HOLD))
        return GX_ALT(x, gx_lit(x, ""), gx_lit(x, "ctrl"), gx_lit(x, "shift"));
    return gx_lit(x, "");
}

gx_node pocket_call(const struct grammar_builder *l, const struct tool *t)
{
    struct gx *x = l->x;
    char mark[80];
    snprintf(mark, sizeof mark, "<%s>", t->name);
    gx_node call = gx_token(x, mark);
    if (t->kind == ACT_ANSWER) /* as one token, or spelled out: a model may have learnt either */
        call = GX_ALT(x, call, gx_lit(x, mark));
    if (!tools_arg(t, P_X))
        return GX_SEQ(x, call, pocket_rest(l, t));
    call = GX_SEQ(x, call, pocket_target(l, tools_arg(t, P_ELEMENT)));
    if (tools_arg(t, P_X2))
        return GX_SEQ(x, call, gx_token(x, "<to>"), pocket_target(l, tools_arg(t, P_ELEMENT)));
    return GX_SEQ(x, call, pocket_rest(l, t));
}

gx_node pocket_step(const struct grammar_builder *l, gx_node call)
{
    return GX_SEQ(l->x, pocket_thought(l->x), call);
}

static const struct tool *first_of(const struct tools *tools, int kind)
{
    for (int i = 0; i < tools->n; i++)
        if ((int)tools->list[i].kind == kind)
            return &tools->list[i];
    return NULL;
}

/* Matches a position alone, or the whole click, or the statement that the element is absent, if the dialect
 * has a word for it. */
gx_node pocket_ground(const struct grammar_builder *l)
{
    const struct tool *click = first_of(l->d->tools, ACT_CLICK),
                      *missing = first_of(l->d->tools, ACT_INFEASIBLE);
    gx_node place = pocket_place(l),
            whole = pocket_step(l, pocket_call(l, click ? click : l->d->tools->list));
    if (!missing)
        return GX_ALT(l->x, place, whole);
    return GX_ALT(l->x, place, whole, pocket_step(l, pocket_call(l, missing)));
}
