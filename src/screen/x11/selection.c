/* selection.c - reads the text of selections, and takes PRIMARY to learn which program selects text next. */
#include "screen/x11/x11_impl.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <X11/Xatom.h>
#include <poll.h>
#include <stdlib.h>

enum { SELECTION_MS = 300, LOOK_MS = 2, SELECTION_MAX = 1 << 20 };

/* Converts Latin-1 to UTF-8; the caller frees the result. */
static char *from_latin1(const unsigned char *data, unsigned long n)
{
    char *out = xmalloc(2 * n + 1, 1), *to = out;
    for (unsigned long i = 0; i < n && data[i]; i++)
        to += utf8_encode(data[i], to);
    *to = 0;
    return out;
}

/* Returns the text of the property that the selection owner has written; NULL if it is not text. */
static char *take_property(struct screen *s, Window w, Atom property)
{
    Atom type = None, utf8 = XInternAtom(s->x11->dpy, "UTF8_STRING", False);
    int format = 0;
    unsigned long n = 0, after = 0;
    unsigned char *data = NULL;
    char *text = NULL;
    if (XGetWindowProperty(s->x11->dpy, w, property, 0, SELECTION_MAX / 4, True, AnyPropertyType, &type,
                           &format, &n, &after, &data) == Success &&
        data && format == 8 && !after && (type == utf8 || type == XA_STRING)) {
        bool valid = type == utf8 && utf8_valid_prefix((const char *)data, n) == n;
        text = valid ? xasprintf("%.*s", (int)n, (const char *)data) : from_latin1(data, n);
    }
    if (data)
        XFree(data);
    return text;
}

/* Returns the selection in one format; NULL if its owner does not offer it or does not answer in time. */
static char *convert(struct screen *s, Window w, Atom selection, Atom target)
{
    Atom property = XInternAtom(s->x11->dpy, "HOLORUN_SELECTION", False);
    int64_t start = clock_ns();
    XEvent ev;
    XConvertSelection(s->x11->dpy, selection, target, property, w, CurrentTime);
    XFlush(s->x11->dpy);
    while (!XCheckTypedWindowEvent(s->x11->dpy, w, SelectionNotify, &ev)) {
        if (s->lost || clock_ms_since(start) > SELECTION_MS)
            return NULL;
        struct pollfd answer = {ConnectionNumber(s->x11->dpy), POLLIN, 0};
        poll(&answer, 1, LOOK_MS); /* another event may be in the queue already */
    }
    return ev.xselection.property ? take_property(s, w, property) : NULL;
}

int selection_read(struct screen *s, bool primary, char **text)
{
    Atom selection = primary ? XA_PRIMARY : XInternAtom(s->x11->dpy, "CLIPBOARD", False);
    Window owner = XGetSelectionOwner(s->x11->dpy, selection);
    if (!owner)
        *text = xstrdup("");
    else if (owner == s->x11->paste_window && s->x11->offered)
        *text = xstrdup(s->x11->offered);
    if (*text)
        return 0;
    struct xtrap trap;
    xtrap_begin(&trap, s->x11->dpy);
    Window w = XCreateSimpleWindow(s->x11->dpy, s->x11->root, -10, -10, 1, 1, 0, 0, 0);
    *text = convert(s, w, selection, XInternAtom(s->x11->dpy, "UTF8_STRING", False));
    if (!*text)
        *text = convert(s, w, selection, XA_STRING);
    XDestroyWindow(s->x11->dpy, w);
    xtrap_end(&trap);
    return *text ? 0 : -1;
}

void selection_take_primary(struct screen *s, bool on)
{
    struct x11 *x = s->x11;
    if (on && !x->primary_window)
        x->primary_window = XCreateSimpleWindow(x->dpy, x->root, -10, -10, 1, 1, 0, 0, 0);
    if (on)
        XSetSelectionOwner(x->dpy, XA_PRIMARY, x->primary_window, CurrentTime);
    else if (x->primary_window)
        selection_close(s); /* the server revokes the selection of a destroyed window */
    XSync(x->dpy, False);
}

bool selection_primary_taken(struct screen *s)
{
    Window owner = XGetSelectionOwner(s->x11->dpy, XA_PRIMARY);
    return owner && owner != s->x11->primary_window;
}

void selection_close(struct screen *s)
{
    if (s->x11->primary_window && !s->lost)
        XDestroyWindow(s->x11->dpy, s->x11->primary_window);
    s->x11->primary_window = None;
}
