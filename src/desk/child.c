/* child.c - how a program begins on a desk.
 *
 * In a session of its own, without a terminal; stdin is empty, stdout and stderr go where they are told, no other
 * descriptor of ours is open; signals are as a shell would have them.  It ends with its keeper, even one that is killed.
 * What it sees of the user's own session (buses, Wayland, session manager) is taken out of its environment.
 */
#include "desk/private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

extern char **environ;

bool child_installed(const char *program)
{
    const char *at = getenv("PATH");
    for (at = at ? at : "/usr/local/bin:/usr/bin:/bin"; *at;) {
        char file[4096];
        int n = (int)strcspn(at, ":");
        snprintf(file, sizeof file, "%.*s/%s", n, at, program);
        if (n && access(file, X_OK) == 0)
            return true;
        at += at[n] ? n + 1 : n;
    }
    return false;
}

/* ---- environment: putenv() keeps the strings that it is given --------------------------------------- */

static void put(const char *name, const char *value)
{
    setenv(name, value, 1);
}

static void put_below(const char *name, const char *folder, const char *below)
{
    char path[2 * DESK_PATH];
    snprintf(path, sizeof path, "%s/%s", folder, below);
    put(name, path);
}

static void put_all(const struct msg *m, size_t at)
{
    for (const char *s; m && (s = msg_next(m, &at));)
        if (strchr(s, '='))
            putenv((char *)(uintptr_t)s);
}

static void environment_of_its_own(const struct place *p)
{
    static const char *const of_the_session[] = {"WAYLAND_DISPLAY",
                                                 "WAYLAND_SOCKET",
                                                 "DBUS_SESSION_BUS_ADDRESS",
                                                 "SESSION_MANAGER",
                                                 "AT_SPI_BUS_ADDRESS",
                                                 "DESKTOP_STARTUP_ID",
                                                 "XDG_ACTIVATION_TOKEN",
                                                 "XDG_SESSION_ID",
                                                 "XDG_SESSION_PATH",
                                                 "XDG_SEAT",
                                                 "XDG_SEAT_PATH",
                                                 "XDG_VTNR",
                                                 "WINDOWID",
                                                 "XMODIFIERS",
                                                 "GTK_IM_MODULE",
                                                 "QT_IM_MODULE",
                                                 "SSH_AUTH_SOCK",
                                                 "GNOME_KEYRING_CONTROL"};
    for (size_t i = 0; i < sizeof of_the_session / sizeof *of_the_session; i++)
        unsetenv(of_the_session[i]);
    put("HOME", p->home);
    put_below("XDG_CONFIG_HOME", p->home, ".config");
    put_below("XDG_CACHE_HOME", p->home, ".cache");
    put_below("XDG_DATA_HOME", p->home, ".local/share");
    put_below("XDG_STATE_HOME", p->home, ".local/state");
    put_below("XDG_RUNTIME_DIR", p->dir, "run");
    put_below("TMPDIR", p->dir, "tmp");
    put_below("XAUTHORITY", p->dir, "auth");
    put("XDG_SESSION_TYPE", "x11");
}

static void environment(const struct place *p, const struct how *h)
{
    if (p->own)
        environment_of_its_own(p);
    if (!getenv("LC_ALL") && !getenv("LC_CTYPE") && !getenv("LANG"))
        put("LANG", "C.UTF-8");
    if (*p->display)
        put("DISPLAY", p->display);
    put_all(p->env, p->env_at);
    put_all(h->env, h->env_at);
    if (h->mark)
        putenv((char *)(uintptr_t)h->mark);
    putenv((char *)(uintptr_t)p->mark);
}

/* ---- a process ------------------------------------------------------------------------------------- */

static void signals_as_at_first(void)
{
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void say_and_end(const char *what)
{
    dprintf(STDERR_FILENO, "%s: %s\n", what, strerror(errno));
    _exit(127);
}

/* On a kernel without it nothing happens. */
static void write_oom(int value)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        dprintf(fd, "%d", value);
        close(fd);
    }
}

pid_t child_start(const struct place *p, const struct how *h)
{
    pid_t parent = getpid(), pid = fork();
    if (pid)
        return pid;
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    signals_as_at_first();
    int none = open("/dev/null", O_RDWR);
    dup2(none, STDIN_FILENO);
    dup2(h->out >= 0 ? h->out : none, STDOUT_FILENO);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    if (h->keep > 3) {
        close_range(3, (unsigned)h->keep - 1, 0);
        close_range((unsigned)h->keep + 1, ~0u, 0);
        fcntl(h->keep, F_SETFD, 0);
    } else {
        close_range(3, ~0u, 0);
    }
    setrlimit(RLIMIT_NOFILE, &p->files);
    write_oom(h->oom);
    environment(p, h);
    if (p->work_dir && chdir(p->work_dir))
        say_and_end(p->work_dir);
    if (h->shell)
        execl("/bin/sh", "sh", "-c", h->shell, (char *)NULL);
    else
        execvp(h->argv[0], (char *const *)(uintptr_t)h->argv);
    say_and_end(h->shell ? "/bin/sh" : h->argv[0]);
    return -1;
}
