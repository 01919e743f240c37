/* xtrap.c - see xtrap.h.
 *
 * Xlib has one error handler for the whole process; ours finds the innermost trap of the thread that
 * is reading the reply, which is the thread that sent the request since no Display is shared.
 */
#include "screen/xtrap.h"

#include "base/err.h"

#include <pthread.h>

static _Thread_local struct xtrap *innermost;
static _Thread_local int strays;

static int on_error(Display *dpy, XErrorEvent *ev)
{
    for (struct xtrap *t = innermost; t; t = t->outer)
        if (t->dpy == dpy) {
            if (!t->code)
                t->code = ev->error_code;
            return 0;
        }
    if (!strays++)
        warn("X error %d in request %d.%d, going on", ev->error_code, ev->request_code, ev->minor_code);
    return 0;
}

/* Xlib calls this first and the exit handler of the Display after it; all work is done there. */
static int on_io_error(Display *dpy)
{
    (void)dpy;
    return 0;
}

static void on_lost(Display *dpy, void *lost)
{
    (void)dpy;
    *(volatile bool *)lost = true;
}

static void setup(void)
{
    XInitThreads();
    XSetErrorHandler(on_error);
    XSetIOErrorHandler(on_io_error);
}

void xtrap_setup(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, setup);
    XSetErrorHandler(on_error); /* a library may have put its own in between */
    XSetIOErrorHandler(on_io_error);
}

void xtrap_watch(Display *dpy, volatile bool *lost)
{
    XSetIOErrorExitHandler(dpy, on_lost, (void *)lost);
}

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
