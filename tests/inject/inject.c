/* inject.c - a library preloaded into the program that makes one of its system calls or allocations fail.
 *
 *   LD_PRELOAD=inject.so HOLORUN_INJECT=FILE holorun ...
 *
 * FILE is a struct injection (inject.h) mapped by all processes of the program. Calls are counted over the
 * process and its forks, and call number `at` fails as on a machine without resources. Programs that it
 * starts (a server, a shell) are not affected.
 */
#include "inject.h"

#include <X11/XKBlib.h>
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/XInput2.h>
#include <X11/extensions/XShm.h>
#include <X11/extensions/Xfixes.h>
#include <X11/extensions/Xrandr.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static struct injection *shared; /* NULL: not the program itself */

/* Prints the frames of a crash, which show whether the program or a library crashed. */
static void on_crash(int sig)
{
    static const char head[] = "CRASH in these frames:\n";
    void *frames[24];
    int n = backtrace(frames, 24);
    long wrote = syscall(SYS_write, STDERR_FILENO, head, sizeof head - 1);
    (void)wrote; /* there is nothing to do if it fails */
    backtrace_symbols_fd(frames, n, STDERR_FILENO);
    signal(sig, SIG_DFL);
    raise(sig);
}

__attribute__((constructor)) static void begin(void)
{
    char exe[4096] = "";
    const char *file = getenv("HOLORUN_INJECT");
    if (!file || readlink("/proc/self/exe", exe, sizeof exe - 1) <= 0)
        return;
    const char *name = strrchr(exe, '/');
    int fd = strcmp(name ? name + 1 : exe, "holorun")
                 ? -1
                 : (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *p = (void *)syscall(SYS_mmap, NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    shared = p == MAP_FAILED ? NULL : p;
    void *frame[1];
    backtrace(frame, 1); /* the first call loads a library */
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], on_crash);
}

/* Counts a call of a function; returns its number. */
static unsigned long count_name(const char *name)
{
    for (int i = 0; i < INJECT_NAMES; i++) {
        struct injection_name *n = &shared->names[i];
        if (!n->name[0])
            /* if two threads race, one of the names may be lost */
            snprintf(n->name, sizeof n->name, "%s", name);
        if (!strcmp(n->name, name))
            return __atomic_add_fetch(&n->calls, 1, __ATOMIC_SEQ_CST);
    }
    return 0;
}

/* Returns whether this call fails, and sets errno. */
static bool fails(enum injection_kind kind, const char *name, int why)
{
    if (!shared)
        return false;
    unsigned long n = __atomic_add_fetch(&shared->counts[kind], 1, __ATOMIC_SEQ_CST);
    unsigned long of_name = count_name(name);
    if (shared->only[0] ? strcmp(shared->only, name) != 0 || of_name != shared->at
                        : kind != shared->kind || n != shared->at)
        return false;
    snprintf(shared->failed, sizeof shared->failed, "%s", name);
    errno = why;
    return true;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* ---- memory -------------------------------------------------------------------------------------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

/* The program's own malloc() calls these. */
void *__libc_malloc(size_t size)
{
    static void *(*real)(size_t);
    if (!real)
        real = (void *(*)(size_t))dlsym(RTLD_NEXT, "__libc_malloc");
    return fails(INJECT_MEMORY, "malloc", ENOMEM) ? NULL : real(size);
}

void *__libc_realloc(void *old, size_t size)
{
    static void *(*real)(void *, size_t);
    if (!real)
        real = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "__libc_realloc");
    return fails(INJECT_MEMORY, "realloc", ENOMEM) ? NULL : real(old, size);
}

/* dlsym() may call this before `real` is set. */
void *__libc_calloc(size_t n, size_t size)
{
    static void *(*real)(size_t, size_t);
    static char early[4096];
    static size_t used;
    static bool asking;
    if (!real && asking) {
        void *p = early + used;
        used += (n * size + 15) & ~(size_t)15;
        return used <= sizeof early ? p : NULL;
    }
    if (!real) {
        asking = true;
        real = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "__libc_calloc");
        asking = false;
    }
    return fails(INJECT_MEMORY, "calloc", ENOMEM) ? NULL : real(n, size);
}

char *strdup(const char *text)
{
    return fails(INJECT_MEMORY, "strdup", ENOMEM) ? NULL : REAL(strdup)(text);
}

char *strndup(const char *text, size_t n)
{
    return fails(INJECT_MEMORY, "strndup", ENOMEM) ? NULL : REAL(strndup)(text, n);
}

