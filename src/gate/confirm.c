/* confirm.c - asks the user for confirmation, at the terminal, through a command or through a host; see
 * confirm.h. */
#include "gate/confirm.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/utf8.h"

#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { POLL_MS = 20, GRACE_MS = 200, COLUMNS = 64 };

extern char **environ;

int confirm_parse(const char *text, struct confirm *out, struct err *e)
{
    static const struct {
        const char *word;
        enum confirm_method method;
    } words[] = {{"auto", CONFIRM_AUTO},
                 {"tty", CONFIRM_TTY},
                 {"never", CONFIRM_NEVER},
                 {"yes-to-all", CONFIRM_YES},
                 {CONFIRM_CALLER, CONFIRM_HOST}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!strcmp(words[i].word, text)) {
            out->method = words[i].method;
            return 0;
        }
    }
    if (!strncmp(text, "cmd:", 4) && text[4]) {
        out->method = CONFIRM_COMMAND;
        out->command = text + 4;
        return 0;
    }
    return err_set(e, ERR_USAGE,
                   "invalid --confirm '%s': expected auto, tty, never, yes-to-all, caller or cmd:COMMAND",
                   text);
}

struct wait { /* state of a question that waits for an answer */
    int64_t start;
    double seconds;
    const volatile int *stop;
};

/* Returns whether the question was stopped or has timed out, and sets *answer accordingly. */
static bool has_ended(const struct wait *w, enum confirm_answer *answer)
{
    if (flag_up(w->stop))
        *answer = CONFIRM_STOPPED;
    else if (clock_ms_since(w->start) > w->seconds * 1000)
        *answer = CONFIRM_TIMED_OUT;
    else
        return false;
    return true;
}

/* ---- the image --------------------------------------------------------------------------------------- */

enum colours { COLOURS_NONE, COLOURS_256, COLOURS_TRUE };

static enum colours colours(void)
{
    const char *no = getenv("NO_COLOR"), *depth = getenv("COLORTERM"), *term = getenv("TERM");
    if (no && *no)
        return COLOURS_NONE;
    if (depth && (strstr(depth, "truecolor") || strstr(depth, "24bit")))
        return COLOURS_TRUE;
    return term && strstr(term, "256color") ? COLOURS_256 : COLOURS_NONE;
}

static void put_colour(FILE *f, enum colours depth, int ground, const uint8_t c[3])
{
    if (depth == COLOURS_TRUE)
        fprintf(f, "\033[%d;2;%d;%d;%dm", ground, c[0], c[1], c[2]);
    else /* a colour cube of 6 x 6 x 6 */
        fprintf(f, "\033[%d;5;%dm", ground,
                16 + 36 * (c[0] * 5 / 255) + 6 * (c[1] * 5 / 255) + c[2] * 5 / 255);
}

/* Prints half blocks: the foreground colour is the upper pixel, the background colour the lower one. */
void confirm_print_picture(FILE *f, const struct image *im, int columns)
{
    enum colours depth = colours();
    int w = im->w < columns ? im->w : columns, h = w ? im->h * w / im->w : 0;
    struct image small = {0};
    if (depth == COLOURS_NONE || h < 2 || image_shrink(&small, im, w, h, NULL))
        return;
    for (int y = 0; y + 1 < h; y += 2) {
        fputs("      ", f);
        for (int x = 0; x < w; x++) {
            const uint8_t *upper = small.rgb + 3 * ((size_t)y * (size_t)w + (size_t)x);
            put_colour(f, depth, 38, upper);
            put_colour(f, depth, 48, upper + 3 * (size_t)w);
            fputs("\xe2\x96\x80", f);
        }
        fputs("\033[0m\n", f);
    }
    image_free(&small);
}

/* ---- at the terminal -------------------------------------------------------------------------- */

/* Opens the terminal. Returns -1 if there is none or this process may not read from it. */
static int open_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (fd >= 0 && tcgetpgrp(fd) != getpgrp()) { /* reading in the background would stop the process */
        close(fd);
        fd = -1;
    }
    return fd;
}

static void print_question(int fd, const struct confirm_question *q, double seconds)
{
    FILE *f = fdopen(dup(fd), "w");
    if (!f)
        return;
    fputs("\n", f);
    if (q->crop)
        confirm_print_picture(f, q->crop, COLUMNS);
    for (int i = 0; i < q->n_lines; i++) {
        fprintf(f, "%10s  ", q->lines[i].name);
        utf8_print(f, q->lines[i].text, strlen(q->lines[i].text));
        fputs("\n", f);
    }
    fprintf(f, "      May it do that? [y/N] (no in %.0f s) ", seconds);
    fclose(f);
}

