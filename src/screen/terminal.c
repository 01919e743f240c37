/* terminal.c - recognizes a terminal by its process, which has a child on a pseudo-terminal other than its
 * own. */
#include "screen/private.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSES = 20000, PTS_MAJOR = 136, PTS_MAJORS = 8 };

struct proc_stat {
    int pid, parent, tty; /* tty: device number, 0: none */
};

static bool read_process(int pid, struct proc_stat *out)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    const char *rest = strrchr(text, ')'); /* the process name may contain any character */
    char state;
    int group, session;
    *out = (struct proc_stat){.pid = pid};
    return rest &&
           sscanf(rest + 1, " %c %d %d %d %d", &state, &out->parent, &group, &session, &out->tty) == 5;
}

static bool is_pts(int tty)
{
    int major = tty >> 8 & 0xfff;
    return major >= PTS_MAJOR && major < PTS_MAJOR + PTS_MAJORS;
}

static bool same_program(int a, int b)
{
    char link[64], exe[2][256];
    for (int i = 0; i < 2; i++) {
        snprintf(link, sizeof link, "/proc/%d/exe", i ? b : a);
        ssize_t n = readlink(link, exe[i], sizeof exe[i] - 1);
        if (n <= 0)
            return false;
        exe[i][n] = 0;
    }
    return !strcmp(exe[0], exe[1]);
}

static const struct proc_stat *find_process(const struct proc_stat *list, int n, int pid)
{
    for (int i = 0; i < n; i++)
        if (list[i].pid == pid)
            return &list[i];
    return NULL;
}

static int list_processes(struct proc_stat **out)
{
    DIR *d = opendir("/proc");
    int n = 0, cap = 0;
    *out = NULL;
    for (struct dirent *f; d && n < PROCESSES && (f = readdir(d));) {
        if (!isdigit((unsigned char)f->d_name[0]))
            continue;
        if (n == cap) {
            cap = cap ? 2 * cap : 256;
            *out = xrealloc(*out, (unsigned long)cap, sizeof **out);
        }
        n += read_process(atoi(f->d_name), &(*out)[n]);
    }
    if (d)
        closedir(d);
    return n;
}

/* Also accepts a parent of the same program, up to 4 levels up, as the window's process: editors have
 * helper processes. */
bool screen_has_shell(const struct screen_window *w)
{
    enum { HELPERS = 4 };
    struct proc_stat *list;
    int n = w->pid > 0 ? list_processes(&list) : 0;
    if (w->pid <= 0)
        return false;
    const struct proc_stat *own = find_process(list, n, w->pid);
    bool found = false;
    for (int i = 0; own && i < n && !found; i++) {
        if (!is_pts(list[i].tty) || list[i].tty == own->tty)
            continue;
        const struct proc_stat *p = find_process(list, n, list[i].parent);
        for (int up = 0; p && p != own && up < HELPERS && same_program(p->pid, own->pid); up++)
            p = find_process(list, n, p->parent);
        found = p == own;
    }
    free(list);
    return found;
}
