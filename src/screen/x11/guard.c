/* guard.c - the watchdog process that releases keys and buttons; see guard.h. */
#include "screen/guard.h"

#include "screen/x11/x11_impl.h"

#include "base/clock.h"
#include "base/pool.h"

#include <X11/extensions/XTest.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TICK_MS = 250,
    HANG_TICKS = 8, /* unchanged for this many ticks: hung */
    LOCK_MS = 500,  /* time for the kernel to release the lock of a dead process */
    EXIT_WAIT_MS = 1000,
    AGAIN_MS = 10,
    TEMP_FILES = 1024,
    STACK_BYTES = 256 << 10,
    PIPE_FD = 3, /* closed when the parent ends, or by screen_guard_end() */
    PARENT_FD,   /* pidfd of the parent; needed because its children may have inherited the pipe */
};

struct guarded {        /* one screen */
    atomic_uint serial; /* new for each use of the slot, written last; 0: free */
    atomic_uint alive, progress;
    atomic_int acting;
    atomic_bool tripped;
    char display[128], path[1024];
};

struct shared { /* memory shared by both processes */
    atomic_bool done;
    atomic_int slots; /* slots in use or used before */
    struct guarded at[STOP_SLOTS];
    char temp_files[TEMP_FILES][1024];
};
static struct shared *shared;                            /* NULL: no guard */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for writers in the parent */
static pid_t guard;                                      /* the supervisor, leader of its process group */
static int pipe_end = -1, guard_fd = -1;

/* ---- the guard: one thread per display ----------------------------------------------------------- */

struct guard_counter {
    unsigned last;
    int unchanged; /* ticks */
};

struct guard_thread {
    struct guarded *of;
    unsigned serial;
    char display[128], path[1024]; /* copies, because the slot may be reused */
    Display *dpy;                  /* NULL: could not be opened */
    atomic_bool lost;
};
static atomic_int guard_threads;

/* Waits for one tick. Returns true if the parent has ended. */
static bool parent_ended(void)
{
    struct pollfd p[] = {{.fd = PIPE_FD, .events = POLLIN}, {.fd = PARENT_FD, .events = POLLIN}};
    return poll(p, 2, TICK_MS) > 0 && (p[0].revents || p[1].revents);
}

static bool is_hung(struct guard_counter *c, unsigned now, bool counts)
{
    c->unchanged = counts && now == c->last ? c->unchanged + 1 : 0;
    c->last = now;
    return c->unchanged >= HANG_TICKS;
}

static bool is_connected(const struct guard_thread *y)
{
    return y->dpy && !y->lost;
}

/* Discards pending events: every client receives MappingNotify. */
static void drop_events(struct guard_thread *y)
{
    while (is_connected(y) && XPending(y->dpy)) {
        XEvent ev;
        XNextEvent(y->dpy, &ev);
    }
}

static void release_for_hung(struct guard_thread *y)
{
    if (!is_connected(y))
        return;
    y->of->tripped = true; /* set before the release, so that a run that wakes up now cannot press again */
    if (!held_release_file(y->path, y->dpy))
        y->of->tripped = false;
}

/* Releases the keys and buttons of a dead process. Acquires the held file's lock first, so that a run that
 * has started meanwhile is not disturbed. */
static void release_for_dead(struct guard_thread *y)
{
    struct held h;
    int64_t start = clock_ns();
    held_open(&h, y->display);
    while (is_connected(y) && held_acquire(&h, y->dpy, NULL) && clock_ms_since(start) < LOCK_MS)
        clock_sleep_ms(10);
    held_close(&h);
}

static void *guard_thread_main(void *arg)
{
    struct guard_thread *y = arg;
    struct guard_counter alive = {0}, progress = {0};
    bool ended = false;
    if ((y->dpy = xtrap_open(y->display, &y->lost))) {
        XTestGrabControl(y->dpy, True);
        XFlush(y->dpy);
    }
    while (y->of->serial == y->serial && !(ended = parent_ended())) {
        drop_events(y);
        bool a = is_hung(&alive, y->of->alive, y->of->alive != 0);
        bool b = is_hung(&progress, y->of->progress, y->of->acting > 0);
        if ((a || b) && !y->of->tripped && y->of->serial == y->serial)
            release_for_hung(y);
    }
    if (ended && !shared->done && y->of->serial == y->serial)
        release_for_dead(y);
    if (y->dpy)
        xtrap_close(y->dpy, &y->lost);
    free(y);
    guard_threads--;
    return NULL;
}

