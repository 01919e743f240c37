/* stop.c - stop flags, the signals that set them, and the forced exit.
 *
 * The first SIGINT, SIGTERM, SIGHUP or SIGUSR1 sets all flags: input stops before its next event, generation
 * before its next token, and the program exits normally. A second one ends the program even if a thread no
 * longer checks its flag. Releasing keys needs Xlib, which a signal handler may not call, so the handler
 * writes to a pipe; a thread that waits for it releases keys and buttons through its own connections and
 * exits. If that takes two seconds (an X server hangs), SIGALRM ends the process.
 *
 * The first signal also wakes the input monitor threads. They release all pressed keys and buttons, because
 * the thread that sends events may be in the model.
 *
 * A deadline stops input like the flag, but nothing else, and only until it is reset. */
#include "screen/stop.h"

#include "screen/guard.h"
#include "screen/private.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static volatile int process_flag;
static volatile sig_atomic_t signals_seen;
static int force_pipe[2] = {-1, -1};

static struct stop slots[STOP_SLOTS];
/* for allocating a slot; readers need no lock */
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- one screen ------------------------------------------------------------------------------- */

static int open_event(atomic_int *at)
{
    int fd = *at ? *at - 1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    *at = fd + 1;
    return fd < 0 ? -1 : 0;
}

static void write_event(int fd)
{
    static const uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof one);
    (void)n; /* the counter is full: the descriptor is already readable */
}

static void clear_event(int fd)
{
    uint64_t n;
    ssize_t stale = read(fd, &n, sizeof n);
    (void)stale;
}

static struct stop *take_slot(void)
{
    static int last_number;
    for (int i = 0; i < STOP_SLOTS; i++) {
        struct stop *s = &slots[i];
        if (s->used)
            continue;
        s->slot = i;
        s->number = ++last_number;
        return open_event(&s->wake) || open_event(&s->rouse) ? NULL : s;
    }
    errno = EUSERS;
    return NULL;
}

struct stop *stop_open(struct err *e)
{
    pthread_mutex_lock(&slots_lock);
    struct stop *s = take_slot();
    if (s) {
        clear_event(stop_wake_fd(s));
        s->deadline = 0;
        flag_set(&s->flag, 0);
        s->used = true; /* from now on screen_stop_all() sets its flag */
        stop_reason(s); /* applies an earlier request */
    }
    pthread_mutex_unlock(&slots_lock);
    if (!s)
        err_set(e, ERR_ENV, "cannot open another display: %s", strerror(errno));
    return s;
}

void stop_close(struct stop *s)
{
    if (s)
        s->used = false;
}

int stop_wake_fd(const struct stop *s)
{
    return s->wake - 1;
}

void stop_wake(const struct stop *s)
{
    write_event(stop_wake_fd(s));
}

void stop_sleep(const struct stop *s, double ms, int fd, bool events)
{
    int64_t deadline = s->deadline;
    double left = deadline ? fmax(0, (double)(deadline - clock_ns()) / 1e6) : ms;
    const double most = fmin(ms, left);
    const struct timespec time = {(time_t)(most / 1000), (long)(fmod(most, 1000) * 1e6)};
    struct pollfd p[] = {{.fd = s->rouse - 1, .events = POLLIN},
                         {.fd = fd, .events = (short)(POLLRDHUP | (events ? POLLIN : 0))}};
    clear_event(p[0].fd); /* of an earlier stop: a flag that is set now ends the sleep before it begins */
    if (!flag_up(&s->flag))
        ppoll(p, 2, &time, NULL);
}

void stop_set(struct stop *s, int why)
{
    if (!flag_up(&s->flag))
        flag_set(&s->flag, why);
    stop_wake(s);
    write_event(s->rouse - 1);
}

int stop_reason(struct stop *s)
{
    int why = flag_value(&s->flag);
    if (!why)
        why = flag_value(&process_flag);
    if (!why && guard_tripped(s->slot))
        why = STOP_HANG;
    if (why && !flag_up(&s->flag))
        flag_set(&s->flag, why);
    return why;
}

int stop_check(struct stop *s, struct err *e)
{
    int why = stop_reason(s);
    int64_t deadline = s->deadline;
    if (!why && deadline && clock_ns() >= deadline)
        return err_set(e, ERR_TIME, "time limit reached");
    if (!why)
        return 0;
    if (why == STOP_HUMAN)
        return err_set(e, ERR_STOPPED, "stopped by the user at the keyboard");
    if (why == STOP_HANG)
        return err_set(e, ERR_STOPPED,
                       "stopped by the watchdog: the run hung for 2 s with a key or button held");
    if (why == STOP_GUARD)
        return err_set(e, ERR_STOPPED, "stopped: the watchdog process was killed");
    if (why == STOP_CORNER)
        return err_set(e, ERR_STOPPED, "stopped by the user: the pointer stayed in the top left corner");
    if (why == STOP_FILE)
        return err_set(e, ERR_STOPPED, "stopped by the stop file");
    if (why == STOP_HOST)
        return err_set(e, ERR_STOPPED, "stopped by the program that started it");
    const char *name = sigabbrev_np(why);
    return err_set(e, ERR_STOPPED, "stopped by signal %s%s", name ? "SIG" : "", name ? name : "?");
}

/* ---- all screens ------------------------------------------------------------------------------------- */

volatile int *screen_stop_flag(const struct screen *s)
{
    return s ? &s->stop->flag : &process_flag;
}

void screen_stop(struct screen *s, int why)
{
    stop_set(s->stop, why);
}

int screen_number(const struct screen *s)
{
    return s->stop->number;
}

void screen_deadline(struct screen *s, int64_t ns)
{
    s->stop->deadline = ns;
}

/* Async-signal-safe. */
void screen_stop_all(int why)
{
    if (!why || !flag_up(&process_flag))
        flag_set(&process_flag, why);
    for (int i = 0; i < STOP_SLOTS; i++)
        if (slots[i].used && why)
            stop_set(&slots[i], why);
        else if (slots[i].used)
            flag_set(&slots[i].flag, 0);
}

static void on_signal(int sig)
{
    int saved = errno;
    screen_stop_all(sig);
    if (signals_seen++) {
        ssize_t n = write(force_pipe[1], "x", 1);
        (void)n; /* the pipe is full: it is already readable */
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
    screen_x11.emergency();
    static const char text[] = "holorun: second stop signal; keys are released, exiting now\n";
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
    pthread_t thread;
    int rc = thread_start(&thread, 0, force_end, NULL);
    if (rc)
        die(ERR_ENV, "cannot start a thread: %s", strerror(rc));
    pthread_detach(thread);

    screen_x11.init(); /* emergency() uses several threads */
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        sigaction(ending[i], &sa, NULL);
    /* A closed pipe or a file at its size limit must make write() fail, not end the process with a button
     * down. */
    sa.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &sa, NULL);
    sigaction(SIGXFSZ, &sa, NULL);
    err_on_exit(screen_x11.emergency);
    atexit(screen_x11.emergency);
}
