/* xvfb.c - see xvfb.h. */
#include "xvfb.h"
#include "place.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/regex.h"
#include "base/utf8.h"
#include "screen/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 40000 }; /* loaded machines are slow */

bool program_exists(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
    for (char *save, *dir = strtok_r(path, ":", &save); dir; dir = strtok_r(NULL, ":", &save)) {
        char file[5000];
        snprintf(file, sizeof file, "%s/%s", dir, name);
        if (access(file, X_OK) == 0)
            return true;
    }
    return false;
}

bool zenity_fits(void)
{
    if (!program_exists("zenity"))
        return false;
    bool newer = system("zenity --version 2>/dev/null | grep -q '^[4-9]'") == 0;
    if (newer)
        printf("           zenity has GTK 4, whose dialogs differ\n");
    return !newer;
}

const char *helper_path(const char *name)
{
    static char path[4096];
    char *dir = file_exe_dir();
    snprintf(path, sizeof path, "%s/../helpers/%s", dir, name);
    free(dir);
    return path;
}

/* A failed assertion skips xvfb_stop(): the remaining programs are killed at exit. */
enum { MAX_STARTED = 256 };
static pid_t started[MAX_STARTED];
static int n_started;

static void end_all(void)
{
    for (int i = 0; i < n_started; i++)
        if (waitpid(started[i], NULL, WNOHANG) == 0) {
            kill(-started[i], SIGKILL);
            kill(started[i], SIGKILL);
            waitpid(started[i], NULL, 0); /* it may still write files that are about to be removed */
        }
}

static pid_t start(const char *const *argv, const char *log, int keep_fd)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid > 0) {
        if (!n_started)
            atexit(end_all);
        if (n_started < MAX_STARTED)
            started[n_started++] = pid;
    }
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0); /* helpers of a browser end with it */
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600), none = open("/dev/null", O_RDONLY);
    dup2(none, 0);
    dup2(fd, 1);
    dup2(fd, 2);
    for (int i = 3; i < 256; i++)
        if (i != keep_fd)
            close(i);
    execvp(argv[0], (char *const *)argv);
    _exit(127);
}

void process_end(pid_t pid)
{
    if (pid <= 0)
        return;
    kill(-pid, SIGTERM);
    for (int i = 0; i < 200; i++) {
        if (waitpid(pid, NULL, WNOHANG) != 0) {
            kill(-pid, SIGKILL); /* children that remain */
            return;
        }
        clock_sleep_ms(10);
    }
    kill(-pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Writes an Xauthority entry for every host and display: family 0xffff, empty address and number. */
static void write_cookie(const char *path)
{
    unsigned char entry[6 + 2 + 18 + 2 + 16] = {0xff, 0xff, 0, 0, 0, 0, 0, 18};
    memcpy(entry + 8, "MIT-MAGIC-COOKIE-1", 18);
    entry[27] = 16;
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, entry + 28, 16) != 16)
        die(ERR_ENV, "no random bytes");
    close(fd);
    file_write(path, entry, sizeof entry, NULL);
}

static int read_number(int fd, char *out, size_t size)
{
    size_t n = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (n + 1 < size && poll(&p, 1, 20000) > 0 && read(fd, out + n, 1) == 1 && out[n] != '\n')
        n++;
    out[n] = 0;
    return n ? 0 : -1;
}

void xvfb_folder(struct xvfb *x)
{
    *x = (struct xvfb){0};
    if (!mkdtemp(place_template(x->dir)))
        die(ERR_ENV, "cannot make folder '%s': %s", x->dir, strerror(errno));
}

/* first: server whose cookie is accepted as well; NULL: a new cookie. */
static int start_server(struct xvfb *x, const char *screen, const char *const *extra,
                        const struct xvfb *first)
{
    *x = (struct xvfb){0};
    if (!program_exists("Xvfb")) {
        printf("           Xvfb is not installed\n");
        return -1;
    }
    xvfb_folder(x);
    char auth[96], log[96], number[16], fd_text[16];
    snprintf(auth, sizeof auth, "%s/auth", first ? first->dir : x->dir);
    snprintf(log, sizeof log, "%s/xvfb.log", x->dir);
    if (!first)
        write_cookie(auth);

    int fds[2];
    if (pipe(fds))
        die(ERR_ENV, "cannot make a pipe: %s", strerror(errno));
    snprintf(fd_text, sizeof fd_text, "%d", fds[1]);
    const char *argv[32] = {"Xvfb", "-displayfd", fd_text, "-screen", "0",         screen,
                            "-dpi", "96",         "-auth", auth,      "-nolisten", "tcp"};
    int n = 12;
    for (; extra && *extra && n < 31; extra++)
        argv[n++] = *extra;
    x->server = start(argv, log, fds[1]);
    close(fds[1]);
    int failed = read_number(fds[0], number, sizeof number);
    close(fds[0]);
    if (failed) {
        printf("           Xvfb did not start\n");
        xvfb_stop(x);
        return -1;
    }
    snprintf(x->display, sizeof x->display, ":%.10s", number);
    return 0;
}

