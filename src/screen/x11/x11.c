/* x11.c - the X11 implementation of screen_ops.h: opens, probes and closes the connection to a display.
 *
 * Required: an X11 server (not Xwayland, whose root does not show Wayland windows) with XTEST, XKEYBOARD and
 * a TrueColor or DirectColor root. MIT-SHM, XFixes, XDamage, RandR and XInput are optional and probed here
 * once; the code that uses them has fallbacks. */
#include "screen/guard.h"
#include "screen/x11/x11_impl.h"

#include "base/buf.h"
#include "base/clock.h"
#include "screen/x11/displays.h"

#include <X11/Xatom.h>
#include <X11/extensions/XInput.h>
#include <X11/extensions/XInput2.h>
#include <X11/extensions/XTest.h>
#include <X11/extensions/Xfixes.h>
#include <X11/extensions/Xrandr.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define WAYLAND_ADVICE                                                                                       \
    "holorun sends X11 input, which does not reach Wayland windows; use a private desktop "                  \
    "(holorun run --on desk) or log in to an X11 session"

/* ---- open ------------------------------------------------------------------------------------- */

static int ask_xinput(void *dpy)
{
    int opcode, event, error;
    if (!XQueryExtension(dpy, INAME, &opcode, &event, &error))
        return -1;
    XExtensionVersion *v = XGetExtensionVersion(dpy, INAME);
    if (!v || v == (XExtensionVersion *)NoSuchExtension)
        return -1;
    int rc = v->present ? 0 : -1;
    XFree(v);
    return rc;
}

bool x11_xinput_answers(Display *dpy)
{
    return ask_xinput(dpy) == 0;
}

/* Keeps one Display with XInput open for the life of the process, with its connection shut down: libXi frees
 * its list of displays when the last one is closed, even while another thread adds one. Returns false if the
 * display was lost meanwhile, which damages libXi's memory. */
static bool keep_xinput(const char *name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static Display *kept;
    pthread_mutex_lock(&lock);
    static atomic_bool lost;
    lost = false;
    Display *dpy = kept ? NULL : xtrap_open(name, &lost);
    int rc = dpy ? xtrap_asking(ask_xinput, dpy) : 0;
    if (rc == XTRAP_LOST)
        lost = true;
    bool answers = rc == 0, whole = !lost;
    if (dpy && answers && whole) {
        shutdown(ConnectionNumber(dpy), SHUT_RDWR);
        kept = dpy;
    } else if (dpy) { /* the next screen_open() tries again */
        if (!whole)
            xtrap_half_open();
        xtrap_close(dpy, &lost);
    }
    pthread_mutex_unlock(&lock);
    return whole;
}

static bool is_wayland_session(void)
{
    const char *type = getenv("XDG_SESSION_TYPE"), *display = getenv("WAYLAND_DISPLAY");
    return (display && *display) || (type && !strcmp(type, "wayland"));
}

static int refuse_display(const char *name, struct err *e)
{
    char file[256];
    bool opens = displays_auth_of(name, file, sizeof file);
    return err_set(e, ERR_ENV,
                   "cannot open display '%s': no X server there, it does not answer, or it denies access to "
                   "this user (see xauth)%s%s",
                   name, opens ? "; it opens with XAUTHORITY=" : "", opens ? file : "");
}

static int connect_display(struct screen *s, const char *name, struct err *e)
{
    const char *given = name && *name ? name : getenv("DISPLAY");
    if (!given || !*given) {
        if (is_wayland_session())
            return err_set(e, ERR_ENV, "this is a Wayland session without an X11 display: " WAYLAND_ADVICE);
        return displays_refuse(e);
    }
    s->x11->dpy = xtrap_open(given, &s->lost);
    if (!s->x11->dpy)
        return refuse_display(given, e);
    s->name = xstrdup(given);
    if (!keep_xinput(given))
        return err_set(e, ERR_ENV, "display '%s' was lost while it was opened", given);
    s->fd = ConnectionNumber(s->x11->dpy);
    s->x11->root = DefaultRootWindow(s->x11->dpy);
    s->x11->visual = DefaultVisual(s->x11->dpy, DefaultScreen(s->x11->dpy));
    s->x11->depth = DefaultDepth(s->x11->dpy, DefaultScreen(s->x11->dpy));
    return 0;
}

