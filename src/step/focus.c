/* focus.c - see focus.h.
 *
 * A window manager is asked as a pager asks it: that is heeded whenever it comes, while a program that asks for itself
 * may be refused when another window was used last, and the agent has just used one.
 */
#include "step/focus.h"

#include "base/clock.h"
#include "base/err.h"
#include "screen/xtrap.h"

#include <X11/Xatom.h>
#include <stdlib.h>

enum { PAGER = 2, WAIT_MS = 500, STEP_MS = 5 };

struct focus {
    Display *dpy;
    atomic_bool lost;
    Atom active, manager;
    Window before; /* who gets it back; None: nobody had it */
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
    XCloseDisplay(f->dpy);
    free(f);
}

static Window of_root(struct focus *f, Atom name)
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

static bool managed(struct focus *f)
{
    return of_root(f, f->manager) != None;
}

static Window holder(struct focus *f)
{
    Window w = None;
    int revert;
    if (managed(f))
        return of_root(f, f->active);
    XGetInputFocus(f->dpy, &w, &revert);
    return w;
}

/* w: None for the pointer's window, as where nobody had it. */
static void hand(struct focus *f, Window w)
{
    Window root = DefaultRootWindow(f->dpy);
    XEvent ev = {.xclient = {.type = ClientMessage,
                             .window = w,
                             .message_type = f->active,
                             .format = 32,
                             .data.l = {PAGER, CurrentTime}}};
    if (w != None && managed(f))
        XSendEvent(f->dpy, root, False, SubstructureNotifyMask | SubstructureRedirectMask, &ev);
    else
        XSetInputFocus(f->dpy, w == None ? PointerRoot : w, RevertToPointerRoot, CurrentTime);
}

static bool arrives(struct focus *f, Window w)
{
    for (int64_t since = clock_ns(); !f->lost && clock_ms_since(since) < WAIT_MS; clock_sleep_ms(STEP_MS))
        if (holder(f) == w)
            return true;
    return false;
}

void focus_remember(struct focus *f, unsigned long ours)
{
    struct xtrap trap;
    if (!f || f->lost)
        return;
    xtrap_begin(&trap, f->dpy);
    Window now = holder(f);
    if (now != ours)
        f->before = now;
    xtrap_end(&trap);
}

void focus_take(struct focus *f, unsigned long ours)
{
    struct xtrap trap;
    if (!f || f->lost)
        return;
    xtrap_begin(&trap, f->dpy);
    if (holder(f) != ours)
        hand(f, ours);
    xtrap_end(&trap);
}

void focus_give_back(struct focus *f, unsigned long ours)
{
    struct xtrap trap;
    if (!f || f->lost)
        return;
    xtrap_begin(&trap, f->dpy);
    Window now = holder(f);
    if (now != f->before && (now == ours || f->before != None)) {
        hand(f, f->before);
        if (f->before != None && !arrives(f, f->before) && holder(f) == ours)
            hand(f, None); /* that one is gone, or does not want it */
    }
    xtrap_end(&trap);
}