/* Returns the thread data of a screen, or NULL if the slot is free or being written. */
static struct guard_thread *guard_thread_for(struct guarded *c)
{
    unsigned serial = c->serial;
    struct guard_thread *y = xcalloc(1, sizeof *y);
    y->of = c;
    y->serial = serial;
    memcpy(y->display, c->display, sizeof y->display);
    memcpy(y->path, c->path, sizeof y->path);
    if (serial && c->serial == serial)
        return y;
    free(y);
    return NULL;
}

static void start_new_threads(unsigned *seen)
{
    for (int i = 0; i < shared->slots; i++) {
        struct guard_thread *y = shared->at[i].serial != seen[i] ? guard_thread_for(&shared->at[i]) : NULL;
        pthread_t thread;
        if (!y)
            continue;
        seen[i] = y->serial;
        guard_threads++;
        if (thread_start(&thread, STACK_BYTES, guard_thread_main, y)) {
            guard_threads--;
            free(y);
        } else {
            pthread_detach(thread);
        }
    }
}

_Noreturn static void guard_main(void)
{
    static unsigned seen[STOP_SLOTS];
    bool ended;
    do {
        ended = parent_ended();
        start_new_threads(seen);
    } while (!ended);
    for (int i = 0; i < TEMP_FILES && !shared->done; i++)
        if (*shared->temp_files[i])
            unlink(shared->temp_files[i]);
    while (guard_threads && !shared->done) /* a server that hangs may resume with a button down */
        clock_sleep_ms(2);
    _exit(0);
}

/* Forks the guard and forks it again whenever it is killed. Has no threads and no X connection, so that it
 * can fork safely. */
_Noreturn static void supervise(void)
{
    for (;;) {
        int status = 0;
        pid_t worker = fork();
        if (worker == 0)
            guard_main();
        while (worker > 0 && waitpid(worker, &status, 0) < 0 && errno == EINTR)
            ;
        if (worker > 0 && WIFEXITED(status))
            _exit(0);
        clock_sleep_ms(AGAIN_MS);
    }
}

/* Removes all but three variables from the guard's copy of the environment, which may contain a secret
 * that the run has removed from its own. The kept variables are needed to open a display. */
static void wipe_environment(void)
{
    static const char *const needed[] = {"XAUTHORITY=", "HOME=", "XDG_RUNTIME_DIR="};
    char **to = environ;
    for (char **from = environ; from && *from; from++) {
        bool keep = false;
        for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
            keep = keep || !strncmp(*from, needed[i], strlen(needed[i]));
        if (keep)
            *to++ = *from;
        else
            explicit_bzero(*from, strlen(*from));
    }
    if (to)
        *to = NULL;
}

/* Detaches the guard from the terminal and the parent. It starts a session of its own, so that signals to
 * the terminal's process group do not reach it. It closes all descriptors of the parent: the guard may
 * outlive the run by minutes when a server hangs, and whoever reads the run's output waits for end of
 * file. */
static void guard_setup(int fd)
{
    setsid();
    wipe_environment();
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    prctl(PR_SET_NAME, "holorun-guard");
    int guarded = (int)syscall(SYS_pidfd_open, getppid(), 0);
    fd = fcntl(fd, F_DUPFD, PARENT_FD + 1); /* above the range that dup2() overwrites below */
    guarded = fcntl(guarded, F_DUPFD, PARENT_FD + 1);
    int none = open("/dev/null", O_RDWR);
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        dup2(none, i);
    dup2(fd, PIPE_FD);
    dup2(guarded, PARENT_FD);
    close_range(PARENT_FD + 1, ~0u, 0);
    xtrap_setup();
}

