/* folder.c - the files of desks.
 *
 *     /tmp/holorun-desks-XXXXXX/    of one process (in TMPDIR if that is short enough for sockets in it)
 *         lock                      locked while that process, its zygote or a supervisor lives
 *         Xauthority                of that process
 *         1/                        a desk: auth supervisor server.log wm.log programs.log
 *         1/home 1/tmp 1/run        HOME, TMPDIR, XDG_RUNTIME_DIR
 *
 * Programs of a desk may write anything into it.  Removal works on descriptors and never follows a link;
 * directories are made accessible first, and entries nested deeper than DEPTH are moved up. */
#include "desk/private.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "holorun-desks-"

enum {
    TMPDIR_MAX = 48,
    DEPTH = 48, /* maximum number of directories open at a time */
    COPY_ENTRIES = 50000,
    COPY_MIB = 1024,
    REMOVE_ROUNDS = 2000,
    STRAY_MS = 5000,
    YOUNG_S = 60,
};

void desk_dir(char out[DESK_PATH], const char *root, int n)
{
    snprintf(out, DESK_PATH, "%s/%d", root, n);
}

static const char *temp_root(void)
{
    const char *dir = getenv("TMPDIR");
    struct stat st;
    if (!dir || dir[0] != '/' || strlen(dir) >= TMPDIR_MAX || stat(dir, &st) || !S_ISDIR(st.st_mode))
        return "/tmp";
    bool owned = st.st_uid == getuid() || st.st_uid == 0;
    /* other users could replace directories there */
    bool shared = (st.st_mode & 022) && !(st.st_mode & S_ISVTX);
    return owned && !shared ? dir : "/tmp";
}

static void remove_in(int dir, int top, int depth, int *moved);

static void remove_entry(int dir, const char *name, int top, int depth, int *moved)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return;
    if (depth >= DEPTH) {
        char new_name[32];
        snprintf(new_name, sizeof new_name, ".deep-%d", (*moved)++);
        renameat(dir, name, top, new_name);
        return;
    }
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == EACCES && fchmodat(dir, name, 0700, 0) == 0)
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    fchmod(fd, 0700);
    remove_in(fd, top < 0 ? fd : top, depth + 1, moved);
    unlinkat(dir, name, AT_REMOVEDIR);
}

/* Removes the entries of `dir` and closes it. */
static void remove_in(int dir, int top, int depth, int *moved)
{
    DIR *list = fdopendir(dir);
    if (!list) {
        close(dir);
        return;
    }
    for (struct dirent *d; (d = readdir(list));)
        if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
            remove_entry(dir, d->d_name, top, depth, moved);
    closedir(list);
}

bool folder_remove(const char *path)
{
    int moved = 0;
    for (int i = 0; i < REMOVE_ROUNDS; i++) {
        int before = moved;
        remove_entry(AT_FDCWD, path, -1, 0, &moved);
        if (access(path, F_OK) && errno == ENOENT)
            return true;
        if (moved == before && i > 2)
            break;
    }
    return false;
}

struct copy {
    const char *from;
    int entries;
    int64_t bytes;
    struct err *e;
};

static int copy_failed(const struct copy *c, const char *name)
{
    return err_set(c->e, ERR_ENV, "cannot copy '%s' of home folder '%s': %s", name, c->from, strerror(errno));
}

static int copy_bytes(struct copy *c, int in, int out, const char *name, int64_t left)
{
    char chunk[65536];
    for (ssize_t n; (n = read(in, chunk, sizeof chunk)) != 0;) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || file_write_all(out, name, chunk, (size_t)n, NULL))
            return copy_failed(c, name);
        left -= n;
        if (left <= 0) /* the file may grow meanwhile */
            return 0;
    }
    return 0;
}

static int copy_file(struct copy *c, int from, int to, const char *name, const struct stat *st)
{
    c->bytes += st->st_size;
    if (c->bytes > (int64_t)COPY_MIB << 20)
        return err_set(c->e, ERR_ENV, "home folder '%s' has more than %d MiB", c->from, COPY_MIB);
    int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (in < 0)
        return copy_failed(c, name);
    int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600 | (st->st_mode & 0100)), rc;
    rc = out < 0 ? copy_failed(c, name) : copy_bytes(c, in, out, name, st->st_size);
    close(in);
    if (out >= 0 && close(out) && rc == 0)
        rc = copy_failed(c, name);
    return rc;
}

static int copy_link(struct copy *c, int from, int to, const char *name)
{
    char target[4096];
    ssize_t n = readlinkat(from, name, target, sizeof target - 1);
    if (n < 0)
        return copy_failed(c, name);
    target[n] = 0;
    return symlinkat(target, to, name) ? copy_failed(c, name) : 0;
}

