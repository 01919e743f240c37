/* input_owner.c - holds the input of a display through an X selection; see input_owner.h. */
#include "screen/x11/input_owner.h"

#include "base/clock.h"
#include "screen/x11/x11_impl.h"

#include <X11/Xatom.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "_HOLORUN_DRIVER"

enum {
    STAT_BYTES = 4096,
    STAT_START = 22,  /* field of /proc/PID/stat, counted from 1 */
    LEAVING_MS = 500, /* time for the server to notice that an owner has exited */
    RETRY_MS = 10,
};

uint64_t process_start_ticks(pid_t pid)
{
    char path[64], text[STAT_BYTES];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    const char *p = strrchr(text, ')'); /* the process name before it may contain any character */
    for (int field = 2; p && field < STAT_START; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p, NULL, 10) : 0;
}

/* Writes host and process namespace, for example "HOST pid:[4026531836]". */
static void describe_place(char out[128])
{
    char host[64] = "?", space[48] = "?";
    gethostname(host, sizeof host - 1);
    ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    space[n > 0 ? n : 0] = 0;
    snprintf(out, 128, "%s %s", host, space);
}

/* Reads the owner of the selection. Returns false if there is none. */
static bool read_owner(Display *dpy, Atom name, struct input_owner *out)
{
    Window owner = XGetSelectionOwner(dpy, name);
    unsigned char *text = NULL;
    unsigned long n = 0, left;
    Atom type;
    int format, pid = 0;
    unsigned long long ticks = 0;
    *out = (struct input_owner){0};
    if (!owner)
        return false;
    struct xtrap t;
    xtrap_begin(&t, dpy);
    XGetWindowProperty(dpy, owner, name, 0, 64, False, XA_STRING, &type, &format, &n, &left, &text);
    bool gone = xtrap_end(&t) == BadWindow;
    if (text && type == XA_STRING &&
        sscanf((char *)text, "%d %llu %127[^\n]", &pid, &ticks, out->where) == 3) {
        out->pid = pid;
        out->start_ticks = ticks;
    }
    if (text)
        XFree(text);
    return !gone;
}

static Window make_owner(Display *dpy, Atom name)
{
    char where[128], text[200];
    describe_place(where);
    int n = snprintf(text, sizeof text, "%d %llu %s", (int)getpid(),
                     (unsigned long long)process_start_ticks(getpid()), where);
    Window own =
        XCreateWindow(dpy, DefaultRootWindow(dpy), -1, -1, 1, 1, 0, 0, InputOnly, CopyFromParent, 0, NULL);
    XChangeProperty(dpy, own, name, XA_STRING, 8, PropModeReplace, (unsigned char *)text, n);
    return own;
}

/* Acquires the selection if it is free. The server is grabbed so that no other process does the same in
 * between. */
static bool acquire_if_free(Display *dpy, Atom name, Window *own, struct input_owner *other)
{
    XGrabServer(dpy);
    bool taken = read_owner(dpy, name, other);
    if (!taken) {
        *own = make_owner(dpy, name);
        XSetSelectionOwner(dpy, name, *own, CurrentTime);
    }
    XUngrabServer(dpy);
    XSync(dpy, False);
    return !taken;
}

int input_owner_acquire(Display *dpy, const char *display, Window *own, struct err *e)
{
    struct input_owner other;
    if (*own)
        return 0;
    Atom name = XInternAtom(dpy, NAME, False);
    for (int64_t start = clock_ns(); !acquire_if_free(dpy, name, own, &other); clock_sleep_ms(RETRY_MS))
        if (clock_ms_since(start) > LEAVING_MS)
            return err_set(
                e, ERR_ENV,
                "display '%s' is in use by another holorun (process %d%s%.*s); stop that process first",
                display, (int)other.pid, *other.where ? " on " : "", (int)strcspn(other.where, " "),
                other.where);
    return 0;
}

int input_owner_find(const char *display, struct input_owner *out, bool *here)
{
    atomic_bool lost = false;
    char where[128];
    xtrap_setup();
    Display *dpy = xtrap_open(display, &lost);
    if (!dpy)
        return 0;
    bool found = read_owner(dpy, XInternAtom(dpy, NAME, False), out) && out->pid > 1;
    xtrap_close(dpy, &lost);
    describe_place(where);
    *here = found && !strcmp(where, out->where);
    return found;
}
