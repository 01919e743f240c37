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

enum { FRAME_DEPTH = 3, INSIDE_WINDOWS = 200, ROOT_WINDOWS = 2000 };
enum { BUS, PID, TITLE, UTF8, ACTIVE_WINDOW, ATOMS };

struct xdisplay {
    xcb_connection_t *c;
    xcb_window_t root;
    xcb_atom_t atoms[ATOMS];
};

struct xdisplay *xdisplay_open(const char *name)
{
    static const char *const names[ATOMS] = {"AT_SPI_BUS", "_NET_WM_PID", "_NET_WM_NAME", "UTF8_STRING",
                                             "_NET_ACTIVE_WINDOW"};
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

void xdisplay_close(struct xdisplay *x)
{
    if (x)
        xcb_disconnect(x->c);
    free(x);
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

/* Finds the window with a process id in w or below. */
static xcb_window_t client_of(struct xdisplay *x, xcb_window_t w, int depth, int *budget, uint32_t *pid)
{
    xcb_query_tree_cookie_t asked = xcb_query_tree(x->c, w);
    *pid = read_number(x, ask_property(x, w, x->atoms[PID], 4));
    xcb_query_tree_reply_t *r = xcb_query_tree_reply(x->c, asked, NULL);
    xcb_window_t found = *pid ? w : 0;
    for (int i = r ? xcb_query_tree_children_length(r) : 0; i-- > 0 && !found && depth < FRAME_DEPTH;)
        if (--*budget > 0)
            found = client_of(x, xcb_query_tree_children(r)[i], depth + 1, budget, pid);
    free(r);
    return found;
}

static bool read_rect(struct xdisplay *x, xcb_window_t w, struct screen_rect *out)
{
    xcb_get_geometry_cookie_t size = xcb_get_geometry(x->c, w);
    xcb_translate_coordinates_cookie_t origin = xcb_translate_coordinates(x->c, w, x->root, 0, 0);
    xcb_get_geometry_reply_t *g = xcb_get_geometry_reply(x->c, size, NULL);
    xcb_translate_coordinates_reply_t *t = xcb_translate_coordinates_reply(x->c, origin, NULL);
    bool known = g && t;
    if (known)
        *out = (struct screen_rect){t->dst_x, t->dst_y, g->width, g->height};
    free(g);
    free(t);
    return known;
}

/* Describes the program's window in a child of the root. Returns false if it shows none. */
static bool describe(struct xdisplay *x, xcb_window_t top, struct xwindow *out)
{
    int budget = INSIDE_WINDOWS;
    uint32_t pid = 0;
    xcb_get_window_attributes_reply_t *a =
        xcb_get_window_attributes_reply(x->c, xcb_get_window_attributes(x->c, top), NULL);
    bool shows = a && a->map_state == XCB_MAP_STATE_VIEWABLE && a->_class == XCB_WINDOW_CLASS_INPUT_OUTPUT;
    bool popup = a && a->override_redirect;
    free(a);
    *out = (struct xwindow){.popup = popup};
    if (!shows)
        return false;
    xcb_window_t w = client_of(x, top, 0, &budget, &pid);
    out->id = w ? w : top;
    out->pid = (int)pid;
    out->popup = popup && out->id == top; /* a window manager's frame bypasses it, too */
    if (!read_rect(x, out->id, &out->rect) || !read_rect(x, top, &out->frame))
        return false;
    read_text(x, ask_property(x, out->id, x->atoms[TITLE], sizeof out->title), out->title, sizeof out->title);
    if (!*out->title)
        read_text(x, ask_property(x, out->id, XCB_ATOM_WM_NAME, sizeof out->title), out->title,
                  sizeof out->title);
    return out->rect.x + out->rect.w > 0 && out->rect.y + out->rect.h > 0;
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
    for (int i = all - 1; i >= 0 && i >= all - ROOT_WINDOWS && n < XWINDOWS_MAX; i--)
        n += describe(x, xcb_query_tree_children(r)[i], &out[n]);
    free(r);
    mark_active(x, out, n);
    return n;
}
