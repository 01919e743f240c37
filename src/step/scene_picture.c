/* scene_picture.c - the screenshot with its targets, and the strip of earlier steps; see scene.h.
 *
 * A target is drawn where step_target() says the event goes, mapped back into the frame.  Below it a heat map
 * shows the candidates of the target, one blot each, as dense as it is probable.
 */
#include "step/scene.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { THUMB_W = 132, THUMB_GAP = 8, LENS = 118, LENS_ZOOM = 3 };

static cairo_surface_t *read_frame(const struct step_view *v, int number, bool small)
{
    char path[4200];
    struct image im = {0}, less = {0};
    struct err e = ERR_INIT;
    if (number < 0 || !v->p->dir)
        return NULL;
    snprintf(path, sizeof path, "%s/frames/%06d.png", v->p->dir, number);
    if (image_read_png(&im, path, &e))
        return NULL;
    int w = 2 * THUMB_W, h = (int)fmax((double)w * im.h / im.w, 1); /* twice the size, for larger scales */
    if (small && w < im.w && image_shrink(&less, &im, w, h, NULL) == 0) {
        image_free(&im);
        im = less;
    }
    cairo_surface_t *s = paint_image(&im);
    image_free(&im);
    return s;
}

static cairo_surface_t *thumbnail(struct scene *s, const struct step_view *v, int number)
{
    for (int i = 0; i < SCENE_THUMBS; i++)
        if (s->thumbs[i].surface && s->thumbs[i].number == number)
            return s->thumbs[i].surface;
    cairo_surface_t *made = read_frame(v, number, true);
    if (!made)
        return NULL;
    int at = s->next_thumb++ % SCENE_THUMBS;
    cairo_surface_destroy(s->thumbs[at].surface);
    s->thumbs[at].number = number;
    return s->thumbs[at].surface = made;
}

static cairo_surface_t *shown_picture(struct scene *s, const struct step_view *v)
{
    const struct history_step *history = s->selected ? scene_history(v, s->selected) : NULL;
    if (!history)
        return s->frame;
    if (!s->selected_picture.surface || s->selected_picture.number != history->frame) {
        cairo_surface_destroy(s->selected_picture.surface);
        s->selected_picture.surface = read_frame(v, history->frame, false);
        s->selected_picture.number = history->frame;
    }
    return s->selected_picture.surface;
}

static void draw_fitted(struct paint *p, cairo_surface_t *s, struct box b)
{
    cairo_save(p->cr);
    cairo_translate(p->cr, b.x, b.y);
    cairo_scale(p->cr, b.w / cairo_image_surface_get_width(s), b.h / cairo_image_surface_get_height(s));
    cairo_set_source_surface(p->cr, s, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(p->cr), CAIRO_FILTER_GOOD);
    cairo_paint(p->cr);
    cairo_restore(p->cr);
}

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

static void stroke_twice(struct paint *p, double width, enum colour ink)
{
    cairo_set_line_cap(p->cr, CAIRO_LINE_CAP_ROUND);
    cairo_set_source_rgba(p->cr, 0, 0, 0, 0.55);
    cairo_set_line_width(p->cr, width + 2.5);
    cairo_stroke_preserve(p->cr);
    paint_ink(p, ink, 1);
    cairo_set_line_width(p->cr, width);
    cairo_stroke(p->cr);
}

static void draw_ring(struct paint *p, double x, double y, enum colour ink)
{
    const double r = 15, gap = 5;
    cairo_new_path(p->cr);
    cairo_arc(p->cr, x, y, r, 0, 2 * M_PI);
    for (int i = 0; i < 4; i++) {
        double c = cos(i * M_PI / 2), d = sin(i * M_PI / 2);
        cairo_move_to(p->cr, x + c * (r - gap), y + d * (r - gap));
        cairo_line_to(p->cr, x + c * (r + gap), y + d * (r + gap));
    }
    stroke_twice(p, 2.5, ink);
    cairo_arc(p->cr, x, y, 2, 0, 2 * M_PI);
    paint_ink(p, ink, 1);
    cairo_fill(p->cr);
}

