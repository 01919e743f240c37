/* server.c - display numbers and their locks.
 *
 * /tmp/.XN-lock contains the pid of the owner of display N; creating the file claims the display.  (Xvfb
 * -displayfd takes no lock, and a killed server leaves a socket without an owner.)  A supervisor takes the
 * lock in its own name before it starts a server, so that the zygote can find the number and clean up. */
#include "desk/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NUMBERS = 4000, LOCK_TEXT = 11 };

static void lock_path(char out[64], int number)
{
    snprintf(out, 64, "/tmp/.X%d-lock", number);
}

static void socket_path(char out[64], int number)
{
    snprintf(out, 64, "/tmp/.X11-unix/X%d", number);
}

/* Returns whether a server listens; abstract: on the abstract socket. */
static bool answers(int number, bool abstract)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char path[64];
    socket_path(path, number);
    size_t n = strlen(path);
    memcpy(a.sun_path + abstract, path, n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    int rc = connect(fd, (struct sockaddr *)&a,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + abstract + !abstract));
    bool yes = rc == 0 || errno == EAGAIN || errno == EINPROGRESS || errno == EACCES;
    close(fd);
    return yes;
}

int server_claim(int first)
{
    for (int number = first; number < first + NUMBERS; number++) {
        char path[64], text[LOCK_TEXT + 1];
        lock_path(path, number);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
        if (fd < 0 && errno != EEXIST)
            return -1;
        if (fd < 0)
            continue;
        snprintf(text, sizeof text, "%10d\n", (int)getpid());
        bool written = write(fd, text, LOCK_TEXT) == LOCK_TEXT;
        int why = errno;
        close(fd);
        if (written && !answers(number, false) && !answers(number, true))
            return number;
        unlink(path);
        if (!written) {
            errno = why;
            return -1;
        }
    }
    errno = EBUSY;
    return -1;
}

static pid_t lock_owner(int number)
{
    char path[64], text[LOCK_TEXT + 1] = "";
    lock_path(path, number);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, LOCK_TEXT);
    close(fd);
    return n == LOCK_TEXT ? (pid_t)strtol(text, NULL, 10) : -1;
}

/* Removes lock and socket of a number, but keeps the socket of another server that took the number despite
 * the lock. */
void server_release(int number)
{
    char path[64];
    socket_path(path, number);
    if (!answers(number, false))
        unlink(path);
    /* left by a server that was killed while it read its keymap */
    snprintf(path, sizeof path, "/tmp/server-%d.xkm", number);
    unlink(path);
    lock_path(path, number);
    unlink(path);
}

void server_sweep(pid_t supervisor)
{
    DIR *dir = opendir("/tmp");
    for (struct dirent *d; dir && (d = readdir(dir));) {
        int number, end = 0;
        if (sscanf(d->d_name, ".X%d-lock%n", &number, &end) == 1 && end && !d->d_name[end] && number >= 0 &&
            lock_owner(number) == supervisor)
            server_release(number);
    }
    if (dir)
        closedir(dir);
}
