/* screen.c - opens, probes and closes the connection to a display.
 *
 * Required: an X11 server (not Xwayland, whose root does not show Wayland windows) with XTEST, XKEYBOARD and
 * a TrueColor or DirectColor root. MIT-SHM, XFixes, XDamage, RandR and XInput are optional and probed here
 * once; the code that uses them has fallbacks. */
#include "screen/guard.h"
#include "screen/private.h"

#include "base/buf.h"
#include "base/clock.h"
#include "screen/displays.h"

#include <X11/Xatom.h>
#include <X11/extensions/XInput.h>
#include <X11/extensions/XInput2.h>
#include <X11/extensions/XTest.h>
#include <X11/extensions/Xfixes.h>
#include <X11/extensions/Xrandr.h>
#include <poll.h>
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

bool screen_xinput_answers(Display *dpy)
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
    s->dpy = xtrap_open(given, &s->lost);
    if (!s->dpy)
        return refuse_display(given, e);
    s->name = xstrdup(given);
    if (!keep_xinput(given))
        return err_set(e, ERR_ENV, "display '%s' was lost while it was opened", given);
    s->root = DefaultRootWindow(s->dpy);
    s->visual = DefaultVisual(s->dpy, DefaultScreen(s->dpy));
    s->depth = DefaultDepth(s->dpy, DefaultScreen(s->dpy));
    return 0;
}

static bool is_xwayland(struct screen *s)
{
    int a, b, c;
    if (XQueryExtension(s->dpy, "XWAYLAND", &a, &b, &c))
        return true;
    for (int i = 0; i < s->n_monitors; i++) /* servers before 23.1 */
        if (!strncmp(s->monitors[i].name, "XWAYLAND", 8))
            return true;
    return false;
}

struct probe {
    struct screen *s;
    struct err *e;
};

static int probe(void *arg)
{
    struct screen *s = ((struct probe *)arg)->s;
    struct err *e = ((struct probe *)arg)->e;
    int event, error, major, minor;
    if (!XTestQueryExtension(s->dpy, &event, &error, &s->xtest_major, &s->xtest_minor))
        return err_set(e, ERR_ENV,
                       "display '%s' has no XTEST extension, so clicks and keys cannot be sent; start the "
                       "X server without '-extension XTEST'",
                       s->name);
    if (s->visual->class != TrueColor && s->visual->class != DirectColor)
        return err_set(
            e, ERR_ENV,
            "display '%s' uses a colour palette (depth %d); start the X server with 24 bits per pixel",
            s->name, s->depth);
    XTestGrabControl(s->dpy, True); /* makes our requests work during server grabs of other clients */

    s->xfixes = XFixesQueryExtension(s->dpy, &event, &error) && XFixesQueryVersion(s->dpy, &major, &minor) &&
                major >= 2;
    major = 1;
    minor = 1;
    if (s->xfixes && XDamageQueryExtension(s->dpy, &event, &error) &&
        XDamageQueryVersion(s->dpy, &major, &minor))
        s->damage_event = event;
    if (XRRQueryExtension(s->dpy, &event, &error) && XRRQueryVersion(s->dpy, &major, &minor) &&
        (major > 1 || minor >= 5)) {
        s->randr_event = event;
        XRRSelectInput(s->dpy, s->root, RRScreenChangeNotifyMask);
    }
    /* xrandr --setmonitor sends only StructureNotify events; SubstructureNotify reports opened windows and
     * answered pings */
    XSelectInput(s->dpy, s->root, StructureNotifyMask | SubstructureNotifyMask);
    int opcode;
    if (screen_xinput_answers(s->dpy)) {
        major = 2;
        minor = 2;
        s->xinput = XIQueryVersion(s->dpy, &major, &minor) == Success;
    }
    major = XkbMajorVersion;
    minor = XkbMinorVersion;
    s->xkb_event = XkbQueryExtension(s->dpy, &opcode, &event, &error, &major, &minor) ? event : 0;
    if (!s->xkb_event)
        return err_set(e, ERR_ENV, "display '%s' has no XKEYBOARD extension, which is needed to find keys",
                       s->name);
    return 0;
}

static int ask_extensions(struct screen *s, struct err *e)
{
    int rc = xtrap_asking(probe, &(struct probe){s, e});
    s->lost = s->lost || rc == XTRAP_LOST;
    return rc == XTRAP_LOST ? screen_alive(s, e) : rc;
}

