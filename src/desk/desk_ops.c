/* desk_ops.c - operations on an open desk. */
#include "desk/private.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/lock.h"
#include "base/regex.h"
#include "screen/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    POLL_MS = 50,
    ANSWER_MS = 15000,
    COMMAND_LINE = 4096,
    OUTPUT_MAX = 16 << 20,
    SAID_BYTES = 64 << 10,
    LINE_MAX_SHOWN = 300,
    TITLES_MAX = 300
};

/* Sends d->out and waits for the answer in d->in.  The caller holds d->lock.  Returns -1 with e. */
static int send_request(struct desk *d, struct err *e)
{
    int rc = msg_send(d->socket, &d->out, -1) ? -1 : desk_answer(d, ANSWER_MS);
    if (rc < 0)
        return desk_lost(d, e);
    if (rc == 0)
        return err_set(e, ERR_ENV, "the supervisor of desktop '%s' does not answer", d->display);
    if (d->in.kind == MSG_FAILED)
        return err_set(e, (enum err_kind)d->in.number, "%s", d->in.text);
    return 0;
}

int desk_start(struct desk *d, const char *command, struct err *e)
{
    LOCKED(&d->lock);
    msg_clear(&d->out, MSG_START, ++d->seq);
    return msg_put(&d->out, command) ? err_set(e, ERR_USAGE, "a command is longer than %d bytes", MSG_TEXT)
                                     : send_request(d, e);
}

enum desk_state desk_state(struct desk *d, char *what, size_t size)
{
    struct err e = ERR_INIT;
    enum desk_state state = DESK_NO_SUPERVISOR;
    pthread_mutex_lock(&d->lock);
    msg_clear(&d->out, MSG_STATE, ++d->seq);
    if (send_request(d, &e) == 0 && d->in.kind == MSG_STATE_REPLY) {
        state = (enum desk_state)d->in.number;
        err_set(&e, ERR_ENV, "%s", d->in.len ? d->in.text : "");
    }
    pthread_mutex_unlock(&d->lock);
    if (size)
        snprintf(what, size, "%s", e.text);
    return state;
}

void desk_log(struct desk *d, struct buf *out, size_t most)
{
    log_tail(d->dir, "programs.log", out, most);
}

void desk_clear_log(struct desk *d)
{
    char path[sizeof d->dir + 24];
    snprintf(path, sizeof path, "%s/programs.log.1", d->dir);
    unlink(path);
    *strrchr(path, '.') = 0;
    if (truncate(path, 0)) /* the supervisor appends to it */
        warn("%s: %s", path, strerror(errno));
}

struct wanted {
    struct regex *re;  /* NULL: any window */
    struct buf titles; /* titles of the windows that do not match, for the message */
};

static bool title_matches(void *arg, const char *title, const char *class)
{
    struct wanted *w = arg;
    if (!w->re || (*title && regex_find(w->re, title, strlen(title)) == 1))
        return true;
    buf_printf(&w->titles, "%s'%s'", w->titles.len ? ", " : "", title);
    return false;
}

static int window_timeout(const struct wanted *w, const char *pattern, double seconds, struct err *e)
{
    const char *more = w->titles.full ? " ..." : "";
    return err_set(e, ERR_ENV, "no window%s%.200s%s within %g s; open windows: %s%s",
                   pattern ? " whose title matches '" : "", pattern ? pattern : "", pattern ? "'" : "",
                   seconds, w->titles.len ? w->titles.data : "none", more);
}

static int find_window(struct screen *s, struct wanted *w, struct err *e)
{
    buf_clear(&w->titles);
    return screen_each_window(s, title_matches, w, e);
}

/* Returns 0 if the wait should continue, or -1 with the reason. */
static int check_waiting(struct desk *d, const volatile int *cancel, struct err *e)
{
    char what[ERR_TEXT];
    if (desk_state(d, what, sizeof what) != DESK_OK)
        return err_set(e, ERR_ENV, "%s", what);
    return flag_up(cancel) ? err_set(e, ERR_STOPPED, "stopped while waiting for a window") : 0;
}

int desk_wait_window(struct desk *d, const char *pattern, double seconds, const volatile int *cancel,
                     struct err *e)
{
    int64_t start = clock_ns();
    struct wanted w = {.re = pattern ? regex_new(pattern, false, e) : NULL};
    if (pattern && !w.re)
        return err_prefix(e, "window pattern");
    buf_init(&w.titles, TITLES_MAX);
    struct screen *s = screen_open(&(struct screen_options){.display = d->display}, e);
    int found = s ? 0 : -1;
    while (found >= 0 && (found = find_window(s, &w, e)) == 0) {
        if (check_waiting(d, cancel, e))
            found = -1;
        else if (clock_ms_since(start) > seconds * 1000)
            found = window_timeout(&w, pattern, seconds, e);
        else
            clock_sleep_ms(POLL_MS);
    }
    if (found < 0 && e && e->kind == ERR_ENV) { /* the supervisor knows why a display was lost */
        char what[ERR_TEXT];
        if (desk_state(d, what, sizeof what) != DESK_OK)
            err_set(e, ERR_ENV, "%s", what);
    }
    screen_close(s);
    regex_free(w.re);
    buf_free(&w.titles);
    return found < 0 ? -1 : 0;
}

