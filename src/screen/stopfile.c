/* stopfile.c - stop files: "stop" in the runtime directory stops all runs of this user, "stop-PID" those of
 * one process, "stop-PID-N" screen number N of that process.
 *
 * A file counts if it is newer than the screen, or for the first two newer than the first screen that this
 * process opened. It contains seconds since 1970; if it contains no number, its mtime counts. "stop" is never
 * removed; the others are removed with their process or screen.
 *
 * One thread checks the files for all screens of this process: when inotify reports one, or every 40 ms
 * without inotify. No X server can block this thread, so it also supervises the input monitor threads:
 * `check` is called for each screen at least once a second. */
#include "screen/private.h"

#include "base/file.h"
#include "base/flag.h"
#include "base/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 40, NOTIFIED_POLL_MS = 1000, STACK_BYTES = 256 << 10 };

struct stopfile {
    struct stop *stop;
    void (*check)(void *);
    void *arg;
    char *own;
    double started; /* seconds since 1970 */
    struct stopfile *next;
};

static struct {
    pthread_mutex_t change, lock; /* change: while opening or closing; lock: for the list */
    struct stopfile *first;
    char *all, *process; /* paths; valid while the list is not empty */
    double started;
    int notify, end;  /* inotify descriptor, -1: none; eventfd */
    atomic_bool over; /* also ends the thread if the write to the eventfd failed */
    pthread_t thread;
} poller = {.change = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- polling ---------------------------------------------------------------------------------- */

/* Returns the time of the stop request in seconds since 1970; 0: none. */
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

static void check_files(void)
{
    pthread_mutex_lock(&poller.lock);
    if (file_time(poller.all) > poller.started || file_time(poller.process) > poller.started)
        screen_stop_all(STOP_FILE);
    for (struct stopfile *f = poller.first; f; f = f->next)
        if (!flag_up(&f->stop->flag) && file_time(f->own) > f->started)
            stop_set(f->stop, STOP_FILE);
    pthread_mutex_unlock(&poller.lock);
}

/* Reads the pending inotify events. Returns whether one was about a stop file; held files are in the same
 * directory. */
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

static void check_monitors(void)
{
    pthread_mutex_lock(&poller.lock);
    for (struct stopfile *f = poller.first; f; f = f->next)
        if (f->check)
            f->check(f->arg);
    pthread_mutex_unlock(&poller.lock);
}

static void *poll_thread(void *arg)
{
    int notify = poller.notify;
    struct pollfd p[] = {{.fd = poller.end, .events = POLLIN}, {.fd = notify, .events = POLLIN}};
    check_files(); /* files written before inotify_add_watch() */
    while (!p[0].revents && !poller.over) {
        poll(p, 2, notify < 0 ? POLL_MS : NOTIFIED_POLL_MS);
        if (notify < 0 || read_names(notify))
            check_files();
        check_monitors();
    }
    return arg;
}

/* ---- opening and closing ---------------------------------------------------------------------- */

static void poller_free(void)
{
    if (poller.notify >= 0)
        close(poller.notify);
    if (poller.end >= 0)
        close(poller.end);
    unlink(poller.process);
    free(poller.all);
    free(poller.process);
}

static int poller_start(const char *dir, struct err *e)
{
    poller.all = xasprintf("%s/stop", dir);
    poller.process = xasprintf("%s/stop-%d", dir, (int)getpid());
    poller.over = false;
    poller.end = eventfd(0, EFD_CLOEXEC);
    poller.notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    /* Without IN_MODIFY, because held files in the same directory are written with every press. */
    if (poller.notify >= 0 &&
        inotify_add_watch(poller.notify, dir, IN_CLOSE_WRITE | IN_MOVED_TO | IN_ATTRIB) < 0) {
        close(poller.notify);
        poller.notify = -1;
    }
    int rc = poller.end < 0 ? EMFILE : thread_start(&poller.thread, STACK_BYTES, poll_thread, NULL);
    if (rc == 0)
        return 0;
    poller_free();
    return err_set(e, ERR_ENV, "cannot start a thread: %s", strerror(rc));
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct stopfile *stopfile_open(struct stop *stop, void (*check)(void *), void *arg, struct err *e)
{
    char *dir = file_place(PLACE_RUNTIME, e);
    if (!dir)
        return NULL;
    struct stopfile *f = xcalloc(1, sizeof *f);
    f->stop = stop;
    f->check = check;
    f->arg = arg;
    f->started = seconds_now();
    f->own = xasprintf("%s/stop-%d-%d", dir, (int)getpid(), stop->number);
    pthread_mutex_lock(&poller.change);
    if (poller.started == 0)
        poller.started = f->started;
    int rc = poller.first ? 0 : poller_start(dir, e);
    if (rc == 0) {
        pthread_mutex_lock(&poller.lock);
        f->next = poller.first;
        poller.first = f;
        pthread_mutex_unlock(&poller.lock);
    }
    pthread_mutex_unlock(&poller.change);
    free(dir);
    if (rc == 0)
        return f;
    free(f->own);
    free(f);
    return NULL;
}

static void poller_stop(void)
{
    static const uint64_t one = 1;
    poller.over = true;
    ssize_t n = write(poller.end, &one, sizeof one);
    (void)n;
    pthread_join(poller.thread, NULL);
    poller_free();
}

void stopfile_close(struct stopfile *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&poller.change);
    pthread_mutex_lock(&poller.lock);
    struct stopfile **at = &poller.first;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    pthread_mutex_unlock(&poller.lock);
    if (!poller.first)
        poller_stop();
    pthread_mutex_unlock(&poller.change);
    unlink(f->own);
    free(f->own);
    free(f);
}
