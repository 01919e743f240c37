/* watch.c - the person's way to stop a run: Escape twice, or a file.
 *
 * A thread with a connection of its own listens to raw key events (XInput 2.1 or newer: they arrive
 * even while some program has grabbed the keyboard) and sets the stop flag when Escape goes down twice
 * within 0.6 s, released in between and with no other key between.
 *
 * The agent presses Escape too, and that must not stop it.  What XTEST injects carries the XTEST
 * keyboard as its source, but so does what a person types through VNC.  Hence every injected key is
 * noted before it is sent; a raw event from the XTEST keyboard that matches a note of the last 250 ms
 * is ours and uses the note up, everything else is a person.
 *
 * The file holorun/stop in the runtime folder stops a run too when it is newer than the run; it holds
 * seconds since 1970 as a number, or nothing, and then its own time counts.  It is never removed.
 */
#include "screen/private.h"

#include "base/clock.h"
#include "base/file.h"

#include <X11/extensions/XInput2.h>
#include <X11/keysym.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { GESTURE_MS = 600, NOTE_MS = 250, MAX_NOTES = 128, POLL_MS = 50 };

/* ---- what we inject ------------------------------------------------------------------------------ */

struct note {
    int keycode; /* 0: used up */
    bool down;
    int64_t at;
};
static struct note notes[MAX_NOTES];
static int next_note;
static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;

void watch_note_key(int keycode, bool down)
{
    pthread_mutex_lock(&notes_lock);
    notes[next_note++ % MAX_NOTES] = (struct note){keycode, down, clock_ns()};
    pthread_mutex_unlock(&notes_lock);
}

static bool was_ours(int keycode, bool down)
{
    bool found = false;
    pthread_mutex_lock(&notes_lock);
    for (int i = 0; i < MAX_NOTES && !found; i++)
        if (notes[i].keycode == keycode && notes[i].down == down && clock_ms_since(notes[i].at) < NOTE_MS) {
            notes[i].keycode = 0;
            found = true;
        }
    pthread_mutex_unlock(&notes_lock);
    return found;
}

/* ---- the thread ---------------------------------------------------------------------------------- */

struct watch {
    Display *dpy;
    volatile bool lost, end;
    int xi_opcode, keyboard_id, escape;
    bool armed, released; /* a first Escape was seen; it has gone up */
    int64_t first;
    double started; /* seconds since 1970 */
    char *path;
    pthread_t thread;
};

static void on_key(struct watch *w, const XIRawEvent *raw)
{
    bool down = raw->evtype == XI_RawKeyPress;
    if (raw->sourceid == w->keyboard_id && was_ours(raw->detail, down))
        return;
    if (raw->detail != w->escape) {
        w->armed = w->armed && !down;
    } else if (!down) {
        w->released = true;
    } else if (w->armed && w->released && clock_ms_since(w->first) <= GESTURE_MS) {
        *screen_stop_flag() = STOP_HUMAN;
        w->armed = false;
    } else if (!w->armed || w->released) { /* else: the same press, repeating itself */
        w->armed = true;
        w->released = false;
        w->first = clock_ns();
    }
}

static void read_events(struct watch *w)
{
    while (!w->lost && XPending(w->dpy)) {
        XEvent ev;
        XNextEvent(w->dpy, &ev);
        if (ev.type == MappingNotify) {
            XRefreshKeyboardMapping(&ev.xmapping);
            w->escape = XKeysymToKeycode(w->dpy, XK_Escape);
        }
        if (ev.type != GenericEvent || ev.xcookie.extension != w->xi_opcode ||
            !XGetEventData(w->dpy, &ev.xcookie))
            continue;
        on_key(w, ev.xcookie.data);
        XFreeEventData(w->dpy, &ev.xcookie);
    }
}

/* When the file asks for a stop, in seconds since 1970; 0 when it does not. */
static double file_time(const char *path)
{
    struct stat st;
    char text[64], *end;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    double t = 0;
    ssize_t n = -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == getuid())
        n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n >= 0) {
        text[n] = 0;
        t = strtod(text, &end);
        if (end == text)
            t = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec * 1e-9;
    }
    return t;
}

static void *watch_thread(void *arg)
{
    struct watch *w = arg;
    while (!w->end) {
        struct pollfd p = {.fd = w->lost ? -1 : ConnectionNumber(w->dpy), .events = POLLIN};
        poll(&p, 1, POLL_MS);
        if (!w->lost)
            read_events(w);
        if (!*screen_stop_flag() && file_time(w->path) > w->started)
            *screen_stop_flag() = STOP_FILE;
    }
    /* Here and not by who joins: Xlib leaves a lost Display locked by the thread that noticed. */
    XCloseDisplay(w->dpy);
    w->dpy = NULL;
    return NULL;
}

/* ---- start and end ------------------------------------------------------------------------------- */

static int listen_keys(struct watch *w, const char *display, struct err *e)
{
    int event, error, major = 2, minor = 2;
    w->dpy = XOpenDisplay(display);
    if (!w->dpy)
        return err_set(e, ERR_ENV, "cannot open a second connection to display '%s'", display);
    xtrap_watch(w->dpy, &w->lost);
    if (!XQueryExtension(w->dpy, "XInputExtension", &w->xi_opcode, &event, &error) ||
        XIQueryVersion(w->dpy, &major, &minor) != Success || (major == 2 && minor < 1))
        return err_set(e, ERR_ENV, "display '%s' has no XInput 2.1: Escape twice will not stop the run",
                       display);
    unsigned char bits[XIMaskLen(XI_LASTEVENT)] = {0};
    XISetMask(bits, XI_RawKeyPress);
    XISetMask(bits, XI_RawKeyRelease);
    /* Master devices only: "all" would tell each event twice. */
    XIEventMask wanted = {.deviceid = XIAllMasterDevices, .mask_len = sizeof bits, .mask = bits};
    XISelectEvents(w->dpy, DefaultRootWindow(w->dpy), &wanted, 1);
    w->escape = XKeysymToKeycode(w->dpy, XK_Escape);
    XSync(w->dpy, False);
    return 0;
}

static void watch_free(struct watch *w)
{
    if (w->dpy)
        XCloseDisplay(w->dpy);
    free(w->path);
    free(w);
}

int screen_watch(struct screen *s, struct err *e)
{
    if (s->watch)
        return 0;
    struct watch *w = xcalloc(1, sizeof *w);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    w->started = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    w->keyboard_id = s->keyboard_id;
    char *dir = file_place(PLACE_RUNTIME, e);
    if (dir)
        w->path = xasprintf("%s/stop", dir);
    free(dir);
    if (!w->path || listen_keys(w, s->name, e)) {
        watch_free(w);
        return -1;
    }
    sigset_t all, old; /* signals are the main thread's */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    int rc = pthread_create(&w->thread, NULL, watch_thread, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        watch_free(w);
        return err_set(e, ERR_ENV, "cannot start a thread: %s", strerror(rc));
    }
    s->watch = w;
    return 0;
}

void watch_close(struct screen *s)
{
    if (!s->watch)
        return;
    s->watch->end = true;
    pthread_join(s->watch->thread, NULL);
    watch_free(s->watch);
    s->watch = NULL;
}
