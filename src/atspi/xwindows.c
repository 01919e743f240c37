/* xwindows.c - lists the windows of an X display; see xwindows.h.
 *
 * A program's window is the one with _NET_WM_PID: a child of the root, or inside the frame of a window
 * manager. Any window may vanish between two requests; then replies are NULL. */
#include "atspi/xwindows.h"

#include "base/err.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <xcb/xcb.h>

enum { SHADOW_MOST = 200 }; /* px */
enum { FRAME_DEPTH = 3, INSIDE_WINDOWS = 200, ROOT_WINDOWS = 2000 };
enum { BUS, PID, TITLE, UTF8, ACTIVE_WINDOW, SHADOW, ATOMS };

struct xdisplay {
    xcb_connection_t *c;
    xcb_window_t root;
    xcb_atom_t atoms[ATOMS];
};

struct xdisplay *xdisplay_open(const char *name)
{
    static const char *const names[ATOMS] = {"AT_SPI_BUS",  "_NET_WM_PID",        "_NET_WM_NAME",
                                             "UTF8_STRING", "_NET_ACTIVE_WINDOW", "_GTK_FRAME_EXTENTS"};
    int number = 0;
    xcb_connection_t *c = xcb_connect(name, &number);
    xcb_screen_iterator_t screens = {0};
    if (c && !xcb_connection_has_error(c))
        screens = xcb_setup_roots_iterator(xcb_get_setup(c));
    for (; number > 0 && screens.rem > 1; number--)
        xcb_screen_next(&screens);
    if (!screens.rem) {
        xcb_disconnect(c);
        return NULL;
    }
    struct xdisplay *x = xcalloc(1, sizeof *x);
    xcb_intern_atom_cookie_t asked[ATOMS];
    *x = (struct xdisplay){.c = c, .root = screens.data->root};
    for (int i = 0; i < ATOMS; i++)
        asked[i] = xcb_intern_atom(c, 0, (uint16_t)strlen(names[i]), names[i]);
    for (int i = 0; i < ATOMS; i++) {
        xcb_intern_atom_reply_t *r = xcb_intern_atom_reply(c, asked[i], NULL);
        x->atoms[i] = r ? r->atom : 0;
        free(r);
    }
    return x;
}

/* ---- properties ------------------------------------------------------------------------------------- */

static xcb_get_property_cookie_t ask_property(struct xdisplay *x, xcb_window_t w, xcb_atom_t name,
                                              unsigned bytes)
{
    return xcb_get_property(x->c, 0, w, name, XCB_ATOM_ANY, 0, (bytes + 3) / 4);
}

/* Reads a text as valid UTF-8; "": none. */
static void read_text(struct xdisplay *x, xcb_get_property_cookie_t asked, char *out, size_t size)
{
    xcb_get_property_reply_t *r = xcb_get_property_reply(x->c, asked, NULL);
    size_t n = r && r->format == 8 ? (size_t)xcb_get_property_value_length(r) : 0;
    n = n < size ? n : size - 1;
    if (n)
        memcpy(out, xcb_get_property_value(r), n);
    out[n] = 0;
    out[utf8_valid_prefix(out, strlen(out))] = 0;
    free(r);
}

static uint32_t read_number(struct xdisplay *x, xcb_get_property_cookie_t asked)
{
    uint32_t n = 0;
    xcb_get_property_reply_t *r = xcb_get_property_reply(x->c, asked, NULL);
    if (r && r->format == 32 && xcb_get_property_value_length(r) >= 4)
        memcpy(&n, xcb_get_property_value(r), 4);
    free(r);
    return n;
}

void xdisplay_bus(struct xdisplay *x, char *out, size_t size)
{
    read_text(x, ask_property(x, x->root, x->atoms[BUS], (unsigned)size), out, size);
}

/* ---- windows ---------------------------------------------------------------------------------------- */

/* Finds a window with a process id below w. Asks about all children at once, because each round trip takes
 * milliseconds on a loaded machine. */
static xcb_window_t client_below(struct xdisplay *x, xcb_window_t w, int depth, int *budget, uint32_t *pid)
{
    xcb_get_property_cookie_t asked[INSIDE_WINDOWS];
    xcb_query_tree_reply_t *r = xcb_query_tree_reply(x->c, xcb_query_tree(x->c, w), NULL);
    if (!r)
        return 0;
    int n = xcb_query_tree_children_length(r);
    const xcb_window_t *children = xcb_query_tree_children(r);
    xcb_window_t found = 0;
    n = n < *budget ? n : *budget;
    *budget -= n;
    for (int i = 0; i < n; i++)
        asked[i] = ask_property(x, children[i], x->atoms[PID], 4);
    for (int i = 0; i < n; i++) { /* all replies must be read; the topmost window is the last */
        uint32_t one = read_number(x, asked[i]);
        found = one ? children[i] : found;
        *pid = one ? one : *pid;
    }
    for (int i = n - 1; i >= 0 && !found && depth < FRAME_DEPTH; i--)
        found = client_below(x, children[i], depth + 1, budget, pid);
    free(r);
    return found;
}

struct rect_asked {
    xcb_get_geometry_cookie_t size;
    xcb_translate_coordinates_cookie_t origin;
};

static struct rect_asked ask_rect(struct xdisplay *x, xcb_window_t w)
{
    return (struct rect_asked){xcb_get_geometry(x->c, w), xcb_translate_coordinates(x->c, w, x->root, 0, 0)};
}

