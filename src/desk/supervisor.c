/* supervisor.c - the process that owns one desk.
 *
 * All processes of the desk are its descendants, and their orphans become its children (it is a subreaper):
 * the desk has ended when the supervisor has no children.  It serves one socket.  When the socket is closed,
 * the owner is gone, or on MSG_CLOSE, it sends TERM, then KILL to the programs; TERM, then KILL to window
 * manager, server and all other children; then it removes display lock and directory. */
#include "desk/private.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRACE_MS = 500, KILL_MS = 10000, OUTPUT_CHUNK = 64 * 1024 };

static struct msg options, in, out; /* static: one supervisor per process */

/* ---- answers ---------------------------------------------------------------------------------- */

static void answer(enum msg_kind kind, int number, const char *text)
{
    msg_clear(&out, kind, in.seq);
    out.number = number;
    if (text)
        msg_put(&out, text);
    msg_send(FD_SOCKET, &out, -1);
}

__attribute__((format(printf, 2, 3))) static void fail(enum err_kind kind, const char *fmt, ...)
{
    char text[ERR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    answer(MSG_FAILED, kind, text);
}

/* such as "exit code 1; output: cannot open display" or "signal 11, SIGSEGV" */
const char *supervisor_how_ended(const struct supervisor *k, const struct process *p, const char *log)
{
    static char text[400];
    char line[300];
    const char *name = WIFSIGNALED(p->status) ? sigabbrev_np(WTERMSIG(p->status)) : NULL;
    int n = WIFSIGNALED(p->status) ? snprintf(text, sizeof text, "signal %d%s%s", WTERMSIG(p->status),
                                              name ? ", SIG" : "", name ? name : "")
                                   : snprintf(text, sizeof text, "exit code %d", WEXITSTATUS(p->status));
    log_last_line(k->context.dir, log, line, sizeof line);
    if (*line)
        snprintf(text + n, sizeof text - (size_t)n, "; output: %s", line);
    return text;
}

/* ---- streams and children --------------------------------------------------------------------- */

static struct stream *new_stream(struct supervisor *k)
{
    for (int i = 0; i < STREAMS; i++)
        if (k->streams[i].fd < 0 && !k->streams[i].ring)
            return &k->streams[i];
    errno = EMFILE;
    return NULL;
}

void supervisor_drain(struct supervisor *k)
{
    for (int i = 0; i < STREAMS; i++)
        stream_drain(&k->streams[i]);
}

static void note_end(struct process *p, pid_t pid, int status)
{
    if (p->pid == pid && !p->ended) {
        p->ended = true;
        p->status = status;
    }
}

static void reap(struct supervisor *k)
{
    struct signalfd_siginfo infos[16];
    int status;
    while (read(k->signals, infos, sizeof infos) > 0)
        ;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        note_end(&k->server, pid, status);
        note_end(&k->bus, pid, status);
        note_end(&k->wake, pid, status);
        note_end(&k->wm, pid, status);
        note_end(&k->run.p, pid, status);
        for (int i = 0; i < k->n_programs; i++)
            note_end(&k->programs[i], pid, status);
    }
}

int supervisor_wait(struct supervisor *k, int extra, bool messages, int ms)
{
    struct pollfd p[4 + STREAMS] = {
        {.fd = FD_SOCKET, .events = messages ? POLLIN | POLLRDHUP : POLLRDHUP},
        {.fd = k->zygote_args->owner, .events = POLLIN},
        {.fd = k->signals, .events = POLLIN},
        {.fd = extra, .events = POLLIN},
    };
    struct stream *streams[STREAMS];
    int n = 0;
    for (int i = 0; i < STREAMS; i++) /* only open ones: poll() rejects more than RLIMIT_NOFILE entries */
        if (k->streams[i].fd >= 0) {
            p[4 + n] = (struct pollfd){.fd = k->streams[i].fd, .events = POLLIN};
            streams[n++] = &k->streams[i];
        }
    if (poll(p, 4 + (nfds_t)n, ms) < 0)
        return 0;
    for (int i = 0; i < n; i++)
        if (p[4 + i].revents)
            stream_drain(streams[i]);
    if (p[2].revents)
        reap(k);
    int what = p[1].revents & POLLIN ? SUPERVISOR_GONE : 0;
    if (p[0].revents & POLLIN)
        what |= SUPERVISOR_MESSAGE;
    else if (p[0].revents & (POLLHUP | POLLRDHUP | POLLERR))
        what |= SUPERVISOR_GONE;
    return what | (p[3].revents ? SUPERVISOR_EXTRA : 0);
}

