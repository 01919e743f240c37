/* hit_test.c - finds the application window that a pointer or key event would reach.
 *
 * Searching from the deepest window upwards, the first one with a WM_CLASS is the application window. Frames
 * of window managers have no class: then the application window is searched inside the frame. Clients set all
 * these properties themselves, and any window may vanish between two requests. */
#include "screen/x11/x11_impl.h"

#include <X11/Xatom.h>
#include <X11/Xlib-xcb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xcb/xcb.h>

enum { INSIDE_DEPTH = 4, INSIDE_WINDOWS = 200, FIND_WINDOWS = 5000 };

static bool has_class(struct screen *s, Window w)
{
    char class[128];
    window_class(s, w, class, sizeof class);
    return class[0] != 0;
}

/* Returns the topmost application window inside a frame, or None. */
static Window client_inside(struct screen *s, Window w, int depth, int *budget)
{
    Window root, parent, *children = NULL, found = None;
    unsigned n = 0;
    if (depth > INSIDE_DEPTH || --*budget < 0 || !XQueryTree(s->x11->dpy, w, &root, &parent, &children, &n))
        return None;
    for (unsigned i = n; i-- > 0 && !found;)
        found = has_class(s, children[i]) ? children[i] : client_inside(s, children[i], depth + 1, budget);
    if (children)
        XFree(children);
    return found;
}

/* Returns the application window in a chain that begins with a child of the root. */
static Window program_window(struct screen *s, const Window *chain, int n)
{
    int budget = INSIDE_WINDOWS;
    for (int i = n - 1; i >= 0; i--)
        if (has_class(s, chain[i]))
            return chain[i];
    Window found = n ? client_inside(s, chain[0], 0, &budget) : None;
    return found ? found : n ? chain[0] : None;
}

int hit_test_chain(struct screen *s, int x, int y, Window *chain, int max)
{
    Window w = s->x11->root, child = None;
    int n = 0, wx, wy;
    while (n < max && XTranslateCoordinates(s->x11->dpy, s->x11->root, w, x, y, &wx, &wy, &child) && child)
        chain[n++] = w = child;
    return n;
}

/* Lists the window's ancestors from the child of the root down to the window itself. Returns their number. */
static int chain_of(struct screen *s, Window w, Window chain[WINDOW_DEPTH])
{
    int n = 0;
    while (w && w != s->x11->root && n < WINDOW_DEPTH) {
        Window root, parent = None, *children = NULL;
        unsigned count;
        memmove(chain + 1, chain, (size_t)n * sizeof *chain);
        chain[0] = w;
        n++;
        if (!XQueryTree(s->x11->dpy, w, &root, &parent, &children, &count))
            break;
        if (children)
            XFree(children);
        w = parent;
    }
    return n;
}

/* ---- properties -------------------------------------------------------------------------------------- */

/* Returns whether the window's client runs on this machine; only then its pid is a local one. */
static bool is_local(struct screen *s, Window w)
{
    char machine[256], own[256] = "";
    window_text(s, w, "WM_CLIENT_MACHINE", machine, sizeof machine);
    gethostname(own, sizeof own - 1);
    return !machine[0] || !strcmp(machine, own) || !strcmp(machine, "localhost");
}

int hit_test_pid(struct screen *s, Window w)
{
    int pid = (int)window_property(s, w, "_NET_WM_PID", XA_CARDINAL);
    return pid > 0 && is_local(s, w) ? pid : 0;
}

static void program_of(int pid, char *out, size_t size)
{
    char link[64];
    out[0] = 0;
    if (!pid)
        return;
    snprintf(link, sizeof link, "/proc/%d/exe", pid);
    ssize_t n = readlink(link, out, size - 1);
    out[n > 0 ? n : 0] = 0;
}

static bool rect_of(struct screen *s, Window w, XWindowAttributes *a, struct screen_rect *out)
{
    Window child;
    if (!XGetWindowAttributes(s->x11->dpy, w, a) ||
        !XTranslateCoordinates(s->x11->dpy, w, s->x11->root, 0, 0, &out->x, &out->y, &child))
        return false;
    out->w = a->width;
    out->h = a->height;
    return true;
}

static bool is_dialog(struct screen *s, Window w)
{
    Atom type = (Atom)window_property(s, w, "_NET_WM_WINDOW_TYPE", XA_ATOM);
    return window_property(s, w, "WM_TRANSIENT_FOR", XA_WINDOW) != 0 ||
           (type && type == XInternAtom(s->x11->dpy, "_NET_WM_WINDOW_TYPE_DIALOG", False));
}

