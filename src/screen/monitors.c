/* monitors.c - the root window, its monitors, and the view.
 *
 * A view is a rectangle of the root: all of it, one monitor, a given window, or the active window
 * (active_view.c). Monitors change during a run (RRScreenChangeNotify) and windows move, so the rectangle is
 * read again before each screenshot. */
#include "screen/private.h"

#include "base/number.h"

#include <X11/extensions/Xrandr.h>
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

static void read_monitors(struct screen *s)
{
    s->n_monitors = 0;
    int n = 0;
    XRRMonitorInfo *list = s->randr_event ? XRRGetMonitors(s->dpy, s->root, True, &n) : NULL;
    for (int i = 0; list && i < n && s->n_monitors < MAX_MONITORS; i++) {
        struct monitor *m = &s->monitors[s->n_monitors++];
        char *name = XGetAtomName(s->dpy, list[i].name);
        snprintf(m->name, sizeof m->name, "%s", name ? name : "?");
        if (name)
            XFree(name);
        m->rect = (struct screen_rect){list[i].x, list[i].y, list[i].width, list[i].height};
        m->primary = list[i].primary;
    }
    if (list)
        XRRFreeMonitors(list);
    if (!s->n_monitors) {
        s->monitors[0] = (struct monitor){.name = "default", .rect = s->root_rect, .primary = true};
        s->n_monitors = 1;
    }
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

    struct xtrap t;
    XWindowAttributes a = {0};
    int x = 0, y = 0;
    Window child;
    xtrap_begin(&t, s->dpy);
    Status ok = XGetWindowAttributes(s->dpy, w, &a) &&
                XTranslateCoordinates(s->dpy, w, s->root, 0, 0, &x, &y, &child);
    if (xtrap_end(&t) || !ok) {
        if (screen_alive(s, e))
            return -1;
        return err_set(e, ERR_ENV, "window 0x%lx not found on display '%s'", w, s->name);
    }
    if (a.map_state != IsViewable)
        return err_set(e, ERR_ENV, "window 0x%lx is not visible; map or unhide it first", w);
    s->view = screen_rect_intersect(s->root_rect, (struct screen_rect){x, y, a.width, a.height});
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
    struct xtrap t;
    XWindowAttributes a = {0};
    xtrap_begin(&t, s->dpy);
    Status ok = XGetWindowAttributes(s->dpy, s->root, &a);
    read_monitors(s);
    if (xtrap_end(&t) || !ok)
        return screen_alive(s, e) ? -1
                                  : err_set(e, ERR_ENV, "display '%s' does not report its size", s->name);
    s->root_rect = (struct screen_rect){0, 0, a.width, a.height};
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
    for (int i = 0; i < s->n_monitors; i++) {
        struct screen_rect r = s->monitors[i].rect;
        if (x >= r.x && y >= r.y && x < r.x + r.w && y < r.y + r.h)
            return true;
    }
    return false;
}