int supervisor_start(struct supervisor *k, struct process *p, struct child_options *h, struct log *log,
                     size_t ring, struct stream **stream)
{
    struct stream *s = new_stream(k);
    h->out = s ? stream_open(s, log, ring) : -1;
    if (h->out < 0)
        return -1;
    pid_t pid = child_start(&k->context, h);
    int why = errno;
    close(h->out);
    if (pid < 0) {
        stream_drain(s);
        stream_drop_ring(s);
        errno = why;
        return -1;
    }
    *p = (struct process){.pid = pid};
    snprintf(p->command, sizeof p->command, "%s", h->shell ? h->shell : h->argv[0]);
    if (stream)
        *stream = s;
    return 0;
}

static void term(pid_t pid)
{
    pid_t group = getpgid(pid);
    kill(group > 1 && group != getpgrp() ? -group : pid, SIGTERM);
}

/* Sends TERM to the children and waits at most GRACE_MS until they are gone. */
static void terminate_children(struct supervisor *k, bool server_too)
{
    int64_t begin = clock_ns();
    for (bool first = true;; first = false) {
        pid_t *list;
        int n = procs_children(&list), left = 0;
        for (int i = 0; i < n; i++) {
            bool ours = list[i] == k->server.pid || list[i] == k->wm.pid || list[i] == k->bus.pid;
            if (ours && !server_too)
                continue;
            left++;
            if (first)
                term(list[i]);
        }
        free(list);
        if (!left || clock_ms_since(begin) > GRACE_MS)
            return;
        struct pollfd p = {.fd = k->signals, .events = POLLIN};
        poll(&p, 1, 20);
        reap(k);
    }
}

_Noreturn void supervisor_end(struct supervisor *k)
{
    const pid_t spare[] = {k->server.pid, k->wm.pid, k->bus.pid}; /* programs end before their display */
    setpriority(PRIO_PROCESS, 0, -20); /* if permitted: many supervisors may end at once */
    terminate_children(k, false);
    procs_kill_children(spare, 3, KILL_MS);
    terminate_children(k, true);
    bool all = procs_kill_children(NULL, 0, KILL_MS);
    if (k->number >= 0)
        server_release(k->number);
    all &= folder_remove(k->context.dir);
    _exit(all ? 0 : 1);
}

/* ---- opening ---------------------------------------------------------------------------------- */

static void open_desk(struct supervisor *k)
{
    struct err e = ERR_INIT;
    memcpy(&options, &in, offsetof(struct msg, text) + in.len);
    if (supervisor_open(k, &options, &e)) {
        answer(MSG_FAILED, e.kind, e.text);
        supervisor_end(k);
    }
    msg_clear(&out, MSG_READY, in.seq);
    out.number = k->number;
    out.pids[0] = getpid();
    out.pids[1] = k->server.pid;
    out.pids[2] = k->wm.pid;
    msg_send(FD_SOCKET, &out, -1);
}

/* ---- programs and commands -------------------------------------------------------------------- */

static void start_program(struct supervisor *k)
{
    size_t at = 0;
    struct child_options h = {.shell = msg_next(&in, &at), .keep = -1, .oom = OOM_PROGRAM};
    if (!h.shell || k->n_programs == PROGRAMS)
        fail(ERR_ENV, "more than %d programs on one desktop", PROGRAMS);
    else if (supervisor_start(k, &k->programs[k->n_programs], &h, &k->programs_log, 0, NULL))
        fail(ERR_ENV, "cannot start '%s': %s", h.shell, strerror(errno));
    else
        answer(MSG_READY, k->n_programs++, NULL);
}

static void run_command(struct supervisor *k)
{
    size_t at = 0;
    struct child_options h = {.shell = msg_next(&in, &at), .keep = -1, .oom = OOM_PROGRAM, .env = &in};
    h.env_at = at;
    snprintf(k->run.mark, sizeof k->run.mark, "HOLORUN_COMMAND=%d", ++k->run.count);
    h.mark = k->run.mark;
    if (!h.shell || k->run.p.pid) {
        fail(ERR_ENV, "a command is still running on this desktop");
        return;
    }
    if (supervisor_start(k, &k->run.p, &h, &k->programs_log, in.number > 0 ? (size_t)in.number : 0,
                         &k->run.stream)) {
        k->run.p.pid = 0;
        fail(ERR_ENV, "cannot run '%s': %s", h.shell, strerror(errno));
        return;
    }
    k->run.seq = in.seq;
    k->run.deadline = clock_ns() + (int64_t)(in.seconds * 1e9);
}