void hit_test_describe(struct screen *s, Window w, struct screen_window *out)
{
    XWindowAttributes attributes = {0};
    *out = (struct screen_window){.id = w, .pid = hit_test_pid(s, w), .dialog = is_dialog(s, w)};
    window_title(s, w, out->title, sizeof out->title);
    window_class(s, w, out->class, sizeof out->class);
    program_of(out->pid, out->program, sizeof out->program);
    rect_of(s, w, &attributes, &out->rect);
}

/* ---- interface -------------------------------------------------------------------------------------- */

/* Describes w in *out unless it is None, and ends the trap. Returns -1 if w is None or gone. */
static int end_query(struct screen *s, struct xtrap *trap, Window w, struct screen_window *out)
{
    *out = (struct screen_window){0};
    if (w)
        hit_test_describe(s, w, out);
    return xtrap_end(trap) || !w ? -1 : 0;
}

int hit_test_window(struct screen *s, unsigned long id, struct screen_window *out)
{
    struct xtrap trap;
    xtrap_begin(&trap, s->x11->dpy);
    return end_query(s, &trap, id, out);
}

void hit_test_window_at(struct screen *s, int x, int y, struct screen_window *out)
{
    Window chain[WINDOW_DEPTH];
    struct xtrap trap;
    xtrap_begin(&trap, s->x11->dpy);
    end_query(s, &trap, program_window(s, chain, hit_test_chain(s, x, y, chain, WINDOW_DEPTH)), out);
}

int hit_test_at_point(struct screen *s, int x, int y, unsigned long *out, int max)
{
    struct xtrap trap;
    if (max == 1) /* the root always exists */
        return hit_test_chain(s, x, y, out, 1);
    xtrap_begin(&trap, s->x11->dpy);
    int n = hit_test_chain(s, x, y, out, max);
    xtrap_end(&trap);
    return n;
}

static Window window_under_pointer(struct screen *s)
{
    Window chain[WINDOW_DEPTH];
    int x, y;
    return screen_pointer(s, &x, &y) == 0
               ? program_window(s, chain, hit_test_chain(s, x, y, chain, WINDOW_DEPTH))
               : None;
}

int hit_test_focus(struct screen *s, Window chain[WINDOW_DEPTH])
{
    Window focus = None;
    int revert, x, y;
    XGetInputFocus(s->x11->dpy, &focus, &revert);
    if (focus == PointerRoot || focus == s->x11->root) /* the window under the pointer receives keys */
        return screen_pointer(s, &x, &y) == 0 ? hit_test_chain(s, x, y, chain, WINDOW_DEPTH) : 0;
    return focus != None ? chain_of(s, focus, chain) : 0;
}

static Window focused_window(struct screen *s)
{
    Window chain[WINDOW_DEPTH];
    return program_window(s, chain, hit_test_focus(s, chain));
}

bool hit_test_java(struct screen *s)
{
    Window chain[WINDOW_DEPTH];
    char class[128] = "";
    struct xtrap trap;
    if (s->lost)
        return false;
    xtrap_begin(&trap, s->x11->dpy);
    for (int i = hit_test_focus(s, chain); i-- > 0 && strcmp(class, "FocusProxy") != 0;)
        window_class(s, chain[i], class, sizeof class);
    xtrap_end(&trap);
    return !strcmp(class, "FocusProxy"); /* AWT gives the focus to this child of each of its windows */
}

void hit_test_focused(struct screen *s, struct screen_window *out)
{
    struct xtrap trap;
    xtrap_begin(&trap, s->x11->dpy);
    end_query(s, &trap, focused_window(s), out);
}

unsigned long hit_test_focus_top(struct screen *s)
{
    Window chain[WINDOW_DEPTH];
    struct xtrap trap;
    xtrap_begin(&trap, s->x11->dpy);
    int n = hit_test_focus(s, chain);
    xtrap_end(&trap);
    return n ? chain[0] : None;
}

unsigned long hit_test_input_focus(struct screen *s, unsigned *opened)
{
    Window focus = None;
    int revert;
    XEvent ev; /* all events before the reply have been read; other types wait for screen_pump() */
    XGetInputFocus(s->x11->dpy, &focus, &revert);
    while (!s->lost && XCheckTypedEvent(s->x11->dpy, MapNotify, &ev))
        s->x11->opened += ev.xmap.override_redirect != 0;
    *opened = s->x11->opened;
    return focus == PointerRoot || focus == s->x11->root ? None : focus;
}

