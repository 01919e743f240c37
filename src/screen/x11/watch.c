/* watch.c - the input monitor: detects stop gestures and user input at the display.
 *
 * A thread with its own connection listens to raw events (XInput 2.1 or newer delivers them even during a
 * keyboard grab). It sets the screen's stop flag on Escape twice within 0.6 s without another key in between
 * and, if enabled, when the user has left the pointer in the top left corner for a second. Our own events do
 * not count.
 *
 * Once the flag is set, by any thread, the input monitor releases all pressed keys and buttons: the thread
 * that sends events may be in the model.
 *
 * With pause_on_user it also listens to buttons and motion: from the first event of the user until
 * screen_wait_for_user(), input fails. This is always enabled on a desktop with viewers (SCREEN_VIEWED),
 * because they share its pointer; a change of SCREEN_HAND_BACK ends the pause at once.
 *
 * The thread regularly sends itself an event (ping). If the event does not return, the server hangs, and so
 * does the thread that sends events, in some X call: both connections are shut down, and that call fails as
 * if the server had exited. For this reason the input monitor never waits for a reply of the server: it sends
 * requests through xcb and polls for the replies. A server that stops within a long message still blocks it,
 * because libxcb waits for the rest; the thread of the stop files detects this (check_turn). */
#include "screen/guard.h"
#include "screen/x11/x11_impl.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/pool.h"

#include <X11/Xatom.h>
#include <X11/Xlib-xcb.h>
#include <X11/extensions/XInput2.h>
#include <X11/extensions/XTest.h>
#include <X11/keysym.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <xcb/xcbext.h>

enum {
    GESTURE_MS = 600,
    CORNER_PX = 2,
    CORNER_MS = 1000,
    POLL_MS = 40,
    CHECK_MS = 5000, /* maximum time for our own key event to return */
    PING_MS = 5000,  /* interval between pings */
    SERVER_TIMEOUT_MS = 30000,
    CLOSING_TIMEOUT_MS = 2000, /* the same once the screen is stopped or closing */
    LOOK_MS = 1100,            /* maximum interval between two calls of check_turn() */
    JOIN_MS = 3000,
    STACK_BYTES = 256 << 10,
};

struct watch {
    Display *dpy;
    struct screen *screen; /* its held, stop, options and name are read; its lost is set */
    atomic_bool lost, closing, end;
    Window window;               /* unmapped; receives pings */
    bool ping_sent;              /* sent and not yet returned */
    int64_t ping;                /* time when the last ping was sent or returned */
    _Atomic int64_t turn;        /* clock_ns() at the start of the thread's current iteration; 0: none */
    int64_t looked, looked_turn; /* by check_turn(): time of the last check, and `turn` at that time */
    double held_up_ms;           /* duration of that iteration */
    int xi_opcode, xkb_event, keyboard_id, pointer_id, escape;
    Atom hand_back;
    bool armed, released; /* a first Escape was pressed; and released */
    int64_t first;
    bool released_once; /* since the flag was set */
    int64_t corner;     /* time when the user moved the pointer into the corner; 0: it is not there */
    unsigned keymap_asked, pointer_asked; /* sequence numbers of pending requests; 0: none */
    bool moved;                           /* moved by the user since the pointer was queried */
    atomic_int seen;                      /* own key events that returned */
    struct stopfile *files;
    pthread_t thread;
    int socket; /* duplicate of the connection's socket, still valid while the thread closes the connection */
};

/* ---- events ----------------------------------------------------------------------------------- */

static void on_escape(struct watch *w, bool down)
{
    if (!down) {
        w->released = true;
    } else if (w->armed && w->released && clock_ms_since(w->first) <= GESTURE_MS) {
        stop_set(w->screen->stop, STOP_HUMAN);
        w->armed = false;
    } else if (!w->armed || w->released) { /* otherwise: key repeat */
        w->armed = true;
        w->released = false;
        w->first = clock_ns();
    }
}

static void on_key(struct watch *w, const XIRawEvent *raw)
{
    bool down = raw->evtype == XI_RawKeyPress;
    if (raw->sourceid == w->keyboard_id &&
        event_origin_match(&w->screen->x11->held.origin, ORIGIN_KEY, raw->detail, down)) {
        w->seen++;
        return;
    }
    if (raw->detail == w->escape)
        on_escape(w, down);
    else
        w->armed = w->armed && !down;
    screen_note_user(w->screen, "keyboard");
}

/* ---- requests whose replies are polled --------------------------------------------------------------- */

