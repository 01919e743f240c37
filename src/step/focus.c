/* focus.c - moves the input focus between the step window and the agent's window; see window_impl.h.
 *
 * Requests to the window manager use the source indication of a pager: those of an application may be refused
 * if another window was used last, and the agent has just used one. */
#include "step/window_impl.h"

#include "base/clock.h"
#include "base/err.h"
#include "screen/x11/xtrap.h"

#include <X11/Xatom.h>
#include <stdlib.h>

enum { PAGER = 2, WAIT_MS = 500, STEP_MS = 5 };

struct focus {
    Display *dpy;
    atomic_bool lost;
    Atom active, manager;
    Window before; /* gets the focus back; None: no window had it */
};

struct focus *focus_open(const char *display)
{
    struct focus *f = xcalloc(1, sizeof *f);
    f->dpy = xtrap_open(display, &f->lost);
    if (!f->dpy) {
        free(f);
        return NULL;
    }
    f->active = XInternAtom(f->dpy, "_NET_ACTIVE_WINDOW", False);
    f->manager = XInternAtom(f->dpy, "_NET_SUPPORTING_WM_CHECK", False);
    return f;
}

void focus_close(struct focus *f)
{
    if (!f)
        return;
    xtrap_close(f->dpy, &f->lost);
    free(f);
}

static Window root_property(struct focus *f, Atom name)
{
    Atom type;
    int format;
    unsigned long n = 0, more;
    unsigned char *data = NULL;
    Window w = None;
    if (XGetWindowProperty(f->dpy, DefaultRootWindow(f->dpy), name, 0, 1, False, XA_WINDOW, &type, &format,
                           &n, &more, &data) == Success &&
        format == 32 && n == 1)
        w = *(Window *)data;
    if (data)
        XFree(data);
    return w;
}

static bool has_window_manager(struct focus *f)
{
    return root_property(f, f->manager) != None;
}

static Window focused_window(struct focus *f)
{
    Window w = None;
    int revert;
    if (has_window_manager(f))
        return root_property(f, f->active);
    XGetInputFocus(f->dpy, &w, &revert);
    return w;
}

/* Focuses a window; None: the window under the pointer. */
static void focus_window(struct focus *f, Window w)
{
    Window root = DefaultRootWindow(f->dpy);
    XEvent ev = {.xclient = {.type = ClientMessage,
                             .window = w,
                             .message_type = f->active,
                             .format = 32,
                             .data.l = {PAGER, CurrentTime}}};
    if (w != None && has_window_manager(f))
        XSendEvent(f->dpy, root, False, SubstructureNotifyMask | SubstructureRedirectMask, &ev);
    else
        XSetInputFocus(f->dpy, w == None ? PointerRoot : w, RevertToPointerRoot, CurrentTime);
}

static bool wait_for_focus(struct focus *f, Window w)
{
    for (int64_t since = clock_ns(); !f->lost && clock_ms_since(since) < WAIT_MS; clock_sleep_ms(STEP_MS))
        if (focused_window(f) == w)
            return true;
    return false;
}

static bool begin(struct focus *f, struct xtrap *trap)
{
    if (!f || f->lost)
        return false;
    xtrap_begin(trap, f->dpy);
    return true;
}

void focus_remember(struct focus *f, unsigned long ours)
{
    struct xtrap trap;
    if (!begin(f, &trap))
        return;
    Window now = focused_window(f);
    if (now != ours)
        f->before = now;
    xtrap_end(&trap);
}

void focus_take(struct focus *f, unsigned long ours)
{
    struct xtrap trap;
    if (!begin(f, &trap))
        return;
    if (focused_window(f) != ours)
        focus_window(f, ours);
    xtrap_end(&trap);
}

void focus_give_back(struct focus *f, unsigned long ours)
{
    struct xtrap trap;
    if (!begin(f, &trap))
        return;
    Window now = focused_window(f);
    if (now != f->before && (now == ours || f->before != None)) {
        focus_window(f, f->before);
        if (f->before != None && !wait_for_focus(f, f->before) && focused_window(f) == ours)
            focus_window(f, None); /* it was closed or refuses the focus */
    }
    xtrap_end(&trap);
}