static bool is_xwayland(struct screen *s)
{
    int a, b, c;
    if (XQueryExtension(s->x11->dpy, "XWAYLAND", &a, &b, &c))
        return true;
    for (int i = 0; i < s->n_monitors; i++) /* servers before 23.1 */
        if (!strncmp(s->monitors[i].name, "XWAYLAND", 8))
            return true;
    return false;
}

struct display_probe {
    struct screen *s;
    struct err *e;
};

static int probe(void *arg)
{
    struct screen *s = ((struct display_probe *)arg)->s;
    struct err *e = ((struct display_probe *)arg)->e;
    int event, error, major, minor;
    if (!XTestQueryExtension(s->x11->dpy, &event, &error, &s->x11->xtest_major, &s->x11->xtest_minor))
        return err_set(e, ERR_ENV,
                       "display '%s' has no XTEST extension, so clicks and keys cannot be sent; start the "
                       "X server without '-extension XTEST'",
                       s->name);
    if (s->x11->visual->class != TrueColor && s->x11->visual->class != DirectColor)
        return err_set(
            e, ERR_ENV,
            "display '%s' uses a colour palette (depth %d); start the X server with 24 bits per pixel",
            s->name, s->x11->depth);
    XTestGrabControl(s->x11->dpy, True); /* makes our requests work during server grabs of other clients */

    s->x11->xfixes = XFixesQueryExtension(s->x11->dpy, &event, &error) &&
                     XFixesQueryVersion(s->x11->dpy, &major, &minor) && major >= 2;
    major = 1;
    minor = 1;
    if (s->x11->xfixes && XDamageQueryExtension(s->x11->dpy, &event, &error) &&
        XDamageQueryVersion(s->x11->dpy, &major, &minor))
        s->x11->damage_event = event;
    if (XRRQueryExtension(s->x11->dpy, &event, &error) && XRRQueryVersion(s->x11->dpy, &major, &minor) &&
        (major > 1 || minor >= 5)) {
        s->x11->randr_event = event;
        XRRSelectInput(s->x11->dpy, s->x11->root, RRScreenChangeNotifyMask);
    }
    /* xrandr --setmonitor sends only StructureNotify events; SubstructureNotify reports opened windows and
     * answered pings */
    XSelectInput(s->x11->dpy, s->x11->root, StructureNotifyMask | SubstructureNotifyMask);
    int opcode;
    if (x11_xinput_answers(s->x11->dpy)) {
        major = 2;
        minor = 2;
        s->x11->xinput = XIQueryVersion(s->x11->dpy, &major, &minor) == Success;
    }
    major = XkbMajorVersion;
    minor = XkbMinorVersion;
    s->x11->xkb_event = XkbQueryExtension(s->x11->dpy, &opcode, &event, &error, &major, &minor) ? event : 0;
    if (!s->x11->xkb_event)
        return err_set(e, ERR_ENV, "display '%s' has no XKEYBOARD extension, which is needed to find keys",
                       s->name);
    return 0;
}

static int ask_extensions(struct screen *s, struct err *e)
{
    int rc = xtrap_asking(probe, &(struct display_probe){s, e});
    s->lost = s->lost || rc == XTRAP_LOST;
    return rc == XTRAP_LOST ? screen_alive(s, e) : rc;
}

static int x11_open(struct screen *s, const char *display, struct err *e)
{
    s->x11 = xcalloc(1, sizeof *s->x11);
    s->x11->held.fd = -1;
    if (connect_display(s, display, e) || ask_extensions(s, e))
        return -1;
    if (x11_outputs(s))
        return screen_alive(s, e) ? -1
                                  : err_set(e, ERR_ENV, "display '%s' does not report its size", s->name);
    if (is_xwayland(s))
        return err_set(e, ERR_ENV, "display '%s' is Xwayland inside a Wayland session: %s", s->name,
                       WAYLAND_ADVICE);
    keyboard_open(s);
    capture_open(s);
    held_open(&s->x11->held, s->name);
    guard_display(s->stop->slot, s->x11->held.display,
                  s->x11->held.path); /* before a held file can be left behind */
    held_acquire(&s->x11->held, s->x11->dpy, NULL);
    s->x11->complete = !s->lost;
    return screen_alive(s, e);
}

