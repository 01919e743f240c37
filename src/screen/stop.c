/* stop.c - the stop flag, the signals that set it, and the end that cannot wait.
 *
 * A first SIGINT, SIGTERM or SIGHUP sets the flag: hands stop before their next event, generation
 * before its next token, and the program ends in order.  A second one must end it even when some
 * thread no longer listens.  Releasing keys needs Xlib, which a signal handler may not call, so the
 * handler writes to a pipe and a thread that does nothing else releases what is held through a
 * connection of its own and exits; if even that takes two seconds (the X server hangs), SIGALRM ends
 * the process.
 *
 * Threads that watch a display are woken by the first signal and lift what is pressed, for the owner of the hands may
 * be deep in a model just then.
 *
 * A deadline stops hands at the same place as the flag, but only them, and only until it is taken back.
 */
#include "screen/guard.h"
#include "screen/held.h"
#include "screen/private.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int stop_flag;
static volatile sig_atomic_t signals_seen;
static _Atomic int64_t deadline; /* clock_ns(); 0: none */
static int force_pipe[2] = {-1, -1};

enum { MAX_WAKERS = 16 };
static atomic_int wakers[MAX_WAKERS]; /* file descriptors + 1; 0: empty */

volatile int *screen_stop_flag(void)
{
    return &stop_flag;
}

void screen_deadline(int64_t ns)
{
    deadline = ns;
}

int stop_check(struct err *e)
{
    int why = stop_flag;
    if (!why && guard_tripped())
        stop_flag = why = STOP_HANG;
    if (!why && deadline && clock_ns() >= deadline)
        return err_set(e, ERR_TIME, "the time is over");
    if (!why)
        return 0;
    if (why == STOP_HUMAN)
        return err_set(e, ERR_STOPPED, "stopped by a person at the keyboard");
    if (why == STOP_HANG)
        return err_set(e, ERR_STOPPED, "stopped by the watchdog: it hung for 2 s with something pressed");
    if (why == STOP_CORNER)
        return err_set(e, ERR_STOPPED, "stopped by a person: the pointer rests in the top left corner");
    if (why == STOP_FILE)
        return err_set(e, ERR_STOPPED, "stopped by the stop file");
    const char *name = sigabbrev_np(why);
    return err_set(e, ERR_STOPPED, "stopped by signal %s%s", name ? "SIG" : "", name ? name : "?");
}

void stop_waker(int fd, bool add)
{
    int from = add ? 0 : fd + 1, to = add ? fd + 1 : 0;
    for (int i = 0; i < MAX_WAKERS; i++)
        if (atomic_compare_exchange_strong(&wakers[i], &(int){from}, to))
            return;
}

/* Only what a signal handler may do. */
static void wake(void)
{
    static const uint64_t one = 1;
    for (int i = 0; i < MAX_WAKERS; i++) {
        int fd = atomic_load(&wakers[i]) - 1;
        ssize_t n = fd >= 0 ? write(fd, &one, sizeof one) : 0;
        (void)n; /* it would be awake already */
    }
}

static void on_signal(int sig)
{
    int saved = errno;
    if (!stop_flag)
        stop_flag = sig;
    wake();
    if (signals_seen++) {
        ssize_t n = write(force_pipe[1], "x", 1);
        (void)n; /* a full pipe already says it */
    }
    errno = saved;
}

static void on_alarm(int sig)
{
    (void)sig;
    _exit(ERR_STOPPED);
}

static void *force_end(void *arg)
{
    char c;
    while (read(force_pipe[0], &c, 1) < 0 && errno == EINTR)
        ;
    struct sigaction sa = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &sa, NULL);
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
    alarm(2);
    held_emergency();
    static const char text[] = "holorun: asked twice to stop; keys are released, ending now\n";
    ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
    (void)n;
    _exit(ERR_STOPPED);
    return arg;
}

void screen_install_signals(void)
{
    if (force_pipe[0] >= 0)
        return;
    if (pipe2(force_pipe, O_CLOEXEC))
        die(ERR_ENV, "cannot make a pipe: %s", strerror(errno));
    /* Signals are for the main thread: this one is born with all of them blocked. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    pthread_t thread;
    int rc = pthread_create(&thread, NULL, force_end, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        die(ERR_ENV, "cannot start a thread: %s", strerror(rc));
    pthread_detach(thread);

    xtrap_setup(); /* the connection of held_emergency() needs Xlib to be thread-safe */
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
    /* A reader of our output that goes away, or a file at its limit: an error from write, not an end
     * with a button down. */
    sa.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &sa, NULL);
    sigaction(SIGXFSZ, &sa, NULL);
    err_on_exit(held_emergency);
    atexit(held_emergency);
}
