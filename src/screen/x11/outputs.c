/* outputs.c - the root window and its monitors. */
#include "screen/x11/x11_impl.h"

#include <X11/extensions/Xrandr.h>
#include <stdio.h>

static void read_monitors(struct screen *s)
{
    s->n_monitors = 0;
    int n = 0;
    XRRMonitorInfo *list = s->x11->randr_event ? XRRGetMonitors(s->x11->dpy, s->x11->root, True, &n) : NULL;
    for (int i = 0; list && i < n && s->n_monitors < MAX_MONITORS; i++) {
        struct monitor *m = &s->monitors[s->n_monitors++];
        char *name = XGetAtomName(s->x11->dpy, list[i].name);
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

int x11_outputs(struct screen *s)
{
    struct xtrap t;
    XWindowAttributes a = {0};
    xtrap_begin(&t, s->x11->dpy);
    Status ok = XGetWindowAttributes(s->x11->dpy, s->x11->root, &a);
    if (ok)
        s->root_rect = (struct screen_rect){0, 0, a.width, a.height};
    read_monitors(s);
    return xtrap_end(&t) || !ok ? -1 : 0;
}
