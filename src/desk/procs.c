/* procs.c - lists process trees and kills them.
 *
 * A pid may be reused before a signal is sent, except that of an unreaped child of this process and of its
 * process group.  A tree is therefore killed by killing the children repeatedly: their orphans become
 * children of this process (a subreaper), however they have detached themselves.  A group gets the signal as
 * a whole, so that no concurrent fork escapes it. */
#include "desk/private.h"

#include "base/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENVIRON_MAX = 1 << 20 };

static ssize_t read_file(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t n = 0;
    ssize_t got;
    while (n < size && (got = read(fd, out + n, size - n)) > 0)
        n += (size_t)got;
    close(fd);
    return (ssize_t)n;
}

static bool read_proc(pid_t pid, struct proc *p)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    ssize_t n = read_file(path, text, sizeof text - 1);
    if (n <= 0)
        return false;
    text[n] = 0;
    char *end = strrchr(text, ')'), state; /* the name may contain anything */
    int parent, group, session;
    if (!end || sscanf(end + 1, " %c %d %d %d", &state, &parent, &group, &session) != 4)
        return false;
    *p = (struct proc){pid, parent, group, session, state == 'Z' || state == 'X'};
    return true;
}

int procs_all(struct proc **list)
{
    int n = 0, cap = 0;
    *list = NULL;
    DIR *dir = opendir("/proc");
    for (struct dirent *d; dir && (d = readdir(dir));) {
        struct proc p;
        if (!isdigit((unsigned char)d->d_name[0]) || !read_proc((pid_t)strtol(d->d_name, NULL, 10), &p))
            continue;
        if (n == cap) {
            struct proc *more = realloc(*list, (size_t)(cap = cap ? 2 * cap : 256) * sizeof *more);
            if (!more)
                break;
            *list = more;
        }
        (*list)[n++] = p;
    }
    if (dir)
        closedir(dir);
    return n;
}

/* Moves the descendants to the front of the list, breadth first. */
int procs_below(pid_t root, struct proc **list)
{
    int all = procs_all(list), n = 0;
    struct proc *p = *list;
    for (int at = -1; at < n; at++) {
        pid_t parent = at < 0 ? root : p[at].pid;
        for (int i = n; i < all; i++)
            if (p[i].parent == parent) {
                struct proc t = p[n];
                p[n++] = p[i];
                p[i] = t;
            }
    }
    return n;
}

bool procs_is_service(pid_t pid)
{
    static const char *const names[] = {"dbus-daemon",     "at-spi",          "dconf-service",  "gvfs",
                                        "xdg-desktop-por", "xdg-document-po", "xdg-permission-"};
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, name, sizeof name - 1) < 1)
        name[0] = 0;
    if (fd >= 0)
        close(fd);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(name, names[i], strlen(names[i])))
            return true;
    return false;
}

/* Reads /proc/self/task/TID/children; without that file, filters the list of all processes. */
int procs_children(pid_t **list)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "re");
    int n = 0, cap = 0;
    *list = NULL;
    if (!f) {
        struct proc *all;
        int count = procs_below(getpid(), &all);
        *list = malloc((size_t)(count + 1) * sizeof **list);
        for (int i = 0; *list && i < count && all[i].parent == getpid(); i++)
            (*list)[n++] = all[i].pid;
        free(all);
        return n;
    }
    for (int pid; fscanf(f, "%d", &pid) == 1;) {
        if (n == cap) {
            pid_t *more = realloc(*list, (size_t)(cap = cap ? 2 * cap : 64) * sizeof *more);
            if (!more)
                break;
            *list = more;
        }
        (*list)[n++] = pid;
    }
    fclose(f);
    return n;
}

static bool spared(pid_t pid, const pid_t *spare, int n)
{
    for (int i = 0; i < n; i++)
        if (spare[i] == pid)
            return true;
    return false;
}

bool procs_kill_children(const pid_t *spare, int n_spare, double ms)
{
    int64_t start = clock_ns();
    for (;;) {
        pid_t *list;
        int n = procs_children(&list), left = 0;
        for (int i = 0; i < n; i++) {
            struct proc p;
            if (spared(list[i], spare, n_spare))
                continue;
            if (read_proc(list[i], &p) && p.group > 1 && p.group != getpgrp() &&
                !spared(p.group, spare, n_spare))
                kill(-p.group, SIGKILL);
            kill(list[i], SIGKILL);
        }
        for (int i = 0; i < n; i++)
            if (!spared(list[i], spare, n_spare)) {
                waitpid(list[i], NULL, WNOHANG);
                left++; /* each may have left orphans */
            }
        free(list);
        if (!left)
            return true;
        if (clock_ms_since(start) > ms)
            return false;
        if (clock_ms_since(start) > 2) /* a dying process needs the CPU too */
            clock_sleep_ms(1);
    }
}

static bool has_variable(pid_t pid, const char *entry)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    autofree char *text = malloc(ENVIRON_MAX);
    ssize_t n = text ? read_file(path, text, ENVIRON_MAX - 1) : -1;
    bool found = false;
    if (n > 0) {
        text[n] = 0;
        for (char *at = text; at < text + n && !found; at += strlen(at) + 1)
            found = !strcmp(at, entry);
    }
    return found;
}

/* Kills a process that matches, through a pidfd, so that the process checked is the process killed. */
static bool kill_if(pid_t pid, pid_t session, const char *entry)
{
    struct proc p;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return false;
    bool matches = read_proc(pid, &p) && !p.zombie && (p.session == session || has_variable(pid, entry));
    if (matches)
        syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
    close(fd);
    return matches;
}

static void kill_matching(bool below_us, pid_t session, const char *entry, double ms)
{
    int64_t start = clock_ns();
    bool some = true;
    while (some && clock_ms_since(start) < ms) {
        struct proc *list;
        int n = below_us ? procs_below(getpid(), &list) : procs_all(&list);
        some = false;
        for (int i = 0; i < n; i++)
            if (!list[i].zombie && list[i].pid != getpid() && kill_if(list[i].pid, session, entry))
                some = true;
        free(list);
        if (some)
            clock_sleep_ms(2);
    }
}

void procs_kill_marked(const char *entry, double ms)
{
    kill_matching(false, -1, entry, ms);
}

void procs_kill_command(pid_t session, const char *entry, double ms)
{
    kill_matching(true, session, entry, ms);
}
