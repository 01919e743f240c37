/* cpu_wait.c - measures the CPU wait of the processes that draw: time runnable but not running.
 *
 * On an overloaded machine the screen looks settled although the focused program, the program under the
 * pointer or the X server still has work to do. /proc/PID/stat gives the state, /proc/PID/schedstat the
 * run time; runnable without run time is CPU wait. Only main threads are sampled, because they draw. A
 * process without these files contributes 0. */
#include "screen/private.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STAT_BYTES = 512 };

static void add(struct cpu_wait *v, int pid)
{
    char path[64];
    for (int i = 0; i < v->n; i++)
        if (v->of[i].pid == pid)
            return;
    if (pid < 1 || v->n == CPU_WAIT_MAX)
        return;
    struct cpu_wait_process *p = &v->of[v->n];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    p->stat = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
    p->sched = open(path, O_RDONLY | O_CLOEXEC);
    p->pid = pid;
    p->ran = 0;
    v->n++;
}

static bool read_text(int fd, char text[STAT_BYTES])
{
    ssize_t n = fd >= 0 ? pread(fd, text, STAT_BYTES - 1, 0) : -1;
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Returns the part of the last ms in which the process waited for a CPU. */
static double waited(struct cpu_wait_process *p, double ms)
{
    char stat[STAT_BYTES], sched[STAT_BYTES];
    if (!read_text(p->stat, stat) || !read_text(p->sched, sched))
        return 0;
    const char *name_end = strrchr(stat, ')');
    double ran = strtod(sched, NULL) / 1e6, now = ran - p->ran;
    p->ran = ran;
    bool ready = name_end && name_end[1] == ' ' && name_end[2] == 'R';
    return ready && now < ms / 2 ? ms - now : 0;
}

bool cpu_wait_asleep(int pid)
{
    char path[64], stat[STAT_BYTES];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool known = read_text(fd, stat);
    if (fd >= 0)
        close(fd);
    const char *name_end = strrchr(stat, ')');
    return known && name_end && name_end[1] == ' ' && name_end[2] == 'S';
}

void cpu_wait_begin(struct cpu_wait *v, struct screen *s)
{
    int pids[CPU_WAIT_MAX];
    *v = (struct cpu_wait){.last = clock_ns()};
    int n = s->lost ? 0 : s->ops->drawing_pids(s, pids);
    for (int i = 0; i < n; i++)
        add(v, pids[i]);
    for (int i = 0; i < v->n; i++)
        waited(&v->of[i], 0);
}

double cpu_wait_sample(struct cpu_wait *v)
{
    double ms = clock_ms_since(v->last), most = 0;
    v->last = clock_ns();
    for (int i = 0; i < v->n; i++) {
        double one = waited(&v->of[i], ms);
        most = one > most ? one : most;
    }
    return most;
}

void cpu_wait_end(struct cpu_wait *v)
{
    for (int i = 0; i < v->n; i++) {
        close(v->of[i].stat);
        close(v->of[i].sched);
    }
    v->n = 0;
}
