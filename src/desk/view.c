/* view.c - the process that listens for viewers.
 *
 * It is forked before there are threads, keeps no connection to the display, and forks a process for each
 * viewer; when a viewer's process has ended, another process releases the keys and buttons that it held.  A
 * pipe signals the end of the parent.  If all slots are in use, a new viewer replaces one that has not
 * authenticated: the oldest of the user who has most of them. */
#include "desk/view_impl.h"

#include "base/clock.h"
#include "base/feature.h"
#include "screen/screen.h"
#include "screen/x11/xtrap.h"

#include <X11/Xatom.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FD_LISTEN = 3, FD_PARENT = 4, END_MS = 3000 };

struct view {
    struct place place;
    pid_t listener;
    int pipe; /* its end of file signals that the parent has ended */
    char display[64];
};

struct listener {
    char display[64], password[PASSWORD + 1];
    struct viewer_shared *shared;
    struct slot {
        pid_t pid; /* 0: free */
        uid_t user;
        int64_t since;
    } slots[VIEWER_SLOTS];
    int signals;
};

/* ---- the listener ----------------------------------------------------------------------------------- */

static void default_signals(void)
{
    sigset_t none;
    static const int list[] = {SIGINT, SIGHUP, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        signal(list[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool holds_any(const struct viewer_down *d)
{
    bool any = d->buttons != 0;
    for (int i = 0; i < 256; i++)
        any |= d->keys[i] != 0;
    return any;
}

/* Closes the parent's stderr, so that no reader of it waits for this process. */
static void leave_stderr(void)
{
    dup2(STDOUT_FILENO, STDERR_FILENO); /* stdout is /dev/null */
}

/* Releases the keys and buttons of a viewer, in a separate process: the display may be gone, or hang. */
static void release(struct listener *l, int slot)
{
    atomic_bool lost = false;
    if (!holds_any(&l->shared->down[slot]) || fork() != 0)
        return;
    default_signals();
    leave_stderr();
    Display *dpy = xtrap_open(l->display, &lost);
    if (dpy)
        viewer_input_release(dpy, &l->shared->down[slot]);
    _exit(0);
}

/* Frees the slot of a viewer whose process has ended. */
static void free_slot(struct listener *l, int slot)
{
    l->slots[slot].pid = 0;
    l->shared->known[slot] = 0;
    lockout_report(&l->shared->lockout, l->slots[slot].user);
    release(l, slot);
}

static void reap(struct listener *l)
{
    struct signalfd_siginfo infos[16];
    while (read(l->signals, infos, sizeof infos) > 0)
        ;
    for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;)
        for (int i = 0; i < VIEWER_SLOTS; i++)
            if (l->slots[i].pid == pid)
                free_slot(l, i);
}

static int strangers_of(const struct listener *l, uid_t user)
{
    int n = 0;
    for (int i = 0; i < VIEWER_SLOTS; i++)
        n += l->slots[i].pid && !l->shared->known[i] && l->slots[i].user == user;
    return n;
}

/* Ends the oldest viewer that has not authenticated, of the user who has most of them.  Returns its slot; -1:
 * all have authenticated. */
static int make_room(struct listener *l)
{
    int found = -1, most = 0;
    for (int i = 0; i < VIEWER_SLOTS; i++) {
        const struct slot *s = &l->slots[i];
        int n = s->pid && !l->shared->known[i] ? strangers_of(l, s->user) : 0;
        if (n > most || (n && n == most && s->since < l->slots[found].since)) {
            most = n;
            found = i;
        }
    }
    if (found < 0)
        return -1;
    kill(l->slots[found].pid, SIGKILL);
    waitpid(l->slots[found].pid, NULL, 0);
    free_slot(l, found);
    return found;
}

static void start_viewer(struct listener *l, int fd, uid_t user)
{
    int slot = 0;
    while (slot < VIEWER_SLOTS && l->slots[slot].pid)
        slot++;
    slot = slot < VIEWER_SLOTS ? slot : make_room(l);
    if (slot < 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        close(FD_LISTEN);
        close(FD_PARENT);
        close(l->signals);
        default_signals();
        prctl(PR_SET_NAME, "holorun-viewer");
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        viewer_serve(fd, l->display, l->password, l->shared, slot);
        _exit(0);
    }
    l->slots[slot] = (struct slot){pid > 0 ? pid : 0, user, clock_ns()};
}

static void new_viewer(struct listener *l)
{
    int fd = accept4(FD_LISTEN, NULL, NULL, SOCK_CLOEXEC);
    uid_t user = fd >= 0 ? lockout_user(fd) : LOCKOUT_UNKNOWN;
    if (fd >= 0 && !lockout_locked(&l->shared->lockout, user))
        start_viewer(l, fd, user);
    if (fd >= 0)
        close(fd);
}

static _Noreturn void end_listener(struct listener *l, const char *path)
{
    leave_stderr();
    for (int i = 0; i < VIEWER_SLOTS; i++)
        if (l->slots[i].pid)
            kill(l->slots[i].pid, SIGTERM);
    for (int i = 0; i < VIEWER_SLOTS; i++)
        if (l->slots[i].pid)
            waitpid(l->slots[i].pid, NULL, 0);
    if (*path)
        unlink(path);
    _exit(0);
}

static _Noreturn void listen_for_viewers(struct listener *l, const char *path)
{
    for (;;) {
        struct pollfd p[] = {{.fd = FD_LISTEN, .events = POLLIN},
                             {.fd = FD_PARENT, .events = POLLIN},
                             {.fd = l->signals, .events = POLLIN}};
        poll(p, 3, -1);
        if (p[1].revents)
            end_listener(l, path);
        if (p[2].revents)
            reap(l);
        if (p[0].revents)
            new_viewer(l);
    }
}

/* Sets up the listener's descriptors and signals.  It gets its own session, because Ctrl-C in the terminal is
 * meant for the parent. */
static _Noreturn void become_listener(struct listener *l, const struct place *place, int parent)
{
    int a = fcntl(place->fd, F_DUPFD, 64), b = fcntl(parent, F_DUPFD, 64), none = open("/dev/null", O_RDWR);
    sigset_t set;
    setsid();
    err_on_exit(NULL);
    prctl(PR_SET_NAME, "holorun-view");
    dup2(none, STDIN_FILENO);
    dup2(none, STDOUT_FILENO);
    dup3(a, FD_LISTEN, O_CLOEXEC);
    dup3(b, FD_PARENT, O_CLOEXEC);
    close_range(FD_PARENT + 1, ~0u, 0);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    listen_for_viewers(l, place->path);
}

/* ---- the parent ------------------------------------------------------------------------------------- */

/* Marks the display as viewed, so that runs on it pause on user input by default; or removes the mark.
 * Returns -1 with e. */
static int mark_display(const char *display, bool viewed, struct err *e)
{
    atomic_bool lost = false;
    long yes = 1;
    Display *dpy = xtrap_open(display, &lost);
    if (!dpy)
        return err_set(e, ERR_ENV, "cannot open display '%s' to show it", display);
    Atom name = XInternAtom(dpy, SCREEN_VIEWED, False);
    if (viewed)
        XChangeProperty(dpy, DefaultRootWindow(dpy), name, XA_INTEGER, 32, PropModeReplace,
                        (unsigned char *)&yes, 1);
    else
        XDeleteProperty(dpy, DefaultRootWindow(dpy), name);
    xtrap_close(dpy, &lost);
    return 0;
}

static int fork_listener(struct view *v, struct listener *l, struct err *e)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC))
        return err_set(e, ERR_ENV, "cannot start a process for viewers: %s", strerror(errno));
    fflush(NULL);
    v->listener = fork();
    if (v->listener == 0)
        become_listener(l, &v->place, fds[0]);
    int why = errno;
    close(fds[0]);
    if (v->listener < 0) {
        close(fds[1]);
        return err_set(e, ERR_ENV, "cannot start a process for viewers: %s", strerror(why));
    }
    v->pipe = fds[1];
    close(v->place.fd);
    v->place.fd = -1;
    return 0;
}

