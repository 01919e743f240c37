/* guard.c - see guard.h. */
#include "screen/guard.h"

#include "screen/private.h"

#include "base/clock.h"
#include "base/thread.h"

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
    HANG_TICKS = 8, /* of stillness are a hang */
    LOCK_MS = 500,  /* until the kernel has given back a dead process's lock */
    DEATH_S = 10,   /* for releasing after a death, however slow a server is */
    FAREWELL_MS = 1000,
    LITTER = 1024,
    STACK_BYTES = 256 << 10,
    PIPE_FD = 3, /* ends with the charge, or when it says so */
    CHARGE_FD,   /* its pidfd: children of it may have the pipe too */
};

struct charge {         /* one screen */
    atomic_uint serial; /* another one each time the slot is taken, and written last; 0: free */
    atomic_uint alive, progress;
    atomic_int acting;
    atomic_bool tripped;
    char display[128], path[1024];
};

struct shared { /* between the two processes */
    atomic_bool done;
    atomic_int slots; /* charges above were never used */
    struct charge at[STOP_SLOTS];
    char litter[LITTER][1024];
};
static struct shared *shared;                            /* NULL: no guard */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the charge's side: who writes */
static pid_t guard;
static int pipe_end = -1;

/* ---- the guard: a thread for each display -------------------------------------------------------- */

struct counter { /* that is to move */
    unsigned last;
    int still; /* ticks */
};

struct eyes {
    struct charge *of;
    unsigned serial;
    char display[128], path[1024]; /* of that serial, for the slot may be taken again */
    Display *dpy;                  /* NULL: there is no such display */
    atomic_bool lost;
};
static atomic_int vqa; /* threads */

/* Waits for a tick; true when the charge has ended. */
static bool charge_ended(void)
{
    struct pollfd p[] = {{.fd = PIPE_FD, .events = POLLIN}, {.fd = CHARGE_FD, .events = POLLIN}};
    return poll(p, 2, TICK_MS) > 0 && (p[0].revents || p[1].revents);
}

static bool stands_still(struct counter *c, unsigned now, bool counts)
{
    c->still = counts && now == c->last ? c->still + 1 : 0;
    c->last = now;
    return c->still >= HANG_TICKS;
}

static bool reaches(const struct eyes *y)
{
    return y->dpy && !y->lost;
}

static void drop_events(struct eyes *y) /* changes of the keymap are told to everybody */
{
    while (reaches(y) && XPending(y->dpy)) {
        XEvent ev;
        XNextEvent(y->dpy, &ev);
    }
}

static void release_for_hung(struct eyes *y)
{
    if (reaches(y) && held_undo_file(y->path, y->dpy)) {
        y->of->tripped = true;
        warn("the run on display '%s' hangs; what it held is released", y->display);
    }
}

/* Through the lock, so that a run that has begun meanwhile is left alone. */
static void release_for_dead(struct eyes *y)
{
    struct held h = {.fd = -1};
    int64_t start = clock_ns();
    while (reaches(y) && h.fd < 0 && clock_ms_since(start) < LOCK_MS) {
        held_open(&h, y->dpy, y->display, true);
        if (h.fd < 0) {
            held_close(&h);
            clock_sleep_ms(10);
        }
    }
    if (h.fd >= 0)
        held_close(&h);
}

static void *look_after(void *arg)
{
    struct eyes *y = arg;
    struct counter alive = {0}, progress = {0};
    bool ended = false;
    if ((y->dpy = xtrap_open(y->display, &y->lost))) {
        XTestGrabControl(y->dpy, True);
        XFlush(y->dpy);
    }
    while (y->of->serial == y->serial && !(ended = charge_ended())) {
        drop_events(y);
        bool a = stands_still(&alive, y->of->alive, y->of->alive != 0);
        bool b = stands_still(&progress, y->of->progress, y->of->acting > 0);
        if ((a || b) && !y->of->tripped && y->of->serial == y->serial)
            release_for_hung(y);
    }
    if (ended && !shared->done && y->of->serial == y->serial)
        release_for_dead(y);
    if (y->dpy)
        XCloseDisplay(y->dpy);
    free(y);
    vqa--;
    return NULL;
}

/* Of a slot that is in use and not written just then; NULL. */
static struct eyes *eyes_for(struct charge *c)
{
    unsigned serial = c->serial;
    struct eyes *y = xcalloc(1, sizeof *y);
    y->of = c;
    y->serial = serial;
    memcpy(y->display, c->display, sizeof y->display);
    memcpy(y->path, c->path, sizeof y->path);
    if (serial && c->serial == serial)
        return y;
    free(y);
    return NULL;
}