void *__libc_memalign(size_t alignment, size_t size)
{
    static void *(*real)(size_t, size_t);
    if (!real)
        real = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "__libc_memalign");
    return fails(INJECT_MEMORY, "memalign", ENOMEM) ? NULL : real(alignment, size);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (fails(INJECT_MEMORY, "mmap", ENOMEM))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

/* ---- files --------------------------------------------------------------------------------------- */

int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    unsigned mode = va_arg(ap, unsigned);
    va_end(ap);
    if (fails(INJECT_FILES, "open", flags & O_CREAT ? ENOSPC : EMFILE))
        return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, flags & (O_CREAT | O_TMPFILE) ? mode : 0);
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    unsigned mode = va_arg(ap, unsigned);
    va_end(ap);
    if (fails(INJECT_FILES, "openat", EMFILE))
        return -1;
    return (int)syscall(SYS_openat, dir, path, flags, flags & (O_CREAT | O_TMPFILE) ? mode : 0);
}

ssize_t read(int fd, void *to, size_t n)
{
    return fails(INJECT_FILES, "read", EIO) ? -1 : syscall(SYS_read, fd, to, n);
}

ssize_t __read_chk(int fd, void *to, size_t n, size_t room);
ssize_t __read_chk(int fd, void *to, size_t n, size_t room)
{
    return n > room ? abort(), -1 : read(fd, to, n);
}

ssize_t write(int fd, const void *from, size_t n)
{
    return fails(INJECT_FILES, "write", ENOSPC) ? -1 : syscall(SYS_write, fd, from, n);
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
    return fails(INJECT_FILES, "pwrite", ENOSPC) ? -1 : syscall(SYS_pwrite64, fd, from, n, at);
}

int fstat(int fd, struct stat *st)
{
    return fails(INJECT_FILES, "fstat", EIO) ? -1 : (int)syscall(SYS_fstat, fd, st);
}

int mkdir(const char *path, mode_t mode)
{
    return fails(INJECT_FILES, "mkdir", ENOSPC) ? -1 : (int)syscall(SYS_mkdir, path, mode);
}

int rename(const char *from, const char *to)
{
    return fails(INJECT_FILES, "rename", ENOSPC) ? -1 : (int)syscall(SYS_rename, from, to);
}

