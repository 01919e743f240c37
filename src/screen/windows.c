/* windows.c - questions about windows that every display system answers, with the loss of the display. */
#include "screen/private.h"

#include <string.h>

enum { OVERLAYS = 64 }; /* top-level windows that are looked at */

int screen_pointer(struct screen *s, int *x, int *y)
{
    struct screen_pointer p;
    if (s->lost || !s->ops->pointer(s, &p) || s->lost)
        return -1;
    *x = p.x;
    *y = p.y;
    return 0;
}

int screen_active_window(struct screen *s, char *title, size_t title_size, char *wm_class, size_t class_size)
{
    char none[2][1];
    title = title_size ? title : none[0];
    wm_class = class_size ? wm_class : none[1];
    title[0] = wm_class[0] = 0;
    return s->lost ||
                   s->ops->active_window(s, title, title_size ? title_size : 1, wm_class,
                                         class_size ? class_size : 1) ||
                   s->lost
               ? -1
               : 0;
}

int screen_each_window(struct screen *s, bool (*visit)(void *arg, const char *title, const char *class),
                       void *arg, struct err *e)
{
    if (screen_alive(s, e))
        return -1;
    int enough = s->ops->each_window(s, visit, arg);
    return screen_alive(s, e) ? -1 : enough;
}

bool screen_has_window_manager(struct screen *s)
{
    return !s->lost && s->ops->has_window_manager(s) && !s->lost;
}

int screen_window_at(struct screen *s, int x, int y, struct screen_window *out)
{
    *out = (struct screen_window){0};
    if (!s->lost)
        s->ops->window_at(s, x, y, out);
    return s->lost ? -1 : 0;
}

int screen_focused_window(struct screen *s, struct screen_window *out)
{
    *out = (struct screen_window){0};
    if (!s->lost)
        s->ops->focused(s, out);
    return s->lost ? -1 : 0;
}

int screen_find_window(struct screen *s, const char *class, const char *title, struct screen_window *out)
{
    *out = (struct screen_window){0};
    return s->lost || s->ops->find_window(s, class, title, out) || s->lost ? -1 : 0;
}

int screen_window_rect(struct screen *s, unsigned long id, struct screen_rect *out)
{
    bool visible;
    *out = (struct screen_rect){0};
    return s->lost || s->ops->window_rect(s, id, out, &visible) || s->lost || !out->w ? -1 : 0;
}

static bool contains(struct screen_rect outer, struct screen_rect inner)
{
    return inner.x >= outer.x && inner.y >= outer.y && inner.x + inner.w <= outer.x + outer.w &&
           inner.y + inner.h <= outer.y + outer.h;
}

unsigned long screen_window_around(struct screen *s, unsigned long id, struct screen_rect r)
{
    unsigned long chain[WINDOW_DEPTH], found = id;
    bool within = false;
    int n = s->lost ? 0 : s->ops->chain(s, r.x + r.w / 2, r.y + r.h / 2, chain, WINDOW_DEPTH);
    for (int i = 0; i < n; i++) { /* outermost first */
        struct screen_rect at;
        within = within || chain[i] == id;
        if (within && screen_window_rect(s, chain[i], &at) == 0 && contains(at, r))
            found = chain[i];
    }
    return found;
}

bool screen_window_covers(struct screen *s, unsigned long id, int x, int y)
{
    unsigned long chain[WINDOW_DEPTH];
    bool found = false;
    int n = s->lost ? 0 : s->ops->chain(s, x, y, chain, WINDOW_DEPTH);
    for (int i = 0; i < n; i++)
        found = found || chain[i] == id;
    return found;
}

/* ---- focus and selections ----------------------------------------------------------------------- */

int screen_overlays(struct screen *s, struct screen_window *out, int max)
{
    struct screen_top tops[SCREEN_TOPS];
    int n = s->lost ? 0 : s->ops->tops(s, tops), found = 0;
    for (int i = 0; i < n && i < OVERLAYS && found < max && !s->lost; i++)
        found += tops[i].popup && s->ops->window(s, tops[i].id, &out[found]) == 0 && out[found].class[0];
    return found;
}

unsigned long screen_focus(struct screen *s, unsigned *opened)
{
    *opened = 0;
    return s->lost ? 0 : s->ops->focus(s, opened);
}

int screen_selection(struct screen *s, bool primary, char **text)
{
    *text = NULL;
    return s->lost ? -1 : s->ops->selection(s, primary, text);
}
