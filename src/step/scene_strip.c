/* scene_strip.c - draws the strip of earlier steps and reads recorded screens; see scene.h. */
#include "step/scene.h"

#include <math.h>
#include <stdio.h>

enum { THUMB_W = 132, THUMB_W_COMPACT = 64, THUMB_GAP = 8 };

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
    s->thumbs[at] = (struct scene_picture){number, made};
    return made;
}

cairo_surface_t *scene_picture(struct scene_picture *kept, const struct step_view *v, int number)
{
    if (kept->surface && kept->number == number)
        return kept->surface;
    cairo_surface_destroy(kept->surface);
    *kept = (struct scene_picture){number, read_frame(v, number, false)};
    return kept->surface;
}

/* Returns the box of thumbnail i. If not all fit, the newest is at the right end. */
struct box scene_thumb(const struct scene *s, const struct step_view *v, int i)
{
    const struct scene_layout l = scene_layout(s);
    const struct box b = l.strip;
    double w = l.compact ? THUMB_W_COMPACT : THUMB_W, step = w + THUMB_GAP,
           all = v->p->n_history * step - THUMB_GAP;
    double left = fmin(b.x, b.x + b.w - all) + s->scrolled;
    return (struct box){left + i * step, b.y, w, b.h};
}

static enum colour ink_of(const struct history_step *h)
{
    if (h->failed && h->ran)
        return INK_BAD;
    if (h->judged && !h->changed && h->ran)
        return INK_WARN;
    return h->reachable ? INK_ACCENT : INK_LINE;
}

static void draw_thumbnail(struct paint *p, cairo_surface_t *im, struct box pic)
{
    double w = cairo_image_surface_get_width(im), h = cairo_image_surface_get_height(im);
    double fit = fmin(pic.w / w, pic.h / h);
    paint_picture(
        p, im, (struct box){pic.x + (pic.w - w * fit) / 2, pic.y + (pic.h - h * fit) / 2, w * fit, h * fit});
}

static void draw_history(struct scene *s, const struct step_view *v, struct paint *p, const struct box b,
                         const struct history_step *h, const struct scene_layout *l)
{
    const bool little = l->compact;
    const struct box strip = l->strip;
    const struct box pic = {b.x, b.y, b.w, b.h - (little ? 16 : 37)};
    cairo_surface_t *im = thumbnail(s, v, h->frame);
    const bool chosen = h->number == s->selected;
    enum colour ink = ink_of(h);
    char text[80];
    paint_part(p, b, "earlier step");
    paint_box(p, pic, 6, INK_PANEL, 1);
    if (im)
        draw_thumbnail(p, im, pic);
    if (h->left || !h->ran)
        paint_box(p, pic, 6, INK_GROUND, 0.6);
    paint_frame(p, box_inset(pic, 0.5), 6, chosen ? 2.5 : 1, chosen ? INK_BLUE : ink, chosen ? 1 : 0.7);
    if (b.x < strip.x - 1 || b.x + b.w > strip.x + strip.w + 1) /* partly scrolled out: omit the text */
        return;
    snprintf(text, sizeof text, "%d%s%s", h->number,
             h->left   ? "  left"
             : !h->ran ? "  not run"
                       : "",
             ink == INK_BAD    ? "  failed"
             : ink == INK_WARN ? "  no effect"
                               : "");
    paint_text(p, b.x + 2, pic.y + pic.h + (little ? 1 : 2), b.w - 4,
               (struct text){FACE_BOLD, little ? 10 : 11, 1, 0, ink == INK_LINE ? INK_DIM : ink}, text);
    if (!little)
        paint_text(p, b.x + 2, pic.y + pic.h + 19, b.w - 4, (struct text){FACE_PLAIN, 11, 1, 0, INK_DIM},
                   h->what ? h->what : "");
}

void scene_draw_strip(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p)
{
    paint_part(p, l->strip, "strip");
    if (!v->p->n_history) {
        paint_frame(p, box_inset(l->strip, 0.5), 8, 1, INK_LINE, 0.6);
        paint_text(p, l->strip.x, l->strip.y + l->strip.h / 2 - 9, l->strip.w,
                   (struct text){FACE_PLAIN, 13, 1, 0.5, INK_FAINT}, "earlier steps appear here");
        return;
    }
    paint_clip(p, l->strip);
    for (int i = 0; i < v->p->n_history; i++) {
        struct box b = scene_thumb(s, v, i);
        if (b.x + b.w > l->strip.x && b.x < l->strip.x + l->strip.w)
            draw_history(s, v, p, b, &v->p->history[i], l);
    }
    cairo_restore(p->cr);
}
