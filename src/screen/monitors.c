/* monitors.c - the root window, its monitors, and the view.
 *
 * A view is a rectangle of the root: all of it, one monitor, a given window, or the active window
 * (active_view.c). Monitors change during a run and windows move, so the rectangle is read again before each
 * screenshot. */
#include "screen/private.h"

#include "base/buf.h"
#include "base/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct screen_rect screen_rect_intersect(struct screen_rect a, struct screen_rect b)
{
    int x = a.x > b.x ? a.x : b.x, y = a.y > b.y ? a.y : b.y;
    int right = a.x + a.w < b.x + b.w ? a.x + a.w : b.x + b.w;
    int bottom = a.y + a.h < b.y + b.h ? a.y + a.h : b.y + b.h;
    return (struct screen_rect){x, y, right > x ? right - x : 0, bottom > y ? bottom - y : 0};
}

struct screen_rect screen_rect_join(struct screen_rect a, struct screen_rect b)
{
    int x = int_min(a.x, b.x), y = int_min(a.y, b.y);
    return (struct screen_rect){x, y, int_max(a.x + a.w, b.x + b.w) - x, int_max(a.y + a.h, b.y + b.h) - y};
}

bool screen_rect_contains(struct screen_rect r, int x, int y)
{
    return x >= r.x && y >= r.y && x < r.x + r.w && y < r.y + r.h;
}

static int view_of_window(struct screen *s, const char *id, struct err *e)
{
    char *end;
    errno = 0;
    unsigned long w = strtoul(id, &end, 0);
    if (errno || end == id || *end || !w || w > UINT32_MAX)
        return err_set(e, ERR_USAGE, "view 'window:%s': not a window id; xwininfo prints them (0x1400003)",
                       id);
    s->view_window = w;

    struct screen_rect r;
    bool visible;
    if (s->ops->window_rect(s, w, &r, &visible))
        return screen_alive(s, e) ? -1
                                  : err_set(e, ERR_ENV, "window 0x%lx not found on display '%s'", w, s->name);
    if (!visible)
        return err_set(e, ERR_ENV, "window 0x%lx is not visible; map or unhide it first", w);
    s->view = screen_rect_intersect(s->root_rect, r);
    if (!s->view.w || !s->view.h)
        return err_set(e, ERR_ENV, "window 0x%lx is outside the screen", w);
    return 0;
}

static int view_of_monitor(struct screen *s, struct err *e)
{
    char *end;
    long n = strtol(s->view_name, &end, 10);
    bool number = *s->view_name && !*end;
    char names[256] = "";
    size_t len = 0;
    for (int i = 0; i < s->n_monitors; i++) {
        const struct monitor *m = &s->monitors[i];
        if (number ? n == i : !strcmp(m->name, s->view_name)) {
            s->view = screen_rect_intersect(s->root_rect, m->rect);
            return 0;
        }
        if (len < sizeof names)
            len += (size_t)snprintf(names + len, sizeof names - len, "%s%d or %s", i ? ", " : "", i, m->name);
    }
    return err_set(e, ERR_USAGE, "no monitor '%s' on display '%s'; use one of: all, active, window:ID, %s",
                   s->view_name, s->name, names);
}

int monitors_update(struct screen *s, struct err *e)
{
    if (s->ops->outputs(s))
        return screen_alive(s, e) ? -1
                                  : err_set(e, ERR_ENV, "display '%s' does not report its size", s->name);
    if (!strncmp(s->view_name, "window:", 7))
        return view_of_window(s, s->view_name + 7, e);
    if (view_is_active(s)) {
        active_view_pick(s);
        return 0;
    }
    if (!strcmp(s->view_name, "all")) {
        s->view = s->root_rect;
        return 0;
    }
    return view_of_monitor(s, e);
}

bool view_is_active(const struct screen *s)
{
    return !strcmp(s->view_name, "active");
}

struct screen_rect screen_view(const struct screen *s)
{
    return s->view;
}

int screen_view_now(struct screen *s, struct screen_rect *out, struct err *e)
{
    struct err why = ERR_INIT;
    if (screen_alive(s, e))
        return -1;
    screen_pump(s);
    /* The server sends no event when a window of another client moves. */
    if ((s->view_window || s->view_gone) && monitors_update(s, &why))
        return err_set(e, ERR_ENV, "%s", why.text); /* not ERR_USAGE: the view was valid before */
    if (view_is_active(s))
        active_view_follow(s);
    *out = s->view;
    return 0;
}

struct screen_rect screen_root(const struct screen *s)
{
    return s->root_rect;
}

bool screen_visible(const struct screen *s, int x, int y)
{
    for (int i = 0; i < s->n_monitors; i++)
        if (screen_rect_contains(s->monitors[i].rect, x, y))
            return true;
    return false;
}

void monitors_describe(const struct screen *s, struct buf *out)
{
    for (int i = 0; i < s->n_monitors; i++)
        buf_printf(out, "monitor %d: %s %dx%d+%d+%d%s\n", i, s->monitors[i].name, s->monitors[i].rect.w,
                   s->monitors[i].rect.h, s->monitors[i].rect.x, s->monitors[i].rect.y,
                   s->monitors[i].primary ? " primary" : "");
    buf_printf(out, "view: %s %dx%d+%d+%d\n", s->view_name, s->view.w, s->view.h, s->view.x, s->view.y);
}
