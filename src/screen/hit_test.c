/* hit_test.c - finds the application window that a pointer or key event would reach.
 *
 * Searching from the deepest window upwards, the first one with a WM_CLASS is the application window. Frames
 * of window managers have no class: then the application window is searched inside the frame. Clients set all
 * these properties themselves, and any window may vanish between two requests. */
#include "screen/private.h"

#include <X11/Xatom.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    if (depth > INSIDE_DEPTH || --*budget < 0 || !XQueryTree(s->dpy, w, &root, &parent, &children, &n))
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

int hit_test_chain(struct screen *s, int x, int y, Window chain[HIT_TEST_DEPTH])
{
    Window w = s->root, child = None;
    int n = 0, wx, wy;
    while (n < HIT_TEST_DEPTH && XTranslateCoordinates(s->dpy, s->root, w, x, y, &wx, &wy, &child) && child)
        chain[n++] = w = child;
    return n;
}

/* Lists the window's ancestors from the child of the root down to the window itself. Returns their number. */
static int chain_of(struct screen *s, Window w, Window chain[HIT_TEST_DEPTH])
{
    int n = 0;
    while (w && w != s->root && n < HIT_TEST_DEPTH) {
        Window root, parent = None, *children = NULL;
        unsigned count;
        memmove(chain + 1, chain, (size_t)n * sizeof *chain);
        chain[0] = w;
        n++;
        if (!XQueryTree(s->dpy, w, &root, &parent, &children, &count))
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

static void rect_of(struct screen *s, Window w, struct screen_rect *out)
{
    XWindowAttributes a;
    Window child;
    if (!XGetWindowAttributes(s->dpy, w, &a) ||
        !XTranslateCoordinates(s->dpy, w, s->root, 0, 0, &out->x, &out->y, &child))
        return;
    out->w = a.width;
    out->h = a.height;
}

static bool is_dialog(struct screen *s, Window w)
{
    Atom type = (Atom)window_property(s, w, "_NET_WM_WINDOW_TYPE", XA_ATOM);
    return window_property(s, w, "WM_TRANSIENT_FOR", XA_WINDOW) != 0 ||
           (type && type == XInternAtom(s->dpy, "_NET_WM_WINDOW_TYPE_DIALOG", False));
}

void hit_test_describe(struct screen *s, Window w, struct screen_window *out)
{
    *out = (struct screen_window){.id = w, .pid = hit_test_pid(s, w), .dialog = is_dialog(s, w)};
    window_title(s, w, out->title, sizeof out->title);
    window_class(s, w, out->class, sizeof out->class);
    program_of(out->pid, out->program, sizeof out->program);
    rect_of(s, w, &out->rect);
}

/* ---- interface --------------------------------------------------------------------------------------- */

/* Begins a query. Returns false if the display is lost; otherwise end_query() must follow. */
static bool begin_query(struct screen *s, struct xtrap *trap, struct screen_window *out)
{
    *out = (struct screen_window){0};
    if (!s->lost)
        xtrap_begin(trap, s->dpy);
    return !s->lost;
}

/* Describes w in *out unless it is None. Returns 0, or -1 if the display was lost. */
static int end_query(struct screen *s, struct xtrap *trap, Window w, struct screen_window *out)
{
    if (w)
        hit_test_describe(s, w, out);
    xtrap_end(trap);
    return s->lost ? -1 : 0;
}

int screen_window_at(struct screen *s, int x, int y, struct screen_window *out)
{
    Window chain[HIT_TEST_DEPTH];
    struct xtrap trap;
    if (!begin_query(s, &trap, out))
        return -1;
    return end_query(s, &trap, program_window(s, chain, hit_test_chain(s, x, y, chain)), out);
}

static Window window_under_pointer(struct screen *s)
{
    Window chain[HIT_TEST_DEPTH];
    int x, y;
    return screen_pointer(s, &x, &y) == 0 ? program_window(s, chain, hit_test_chain(s, x, y, chain)) : None;
}

int hit_test_focus(struct screen *s, Window chain[HIT_TEST_DEPTH])
{
    Window focus = None;
    int revert, x, y;
    XGetInputFocus(s->dpy, &focus, &revert);
    if (focus == PointerRoot || focus == s->root) /* the window under the pointer receives keys */
        return screen_pointer(s, &x, &y) == 0 ? hit_test_chain(s, x, y, chain) : 0;
    return focus != None ? chain_of(s, focus, chain) : 0;
}

static Window focused_window(struct screen *s)
{
    Window chain[HIT_TEST_DEPTH];
    return program_window(s, chain, hit_test_focus(s, chain));
}

bool hit_test_java(struct screen *s)
{
    Window chain[HIT_TEST_DEPTH];
    char class[128] = "";
    struct xtrap trap;
    if (s->lost)
        return false;
    xtrap_begin(&trap, s->dpy);
    for (int i = hit_test_focus(s, chain); i-- > 0 && strcmp(class, "FocusProxy") != 0;)
        window_class(s, chain[i], class, sizeof class);
    xtrap_end(&trap);
    return !strcmp(class, "FocusProxy"); /* AWT gives the focus to this child of each of its windows */
}

int screen_focused_window(struct screen *s, struct screen_window *out)
{
    struct xtrap trap;
    if (!begin_query(s, &trap, out))
        return -1;
    return end_query(s, &trap, focused_window(s), out);
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
    if (depth > INSIDE_DEPTH || --*budget < 0 || !XGetWindowAttributes(s->dpy, w, &a) ||
        a.map_state != IsViewable)
        return false;
    window_class(s, w, text, sizeof text);
    if (depth && !strcmp(text, class)) {
        window_title(s, w, text, sizeof text);
        exact = !strcmp(text, title);
        *found = exact || !*found ? w : *found;
    }
    if (!exact && XQueryTree(s->dpy, w, &root, &parent, &children, &n))
        for (unsigned i = n; i-- > 0 && !exact;)
            exact = find_class(s, children[i], depth + 1, budget, class, title, found);
    if (children)
        XFree(children);
    return exact;
}

int screen_find_window(struct screen *s, const char *class, const char *title, struct screen_window *out)
{
    struct xtrap trap;
    Window w = None;
    int budget = FIND_WINDOWS;
    if (!begin_query(s, &trap, out))
        return -1;
    find_class(s, s->root, 0, &budget, class, title, &w);
    return end_query(s, &trap, w, out) || !w ? -1 : 0;
}

int hit_test_pids(struct screen *s, int pids[2])
{
    struct xtrap trap;
    int n = 0;
    if (s->lost)
        return 0;
    xtrap_begin(&trap, s->dpy);
    const Window windows[2] = {focused_window(s), window_under_pointer(s)};
    for (int i = 0; i < 2; i++) {
        int pid = windows[i] && (!i || windows[1] != windows[0]) ? hit_test_pid(s, windows[i]) : 0;
        if (pid)
            pids[n++] = pid;
    }
    xtrap_end(&trap);
    return n;
}

int screen_window_rect(struct screen *s, unsigned long id, struct screen_rect *out)
{
    struct xtrap trap;
    *out = (struct screen_rect){0};
    if (s->lost)
        return -1;
    xtrap_begin(&trap, s->dpy);
    rect_of(s, id, out);
    return xtrap_end(&trap) || s->lost || !out->w ? -1 : 0;
}

static bool contains(struct screen_rect outer, struct screen_rect inner)
{
    return inner.x >= outer.x && inner.y >= outer.y && inner.x + inner.w <= outer.x + outer.w &&
           inner.y + inner.h <= outer.y + outer.h;
}

unsigned long screen_window_around(struct screen *s, unsigned long id, struct screen_rect r)
{
    Window chain[HIT_TEST_DEPTH];
    struct xtrap trap;
    unsigned long found = id;
    bool within = false;
    if (s->lost)
        return id;
    xtrap_begin(&trap, s->dpy);
    int n = hit_test_chain(s, r.x + r.w / 2, r.y + r.h / 2, chain);
    for (int i = 0; i < n; i++) { /* outermost first */
        struct screen_rect at = {0};
        rect_of(s, chain[i], &at);
        within = within || chain[i] == id;
        if (within && at.w && contains(at, r))
            found = chain[i];
    }
    xtrap_end(&trap);
    return found;
}

bool screen_window_covers(struct screen *s, unsigned long id, int x, int y)
{
    Window chain[HIT_TEST_DEPTH];
    struct xtrap trap;
    if (s->lost)
        return false;
    xtrap_begin(&trap, s->dpy);
    int n = hit_test_chain(s, x, y, chain);
    bool found = false;
    for (int i = 0; i < n; i++)
        found = found || chain[i] == id;
    xtrap_end(&trap);
    return found;
}
