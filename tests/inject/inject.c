/* inject.c - preloaded into the program, makes one of its system calls or allocations fail.
 *
 *   LD_PRELOAD=inject.so HOLORUN_INJECT=FILE holorun ...
 *
 * FILE is a struct injection (inject.h) that all processes of the program map: the calls are counted over
 * the process and its forks, and the one with the number `at` fails as a full machine would let it fail.
 * Programs that it starts (a server, a shell) are left alone.
 */
#include "inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
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

static struct injection *shared; /* NULL: not in the program itself */

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
}

/* Whether this call fails, with errno set. */
static bool fails(enum injection_kind kind, const char *name, int why)
{
    if (!shared)
        return false;
    unsigned long n = __atomic_add_fetch(&shared->counts[kind], 1, __ATOMIC_SEQ_CST);
    if (kind != shared->kind || n != shared->at)
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

/* dlsym() may call this before it is known. */
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

int posix_memalign(void **out, size_t alignment, size_t size)
{
    return fails(INJECT_MEMORY, "posix_memalign", ENOMEM) ? ENOMEM
                                                          : REAL(posix_memalign)(out, alignment, size);
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