static void ask_keymap(struct watch *w)
{
    xcb_connection_t *x = XGetXCBConnection(w->dpy);
    int least, most;
    XDisplayKeycodes(w->dpy, &least, &most);
    if (w->keymap_asked)
        xcb_discard_reply(x, w->keymap_asked);
    w->keymap_asked =
        xcb_get_keyboard_mapping_unchecked(x, (uint8_t)least, (uint8_t)(most - least + 1)).sequence;
    xcb_flush(x);
}

static void ask_pointer(struct watch *w)
{
    xcb_connection_t *x = XGetXCBConnection(w->dpy);
    w->moved = false;
    w->pointer_asked = xcb_query_pointer_unchecked(x, (xcb_window_t)DefaultRootWindow(w->dpy)).sequence;
    xcb_flush(x);
}

/* Sets the keycode that has Escape in its first column, or else in any. */
static void note_keymap(struct watch *w, const xcb_get_keyboard_mapping_reply_t *r)
{
    const xcb_keysym_t *keysyms = xcb_get_keyboard_mapping_keysyms(r);
    int per = r->keysyms_per_keycode, n = xcb_get_keyboard_mapping_keysyms_length(r), found = 0, least, most;
    XDisplayKeycodes(w->dpy, &least, &most);
    for (int column = 0; column < per && !found; column++)
        for (int i = column; i < n && !found; i += per)
            found = keysyms[i] == XK_Escape ? least + i / per : 0;
    w->escape = found;
}

static void note_pointer(struct watch *w, const xcb_query_pointer_reply_t *r)
{
    if (!r->same_screen || r->root_x >= CORNER_PX || r->root_y >= CORNER_PX)
        w->corner = 0;
    else if (!w->corner)
        w->corner = clock_ns();
    if (w->moved)
        ask_pointer(w);
}

/* Returns the reply to *asked if it has arrived, otherwise NULL; the caller frees it. */
static void *poll_reply(const struct watch *w, unsigned *asked)
{
    void *reply = NULL;
    xcb_generic_error_t *error = NULL;
    if (*asked && xcb_poll_for_reply(XGetXCBConnection(w->dpy), *asked, &reply, &error))
        *asked = 0;
    free(error);
    return reply;
}

static void read_answers(struct watch *w)
{
    void *keymap = poll_reply(w, &w->keymap_asked), *pointer = poll_reply(w, &w->pointer_asked);
    if (keymap)
        note_keymap(w, keymap);
    if (pointer)
        note_pointer(w, pointer);
    free(keymap);
    free(pointer);
}

/* ---- more events ------------------------------------------------------------------------------ */

static void on_pointer(struct watch *w, const XIRawEvent *raw)
{
    bool motion = raw->evtype == XI_RawMotion, down = raw->evtype == XI_RawButtonPress;
    struct event_origin *origin = &w->screen->x11->held.origin;
    if (raw->sourceid == w->pointer_id &&
        (motion ? event_origin_match(origin, ORIGIN_MOTION, 0, true)
                : event_origin_match(origin, ORIGIN_BUTTON, raw->detail, down))) {
        w->corner = 0;
        return;
    }
    screen_note_user(w->screen, "pointer");
    w->moved = true;
    if (w->screen->options.corner_stop && !w->pointer_asked)
        ask_pointer(w);
}

static void read_events(struct watch *w)
{
    while (!w->lost && XPending(w->dpy)) {
        XEvent ev;
        XNextEvent(w->dpy, &ev);
        if (ev.type == w->xkb_event) /* the keyboard map has changed; the server withholds MappingNotify */
            ask_keymap(w);
        if (ev.type == ClientMessage && ev.xclient.window == w->window) {
            w->ping_sent = false;
            w->ping = clock_ns();
            if (ev.xclient.data.l[0]) /* sent after the releases */
                held_confirm_released(&w->screen->x11->held);
        }
        if (ev.type == PropertyNotify && ev.xproperty.atom == w->hand_back && w->screen->user.at)
            w->screen->user.at = 1; /* makes the quiet time of screen_wait_for_user() elapse */
        if (ev.type != GenericEvent || ev.xcookie.extension != w->xi_opcode ||
            !XGetEventData(w->dpy, &ev.xcookie))
            continue;
        if (ev.xcookie.evtype == XI_RawKeyPress || ev.xcookie.evtype == XI_RawKeyRelease)
            on_key(w, ev.xcookie.data);
        else
            on_pointer(w, ev.xcookie.data);
        XFreeEventData(w->dpy, &ev.xcookie);
    }
}

/* ---- a server that hangs ----------------------------------------------------------------------------- */

static void send_ping(struct watch *w, bool released)
{
    XEvent ev = {.xclient = {.type = ClientMessage, .window = w->window, .format = 32}};
    ev.xclient.message_type = XA_WINDOW; /* a placeholder without meaning */
    ev.xclient.data.l[0] = released;
    XSendEvent(w->dpy, w->window, False, NoEventMask, &ev);
    XFlush(w->dpy);
    w->ping_sent = true;
    w->ping = clock_ns();
}

