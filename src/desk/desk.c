/* desk.c - starts the zygote and opens and closes desks, in this process.
 *
 * A desk is a socket to its supervisor.  Each request has a number and is answered before the next one is
 * sent; late answers to older requests are discarded. */
#include "desk/private.h"

#include "base/clock.h"
#include "base/file.h"
#include "screen/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DEFAULT_SECONDS = 20,
    ANSWER_EXTRA_MS = 15000, /* added to the supervisor's own limit */
    ZYGOTE_MS = 40000,
    SMALLEST = 64,
    LARGEST = 16384,
};

static struct {
    pthread_mutex_t lock;
    char root[DESK_PATH];
    int control, next;
    pid_t zygote; /* 0: not started */
    struct desk *open;
} desks = {.lock = PTHREAD_MUTEX_INITIALIZER, .control = -1};

/* ---- the zygote ------------------------------------------------------------------------------- */

_Noreturn static void become_zygote(const struct zygote_args *g, int control, int lock)
{
    /* Copied first: their numbers may overlap the targets. */
    int c = fcntl(control, F_DUPFD, 64), l = fcntl(lock, F_DUPFD, 64), none = open("/dev/null", O_RDWR);
    int o = g->owner >= 0 ? fcntl(g->owner, F_DUPFD, 64) : -1;
    setsid();
    for (int i = 0; i < 3; i++)
        dup2(none, i);
    dup3(c, FD_SOCKET, O_CLOEXEC);
    dup3(l, FD_LOCK, O_CLOEXEC);
    if (o >= 0)
        dup3(o, FD_OWNER, O_CLOEXEC);
    close_range(o >= 0 ? FD_OWNER + 1 : FD_OWNER, ~0u, 0);
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    struct zygote_args mine = {.root = g->root, .files = g->files, .owner = o >= 0 ? FD_OWNER : -1};
    zygote_main(&mine);
}