static int copy_folder(struct copy *c, int from, int to, int depth);

static int copy_entry(struct copy *c, int from, int to, const char *name, int depth)
{
    struct stat st;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW))
        return copy_failed(c, name);
    if (++c->entries > COPY_ENTRIES || depth > DEPTH)
        return err_set(c->e, ERR_ENV, "home folder '%s' has more than %d files or %d levels", c->from,
                       COPY_ENTRIES, DEPTH);
    if (S_ISREG(st.st_mode))
        return copy_file(c, from, to, name, &st);
    if (S_ISLNK(st.st_mode))
        return copy_link(c, from, to, name);
    if (!S_ISDIR(st.st_mode))
        return 0;
    int in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), out = -1;
    if (in >= 0 && mkdirat(to, name, 0700) == 0)
        out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = out < 0 ? copy_failed(c, name) : 0;
    if (rc == 0)
        return copy_folder(c, in, out, depth + 1);
    if (in >= 0)
        close(in);
    return rc;
}

/* Copies a directory; closes both descriptors.  Returns -1 with the error in c->e. */
static int copy_folder(struct copy *c, int from, int to, int depth)
{
    int rc = 0;
    DIR *list = fdopendir(from);
    if (!list) {
        rc = copy_failed(c, ".");
        close(from);
    }
    for (struct dirent *d; list && rc == 0 && (d = readdir(list));)
        if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
            rc = copy_entry(c, from, to, d->d_name, depth);
    if (list)
        closedir(list);
    close(to);
    return rc;
}

int folder_copy(const char *from, const char *to, struct err *e)
{
    struct copy c = {.from = from, .e = e};
    int in = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (in < 0)
        return err_set(e, ERR_ENV, "cannot open home folder '%s': %s", from, strerror(errno));
    int out = open(to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (out < 0) {
        close(in);
        return err_set(e, ERR_ENV, "cannot open '%s': %s", to, strerror(errno));
    }
    return copy_folder(&c, in, out, 0);
}

void folder_sweep_desk(const char *path)
{
    char mark[DESK_PATH + 32], file[DESK_PATH + 16], text[32] = "";
    snprintf(mark, sizeof mark, "HOLORUN_DESK=%s", path);
    procs_kill_marked(mark, STRAY_MS);
    snprintf(file, sizeof file, "%s/supervisor", path);
    int fd = open(file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && read(fd, text, sizeof text - 1) > 0 && strtol(text, NULL, 10) > 1)
        server_sweep((pid_t)strtol(text, NULL, 10));
    if (fd >= 0)
        close(fd);
    folder_remove(path);
}

void folder_sweep(const char *root)
{
    DIR *list = opendir(root);
    for (struct dirent *d; list && (d = readdir(list));) {
        char path[DESK_PATH];
        char *end;
        long n = strtol(d->d_name, &end, 10);
        if (end == d->d_name || *end)
            continue;
        desk_dir(path, root, (int)n);
        folder_sweep_desk(path);
    }
    if (list)
        closedir(list);
    folder_remove(root);
}

/* Removes the directory of a process if its lock is free: then all processes that inherited the lock are
 * dead. */
static void sweep_if_dead(const char *path)
{
    char file[DESK_PATH + 8];
    struct stat st;
    if (lstat(path, &st) || !S_ISDIR(st.st_mode) || st.st_uid != getuid())
        return;
    snprintf(file, sizeof file, "%s/lock", path);
    int fd = open(file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 &&
        (errno != ENOENT || time(NULL) - st.st_mtime < YOUNG_S)) /* its owner may be about to lock it */
        return;
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        folder_sweep(path);
    if (fd >= 0)
        close(fd);
}

void desks_sweep(void)
{
    DIR *list = opendir(temp_root());
    for (struct dirent *d; list && (d = readdir(list));) {
        char path[DESK_PATH];
        if (!strncmp(d->d_name, PREFIX, strlen(PREFIX)) &&
            (size_t)snprintf(path, sizeof path, "%s/%s", temp_root(), d->d_name) < sizeof path)
            sweep_if_dead(path);
    }
    if (list)
        closedir(list);
}

int folder_begin(char path[DESK_PATH], struct err *e)
{
    desks_sweep();
    snprintf(path, DESK_PATH, "%s/" PREFIX "XXXXXX", temp_root());
    if (!mkdtemp(path))
        return err_set(e, ERR_ENV, "cannot create a directory for desktops in '%s': %s", temp_root(),
                       strerror(errno));
    char file[DESK_PATH + 8];
    snprintf(file, sizeof file, "%s/lock", path);
    int fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    err_set(e, ERR_ENV, "cannot lock '%s': %s", file, strerror(errno));
    if (fd >= 0)
        close(fd);
    folder_remove(path);
    return -1;
}
