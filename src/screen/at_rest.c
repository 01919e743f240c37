/* at_rest.c - whether programs have nothing left to do: no process of theirs runs or is about to.
 *
 * A program that has several processes or threads may answer a ping before all of them have seen an event. As
 * long as work is passed on between them, one of them uses CPU time or is runnable. So they are at rest if
 * they have used hardly any CPU time for REST_MS and even less at its end, and then all threads sleep. A
 * stopped process is not at rest. Time in which they are stopped or wait for a CPU does not count towards the
 * time limit, up to CEILING_MS.
 *
 * The CPU clock of a process includes all its threads and costs one system call. /proc/PID/task/TID/children
 * gives the descendants. */
#include "screen/private.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_MS = 2,
    REST_MS = 24,  /* longer than a frame at 60 Hz: toolkits hold events back until the next one */
    SILENT_MS = 6, /* at the end of REST_MS: nothing is being passed on */
    CEILING_MS = 2000,
};
static const double works_share = 0.1; /* of one CPU; below are timers, carets and the like */

/* Reads a file of a thread. Returns -1, with "", if there is none. */
static int read_file(int pid, const char *tid, const char *name, char *out, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/%s", pid, tid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, size - 1) : -1;
    out[n > 0 ? n : 0] = 0;
    if (fd >= 0)
        close(fd);
    return n < 0 ? -1 : 0;
}

static void add(struct at_rest *v, int pid)
{
    for (int i = 0; i < v->n; i++)
        if (v->of[i].pid == pid)
            return;
    if (v->n == AT_REST_MAX)
        v->unknown = true;
    else
        v->of[v->n++] = (struct at_rest_process){.pid = pid};
}

/* Calls visit for each thread of a process until it returns false. Returns whether it never did. */
static bool each_thread(struct at_rest *v, int pid,
                        bool (*visit)(struct at_rest *v, int pid, const char *tid))
{
    char path[32];
    bool all = true;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *d = opendir(path);
    for (const struct dirent *f; d && all && (f = readdir(d));)
        if (*f->d_name != '.')
            all = visit(v, pid, f->d_name);
    if (d)
        closedir(d);
    return all;
}

static bool add_children(struct at_rest *v, int pid, const char *tid)
{
    char list[4096], *rest = list;
    read_file(pid, tid, "children", list, sizeof list);
    for (long child; (child = strtol(rest, &rest, 10)) > 0;)
        add(v, (int)child);
    return true;
}

static bool sleeps(struct at_rest *v, int pid, const char *tid)
{
    char stat[512];
    read_file(pid, tid, "stat", stat, sizeof stat);
    const char *name_end = strrchr(stat, ')');
    (void)v;
    return !name_end || (name_end[1] == ' ' && strchr("SIZX", name_end[2]));
}

/* Returns the CPU time in ms that the processes have used since the last call, without the X server. */
static double cpu_ms(struct at_rest *v)
{
    int64_t used = 0;
    for (int i = 0; i < v->n; i++) {
        struct timespec t = {0};
        clockid_t clock;
        if (v->of[i].pid != v->server && clock_getcpuclockid(v->of[i].pid, &clock) == 0)
            clock_gettime(clock, &t);
        int64_t ran = t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
        used += ran > v->of[i].ran_ns ? ran - v->of[i].ran_ns : 0;
        v->of[i].ran_ns = ran;
    }
    return (double)used / 1e6;
}

static bool all_sleep(struct at_rest *v)
{
    bool asleep = true;
    for (int i = 0; i < v->n && asleep; i++)
        asleep = each_thread(v, v->of[i].pid, sleeps);
    return asleep;
}

void at_rest_begin(struct at_rest *v, const int *pids, int n, int server)
{
    *v = (struct at_rest){.server = server};
    char tid[16], list[16];
    snprintf(tid, sizeof tid, "%d", (int)getpid());
    v->unknown = read_file(getpid(), tid, "children", list, sizeof list) != 0;
    for (int i = 0; i < n; i++) {
        if (pids[i] > 0)
            add(v, pids[i]);
        else
            v->unknown = true;
    }
    for (int i = 0; i < v->n; i++) /* grows while it is read */
        each_thread(v, v->of[i].pid, add_children);
    if (server)
        add(v, server);
    cpu_ms(v);
}

int at_rest_wait(struct at_rest *v, struct screen *s, double max_ms, bool *rests, struct err *e)
{
    int64_t start = clock_ns();
    double busy = 0, quiet = 0, used = 0, silent = 0;
    *rests = false;
    while (!v->unknown && busy < max_ms && !*rests && clock_ms_since(start) < CEILING_MS) {
        int64_t slice = clock_ns();
        if (screen_wait(s, LOOK_MS, e))
            return -1;
        double ms = clock_ms_since(slice), now = cpu_ms(v);
        quiet += ms;
        used += now;
        silent = now > works_share * ms ? 0 : silent + ms;
        bool works = used > works_share * REST_MS;
        busy += works ? quiet : 0;
        if (works)
            quiet = used = 0;
        if (quiet >= REST_MS && silent >= SILENT_MS) {
            *rests = all_sleep(v);
            quiet = used = 0;
        }
    }
    return screen_alive(s, e);
}
