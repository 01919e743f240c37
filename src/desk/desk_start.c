/* desk_start.c - starts a desk, in its supervisor: directories, server, buses, window manager. */
#include "desk/private.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SERVER_TRIES = 6, FIRST_DISPLAY = 100, SPREAD = 400 /* numbers are not reused at once */ };

/* Uses an existing directory as HOME.  The lock on it ends with this process.  Returns -1 with e. */
static int keep_home(struct supervisor *k, const char *home, struct err *e)
{
    struct stat st;
    int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st))
        return err_set(e, ERR_ENV, "cannot use '%s' as home folder: %s", home, strerror(errno));
    if (st.st_uid != geteuid() || st.st_mode & S_IWOTH)
        return err_set(e, ERR_ENV, "cannot use '%s' as home folder: %s", home,
                       st.st_uid != geteuid() ? "it is owned by another user"
                                              : "it is writable by other users");
    if (flock(fd, LOCK_EX | LOCK_NB))
        return err_set(e, ERR_ENV,
                       "'%s' is in use by another private desktop; end that desktop or choose another folder",
                       home);
    snprintf(k->context.home, sizeof k->context.home, "%s", home);
    return 0;
}

static int make_folders(struct supervisor *k, const char *home, bool kept, struct err *e)
{
    static const char *const names[] = {"", "/home", "/tmp", "/run"};
    char path[DESK_PATH + 16], text[16];
    for (int i = 0; i < (k->context.own ? 4 : 1); i++) {
        snprintf(path, sizeof path, "%s%s", k->context.dir, names[i]);
        if (mkdir(path, 0700))
            return err_set(e, ERR_ENV, "cannot create directory '%s': %s", path, strerror(errno));
    }
    snprintf(path, sizeof path, "%s/supervisor", k->context.dir);
    int n = snprintf(text, sizeof text, "%d\n", (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool failed = fd < 0 || write(fd, text, (size_t)n) != n;
    if (failed)
        err_set(e, ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (failed)
        return -1;
    if (log_open(&k->server_log, k->context.dir, "server.log") ||
        log_open(&k->bus_log, k->context.dir, "bus.log") || log_open(&k->wm_log, k->context.dir, "wm.log") ||
        log_open(&k->programs_log, k->context.dir, "programs.log"))
        return err_set(e, ERR_ENV, "cannot write into '%s': %s", k->context.dir, strerror(errno));
    if (home && kept)
        return keep_home(k, home, e);
    snprintf(k->context.home, sizeof k->context.home, "%s/home", k->context.dir);
    return home ? folder_copy(home, k->context.home, e) : 0;
}

int supervisor_wait_line(struct supervisor *k, const struct process *p, int ready, int64_t deadline,
                         const char *what, const char *log, struct err *e)
{
    for (;;) {
        double left = (double)(deadline - clock_ns()) / 1e6;
        char text[512];
        int events = supervisor_wait(k, ready, false, left > 0 ? (int)left + 1 : 0);
        ssize_t n = events & SUPERVISOR_EXTRA ? read(ready, text, sizeof text) : -1;
        if (events & SUPERVISOR_GONE)
            supervisor_end(k);
        if (n > 0 && text[n - 1] == '\n')
            return 0;
        if (p->ended || n == 0) {
            supervisor_drain(k);
            return err_set(e, ERR_ENV, "the %s has not started: %s", what, supervisor_how_ended(k, p, log));
        }
        if (left <= 0)
            return err_set(e, ERR_TIME, "the %s was not ready in time", what);
    }
}

static int start_server(struct supervisor *k, const struct msg *o, int64_t deadline, struct err *e)
{
    char fd_text[16], screen[32], auth[DESK_PATH + 8];
    int ready[2];
    if (pipe2(ready, O_CLOEXEC))
        return err_set(e, ERR_ENV, "cannot start an X server: %s", strerror(errno));
    snprintf(fd_text, sizeof fd_text, "%d", ready[1]);
    snprintf(screen, sizeof screen, "%dx%dx24", o->size[0], o->size[1]);
    snprintf(auth, sizeof auth, "%s/auth", k->context.dir);
    const char *argv[24] = {
        "Xvfb", k->context.display, "-displayfd", fd_text, "-screen", "0",  screen,    "-dpi", "96", "-auth",
        auth,   "-nolisten",        "tcp",        "-s",    "0",       "-r", "-noreset"};
    if (o->flags & OPEN_NO_GLX) {
        argv[17] = "-extension";
        argv[18] = "GLX";
    }
    struct child_options h = {.argv = argv, .keep = ready[1], .oom = OOM_SERVER};
    int rc = supervisor_start(k, &k->server, &h, &k->server_log, 0, NULL);
    if (rc)
        err_set(e, ERR_ENV, "cannot start an X server: %s", strerror(errno));
    close(ready[1]);
    if (rc == 0) /* Xvfb writes its display number and exits if nobody reads it */
        rc = supervisor_wait_line(k, &k->server, ready[0], deadline, "X server", "server.log", e);
    close(ready[0]);
    return rc;
}

/* Starts the server on a free display.  A server that ignores locks may take the number before ours listens;
 * then the next number is tried.  Returns -1 with e. */
static int open_display(struct supervisor *k, const struct msg *o, struct err *e)
{
    int64_t deadline = clock_ns() + (int64_t)(o->seconds * 1e9);
    char auth[DESK_PATH + 8];
    int first = FIRST_DISPLAY + k->desk % SPREAD;
    snprintf(auth, sizeof auth, "%s/auth", k->context.dir);
    if (!child_installed("Xvfb"))
        return err_set(e, ERR_ENV, "Xvfb is not installed (Debian: apt install xvfb)");
    for (int i = 0; i < SERVER_TRIES; i++) {
        k->number = server_claim(first);
        if (k->number < 0)
            return err_set(e, ERR_ENV, "cannot lock a display number in /tmp: %s", strerror(errno));
        snprintf(k->context.display, sizeof k->context.display, ":%d", k->number);
        e->kind = ERR_NONE;
        if (auth_write(auth, k->number, o->cookie, e))
            return -1;
        if (start_server(k, o, deadline, e) == 0) {
            if (!(o->flags & OPEN_NO_BUS))
                supervisor_start_bus(k, deadline);
            return 0;
        }
        if (!k->server.ended || clock_ns() > deadline)
            return -1;
        server_release(k->number);
        first = k->number + 1;
        k->number = -1;
    }
    return -1;
}

static int start_wm(struct supervisor *k, const char *wm, struct err *e)
{
    struct child_options h = {.shell = wm, .keep = -1, .oom = OOM_SERVER};
    if (!wm && child_installed("openbox"))
        h.shell = "exec openbox --sm-disable";
    if (!h.shell || !*h.shell)
        return 0;
    if (supervisor_start(k, &k->wm, &h, &k->wm_log, 0, NULL))
        return err_set(e, ERR_ENV, "cannot start window manager '%s': %s", h.shell, strerror(errno));
    return 0;
}

/* Starts the window manager, and waits for the accessibility bus.  A manager of the user may be a whole
 * desktop with programs that look for the bus. */
static int start_parts(struct supervisor *k, const char *wm, struct err *e)
{
    if (wm)
        supervisor_await_bus(k);
    if (start_wm(k, wm, e))
        return -1;
    if (!wm)
        supervisor_await_bus(k);
    return 0;
}

int supervisor_open(struct supervisor *k, const struct msg *o, struct err *e)
{
    size_t at = 0;
    const char *display = msg_next(o, &at), *wm = msg_next(o, &at), *home = msg_next(o, &at),
               *dir = msg_next(o, &at);
    struct stat st;
    if (!dir)
        return err_set(e, ERR_ENV, "the request for a desktop is empty");
    if (o->flags & OPEN_DIR && (stat(dir, &st) || !S_ISDIR(st.st_mode)))
        return err_set(e, ERR_ENV, "cannot run commands in '%s': not a folder", dir);
    k->context.work_dir = o->flags & OPEN_DIR ? dir : NULL;
    k->context.own = o->flags & OPEN_OWN;
    k->context.env = o;
    k->context.env_at = at;
    if (make_folders(k, o->flags & (OPEN_HOME | OPEN_KEPT) ? home : NULL, o->flags & OPEN_KEPT, e))
        return -1;
    if (k->context.own)
        return open_display(k, o, e) || start_parts(k, o->flags & OPEN_WM ? wm : NULL, e) ? -1 : 0;
    snprintf(k->context.display, sizeof k->context.display, "%s", display);
    return 0;
}
