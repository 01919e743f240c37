/* stopfile.c - the files that stop a run: "stop" in the runtime folder for all of this user's runs, "stop-PID" for one.
 *
 * A file stops a run when it is newer than the run's start; it holds seconds since 1970 as a number, or nothing, and
 * then its own time counts.  "stop" is never removed; "stop-PID" goes with its process.
 * inotify tells when to look; where there is none, the caller looks now and then.
 */
#include "screen/private.h"

#include "base/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct stopfile {
    char *all, *own;
    double started; /* seconds since 1970 */
    int fd;         /* inotify, -1: none */
};

struct stopfile *stopfile_open(struct err *e)
{
    char *dir = file_place(PLACE_RUNTIME, e);
    if (!dir)
        return NULL;
    struct stopfile *f = xcalloc(1, sizeof *f);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    f->started = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    f->all = xasprintf("%s/stop", dir);
    f->own = xasprintf("%s/stop-%d", dir, (int)getpid());
    f->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    /* Not IN_MODIFY: the held-lists in the same folder are written with every press. */
    if (f->fd >= 0 && inotify_add_watch(f->fd, dir, IN_CLOSE_WRITE | IN_MOVED_TO | IN_ATTRIB) < 0) {
        close(f->fd);
        f->fd = -1;
    }
    free(dir);
    return f;
}

int stopfile_fd(const struct stopfile *f)
{
    return f->fd;
}

/* When the file asks for a stop, in seconds since 1970; 0 when it does not. */
static double file_time(const char *path)
{
    struct stat st;
    char text[64], *end;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    double t = 0;
    ssize_t n = -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == getuid())
        n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n >= 0) {
        text[n] = 0;
        t = strtod(text, &end);
        if (end == text)
            t = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec * 1e-9;
    }
    return t;
}

bool stopfile_asks(struct stopfile *f)
{
    char events[4096];
    while (f->fd >= 0 && read(f->fd, events, sizeof events) > 0)
        ;
    return file_time(f->all) > f->started || file_time(f->own) > f->started;
}

void stopfile_close(struct stopfile *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    unlink(f->own);
    free(f->own);
    free(f->all);
    free(f);
}