/* ---- the parent ------------------------------------------------------------------------------- */

int screen_guard(struct err *e)
{
    int fds[2];
    if (shared)
        return 0;
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED || pipe2(fds, O_CLOEXEC)) {
        if (s != MAP_FAILED)
            munmap(s, sizeof *s);
        return err_set(e, ERR_ENV, "cannot start the watchdog process: %s", strerror(errno));
    }
    shared = s;
    guard = fork();
    if (guard == 0) {
        guard_setup(fds[0]);
        supervise();
    }
    close(fds[0]);
    pipe_end = fds[1];
    guard_fd = guard > 0 ? (int)syscall(SYS_pidfd_open, guard, 0) : -1;
    if (guard > 0)
        return 0;
    int why = errno;
    close(pipe_end);
    munmap(s, sizeof *s);
    shared = NULL;
    return err_set(e, ERR_ENV, "cannot start the watchdog process: %s", strerror(why));
}

/* Returns whether a screen was abandoned with keys or buttons down because its server hangs. */
static bool has_pending_release(void)
{
    for (int i = 0; i < shared->slots; i++)
        if (shared->at[i].serial)
            return true;
    return false;
}

void screen_guard_end(void)
{
    if (!shared)
        return;
    bool pending = has_pending_release(); /* then the guard stays until that server resumes or exits */
    shared->done = !pending;
    close(pipe_end);
    int64_t start = clock_ns();
    while (!pending && waitpid(guard, NULL, WNOHANG) == 0) {
        if (clock_ms_since(start) > EXIT_WAIT_MS) { /* a server does not respond */
            kill(-guard, SIGKILL);
            waitpid(guard, NULL, 0);
            break;
        }
        clock_sleep_ms(1);
    }
    if (guard_fd >= 0)
        close(guard_fd);
    guard_fd = -1;
    munmap(shared, sizeof *shared);
    shared = NULL;
}

bool guard_killed(void)
{
    struct pollfd p = {.fd = guard_fd, .events = POLLIN};
    return guard_fd >= 0 && poll(&p, 1, 0) > 0;
}

/* ---- shared memory ------------------------------------------------------------------------------- */

void guard_display(int slot, const char *display, const char *path)
{
    static unsigned last;
    if (!shared || !path || strlen(display) >= sizeof shared->at[0].display ||
        strlen(path) >= sizeof shared->at[0].path)
        return;
    pthread_mutex_lock(&lock);
    struct guarded *c = &shared->at[slot];
    c->alive = c->progress = 0;
    c->acting = 0;
    c->tripped = false;
    snprintf(c->display, sizeof c->display, "%s", display);
    snprintf(c->path, sizeof c->path, "%s", path);
    c->serial = ++last;
    if (shared->slots <= slot)
        shared->slots = slot + 1;
    pthread_mutex_unlock(&lock);
}

void guard_forget(int slot)
{
    if (!shared)
        return;
    shared->at[slot].serial = 0;
    shared->at[slot].tripped = false;
}

void guard_temp_file(const char *path, bool add)
{
    if (!shared || strlen(path) >= sizeof shared->temp_files[0])
        return;
    pthread_mutex_lock(&lock);
    char *at = NULL;
    for (int i = 0; i < TEMP_FILES && !at; i++) /* already listed? */
        at = strcmp(shared->temp_files[i], path) ? NULL : shared->temp_files[i];
    for (int i = 0; i < TEMP_FILES && !at && add; i++)
        at = *shared->temp_files[i] ? NULL : shared->temp_files[i];
    if (at)
        snprintf(at, sizeof shared->temp_files[0], "%s", add ? path : "");
    pthread_mutex_unlock(&lock);
}

void guard_alive(int slot)
{
    if (shared)
        shared->at[slot].alive++;
}

void guard_progress(int slot)
{
    if (shared)
        shared->at[slot].progress++;
}

void screen_set_acting(struct screen *s, bool yes)
{
    if (shared)
        shared->at[s->stop->slot].acting += yes ? 1 : -1;
}

bool guard_tripped(int slot)
{
    return shared && shared->at[slot].tripped;
}
