/* desks.c - see desks.h. */
#include "desks.h"

#include "check.h"
#include "xvfb.h"

#include "base/buf.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int desks_marked(const char *folder, const char *name, pid_t *out, int max)
{
    struct proc *list;
    int n = procs_all(&list), count = 0;
    char *mark = xasprintf("HOLORUN_DESK=%s", folder);
    for (int i = 0; i < n; i++) {
        char path[64], *environ_text = NULL, *comm = NULL;
        size_t len = 0, comm_len = 0;
        snprintf(path, sizeof path, "/proc/%d/environ", (int)list[i].pid);
        bool hit = !list[i].zombie && file_read(path, 1 << 22, &environ_text, &len, NULL) == 0 &&
                   memmem(environ_text, len, mark, strlen(mark));
        snprintf(path, sizeof path, "/proc/%d/comm", (int)list[i].pid);
        if (hit && name)
            hit = file_read(path, 100, &comm, &comm_len, NULL) == 0 && !strncmp(comm, name, strlen(name));
        if (hit && count < max)
            out[count] = list[i].pid;
        count += hit;
        free(environ_text);
        free(comm);
    }
    free(list);
    free(mark);
    return count;
}

pid_t desks_lock_owner(int number)
{
    char path[64], *text = NULL;
    size_t len;
    snprintf(path, sizeof path, "/tmp/.X%d-lock", number);
    pid_t owner = file_read(path, 100, &text, &len, NULL) == 0 ? (pid_t)strtol(text, NULL, 10) : -1;
    free(text);
    return owner;
}

static bool find_lock(int number, struct stat *st)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/.X%d-lock", number);
    return number >= 0 && stat(path, st) == 0;
}

struct desk_trace desk_trace_of(const struct desk *d)
{
    struct desk_trace t = {.number = d->number};
    snprintf(t.folder, sizeof t.folder, "%s", d->dir);
    find_lock(d->number, &t.lock);
    return t;
}

static bool lock_left(const struct desk_trace *t)
{
    struct stat now;
    return t->lock.st_ino && find_lock(t->number, &now) && now.st_ino == t->lock.st_ino &&
           now.st_mtim.tv_sec == t->lock.st_mtim.tv_sec && now.st_mtim.tv_nsec == t->lock.st_mtim.tv_nsec;
}

/* Another desktop may use its display number by now. */
const char *desk_trace_left(const struct desk_trace *t)
{
    static char what[DESK_PATH + 128];
    char path[64];
    snprintf(path, sizeof path, "/tmp/.X11-unix/X%d", t->number);
    pid_t owner = t->number >= 0 ? desks_lock_owner(t->number) : -1;
    int n = desks_marked(t->folder, NULL, NULL, 0);
    if (n)
        snprintf(what, sizeof what, "%d processes of '%s' are left", n, t->folder);
    else if (file_exists(t->folder))
        snprintf(what, sizeof what, "folder '%s' is left", t->folder);
    else if (lock_left(t))
        snprintf(what, sizeof what, "the lock of display :%d is left", t->number);
    else if (t->number >= 0 && owner < 0 && file_exists(path) && desks_lock_owner(t->number) < 0)
        snprintf(what, sizeof what, "'%s' is left", path);
    else
        return NULL;
    return what;
}

void desks_ready(void)
{
    struct err e = ERR_INIT;
    if (!program_exists("Xvfb"))
        skip();
    if (desks_begin(&e))
        fail_msg("%s", e.text);
}

struct desk *desks_open(const struct desk_options *o)
{
    struct err e = ERR_INIT;
    struct desk *d = desk_open(o, &e);
    if (!d)
        fail_msg("%s", e.text);
    return d;
}

struct desk *desks_open_bare(void)
{
    return desks_open(&(struct desk_options){.display = DESKS_SCREEN, .wm = "", .seconds = DESKS_PATIENCE});
}

int desks_run(struct desk *d, const char *command, struct buf *out)
{
    struct err e = ERR_INIT;
    int code = -1;
    if (desk_run(d, command, NULL, DESKS_PATIENCE, NULL, &code, out, &e))
        fail_msg("'%s': %s", command, e.text);
    return code;
}

void desks_says(struct desk *d, const char *command, const char *expected)
{
    struct buf out;
    buf_init(&out, 4096);
    int code = desks_run(d, command, &out);
    if (code || strcmp(out.data, expected) != 0)
        fail_msg("'%s' printed '%s' (exit code %d), not '%s'", command, out.data, code, expected);
    buf_free(&out);
}

void desks_gone(const struct desk_trace *t)
{
    const char *left = desk_trace_left(t);
    if (left)
        fail_msg("%s", left);
}
