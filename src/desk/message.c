/* message.c - see private.h. */
#include "desk/private.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

void msg_clear(struct msg *m, enum msg_kind kind, int seq)
{
    memset(m, 0, offsetof(struct msg, text));
    m->kind = kind;
    m->seq = seq;
}

int msg_put(struct msg *m, const char *s)
{
    size_t n = strlen(s) + 1;
    if (n > sizeof m->text - m->len)
        return -1;
    memcpy(m->text + m->len, s, n);
    m->len += n;
    return 0;
}

const char *msg_next(const struct msg *m, size_t *at)
{
    if (*at >= m->len)
        return NULL;
    const char *s = m->text + *at;
    *at += strnlen(s, m->len - *at) + 1;
    return s;
}

int msg_send(int fd, const struct msg *m, int pass)
{
    struct iovec io = {(void *)(uintptr_t)m, offsetof(struct msg, text) + m->len};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr h = {.msg_iov = &io, .msg_iovlen = 1};
    if (pass >= 0) {
        h.msg_control = control.bytes;
        h.msg_controllen = sizeof control.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&h);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &pass, sizeof pass);
    }
    ssize_t n;
    do
        n = sendmsg(fd, &h, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -1 : 0;
}

int msg_receive(int fd, struct msg *m, int *got)
{
    struct iovec io = {m, sizeof *m};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr h = {.msg_iov = &io,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = got ? sizeof control.bytes : 0};
    if (got)
        *got = -1;
    ssize_t n;
    do
        n = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return -1;
    if (n <= 0)
        return 0;
    struct cmsghdr *c = got ? CMSG_FIRSTHDR(&h) : NULL;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(got, CMSG_DATA(c), sizeof *got);
    if ((size_t)n < offsetof(struct msg, text) || m->len != (size_t)n - offsetof(struct msg, text) ||
        (m->len && m->kind != MSG_OUTPUT && m->text[m->len - 1]))
        return 0;
    return 1;
}