/* Finds a window of this class, topmost first. Returns true, and stops, at one with the title. */
static bool find_class(struct screen *s, Window w, int depth, int *budget, const char *class,
                       const char *title, Window *found)
{
    XWindowAttributes a;
    char text[512];
    Window root, parent, *children = NULL;
    unsigned n = 0;
    bool exact = false;
    if (depth > INSIDE_DEPTH || --*budget < 0 || !XGetWindowAttributes(s->x11->dpy, w, &a) ||
        a.map_state != IsViewable)
        return false;
    window_class(s, w, text, sizeof text);
    if (depth && !strcmp(text, class)) {
        window_title(s, w, text, sizeof text);
        exact = !strcmp(text, title);
        *found = exact || !*found ? w : *found;
    }
    if (!exact && XQueryTree(s->x11->dpy, w, &root, &parent, &children, &n))
        for (unsigned i = n; i-- > 0 && !exact;)
            exact = find_class(s, children[i], depth + 1, budget, class, title, found);
    if (children)
        XFree(children);
    return exact;
}

int hit_test_find(struct screen *s, const char *class, const char *title, struct screen_window *out)
{
    struct xtrap trap;
    Window w = None;
    int budget = FIND_WINDOWS;
    xtrap_begin(&trap, s->x11->dpy);
    find_class(s, s->x11->root, 0, &budget, class, title, &w);
    end_query(s, &trap, w, out);
    return w ? 0 : -1;
}

/* Lists the visible children of the root, topmost first. Returns their number. Needs two round trips. */
int hit_test_tops(struct screen *s, struct screen_top out[SCREEN_TOPS])
{
    xcb_connection_t *c = XGetXCBConnection(s->x11->dpy);
    xcb_query_tree_reply_t *tree =
        xcb_query_tree_reply(c, xcb_query_tree(c, (xcb_window_t)s->x11->root), NULL);
    int n = 0, total = tree ? xcb_query_tree_children_length(tree) : 0;
    xcb_window_t *children = tree ? xcb_query_tree_children(tree) : NULL;
    xcb_get_window_attributes_cookie_t *a = xmalloc((unsigned long)total + 1, sizeof *a);
    xcb_get_geometry_cookie_t *g = xmalloc((unsigned long)total + 1, sizeof *g);
    for (int i = 0; i < total; i++) {
        a[i] = xcb_get_window_attributes(c, children[i]);
        g[i] = xcb_get_geometry(c, children[i]);
    }
    for (int i = total; i-- > 0;) {
        xcb_generic_error_t *gone[2] = {NULL, NULL};
        xcb_get_window_attributes_reply_t *is = xcb_get_window_attributes_reply(c, a[i], &gone[0]);
        xcb_get_geometry_reply_t *at = xcb_get_geometry_reply(c, g[i], &gone[1]);
        if (is && at && is->map_state == XCB_MAP_STATE_VIEWABLE && n < SCREEN_TOPS)
            out[n++] = (struct screen_top){
                children[i],
                {at->x, at->y, at->width + 2 * at->border_width, at->height + 2 * at->border_width},
                is->override_redirect && is->_class == XCB_WINDOW_CLASS_INPUT_OUTPUT};
        free(is);
        free(at);
        free(gone[0]);
        free(gone[1]);
    }
    free(a);
    free(g);
    free(tree);
    return n;
}

int hit_test_pids(struct screen *s, int pids[2])
{
    struct xtrap trap;
    int n = 0;
    if (s->lost)
        return 0;
    xtrap_begin(&trap, s->x11->dpy);
    const Window windows[2] = {focused_window(s), window_under_pointer(s)};
    for (int i = 0; i < 2; i++) {
        int pid = windows[i] && (!i || windows[1] != windows[0]) ? hit_test_pid(s, windows[i]) : 0;
        if (pid)
            pids[n++] = pid;
    }
    xtrap_end(&trap);
    return n;
}

int hit_test_rect(struct screen *s, unsigned long id, struct screen_rect *out, bool *visible)
{
    struct xtrap trap;
    XWindowAttributes a = {0};
    xtrap_begin(&trap, s->x11->dpy);
    bool ok = rect_of(s, id, &a, out);
    *visible = a.map_state == IsViewable;
    return xtrap_end(&trap) || !ok ? -1 : 0;
}