static bool read_rect(struct xdisplay *x, struct rect_asked asked, struct screen_rect *out)
{
    xcb_get_geometry_reply_t *g = xcb_get_geometry_reply(x->c, asked.size, NULL);
    xcb_translate_coordinates_reply_t *t = xcb_translate_coordinates_reply(x->c, asked.origin, NULL);
    bool known = g && t;
    if (known)
        *out = (struct screen_rect){t->dst_x, t->dst_y, g->width, g->height};
    free(g);
    free(t);
    return known;
}

/* Returns r without the shadow of a window, if it has one. */
static struct screen_rect without_shadow(struct xdisplay *x, xcb_get_property_cookie_t asked,
                                         struct screen_rect r)
{
    uint32_t side[4]; /* left, right, top, bottom */
    xcb_get_property_reply_t *p = xcb_get_property_reply(x->c, asked, NULL);
    bool given = p && p->format == 32 && xcb_get_property_value_length(p) == sizeof side;
    if (given)
        memcpy(side, xcb_get_property_value(p), sizeof side);
    free(p);
    for (int i = 0; i < 4 && given; i++)
        given = side[i] <= SHADOW_MOST;
    if (!given || (int)(side[0] + side[1]) >= r.w || (int)(side[2] + side[3]) >= r.h)
        return r;
    return (struct screen_rect){r.x + (int)side[0], r.y + (int)side[2], r.w - (int)(side[0] + side[1]),
                                r.h - (int)(side[2] + side[3])};
}

/* Describes the program's window in a visible child of the root. Returns false if it shows none. */
static bool describe(struct xdisplay *x, xcb_window_t top, bool popup, uint32_t pid, struct xwindow *out)
{
    int budget = INSIDE_WINDOWS;
    xcb_window_t w = pid ? top : client_below(x, top, 0, &budget, &pid);
    w = w ? w : top;
    *out =
        (struct xwindow){.id = w, .pid = (int)pid, .popup = popup && w == top}; /* frames are popups, too */
    struct rect_asked rect = ask_rect(x, w), frame = ask_rect(x, top);
    xcb_get_property_cookie_t title = ask_property(x, w, x->atoms[TITLE], sizeof out->title),
                              older = ask_property(x, w, XCB_ATOM_WM_NAME, sizeof out->title),
                              shadow = ask_property(x, w, x->atoms[SHADOW], 16);
    char latin[sizeof out->title];
    bool known = read_rect(x, rect, &out->rect);
    known = read_rect(x, frame, &out->frame) && known;
    out->inner = without_shadow(x, shadow, out->rect);
    read_text(x, title, out->title, sizeof out->title);
    read_text(x, older, latin, sizeof latin);
    if (!*out->title)
        memcpy(out->title, latin, sizeof latin);
    return known && out->rect.x + out->rect.w > 0 && out->rect.y + out->rect.h > 0;
}

/* Marks the window that the window manager calls active; without one, the window with the input focus, else
 * the topmost that is not a popup. */
static void mark_active(struct xdisplay *x, struct xwindow *list, int n)
{
    uint32_t active = read_number(x, ask_property(x, x->root, x->atoms[ACTIVE_WINDOW], 4));
    xcb_get_input_focus_reply_t *f = xcb_get_input_focus_reply(x->c, xcb_get_input_focus(x->c), NULL);
    uint32_t focus = f ? f->focus : 0;
    int at = -1, top = -1;
    free(f);
    for (int i = n - 1; i >= 0; i--) {
        if (list[i].id == (active ? active : focus))
            at = i;
        top = list[i].popup ? top : i;
    }
    at = at < 0 ? top : at;
    if (at >= 0)
        list[at].active = true;
}

int xdisplay_windows(struct xdisplay *x, struct xwindow out[XWINDOWS_MAX])
{
    xcb_query_tree_reply_t *r = xcb_query_tree_reply(x->c, xcb_query_tree(x->c, x->root), NULL);
    int all = r ? xcb_query_tree_children_length(r) : 0, n = 0;
    const xcb_window_t *tops = all ? xcb_query_tree_children(r) : NULL;
    int first = all > ROOT_WINDOWS ? all - ROOT_WINDOWS : 0;
    xcb_get_window_attributes_cookie_t *asked = xcalloc((unsigned long)all + 1, sizeof *asked);
    xcb_get_property_cookie_t *pids = xcalloc((unsigned long)all + 1, sizeof *pids);
    for (int i = all - 1; i >= first; i--) {
        asked[i] = xcb_get_window_attributes(x->c, tops[i]);
        pids[i] = ask_property(x, tops[i], x->atoms[PID], 4);
    }
    for (int i = all - 1; i >= first; i--) {
        xcb_get_window_attributes_reply_t *a = xcb_get_window_attributes_reply(x->c, asked[i], NULL);
        uint32_t pid = read_number(x, pids[i]);
        if (a && a->map_state == XCB_MAP_STATE_VIEWABLE && a->_class == XCB_WINDOW_CLASS_INPUT_OUTPUT &&
            n < XWINDOWS_MAX)
            n += describe(x, tops[i], a->override_redirect, pid, &out[n]);
        free(a);
    }
    free(asked);
    free(pids);
    free(r);
    mark_active(x, out, n);
    return n;
}
