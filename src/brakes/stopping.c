/* stopping.c - see stopping.h. */
#include "brakes/stopping.h"

#include "base/clock.h"
#include "screen/screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RELEASE_MS = 1000, LOOK_MS = 20 };

/* What is done to those that still run, and when. */
static const struct {
    double at_ms;
    int signal; /* 0: given up */
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

/* What a killed run has left down: its watchdog does this too, and whoever has the hands first will do. */
static void release(const char *display)
{
    struct screen_options o = {.display = display};
    int64_t start = clock_ns();
    bool done = false;
    while (!done && clock_ms_since(start) < RELEASE_MS) {
        struct screen *s = screen_open(&o, NULL);
        done = !s || screen_hands(s, NULL) == 0; /* no display: nothing is pressed */
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
        s[i].how = steps[step].how;
        if (steps[step].signal)
            syscall(SYS_pidfd_send_signal, s[i].fd, steps[step].signal, NULL, 0);
    }
}

/* Takes out those that have ended; returns how many are left. */
static int look(struct stopping *s, int n, int64_t start)
{
    int left = 0;
    for (int i = 0; i < n; i++) {
        struct pollfd p = {.fd = s[i].fd, .events = POLLIN};
        if (s[i].fd >= 0 && poll(&p, 1, 0) > 0) {
            s[i].ms = clock_ms_since(start);
            close(s[i].fd);
            s[i].fd = -1;
            if (s[i].how == STOPPED_KILLED)
                release(s[i].run.display);
        }
        left += s[i].fd >= 0;
    }
    return left;
}

int stopping_run(struct stopping *s, int n)
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
        while (steps[step].signal && (left = look(s, n, start)) > 0 &&
               clock_ms_since(start) < steps[step + 1].at_ms)
            clock_sleep_ms(LOOK_MS);
    }
    for (int i = 0; i < n; i++)
        if (s[i].fd >= 0)
            close(s[i].fd);
    return left;
}