static int start_zygote(int lock, struct err *e)
{
    int fds[2];
    struct zygote_args g = {.root = desks.root};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
        return err_set(e, ERR_ENV, "cannot start the process for private desktops: %s", strerror(errno));
    getrlimit(RLIMIT_NOFILE, &g.files);
    struct rlimit files = {g.files.rlim_max, g.files.rlim_max}; /* each desk takes several descriptors */
    setrlimit(RLIMIT_NOFILE, &files);
    g.owner = (int)syscall(SYS_pidfd_open, getpid(), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become_zygote(&g, fds[1], lock);
    int why = errno;
    close(fds[1]);
    if (g.owner >= 0)
        close(g.owner);
    if (pid < 0) {
        close(fds[0]);
        return err_set(e, ERR_ENV, "cannot start the process for private desktops: %s", strerror(why));
    }
    desks.control = fds[0];
    desks.zygote = pid;
    return 0;
}

int desks_begin(struct err *e)
{
    if (desks.zygote)
        return 0;
    int lock = folder_begin(desks.root, e);
    if (lock < 0)
        return -1;
    int rc = start_zygote(lock, e);
    close(lock); /* inherited by the zygote */
    if (rc) {
        folder_remove(desks.root);
        return -1;
    }
    if (auth_begin(desks.root, e)) {
        desks_end();
        return -1;
    }
    return 0;
}

static bool zygote_lives(void)
{
    siginfo_t info = {0};
    return desks.zygote && waitid(P_PID, (id_t)desks.zygote, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

void desks_end(void)
{
    if (!desks.zygote)
        return;
    while (desks.open)
        desk_close(desks.open);
    auth_end();
    close(desks.control);
    int64_t start = clock_ns();
    while (waitpid(desks.zygote, NULL, WNOHANG) == 0) {
        if (clock_ms_since(start) > ZYGOTE_MS)
            kill(desks.zygote, SIGKILL);
        clock_sleep_ms(1);
    }
    desks.control = -1;
    desks.zygote = 0;
    folder_sweep(desks.root);
}

/* ---- requests --------------------------------------------------------------------------------- */

int desk_answer(struct desk *d, double ms)
{
    int64_t start = clock_ns();
    for (;;) {
        int rc = msg_receive(d->socket, &d->in, NULL);
        if (rc == 0)
            return -1;
        if (rc > 0 && d->in.seq == d->seq)
            return 1;
        double left = ms - clock_ms_since(start);
        if (rc < 0 && left <= 0)
            return 0;
        struct pollfd p = {.fd = d->socket, .events = POLLIN};
        if (rc < 0)
            poll(&p, 1, (int)left + 1);
    }
}

int desk_lost(const struct desk *d, struct err *e)
{
    return err_set(e, ERR_ENV, "the supervisor of desktop '%s' has been killed", d->display);
}

/* ---- opening ---------------------------------------------------------------------------------- */

/* Parses "xvfb:1280x720", "xvfb:1280x720,noglx", ":0" or "" into m.  Returns -1 with e. */
static int read_display(const char *display, struct msg *m, struct err *e)
{
    int end = 0, w = 0, h = 0;
    if (!display || !*display)
        return 0;
    if ((display[0] == ':' || strchr(display, ':')) && strncmp(display, "xvfb", 4) != 0)
        return 0;
    if (sscanf(display, "xvfb:%5dx%5d%n", &w, &h, &end) != 2 || !end ||
        (display[end] && strcmp(display + end, ",noglx") != 0))
        return err_set(e, ERR_USAGE,
                       "display '%s': expected 'xvfb:WIDTHxHEIGHT', such as 'xvfb:1280x720', or ':0'",
                       display);
    if (w < SMALLEST || h < SMALLEST || w > LARGEST || h > LARGEST)
        return err_set(e, ERR_USAGE, "display '%s': width and height must be from %d to %d", display,
                       SMALLEST, LARGEST);
    m->flags = OPEN_OWN | (display[end] ? OPEN_NO_GLX : 0);
    m->size[0] = w;
    m->size[1] = h;
    return 0;
}

static int request_open(struct desk *d, const struct desk_options *o, struct err *e)
{
    struct msg *m = &d->out;
    msg_clear(m, MSG_OPEN, ++d->seq);
    if (read_display(o->display, m, e))
        return -1;
    d->own = m->flags & OPEN_OWN;
    m->flags |= (o->wm ? OPEN_WM : 0) | (o->home && d->own ? OPEN_HOME : 0) |
                (o->home_kept && d->own ? OPEN_KEPT : 0) | (o->dir ? OPEN_DIR : 0) |
                (o->no_elements ? OPEN_NO_BUS : 0);
    m->seconds = o->seconds > 0 ? o->seconds : DEFAULT_SECONDS;
    if (getrandom(m->cookie, sizeof m->cookie, 0) != sizeof m->cookie)
        return err_set(e, ERR_ENV, "cannot get random bytes for a cookie: %s", strerror(errno));
    if (o->home_kept && strlen(o->home_kept) >= DESK_HOME)
        return err_set(e, ERR_USAGE, "the home folder's path is longer than %d bytes", DESK_HOME - 1);
    const char *home = o->home_kept ? o->home_kept : o->home ? o->home : "";
    bool full = msg_put(m, o->display ? o->display : "") || msg_put(m, o->wm ? o->wm : "") ||
                msg_put(m, home) || msg_put(m, o->dir ? o->dir : "");
    for (const char *const *v = o->env; v && *v; v++)
        full = full || msg_put(m, *v);
    return full ? err_set(e, ERR_USAGE, "the variables of a desktop are longer than %d bytes in total",
                          MSG_TEXT)
                : 0;
}

static int send_to_zygote(struct desk *d, struct err *e)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
        return err_set(e, ERR_ENV, "cannot open a desktop: %s", strerror(errno));
    struct msg *m = &d->in;
    msg_clear(m, MSG_SUPERVISOR, 0);
    m->number = d->n;
    int rc = msg_send(desks.control, m, fds[1]);
    close(fds[1]);
    d->socket = fds[0];
    return rc ? err_set(e, ERR_ENV, "the process for private desktops has been killed") : 0;
}

static int wait_until_open(struct desk *d, struct err *e)
{
    if (msg_send(d->socket, &d->out, -1))
        d->in.kind = 0; /* a message of the zygote, if any, has the reason */
    int rc = desk_answer(d, d->out.seconds * 1000 + ANSWER_EXTRA_MS);
    if (rc < 0 && d->in.kind == MSG_FAILED && d->in.seq == 0)
        return err_set(e, ERR_ENV, "cannot open a desktop: %s", d->in.text);
    if (rc < 0)
        return err_set(e, ERR_ENV, "the supervisor of a new desktop was killed while it started");
    if (rc == 0)
        return err_set(e, ERR_ENV, "a new desktop did not answer in time");
    if (d->in.kind != MSG_READY) {
        d->in.text[sizeof d->in.text - 1] = 0;
        return err_set(e, ERR_ENV, "%s", d->in.text);
    }
    d->number = d->in.number;
    memcpy(d->pids, d->in.pids, sizeof d->pids);
    d->supervisor = (int)syscall(SYS_pidfd_open, d->pids[0], 0);
    return 0;
}

/* Waits until the window manager runs, which must be before the first window opens.  Returns -1 with e. */
static int wait_for_wm(struct desk *d, double seconds, struct err *e)
{
    int64_t start = clock_ns();
    struct screen_options o = {.display = d->display};
    struct screen *s = screen_open(&o, e);
    int rc = s ? 0 : -1;
    char what[ERR_TEXT];
    if (!s && desk_state(d, what, sizeof what) != DESK_OK)
        err_set(e, ERR_ENV, "%s", what);
    while (rc == 0 && d->pids[2] && !screen_has_window_manager(s)) {
        if (desk_state(d, what, sizeof what) != DESK_OK)
            rc = err_set(e, ERR_ENV, "%s", what);
        else if (clock_ms_since(start) > seconds * 1000)
            rc = err_set(e, ERR_ENV, "the window manager was not ready within %g s", seconds);
        else
            clock_sleep_ms(5);
    }
    screen_close(s);
    return rc;
}

static int open_steps(struct desk *d, const struct desk_options *o, struct err *e)
{
    if (request_open(d, o, e) || send_to_zygote(d, e) || wait_until_open(d, e))
        return -1;
    if (!d->own) {
        const char *home = getenv("HOME");
        snprintf(d->display, sizeof d->display, "%s", o->display ? o->display : "");
        snprintf(d->home, sizeof d->home, "%s", home ? home : "/");
    } else {
        snprintf(d->display, sizeof d->display, ":%d", d->number);
        if (o->home_kept)
            snprintf(d->home, sizeof d->home, "%s", o->home_kept);
        else
            snprintf(d->home, sizeof d->home, "%s/home", d->dir);
        snprintf(d->auth, sizeof d->auth, "%s/auth", d->dir);
        if (auth_add(d->number, d->out.cookie, e))
            return -1;
    }
    return *d->display ? wait_for_wm(d, d->out.seconds, e) : 0;
}

struct desk *desk_open(const struct desk_options *o, struct err *e)
{
    if (!desks.zygote)
        bug("desk_open() before desks_begin()");
    struct desk *d = xmalloc(1, sizeof *d); /* the unused part of its messages is never touched */
    memset(d, 0, offsetof(struct desk, out));
    msg_clear(&d->in, 0, 0);
    d->socket = d->supervisor = d->number = -1;
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_lock(&desks.lock);
    d->n = ++desks.next;
    d->next = desks.open;
    desks.open = d;
    pthread_mutex_unlock(&desks.lock);
    desk_dir(d->dir, desks.root, d->n);
    snprintf(d->display, sizeof d->display, "%.60s", o->display ? o->display : "");
    if (open_steps(d, o, e) == 0)
        return d;
    desk_close(d);
    return NULL;
}

static bool closed_within(struct desk *d, double ms)
{
    int64_t start = clock_ns();
    int rc;
    d->seq = -1; /* ignores all later answers */
    while ((rc = desk_answer(d, 100)) >= 0 && clock_ms_since(start) < ms)
        ;
    return rc < 0;
}

/* Waits until the files of a desk are gone.  The zygote cleans up after a killed supervisor; without a zygote
 * this process does. */
static void wait_until_gone(struct desk *d)
{
    int64_t start = clock_ns();
    while (file_exists(d->dir) && zygote_lives() && clock_ms_since(start) < ANSWER_EXTRA_MS)
        clock_sleep_ms(2);
    if (file_exists(d->dir))
        folder_sweep_desk(d->dir);
}

void desk_close(struct desk *d)
{
    if (!d)
        return;
    if (d->number >= 0)
        auth_drop(d->number);
    if (d->socket >= 0) {
        msg_clear(&d->out, MSG_CLOSE, 0);
        msg_send(d->socket, &d->out, -1);
        if (!closed_within(d, ANSWER_EXTRA_MS) && d->supervisor >= 0)
            syscall(SYS_pidfd_send_signal, d->supervisor, SIGKILL, NULL, 0);
        close(d->socket);
        wait_until_gone(d);
    }
    if (d->supervisor >= 0)
        close(d->supervisor);
    pthread_mutex_lock(&desks.lock);
    for (struct desk **at = &desks.open; *at; at = &(*at)->next)
        if (*at == d) {
            *at = d->next;
            break;
        }
    pthread_mutex_unlock(&desks.lock);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

const char *desk_display(const struct desk *d)
{
    return d->display;
}

const char *desk_home(const struct desk *d)
{
    return d->home;
}

const char *desk_auth(const struct desk *d)
{
    return d->auth;
}
