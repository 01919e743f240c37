/* stopping.c - ends runs of other processes.
 *
 *     at once      SIGTERM: keys are released, the record is closed, the process ends
 *     after 2 s    SIGTERM again: keys are released through a second connection, the process ends
 *     after 4.5 s  SIGKILL, and this process releases the keys that stayed pressed
 *
 * A single session of a process with several is only asked through its stop file. */
#include "run/running.h"

#include "base/clock.h"
#include "screen/screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RELEASE_MS = 1000, LOOK_MS = 20 };

/* stages for runs that have not ended, with their start times */
static const struct {
    double at_ms;
    int signal; /* 0: give up */
    enum stopped how;
} steps[] = {
    {0, SIGTERM, STOPPED_ASKED},
    {2000, SIGTERM, STOPPED_URGED},
    {4500, SIGKILL, STOPPED_KILLED},
    {6500, 0, STOPPED_NOT},
};
enum { STEPS = sizeof steps / sizeof *steps };

const char *stopped_name(enum stopped s)
{
    static const char *const names[] = {"gone", "asked", "urged", "killed", "not"};
    return names[s];
}

/* Releases the keys and buttons of a killed run, for at most RELEASE_MS.  Its guard does the same; the first
 * of the two to get the display succeeds. */
static void release(const char *display)
{
    struct screen_options o = {.display = display};
    int64_t start = clock_ns();
    bool done = false;
    while (!done && clock_ms_since(start) < RELEASE_MS) {
        struct screen *s = screen_open(&o, NULL);
        done = !s || screen_acquire_input(s, NULL) == 0; /* without a display, nothing is pressed */
        screen_close(s);
        if (!done)
            clock_sleep_ms(LOOK_MS);
    }
}

static void next_step(struct stopping *s, int n, int step)
{
    for (int i = 0; i < n; i++) {
        if (s[i].fd < 0)
            continue;
        if (s[i].run.session == 0) {
            s[i].how = steps[step].how;
            if (steps[step].signal)
                syscall(SYS_pidfd_send_signal, s[i].fd, steps[step].signal, NULL, 0);
        } else if (step == 0 && running_ask(&s[i].run, true, NULL) == 0) {
            s[i].how = STOPPED_ASKED;
        } else if (step == 0 || !steps[step].signal) {
            s[i].how = STOPPED_NOT;
        }
    }
}

static void release_all(pid_t pid, const struct running *runs, int n)
{
    for (int i = 0; i < n; i++)
        if (runs[i].pid == pid && *runs[i].display)
            release(runs[i].display);
}

static bool has_ended(const struct stopping *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0 || (s->run.session && !running_lives(&s->run));
}

/* Closes the entries of runs that have ended; returns the number of the remaining ones. */
static int look(struct stopping *s, int n, int64_t start, const struct running *runs, int n_runs)
{
    int left = 0;
    for (int i = 0; i < n; i++) {
        if (s[i].fd >= 0 && has_ended(&s[i])) {
            s[i].ms = clock_ms_since(start);
            close(s[i].fd);
            s[i].fd = -1;
            if (s[i].run.session)
                running_ask(&s[i].run, false, NULL); /* the session may have ended before it saw the file */
            if (s[i].how == STOPPED_KILLED)
                release_all(s[i].run.pid, runs, n_runs);
        }
        left += s[i].fd >= 0;
    }
    return left;
}

int stopping_run(struct stopping *s, int n, const struct running *runs, int n_runs)
{
    int64_t start = clock_ns();
    int left = 0;
    for (int i = 0; i < n; i++) {
        s[i].fd = running_handle(&s[i].run);
        s[i].how = STOPPED_GONE;
        s[i].ms = 0;
        left += s[i].fd >= 0;
    }
    for (int step = 0; step < STEPS && left; step++) {
        next_step(s, n, step);
        while (steps[step].signal && (left = look(s, n, start, runs, n_runs)) > 0 &&
               clock_ms_since(start) < steps[step + 1].at_ms)
            clock_sleep_ms(LOOK_MS);
    }
    for (int i = 0; i < n; i++)
        if (s[i].fd >= 0)
            close(s[i].fd);
    return left;
}
