/* effort.c - CPU time limit for the work of a request (effort.h). */
#include "base/effort.h"

#include "base/flag.h"

#include <time.h>

enum {
    LOOK_STEPS = 4096,
    STEP_NS = 20
}; /* short tasks are measured by their steps, without reading the
                                           * clock */

static int64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void add(struct effort *w, int64_t ns)
{
    w->used_ns += ns;
    w->steps = 0;
    w->cancelled = w->cancelled || flag_up(w->cancel);
    w->spent = w->spent || (w->cpu_s > 0 && (double)w->used_ns > w->cpu_s * 1e9);
}

void effort_begin(struct effort *w)
{
    if (!w)
        return;
    add(w, (int64_t)w->steps * STEP_NS);
    w->since_ns = 0;
}

bool effort_over(struct effort *w, unsigned steps)
{
    if (!w)
        return false;
    w->steps += steps;
    if (w->steps < LOOK_STEPS || w->spent || w->cancelled)
        return w->spent || w->cancelled;
    int64_t now = thread_ns();
    add(w, w->since_ns ? now - w->since_ns : (int64_t)w->steps * STEP_NS);
    w->since_ns = now;
    return w->spent || w->cancelled;
}

int effort_error(const struct effort *w, const char *what, struct err *e)
{
    if (w->cancelled)
        return err_set(e, ERR_STOPPED, "the client disconnected");
    return err_set(e, ERR_USAGE, "%s takes more than %.3g s of CPU time; send a simpler request", what,
                   w->cpu_s);
}
