/* grabs.c - detects keyboard and pointer grabs of other programs.
 *
 * While a client grabs the keyboard or the pointer, the server sends it all keys or clicks. Menus,
 * launchers and password dialogs do this for their own windows; any other grab takes input away from the
 * intended program.
 *
 * The server does not say which client has a grab, only whether one exists: a request to grab an unmapped
 * window returns AlreadyGrabbed, otherwise GrabNotViewable, and changes nothing. If there is a grab, the
 * RECORD extension lists the clients to which an event is delivered: an unmapped key before the first key
 * of an action, the click itself for the pointer.
 *
 * A passive grab on one key (a hotkey) takes only this key. The server refuses a second passive grab of it
 * on the root window, which reveals the first. */
#include "screen/x11/x11_impl.h"

#include "base/clock.h"

#include <X11/Xproto.h>
#include <X11/extensions/XI2.h>
#include <X11/extensions/record.h>
#include <stdio.h>
#include <string.h>

enum {
    GRAB_MS = 2000,    /* time for a window manager to release the pointer */
    DELIVER_MS = 2000, /* time from an event to its delivery record */
    POLL_MS = 2,
    POLL_LATER_MS = 10, /* of questions to a busy window manager, after ten polls */
};

/* ---- detecting a grab -------------------------------------------------------------------------------- */

static Window unmapped(struct screen *s)
{
    if (!s->x11->grab.window)
        s->x11->grab.window = XCreateSimpleWindow(s->x11->dpy, s->x11->root, -10, -10, 1, 1, 0, 0, 0);
    return s->x11->grab.window;
}

bool grab_keyboard_taken(struct screen *s)
{
    return !s->lost && XGrabKeyboard(s->x11->dpy, unmapped(s), False, GrabModeAsync, GrabModeAsync,
                                     CurrentTime) == AlreadyGrabbed;
}

static bool pointer_taken(struct screen *s)
{
    return !s->lost && XGrabPointer(s->x11->dpy, unmapped(s), False, 0, GrabModeAsync, GrabModeAsync, None,
                                    None, CurrentTime) == AlreadyGrabbed;
}

bool grab_key_taken(struct screen *s, const uint8_t *codes, const bool *shift, int n, int *which)
{
    struct xtrap t;
    unsigned locks = s->x11->state.locked_mods;
    for (int from = 0, count = n; from < n; from += count) { /* all at once, then each separately */
        xtrap_begin(&t, s->x11->dpy);
        for (int i = from; i < from + count && !s->lost; i++)
            XGrabKey(s->x11->dpy, codes[i], locks | (shift[i] ? ShiftMask : 0), s->x11->root, False,
                     GrabModeAsync, GrabModeAsync);
        for (int i = from; i < from + count && !s->lost; i++)
            XUngrabKey(s->x11->dpy, codes[i], locks | (shift[i] ? ShiftMask : 0), s->x11->root);
        if (xtrap_end(&t) != BadAccess)
            continue;
        *which = from;
        if (count == 1)
            return true;
        count = 1;
        from = -1;
    }
    return false;
}

/* ---- delivery records -------------------------------------------------------------------------------- */

static void on_data(XPointer arg, XRecordInterceptData *d)
{
    struct grab_record *r = (struct grab_record *)(void *)arg;
    const xEvent *v = (const xEvent *)(const void *)d->data;
    if (d->category == XRecordFromServer && !d->client_swapped && d->data_len * 4 >= sizeof *v) {
        const xGenericEvent *g = (const xGenericEvent *)(const void *)v;
        int type = v->u.u.type & 0x7f;
        bool extended = type == GenericEvent && g->extension == r->xinput &&
                        (g->evtype == XI_KeyPress || g->evtype == XI_ButtonPress);
        if ((extended || type == KeyPress || type == ButtonPress) && r->n < GRAB_CLIENTS)
            r->clients[r->n++] = d->id_base;
    }
    XRecordFreeData(d);
}

static int query_record(void *arg)
{
    int major, minor;
    return XRecordQueryVersion(((struct screen *)arg)->x11->dpy, &major, &minor);
}

/* Starts recording the clients to which key and button presses are delivered. Returns false if the server
 * lacks RECORD. */
static bool record_begin(struct screen *s)
{
    struct grab_record *r = &s->x11->grab.record;
    int event, error;
    *r = (struct grab_record){0};
    if (xtrap_asking(query_record, s) <= 0 ||
        !XQueryExtension(s->x11->dpy, "XInputExtension", &r->xinput, &event, &error))
        return false;
    XRecordRange *range = XRecordAllocRange();
    XRecordClientSpec all = XRecordAllClients;
    if (range && (r->data = xtrap_open(s->name, &r->lost))) {
        range->delivered_events.first = KeyPress;
        range->delivered_events.last = GenericEvent;
        r->context = XRecordCreateContext(s->x11->dpy, XRecordFromServerTime, &all, 1, &range, 1);
        XSync(s->x11->dpy, False);
        r->on = r->context && XRecordEnableContextAsync(r->data, r->context, on_data, (XPointer)r);
        XSync(s->x11->dpy, False);
    }
    if (range)
        XFree(range);
    return r->on;
}

static void record_end(struct screen *s)
{
    struct grab_record *r = &s->x11->grab.record;
    if (r->on && !s->lost) {
        XRecordDisableContext(s->x11->dpy, r->context);
        XRecordFreeContext(s->x11->dpy, r->context);
        XSync(s->x11->dpy, False);
    }
    if (r->data)
        xtrap_close(r->data, &r->lost);
    r->on = false;
    r->data = NULL;
}