int xvfb_start(struct xvfb *x, const char *screen, const char *const *extra)
{
    char auth[96];
    if (start_server(x, screen, extra, NULL))
        return -1;
    snprintf(auth, sizeof auth, "%s/auth", x->dir);
    setenv("DISPLAY", x->display, 1);
    setenv("XAUTHORITY", auth, 1);
    setenv("XDG_RUNTIME_DIR", x->dir, 1);
    setenv("HOME", x->dir, 1);
    unsetenv("WAYLAND_DISPLAY");
    return 0;
}

int xvfb_start_beside(struct xvfb *x, const char *screen, const struct xvfb *first)
{
    return start_server(x, screen, NULL, first);
}

/* A killed server leaves its socket; another server may have taken its number by now. */
static void remove_socket(const struct xvfb *x)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "/tmp/.X11-unix/X%s", x->display + 1);
    if (x->display[0] && connect(fd, (struct sockaddr *)&a, sizeof a) && errno == ECONNREFUSED)
        unlink(a.sun_path);
    close(fd);
}

void xvfb_kill_server(struct xvfb *x)
{
    if (x->server > 0) {
        kill(x->server, SIGKILL);
        waitpid(x->server, NULL, 0);
        remove_socket(x);
    }
    x->server = 0;
}

void xvfb_stop(struct xvfb *x)
{
    while (x->n_children > 0)
        process_end(x->children[--x->n_children]);
    if (x->server > 0) {
        process_end(x->server);
        remove_socket(x);
    }
    x->server = 0;
    if (x->dir[0])
        place_remove(x->dir);
    x->dir[0] = 0;
}

pid_t xvfb_spawn(struct xvfb *x, const char *log, const char *const *argv)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", x->dir, log);
    pid_t pid = start(argv, path, -1);
    if (pid > 0 && x->n_children < (int)(sizeof x->children / sizeof *x->children))
        x->children[x->n_children++] = pid;
    return pid;
}

int xvfb_run(struct xvfb *x, const char *const *argv)
{
    int status = -1;
    pid_t pid = xvfb_spawn(x, "run.log", argv);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    x->n_children--;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int xvfb_window_manager(struct xvfb *x)
{
    static const char *const argv[] = {"openbox", "--sm-disable", NULL};
    if (!program_exists("openbox"))
        return -1;
    xvfb_spawn(x, "openbox.log", argv);
    struct screen_options o = {.display = x->display};
    struct screen *s = screen_open(&o, NULL);
    for (int ms = 0; s && ms < PATIENCE_MS && !screen_has_window_manager(s); ms += 10)
        clock_sleep_ms(10);
    screen_close(s);
    return 0;
}

struct by_title {
    struct regex *regex;
    char *title;
    size_t size;
};

static bool has_title(void *arg, const char *title, const char *class)
{
    struct by_title *t = arg;
    if (!*title || regex_find(t->regex, title, strlen(title)) != 1)
        return false;
    if (t->title && t->size) {
        snprintf(t->title, t->size, "%s", title);
        t->title[utf8_valid_prefix(t->title, strlen(t->title))] = 0;
    }
    return true;
}

int xvfb_find_window(struct screen *s, const char *pattern, char *title, size_t title_size, struct err *e)
{
    if (title && title_size)
        title[0] = 0;
    struct by_title t = {regex_new(pattern, false, e), title, title_size};
    if (!t.regex)
        return err_prefix(e, "window pattern");
    int found = screen_each_window(s, has_title, &t, e);
    regex_free(t.regex);
    return found;
}

bool xvfb_wait_window(struct xvfb *x, const char *pattern)
{
    struct screen_options o = {.display = x->display};
    struct screen *s = screen_open(&o, NULL);
    int found = 0;
    for (int ms = 0; s && ms < PATIENCE_MS && found == 0; ms += 50) {
        found = xvfb_find_window(s, pattern, NULL, 0, NULL);
        if (!found)
            clock_sleep_ms(50);
    }
    screen_close(s);
    return found == 1;
}
