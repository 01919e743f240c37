/* running.c - see running.h. */
#include "run/running.h"

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "desk/desk.h"
#include "screen/guard.h"
#include "screen/x11/input_owner.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns the path of a file in the runtime directory, such as run-4711.json or stop-4711-3; the caller frees
 * it.  NULL with e. */
static char *path_of(const char *kind, pid_t pid, int session, const char *end, struct err *e)
{
    char *dir = file_place(PLACE_RUNTIME, e), *path = NULL, number[16] = "";
    if (session)
        snprintf(number, sizeof number, "-%d", session);
    if (dir)
        path = xasprintf("%s/%s-%d%s%s", dir, kind, (int)pid, number, end);
    free(dir);
    return path;
}

/* ---- this process -------------------------------------------------------------------------------- */

struct running_own {
    struct running about;
    char *path;
};

static int store(const struct running_own *r, struct err *e)
{
    json_auto_t *all = json_pack("{s:i, s:i, s:I, s:i}", "version", 1, "pid", (int)r->about.pid, "born",
                                 (json_int_t)r->about.born, "session", r->about.session);
    json_set_text(all, "display", r->about.display);
    json_set_text(all, "dir", r->about.dir);
    json_set_text(all, "task", r->about.task);
    json_set_text(all, "started", r->about.started);
    autofree char *line = json_line(all, 0), *text = xasprintf("%s\n", line);
    return file_write(r->path, text, strlen(text), e);
}

/* Copies the first line of text, truncated to size - 1 bytes. */
static void copy_text(char *out, size_t size, const char *text)
{
    size_t n = strcspn(text, "\n");
    n = utf8_valid_prefix(text, n < size ? n : size - 1);
    memcpy(out, text, n);
    out[n] = 0;
}

static void sweep(void);

struct running_own *running_enter(int session, const char *display, const char *task, const char *started,
                                  struct err *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char *path = path_of("run", getpid(), session, ".json", e);
    if (!path)
        return NULL;
    pthread_once(&once, sweep);
    struct running_own *r = xcalloc(1, sizeof *r);
    r->path = path;
    r->about.pid = getpid();
    r->about.born = process_start_ticks(getpid());
    r->about.session = session;
    copy_text(r->about.display, sizeof r->about.display, display);
    copy_text(r->about.task, sizeof r->about.task, task);
    copy_text(r->about.started, sizeof r->about.started, started);
    guard_temp_file(path, true);
    if (store(r, e) == 0)
        return r;
    running_leave(r);
    return NULL;
}

int running_set_dir(struct running_own *r, const char *dir, struct err *e)
{
    copy_text(r->about.dir, sizeof r->about.dir, dir);
    return store(r, e);
}

void running_leave(struct running_own *r)
{
    if (!r)
        return;
    unlink(r->path);
    guard_temp_file(r->path, false);
    free(r->path);
    free(r);
}

/* ---- others -------------------------------------------------------------------------------------- */

static int take_text(const json_t *root, const char *key, char *out, size_t size, struct err *e)
{
    const char *text = json_string_value(json_object_get(root, key));
    if (!text || strlen(text) >= size)
        return err_set(e, ERR_ENV, "'%s' is not a string of fewer than %zu bytes", key, size);
    snprintf(out, size, "%s", text);
    for (char *p = out; *p; p++) /* the text may be printed on a terminal */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return 0;
}

int running_parse(const char *text, size_t len, struct running *out, struct err *e)
{
    json_auto_t *root = len <= RUNNING_BYTES ? json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
    json_int_t pid = json_integer_value(json_object_get(root, "pid"));
    json_int_t began = json_integer_value(json_object_get(root, "born"));
    json_int_t session = json_integer_value(json_object_get(root, "session"));
    int rc = 0;
    *out = (struct running){.pid = (pid_t)pid, .born = (uint64_t)began, .session = (int)session};
    if (pid < 2 || pid > INT32_MAX || began < 1)
        rc = err_set(e, ERR_ENV, "'pid' and 'born' do not identify a process");
    else if (session < 0 || session > INT32_MAX)
        rc = err_set(e, ERR_ENV, "'session' is not a session number");
    else if (take_text(root, "display", out->display, sizeof out->display, e) ||
             take_text(root, "dir", out->dir, sizeof out->dir, e) ||
             take_text(root, "task", out->task, sizeof out->task, e) ||
             take_text(root, "started", out->started, sizeof out->started, e))
        rc = -1;
    return rc;
}

