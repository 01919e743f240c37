/* xtrap.c - see xtrap.h.
 *
 * Xlib has one error handler for the whole process; ours finds the innermost trap of the thread that reads
 * the reply, which is the thread that sent the request since no Display is shared.
 *
 * Opening a display has two pitfalls.  Xlib sends requests before a Display can be given an exit handler:
 * when the connection breaks then, the I/O error handler jumps out of XOpenDisplay and leaks what that had
 * allocated.  And Xlib holds a lock of all Displays while it waits for a server's first reply: so a server
 * is first sent a connection setup with an impossible protocol version, which every server answers and none
 * logs.
 */
#include "screen/xtrap.h"

#include "base/err.h"

#include <poll.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <xcb/xcb.h>

enum { GREETING_MS = 10000 };

static atomic_bool half_open; /* a display was lost while extensions were asked for */
static _Thread_local struct xtrap *innermost;
static _Thread_local int untrapped_errors;
static _Thread_local sigjmp_buf *opening; /* NULL: this thread is not inside XOpenDisplay */

static int on_error(Display *dpy, XErrorEvent *ev)
{
    for (struct xtrap *t = innermost; t; t = t->outer)
        if (t->dpy == dpy) {
            if (!t->code)
                t->code = ev->error_code;
            return 0;
        }
    if (!untrapped_errors++)
        warn("X error %d in request %d.%d, going on", ev->error_code, ev->request_code, ev->minor_code);
    return 0;
}

/* Xlib calls this before the exit handler of the Display, which does the work. */
static int on_io_error(Display *dpy)
{
    (void)dpy;
    if (opening)
        siglongjmp(*opening, 1);
    return 0;
}

static void on_lost(Display *dpy, void *lost)
{
    *(atomic_bool *)lost = true;
    XUnlockDisplay(dpy); /* Xlib has locked it and expects an exit */
}

void xtrap_setup(void)
{
    XInitThreads();
    XSetErrorHandler(on_error); /* a library may have installed its own */
    XSetIOErrorHandler(on_io_error);
}

void xtrap_watch(Display *dpy, atomic_bool *lost)
{
    XSetIOErrorExitHandler(dpy, on_lost, lost);
}

int xtrap_asking(int (*fn)(void *), void *arg)
{
    sigjmp_buf here, *outer = opening;
    struct xtrap *traps = innermost;
    opening = &here;
    int rc = sigsetjmp(here, 1) ? XTRAP_LOST : fn(arg);
    opening = outer;
    innermost = traps;
    return rc;
}

void xtrap_half_open(void)
{
    half_open = true;
}

void xtrap_close(Display *dpy, const atomic_bool *lost)
{
    if (!*lost)
        XSync(dpy, False);
    if (*lost || half_open)
        close(ConnectionNumber(dpy));
    else
        XCloseDisplay(dpy);
}

/* ---- opening ---------------------------------------------------------------------------------- */

/* A socket to a local display, ":7" or "unix:7.0"; -1: not local, or no server. */
static int connect_local(const char *display)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const char *colon = strrchr(display, ':');
    size_t host = colon ? (size_t)(colon - display) : 1;
    if (host != 0 && !(host == 4 && !strncmp(display, "unix", 4)))
        return -1;
    /* First the abstract socket (a 0, then the name), as Xlib does. */
    int n =
        snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "/tmp/.X11-unix/X%ld", strtol(colon + 1, NULL, 10));
    for (int with_file = 0; with_file < 2; with_file++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&at, len) == 0)
            return fd;
        if (fd >= 0)
            close(fd);
        memmove(at.sun_path, at.sun_path + 1, (size_t)n);
        at.sun_path[n] = 0;
    }
    return -1;
}

static bool server_answers(const char *display)
{
    static const unsigned char hello[12] = {'l'}; /* version 0.0, no authorization */
    int fd = connect_local(display);
    if (fd < 0)
        return true; /* XOpenDisplay will tell */
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool heard = send(fd, hello, sizeof hello, MSG_NOSIGNAL) < 0 || poll(&p, 1, GREETING_MS) != 0;
    close(fd);
    return heard;
}

bool xtrap_accepts(const char *display)
{
    if (!server_answers(display))
        return false;
    xcb_connection_t *c = xcb_connect(display, NULL);
    bool accepts = !xcb_connection_has_error(c);
    xcb_disconnect(c);
    return accepts;
}

Display *xtrap_open(const char *display, atomic_bool *lost)
{
    sigjmp_buf out;
    Display *dpy = NULL;
    xtrap_setup();
    if (!server_answers(display))
        return NULL;
    if (sigsetjmp(out, 0) == 0) {
        opening = &out;
        dpy = XOpenDisplay(display);
        opening = NULL;
        if (dpy)
            xtrap_watch(dpy, lost);
        return dpy;
    }
    opening = NULL;
    return NULL;
}

/* ---- traps ------------------------------------------------------------------------------------ */

void xtrap_begin(struct xtrap *t, Display *dpy)
{
    XSync(dpy, False);
    *t = (struct xtrap){.dpy = dpy, .outer = innermost};
    innermost = t;
}

int xtrap_end(struct xtrap *t)
{
    XSync(t->dpy, False);
    innermost = t->outer;
    return t->code;
}
