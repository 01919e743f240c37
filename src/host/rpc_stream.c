/* rpc_stream.c - see rpc_stream.h.
 *
 * The descriptors stay blocking, because other processes may share them.  Input is read only after poll() has
 * announced it.  A write to a pipe has at most PIPE_BUF bytes, which do not block once poll() has reported
 * the pipe as writable; a socket gets MSG_DONTWAIT. */
#include "host/rpc_stream.h"

#include "base/clock.h"
#include "base/flag.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10, LOOK_MS = 200, FD_FROM = 16 };

int rpc_stream_take(int *in, int *out, struct err *e)
{
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    *in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, FD_FROM);
    *out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, FD_FROM);
    if (none < 0 || *in < 0 || *out < 0 || dup2(none, STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return err_set(e, ERR_ENV, "cannot take over stdin and stdout: %s", strerror(errno));
    close(none);
    return 0;
}

static ssize_t write_some(int fd, const char *data, size_t n)
{
    ssize_t done = send(fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done < 0 && errno == ENOTSOCK)
        done = write(fd, data, n < PIPE_BUF ? n : PIPE_BUF);
    return done;
}

/* Writes output once.  Returns -1 if nobody reads any more. */
static int write_output(const struct rpc_stream *s)
{
    size_t n;
    const char *data = rpc_output(s->rpc, &n);
    if (!n)
        return 0;
    ssize_t done = write_some(s->out, data, n);
    if (done > 0)
        rpc_written(s->rpc, (size_t)done);
    return done >= 0 || errno == EAGAIN || errno == EINTR ? 0 : -1;
}

/* Reads input once.  Returns 1, 0 at the end of the input, -1 if it cannot be read. */
static int read_input(const struct rpc_stream *s)
{
    static char data[READ_BYTES]; /* static: a process has one stream */
    ssize_t n = read(s->in, data, sizeof data);
    if (n > 0)
        rpc_feed(s->rpc, data, (size_t)n);
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)) ? 1 : (int)n;
}

static int wait_ms(const struct rpc_stream *s)
{
    int due = s->due ? s->due(s->arg) : -1;
    return due < 0 || due > LOOK_MS ? LOOK_MS : due; /* a signal may arrive just before poll() */
}

int rpc_stream_run(const struct rpc_stream *s, struct err *e)
{
    while (!flag_up(s->stop)) {
        size_t waiting;
        rpc_output(s->rpc, &waiting);
        struct pollfd p[] = {{.fd = s->in, .events = POLLIN},
                             {.fd = s->wake, .events = POLLIN},
                             {.fd = waiting ? s->out : -1, .events = POLLOUT}};
        if (poll(p, 3, wait_ms(s)) < 0 && errno != EINTR)
            return err_set(e, ERR_ENV, "cannot wait for input: %s", strerror(errno));
        int got = p[0].revents ? read_input(s) : 1;
        if (p[1].revents)
            s->woken(s->arg);
        if (s->due && s->due(s->arg) == 0)
            s->tick(s->arg);
        if (got == 0) {
            rpc_end(s->rpc);
            return 0;
        }
        if (got < 0)
            return err_set(e, ERR_ENV, "cannot read from stdin: %s", strerror(errno));
        if (p[2].revents && write_output(s))
            return err_set(e, ERR_ENV, "cannot write to stdout: %s", strerror(errno));
        if (rpc_clogged(s->rpc))
            return err_set(e, ERR_ENV, "the other program does not read its input: %d MiB are pending",
                           RPC_OUTPUT_MAX >> 20);
    }
    return 0;
}

void rpc_stream_finish(const struct rpc_stream *s, double ms)
{
    int64_t start = clock_ns();
    size_t n;
    while (rpc_output(s->rpc, &n) && n && clock_ms_since(start) < ms) {
        struct pollfd p = {.fd = s->out, .events = POLLOUT};
        if (poll(&p, 1, LOOK_MS) > 0 && write_output(s))
            return;
    }
}
