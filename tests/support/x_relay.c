/* x_relay.c - see x_relay.h. One thread serves all connections; it notices its end within one poll. */
#include "x_relay.h"
#include "check.h"

#include "base/clock.h"

#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PAIRS = 8, HEAD = 40, POLL_MS = 50, PATIENCE_MS = 20000 };

static socklen_t address(struct sockaddr_un *at, const char *display)
{
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(at->sun_path + 1, sizeof at->sun_path - 1, "/tmp/.X11-unix/X%s", display + 1);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int connect_to(const char *display)
{
    struct sockaddr_un at;
    socklen_t len = address(&at, display);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, len), 0);
    return fd;
}

/* Copies data; returns false if the connection has ended. */
static bool pass(struct x_relay *r, int from, int to, bool from_server)
{
    char data[1 << 16];
    ssize_t n = recv(from, data, sizeof data, 0);
    if (n <= 0)
        return false;
    if (from_server && r->cut && n >= r->cut) {
        n = HEAD;
        r->frozen = true;
    }
    for (ssize_t at = 0, m; at < n; at += m)
        if ((m = send(to, data + at, (size_t)(n - at), MSG_NOSIGNAL)) <= 0)
            return false;
    return true;
}

static void *relay(void *arg)
{
    struct x_relay *r = arg;
    struct pollfd p[1 + 2 * PAIRS] = {{.fd = r->listening, .events = POLLIN}};
    for (int i = 1; i <= 2 * PAIRS; i++)
        p[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    while (!r->end) {
        int ready = r->frozen ? (clock_sleep_ms(POLL_MS), 0) : poll(p, 1 + 2 * PAIRS, POLL_MS);
        for (int i = 1; ready > 0 && !r->frozen && i <= 2 * PAIRS; i += 2)
            for (int k = 0; k < 2 && p[i].fd >= 0 && !r->frozen; k++)
                if (p[i + k].revents && !pass(r, p[i + k].fd, p[i + !k].fd, k == 1)) {
                    close(p[i].fd);
                    close(p[i + 1].fd);
                    p[i].fd = p[i + 1].fd = -1;
                }
        for (int i = 1; ready > 0 && p[0].revents && i <= 2 * PAIRS; i += 2)
            if (p[i].fd < 0) {
                p[i].fd = accept4(r->listening, NULL, NULL, SOCK_CLOEXEC);
                p[i + 1].fd = connect_to(r->server);
                p[i].revents = p[i + 1].revents = 0;
                break;
            }
    }
    for (int i = 1; i <= 2 * PAIRS; i++)
        if (p[i].fd >= 0)
            close(p[i].fd);
    return NULL;
}

void x_relay_open(struct x_relay *r, const struct xvfb *x)
{
    struct sockaddr_un at;
    *r = (struct x_relay){.server = x->display};
    r->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failed = -1;
    for (int n = 20000 + (int)(getpid() % 10000); failed && n < 40000; n++) {
        snprintf(r->display, sizeof r->display, ":%d", n);
        socklen_t len = address(&at, r->display);
        failed = bind(r->listening, (struct sockaddr *)&at, len);
    }
    assert_int_equal(failed, 0);
    assert_int_equal(listen(r->listening, PAIRS), 0);
    assert_int_equal(pthread_create(&r->thread, NULL, relay, r), 0);
}

void x_relay_wait_frozen(struct x_relay *r)
{
    for (int64_t start = clock_ns(); !r->frozen && clock_ms_since(start) < PATIENCE_MS;)
        clock_sleep_ms(5);
    assert_true(r->frozen);
}

void x_relay_close(struct x_relay *r)
{
    r->end = true;
    pthread_join(r->thread, NULL);
    close(r->listening);
}