/* Releases everything before the connection closes. A program that lags still translates keys with borrowed
 * keycodes, so they are removed after it has caught up; after a stop the wait is shorter. */
static void release_at_end(struct screen *s)
{
    enum delivery unused;
    if (!s->lost)
        screen_release_all(s);
    if (!s->lost && spare_bound(s) && delivery_wait(s, READ_MS, &unused, NULL))
        clock_sleep_ms(s->options.keymap_settle_ms);
    spare_restore(s);
    if (s->lost && !s->x11->hung)
        held_release_anew(&s->x11->held);
}

static void x11_close(struct screen *s)
{
    struct x11 *x = s->x11;
    if (x && s->lost && !x->complete)
        xtrap_half_open();
    if (x && x->dpy) {
        watch_closing(s);
        release_at_end(s);
        paste_close(s);
        selection_close(s);
        grab_close(s);
        capture_close(s);
        keyboard_close(s);
        if (x->xdo)
            xdo_free(x->xdo);
        watch_close(s);
        /* otherwise the guard releases everything when the server resumes */
        if (!(x->hung && held_any(&x->held)))
            guard_forget(s->stop->slot);
        if (x->held.display)
            held_close(&x->held);
        xtrap_close(x->dpy, &s->lost);
    }
    free(x);
    s->x11 = NULL;
}

/* ---- state ------------------------------------------------------------------------------------ */

/* Acquires the input of the display: the lock of the held file, and the selection on the server. */
static int x11_acquire(struct screen *s, struct err *e)
{
    return held_acquire(&s->x11->held, s->x11->dpy, e) ||
                   input_owner_acquire(s->x11->dpy, s->name, &s->x11->owner_window, e)
               ? -1
               : 0;
}

static bool x11_pump(struct screen *s)
{
    bool any = false;
    for (; !s->lost && XPending(s->x11->dpy); any = true) {
        XEvent ev;
        XNextEvent(s->x11->dpy, &ev);
        if (ev.type == MappingNotify || ev.type == s->x11->xkb_event || ev.type == GenericEvent) {
            keyboard_note_event(s, &ev);
        } else if (ev.type == ClientMessage) {
            delivery_note_pong(s, &ev.xclient);
        } else if (s->x11->damage_event && ev.type == s->x11->damage_event + XDamageNotify) {
            s->x11->damage_waiting = true;
        } else if (ev.type == MapNotify) {
            s->x11->opened += ev.xmap.override_redirect != 0;
        } else if (ev.type == SelectionRequest) {
            paste_answer(s, &ev.xselectionrequest);
        } else if (ev.type == SelectionClear && ev.xselectionclear.selection != XA_PRIMARY) {
            paste_close(s); /* another client owns the clipboard now */
        } else if ((s->x11->randr_event && ev.type == s->x11->randr_event + RRScreenChangeNotify) ||
                   (ev.type == ConfigureNotify && ev.xconfigure.window == s->x11->root)) {
            XRRUpdateConfiguration(&ev);
            s->view_gone = monitors_update(s, NULL) != 0;
        }
    }
    return any;
}

static void x11_lock(struct screen *s, bool on)
{
    if (on)
        held_lock(&s->x11->held);
    else
        held_unlock(&s->x11->held);
}

static bool x11_holds_button(const struct screen *s, int number)
{
    const struct held *h = &s->x11->held;
    return number ? h->button[number] && !h->button_sent[number] : held_any_button(h);
}

static int x11_count_keys(const struct screen *s)
{
    int n = 0;
    for (int i = 0; i < HELD_KEYS; i++)
        n += s->x11->held.key[i];
    return n;
}

/* Returns whether a button is held away from where it was pressed. Otherwise the release needs no motion. */
static bool is_dragging(struct screen *s)
{
    int x, y;
    return held_any_button(&s->x11->held) && screen_pointer(s, &x, &y) == 0 &&
           (x != s->x11->held.press_x || y != s->x11->held.press_y);
}