static void draw_arrow(struct paint *p, double x0, double y0, double x1, double y1, enum colour ink)
{
    double dx = x1 - x0, dy = y1 - y0, len = sqrt(dx * dx + dy * dy), head = 11;
    if (len < 1)
        return;
    dx /= len;
    dy /= len;
    cairo_new_path(p->cr);
    cairo_move_to(p->cr, x0, y0);
    cairo_line_to(p->cr, x1, y1);
    cairo_move_to(p->cr, x1 - head * (dx + 0.6 * dy), y1 - head * (dy - 0.6 * dx));
    cairo_line_to(p->cr, x1, y1);
    cairo_line_to(p->cr, x1 - head * (dx - 0.6 * dy), y1 - head * (dy + 0.6 * dx));
    stroke_twice(p, 2.5, ink);
}

/* The action's kind and point, beside its mark. */
static void draw_tag(struct paint *p, const struct box picture, double x, double y, enum colour ink,
                     const char *text)
{
    struct text how = {FACE_BOLD, 12, 1, 0, INK_TEXT};
    double w = fmin(paint_text_width(p, how, text), 260) + 16;
    double left = x + 24 + w > picture.x + picture.w ? x - 24 - w : x + 24;
    struct box b = {fmax(left, picture.x), fmin(fmax(y - 12, picture.y), picture.y + picture.h - 24), w, 24};
    paint_box(p, b, 6, INK_GROUND, 0.88);
    paint_frame(p, box_inset(b, 0.5), 6, 1, ink, 0.9);
    paint_text(p, b.x + 8, b.y + 4, w - 15, how, text);
}

