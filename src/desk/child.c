/* child.c - starts a program on a desk.
 *
 * The program gets its own session without a terminal, an empty stdin, default signals and no other
 * descriptor of this process.  It is killed when its supervisor dies, even by SIGKILL.  Variables of the
 * user's session (buses, Wayland, session manager) are removed from its environment, and those of the desk's
 * own session bus are added. */
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

bool child_find(const char *program, char file[CHILD_FILE])
{
    const char *at = getenv("PATH");
    for (at = at ? at : "/usr/local/bin:/usr/bin:/bin"; *at;) {
        int n = (int)strcspn(at, ":");
        snprintf(file, CHILD_FILE, "%.*s/%s", n, at, program);
        if (n && access(file, X_OK) == 0)
            return true;
        at += at[n] ? n + 1 : n;
    }
    return false;
}

bool child_installed(const char *program)
{
    char file[CHILD_FILE];
    return child_find(program, file);
}

static void put_path(const char *name, const char *folder, const char *below)
{
    char path[DESK_HOME + 64];
    snprintf(path, sizeof path, "%s/%s", folder, below);
    setenv(name, path, 1);
}

static void put_all(const struct msg *m, size_t at)
{
    for (const char *s; m && (s = msg_next(m, &at));)
        if (strchr(s, '='))
            putenv((char *)(uintptr_t)s);
}

static void private_environment(const struct child_context *p)
{
    /* clang-format off */
    static const char *const session_names[] = {
        "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "DBUS_SESSION_BUS_ADDRESS", "SESSION_MANAGER",
        "AT_SPI_BUS_ADDRESS", "DESKTOP_STARTUP_ID", "XDG_ACTIVATION_TOKEN", "XDG_SESSION_ID",
        "XDG_SESSION_PATH", "XDG_SEAT", "XDG_SEAT_PATH", "XDG_VTNR", "WINDOWID", "XMODIFIERS",
        "GTK_IM_MODULE", "QT_IM_MODULE", "SSH_AUTH_SOCK", "GNOME_KEYRING_CONTROL",
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof session_names / sizeof *session_names; i++)
        unsetenv(session_names[i]);
    setenv("HOME", p->home, 1);
    put_path("XDG_CONFIG_HOME", p->home, ".config");
    put_path("XDG_CACHE_HOME", p->home, ".cache");
    put_path("XDG_DATA_HOME", p->home, ".local/share");
    put_path("XDG_STATE_HOME", p->home, ".local/state");
    put_path("XDG_RUNTIME_DIR", p->dir, "run");
    put_path("TMPDIR", p->dir, "tmp");
    put_path("XAUTHORITY", p->dir, "auth");
    setenv("XDG_SESSION_TYPE", "x11", 1);
}

/* Lets programs describe their elements on the session bus of the desk. */
static void bus_environment(const struct child_context *p)
{
    static const char *const ones[] = {"QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "GNOME_ACCESSIBILITY",
                                       "ACCESSIBILITY_ENABLED"};
    setenv("DBUS_SESSION_BUS_ADDRESS", p->bus, 1);
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        setenv(ones[i], "1", 1);
    setenv("GTK_A11Y", "atspi", 1);
    unsetenv("NO_AT_BRIDGE");
    const char *path = getenv("PATH");
    char folders[DESK_PATH + 4096];
    if (path && snprintf(folders, sizeof folders, "%s/bin:%s", p->dir, path) < (int)sizeof folders)
        setenv("PATH", folders, 1);
}

static void environment(const struct child_context *p, const struct child_options *h)
{
    if (p->own)
        private_environment(p);
    if (*p->bus)
        bus_environment(p);
    if (!getenv("LC_ALL") && !getenv("LC_CTYPE") && !getenv("LANG"))
        setenv("LANG", "C.UTF-8", 1);
    if (*p->display)
        setenv("DISPLAY", p->display, 1);
    put_all(p->env, p->env_at);
    put_all(h->env, h->env_at);
    if (h->mark)
        putenv((char *)(uintptr_t)h->mark);
    putenv((char *)(uintptr_t)p->mark);
}

static void reset_signals(void)
{
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void exec_failed(const char *what)
{
    dprintf(STDERR_FILENO, "%s: %s\n", what, strerror(errno));
    _exit(127);
}

/* Sets oom_score_adj; has no effect if the kernel has no such file. */
static void write_oom(int value)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        dprintf(fd, "%d", value);
        close(fd);
    }
}

pid_t child_start(const struct child_context *p, const struct child_options *h)
{
    pid_t parent = getpid(), pid = fork();
    if (pid)
        return pid;
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    reset_signals();
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
        exec_failed(p->work_dir);
    if (h->shell)
        execl("/bin/sh", "sh", "-c", h->shell, (char *)NULL);
    else
        execvp(h->argv[0], (char *const *)(uintptr_t)h->argv);
    exec_failed(h->shell ? "/bin/sh" : h->argv[0]);
    return -1;
}