struct view *view_start(const struct view_options *o, struct err *e)
{
    if (feature_require(FEATURE_VIEW, e))
        return NULL;
    struct view *v = xcalloc(1, sizeof *v);
    autofree struct listener *l = xcalloc(1, sizeof *l);
    v->pipe = v->place.fd = -1;
    snprintf(v->display, sizeof v->display, "%s", o->display);
    snprintf(l->display, sizeof l->display, "%s", o->display);
    l->shared = mmap(NULL, sizeof *l->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rc = l->shared == MAP_FAILED ? err_set(e, ERR_ENV, "out of memory") : 0;
    if (rc == 0)
        lockout_init(&l->shared->lockout);
    if (rc || password_read(o->password_file, l->password, e) ||
        place_open(&v->place, o->where, *l->password != 0, e) || mark_display(v->display, true, e) ||
        fork_listener(v, l, e)) {
        view_stop(v);
        v = NULL;
    }
    if (l->shared != MAP_FAILED)
        munmap(l->shared, sizeof *l->shared);
    explicit_bzero(l, sizeof *l);
    return v;
}

const char *view_address(const struct view *v)
{
    return v->place.address;
}

void view_stop(struct view *v)
{
    if (!v)
        return;
    if (v->pipe >= 0)
        close(v->pipe);
    int64_t start = clock_ns();
    while (v->listener > 0 && waitpid(v->listener, NULL, WNOHANG) == 0) {
        if (clock_ms_since(start) > END_MS)
            kill(v->listener, SIGKILL);
        clock_sleep_ms(2);
    }
    if (v->listener > 0)
        mark_display(v->display, false, NULL);
    place_close(&v->place);
    free(v);
}