static bool is_closing(const struct watch *w)
{
    const struct stop *stop = w->screen->stop;
    int64_t deadline = stop->deadline;
    return flag_up(&stop->flag) || w->closing || (deadline && clock_ns() > deadline);
}

static void give_up(struct watch *w)
{
    struct screen *s = w->screen;
    warn("display '%s' does not respond: connection closed", s->name);
    s->x11->hung = s->lost = w->lost = true;
    shutdown(ConnectionNumber(s->x11->dpy), SHUT_RDWR);
    shutdown(w->socket, SHUT_RDWR);
}

static void check_server(struct watch *w)
{
    bool closing = is_closing(w);
    double ms = clock_ms_since(w->ping);
    if (w->lost)
        return;
    if (w->ping_sent && ms >= (closing ? CLOSING_TIMEOUT_MS : SERVER_TIMEOUT_MS))
        give_up(w);
    else if (!w->ping_sent && ms > (closing ? CLOSING_TIMEOUT_MS / 4 : PING_MS))
        send_ping(w, false);
}

/* Detects a blocked input monitor; called by the thread of the stop files. Time in which that thread did not
 * run either, for example while the process was suspended, does not count. */
static void check_turn(void *arg)
{
    struct watch *w = arg;
    int64_t turn = w->turn;
    double since = clock_ms_since(w->looked);
    w->looked = clock_ns();
    w->held_up_ms = turn && turn == w->looked_turn ? w->held_up_ms + fmin(since, LOOK_MS) : 0;
    w->looked_turn = turn;
    if (!w->lost && w->held_up_ms > (is_closing(w) ? CLOSING_TIMEOUT_MS : SERVER_TIMEOUT_MS))
        give_up(w);
}

/* ---- the thread ------------------------------------------------------------------------------- */

static void wait_for_event(struct watch *w)
{
    uint64_t n;
    struct pollfd p[] = {{.fd = w->lost ? -1 : ConnectionNumber(w->dpy), .events = POLLIN},
                         {.fd = stop_wake_fd(w->screen->stop), .events = POLLIN}};
    poll(p, 2, POLL_MS);
    ssize_t got = p[1].revents ? read(p[1].fd, &n, sizeof n) : 0;
    (void)got;
}

static void *watch_thread(void *arg)
{
    struct watch *w = arg;
    struct stop *stop = w->screen->stop;
    while (!w->end) {
        w->turn = clock_ns();
        guard_alive(stop->slot);
        if (guard_killed())
            stop_set(stop, STOP_GUARD);
        wait_for_event(w);
        if (!w->lost)
            read_events(w);
        if (!w->lost)
            read_answers(w);
        if (w->corner && clock_ms_since(w->corner) >= CORNER_MS)
            stop_set(stop, STOP_CORNER);
        bool stopped = stop_reason(stop) != 0;
        if (stopped && !w->released_once && !w->lost) {
            held_release_pressed(&w->screen->x11->held, w->dpy, true);
            send_ping(w, true);
        }
        w->released_once = stopped;
        check_server(w);
    }
    w->turn = 0;
    xtrap_close(w->dpy, &w->lost); /* in this thread: if it hangs, watch_close() can shut the socket down */
    w->dpy = NULL;
    return NULL;
}

int watch_check(struct screen *s, struct err *e)
{
    uint8_t code;
    if (!s->x11->watch || keyboard_read(s, NULL) || !keyboard_free_codes(s, &code, 1))
        return 0; /* no unmapped key to test with */
    int before = s->x11->watch->seen;
    if (key_event(s, code, false, e)) /* a release without a press: only raw listeners receive it */
        return -1;
    for (int ms = 0; ms < CHECK_MS; ms += 5) {
        if (s->x11->watch->seen != before)
            return 0;
        clock_sleep_ms(5);
    }
    return err_set(e, ERR_ENV, "this X server does not report key events");
}

/* ---- start and end ---------------------------------------------------------------------------- */

static int device_named(Display *dpy, const char *part)
{
    int n = 0, id = 0;
    XIDeviceInfo *list = XIQueryDevice(dpy, XIAllDevices, &n);
    for (int i = 0; i < n && !id; i++)
        if (strstr(list[i].name, part))
            id = list[i].deviceid;
    if (list)
        XIFreeDeviceInfo(list);
    return id;
}

struct listening {
    struct watch *w;
    const char *display;
    bool pointer;
    struct err *e;
};