static void look_for_new(unsigned *seen)
{
    for (int i = 0; i < shared->slots; i++) {
        struct eyes *y = shared->at[i].serial != seen[i] ? eyes_for(&shared->at[i]) : NULL;
        pthread_t thread;
        if (!y)
            continue;
        seen[i] = y->serial;
        vqa++;
        if (thread_start(&thread, STACK_BYTES, look_after, y)) {
            vqa--;
            free(y);
        } else {
            pthread_detach(thread);
        }
    }
}

_Noreturn static void be_guard(void)
{
    static unsigned seen[STOP_SLOTS];
    bool ended;
    do {
        ended = charge_ended();
        look_for_new(seen);
    } while (!ended);
    for (int i = 0; i < LITTER && !shared->done; i++)
        if (*shared->litter[i])
            unlink(shared->litter[i]);
    for (int64_t start = clock_ns(); vqa && !shared->done && clock_ms_since(start) < DEATH_S * 1000.0;)
        clock_sleep_ms(2);
    _exit(0);
}

/* In a session of its own: what ends the others of a terminal leaves it alone. */
static void become_guard(int fd)
{
    setsid();
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_NAME, "holorun-guard");
    int none = open("/dev/null", O_RDWR);
    dup2(none, STDIN_FILENO);
    dup2(none, STDOUT_FILENO);
    int charge = (int)syscall(SYS_pidfd_open, getppid(), 0);
    fd = fcntl(fd, F_DUPFD, CHARGE_FD + 1); /* out of the way of the next two */
    charge = fcntl(charge, F_DUPFD, CHARGE_FD + 1);
    dup2(fd, PIPE_FD);
    dup2(charge, CHARGE_FD);
    close_range(CHARGE_FD + 1, ~0u, 0);
    xtrap_setup();
}

/* ---- its charge ----------------------------------------------------------------------------------- */

int screen_guard(struct err *e)
{
    int fds[2];
    if (shared)
        return 0;
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED || pipe2(fds, O_CLOEXEC)) {
        if (s != MAP_FAILED)
            munmap(s, sizeof *s);
        return err_set(e, ERR_ENV, "cannot start a watchdog: %s", strerror(errno));
    }
    shared = s;
    guard = fork();
    if (guard == 0) {
        become_guard(fds[0]);
        be_guard();
    }
    close(fds[0]);
    pipe_end = fds[1];
    if (guard > 0)
        return 0;
    int why = errno;
    close(pipe_end);
    munmap(s, sizeof *s);
    shared = NULL;
    return err_set(e, ERR_ENV, "cannot start a watchdog: %s", strerror(why));
}

void screen_guard_end(void)
{
    if (!shared)
        return;
    shared->done = true;
    close(pipe_end);
    int64_t start = clock_ns();
    while (waitpid(guard, NULL, WNOHANG) == 0) {
        if (clock_ms_since(start) > FAREWELL_MS) { /* it waits for a server that does not answer */
            kill(guard, SIGKILL);
            waitpid(guard, NULL, 0);
            break;
        }
        clock_sleep_ms(1);
    }
    munmap(shared, sizeof *shared);
    shared = NULL;
}

/* ---- what it is told ------------------------------------------------------------------------------ */

void guard_display(int slot, const char *display, const char *path)
{
    static unsigned last;
    if (!shared || !path || strlen(display) >= sizeof shared->at[0].display ||
        strlen(path) >= sizeof shared->at[0].path)
        return;
    pthread_mutex_lock(&lock);
    struct charge *c = &shared->at[slot];
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

void guard_litter(const char *path, bool add)
{
    if (!shared || strlen(path) >= sizeof shared->litter[0])
        return;
    pthread_mutex_lock(&lock);
    char *at = NULL;
    for (int i = 0; i < LITTER && !at; i++) /* it may be there already */
        at = strcmp(shared->litter[i], path) ? NULL : shared->litter[i];
    for (int i = 0; i < LITTER && !at && add; i++)
        at = *shared->litter[i] ? NULL : shared->litter[i];
    if (at)
        snprintf(at, sizeof shared->litter[0], "%s", add ? path : "");
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

void screen_acting(struct screen *s, bool yes)
{
    if (shared)
        shared->at[s->stop->slot].acting += yes ? 1 : -1;
}

bool guard_tripped(int slot)
{
    return shared && shared->at[slot].tripped;
}