static void draw_action(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                        struct paint *p, int i)
{
    const struct action *a = &v->step->actions[i];
    enum colour ink = v->edited || s->drag ? INK_WARN : INK_ACCENT;
    double x, y, x2, y2;
    char tag[96];
    if (!scene_target(s, v, i, false, &x, &y))
        return;
    if (scene_target(s, v, i, true, &x2, &y2)) {
        draw_arrow(p, x, y, x2, y2, ink);
        draw_ring(p, x2, y2, ink);
    }
    if (a->kind == ACT_SCROLL)
        draw_arrow(p, x, y, x + (a->dx > 0) * 48 - (a->dx < 0) * 48, y + (a->dy > 0) * 48 - (a->dy < 0) * 48,
                   ink);
    draw_ring(p, x, y, ink);
    bool dragged = s->drag && i == 0 && !s->second;
    snprintf(tag, sizeof tag, "%s%s  %d,%d",
             v->step->nactions > 1 ? (const char[]){(char)('1' + i), ' ', 0} : "", action_kind_name(a->kind),
             dragged ? (int)lround(s->at_x) : a->x, dragged ? (int)lround(s->at_y) : a->y);
    draw_tag(p, l->picture, x, y, ink, tag);
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

/* The surroundings of the target, enlarged, in the corner farthest from it. */
static void draw_lens(const struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p)
{
    double x, y;
    if (!s->frame || !scene_target(s, v, 0, false, &x, &y) || l->frame.w < 3 * LENS || l->frame.h < 2 * LENS)
        return;
    bool left = x > l->frame.x + l->frame.w / 2, top = y > l->frame.y + l->frame.h / 2;
    struct box b = {left ? l->frame.x + 10 : l->frame.x + l->frame.w - LENS - 10,
                    top ? l->frame.y + 10 : l->frame.y + l->frame.h - LENS - 10, LENS, LENS};
    double fx = (x - l->frame.x) / l->fit, fy = (y - l->frame.y) / l->fit;
    cairo_save(p->cr);
    cairo_rectangle(p->cr, b.x, b.y, b.w, b.h);
    cairo_clip(p->cr);
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
    paint_box(p, l->picture, 8, INK_PANEL, 1);
    cairo_surface_t *shown = shown_picture(s, v);
    if (shown)
        draw_fitted(p, shown, l->frame);
    else
        paint_text(p, l->picture.x, l->picture.y + l->picture.h / 2, l->picture.w,
                   (struct text){FACE_PLAIN, 14, 1, 0.5, INK_FAINT}, "no screenshot");
    if (s->status) {
        cairo_set_source_rgba(p->cr, 0, 0, 0, 0.35);
        cairo_rectangle(p->cr, l->frame.x, l->frame.y, l->frame.w, l->frame.h);
        cairo_fill(p->cr);
    }
    if (s->selected) {
        char text[64];
        snprintf(text, sizeof text, "screen of step %d", s->selected);
        draw_tag(p, l->picture, l->picture.x, l->picture.y + 20, INK_BLUE, text);
        return;
    }
    draw_heat(s, v, l, p);
    for (int i = 0; i < v->step->nactions; i++)
        draw_action(s, v, l, p, i);
    draw_lens(s, v, l, p);
}

/* When they do not all fit, the newest is at the right end. */
struct box scene_thumb(const struct scene *s, const struct step_view *v, int i)
{
    const struct box b = scene_layout(s).strip;
    double step = THUMB_W + THUMB_GAP, all = v->p->n_history * step - THUMB_GAP;
    double left = fmin(b.x, b.x + b.w - all) + s->scrolled;
    return (struct box){left + i * step, b.y, THUMB_W, b.h};
}

static void draw_history(struct scene *s, const struct step_view *v, struct paint *p, const struct box b,
                         const struct history_step *history)
{
    const struct box pic = {b.x, b.y, b.w, b.h - 36};
    cairo_surface_t *im = thumbnail(s, v, history->frame);
    char text[80];
    paint_box(p, pic, 6, INK_PANEL, 1);
    if (im) {
        double w = cairo_image_surface_get_width(im), h = cairo_image_surface_get_height(im);
        double fit = fmin(pic.w / w, pic.h / h);
        draw_fitted(
            p, im,
            (struct box){pic.x + (pic.w - w * fit) / 2, pic.y + (pic.h - h * fit) / 2, w * fit, h * fit});
    }
    if (history->left || !history->ran)
        paint_box(p, pic, 6, INK_GROUND, 0.6);
    enum colour ink = history->failed && history->ran                        ? INK_BAD
                      : history->judged && !history->changed && history->ran ? INK_WARN
                      : history->number == s->selected || history->reachable ? INK_ACCENT
                                                                             : INK_LINE;
    bool chosen = history->number == s->selected;
    paint_frame(p, box_inset(pic, 0.5), 6, chosen ? 2.5 : 1, chosen ? INK_BLUE : ink, chosen ? 1 : 0.7);
    snprintf(text, sizeof text, "%d%s%s", history->number,
             history->left   ? "  left"
             : !history->ran ? "  not run"
                             : "",
             history->failed && history->ran                        ? "  failed"
             : history->judged && !history->changed && history->ran ? "  no effect"
                                                                    : "");
    paint_text(p, b.x + 2, pic.y + pic.h + 3, b.w - 4,
               (struct text){FACE_BOLD, 11, 1, 0, ink == INK_LINE ? INK_DIM : ink}, text);
    paint_text(p, b.x + 2, pic.y + pic.h + 18, b.w - 4, (struct text){FACE_PLAIN, 11, 1, 0, INK_DIM},
               history->what ? history->what : "");
}

void scene_draw_strip(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p)
{
    if (!v->p->n_history) {
        paint_frame(p, box_inset(l->strip, 0.5), 8, 1, INK_LINE, 0.6);
        paint_text(p, l->strip.x, l->strip.y + l->strip.h / 2 - 9, l->strip.w,
                   (struct text){FACE_PLAIN, 13, 1, 0.5, INK_FAINT}, "earlier steps appear here");
        return;
    }
    cairo_save(p->cr);
    cairo_rectangle(p->cr, l->strip.x, l->strip.y, l->strip.w, l->strip.h);
    cairo_clip(p->cr);
    for (int i = 0; i < v->p->n_history; i++) {
        struct box b = scene_thumb(s, v, i);
        if (b.x + b.w > l->strip.x && b.x < l->strip.x + l->strip.w)
            draw_history(s, v, p, b, &v->p->history[i]);
    }
    cairo_restore(p->cr);
}