struct screen *screen_open(const struct screen_options *o, struct err *e)
{
    static const struct screen_options none;
    struct screen *s = xcalloc(1, sizeof *s);
    s->options = o ? *o : none;
    if (s->options.key_delay_ms <= 0)
        s->options.key_delay_ms = 5;
    if (s->options.keymap_settle_ms <= 0)
        s->options.keymap_settle_ms = 50;
    s->view_name = xstrdup(s->options.view ? s->options.view : "all");
    s->options.view = s->options.display = NULL; /* borrowed only during the call */
    s->held.fd = -1;
    pointer_forget_place(s);

    if (!(s->stop = stop_open(e)) || connect_display(s, o ? o->display : NULL, e) || ask_extensions(s, e) ||
        monitors_update(s, e))
        goto fail;
    if (is_xwayland(s)) {
        err_set(e, ERR_ENV, "display '%s' is Xwayland inside a Wayland session: %s", s->name, WAYLAND_ADVICE);
        goto fail;
    }
    keyboard_open(s);
    settle_open(s);
    held_open(&s->held, s->name);
    guard_display(s->stop->slot, s->held.display, s->held.path); /* before a held file can be left behind */
    held_acquire(&s->held, s->dpy, NULL);
    if (screen_alive(s, e))
        goto fail;
    return s;
fail:
    if (s->lost)
        xtrap_half_open();
    screen_close(s);
    return NULL;
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
    if (s->lost && !s->hung)
        held_release_anew(&s->held);
}

void screen_close(struct screen *s)
{
    if (!s)
        return;
    observed_drop(s);
    if (s->dpy) {
        watch_closing(s);
        release_at_end(s);
        paste_close(s);
        grab_close(s);
        settle_close(s);
        capture_close(s);
        keyboard_close(s);
        if (s->xdo)
            xdo_free(s->xdo);
        watch_close(s);
        /* otherwise the guard releases everything when the server resumes */
        if (s->stop && !(s->hung && held_any(&s->held)))
            guard_forget(s->stop->slot);
        if (s->held.display)
            held_close(&s->held);
        xtrap_close(s->dpy, &s->lost);
    }
    stop_close(s->stop);
    free(s->view_name);
    free(s->name);
    free(s);
}

/* ---- state ------------------------------------------------------------------------------------ */

int screen_alive(struct screen *s, struct err *e)
{
    if (s->lost)
        return err_set(e, ERR_ENV, "display '%s' was lost", s->name);
    return 0;
}

/* Acquires the input of the display: the lock of the held file, and the selection on the server. */
static int acquire(struct screen *s, struct err *e)
{
    return held_acquire(&s->held, s->dpy, e) || input_owner_acquire(s->dpy, s->name, &s->owner_window, e) ? -1
                                                                                                          : 0;
}

/* Calls the check of this event. The check may query other programs for several seconds and has its own time
 * limits, so the watchdog must not count that time as a hung action. */
static int ask_check(struct screen *s, struct err *e)
{
    screen_set_acting(s, false);
    int rc = s->check(s->check_arg, e);
    screen_set_acting(s, true);
    return rc;
}

int screen_may_act(struct screen *s, struct err *e)
{
    if (screen_alive(s, e) || stop_check(s->stop, e))
        return -1;
    if (screen_user_input(s))
        return err_set(e, ERR_FAILED, "a person uses the %s: nothing more was done", screen_user_input(s));
    if (s->check && ask_check(s, e))
        return -1;
    return acquire(s, e);
}

int input_begin(struct screen *s, bool down, struct err *e)
{
    guard_progress(s->stop->slot);
    held_lock(&s->held);
    if (!down || screen_may_act(s, e) == 0)
        return 0;
    held_unlock(&s->held);
    return -1;
}

int input_end(struct screen *s, struct err *e)
{
    held_unlock(&s->held);
    s->events++;
    return screen_alive(s, e);
}

int screen_acquire_input(struct screen *s, struct err *e)
{
    return screen_alive(s, e) ? -1 : acquire(s, e);
}