int ftruncate(int fd, off_t size)
{
    return fails(INJECT_FILES, "ftruncate", EIO) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

int fsync(int fd)
{
    return fails(INJECT_FILES, "fsync", EIO) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return fails(INJECT_FILES, "fdatasync", EIO) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

/* ---- connections --------------------------------------------------------------------------------- */

int socket(int domain, int type, int protocol)
{
    return fails(INJECT_CONNECTIONS, "socket", EMFILE) ? -1
                                                       : (int)syscall(SYS_socket, domain, type, protocol);
}

int connect(int fd, const struct sockaddr *to, socklen_t n)
{
    return fails(INJECT_CONNECTIONS, "connect", ECONNREFUSED) ? -1 : (int)syscall(SYS_connect, fd, to, n);
}

int socketpair(int domain, int type, int protocol, int fds[2])
{
    return fails(INJECT_CONNECTIONS, "socketpair", EMFILE)
               ? -1
               : (int)syscall(SYS_socketpair, domain, type, protocol, fds);
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    return fails(INJECT_CONNECTIONS, "recvmsg", ECONNRESET) ? -1 : syscall(SYS_recvmsg, fd, m, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    return fails(INJECT_CONNECTIONS, "sendmsg", EPIPE) ? -1 : syscall(SYS_sendmsg, fd, m, flags);
}

ssize_t writev(int fd, const struct iovec *list, int n)
{
    return fails(INJECT_CONNECTIONS, "writev", EPIPE) ? -1 : syscall(SYS_writev, fd, list, n);
}

int poll(struct pollfd *list, nfds_t n, int ms)
{
    return fails(INJECT_CONNECTIONS, "poll", ENOMEM) ? -1 : (int)syscall(SYS_poll, list, n, ms);
}

/* ---- processes ----------------------------------------------------------------------------------- */

pid_t fork(void)
{
    return fails(INJECT_PROCESSES, "fork", EAGAIN) ? -1 : REAL(fork)();
}

int pipe2(int fds[2], int flags)
{
    return fails(INJECT_PROCESSES, "pipe2", EMFILE) ? -1 : (int)syscall(SYS_pipe2, fds, flags);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*fn)(void *), void *arg)
{
    if (fails(INJECT_PROCESSES, "pthread_create", EAGAIN))
        return EAGAIN;
    return REAL(pthread_create)(thread, how, fn, arg);
}

/* ---- display ------------------------------------------------------------------------------------- */

/* Defines an Xlib function that returns `failure` instead of a result. */
#define DISPLAY_CALL(type, name, failure, parameters, arguments)                                             \
    type name parameters                                                                                     \
    {                                                                                                        \
        return fails(INJECT_DISPLAY, #name, ENOMEM) ? failure : REAL(name) arguments;                        \
    }

DISPLAY_CALL(Display *, XOpenDisplay, NULL, (const char *name), (name))
DISPLAY_CALL(KeySym *, XGetKeyboardMapping, NULL, (Display * d, unsigned char first, int n, int *per),
             (d, first, n, per))
DISPLAY_CALL(XModifierKeymap *, XGetModifierMapping, NULL, (Display * d), (d))
DISPLAY_CALL(int, XGetPointerMapping, 0, (Display * d, unsigned char *map, int n), (d, map, n))
DISPLAY_CALL(XkbDescPtr, XkbGetMap, NULL, (Display * d, unsigned what, unsigned device), (d, what, device))
DISPLAY_CALL(int, XkbGetState, BadAlloc, (Display * d, unsigned device, XkbStatePtr state),
             (d, device, state))
DISPLAY_CALL(int, XkbGetControls, BadAlloc, (Display * d, unsigned long what, XkbDescPtr out), (d, what, out))
DISPLAY_CALL(Atom, XInternAtom, None, (Display * d, const char *name, Bool only), (d, name, only))
DISPLAY_CALL(int, XQueryTree, 0,
             (Display * d, Window w, Window *root, Window *parent, Window **list, unsigned *n),
             (d, w, root, parent, list, n))
DISPLAY_CALL(int, XGetWindowAttributes, 0, (Display * d, Window w, XWindowAttributes *out), (d, w, out))
DISPLAY_CALL(int, XTranslateCoordinates, 0,
             (Display * d, Window from, Window to, int x, int y, int *out_x, int *out_y, Window *child),
             (d, from, to, x, y, out_x, out_y, child))
DISPLAY_CALL(int, XQueryPointer, 0,
             (Display * d, Window w, Window *root, Window *child, int *x, int *y, int *wx, int *wy,
              unsigned *mask),
             (d, w, root, child, x, y, wx, wy, mask))
DISPLAY_CALL(XImage *, XGetImage, NULL,
             (Display * d, Drawable from, int x, int y, unsigned w, unsigned h, unsigned long planes,
              int format),
             (d, from, x, y, w, h, planes, format))
DISPLAY_CALL(int, XShmGetImage, False,
             (Display * d, Drawable from, XImage *to, int x, int y, unsigned long planes),
             (d, from, to, x, y, planes))
DISPLAY_CALL(int, XShmAttach, 0, (Display * d, XShmSegmentInfo *s), (d, s))
DISPLAY_CALL(XFixesCursorImage *, XFixesGetCursorImage, NULL, (Display * d), (d))
DISPLAY_CALL(XRRMonitorInfo *, XRRGetMonitors, NULL, (Display * d, Window w, Bool active, int *n),
             (d, w, active, n))
DISPLAY_CALL(XIDeviceInfo *, XIQueryDevice, NULL, (Display * d, int device, int *n), (d, device, n))
DISPLAY_CALL(Status, XIQueryVersion, BadRequest, (Display * d, int *major, int *minor), (d, major, minor))

int XGetWindowProperty(Display *d, Window w, Atom name, long from, long n, Bool delete, Atom type,
                       Atom *out_type, int *format, unsigned long *count, unsigned long *left,
                       unsigned char **out)
{
    if (!fails(INJECT_DISPLAY, "XGetWindowProperty", ENOMEM))
        return REAL(XGetWindowProperty)(d, w, name, from, n, delete, type, out_type, format, count, left,
                                        out);
    *out = NULL;
    *count = *left = 0;
    *out_type = None;
    return BadAlloc;
}

/* Threads of the program block all signals; a crash must still reach on_crash(). */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t own;
    if (set && how != SIG_UNBLOCK) {
        own = *set;
        sigdelset(&own, SIGSEGV);
        sigdelset(&own, SIGBUS);
        sigdelset(&own, SIGABRT);
        set = &own;
    }
    return REAL(pthread_sigmask)(how, set, old);
}