/* Reports the end of a command with its output.  Later output of its children goes into the log. */
static void command_done(struct supervisor *k, enum err_kind why)
{
    int status = k->run.p.status;
    struct stream *s = k->run.stream;
    stream_drain(s);
    size_t n = s->ring_total < s->ring_size ? s->ring_total : s->ring_size;
    msg_clear(&out, MSG_DONE, k->run.seq);
    out.number = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    out.detail = (int)n;
    out.flags = (int)why;
    int rc = msg_send(FD_SOCKET, &out, -1);
    for (size_t from = 0; from < n && rc == 0; from += out.len) {
        msg_clear(&out, MSG_OUTPUT, k->run.seq);
        out.len = stream_ring(s, out.text, from, OUTPUT_CHUNK);
        rc = msg_send(FD_SOCKET, &out, -1);
    }
    stream_drop_ring(s);
    k->run.p.pid = 0;
}

static void end_command(struct supervisor *k, enum err_kind why)
{
    term(k->run.p.pid);
    int64_t begin = clock_ns();
    while (!k->run.p.ended && clock_ms_since(begin) < GRACE_MS / 2.0)
        if (supervisor_wait(k, -1, false, 20) & SUPERVISOR_GONE)
            supervisor_end(k);
    if (!k->run.p.ended)
        kill(-k->run.p.pid, SIGKILL);
    procs_kill_command(k->run.p.pid, k->run.mark, KILL_MS);
    reap(k);
    command_done(k, why);
}

/* Returns whether processes other than server, window manager and services of the buses run. */
static bool programs_live(const struct supervisor *k)
{
    struct proc *list;
    int n = procs_below(getpid(), &list);
    bool some = false;
    for (int i = 0; i < n && !some; i++) {
        pid_t pid = list[i].pid, parent = list[i].parent;
        some = !list[i].zombie && pid != k->server.pid && pid != k->wm.pid && parent != k->server.pid &&
               parent != k->wm.pid && !procs_is_service(pid);
    }
    free(list);
    return some;
}

static void send_state(struct supervisor *k)
{
    char text[ERR_TEXT] = "";
    enum desk_state state = DESK_OK;
    reap(k);
    supervisor_drain(k);
    if (k->server.ended) {
        state = DESK_NO_SERVER;
        snprintf(text, sizeof text, "the X server has ended (%s)",
                 supervisor_how_ended(k, &k->server, "server.log"));
    } else if (k->wm.ended) {
        state = DESK_NO_WM;
        snprintf(text, sizeof text, "the window manager '%.80s' has ended (%s)", k->wm.command,
                 supervisor_how_ended(k, &k->wm, "wm.log"));
    }
    for (int i = 0; i < k->n_programs && state == DESK_OK; i++) {
        const struct process *p = &k->programs[i];
        if (!p->ended || (p->status == 0 && programs_live(k)))
            continue;
        state = p->status ? DESK_NO_PROGRAM : DESK_PROGRAM_DONE;
        snprintf(text, sizeof text, "'%s' has ended (%s)", p->command,
                 supervisor_how_ended(k, p, "programs.log"));
    }
    answer(MSG_STATE_REPLY, state, text);
}

/* ---- serving ---------------------------------------------------------------------------------- */

static void serve(struct supervisor *k)
{
    int rc;
    while ((rc = msg_receive(FD_SOCKET, &in, NULL)) > 0) {
        switch (in.kind) {
        case MSG_OPEN:
            open_desk(k);
            break;
        case MSG_START:
            start_program(k);
            break;
        case MSG_RUN:
            run_command(k);
            break;
        case MSG_CANCEL:
            if (k->run.p.pid && in.seq == k->run.seq)
                end_command(k, ERR_STOPPED);
            break;
        case MSG_STATE:
            send_state(k);
            break;
        default:
            supervisor_end(k);
        }
    }
    if (rc == 0)
        supervisor_end(k);
}

void supervisor_main(const struct zygote_args *g, int n)
{
    static struct supervisor k;
    sigset_t set;
    k = (struct supervisor){.zygote_args = g, .desk = n, .number = -1};
    for (int i = 0; i < STREAMS; i++)
        k.streams[i].fd = -1;
    static char dir[DESK_PATH];
    desk_dir(dir, g->root, n);
    k.context.dir = dir;
    k.context.files = g->files;
    snprintf(k.context.mark, sizeof k.context.mark, "HOLORUN_DESK=%s", dir);
    setsid();
    prctl(PR_SET_NAME, "holorun-desk-sv");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    k.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
        double left = k.run.p.pid ? (double)(k.run.deadline - clock_ns()) / 1e6 : -1;
        int ms = !k.run.p.pid ? -1 : left > 60000 ? 60000 : left > 0 ? (int)left + 1 : 0;
        int what = supervisor_wait(&k, -1, true, ms);
        if (k.run.p.pid && k.run.p.ended)
            command_done(&k, ERR_NONE);
        else if (k.run.p.pid && clock_ns() >= k.run.deadline)
            end_command(&k, ERR_TIME);
        if (what & SUPERVISOR_MESSAGE)
            serve(&k);
        else if (what & SUPERVISOR_GONE)
            supervisor_end(&k);
    }
}