static enum confirm_answer parse_answer(const char *line, size_t n)
{
    while (n && isspace((unsigned char)line[n - 1]))
        n--;
    while (n && isspace((unsigned char)*line))
        line++, n--;
    bool yes = (n == 1 && !strncasecmp(line, "y", 1)) || (n == 3 && !strncasecmp(line, "yes", 3));
    return yes ? CONFIRM_ALLOWED : CONFIRM_DECLINED;
}

static enum confirm_answer ask_terminal(int fd, const struct confirm *c, const struct confirm_question *q,
                                        const volatile int *stop)
{
    struct wait w = {clock_ns(), c->seconds, stop};
    enum confirm_answer answer = CONFIRM_DECLINED;
    char line[256];
    tcflush(fd, TCIFLUSH); /* input typed earlier is not an answer */
    print_question(fd, q, c->seconds);
    while (!has_ended(&w, &answer)) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int rc = poll(&p, 1, POLL_MS);
        if (rc <= 0)
            continue;
        ssize_t n = p.revents & POLLIN ? read(fd, line, sizeof line) : 0;
        return n > 0 ? parse_answer(line, (size_t)n) : CONFIRM_DECLINED;
    }
    dprintf(fd, "\n      %s\n", answer == CONFIRM_TIMED_OUT ? "no answer: no" : "stopped");
    return answer;
}

/* ---- through a command ------------------------------------------------------------------------------- */

/* Writes the question to an anonymous file. Returns its descriptor, or -1. */
static int question_file(const char *json)
{
    int fd = memfd_create("question", MFD_CLOEXEC);
    size_t n = strlen(json);
    if (fd >= 0 && (write(fd, json, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Starts the command in its own process group, with default signals and stdout to /dev/null. Returns -1 on
 * failure. */
static pid_t start_command(const char *command, int in)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t all, none;
    pid_t pid;
    char *const words[] = {(char[]){"sh"}, (char[]){"-c"}, xstrdup(command), NULL};
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&files, in, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (posix_spawn(&pid, "/bin/sh", &files, &attributes, words, environ))
        pid = -1;
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    free(words[2]);
    return pid;
}

/* Sends SIGTERM, and after GRACE_MS SIGKILL, to the process group. */
static void kill_command(pid_t pid)
{
    int status;
    kill(-pid, SIGTERM);
    for (int ms = 0; ms < GRACE_MS; ms += POLL_MS) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            kill(-pid, SIGKILL); /* child processes */
            return;
        }
        clock_sleep_ms(POLL_MS);
    }
    kill(-pid, SIGKILL);
    waitpid(pid, &status, 0);
}

static enum confirm_answer ask_command(const struct confirm *c, const struct confirm_question *q,
                                       const volatile int *stop)
{
    struct wait w = {clock_ns(), c->seconds, stop};
    enum confirm_answer answer = CONFIRM_NOBODY;
    int in = question_file(q->json), status = 0;
    pid_t pid = in >= 0 ? start_command(c->command, in) : -1;
    if (in >= 0)
        close(in);
    if (pid < 0)
        return CONFIRM_NOBODY;
    while (!has_ended(&w, &answer)) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            kill(-pid, SIGKILL);
            if (WIFEXITED(status) && WEXITSTATUS(status) == 127) /* command not found */
                return CONFIRM_NOBODY;
            return WIFEXITED(status) && !WEXITSTATUS(status) ? CONFIRM_ALLOWED : CONFIRM_DECLINED;
        }
        clock_sleep_ms(POLL_MS);
    }
    kill_command(pid);
    return answer;
}

/* ---- dispatch --------------------------------------------------------------------------------- */

enum confirm_answer confirm_ask(const struct confirm *c, const struct confirm_question *q,
                                const volatile int *stop, const char **who)
{
    *who = "nobody";
    switch (c->method) {
    case CONFIRM_YES:
        *who = "unattended";
        return CONFIRM_ALLOWED;
    case CONFIRM_COMMAND:
        *who = "command";
        return ask_command(c, q, stop);
    case CONFIRM_AUTO:
    case CONFIRM_TTY: {
        int fd = open_terminal();
        if (fd < 0)
            return CONFIRM_NOBODY;
        *who = "terminal";
        enum confirm_answer answer = ask_terminal(fd, c, q, stop);
        close(fd);
        return answer;
    }
    case CONFIRM_HOST:
        *who = "host";
        return c->ask(c->arg, q, c->seconds, stop);
    case CONFIRM_NEVER:
        break;
    }
    return CONFIRM_NOBODY;
}
