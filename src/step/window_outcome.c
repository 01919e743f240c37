/* window_outcome.c - draws the outcome of the run into the step window and waits for a key or button. */
#include "step/window_impl.h"

#include "base/clock.h"
#include "step/scene.h"

#include <string.h>

enum { UNREAD_MS = 600 }; /* ms; an earlier press was meant for a previous step */

void outcome_draw(const struct outcome_box *o, const struct scene *s, cairo_surface_t *on)
{
    struct paint p;
    double scale = scene_scale(s), width = s->w / scale, height = s->h / scale;
    struct box b = {width * 0.12, height / 2 - 90, width * 0.76, 180};
    double x = b.x + 20, w = b.w - 40;
    bool done = !strcmp(o->head, "Done");
    paint_begin(&p, on, scale, NULL);
    paint_box(&p, (struct box){0, 0, width, height}, 0, INK_GROUND, 0.6);
    paint_box(&p, b, 8, INK_RAISED, 1);
    paint_frame(&p, b, 8, 1.5, done ? INK_ACCENT : INK_WARN, 1);
    paint_text(&p, x, b.y + 16, w, (struct text){FACE_BOLD, 20, 1, 0, INK_TEXT}, o->head);
    paint_text(&p, x, b.y + 50, w, (struct text){FACE_PLAIN, 15, 4, 0, INK_TEXT}, o->text);
    paint_text(&p, x, b.y + b.h - 30, w, (struct text){FACE_PLAIN, 13, 1, 0, INK_DIM},
               "Press a key or click to close this window. It closes after a minute.");
    paint_end(&p);
}

void outcome_event(struct outcome_box *o, const SDL_Event *ev)
{
    bool key = ev->type == SDL_KEYDOWN, read = clock_ms_since(o->shown) > UNREAD_MS;
    if (key || ev->type == SDL_MOUSEBUTTONDOWN)
        o->pressed = o->pressed || (read && !(key && ev->key.repeat));
    else if (ev->type == SDL_KEYUP || ev->type == SDL_MOUSEBUTTONUP)
        o->seen = o->seen || o->pressed;
    else if (ev->type == SDL_QUIT)
        o->seen = true;
}
