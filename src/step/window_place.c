/* window_place.c - places the step window next to the captured view if there is space, otherwise over it. */
#include "step/window_impl.h"

enum { TITLE = 30 }; /* height of the window manager's title bar */

static bool overlaps(SDL_Rect a, struct screen_rect b)
{
    return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

/* Returns the largest free rectangle of a monitor next to the captured view; w 0: none. */
static SDL_Rect free_side(SDL_Rect monitor, struct screen_rect view)
{
    if (!overlaps(monitor, view))
        return monitor;
    int right = view.x + view.w, bottom = view.y + view.h, end_x = monitor.x + monitor.w,
        end_y = monitor.y + monitor.h;
    const SDL_Rect sides[] = {
        {monitor.x, monitor.y, view.x - monitor.x, monitor.h},
        {right, monitor.y, end_x - right, monitor.h},
        {monitor.x, monitor.y, monitor.w, view.y - monitor.y},
        {monitor.x, bottom, monitor.w, end_y - bottom},
    };
    SDL_Rect best = {0};
    for (int i = 0; i < 4; i++)
        if (sides[i].w >= WIDTH_MIN && sides[i].h >= HEIGHT_MIN && sides[i].w * sides[i].h > best.w * best.h)
            best = sides[i];
    return best;
}

SDL_Rect window_place(const struct window_options *o, bool same_display, bool *covers)
{
    SDL_Rect best = {0}, monitor = {0, 0, WIDTH, HEIGHT};
    for (int i = 0; i < SDL_GetNumVideoDisplays(); i++) {
        if (SDL_GetDisplayUsableBounds(i, &monitor))
            continue;
        SDL_Rect room = same_display ? free_side(monitor, o->view) : monitor;
        if (room.w * room.h > best.w * best.h)
            best = room;
    }
    *covers = best.w == 0;
    if (*covers)
        SDL_GetDisplayUsableBounds(0, &best);
    int width = o->w ? o->w : WIDTH, height = o->h ? o->h : HEIGHT;
    int tall = SDL_max(best.h - TITLE, best.h / 2); /* the content of a too small window is scaled down */
    SDL_Rect r = {best.x, best.y, SDL_min(width, best.w), SDL_min(height, tall)};
    r.x += (best.w - r.w) / 2;
    r.y += (tall - r.h) / 2;
    return r;
}
