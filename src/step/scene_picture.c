/* scene_picture.c - draws the screenshot with its targets; see scene.h.
 *
 * A target is drawn where step_target() says that the event goes, mapped back into the frame. Below it a heat
 * map shows the candidates of the target, one blot each, with a density that shows its probability. Labels
 * are placed in free areas; a label without one is omitted, because the panel has the same text. The lens,
 * which enlarges the target, is next to the screenshot if there is space, otherwise in the panel. */
#include "step/scene.h"

#include "actions/registry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LENS = 118, LENS_LEAST = 72, LENS_ZOOM = 3, RING = 15, MARKS = 64, TAG_W = 260, TAG_H = 24 };

struct marks { /* occupied areas of the picture */
    struct box room, list[MARKS];
    int n;
};

bool scene_target(const struct scene *s, const struct step_view *v, int i, bool second, double *x, double *y)
{
    const struct scene_layout l = scene_layout(s);
    const struct view_transform *place = &v->p->place;
    int rx, ry;
    if (!step_target(v, i, second, &rx, &ry) || place->sx == 0 || place->sy == 0)
        return false;
    double fx = (rx - place->ox) / place->sx, fy = (ry - place->oy) / place->sy;
    if (s->drag && i == 0 && s->second == second) {
        fx = s->at_x;
        fy = s->at_y;
    }
    *x = l.frame.x + (fx + 0.5) * l.fit;
    *y = l.frame.y + (fy + 0.5) * l.fit;
    return true;
}

static bool is_free(const struct marks *m, struct box b)
{
    bool free = b.x >= m->room.x && b.y >= m->room.y && b.x + b.w <= m->room.x + m->room.w &&
                b.y + b.h <= m->room.y + m->room.h;
    for (int i = 0; i < m->n && free; i++)
        free = !box_meets(b, m->list[i]);
    return free;
}

static void take_place(struct marks *m, struct box b)
{
    if (m->n < MARKS)
        m->list[m->n++] = b;
}

static struct box around(double x, double y, double r)
{
    return (struct box){x - r, y - r, 2 * r, 2 * r};
}

/* Draws the action's kind and point in the nearest free area next to its mark. */
static void draw_tag(struct paint *p, struct marks *m, double x, double y, enum colour ink, const char *text)
{
    const struct text how = {FACE_BOLD, 12, 1, 0, INK_TEXT};
    const double w = fmin(paint_text_width(p, how, text) + 1, TAG_W) + 16;
    for (int ring = 0; ring < 6; ring++)
        for (int way = 0; way < 4; way++) {
            double off = 24 + 26 * ring, up = way & 2 ? -1 : 1;
            struct box b = {way & 1 ? x - 24 - w : x + 24, y - TAG_H / 2.0 + (ring ? up * (off - 24) : 0), w,
                            TAG_H};
            if (ring > 2)
                b = (struct box){x - w / 2, y + up * off - TAG_H / 2.0, w, TAG_H};
            if (!is_free(m, b))
                continue;
            take_place(m, b);
            paint_part(p, b, "tag");
            paint_box(p, b, 6, INK_GROUND, 0.88);
            paint_frame(p, box_inset(b, 0.5), 6, 1, ink, 0.9);
            paint_text(p, b.x + 8, b.y + 4, w - 15, how, text);
            return;
        }
}

static void draw_mark(const struct scene *s, const struct step_view *v, struct marks *m, struct paint *p,
                      int i, enum colour ink)
{
    const struct action *a = &v->step->actions[i];
    const double reach = RING + RING / 3.0 + 3;
    double x, y, x2, y2;
    if (!scene_target(s, v, i, false, &x, &y))
        return;
    if (scene_target(s, v, i, true, &x2, &y2)) {
        paint_arrow(p, x, y, x2, y2, ink);
        paint_ring(p, x2, y2, RING, ink);
        take_place(m, around(x2, y2, reach));
    }
    if (action_takes(a->kind, P_DIRECTION))
        paint_arrow(p, x, y, x + (a->dx > 0) * 48 - (a->dx < 0) * 48, y + (a->dy > 0) * 48 - (a->dy < 0) * 48,
                    ink);
    paint_ring(p, x, y, RING, ink);
    take_place(m, around(x, y, reach));
}

