/* xtrap.c - traps X errors and opens displays safely; see xtrap.h.
 *
 * Xlib has one error handler per process. Ours finds the innermost trap of the thread that reads the reply,
 * which is the thread that sent the request, because no Display is shared.
 *
 * Opening a display has two problems. Xlib sends requests before a Display can be given an exit handler: if
 * the connection breaks then, the I/O error handler jumps out of XOpenDisplay and leaks its allocations. And
 * Xlib holds a lock of all Displays while it waits for a server's first reply, so a server is first probed
 * over a connection of our own. The probe also keeps libxcb's message off stderr if the server denies access;
 * the caller reports that.
 *
 * libXext keeps a list of all Displays for its generic events. It creates the list and frees it, when the
 * last Display is closed, without a lock: a thread that opens one at that moment writes to freed memory. So
 * the first Display of the process is opened alone and never freed. If the connection breaks while a
 * Display is added, libXext frees the entry but leaves it in the list, so we add it where that jumps
 * out. */
#include "screen/x11/xtrap.h"

#include "base/err.h"

#include <X11/Xauth.h>
#include <X11/Xlibint.h>
#include <X11/Xproto.h>
#include <X11/extensions/Xext.h>
#include <X11/extensions/Xge.h>
#include <ctype.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { GREETING_MS = 10000, COOKIE_MAX = 256 };

static atomic_bool half_open;  /* a display was lost while its extensions were queried */
static Display *_Atomic first; /* stays in the list of libXext; NULL: none has been opened */
static _Thread_local struct xtrap *innermost;
static _Thread_local int untrapped_errors;
static atomic_int let_in = -1; /* connection of xtrap_knock(); -1: none */
static pid_t let_in_of;        /* process that opened it; after a fork the number may refer to another file */
static char cookie_name[] = "MIT-MAGIC-COOKIE-1";
static _Thread_local sigjmp_buf *opening; /* NULL: this thread is not inside XOpenDisplay */

static int on_error(Display *dpy, XErrorEvent *ev)
{
    for (struct xtrap *t = innermost; t; t = t->outer)
        if (t->dpy == dpy && ev->serial >= t->since) {
            if (!t->code)
                t->code = ev->error_code;
            return 0;
        }
    if (!untrapped_errors++)
        warn("X error %d in request %d.%d, ignored", ev->error_code, ev->request_code, ev->minor_code);
    return 0;
}

/* Called by Xlib before the exit handler of the Display, which does the work. */
static int on_io_error(Display *dpy)
{
    if (opening)
        siglongjmp(*opening, 1);
    return 0;
}

/* Silences Xlib: an extension seems missing if the connection is lost during the query, and the caller
 * reports that. */
static int on_missing_extension(Display *dpy, const char *name, const char *reason)
{
    return 0;
}

/* Xlib expects this handler to exit, and continues to write its request. Without room in the buffer, because
 * xcb had it or it was full, libXtst writes to NULL. The buffer has at least BUFSIZE bytes. */
static void on_lost(Display *dpy, void *lost)
{
    *(atomic_bool *)lost = true;
    dpy->bufptr = dpy->buffer;
    dpy->bufmax = dpy->buffer + BUFSIZE;
    XUnlockDisplay(dpy); /* Xlib has locked it */
}

void xtrap_setup(void)
{
    XInitThreads();
    XSetErrorHandler(on_error); /* a library may have installed its own handler */
    XSetIOErrorHandler(on_io_error);
    XSetExtensionErrorHandler(on_missing_extension);
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
    if (*lost || half_open || dpy == first)
        close(ConnectionNumber(dpy));
    else
        XCloseDisplay(dpy);
}

/* ---- opening ---------------------------------------------------------------------------------- */

/* Connects a socket to a local display, ":7" or "unix:7.0". Returns -1 if it is not local or has no
 * server. */
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

/* Sends the first message of a connection to fd, with a cookie (n 0: none). Returns false if the cookie is
 * too long. */
static bool send_cookie(int fd, const void *data, size_t n)
{
    struct {
        xConnClientPrefix prefix;
        char name[20], data[COOKIE_MAX];
    } m = {.prefix = {.byteOrder = 'l', .majorVersion = X_PROTOCOL}};
    size_t len = sizeof m.prefix;
    if (n > COOKIE_MAX)
        return false;
    if (n) {
        m.prefix.nbytesAuthProto = sizeof cookie_name - 1;
        m.prefix.nbytesAuthString = (CARD16)n;
        memcpy(m.name, cookie_name, sizeof cookie_name - 1);
        memcpy(m.data, data, n);
        len += sizeof m.name + (n + 3) / 4 * 4;
    }
    send(fd, &m, len, MSG_NOSIGNAL);
    return true;
}

