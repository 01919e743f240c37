/* active_view.c - the view "active": the window that has the keyboard, picked anew for each screenshot.
 *
 * A small model sees a picture at its own pixels, so it is shown the window it works on and not the whole
 * desktop.  The view is the window's inside, grown to whole multiples of 32 pixels where the screen has room
 * (what such models see without stretching), together with menus and popups that lie over its edge.  Between
 * two screenshots the view follows that one window: what was decided on it still belongs to it, wherever it
 * is now.
 */
#include "screen/private.h"

#include <X11/Xutil.h>

enum { STEP = 32, LEAST = 160, REACH = 8, MIN_POPUP = 8 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

static struct screen_rect join(struct screen_rect a, struct screen_rect b)
{
    int x = least(a.x, b.x), y = least(a.y, b.y);
    return (struct screen_rect){x, y, most(a.x + a.w, b.x + b.w) - x, most(a.y + a.h, b.y + b.h) - y};
}

/* Grows one extent to a multiple of STEP, to the right or down first, within [0, limit). */
static void grow(int *at, int *size, int limit)
{
    int wanted = least(most((*size + STEP - 1) / STEP * STEP, LEAST), limit);
    *at = most(least(*at, limit - wanted), 0);
    *size = wanted;
}

/* r with the menus and popups that touch it: windows that no window manager handles. */
static struct screen_rect with_popups(struct screen *s, struct screen_rect r)
{
    Window root, parent, *list = NULL;
    unsigned n = 0;
    struct screen_rect all = r, near = {r.x - REACH, r.y - REACH, r.w + 2 * REACH, r.h + 2 * REACH};
    if (!XQueryTree(s->dpy, s->root, &root, &parent, &list, &n))
        return r;
    for (unsigned i = 0; i < n; i++) {
        XWindowAttributes a;
        if (!XGetWindowAttributes(s->dpy, list[i], &a) || !a.override_redirect || a.map_state != IsViewable ||
            a.class != InputOutput || a.width < MIN_POPUP || a.height < MIN_POPUP)
            continue;
        struct screen_rect popup = {a.x, a.y, a.width, a.height}, common = screen_rect_intersect(near, popup);
        if (common.w && common.h)
            all = join(all, popup);
    }
    if (list)
        XFree(list);
    return all;
}

void active_view_pick(struct screen *s)
{
    struct screen_window w;
    struct xtrap t;
    s->active = (struct active_view){0};
    s->view = s->root_rect;
    if (screen_focused_window(s, &w) || !w.id)
        return;
    struct screen_rect r = screen_rect_intersect(s->root_rect, w.rect);
    if (!r.w || !r.h)
        return;
    xtrap_begin(&t, s->dpy);
    r = screen_rect_intersect(s->root_rect, with_popups(s, r));
    xtrap_end(&t);
    grow(&r.x, &r.w, s->root_rect.w);
    grow(&r.y, &r.h, s->root_rect.h);
    s->active = (struct active_view){.window = w.id, .rect = w.rect};
    s->view = r;
}

void active_view_follow(struct screen *s)
{
    struct screen_rect now;
    if (!s->active.window || screen_window_rect(s, s->active.window, &now))
        return; /* closed: what was seen is still where it was */
    struct screen_rect *was = &s->active.rect, moved = s->view;
    moved.x += now.x - was->x;
    moved.y += now.y - was->y;
    if (now.w != was->w || now.h != was->h) { /* another size: nothing seen on it can be placed any more */
        moved.w += now.w - was->w;
        moved.h += now.h - was->h;
    }
    moved = screen_rect_intersect(s->root_rect, moved);
    if (!moved.w || !moved.h)
        return;
    s->view = moved;
    *was = now;
}
