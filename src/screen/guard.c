/* guard.c - see guard.h. */
#include "screen/guard.h"

#include "screen/private.h"

#include "base/clock.h"

#include <X11/extensions/XTest.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TICK_MS = 250,
    HANG_TICKS = 8, /* of stillness are a hang */
    LOCK_MS = 500,  /* until the kernel has given back a dead process's lock */
    DEATH_S = 10,   /* for releasing after a death, however slow the server is */
    FAREWELL_MS = 1000,
    DISPLAYS = 16,
    PIPE_FD = 3,
};

struct shared { /* between the two processes */
    atomic_uint alive, progress;
    atomic_int acting;
    atomic_bool done, tripped;
    atomic_int displays;
    struct {
        char display[128], path[1024];
    } at[DISPLAYS];
    char litter[1024];
};
static struct shared *shared; /* NULL: no guard */
static pid_t guard;
static int pipe_end = -1;

/* ---- the guard ------------------------------------------------------------------------------------ */

struct counter { /* that is to move */
    unsigned last;
    int still; /* ticks */
};

static struct eyes { /* the guard's own connections */
    Display *dpy;
    volatile bool lost;
} eyes[DISPLAYS];
static int opened;

static void open_displays(void)
{
    for (; opened < shared->displays; opened++) {
        eyes[opened].dpy = XOpenDisplay(shared->at[opened].display);
        if (!eyes[opened].dpy)
            continue;
        xtrap_watch(eyes[opened].dpy, &eyes[opened].lost);
        XTestGrabControl(eyes[opened].dpy, True);
        XFlush(eyes[opened].dpy);
    }
    for (int i = 0; i < opened; i++) /* changes of the keymap are told to everybody */
        while (eyes[i].dpy && !eyes[i].lost && XPending(eyes[i].dpy)) {
            XEvent ev;
            XNextEvent(eyes[i].dpy, &ev);
        }
}

static bool stands_still(struct counter *c, unsigned now, bool counts)
{
    c->still = counts && now == c->last ? c->still + 1 : 0;
    c->last = now;
    return c->still >= HANG_TICKS;
}

static void release_for_hung(void)
{
    for (int i = 0; i < opened; i++)
        if (eyes[i].dpy && !eyes[i].lost && held_undo_file(shared->at[i].path, eyes[i].dpy)) {
            shared->tripped = true;
            warn("the run on display '%s' hangs; what it held is released", shared->at[i].display);
        }
}

/* Through the lock, so that a run that has begun meanwhile is left alone. */
static void release_for_dead(void)
{
    alarm(DEATH_S);
    if (*shared->litter)
        unlink(shared->litter);
    for (int i = 0; i < opened; i++) {
        struct held h = {.fd = -1};
        int64_t start = clock_ns();
        while (eyes[i].dpy && !eyes[i].lost && h.fd < 0 && clock_ms_since(start) < LOCK_MS) {
            held_open(&h, eyes[i].dpy, shared->at[i].display);
            if (h.fd < 0) {
                held_close(&h);
                clock_sleep_ms(10);
            }
        }
        if (h.fd >= 0)
            held_close(&h);
    }
}

_Noreturn static void be_guard(void)
{
    struct counter alive = {0}, progress = {0};
    struct pollfd p = {.fd = PIPE_FD, .events = POLLIN};
    while (poll(&p, 1, TICK_MS) <= 0 || !p.revents) {
        open_displays();
        bool a = stands_still(&alive, shared->alive, shared->alive != 0);
        bool b = stands_still(&progress, shared->progress, shared->acting > 0);
        if ((a || b) && !shared->tripped)
            release_for_hung();
    }
    open_displays();
    if (!shared->done)
        release_for_dead();
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
    dup2(fd, PIPE_FD);
    close_range(PIPE_FD + 1, ~0u, 0);
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

void guard_display(const char *display, const char *path)
{
    if (!shared || !path || shared->displays == DISPLAYS || strlen(display) >= sizeof shared->at[0].display ||
        strlen(path) >= sizeof shared->at[0].path)
        return;
    int n = shared->displays;
    for (int i = 0; i < n; i++)
        if (!strcmp(shared->at[i].path, path))
            return;
    snprintf(shared->at[n].display, sizeof shared->at[n].display, "%s", display);
    snprintf(shared->at[n].path, sizeof shared->at[n].path, "%s", path);
    shared->displays = n + 1;
}

void guard_litter(const char *path)
{
    if (shared && strlen(path) < sizeof shared->litter)
        snprintf(shared->litter, sizeof shared->litter, "%s", path);
}

void guard_alive(void)
{
    if (shared)
        shared->alive++;
}

void guard_progress(void)
{
    if (shared)
        shared->progress++;
}

void screen_acting(bool yes)
{
    if (shared)
        shared->acting += yes ? 1 : -1;
}

bool guard_tripped(void)
{
    return shared && shared->tripped;
}