/* Sends the first message with the cookie that Xlib would send. Returns false, without sending, for other
 * kinds of authorization, which only Xlib supports. */
static bool send_setup(int fd, const char *display)
{
    char host[256] = "", number[24], *names[] = {cookie_name};
    int lengths[] = {sizeof cookie_name - 1};
    gethostname(host, sizeof host - 1);
    int n = snprintf(number, sizeof number, "%ld", strtol(strrchr(display, ':') + 1, NULL, 10));
    Xauth *auth = XauGetBestAuthByAddr(FamilyLocal, (unsigned short)strlen(host), host, (unsigned short)n,
                                       number, 1, names, lengths);
    Xauth *other = auth ? NULL
                        : XauGetAuthByAddr(FamilyLocal, (unsigned short)strlen(host), host, (unsigned short)n,
                                           number, 0, "");
    bool known = !other && send_cookie(fd, auth ? auth->data : NULL, auth ? auth->data_length : 0);
    if (auth)
        XauDisposeAuth(auth);
    if (other)
        XauDisposeAuth(other);
    return known;
}

int xtrap_knock(const char *display, const void *cookie, size_t n, int ms)
{
    unsigned char verdict = 0;
    int fd = connect_local(display);
    if (fd < 0)
        return -1;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool yes = send_cookie(fd, cookie, n) && poll(&p, 1, ms) > 0 && recv(fd, &verdict, 1, 0) == 1 && verdict;
    if (yes) {
        fd = atomic_exchange(&let_in, fd);
        fd = let_in_of == getpid() ? fd : -1;
        let_in_of = getpid();
    }
    if (fd >= 0)
        close(fd);
    return yes;
}

long xtrap_owner(const char *display)
{
    struct ucred peer = {.uid = 0};
    socklen_t len = sizeof peer;
    int fd = connect_local(display);
    if (fd < 0)
        return -1;
    int rc = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
    close(fd);
    return rc ? -1 : (long)peer.uid;
}

/* Returns whether a local server answers in time and accepts this user. *fd: our connection to it, -1: none.
 * Close it after Xlib has its own, because a server without clients resets. */
static bool is_let_in(const char *display, int *fd)
{
    unsigned char verdict = 1;
    *fd = connect_local(display);
    if (*fd < 0 || !send_setup(*fd, display))
        return true; /* XOpenDisplay will report it */
    struct pollfd p = {.fd = *fd, .events = POLLIN};
    return poll(&p, 1, GREETING_MS) > 0 && recv(*fd, &verdict, 1, 0) == 1 && verdict != 0;
}

static Display *open_trapped(const char *display)
{
    sigjmp_buf out;
    if (sigsetjmp(out, 0) == 0) {
        opening = &out;
        /* recent versions of libxcb take "unix:7" for the path of a socket */
        bool is_number = !strncmp(display, "unix:", 5) && isdigit((unsigned char)display[5]);
        Display *dpy = XOpenDisplay(is_number ? display + 4 : display);
        int event, error;
        if (dpy)
            XGEQueryExtension(dpy, &event, &error); /* adds it to the list of libXext */
        opening = NULL;
        return dpy;
    }
    opening = NULL;
    return NULL;
}

/* Opens the first Display of the process while no other thread opens one. */
static Display *open_in_turn(const char *display)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (first)
        return open_trapped(display);
    pthread_mutex_lock(&lock);
    Display *dpy = open_trapped(display);
    if (!first)
        first = dpy;
    pthread_mutex_unlock(&lock);
    return dpy;
}

Display *xtrap_open(const char *display, atomic_bool *lost)
{
    int fd;
    xtrap_setup();
    Display *dpy = is_let_in(display, &fd) ? open_in_turn(display) : NULL;
    if (dpy)
        xtrap_watch(dpy, lost);
    if (fd >= 0)
        close(fd);
    if (let_in_of == getpid() && (fd = atomic_exchange(&let_in, -1)) >= 0)
        close(fd);
    return dpy;
}

/* ---- traps ------------------------------------------------------------------------------------ */

void xtrap_begin(struct xtrap *t, Display *dpy)
{
    *t = (struct xtrap){.dpy = dpy, .since = NextRequest(dpy), .outer = innermost};
    innermost = t;
}

int xtrap_end(struct xtrap *t)
{
    if (LastKnownRequestProcessed(t->dpy) + 1 < NextRequest(t->dpy))
        XSync(t->dpy, False);
    innermost = t->outer;
    return t->code;
}