static bool x11_release(struct screen *s)
{
    bool any = held_pressed(&s->x11->held);
    if (!s->lost) {
        held_release_pressed(&s->x11->held, s->x11->dpy, stop_reason(s->stop) || !is_dragging(s));
        XSync(s->x11->dpy, False);
    }
    if (!s->lost) {
        held_confirm_released(&s->x11->held);
        keyboard_end(s);
    }
    memset(s->x11->down, 0, sizeof s->x11->down);
    return any;
}

int x11_server_pid(struct screen *s)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    int rc = getsockopt(s->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    return rc == 0 && size == sizeof peer ? (int)peer.pid : 0;
}

static int x11_drawing_pids(struct screen *s, int pids[3])
{
    pids[0] = x11_server_pid(s);
    return 1 + hit_test_pids(s, pids + 1);
}

/* ---- facts ------------------------------------------------------------------------------------ */

static void x11_describe(struct screen *s, struct buf *out)
{
    uint8_t codes[256];
    buf_printf(out, "server: %s %d\n", ServerVendor(s->x11->dpy), VendorRelease(s->x11->dpy));
    buf_printf(out, "root: %dx%d depth %d\n", s->root_rect.w, s->root_rect.h, s->x11->depth);
    monitors_describe(s, out);
    buf_printf(out, "xtest: %d.%d\n", s->x11->xtest_major, s->x11->xtest_minor);
    struct image im = {0};
    screen_capture(s, &im, NULL); /* tests shared memory */
    image_free(&im);
    bool shm = s->x11->segment_bytes != 0;
    buf_printf(out, "shm: %s%s\n", shm ? "yes" : "no, ", shm ? "" : s->x11->shm_why);
    static const char *const answer[] = {"no", "yes"};
    buf_printf(out, "xfixes: %s\nxdamage: %s\nrandr: %s\nxinput2: %s\n", answer[s->x11->xfixes],
               answer[s->x11->damage_event != 0], answer[s->x11->randr_event != 0], answer[s->x11->xinput]);
    buf_printf(out, "free keycodes: %d\n", keyboard_free_codes(s, codes, 256));
    buf_printf(out, "pointer buttons: %d\n", XGetPointerMapping(s->x11->dpy, codes, 256));
    char manager[64];
    window_manager_name(s, manager, sizeof manager);
    buf_printf(out, "window manager: %s\n", manager[0] ? manager : "no");
}

/* ---- interface -------------------------------------------------------------------------------------- */

const struct screen_ops screen_x11 = {
    .name = "x11",
    .init = xtrap_setup,
    .emergency = held_emergency,
    .open = x11_open,
    .close = x11_close,
    .describe = x11_describe,
    .pump = x11_pump,
    .outputs = x11_outputs,
    .acquire = x11_acquire,
    .watch = watch_open,
    .watch_check = watch_check,
    .capture = x11_capture,
    .recall = x11_recall,
    .draw_cursor = x11_draw_cursor,
    .redrawn = x11_redrawn,
    .drawing_pids = x11_drawing_pids,
    .pointer = x11_pointer,
    .user_holds_button = x11_user_holds_button,
    .find_button = x11_find_button,
    .motion = x11_motion,
    .button = x11_button,
    .press_begin = grab_before_press,
    .press_end = grab_after_release,
    .prepare = x11_prepare,
    .restore = keyboard_end,
    .lock = x11_lock,
    .release = x11_release,
    .holds_button = x11_holds_button,
    .holds_key = chords_hold,
    .count_keys = x11_count_keys,
    .key = chords_key,
    .type = text_type,
    .shifted = keyboard_shifted,
    .keys_begin = delivery_begin,
    .keys_wait = delivery_wait,
    .ping = delivery_ping,
    .confirms = delivery_confirms,
    .hover = clicked_hover,
    .clicked = clicked_wait,
    .keys_rest = clicked_keys_rest,
    .tops = hit_test_tops,
    .chain = hit_test_at_point,
    .window = hit_test_window,
    .window_at = hit_test_window_at,
    .focused = hit_test_focused,
    .find_window = hit_test_find,
    .window_rect = hit_test_rect,
    .without_shadow = window_without_shadow,
    .focus = hit_test_input_focus,
    .focus_top = hit_test_focus_top,
    .active_window = window_active,
    .each_window = window_each,
    .has_window_manager = window_manager_runs,
    .selection = selection_read,
    .take_primary = selection_take_primary,
    .primary_taken = selection_primary_taken,
};
