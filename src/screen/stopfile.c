/* stopfile.c - the files that stop runs: "stop" in the runtime folder for all of this user's, "stop-PID" for one process,
 * "stop-PID-N" for its screen number N.
 *
 * A file counts when it is newer than what it stops: the screen, or for the first two the first screen that this process
 * has listened for.  It holds seconds since 1970 as a number, or nothing, and then its own time counts.  "stop" is never
 * removed; the others go with what they are about.
 *
 * One thread looks, for all screens of this process, as long as there is one that listens: when inotify tells of a
 * file, or every 40 ms where there is no inotify.
 */
#include "screen/private.h"

#include "base/file.h"
#include "base/flag.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 40, STACK_BYTES = 256 << 10 };

struct stopfile {
    struct stop *stop;
    char *own;
    double started; /* seconds since 1970 */
    struct stopfile *next;
};

static struct {
    pthread_mutex_t change, lock; /* who comes and goes, one at a time; the list */
    struct stopfile *first;       /* those that listen */
    char *all, *process;          /* as long as there is one */
    double started;
    int notify, end; /* inotify, -1: none; eventfd */
    pthread_t thread;
} looker = {.change = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- looking ------------------------------------------------------------------------------------- */

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

static void look(void)
{
    pthread_mutex_lock(&looker.lock);
    if (file_time(looker.all) > looker.started || file_time(looker.process) > looker.started)
        screen_stop_all(STOP_FILE);
    for (struct stopfile *f = looker.first; f; f = f->next)
        if (!flag_up(&f->stop->flag) && file_time(f->own) > f->started)
            stop_one(f->stop, STOP_FILE);
    pthread_mutex_unlock(&looker.lock);
}

/* Reads what inotify has; whether a stop file was among it (held-lists in the same folder come and go). */
static bool read_names(int fd)
{
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    bool found = false;
    for (ssize_t n; (n = read(fd, events, sizeof events)) > 0;)
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *ev = (const struct inotify_event *)(const void *)(events + at);
            found = found || ev->mask & IN_Q_OVERFLOW || (ev->len && !strncmp(ev->name, "stop", 4));
            at += (ssize_t)(sizeof *ev + ev->len);
        }
    return found;
}

static void *look_thread(void *arg)
{
    int notify = looker.notify;
    struct pollfd p[] = {{.fd = looker.end, .events = POLLIN}, {.fd = notify, .events = POLLIN}};
    look(); /* what was written before inotify listened */
    while (!p[0].revents) {
        poll(p, 2, notify < 0 ? LOOK_MS : -1);
        if (notify < 0 || read_names(notify))
            look();
    }
    return arg;
}

/* ---- those that listen --------------------------------------------------------------------------- */

static void forget_looker(void)
{
    if (looker.notify >= 0)
        close(looker.notify);
    if (looker.end >= 0)
        close(looker.end);
    unlink(looker.process);
    free(looker.all);
    free(looker.process);
}

static int start_looker(const char *dir, struct err *e)
{
    looker.all = xasprintf("%s/stop", dir);
    looker.process = xasprintf("%s/stop-%d", dir, (int)getpid());
    looker.end = eventfd(0, EFD_CLOEXEC);
    looker.notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    /* Not IN_MODIFY: the held-lists in the same folder are written with every press. */
    if (looker.notify >= 0 &&
        inotify_add_watch(looker.notify, dir, IN_CLOSE_WRITE | IN_MOVED_TO | IN_ATTRIB) < 0) {
        close(looker.notify);
        looker.notify = -1;
    }
    int rc = looker.end < 0 ? EMFILE : thread_start(&looker.thread, STACK_BYTES, look_thread, NULL);
    if (rc == 0)
        return 0;
    forget_looker();
    return err_set(e, ERR_ENV, "cannot start a thread: %s", strerror(rc));
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct stopfile *stopfile_open(struct stop *stop, struct err *e)
{
    char *dir = file_place(PLACE_RUNTIME, e);
    if (!dir)
        return NULL;
    struct stopfile *f = xcalloc(1, sizeof *f);
    f->stop = stop;
    f->started = seconds_now();
    f->own = xasprintf("%s/stop-%d-%d", dir, (int)getpid(), stop->number);
    pthread_mutex_lock(&looker.change);
    if (looker.started == 0)
        looker.started = f->started;
    int rc = looker.first ? 0 : start_looker(dir, e);
    if (rc == 0) {
        pthread_mutex_lock(&looker.lock);
        f->next = looker.first;
        looker.first = f;
        pthread_mutex_unlock(&looker.lock);
    }
    pthread_mutex_unlock(&looker.change);
    free(dir);
    if (rc == 0)
        return f;
    free(f->own);
    free(f);
    return NULL;
}

static void end_looker(void)
{
    static const uint64_t one = 1;
    ssize_t n = write(looker.end, &one, sizeof one);
    (void)n; /* an empty eventfd takes it */
    pthread_join(looker.thread, NULL);
    forget_looker();
}

void stopfile_close(struct stopfile *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&looker.change);
    pthread_mutex_lock(&looker.lock);
    struct stopfile **at = &looker.first;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    pthread_mutex_unlock(&looker.lock);
    if (!looker.first)
        end_looker();
    pthread_mutex_unlock(&looker.change);
    unlink(f->own);
    free(f->own);
    free(f);
}