static int select_events(void *arg)
{
    const struct listening *l = arg;
    struct watch *w = l->w;
    int event, error, opcode, major = 2, minor = 2;
    if (!XQueryExtension(w->dpy, "XInputExtension", &w->xi_opcode, &event, &error) ||
        !x11_xinput_answers(w->dpy) || XIQueryVersion(w->dpy, &major, &minor) != Success ||
        (major == 2 && minor < 1))
        return err_set(l->e, ERR_ENV, "display '%s' has no XInput 2.1: Escape twice will not stop the run",
                       l->display);
    unsigned char bits[XIMaskLen(XI_LASTEVENT)] = {0};
    XISetMask(bits, XI_RawKeyPress);
    XISetMask(bits, XI_RawKeyRelease);
    if (l->pointer) {
        XISetMask(bits, XI_RawButtonPress);
        XISetMask(bits, XI_RawButtonRelease);
        XISetMask(bits, XI_RawMotion);
        w->pointer_id = device_named(w->dpy, "XTEST pointer");
    }
    /* XIAllDevices would deliver each event twice. */
    XIEventMask wanted = {.deviceid = XIAllMasterDevices, .mask_len = sizeof bits, .mask = bits};
    XISelectEvents(w->dpy, DefaultRootWindow(w->dpy), &wanted, 1);
    w->hand_back = XInternAtom(w->dpy, SCREEN_HAND_BACK, False);
    XSelectInput(w->dpy, DefaultRootWindow(w->dpy), PropertyChangeMask);
    w->escape = XKeysymToKeycode(w->dpy, XK_Escape);
    major = XkbMajorVersion;
    minor = XkbMinorVersion;
    const unsigned maps = XkbMapNotifyMask | XkbNewKeyboardNotifyMask;
    if (XkbQueryExtension(w->dpy, &opcode, &w->xkb_event, &error, &major, &minor))
        XkbSelectEvents(w->dpy, XkbUseCoreKbd, maps, maps);
    w->window = XCreateWindow(w->dpy, DefaultRootWindow(w->dpy), 0, 0, 1, 1, 0, 0, InputOnly, CopyFromParent,
                              0, NULL);
    w->ping = clock_ns();
    XTestGrabControl(w->dpy, True); /* makes requests work during another client's server grab */
    XSync(w->dpy, False);
    return 0;
}

static int listen_to(struct watch *w, const char *display, bool pointer, struct err *e)
{
    w->dpy = xtrap_open(display, &w->lost);
    if (!w->dpy)
        return err_set(e, ERR_ENV, "cannot open a second connection to display '%s'", display);
    if ((w->socket = fcntl(ConnectionNumber(w->dpy), F_DUPFD_CLOEXEC, 0)) < 0)
        return err_set(e, ERR_ENV, "no more file descriptors: %s", strerror(errno));
    int rc = xtrap_asking(select_events, &(struct listening){w, display, pointer, e});
    if (rc != XTRAP_LOST)
        return rc;
    w->lost = true;
    return err_set(e, ERR_ENV, "display '%s' was lost", display);
}

static void watch_free(struct watch *w)
{
    if (w->dpy)
        xtrap_close(w->dpy, &w->lost);
    if (w->socket >= 0)
        close(w->socket);
    stopfile_close(w->files);
    free(w);
}

int watch_open(struct screen *s, struct err *e)
{
    if (s->x11->watch)
        return 0;
    s->options.pause_on_user |= window_property(s, s->x11->root, SCREEN_VIEWED, XA_INTEGER) != 0;
    struct watch *w = xcalloc(1, sizeof *w);
    w->socket = -1;
    w->screen = s;
    w->keyboard_id = s->x11->keyboard_id;
    w->files = stopfile_open(s->stop, check_turn, w, e);
    int rc = w->files ? listen_to(w, s->name, s->options.pause_on_user || s->options.corner_stop, e) : -1;
    int failed = rc ? 0 : thread_start(&w->thread, STACK_BYTES, watch_thread, w);
    if (failed)
        rc = err_set(e, ERR_ENV, "cannot start a thread: %s", strerror(failed));
    if (rc && w->lost)
        xtrap_half_open();
    if (rc)
        watch_free(w);
    else
        s->x11->watch = w;
    return rc;
}

void watch_closing(struct screen *s)
{
    if (!s->x11->watch)
        return;
    s->x11->watch->closing = true;
    stop_wake(s->stop);
}

void watch_close(struct screen *s)
{
    struct watch *w = s->x11->watch;
    struct timespec until = held_deadline(JOIN_MS);
    if (!w)
        return;
    w->end = true;
    stop_wake(s->stop);
    if (pthread_clockjoin_np(w->thread, NULL, CLOCK_MONOTONIC, &until)) { /* the server hangs */
        shutdown(w->socket, SHUT_RDWR);
        pthread_join(w->thread, NULL);
    }
    watch_free(w);
    s->x11->watch = NULL;
}
