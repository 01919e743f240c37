/* check_clipboard.c - check of the clipboard or primary selection on the desktop of a test.
 *
 * A separate X connection requests the text from the owner of the selection, in one piece or several (INCR).
 * An owner that does not answer, or sends anything other than text or more than CLIPBOARD_MAX bytes, costs a
 * limited time. */
#include "qa/run/check_impl.h"

#include "base/clock.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <xcb/xcb.h>

enum { CLIPBOARD_MAX = 4 << 20, ANSWER_MS = 2000 };

struct paste {
    xcb_connection_t *x;
    xcb_window_t window;
    xcb_atom_t selection, utf8, incr, property;
    const struct probe *probe;
    int64_t start;
};

static xcb_atom_t atom(xcb_connection_t *x, const char *name)
{
    xcb_intern_atom_reply_t *r =
        xcb_intern_atom_reply(x, xcb_intern_atom(x, 0, (uint16_t)strlen(name), name), NULL);
    xcb_atom_t a = r ? r->atom : XCB_ATOM_NONE;
    free(r);
    return a;
}

/* Returns the next event of this type, which the caller frees; NULL: the owner did not answer in time. */
static xcb_generic_event_t *wait_for(const struct paste *p, uint8_t type)
{
    while (clock_ms_since(p->start) < ANSWER_MS && !probe_cancelled(p->probe) &&
           !xcb_connection_has_error(p->x)) {
        xcb_generic_event_t *ev = xcb_poll_for_event(p->x);
        if (ev && (ev->response_type & 0x7f) == type)
            return ev;
        struct pollfd fd = {xcb_get_file_descriptor(p->x), POLLIN, 0};
        if (!ev)
            poll(&fd, 1, 20);
        free(ev);
    }
    return NULL;
}

/* Reads and removes the data that the owner stored in the property; *type: its type. Returns its length. */
static size_t take(const struct paste *p, struct buf *out, xcb_atom_t *type)
{
    xcb_get_property_reply_t *r = xcb_get_property_reply(
        p->x,
        xcb_get_property(p->x, 1, p->window, p->property, XCB_GET_PROPERTY_TYPE_ANY, 0, CLIPBOARD_MAX / 4),
        NULL);
    size_t n = r ? (size_t)xcb_get_property_value_length(r) : 0;
    *type = r ? r->type : XCB_ATOM_NONE;
    if (n && *type != p->incr)
        buf_put(out, xcb_get_property_value(r), n);
    free(r);
    return n;
}

/* Reads the text; returns false if the selection has no owner, or its owner has no text. */
static bool read_text(const struct paste *p, struct buf *out)
{
    xcb_atom_t type = XCB_ATOM_NONE;
    xcb_convert_selection(p->x, p->window, p->selection, p->utf8, p->property, XCB_CURRENT_TIME);
    xcb_flush(p->x);
    xcb_selection_notify_event_t *told = (void *)wait_for(p, XCB_SELECTION_NOTIFY);
    bool has = told && told->property != XCB_ATOM_NONE;
    free(told);
    if (has)
        take(p, out, &type);
    if (type != p->incr)
        return has;
    for (xcb_property_notify_event_t *ev; (ev = (void *)wait_for(p, XCB_PROPERTY_NOTIFY));) {
        bool new = ev->state == XCB_PROPERTY_NEW_VALUE && ev->atom == p->property;
        free(ev);
        if (new && !take(p, out, &type))
            return true; /* an empty piece ends the transfer */
        xcb_flush(p->x);
    }
    return false;
}

enum answer check_clipboard(struct probe *probe, struct err *e)
{
    const struct check *c = probe->c;
    const char *which = c->primary ? "PRIMARY" : "CLIPBOARD";
    int number = 0;
    struct paste p = {.probe = probe, .start = clock_ns()};
    p.x = xcb_connect(desk_display(probe->s->desk), &number);
    if (xcb_connection_has_error(p.x)) {
        xcb_disconnect(p.x);
        err_set(e, ERR_ENV, "cannot open the display to read the clipboard");
        return ANSWER_ERROR;
    }
    const xcb_screen_t *root = xcb_setup_roots_iterator(xcb_get_setup(p.x)).data;
    p.window = xcb_generate_id(p.x);
    xcb_create_window(p.x, XCB_COPY_FROM_PARENT, p.window, root->root, -10, -10, 1, 1, 0,
                      XCB_WINDOW_CLASS_INPUT_ONLY, XCB_COPY_FROM_PARENT, XCB_CW_EVENT_MASK,
                      (const uint32_t[]){XCB_EVENT_MASK_PROPERTY_CHANGE});
    p.selection = atom(p.x, which);
    p.utf8 = atom(p.x, "UTF8_STRING");
    p.incr = atom(p.x, "INCR");
    p.property = atom(p.x, "HOLORUN_CHECK");
    autobuf text = buf_of(CLIPBOARD_MAX);
    bool has = read_text(&p, &text);
    xcb_disconnect(p.x);
    enum answer a = has ? probe_find(c->text, text.data ? text.data : "", text.len, e) : ANSWER_NO;
    if (has)
        probe_detail(probe, "expected %s%s to match '%.200s', got %zu bytes: '%.*s'", which,
                     c->absent ? " not" : "", c->text, text.len, probe_cut(text.data, text.len), text.data);
    else
        probe_detail(probe, "expected %s%s to match '%.200s'; it contains no text", which,
                     c->absent ? " not" : "", c->text);
    return a;
}
