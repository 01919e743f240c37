/* window.c - the active window, titles and classes, listing of windows.
 *
 * Properties are read with a size limit. Any window may vanish between two requests, so all look-ups are made
 * inside an error trap. */
#include "screen/x11/x11_impl.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <X11/Xatom.h>
#include <stdio.h>
#include <string.h>

enum {
    TITLE_MAX = 4096,
    PROPERTY_LONGS = TITLE_MAX / 4,
    TREE_WINDOWS = 20000,
    TREE_DEPTH = 32,
    MAP_MS = 150, /* time for a window manager to show a window */
};

/* ---- properties ------------------------------------------------------------------------------- */

/* Reads up to 4 KB of a property of 8-bit elements as valid UTF-8; "" if there is none. */
static void text_property(struct screen *s, Window w, Atom name, char *out, size_t size)
{
    Atom type = None;
    int format = 0;
    unsigned long n = 0, after = 0;
    unsigned char *data = NULL;
    out[0] = 0;
    if (XGetWindowProperty(s->x11->dpy, w, name, 0, PROPERTY_LONGS, False, AnyPropertyType, &type, &format,
                           &n, &after, &data) != Success ||
        !data)
        return;
    if (format == 8 && type == XA_STRING) { /* Latin-1 */
        size_t len = 0;
        for (unsigned long i = 0; i < n && data[i]; i++) {
            char c[4];
            int k = utf8_encode(data[i], c);
            if (k <= 0 || len + (size_t)k >= size)
                break;
            memcpy(out + len, c, (size_t)k);
            len += (size_t)k;
        }
        out[len] = 0;
    } else if (format == 8) {
        size_t len = strnlen((const char *)data, n);
        len = len < size ? len : size - 1;
        len = utf8_valid_prefix((const char *)data, len);
        memcpy(out, data, len);
        out[len] = 0;
    }
    XFree(data);
}

void window_text(struct screen *s, Window w, const char *property, char *out, size_t size)
{
    text_property(s, w, XInternAtom(s->x11->dpy, property, False), out, size);
}

void window_title(struct screen *s, Window w, char *out, size_t size)
{
    text_property(s, w, XInternAtom(s->x11->dpy, "_NET_WM_NAME", False), out, size);
    if (!out[0])
        text_property(s, w, XA_WM_NAME, out, size);
}

/* Reads the second string of WM_CLASS, the name known to users. */
void window_class(struct screen *s, Window w, char *out, size_t size)
{
    XClassHint hint = {0};
    out[0] = 0;
    if (!XGetClassHint(s->x11->dpy, w, &hint))
        return;
    if (hint.res_class) {
        snprintf(out, size, "%s", hint.res_class);
        out[utf8_valid_prefix(out, strlen(out))] = 0;
    }
    if (hint.res_name)
        XFree(hint.res_name);
    if (hint.res_class)
        XFree(hint.res_class);
}

unsigned long window_property(struct screen *s, Window w, const char *name, Atom type)
{
    int format = 0;
    unsigned long n = 0, after = 0, value = 0;
    unsigned char *data = NULL;
    Atom found = None;
    if (XGetWindowProperty(s->x11->dpy, w, XInternAtom(s->x11->dpy, name, False), 0, 1, False, type, &found,
                           &format, &n, &after, &data) == Success &&
        data && format == 32 && n == 1)
        value = *(const unsigned long *)(const void *)data;
    if (data)
        XFree(data);
    return value;
}

static Window root_property(struct screen *s, const char *name)
{
    return window_property(s, s->x11->root, name, XA_WINDOW);
}

/* Returns w's rectangle without the shadow that GTK programs draw around their own frame. */
struct screen_rect window_without_shadow(struct screen *s, const struct screen_window *w)
{
    Atom type = None;
    int format = 0;
    unsigned long n = 0, after = 0;
    unsigned char *data = NULL;
    struct screen_rect r = w->rect;
    struct xtrap trap;
    xtrap_begin(&trap, s->x11->dpy);
    if (XGetWindowProperty(s->x11->dpy, w->id, XInternAtom(s->x11->dpy, "_GTK_FRAME_EXTENTS", False), 0, 4,
                           False, XA_CARDINAL, &type, &format, &n, &after, &data) == Success &&
        format == 32 && n == 4) {
        const long *at = (const long *)data; /* left, right, top, bottom */
        struct screen_rect inner = {r.x + (int)at[0], r.y + (int)at[2], r.w - (int)(at[0] + at[1]),
                                    r.h - (int)(at[2] + at[3])};
        if (at[0] >= 0 && at[2] >= 0 && inner.w > 0 && inner.h > 0)
            r = inner;
    }
    if (data)
        XFree(data);
    xtrap_end(&trap);
    return r;
}

/* ---- active window ---------------------------------------------------------------------------- */

