/* scene_panel.c - the panel: thought, actions, candidates and cost; see scene.h.
 *
 * Blocks from top to bottom as long as they fit; the cost is at the bottom.
 */
#include "step/private.h"
#include "step/scene.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAD = 14, SHOWN_VERBS = 5, SHOWN_PLACES = 4, COST = 128 };

struct block {
    struct paint *p;
    double x, y, w, end; /* y: where the next one begins */
};

static bool fits(const struct block *b, double h)
{
    return b->y + h <= b->end;
}

static void draw_heading(struct block *b, const char *text)
{
    paint_text(b->p, b->x, b->y, b->w, (struct text){FACE_BOLD, 10.5, 1, 0, INK_FAINT}, text);
    b->y += 18;
}

static void draw_text(struct block *b, const char *title, enum face face, int lines, const char *text)
{
    if (!text || !*text || !fits(b, 40))
        return;
    draw_heading(b, title);
    b->y += paint_text(b->p, b->x, b->y, b->w, (struct text){face, 13.5, lines, 0, INK_TEXT}, text) + 12;
}

/* The members of the canonical form except the kind. */
static void draw_members(struct block *b, const struct action *a)
{
    char *json = edit_to_json(a);
    json_t *all = json_loads(json, 0, NULL), *value;
    const char *key;
    json_object_foreach(all, key, value)
    {
        char *text =
            json_is_string(value) ? xstrdup(json_string_value(value)) : json_dumps(value, JSON_ENCODE_ANY);
        if (text && strcmp(key, "kind") != 0 && strcmp(key, "n") != 0 && fits(b, 19)) {
            paint_text(b->p, b->x, b->y, 86, (struct text){FACE_PLAIN, 12, 1, 0, INK_DIM}, key);
            paint_text(b->p, b->x + 90, b->y, b->w - 90, (struct text){FACE_MONO, 12, 1, 0, INK_TEXT}, text);
            b->y += 18;
        }
        free(text);
    }
    json_decref(all);
    free(json);
}

static void draw_actions(struct block *b, const struct step_view *v)
{
    draw_heading(b, v->edited ? "ACTION, EDITED" : v->step->nactions > 1 ? "ACTIONS" : "ACTION");
    if (!v->step->nactions)
        b->y += paint_text(b->p, b->x, b->y, b->w, (struct text){FACE_BOLD, 14, 3, 0, INK_BAD},
                           v->p->now.message && *v->p->now.message ? v->p->now.message : "none") +
                12;
    for (int i = 0; i < v->step->nactions && fits(b, 40); i++) {
        char *what = actions_describe(&v->step->actions[i], 1);
        struct text how = {FACE_BOLD, 15, 3, 0, v->edited ? INK_WARN : INK_ACCENT};
        b->y += paint_text(b->p, b->x, b->y, b->w, how, what) + 6;
        free(what);
        draw_members(b, &v->step->actions[i]);
        b->y += 8;
    }
}

static void draw_rule(struct block *b, const struct step_view *v)
{
    const char *text = v->p->gate ? v->p->gate : v->p->irreversible ? "this cannot be undone" : NULL;
    if (!text || !fits(b, 44))
        return;
    struct text how = {FACE_PLAIN, 12.5, 3, 0, INK_WARN};
    paint_box(b->p, (struct box){b->x - 4, b->y, 3, 34}, 1.5, INK_WARN, 1);
    b->y += fmax(paint_text(b->p, b->x + 8, b->y + 2, b->w - 8, how, text), 30) + 12;
}

static void draw_forks(struct block *b, const struct step_view *v)
{
    if (v->p->n_forks == 0)
        return;
    draw_heading(b, "REPLIES TO CHOOSE FROM");
    for (int i = 0; i < v->p->n_forks && fits(b, 34); i++) {
        const struct proposed_reply *f = &v->p->forks[i];
        char number[24], *what = describe_reply(f->step, f->message);
        snprintf(number, sizeof number, "%d", i); /* the key that takes it */
        bool taken = v->p->taken == i;
        paint_box(b->p, (struct box){b->x - 6, b->y - 2, b->w + 12, 24}, 6, taken ? INK_ACCENT : INK_RAISED,
                  taken ? 0.2 : 1);
        paint_text(b->p, b->x, b->y + 2, 18, (struct text){FACE_BOLD, 13, 1, 0, taken ? INK_ACCENT : INK_DIM},
                   number);
        paint_text(b->p, b->x + 18, b->y + 2, b->w - 20,
                   (struct text){FACE_PLAIN, 12.5, 1, 0, f->fault ? INK_BAD : INK_TEXT}, what);
        free(what);
        b->y += 27;
    }
    b->y += 8;
}