static void draw_label(const struct scene *s, const struct step_view *v, struct marks *m, struct paint *p,
                       int i, enum colour ink)
{
    const struct action *a = &v->step->actions[i];
    double x, y;
    char tag[96], number[16] = "";
    if (!scene_target(s, v, i, false, &x, &y))
        return;
    bool dragged = s->drag && i == 0 && !s->second;
    if (v->step->nactions > 1)
        snprintf(number, sizeof number, "%d ", i + 1);
    snprintf(tag, sizeof tag, "%s%s  %d,%d", number, action_kind_name(a->kind),
             dragged ? (int)lround(s->at_x) : a->x, dragged ? (int)lround(s->at_y) : a->y);
    draw_tag(p, m, x, y, ink, tag);
}

static void draw_heat(const struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p)
{
    double most = v->n_places ? v->places[0].p : 0;
    for (int i = v->n_places - 1; s->heat && most > 0 && i >= 0; i--) {
        const struct alternative *a = &v->places[i];
        double share = a->p / most, r = (7 + 13 * sqrt(share)) * fmax(l->fit, 1);
        double x = l->frame.x + (a->x + 0.5) * l->fit, y = l->frame.y + (a->y + 0.5) * l->fit;
        cairo_pattern_t *blot = cairo_pattern_create_radial(x, y, 0, x, y, r);
        cairo_pattern_add_color_stop_rgba(blot, 0, 1, 0.35 + 0.4 * (1 - share), 0.1, 0.15 + 0.5 * share);
        cairo_pattern_add_color_stop_rgba(blot, 1, 1, 0.6, 0.1, 0);
        cairo_set_source(p->cr, blot);
        cairo_arc(p->cr, x, y, r, 0, 2 * M_PI);
        cairo_fill(p->cr);
        cairo_pattern_destroy(blot);
    }
}

bool scene_lens_beside(const struct scene_layout *l, struct box *at)
{
    const double left = l->frame.x - l->picture.x, top = l->frame.y - l->picture.y, margin = fmax(left, top);
    const double size = fmin(LENS, margin - 16);
    *at = (struct box){l->picture.x + 8, l->picture.y + 8, size, size};
    *(left > top ? &at->x : &at->y) += (margin - 16 - size) / 2;
    return size >= LENS_LEAST;
}

void scene_draw_lens(const struct scene *s, const struct step_view *v, struct paint *p, struct box b)
{
    const struct scene_layout l = scene_layout(s);
    double x, y;
    if (!s->frame || !scene_target(s, v, 0, false, &x, &y))
        return;
    double fx = (x - l.frame.x) / l.fit, fy = (y - l.frame.y) / l.fit;
    paint_part(p, b, "lens");
    paint_clip(p, b);
    paint_box(p, b, 0, INK_GROUND, 1);
    cairo_translate(p->cr, b.x + b.w / 2, b.y + b.h / 2);
    cairo_scale(p->cr, LENS_ZOOM, LENS_ZOOM);
    cairo_set_source_surface(p->cr, s->frame, -fx, -fy);
    cairo_pattern_set_filter(cairo_get_source(p->cr), CAIRO_FILTER_NEAREST);
    cairo_paint(p->cr);
    cairo_restore(p->cr);
    paint_ink(p, v->edited ? INK_WARN : INK_ACCENT, 0.9);
    paint_line(p, b.x + b.w / 2 - 9, b.y + b.h / 2, b.x + b.w / 2 + 9, b.y + b.h / 2, 1.5);
    paint_line(p, b.x + b.w / 2, b.y + b.h / 2 - 9, b.x + b.w / 2, b.y + b.h / 2 + 9, 1.5);
    paint_frame(p, b, 4, 2, INK_LINE, 1);
}

void scene_draw_picture(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                        struct paint *p)
{
    struct marks m = {.room = box_inset(l->picture, 2)};
    struct box lens;
    bool beside = scene_lens_beside(l, &lens);
    if (beside)
        take_place(&m, lens);
    enum colour ink = v->edited || s->drag ? INK_WARN : INK_ACCENT;
    paint_box(p, l->picture, 8, INK_PANEL, 1);
    if (s->frame)
        paint_picture(p, s->frame, l->frame);
    else
        paint_text(p, l->picture.x, l->picture.y + l->picture.h / 2, l->picture.w,
                   (struct text){FACE_PLAIN, 14, 1, 0.5, INK_FAINT}, "no screenshot");
    paint_clip(p, l->picture);
    if (s->status)
        paint_box(p, l->frame, 0, INK_GROUND, 0.5);
    draw_heat(s, v, l, p);
    for (int i = 0; i < v->step->nactions; i++)
        draw_mark(s, v, &m, p, i, ink);
    for (int i = 0; i < v->step->nactions; i++)
        draw_label(s, v, &m, p, i, ink);
    if (beside)
        scene_draw_lens(s, v, p, lens);
    cairo_restore(p->cr);
}