static int read_output(struct desk *d, size_t n, struct buf *output)
{
    for (size_t got = 0; got < n; got += d->in.len) {
        if (desk_answer(d, ANSWER_MS) <= 0 || d->in.kind != MSG_OUTPUT || !d->in.len)
            return -1;
        if (output)
            buf_put(output, d->in.text, d->in.len);
    }
    return 0;
}

/* Waits until the command has ended; the supervisor ends it on cancel and at the deadline.  The caller holds
 * d->lock.  Returns -1 with e. */
static int wait_command(struct desk *d, const char *command, double seconds, const volatile int *cancel,
                        int *exit_code, struct buf *output, struct err *e)
{
    int64_t start = clock_ns();
    bool cancelled = false;
    int rc;
    while ((rc = desk_answer(d, POLL_MS)) == 0) {
        if (flag_up(cancel) && !cancelled) {
            msg_clear(&d->out, MSG_CANCEL, d->seq);
            msg_send(d->socket, &d->out, -1);
            cancelled = true;
            start = clock_ns();
        }
        if (clock_ms_since(start) > (cancelled ? 0 : seconds * 1000) + ANSWER_MS)
            return err_set(e, ERR_ENV, "the supervisor of desktop '%s' does not answer", d->display);
    }
    if (rc < 0)
        return desk_lost(d, e);
    if (d->in.kind != MSG_DONE)
        return err_set(e, (enum err_kind)d->in.number, "%s", d->in.text);
    int code = d->in.number, why = d->in.flags;
    if (read_output(d, (size_t)d->in.detail, output))
        return desk_lost(d, e);
    if (exit_code)
        *exit_code = code;
    if (why == ERR_TIME)
        return err_set(e, ERR_TIME, "'%s' was still running after %g s", command, seconds);
    if (why)
        return err_set(e, (enum err_kind)why, "'%s' was stopped", command);
    return 0;
}

void desk_set_env(struct desk *d, const char *const *env)
{
    d->env = env;
}

int desk_run(struct desk *d, const char *command, const char *const *env, double seconds,
             const volatile int *cancel, int *exit_code, struct buf *output, struct err *e)
{
    if (output)
        buf_clear(output);
    LOCKED(&d->lock);
    struct msg *m = &d->out;
    msg_clear(m, MSG_RUN, ++d->seq);
    size_t most = output ? output->max : 0;
    m->number = most < OUTPUT_MAX ? (int)most : OUTPUT_MAX;
    m->seconds = seconds < 1e6 ? seconds : 1e6;
    bool full = msg_put(m, command);
    for (const char *const *v = d->env; v && *v; v++)
        full = full || msg_put(m, *v);
    for (const char *const *v = env; v && *v; v++)
        full = full || msg_put(m, *v);
    int rc;
    if (full)
        rc = err_set(e, ERR_USAGE, "a command and its variables are longer than %d bytes", MSG_TEXT);
    else if (msg_send(d->socket, m, -1))
        rc = desk_lost(d, e);
    else
        rc = wait_command(d, command, m->seconds, cancel, exit_code, output, e);
    return rc;
}

int desk_run_all(struct desk *d, const char *const *commands, const char *when, double seconds,
                 const volatile int *cancel, struct buf *said, struct err *e)
{
    int rc = 0;
    for (; commands && *commands && rc == 0; commands++) {
        autobuf own = buf_of(SAID_BYTES);
        int code = 0;
        struct buf *output = said ? said : &own;
        rc = desk_run(d, *commands, NULL, seconds, cancel, &code, output, e);
        if (rc == 0 && code) {
            size_t len;
            const char *line = text_last_line(output->data, output->len, &len);
            rc = err_set(e, ERR_ENV, "%s '%s' has ended (exit code %d; output: %s%.*s)", when, *commands,
                         code, len ? "" : "none", (int)(len < LINE_MAX_SHOWN ? len : LINE_MAX_SHOWN), line);
        }
    }
    if (rc == 0 && said)
        buf_clear(said);
    return rc;
}

/* Reads the arguments of a process, joined by spaces and not NUL-terminated; returns the length. */
static size_t command_line(pid_t pid, char text[COMMAND_LINE])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, COMMAND_LINE);
    if (fd >= 0)
        close(fd);
    while (n > 0 && !text[n - 1])
        n--;
    for (ssize_t i = 0; i < n; i++)
        if (!text[i])
            text[i] = ' ';
    return n > 0 ? (size_t)n : 0;
}

int desk_processes(struct desk *d, const char *pattern, struct err *e)
{
    struct regex *re = regex_new(pattern, false, e);
    if (!re)
        return err_prefix(e, "process pattern");
    struct proc *list;
    int n = procs_below(d->pids[0], &list), count = 0;
    for (int i = 0; i < n; i++) {
        char text[COMMAND_LINE];
        bool ours = list[i].zombie || list[i].pid == d->pids[1] || list[i].pid == d->pids[2] ||
                    procs_is_service(list[i].pid);
        size_t len = ours ? 0 : command_line(list[i].pid, text);
        if (len && regex_find(re, text, len) == 1)
            count++;
    }
    free(list);
    regex_free(re);
    return count;
}
