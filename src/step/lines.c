/* lines.c - see lines.h. */
#include "step/lines.h"

#include "base/flag.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { POLL_MS = 20 };

/* Moves the first line of the buffer to `line`; false: it is not complete. */
static bool lines_take(struct lines *l, char *line)
{
    char *end = memchr(l->buf, '\n', l->n);
    size_t len = end ? (size_t)(end - l->buf) : l->n;
    if (!end && !(l->ended && l->n))
        return false;
    memcpy(line, l->buf, len);
    line[len] = 0;
    size_t gone = end ? len + 1 : len;
    memmove(l->buf, l->buf + gone, l->n - gone);
    l->n -= gone;
    return true;
}

static int lines_fill(struct lines *l, struct err *e)
{
    struct pollfd p = {l->fd, POLLIN, 0};
    if (poll(&p, 1, POLL_MS) <= 0) /* the caller checks the flag */
        return 0;
    ssize_t n = read(l->fd, l->buf + l->n, sizeof l->buf - 1 - l->n);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
        return err_set(e, ERR_ENV, "cannot read commands: %s", strerror(errno));
    l->ended = n == 0;
    l->n += n > 0 ? (size_t)n : 0;
    return 0;
}

int lines_next(struct lines *l, const volatile int *stop, char line[STEP_LINE], struct err *e)
{
    while (!lines_take(l, line)) {
        if (flag_up(stop))
            return err_set(e, ERR_STOPPED, "stopped while a step was shown");
        if (l->ended)
            return 0;
        if (l->n == sizeof l->buf - 1)
            return err_set(e, ERR_USAGE, "a command of more than %zu bytes", sizeof l->buf - 1);
        if (lines_fill(l, e))
            return -1;
    }
    return 1;
}
