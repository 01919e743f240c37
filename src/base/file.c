/* file.c - reading and writing files, XDG directories (file.h). */
#include "base/file.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WRITER_MS = 1000, /* maximum wait for a pipe to be opened for writing */
    SILENT_MS = 10000,
    POLL_MS = 10,
    TEMP_TRIES = 8, /* attempts to find an unused random name */
};

static bool is_stdin(const struct stat *st)
{
    struct stat in;
    return fstat(STDIN_FILENO, &in) == 0 && in.st_dev == st->st_dev && in.st_ino == st->st_ino;
}

/* Opens a file without waiting for the writer of a pipe. */
static int open_to_read(const char *path, struct stat *st, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, st) == 0)
        return fd;
    err_set(e, ERR_ENV, "cannot open '%s': %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Reads like read(2), waiting for data of a pipe or terminal. Only stdin is waited for without limit. */
static ssize_t read_some(int fd, const struct stat *st, void *to, size_t size, bool first)
{
    bool endless = !S_ISFIFO(st->st_mode) || is_stdin(st);
    for (int64_t start = clock_ns();;) {
        ssize_t n = read(fd, to, size);
        bool written = n > 0 || (n == 0 && (endless || !first || clock_ms_since(start) > WRITER_MS));
        if (written || (n < 0 && errno != EAGAIN && errno != EINTR))
            return n;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (n == 0)
            clock_sleep_ms(POLL_MS);
        else if (errno == EAGAIN && poll(&p, 1, endless ? -1 : SILENT_MS) == 0)
            return errno = ETIMEDOUT, -1;
    }
}

int file_read(const char *path, size_t max, char **data, size_t *len, struct err *e)
{
    struct stat st;
    *data = NULL;
    *len = 0;
    int fd = open_to_read(path, &st, e);
    if (fd < 0)
        return -1;
    size_t cap = S_ISREG(st.st_mode) && (size_t)st.st_size < max ? (size_t)st.st_size + 1 : 4096, n = 0;
    char *s = xmalloc(cap + 1, 1);
    ssize_t got;
    while ((got = read_some(fd, &st, s + n, cap - n, n == 0)) > 0 && (n += (size_t)got) <= max)
        if (n == cap)
            s = xrealloc(s, (cap *= 2) + 1, 1);
    int rc = 0;
    if (got < 0)
        rc = err_set(e, ERR_ENV, "cannot read '%s': %s", path,
                     errno == ETIMEDOUT ? "pipe without data for 10 s" : strerror(errno));
    else if (n > max)
        rc = err_set(e, ERR_ENV, "'%s' is larger than %zu bytes, the limit for this kind of file", path, max);
    else if (!n && S_ISFIFO(st.st_mode) && !is_stdin(&st))
        rc = err_set(e, ERR_ENV, "cannot read '%s': pipe without a writer", path);
    close(fd);
    s[n] = 0;
    *data = rc ? NULL : s;
    *len = rc ? 0 : n;
    if (rc)
        free(s);
    return rc;
}

int file_write_all(int fd, const char *path, const void *data, size_t len, struct err *e)
{
    const char *p = data;
    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(e, ERR_ENV, "cannot write '%s': %s", path,
                           n ? strerror(errno) : "nothing written");
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int file_append(const char *path, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 ? fd : err_set(e, ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
}

static uint64_t file_salt(void)
{
    uint64_t salt;
    if (getrandom(&salt, sizeof salt, 0) != sizeof salt)
        salt = (uint64_t)clock_ns() ^ (uint64_t)getpid() << 40;
    return salt;
}

char *file_temp_name(const char *path)
{
    return xasprintf("%s.%016llx.tmp", path, (unsigned long long)file_salt());
}

int file_temp(const char *path, char **tmp, struct err *e)
{
    int fd = -1;
    *tmp = NULL;
    errno = EEXIST;
    for (int i = 0; i < TEMP_TRIES && fd < 0 && errno == EEXIST; i++) {
        free(*tmp);
        *tmp = file_temp_name(path);
        fd = open(*tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    return fd >= 0 ? fd : err_set(e, ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
}

int file_write(const char *path, const void *data, size_t len, struct err *e)
{
    autofree char *tmp = NULL;
    int fd = file_temp(path, &tmp, e), rc = fd < 0 ? -1 : file_write_all(fd, path, data, len, e);
    if (fd >= 0 && close(fd) && rc == 0)
        rc = err_set(e, ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
    if (rc == 0 && rename(tmp, path))
        rc = err_set(e, ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
    if (rc && fd >= 0)
        unlink(tmp);
    return rc;
}

int file_stream_open(struct file_stream *s, const char *path, struct err *e)
{
    char *tmp = NULL;
    int fd = file_temp(path, &tmp, e);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    *s = (struct file_stream){f, f ? xstrdup(path) : NULL, tmp};
    if (f)
        return 0;
    if (fd >= 0) {
        err_set(e, ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
        close(fd);
    }
    free(tmp);
    return -1;
}

/* Returns the errno of an earlier failed write, which stdio does not keep, by writing one more block. */
static int cause_of(FILE *f)
{
    char block[4096] = {0};
    return write(fileno(f), block, sizeof block) < 0 ? errno : EIO;
}

int file_stream_close(struct file_stream *s, struct err *e)
{
    int cause = ferror(s->f) ? cause_of(s->f) : 0;
    int rc = fclose(s->f) || cause || rename(s->tmp, s->path) ? -1 : 0;
    if (rc) {
        errno = cause ? cause : errno;
        err_set(e, ERR_ENV, "cannot write '%s': %s", s->path, strerror(errno));
        unlink(s->tmp);
    }
    free(s->tmp);
    free(s->path);
    *s = (struct file_stream){0};
    return rc;
}

int file_map(struct file_map *m, const char *path, struct err *e)
{
    struct stat st;
    *m = (struct file_map){0};
    int fd = open_to_read(path, &st, e), rc = 0;
    if (fd < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        rc = err_set(e, ERR_ENV, "'%s' is not a regular file", path);
    } else if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            rc = err_set(e, ERR_ENV, "cannot map '%s': %s", path, strerror(errno));
        else
            *m = (struct file_map){p, (size_t)st.st_size};
    }
    close(fd);
    return rc;
}

void file_unmap(struct file_map *m)
{
    if (m->data)
        munmap((void *)(uintptr_t)m->data, m->len);
    *m = (struct file_map){0};
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

int dir_make(const char *path, struct err *e)
{
    autofree char *s = xstrdup(path);
    int rc = 0;
    for (char *p = s + 1; rc == 0; p++) {
        if (*p && *p != '/')
            continue;
        char c = *p;
        *p = 0;
        if (mkdir(s, 0700) && errno != EEXIST)
            rc = err_set(e, ERR_ENV, "cannot create directory '%s': %s", s, strerror(errno));
        *p = c;
        if (!c)
            break;
    }
    struct stat st;
    if (rc == 0 && (stat(s, &st) || !S_ISDIR(st.st_mode)))
        rc = err_set(e, ERR_ENV, "'%s' is not a directory", s);
    return rc;
}

/* Returns why a directory is not private to this user, or NULL. Creates it if it does not exist. */
static const char *not_private(const char *path)
{
    struct stat st;
    if ((mkdir(path, 0700) && errno != EEXIST) || lstat(path, &st))
        return strerror(errno);
    return S_ISLNK(st.st_mode)       ? "it is a symbolic link"
           : !S_ISDIR(st.st_mode)    ? "it is not a directory"
           : st.st_uid != getuid()   ? "it belongs to another user"
           : (st.st_mode & 077) != 0 ? "other users have access (chmod 700)"
                                     : NULL;
}

/* Returns the directory for sockets, locks and tokens, which other users must not be able to read or
 * write. */
static char *runtime_place(const char *dir, struct err *e)
{
    static atomic_bool warned;
    char *path = dir ? xasprintf("%s/holorun", dir) : NULL;
    const char *why = !dir ? NULL : dir_make(dir, NULL) ? "it cannot be created" : not_private(dir);
    const char *bad = why ? dir : path;
    why = why || !dir ? why : not_private(path);
    if (dir && !why)
        return path;
    if (dir && !atomic_exchange(&warned, true))
        warn("'%s' (XDG_RUNTIME_DIR) is not used: %s; using /tmp/holorun-%u", bad, why, (unsigned)getuid());
    free(path);
    path = xasprintf("/tmp/holorun-%u", (unsigned)getuid());
    if (!(why = not_private(path)))
        return path;
    err_set(e, ERR_ENV,
            "no private directory for locks and sockets: '%s' is not usable: %s; remove it, or set "
            "XDG_RUNTIME_DIR to your own directory with mode 700",
            path, why);
    free(path);
    return NULL;
}

char *file_place(enum file_place place, struct err *e)
{
    static const struct {
        const char *variable, *below_home;
    } places[] = {
        [PLACE_STATE] = {"XDG_STATE_HOME", ".local/state"},
        [PLACE_CACHE] = {"XDG_CACHE_HOME", ".cache"},
        [PLACE_CONFIG] = {"XDG_CONFIG_HOME", ".config"},
        [PLACE_RUNTIME] = {"XDG_RUNTIME_DIR", NULL},
    };
    const char *dir = getenv(places[place].variable), *home = getenv("HOME");
    char *path;
    dir = dir && dir[0] == '/' ? dir : NULL; /* the XDG specification ignores relative values */
    if (!places[place].below_home)
        return runtime_place(dir, e);
    if (dir)
        path = xasprintf("%s/holorun", dir);
    else if (home && home[0] == '/')
        path = xasprintf("%s/%s/holorun", home, places[place].below_home);
    else if (home && *home)
        return err_set(e, ERR_ENV,
                       "HOME is '%s', which does not begin with '/': set it, or %s, to an absolute path",
                       home, places[place].variable),
               NULL;
    else
        return err_set(e, ERR_ENV, "neither %s nor HOME is set", places[place].variable), NULL;
    if (dir_make(path, e)) {
        if (e)
            err_set(e, e->kind, "%s (%s names another directory)", e->text, places[place].variable);
        free(path);
        return NULL;
    }
    return path;
}

char *file_exe_dir(void)
{
    /* realpath() fails once the file is replaced, as by an upgrade. */
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return xstrdup(".");
    path[n] = 0;
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    return xstrdup(path);
}
