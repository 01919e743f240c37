/* view_place.c - where viewers connect, and their password.
 *
 * Only this machine is served: VNC's own password is weak and its images are not encrypted, so viewers
 * elsewhere must use ssh.  A socket in the file system is accessible to this user only; a port is accessible
 * to every user of the machine and needs a password. */
#include "desk/view_impl.h"

#include "base/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64, PASSWORD_FILE = 4096 };

int place_parse(const char *where, bool *six, int *port, struct err *e)
{
    static const char *const hosts[] = {"127.0.0.1:", "localhost:", "[::1]:", ""};
    const char *rest = NULL;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts && !rest; i++)
        if (!strncmp(where, hosts[i], strlen(hosts[i]))) {
            rest = where + strlen(hosts[i]);
            *six = hosts[i][0] == '[';
        }
    int end = 0;
    if (!rest || strspn(rest, "0123456789") != strlen(rest) || sscanf(rest, "%5d%n", port, &end) != 1 ||
        rest[end] || *port > 65535)
        return err_set(e, ERR_USAGE,
                       "viewers cannot connect to '%s': use a port of this machine, such as 127.0.0.1:5901, "
                       "or unix:PATH; viewers on other machines connect through ssh -L",
                       where);
    return 0;
}

static int listen_on(struct place *p, const void *address, socklen_t n, struct err *e)
{
    const struct sockaddr *a = address;
    p->fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;
    if (p->fd >= 0 && a->sa_family != AF_UNIX)
        setsockopt(p->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (p->fd >= 0 && bind(p->fd, a, n) == 0 && listen(p->fd, BACKLOG) == 0)
        return 0;
    err_set(e, ERR_ENV, "cannot listen for viewers at '%s': %s", p->address, strerror(errno));
    place_close(p);
    return -1;
}

/* Returns whether a socket has no listener: a process that was killed left it. */
static bool is_stale(const struct sockaddr_un *a)
{
    struct stat st;
    if (lstat(a->sun_path, &st) || !S_ISSOCK(st.st_mode) || st.st_uid != getuid())
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool refused = fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return refused;
}

static int open_path(struct place *p, const char *path, struct err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (!*path || strlen(path) >= sizeof a.sun_path)
        return err_set(e, ERR_USAGE, "the path of a socket must have 1 to %zu bytes, not '%s'",
                       sizeof a.sun_path - 1, path);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    snprintf(p->address, sizeof p->address, "%s", path);
    if (is_stale(&a))
        unlink(path);
    mode_t before = umask(0177);
    int rc = listen_on(p, &a, sizeof a, e);
    umask(before);
    if (rc == 0)
        snprintf(p->path, sizeof p->path, "%s", path);
    return rc;
}

static int open_default(struct place *p, struct err *e)
{
    autofree char *dir = file_place(PLACE_RUNTIME, e);
    autofree char *path = dir ? xasprintf("%s/desk-%d.vnc", dir, (int)getpid()) : NULL;
    return path ? open_path(p, path, e) : -1;
}

static int open_port(struct place *p, const char *where, struct err *e)
{
    bool six = false;
    int port = 0;
    if (place_parse(where, &six, &port, e))
        return -1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a6.sin6_addr = in6addr_loopback;
    snprintf(p->address, sizeof p->address, "%s", where);
    if (six ? listen_on(p, &a6, sizeof a6, e) : listen_on(p, &a, sizeof a, e))
        return -1;
    socklen_t n = six ? sizeof a6 : sizeof a;
    if (getsockname(p->fd, six ? (struct sockaddr *)&a6 : (struct sockaddr *)&a, &n))
        return err_set(e, ERR_ENV, "cannot listen for viewers at '%s': %s", where, strerror(errno));
    snprintf(p->address, sizeof p->address, "%s::%d", six ? "[::1]" : "127.0.0.1",
             ntohs(six ? a6.sin6_port : a.sin_port));
    return 0;
}

int place_open(struct place *p, const char *where, bool password, struct err *e)
{
    *p = (struct place){.fd = -1};
    if (!where || !*where || !strcmp(where, "auto"))
        return open_default(p, e);
    if (!strncmp(where, "unix:", 5))
        return open_path(p, where + 5, e);
    if (!password)
        return err_set(e, ERR_USAGE,
                       "viewers at '%s' need a password, because all users of this machine can connect to a "
                       "port: set --password-file FILE",
                       where);
    return open_port(p, where, e);
}

void place_close(struct place *p)
{
    if (p->fd >= 0)
        close(p->fd);
    if (*p->path)
        unlink(p->path);
    p->fd = -1;
    *p->path = 0;
}

int password_read(const char *path, char out[PASSWORD + 1], struct err *e)
{
    struct stat st;
    autofree char *text = NULL;
    size_t n = 0;
    *out = 0;
    if (!path)
        return 0;
    if (stat(path, &st))
        return err_set(e, ERR_USAGE, "cannot read password file '%s': %s", path, strerror(errno));
    if (st.st_uid != getuid() || st.st_mode & 077)
        return err_set(e, ERR_USAGE,
                       "password file '%s' is accessible to other users (mode %03o): run chmod 600 on it",
                       path, (unsigned)st.st_mode & 0777);
    if (file_read(path, PASSWORD_FILE, &text, &n, e))
        return -1;
    size_t line = strcspn(text, "\r\n");
    if (line > PASSWORD)
        warn("VNC passwords have %d characters: the rest of the password in '%s' is ignored", PASSWORD, path);
    snprintf(out, PASSWORD + 1, "%.*s", (int)line, text);
    explicit_bzero(text, n);
    return line ? 0 : err_set(e, ERR_USAGE, "the first line of password file '%s' is empty", path);
}
