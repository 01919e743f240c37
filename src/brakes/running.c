/* running.c - see running.h. */
#include "brakes/running.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/utf8.h"
#include "screen/guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STAT_BYTES = 4096, STAT_BORN = 22 }; /* field of /proc/PID/stat, counted from 1 */

/* When a process began; 0: there is none. */
static uint64_t born(pid_t pid)
{
    char path[64], text[STAT_BYTES];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    const char *p = strrchr(text, ')'); /* the name before it may hold anything */
    for (int field = 2; p && field < STAT_BORN; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p, NULL, 10) : 0;
}

/* ---- this process -------------------------------------------------------------------------------- */

static char *own_path(struct err *e)
{
    char *dir = file_place(PLACE_RUNTIME, e), *path = NULL;
    if (dir)
        path = xasprintf("%s/run-%d.json", dir, (int)getpid());
    free(dir);
    return path;
}

static void put_text(struct buf *b, const char *key, const char *text, size_t most)
{
    size_t n = strcspn(text, "\n");
    n = n > most ? most : n;
    buf_printf(b, ", \"%s\": ", key);
    buf_put_json(b, text, utf8_valid_prefix(text, n));
}

int running_enter(const char *display, const char *dir, const char *task, const char *started, struct err *e)
{
    char *path = own_path(e);
    if (!path)
        return -1;
    struct running limits;
    struct buf b;
    buf_init(&b, RUNNING_BYTES);
    buf_printf(&b, "{\"version\": 1, \"pid\": %d, \"born\": %llu", (int)getpid(),
               (unsigned long long)born(getpid()));
    put_text(&b, "display", display, sizeof limits.display - 1);
    put_text(&b, "dir", dir ? dir : "", sizeof limits.dir - 1);
    put_text(&b, "task", task, sizeof limits.task - 1);
    put_text(&b, "started", started, sizeof limits.started - 1);
    buf_puts(&b, "}\n");
    int rc = file_write(path, b.data, b.len, e);
    guard_litter(path, true);
    buf_free(&b);
    free(path);
    return rc;
}

void running_leave(void)
{
    char *path = own_path(NULL);
    if (path) {
        unlink(path);
        guard_litter(path, false);
    }
    free(path);
}

/* ---- others -------------------------------------------------------------------------------------- */

static int take_text(const json_t *root, const char *key, char *out, size_t size, struct err *e)
{
    const char *text = json_string_value(json_object_get(root, key));
    if (!text || strlen(text) >= size)
        return err_set(e, ERR_ENV, "'%s' is no text of less than %zu bytes", key, size);
    snprintf(out, size, "%s", text);
    for (char *p = out; *p; p++) /* it will be printed on a terminal */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return 0;
}

int running_parse(const char *text, size_t len, struct running *out, struct err *e)
{
    json_t *root = len <= RUNNING_BYTES ? json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
    json_int_t pid = json_integer_value(json_object_get(root, "pid"));
    json_int_t began = json_integer_value(json_object_get(root, "born"));
    int rc = 0;
    *out = (struct running){.pid = (pid_t)pid, .born = (uint64_t)began};
    if (pid < 2 || pid > INT32_MAX || began < 1)
        rc = err_set(e, ERR_ENV, "'pid' and 'born' are no process");
    if (rc == 0)
        rc = take_text(root, "display", out->display, sizeof out->display, e) ||
                     take_text(root, "dir", out->dir, sizeof out->dir, e) ||
                     take_text(root, "task", out->task, sizeof out->task, e) ||
                     take_text(root, "started", out->started, sizeof out->started, e)
                 ? -1
                 : 0;
    json_decref(root);
    return rc;
}

int running_handle(const struct running *r)
{
    int fd = (int)syscall(SYS_pidfd_open, r->pid, 0);
    if (fd >= 0 && born(r->pid) == r->born) /* in this order: now the number cannot be given away unseen */
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* 1: this file is of a run that lives. */
static int read_one(const char *path, struct running *r)
{
    char *text;
    size_t len;
    if (file_read(path, RUNNING_BYTES, &text, &len, NULL))
        return 0;
    int rc = running_parse(text, len, r, NULL), fd = -1;
    free(text);
    if (rc == 0 && (fd = running_handle(r)) < 0)
        unlink(path);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int by_age(const void *a, const void *b)
{
    const struct running *x = a, *y = b;
    return x->born < y->born ? -1 : x->born > y->born ? 1 : x->pid - y->pid;
}

int running_list(struct running **out, struct err *e)
{
    char *dir = file_place(PLACE_RUNTIME, e);
    DIR *d = dir ? opendir(dir) : NULL;
    int n = 0;
    *out = NULL;
    if (!d) {
        free(dir);
        return -1;
    }
    for (const struct dirent *f; n < RUNNING_MAX && (f = readdir(d));) {
        int pid, end = 0;
        if (sscanf(f->d_name, "run-%d.json%n", &pid, &end) != 1 || !end || f->d_name[end])
            continue;
        *out = xrealloc(*out, (unsigned long)n + 1, sizeof **out);
        char *path = xasprintf("%s/%s", dir, f->d_name);
        if (read_one(path, &(*out)[n]) && (*out)[n].pid == pid)
            n++;
        free(path);
    }
    closedir(d);
    free(dir);
    if (n)
        qsort(*out, (size_t)n, sizeof **out, by_age);
    return n;
}