/* ---- permitted clients ------------------------------------------------------------------------------- */

/* Returns whether the client shows an override-redirect window: a menu, a launcher, a screen lock. */
static bool shows_popup(struct screen *s, XID client)
{
    struct screen_top tops[SCREEN_TOPS];
    bool found = false;
    for (int i = hit_test_tops(s, tops); i-- > 0 && !found;)
        found =
            tops[i].popup && same_client(s, client, tops[i].id) && tops[i].rect.w > 1 && tops[i].rect.h > 1;
    return found;
}

/* Waits until a press was delivered. Returns whether it went to the client of one of these windows, or to
 * a client that shows a popup. Otherwise writes the name of the program that received it. */
static bool delivered(struct screen *s, const Window *to, int n, char *name, size_t size)
{
    struct grab_record *r = &s->x11->grab.record;
    int64_t start = clock_ns();
    bool right = false;
    for (int seen = 0; !right && !s->lost && !r->lost && clock_ms_since(start) < DELIVER_MS;) {
        XRecordProcessReplies(r->data);
        for (; seen < r->n && !right; seen++) {
            for (int k = 0; k < n; k++)
                right = right || same_client(s, r->clients[seen], to[k]);
            right = right || shows_popup(s, r->clients[seen]);
        }
        if (!right && screen_wait(s, POLL_MS, NULL)) /* the caller reports the reason */
            break;
    }
    snprintf(name, size, "another program");
    char path[64], comm[64] = "";
    int pid = r->n && !right ? client_pid(s, r->clients[0]) : 0;
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *f = pid ? fopen(path, "re") : NULL;
    if (f && fscanf(f, "%63[^\n]", comm) == 1)
        snprintf(name, size, "another program (%s)", comm);
    if (f)
        fclose(f);
    return right;
}

/* ---- keys ---------------------------------------------------------------------------------------- */

int grab_check_keyboard(struct screen *s, struct err *e)
{
    Window chain[WINDOW_DEPTH];
    struct xtrap t;
    uint8_t code;
    char name[100];
    if (held_pressed(&s->x11->held) || !grab_keyboard_taken(s))
        return screen_alive(s, e);
    if (!keyboard_free_codes(s, &code, 1) || !record_begin(s)) {
        record_end(s);
        return screen_alive(s, e); /* unknown; key_delivery.c still determines who consumes the keys */
    }
    xtrap_begin(&t, s->x11->dpy);
    int n = hit_test_focus(s, chain);
    xtrap_end(&t);
    int rc = key_tap(s, code, e);
    bool right = rc == 0 && delivered(s, n ? &chain[n - 1] : NULL, n ? 1 : 0, name, sizeof name);
    record_end(s);
    if (rc || screen_wait(s, 0, e))
        return -1;
    return right || !grab_keyboard_taken(s)
               ? 0
               : err_set(e, ERR_FAILED, "%s holds the keyboard, so the keys would go there", name);
}

/* ---- clicks --------------------------------------------------------------------------------------- */

/* Waits until no client has grabbed the pointer, or a popup is shown. A window manager holds each click
 * until it has processed it, up to a second on a busy machine. */
static int wait_for_pointer(struct screen *s, struct err *e)
{
    int64_t start = clock_ns();
    while (pointer_taken(s) && clock_ms_since(start) < GRAB_MS &&
           !screen_overlays(s, &(struct screen_window){0}, 1))
        if (screen_wait(s, clock_ms_since(start) < 10 * POLL_MS ? POLL_MS : POLL_LATER_MS, e))
            return -1;
    return screen_alive(s, e);
}

int grab_before_press(struct screen *s, struct err *e)
{
    int x, y, revert;
    struct xtrap t;
    Window focus = None;
    if (held_any_button(&s->x11->held))
        return 0;
    record_end(s); /* of a press that was refused or released in another way than by grab_after_release() */
    if (!s->x11->grab.granted && wait_for_pointer(s, e))
        return -1;
    if (!pointer_taken(s)) {
        s->x11->grab.granted = false;
        return screen_alive(s, e);
    }
    if (!record_begin(s) || screen_pointer(s, &x, &y)) {
        record_end(s);
        return screen_alive(s, e);
    }
    xtrap_begin(&t, s->x11->dpy);
    s->x11->grab.n_under = hit_test_chain(s, x, y, s->x11->grab.under, WINDOW_DEPTH);
    XGetInputFocus(s->x11->dpy, &focus, &revert);
    if (s->x11->grab.n_under < WINDOW_DEPTH && focus > PointerRoot)
        s->x11->grab.under[s->x11->grab.n_under++] = focus;
    xtrap_end(&t);
    return screen_alive(s, e);
}

int grab_after_release(struct screen *s, struct err *e)
{
    char name[100];
    if (held_any_button(&s->x11->held))
        return 0;
    if (!s->x11->grab.record.on)
        return wait_for_pointer(s, e);
    bool right = delivered(s, s->x11->grab.under, s->x11->grab.n_under, name, sizeof name);
    record_end(s);
    s->x11->grab.granted = right;
    if (right)
        return screen_alive(s, e);
    if (screen_wait(s, 0, e)) /* stopped meanwhile */
        return -1;
    return err_set(e, ERR_FAILED, "%s holds the pointer, so the click did not reach its target", name);
}

void grab_close(struct screen *s)
{
    record_end(s);
    if (s->x11->grab.window && !s->lost)
        XDestroyWindow(s->x11->dpy, s->x11->grab.window);
    s->x11->grab.window = None;
}
