/* scene_panel.c - draws the panel: actions, rule, replies to choose from, thought, candidates and cost of the
 * pending step; or the list of breakpoints, or an earlier step; see scene.h.
 *
 * Blocks are drawn from top to bottom. If they do not fit, the panel scrolls; the cost is at the bottom if
 * there is space. */
#include "step/private.h"
#include "step/scene.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_VERBS = 5, SHOWN_PLACES = 4, COST = 128 };

/* Draws the members of the action's JSON except the kind. */
static void draw_members(struct block *b, const struct action *a)
{
    char *json = edit_to_json(a);
    json_t *all = json_loads(json, 0, NULL), *value;
    const char *key;
    json_object_foreach(all, key, value)
    {
        char *text =
            json_is_string(value) ? xstrdup(json_string_value(value)) : json_dumps(value, JSON_ENCODE_ANY);
        if (text && strcmp(key, "kind") != 0 && strcmp(key, "n") != 0) {
            const double left = fmin(86, b->w * 0.3);
            paint_text(b->p, b->x, b->y, left, (struct text){FACE_PLAIN, b->type - 1.5, 1, 0, INK_DIM}, key);
            int lines = strcmp(key, "text") == 0 ? 12 : 1; /* typed text is shown in full */
            double h = paint_text(b->p, b->x + left + 4, b->y, b->w - left - 4,
                                  (struct text){FACE_MONO, b->type - 1.5, lines, 0, INK_TEXT}, text);
            b->y += fmax(18, h + 2);
        }
        free(text);
    }
    json_decref(all);
    free(json);
}

static void draw_actions(struct block *b, const struct step_view *v)
{
    block_heading(b, v->edited ? "ACTION, EDITED" : v->step->nactions > 1 ? "ACTIONS" : "ACTION");
    if (!v->step->nactions)
        b->y += paint_text(b->p, b->x, b->y, b->w, (struct text){FACE_BOLD, 14, 3, 0, INK_BAD},
                           v->p->now.message && *v->p->now.message ? v->p->now.message : "none") +
                12;
    for (int i = 0; i < v->step->nactions; i++) {
        char *what = actions_describe(&v->step->actions[i], 1);
        struct text how = {FACE_BOLD, b->type + 1.5, 6, 0, v->edited ? INK_WARN : INK_ACCENT};
        b->y += paint_text(b->p, b->x, b->y, b->w, how, what) + 6;
        free(what);
        draw_members(b, &v->step->actions[i]);
        b->y += 8;
    }
}

static void draw_rule(struct block *b, const struct step_view *v)
{
    const char *text = v->p->gate ? v->p->gate : v->p->irreversible ? "this cannot be undone" : NULL;
    if (!text)
        return;
    double top = b->y;
    b->y += paint_text(b->p, b->x + 10, b->y + 2, b->w - 10,
                       (struct text){FACE_PLAIN, b->type - 1, 4, 0, INK_WARN}, text) +
            4;
    if (v->p->where && *v->p->where)
        b->y += paint_text(b->p, b->x + 10, b->y, b->w - 10,
                           (struct text){FACE_PLAIN, b->type - 1.5, 4, 0, INK_TEXT}, v->p->where) +
                3;
    paint_box(b->p, (struct box){b->x, top, 3, b->y - top}, 1.5, INK_WARN, 1);
    b->y += 10;
}

static void draw_forks(struct scene *s, struct block *b, const struct step_view *v)
{
    if (v->p->n_forks == 0)
        return;
    block_heading(b, "REPLIES: PRESS A DIGIT OR CLICK");
    for (int i = 0; i < v->p->n_forks; i++) {
        const struct proposed_reply *f = &v->p->forks[i];
        char number[24], *what = describe_reply(f->step, f->message);
        struct box row = {b->x - 4, b->y, b->w + 8, 24};
        snprintf(number, sizeof number, "%d", i); /* the key that chooses it */
        bool taken = v->p->taken == i;
        paint_part(b->p, row, "reply");
        paint_box(b->p, row, 6, taken ? INK_ACCENT : INK_RAISED, taken ? 0.2 : 1);
        paint_text(b->p, b->x + 2, b->y + 4, 16,
                   (struct text){FACE_BOLD, 12.5, 1, 0, taken ? INK_ACCENT : INK_DIM}, number);
        paint_text(b->p, b->x + 20, b->y + 4, b->w - 22,
                   (struct text){FACE_PLAIN, 12, 1, 0, f->fault ? INK_BAD : INK_TEXT}, what);
        scene_hit(s, row, HIT_TAKE, i, NULL);
        free(what);
        b->y += 27;
    }
    b->y += 8;
}

