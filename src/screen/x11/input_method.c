/* input_method.c - detects an input method (ibus, fcitx) that converts keys into other text.
 *
 * An input method registers as an XIM server on the display, or is named in the environment of the program
 * that receives the keys (GTK_IM_MODULE and others). Its command-line tool reports the active engine; it
 * runs with the environment of that program, which has the address of the session bus. Engines for
 * keyboard layouts do not change text. */
#include "screen/x11/x11_impl.h"

#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { ANSWER_MS = 1500, ENVIRON_MAX = 64 << 10, NAMED = 9 };

/* ---- the environment of the program -------------------------------------------------------------- */

struct environment {
    char data[ENVIRON_MAX]; /* NUL-terminated words, then an empty word */
    size_t n;
};

static void read_environment(struct screen *s, struct environment *out)
{
    char path[64];
    struct xtrap t;
    out->n = 0;
    xtrap_begin(&t, s->x11->dpy);
    int pid = s->x11->target.focus ? client_pid(s, s->x11->target.focus) : 0;
    xtrap_end(&t);
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t got = 0;
    while (fd >= 0 && out->n + 2 < sizeof out->data &&
           (got = read(fd, out->data + out->n, sizeof out->data - 2 - out->n)) > 0)
        out->n += (size_t)got;
    if (fd >= 0)
        close(fd);
    out->data[out->n] = out->data[out->n + 1] = 0;
}

/* Returns the entry NAME=... of the program's environment, of this process's if the program is unknown, or
 * NULL. */
static const char *variable(const struct environment *p, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < p->n; i += strlen(p->data + i) + 1)
        if (!strncmp(p->data + i, name, len) && p->data[i + len] == '=')
            return p->data + i;
    for (char **v = p->n ? NULL : environ; v && *v; v++)
        if (!strncmp(*v, name, len) && (*v)[len] == '=')
            return *v;
    return NULL;
}

static bool is_configured(const struct environment *p, const char *method)
{
    static const char *const names[] = {"GTK_IM_MODULE", "QT_IM_MODULE", "XMODIFIERS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *word = variable(p, names[i]);
        if (word && strstr(word, method))
            return true;
    }
    return false;
}

static bool is_announced(struct screen *s, const char *method)
{
    char name[32];
    snprintf(name, sizeof name, "@server=%s", method);
    Atom a = XInternAtom(s->x11->dpy, name, True);
    return a != None && !s->lost && XGetSelectionOwner(s->x11->dpy, a) != None;
}

/* ---- the command of the input method -------------------------------------------------------------- */

static pid_t start(const struct environment *p, char *const *argv, int out)
{
    static const char *const names[NAMED] = {"HOME",    "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR",
                                             "DISPLAY", "XAUTHORITY",      "DBUS_SESSION_BUS_ADDRESS",
                                             "LANG",    "IBUS_ADDRESS",    NULL};
    char *words[NAMED + 2], *path = getenv("PATH"), *own = xasprintf("PATH=%s", path ? path : "/usr/bin");
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t all, none;
    pid_t pid;
    int n = 0;
    for (int i = 0; names[i]; i++)
        if (variable(p, names[i]))
            words[n++] = (char *)(uintptr_t)variable(p, names[i]);
    words[n++] = own;
    words[n] = NULL;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (posix_spawnp(&pid, argv[0], &files, &attributes, argv, words))
        pid = -1;
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    free(own);
    return pid;
}

/* Runs a command and reads the first line of its output into line; "" without an answer within ANSWER_MS
 * or after a stop. */
static void run_command(struct screen *s, const struct environment *p, char *const *argv, char *line,
                        size_t size)
{
    int ends[2], status;
    size_t n = 0;
    int64_t begin = clock_ns();
    line[0] = 0;
    if (pipe2(ends, O_CLOEXEC))
        return;
    pid_t pid = start(p, argv, ends[1]);
    close(ends[1]);
    while (pid > 0 && n + 1 < size && clock_ms_since(begin) < ANSWER_MS && screen_wait(s, 0, NULL) == 0) {
        struct pollfd f = {ends[0], POLLIN, 0};
        ssize_t got = poll(&f, 1, 50) > 0 ? read(ends[0], line + n, size - 1 - n) : -2;
        if (got == 0 || got == -1)
            break;
        n += got > 0 ? (size_t)got : 0;
    }
    close(ends[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    line[n] = 0;
    line[strcspn(line, "\n")] = 0;
}

/* ---- interface --------------------------------------------------------------------------------------- */

bool input_method_active(struct screen *s, char *name, size_t size)
{
    static char ibus_command[] = "ibus", engine[] = "engine", fcitx_command[] = "fcitx5-remote",
                by_name[] = "-n";
    char *const ibus[] = {ibus_command, engine, NULL}, *const fcitx[] = {fcitx_command, NULL},
                *const fcitx_name[] = {fcitx_command, by_name, NULL};
    struct environment *p = xcalloc(1, sizeof *p);
    bool active = false;
    name[0] = 0;
    read_environment(s, p);
    if (is_announced(s, "ibus") || is_configured(p, "ibus")) {
        run_command(s, p, ibus, name, size);
        /* ibus prints "No engine is set." */
        active = *name && strncmp(name, "xkb:", 4) != 0 && !strchr(name, ' ');
    }
    if (!active && (is_announced(s, "fcitx") || is_configured(p, "fcitx"))) {
        run_command(s, p, fcitx, name, size);
        if (!strcmp(name, "2")) { /* 1: inactive, keys pass unchanged */
            run_command(s, p, fcitx_name, name, size);
            active = strncmp(name, "keyboard-", 9) != 0;
        }
    }
    free(p);
    return active;
}