/* Returns the deepest window under the pointer that has a title; used without a window manager. */
static Window named_under_pointer(struct screen *s)
{
    Window chain[WINDOW_DEPTH];
    char title[TITLE_MAX];
    int x, y;
    for (int i = screen_pointer(s, &x, &y) ? 0 : hit_test_chain(s, x, y, chain, WINDOW_DEPTH); i-- > 0;) {
        window_title(s, chain[i], title, sizeof title);
        if (title[0])
            return chain[i];
    }
    return None;
}

int window_active(struct screen *s, char *title, size_t title_size, char *class, size_t class_size)
{
    struct xtrap trap;
    xtrap_begin(&trap, s->x11->dpy);
    Window w = root_property(s, "_NET_ACTIVE_WINDOW");
    if (!w)
        w = named_under_pointer(s);
    if (w) {
        window_title(s, w, title, title_size);
        window_class(s, w, class, class_size);
    }
    xtrap_end(&trap);
    return w ? 0 : -1;
}

/* ---- search ----------------------------------------------------------------------------------- */

struct window_search {
    bool (*visit)(void *arg, const char *title, const char *class);
    void *arg;
    int budget; /* windows left */
    char title[TITLE_MAX], class[TITLE_MAX];
};

/* Visits visible windows, topmost first. Returns true once visit returns true. xdo_search_windows() is not
 * used: it frees an uninitialized pointer when a window vanishes during the search. */
static bool search(struct screen *s, struct window_search *q, Window w, int depth)
{
    XWindowAttributes a;
    if (--q->budget < 0 || depth > TREE_DEPTH || !XGetWindowAttributes(s->x11->dpy, w, &a) ||
        a.map_state != IsViewable || a.class == InputOnly)
        return false;
    /* off-screen helper windows of window managers */
    if (depth == 1 && (a.x + a.width <= 0 || a.y + a.height <= 0))
        return false;
    window_title(s, w, q->title, sizeof q->title);
    window_class(s, w, q->class, sizeof q->class);
    if ((q->title[0] || q->class[0]) && q->visit(q->arg, q->title, q->class))
        return true;
    Window root, parent, *children = NULL;
    unsigned n = 0;
    bool enough = false;
    if (XQueryTree(s->x11->dpy, w, &root, &parent, &children, &n))
        for (unsigned i = n; i-- > 0 && !enough;)
            enough = search(s, q, children[i], depth + 1);
    if (children)
        XFree(children);
    return enough;
}

int window_each(struct screen *s, bool (*visit)(void *arg, const char *title, const char *class), void *arg)
{
    struct window_search q = {.visit = visit, .arg = arg, .budget = TREE_WINDOWS};
    struct xtrap trap;
    xtrap_begin(&trap, s->x11->dpy);
    bool enough = search(s, &q, s->x11->root, 0);
    xtrap_end(&trap);
    return enough;
}

/* ---- window manager ------------------------------------------------------------------------------ */

void window_manager_name(struct screen *s, char *out, size_t size)
{
    struct xtrap trap;
    xtrap_begin(&trap, s->x11->dpy);
    Window w = root_property(s, "_NET_SUPPORTING_WM_CHECK");
    out[0] = 0;
    if (w)
        window_title(s, w, out, size);
    if (xtrap_end(&trap))
        out[0] = 0; /* the manager has exited */
    else if (w && !out[0])
        snprintf(out, size, "unnamed");
}

static bool is_redirected(struct screen *s)
{
    XWindowAttributes a = {0};
    return XGetWindowAttributes(s->x11->dpy, s->x11->root, &a) &&
           a.all_event_masks & SubstructureRedirectMask;
}

bool window_manager_redirects(struct screen *s)
{
    struct xtrap trap;
    xtrap_begin(&trap, s->x11->dpy);
    bool yes = is_redirected(s);
    return xtrap_end(&trap) == 0 && yes;
}

/* Maps a window. Returns whether it becomes viewable within MAP_MS. */
static bool shows_a_window(struct screen *s)
{
    XWindowAttributes a = {0};
    Window w = XCreateSimpleWindow(s->x11->dpy, s->x11->root, 0, 0, 1, 1, 0, 0, 0);
    XMapWindow(s->x11->dpy, w);
    for (int ms = 0; ms < MAP_MS && a.map_state != IsViewable && !s->lost; ms += 5) {
        if (!XGetWindowAttributes(s->x11->dpy, w, &a))
            break;
        clock_sleep_ms(a.map_state == IsViewable ? 0 : 5);
    }
    XDestroyWindow(s->x11->dpy, w);
    return a.map_state == IsViewable;
}

/* Returns whether a window manager is running: a client with SubstructureRedirect on the root. While it
 * starts it may lose map requests, so it counts as running once it shows a window of ours. */
bool window_manager_runs(struct screen *s)
{
    struct xtrap trap;
    xtrap_begin(&trap, s->x11->dpy);
    bool managed = is_redirected(s) && shows_a_window(s);
    return xtrap_end(&trap) == 0 && managed;
}