static void draw_candidates(struct block *b, const struct step_view *v)
{
    if (!v->n_verbs && !v->n_places && v->confidence < 0)
        return;
    block_heading(b, "CANDIDATES");
    block_odds(b, v->verbs, v->n_verbs < SHOWN_VERBS ? v->n_verbs : SHOWN_VERBS, INK_VIOLET);
    block_odds(b, v->places, v->n_places < SHOWN_PLACES ? v->n_places : SHOWN_PLACES, INK_WARN);
    if (v->confidence >= 0)
        block_confidence(b, v->confidence);
}

/* Draws the enlarged target if it does not fit next to the screenshot. */
static void draw_target(const struct scene *s, const struct step_view *v, struct block *b)
{
    const struct scene_layout l = scene_layout(s);
    struct box at;
    double x, y;
    if (scene_lens_beside(&l, &at) || !scene_target(s, v, 0, false, &x, &y))
        return;
    block_heading(b, "TARGET, ENLARGED");
    scene_draw_lens(s, v, b->p, (struct box){b->x, b->y + 2, b->w, 84});
    b->y += 96;
}

static void draw_break_summary(struct block *b, const struct step_view *v)
{
    char text[300];
    if (!v->n_breaks)
        return;
    block_heading(b, "BREAKPOINTS (B)");
    for (int i = 0; i < v->n_breaks; i++) {
        snprintf(text, sizeof text, "%d  %s%s", i + 1, v->breaks[i].spec, v->breaks[i].off ? "  (off)" : "");
        block_line(b, v->breaks[i].off ? INK_FAINT : INK_DIM, text);
    }
    b->y += 8;
}

static void draw_cost(struct block *b, const struct proposal *q)
{
    const struct entry tokens[] = {{"reused", (double)q->reused, INK_LINE},
                                   {"prefilled", (double)q->prefilled, INK_BLUE},
                                   {"forced", q->forced, INK_VIOLET},
                                   {"sampled", q->sampled, INK_ACCENT}};
    const struct entry times[] = {{"settle", q->ms[PHASE_SETTLE], INK_LINE},
                                  {"see", q->ms[PHASE_SEE], INK_WARN},
                                  {"read", q->ms[PHASE_READ], INK_BLUE},
                                  {"decide", q->ms[PHASE_WRITE], INK_ACCENT}};
    char title[64];
    block_bar(b, "TOKENS", tokens, 4);
    snprintf(title, sizeof title, "TIME, %.0f ms",
             q->ms[PHASE_SETTLE] + q->ms[PHASE_SEE] + q->ms[PHASE_READ] + q->ms[PHASE_WRITE]);
    block_bar(b, title, times, 4);
}

static void draw_step(struct scene *s, const struct step_view *v, struct block *b, double foot)
{
    draw_rule(b, v); /* first, to be visible without scrolling */
    draw_actions(b, v);
    draw_forks(s, b, v);
    block_text(b, "THOUGHT", FACE_ITALIC, 8, v->p->now.step ? v->p->now.step->thought : NULL);
    block_text(b, "NOTE", FACE_PLAIN, 5, v->p->now.step ? v->p->now.step->note : NULL);
    draw_candidates(b, v);
    draw_target(s, v, b);
    draw_break_summary(b, v);
    block_text(b, "PROMPT BEFORE THE SCREENSHOT", FACE_PLAIN, 6, v->p->lead);
    b->y = fmax(b->y + 4, foot);
    paint_ink(b->p, INK_LINE, 1);
    paint_line(b->p, b->x, b->y - 8, b->x + b->w, b->y - 8, 1);
    draw_cost(b, v->p);
}

/* Draws the page of the panel. Returns its height. */
static double draw_page(struct scene *s, const struct step_view *v, const struct box panel, bool little,
                        struct paint *p)
{
    const double pad = little ? 10 : 14, top = panel.y + pad - s->down;
    struct block b = {p, panel.x + pad, top, panel.w - 2 * pad, little ? 12 : 13.5};
    enum scene_page page = scene_page(s);
    if (page == PAGE_PAST)
        scene_past_blocks(s, v, &b);
    else if (page == PAGE_BREAKS)
        scene_break_blocks(s, v, &b);
    else
        draw_step(s, v, &b, panel.y + panel.h - COST - s->down);
    return b.y - top + pad;
}

void scene_draw_panel(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p)
{
    const struct box at = l->panel;
    struct paint measure = *p;
    measure.log = NULL;
    int hits = s->n_hits;
    paint_box(p, at, 8, INK_PANEL, 1);
    paint_clip(p, (struct box){0, 0, 0, 0}); /* measures the height */
    s->length = draw_page(s, v, at, l->compact, &measure);
    cairo_restore(p->cr);
    s->n_hits = hits;
    s->down = fmin(fmax(s->down, 0), fmax(s->length - at.h, 0));
    paint_clip(p, at);
    draw_page(s, v, at, l->compact, p);
    cairo_restore(p->cr);
    if (s->length > at.h)
        paint_scrollbar(p, at, s->down, s->length);
}