static void draw_candidates(struct block *b, const struct alternative *a, int n, enum colour ink)
{
    for (int i = 0; i < n && fits(b, 20) && (i == 0 || a[i].p >= 0.0005); i++) {
        char percent[24];
        struct box bar = {b->x + b->w - 150, b->y + 4, 100, 8};
        snprintf(percent, sizeof percent, a[i].p >= 0.0995 ? "%.0f %%" : "%.1f %%", 100 * a[i].p);
        paint_text(b->p, b->x, b->y, b->w - 160, (struct text){FACE_MONO, 12, 1, 0, i ? INK_DIM : INK_TEXT},
                   a[i].text);
        paint_box(b->p, bar, 4, INK_RAISED, 1);
        bar.w = fmax(bar.w * fmin(a[i].p, 1), 2);
        paint_box(b->p, bar, 4, ink, i ? 0.55 : 1);
        paint_text(b->p, b->x + b->w - 46, b->y, 46, (struct text){FACE_PLAIN, 12, 1, 1, INK_DIM}, percent);
        b->y += 18;
    }
    b->y += n ? 8 : 0;
}

static void draw_confidence(struct block *b, const struct step_view *v)
{
    char text[64];
    if ((!v->n_verbs && !v->n_places && v->confidence < 0) || !fits(b, 50))
        return;
    draw_heading(b, "CANDIDATES");
    draw_candidates(b, v->verbs, v->n_verbs < SHOWN_VERBS ? v->n_verbs : SHOWN_VERBS, INK_VIOLET);
    draw_candidates(b, v->places, v->n_places < SHOWN_PLACES ? v->n_places : SHOWN_PLACES, INK_WARN);
    if (v->confidence >= 0 && fits(b, 20)) {
        snprintf(text, sizeof text, "least probable token of verb and places: %.0f %%", 100 * v->confidence);
        paint_text(b->p, b->x, b->y, b->w,
                   (struct text){FACE_PLAIN, 12, 1, 0, v->confidence < 0.5 ? INK_WARN : INK_DIM}, text);
        b->y += 26;
    }
}

struct entry {
    const char *name;
    double value;
    enum colour ink;
};

static void draw_legend(struct block *b, const struct entry *e, int n, const char *form)
{
    double x = b->x;
    for (int i = 0; i < n; i++) {
        char text[64];
        struct text how = {FACE_PLAIN, 11.5, 1, 0, INK_DIM};
        snprintf(text, sizeof text, form, e[i].name, e[i].value);
        double w = paint_text_width(b->p, how, text) + 24;
        if (x > b->x && x + w > b->x + b->w) {
            x = b->x;
            b->y += 17;
        }
        paint_box(b->p, (struct box){x, b->y + 4, 8, 8}, 2, e[i].ink, 1);
        paint_text(b->p, x + 13, b->y, w, how, text);
        x += w;
    }
    b->y += 24;
}

static void draw_bar(struct block *b, const char *title, const struct entry *e, int n, const char *form)
{
    struct share s[8];
    if (!fits(b, 66))
        return;
    draw_heading(b, title);
    for (int i = 0; i < n; i++)
        s[i] = (struct share){e[i].value, e[i].ink};
    paint_shares(b->p, (struct box){b->x, b->y, b->w, 10}, s, n);
    b->y += 16;
    draw_legend(b, e, n, form);
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
    draw_bar(b, "TOKENS", tokens, 4, "%s %.0f");
    snprintf(title, sizeof title, "TIME, %.0f ms",
             q->ms[PHASE_SETTLE] + q->ms[PHASE_SEE] + q->ms[PHASE_READ] + q->ms[PHASE_WRITE]);
    draw_bar(b, title, times, 4, "%s %.0f");
}

void scene_draw_panel(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p)
{
    (void)s;
    paint_box(p, l->panel, 8, INK_PANEL, 1);
    double x = l->panel.x + PAD, w = l->panel.w - 2 * PAD, end = l->panel.y + l->panel.h, foot = end - COST;
    struct block b = {p, x, l->panel.y + PAD, w, foot - PAD}, below = {p, x, foot, w, end};
    cairo_save(p->cr);
    cairo_rectangle(p->cr, l->panel.x, l->panel.y, l->panel.w, l->panel.h);
    cairo_clip(p->cr);
    draw_actions(&b, v);
    draw_rule(&b, v);
    draw_text(&b, "THOUGHT", FACE_ITALIC, 5, v->p->now.step ? v->p->now.step->thought : NULL);
    draw_text(&b, "NOTE", FACE_PLAIN, 3, v->p->now.step ? v->p->now.step->note : NULL);
    draw_forks(&b, v);
    draw_confidence(&b, v);
    draw_text(&b, "PROMPT BEFORE THE SCREENSHOT", FACE_PLAIN, 4, v->p->lead);
    paint_ink(p, INK_LINE, 1);
    paint_line(p, x, foot - PAD, x + w, foot - PAD, 1);
    draw_cost(&below, v->p);
    cairo_restore(p->cr);
}