int running_handle(const struct running *r)
{
    int fd = (int)syscall(SYS_pidfd_open, r->pid, 0);
    if (fd >= 0 && process_start_ticks(r->pid) ==
                       r->born) /* checked after opening the pidfd: the id cannot be reused now */
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Reads one file.  Returns 1 if it belongs to a live run; removes the file of a dead one. */
static int read_one(const char *path, struct running *r)
{
    autofree char *text = NULL;
    size_t len;
    if (file_read(path, RUNNING_BYTES, &text, &len, NULL))
        return 0;
    int rc = running_parse(text, len, r, NULL), fd = -1;
    if (rc == 0 && (fd = running_handle(r)) < 0)
        unlink(path);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int by_age(const void *a, const void *b)
{
    const struct running *x = a, *y = b;
    if (x->born != y->born)
        return x->born < y->born ? -1 : 1;
    return x->pid != y->pid ? x->pid - y->pid : x->session - y->session;
}

/* Parses "run-4711.json" or "run-4711-3.json".  Returns false for other names. */
static bool read_name(const char *name, int *pid, int *session)
{
    int end = 0;
    *session = 0;
    if (sscanf(name, "run-%d.json%n", pid, &end) == 1 && end && !name[end])
        return true;
    end = 0;
    return sscanf(name, "run-%d-%d.json%n", pid, session, &end) == 2 && end && !name[end] && *session > 0;
}

/* Returns the process of "stop-4711", "stop-4711-3", "run-4711.json", "run-4711-3.json", or of a temporary
 * file of these (file_temp_name()); 0: another file, or "stop", which stops all runs. */
static int owner_of(const char *name)
{
    char base[64];
    int pid = 0, session, end = 0;
    size_t n = strlen(name);
    if (n > 4 && !strcmp(name + n - 4, ".tmp")) {
        const char *dot = memrchr(name, '.', n - 4);
        n = dot ? (size_t)(dot - name) : n;
    }
    if (n >= sizeof base)
        return 0;
    snprintf(base, sizeof base, "%.*s", (int)n, name);
    if (read_name(base, &pid, &session))
        return pid;
    if (sscanf(base, "stop-%d%n", &pid, &end) != 1)
        return 0;
    return !base[end] || (sscanf(base + end, "-%d%n", &session, &end) == 1 && session > 0) ? pid : 0;
}

/* Removes files of processes that were killed together with their watchdog. */
static void sweep(void)
{
    autofree struct running *list = NULL;
    running_list(&list, NULL); /* removes the entries of dead runs */
    desks_sweep();
    autofree char *dir = file_place(PLACE_RUNTIME, NULL);
    DIR *d = dir ? opendir(dir) : NULL;
    for (const struct dirent *f; d && (f = readdir(d));) {
        int pid = owner_of(f->d_name);
        if (pid > 1 && kill(pid, 0) && errno == ESRCH)
            unlinkat(dirfd(d), f->d_name, 0);
    }
    if (d)
        closedir(d);
}

int running_list(struct running **out, struct err *e)
{
    autofree char *dir = file_place(PLACE_RUNTIME, e);
    DIR *d = dir ? opendir(dir) : NULL;
    int n = 0;
    *out = NULL;
    if (!d)
        return -1;
    for (const struct dirent *f; n < RUNNING_MAX && (f = readdir(d));) {
        int pid, session;
        if (!read_name(f->d_name, &pid, &session))
            continue;
        *out = xrealloc(*out, (unsigned long)n + 1, sizeof **out);
        autofree char *path = xasprintf("%s/%s", dir, f->d_name);
        if (read_one(path, &(*out)[n]) && (*out)[n].pid == pid && (*out)[n].session == session)
            n++;
    }
    closedir(d);
    if (n)
        qsort(*out, (size_t)n, sizeof **out, by_age);
    return n;
}

/* ---- one of them --------------------------------------------------------------------------------- */

bool running_lives(const struct running *r)
{
    struct running now;
    autofree char *path = path_of("run", r->pid, r->session, ".json", NULL);
    return path && read_one(path, &now) && now.born == r->born && now.session == r->session;
}

int running_ask(const struct running *r, bool stop, struct err *e)
{
    autofree char *path = path_of("stop", r->pid, r->session, "", e);
    return !path ? -1 : stop ? file_write(path, "", 0, e) : unlink(path);
}
