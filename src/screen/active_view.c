/* active_view.c - the view "active": the window with the keyboard focus, selected again for each
 * screenshot.
 *
 * A small model sees the image at its own pixels, so it is shown one window and not the whole desktop. The
 * view is the window without its frame, enlarged to multiples of 32 pixels if the screen is large enough
 * (such models see these sizes without scaling), together with menus and popups that extend beyond its
 * edge. All other pixels of the view (desktop, other windows) are painted in one colour, and positions
 * there are rejected (screen_shows). Between two screenshots the view follows that window, because the
 * model's decision refers to it. */
#include "screen/private.h"

#include "base/number.h"

#include <string.h>

enum { STEP = 32, LEAST = 160, REACH = 8, MIN_POPUP = 8 };
enum { PADDING = 0x80, PADDED_WIDTH = 1 << 16 }; /* grey level; pixels */

/* Grows one extent to a multiple of STEP, to the right or down first, within [0, limit). */
static void grow(int *at, int *size, int limit)
{
    int wanted = int_min(int_max((*size + STEP - 1) / STEP * STEP, LEAST), limit);
    *at = int_max(int_min(*at, limit - wanted), 0);
    *size = wanted;
}

/* Adds an area to the shown ones. When the list is full, the last entry is extended to cover all further
 * areas. */
static void show_area(struct active_view *a, struct screen_rect r)
{
    if (a->n_shown < ACTIVE_SHOWN)
        a->shown[a->n_shown++] = r;
    else
        a->shown[ACTIVE_SHOWN - 1] = screen_rect_join(a->shown[ACTIVE_SHOWN - 1], r);
}

/* Shows the window's inside r and the menus and popups within REACH pixels of it. Returns the rectangle that
 * covers them. */
static struct screen_rect show_with_popups(struct screen *s, struct screen_rect r)
{
    struct screen_top tops[SCREEN_TOPS];
    struct screen_rect all = r, near = {r.x - REACH, r.y - REACH, r.w + 2 * REACH, r.h + 2 * REACH};
    show_area(&s->active, r);
    for (int i = s->ops->tops(s, tops); i-- > 0;) { /* bottommost first */
        struct screen_rect popup = tops[i].rect, common = screen_rect_intersect(near, popup);
        if (!tops[i].popup || popup.w < MIN_POPUP || popup.h < MIN_POPUP)
            continue;
        popup = screen_rect_intersect(s->root_rect, popup);
        if (common.w && common.h && popup.w && popup.h) {
            show_area(&s->active, popup);
            all = screen_rect_join(all, popup);
        }
    }
    return all;
}

void active_view_pick(struct screen *s)
{
    struct screen_window w;
    s->active = (struct active_view){0};
    s->view = s->root_rect;
    if (screen_focused_window(s, &w) || !w.id)
        return;
    struct screen_rect r = screen_rect_intersect(s->root_rect, s->ops->without_shadow(s, &w));
    if (r.w && r.h)
        r = show_with_popups(s, r);
    if (!r.w || !r.h)
        return;
    grow(&r.x, &r.w, s->root_rect.w);
    grow(&r.y, &r.h, s->root_rect.h);
    s->active.window = w.id;
    s->active.rect = w.rect;
    for (int i = 0; i < s->active.n_shown; i++) {
        s->active.shown[i].x -= r.x;
        s->active.shown[i].y -= r.y;
    }
    s->view = r;
}

void active_view_pad(const struct screen *s, struct image *im)
{
    bool shown[PADDED_WIDTH];
    int w = int_min(im->w, PADDED_WIDTH);
    for (int y = 0; s->active.n_shown && y < im->h; y++) {
        memset(shown, 0, sizeof shown);
        for (int i = 0; i < s->active.n_shown; i++) {
            const struct screen_rect *r = &s->active.shown[i];
            for (int x = int_max(r->x, 0); y >= r->y && y < r->y + r->h && x < int_min(r->x + r->w, w); x++)
                shown[x] = true;
        }
        for (int x = 0; x < w; x++)
            if (!shown[x])
                memset(im->rgb + 3 * ((size_t)y * (size_t)im->w + (size_t)x), PADDING, 3);
    }
}

bool screen_shows(const struct screen *s, int x, int y)
{
    bool shown = s->active.n_shown == 0;
    for (int i = 0; i < s->active.n_shown; i++)
        shown = shown || screen_rect_contains(s->active.shown[i], x, y);
    return shown;
}

void active_view_follow(struct screen *s)
{
    struct screen_rect now;
    if (!s->active.window || screen_window_rect(s, s->active.window, &now))
        return; /* closed: the content of the screenshot has not moved */
    struct screen_rect *was = &s->active.rect, moved = s->view;
    moved.x += now.x - was->x;
    moved.y += now.y - was->y;
    if (now.w != was->w || now.h != was->h) { /* resized: positions in the screenshot are no longer valid */
        moved.w += now.w - was->w;
        moved.h += now.h - was->h;
    }
    moved = screen_rect_intersect(s->root_rect, moved);
    if (!moved.w || !moved.h)
        return;
    s->view = moved;
    *was = now;
}