void screen_pump(struct screen *s)
{
    while (s->dpy && !s->lost && XPending(s->dpy)) {
        XEvent ev;
        XNextEvent(s->dpy, &ev);
        if (ev.type == MappingNotify || ev.type == s->xkb_event) { /* the only XKB events selected */
            s->map_stale = true;
        } else if (ev.type == ClientMessage) {
            delivery_note_pong(s, &ev.xclient);
        } else if (s->damage_event && ev.type == s->damage_event + XDamageNotify) {
            s->damage_waiting = true;
        } else if (ev.type == MapNotify) {
            s->opened += ev.xmap.override_redirect != 0;
        } else if (ev.type == SelectionRequest) {
            paste_answer(s, &ev.xselectionrequest);
        } else if (ev.type == SelectionClear && ev.xselectionclear.selection != XA_PRIMARY) {
            paste_close(s); /* another client owns the clipboard now */
        } else if ((s->randr_event && ev.type == s->randr_event + RRScreenChangeNotify) ||
                   (ev.type == ConfigureNotify && ev.xconfigure.window == s->root)) {
            XRRUpdateConfiguration(&ev);
            s->view_gone = monitors_update(s, NULL) != 0;
        }
    }
}

const char *screen_name(const struct screen *s)
{
    return s->name;
}

int64_t screen_events_sent(const struct screen *s)
{
    return s->events;
}

/* Returns whether a button is held away from where it was pressed. Otherwise the release needs no motion. */
static bool is_dragging(struct screen *s)
{
    int x, y;
    return held_any_button(&s->held) && screen_pointer(s, &x, &y) == 0 &&
           (x != s->held.press_x || y != s->held.press_y);
}

int screen_release_all(struct screen *s)
{
    bool any = held_pressed(&s->held);
    if (!s->lost) {
        held_release_pressed(&s->held, s->dpy, stop_reason(s->stop) || !is_dragging(s));
        XSync(s->dpy, False);
    }
    if (!s->lost) {
        held_confirm_released(&s->held);
        keyboard_end(s);
    }
    if (any)
        pointer_forget_place(s); /* a button was released where it was pressed */
    memset(s->down, 0, sizeof s->down);
    return any;
}

/* Detects a server that has exited while no request is pending. */
static void check_connection(struct screen *s)
{
    struct pollfd p = {.fd = s->dpy && !s->lost ? ConnectionNumber(s->dpy) : -1, .events = POLLRDHUP};
    if (poll(&p, 1, 0) > 0)
        s->lost = true;
}

int screen_wait(struct screen *s, double ms, struct err *e)
{
    /* Sleeps in slices of 10 ms, so that a stop or a lost display is noticed within one slice. */
    for (double left = ms;; left -= 10) {
        guard_progress(s->stop->slot);
        check_connection(s);
        if (screen_alive(s, e) || stop_check(s->stop, e))
            return -1;
        if (left <= 0)
            return 0;
        clock_sleep_ms(left < 10 ? left : 10);
    }
}

/* ---- facts ------------------------------------------------------------------------------------ */

void screen_describe(struct screen *s, struct buf *out)
{
    if (screen_alive(s, NULL))
        return;
    uint8_t codes[256];
    buf_printf(out, "display: %s\n", s->name);
    buf_printf(out, "server: %s %d\n", ServerVendor(s->dpy), VendorRelease(s->dpy));
    buf_printf(out, "root: %dx%d depth %d\n", s->root_rect.w, s->root_rect.h, s->depth);
    for (int i = 0; i < s->n_monitors; i++)
        buf_printf(out, "monitor %d: %s %dx%d+%d+%d%s\n", i, s->monitors[i].name, s->monitors[i].rect.w,
                   s->monitors[i].rect.h, s->monitors[i].rect.x, s->monitors[i].rect.y,
                   s->monitors[i].primary ? " primary" : "");
    buf_printf(out, "view: %s %dx%d+%d+%d\n", s->view_name, s->view.w, s->view.h, s->view.x, s->view.y);
    buf_printf(out, "xtest: %d.%d\n", s->xtest_major, s->xtest_minor);
    struct image im = {0};
    screen_capture(s, &im, NULL); /* tests shared memory */
    image_free(&im);
    buf_printf(out, "shm: %s%s\n", s->shm ? "yes" : "no, ", s->shm ? "" : s->shm_why);
    static const char *const answer[] = {"no", "yes"};
    buf_printf(out, "xfixes: %s\nxdamage: %s\nrandr: %s\nxinput2: %s\n", answer[s->xfixes],
               answer[s->damage_event != 0], answer[s->randr_event != 0], answer[s->xinput]);
    buf_printf(out, "free keycodes: %d\n", keyboard_free_codes(s, codes, 256));
    buf_printf(out, "pointer buttons: %d\n", XGetPointerMapping(s->dpy, codes, 256));
    char manager[64];
    window_manager_name(s, manager, sizeof manager);
    buf_printf(out, "window manager: %s\n", manager[0] ? manager : "no");
    buf_printf(out, "input: %s\n", acquire(s, NULL) ? "no, display in use by another holorun" : "yes");
}
