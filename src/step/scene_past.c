/* scene_past.c - shows an earlier step: the screens before and after it, its actions and candidates; see
 * scene.h. */
#include "step/scene.h"

#include <math.h>
#include <stdio.h>

/* ---- the panel -------------------------------------------------------------------------------- */

static const char *outcome_of(const struct history_step *h, enum colour *ink)
{
    *ink = h->failed || h->refused ? INK_BAD : h->judged && !h->changed ? INK_WARN : INK_ACCENT;
    if (h->refused)
        return "rejected by the user";
    if (!h->ran)
        return *ink = INK_DIM, "not run";
    if (h->failed)
        return "failed";
    return !h->judged ? "done" : h->changed ? "done, the screen changed" : "done without effect";
}

static const struct step_odds *odds_of(const struct step_view *v, int number)
{
    for (int i = 0; i < v->n_odds; i++)
        if (v->odds[i].number == number)
            return &v->odds[i];
    return NULL;
}

static void draw_odds(const struct step_view *v, const struct history_step *h, struct block *b)
{
    const struct step_odds *o = odds_of(v, h->number);
    block_heading(b, "ODDS");
    if (h->n_chosen) {
        block_line(b, INK_DIM, "chosen, with its probability:");
        block_odds(b, h->chosen, h->n_chosen, INK_ACCENT);
    }
    if (o && (o->n_verbs || o->n_places)) {
        block_line(b, INK_DIM, "other candidates:");
        block_odds(b, o->verbs, o->n_verbs, INK_VIOLET);
        block_odds(b, o->places, o->n_places, INK_WARN);
    }
    if (h->confidence >= 0)
        block_confidence(b, h->confidence);
    else
        block_line(b, INK_FAINT, "unknown: no model wrote this reply, or its dialect has no coordinates");
    b->y += 6;
}

void scene_past_blocks(const struct scene *s, const struct step_view *v, struct block *b)
{
    const struct history_step *h = scene_history(v, s->selected);
    char text[200];
    enum colour ink;
    if (!h)
        return;
    snprintf(text, sizeof text, "STEP %d", h->number);
    block_heading(b, text);
    b->y += paint_text(b->p, b->x, b->y, b->w, (struct text){FACE_BOLD, b->type + 1.5, 6, 0, INK_TEXT},
                       h->what && *h->what ? h->what : "no action") +
            4;
    const char *how = outcome_of(h, &ink);
    block_line(b, ink, how);
    if (h->edited)
        block_line(b, INK_WARN, "edited by the user before it ran");
    if (h->recorded) {
        snprintf(text, sizeof text, "decided on the recorded screen of step %d", h->from);
        block_line(b, INK_WARN, text);
    }
    block_line(b, INK_DIM,
               h->left        ? "discarded by a rewind: not part of the conversation"
               : h->reachable ? "Enter continues from here"
                              : "the run cannot be rewound to this step");
    b->y += 8;
    block_text(b, "THOUGHT", FACE_ITALIC, 10, h->thought);
    block_text(b, "WINDOW", FACE_PLAIN, 3, h->window);
    draw_odds(v, h, b);
    if (h->judged) {
        snprintf(text, sizeof text, "it changed %.0f %% of the screen", fmax(h->changed, 100 * h->tiles));
        block_text(b, "EFFECT", FACE_PLAIN, 2, h->changed ? text : "no visible effect");
    }
    const struct entry times[] = {{"settle", h->ms[PHASE_SETTLE], INK_LINE},
                                  {"see", h->ms[PHASE_SEE], INK_WARN},
                                  {"read", h->ms[PHASE_READ], INK_BLUE},
                                  {"decide", h->ms[PHASE_WRITE], INK_ACCENT},
                                  {"act", h->ms[PHASE_ACT], INK_VIOLET}};
    block_bar(b, "TIME, ms", times, 5);
}

/* ---- the images ----------------------------------------------------------------------------------- */

/* Returns the frame that resulted from the step's action; -1: unknown. */
static int frame_after(const struct step_view *v, const struct history_step *h)
{
    const struct history_step *next = scene_history(v, h->number + 1);
    if (next)
        return next->recorded ? -1 : next->frame;
    return v->p->number == h->number + 1 && !v->p->recorded ? v->p->frame_number : -1;
}

static void draw_one(const struct scene *s, struct paint *p, struct box at, cairo_surface_t *im,
                     const char *name, const struct history_step *marks)
{
    const struct text how = {FACE_BOLD, 11, 1, 0, INK_DIM};
    double top = 18;
    struct box room = {at.x + 4, at.y + top, at.w - 8, fmax(at.h - top - 4, 1)};
    paint_part(p, at, name);
    paint_text(p, at.x + 8, at.y + 2, at.w - 16, how, name);
    if (!im) {
        paint_text(p, room.x, room.y + room.h / 2 - 8, room.w,
                   (struct text){FACE_PLAIN, 12, 1, 0.5, INK_FAINT}, "not recorded");
        return;
    }
    double w = cairo_image_surface_get_width(im), h = cairo_image_surface_get_height(im);
    double fit = fmin(room.w / w, room.h / h);
    struct box frame = {room.x + (room.w - w * fit) / 2, room.y + (room.h - h * fit) / 2, w * fit, h * fit};
    paint_picture(p, im, frame);
    if (marks && marks->x != ACTION_ABSENT) {
        double x = frame.x + (marks->x + 0.5) * fit, y = frame.y + (marks->y + 0.5) * fit;
        enum colour ink = s->status ? INK_DIM : INK_ACCENT;
        paint_clip(p, room);
        if (marks->x2 != ACTION_ABSENT)
            paint_arrow(p, x, y, frame.x + (marks->x2 + 0.5) * fit, frame.y + (marks->y2 + 0.5) * fit, ink);
        paint_ring(p, x, y, 11, ink);
        cairo_restore(p->cr);
    }
}

void scene_draw_past_pictures(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                              struct paint *p)
{
    const struct history_step *h = scene_history(v, s->selected);
    const struct box all = l->picture;
    if (!h)
        return;
    cairo_surface_t *before = scene_picture(&s->before, v, h->frame),
                    *after = scene_picture(&s->after, v, frame_after(v, h));
    double ratio = s->frame_h > 0 ? (double)s->frame_w / s->frame_h : 1;
    /* side by side or stacked, whichever makes them larger */
    bool beside = fmin(all.w / 2, (all.h - 22) * ratio) >= fmin(all.w, (all.h / 2 - 22) * ratio);
    double w = beside ? (all.w - 6) / 2 : all.w, high = beside ? all.h : (all.h - 6) / 2;
    struct box first = {all.x, all.y, w, high},
               second = {beside ? all.x + w + 6 : all.x, beside ? all.y : all.y + high + 6, w, high};
    paint_box(p, first, 8, INK_PANEL, 1);
    paint_box(p, second, 8, INK_PANEL, 1);
    draw_one(s, p, first, before, "before", h);
    draw_one(s, p, second, after, "after", NULL);
}
