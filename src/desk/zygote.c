/* zygote.c - the process that forks supervisors.
 *
 * It is forked while the process is small and has one thread, so it stays small.  Its children are the
 * supervisors and, because it is a subreaper, the orphans of a killed supervisor: it therefore knows which
 * processes to kill and which files to remove.  When its owner ends, it waits for the supervisors, which
 * detect that themselves. */
#include "desk/private.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORPHAN_MS = 10000, SUPERVISORS_END_MS = 20000, SUPERVISORS = 4096 };

struct zygote {
    const struct zygote_args *zygote_args;
    int signals, n;
    pid_t supervisors[SUPERVISORS];
    int desks[SUPERVISORS]; /* numbers of their desks */
};

static void refuse(int fd, const char *why)
{
    static struct msg m;
    msg_clear(&m, MSG_FAILED, 0);
    m.number = ERR_ENV;
    msg_put(&m, why);
    msg_send(fd, &m, -1);
}

static void become_supervisor(const struct zygote *z, int fd, int n)
{
    close(z->signals);
    dup2(fd, FD_SOCKET); /* replaces the zygote's own socket */
    close_range(FD_OWNER + 1, ~0u, 0);
    fcntl(FD_SOCKET, F_SETFD, FD_CLOEXEC);
    supervisor_main(z->zygote_args, n);
}

static void new_supervisor(struct zygote *z, int fd, int n)
{
    if (z->n == SUPERVISORS) {
        refuse(fd, "too many desktops");
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        become_supervisor(z, fd, n);
    if (pid < 0) {
        refuse(fd, strerror(errno));
        return;
    }
    z->supervisors[z->n] = pid;
    z->desks[z->n++] = n;
}

/* Cleans up after a supervisor, unless exit code 0 shows that it has cleaned up itself. */
static void supervisor_ended(struct zygote *z, int i, int status)
{
    pid_t pid = z->supervisors[i];
    int desk = z->desks[i];
    z->supervisors[i] = z->supervisors[--z->n];
    z->desks[i] = z->desks[z->n];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    char dir[DESK_PATH];
    desk_dir(dir, z->zygote_args->root, desk);
    procs_kill_children(z->supervisors, z->n, ORPHAN_MS);
    server_sweep(pid);
    folder_remove(dir);
}

static void reap(struct zygote *z)
{
    struct signalfd_siginfo infos[16];
    while (read(z->signals, infos, sizeof infos) > 0)
        ;
    for (int i = 0; i < z->n;) {
        int status;
        if (waitpid(z->supervisors[i], &status, WNOHANG) > 0)
            supervisor_ended(z, i, status);
        else
            i++;
    }
}

/* Handles requests.  Returns true if the owner has closed the socket. */
static bool serve(struct zygote *z)
{
    static struct msg m;
    int fd, rc;
    while ((rc = msg_receive(FD_SOCKET, &m, &fd)) > 0) {
        if (fd >= 0 && m.kind == MSG_SUPERVISOR)
            new_supervisor(z, fd, m.number);
        if (fd >= 0)
            close(fd);
    }
    return rc == 0;
}

static void zygote_end(struct zygote *z)
{
    int64_t start = clock_ns();
    struct pollfd p = {.fd = z->signals, .events = POLLIN};
    for (reap(z); z->n && clock_ms_since(start) < SUPERVISORS_END_MS; reap(z))
        poll(&p, 1, 100);
    for (int i = 0; i < z->n; i++)
        kill(z->supervisors[i], SIGKILL);
    while (z->n) {
        int status;
        if (waitpid(z->supervisors[0], &status, 0) > 0 || errno == ECHILD)
            supervisor_ended(z, 0, SIGKILL);
    }
    procs_kill_children(NULL, 0, ORPHAN_MS);
    folder_sweep(z->zygote_args->root);
    _exit(0);
}

void zygote_main(const struct zygote_args *g)
{
    static struct zygote z;
    sigset_t set;
    z.zygote_args = g;
    err_on_exit(NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    prctl(PR_SET_NAME, "holorun-desks");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    z.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
        struct pollfd p[3] = {{.fd = FD_SOCKET, .events = POLLIN},
                              {.fd = g->owner, .events = POLLIN},
                              {.fd = z.signals, .events = POLLIN}};
        poll(p, 3, z.signals < 0 ? 100 : -1);
        bool gone = p[1].revents & POLLIN;
        if (p[0].revents)
            gone |= serve(&z);
        reap(&z);
        if (gone)
            zygote_end(&z);
    }
}
