/* stream.c - output of programs.
 *
 * Programs write into pipes that their supervisor reads, so that endless output fills neither disk nor
 * memory: a log consists of one file of at most LOG_MAX bytes and its predecessor. */
#include "desk/private.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LOG_MAX = 1 << 20, CHUNK = 16384, CHUNKS = 16 };

int log_open(struct log *l, const char *dir, const char *name)
{
    snprintf(l->path, sizeof l->path, "%s/%s", dir, name);
    l->size = 0;
    l->fd = open(l->path, O_WRONLY | O_CREAT | O_APPEND | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return l->fd < 0 ? -1 : 0;
}

static void log_write(struct log *l, const char *data, size_t n)
{
    if (l->size + n > LOG_MAX) {
        char old[sizeof l->path + 8];
        snprintf(old, sizeof old, "%s.1", l->path);
        rename(l->path, old);
        close(l->fd);
        l->fd = open(l->path, O_WRONLY | O_CREAT | O_APPEND | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        l->size = 0;
    }
    if (l->fd >= 0 && write(l->fd, data, n) > 0) /* on a full disk output is lost */
        l->size += n;
}

int stream_open(struct stream *s, struct log *log, size_t ring_size)
{
    int fds[2];
    *s = (struct stream){.fd = -1};
    if (pipe2(fds, O_CLOEXEC))
        return -1;
    s->ring_size = ring_size;
    if (ring_size) { /* pages that are never written cost nothing */
        void *p = mmap(NULL, ring_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) {
            close(fds[0]);
            close(fds[1]);
            return -1;
        }
        s->ring = p;
    }
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    s->fd = fds[0];
    s->log = log;
    return fds[1];
}

static void ring_put(struct stream *s, const char *data, size_t n)
{
    if (n > s->ring_size) {
        s->ring_total += n - s->ring_size;
        data += n - s->ring_size;
        n = s->ring_size;
    }
    size_t at = s->ring_total % s->ring_size, first = s->ring_size - at;
    first = first < n ? first : n;
    memcpy(s->ring + at, data, first);
    memcpy(s->ring, data + first, n - first);
    s->ring_total += n;
}

/* Reads the available output, in at most CHUNKS reads, so that one stream does not block the others. */
void stream_drain(struct stream *s)
{
    char chunk[CHUNK];
    for (int i = 0; s->fd >= 0 && i < CHUNKS; i++) {
        ssize_t n = read(s->fd, chunk, sizeof chunk);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close(s->fd);
            s->fd = -1;
            return;
        }
        if (s->ring)
            ring_put(s, chunk, (size_t)n);
        else if (s->log)
            log_write(s->log, chunk, (size_t)n);
    }
}

size_t stream_ring(const struct stream *s, char *out, size_t from, size_t most)
{
    size_t have = s->ring_total < s->ring_size ? s->ring_total : s->ring_size, n = 0;
    size_t begin = s->ring_total - have;
    for (; s->ring && from + n < have && n < most; n++)
        out[n] = s->ring[(begin + from + n) % s->ring_size];
    return n;
}

void stream_drop_ring(struct stream *s)
{
    if (s->ring)
        munmap(s->ring, s->ring_size);
    s->ring = NULL;
    s->ring_size = s->ring_total = 0;
}

static ssize_t tail_of(const char *path, char *out, size_t most)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    off_t end = lseek(fd, 0, SEEK_END);
    ssize_t n = pread(fd, out, most, end > (off_t)most ? end - (off_t)most : 0);
    close(fd);
    return n > 0 ? n : 0;
}

void log_tail(const char *dir, const char *name, struct buf *out, size_t most)
{
    char path[DESK_PATH + 40];
    autofree char *text = xmalloc(most + 1, 1), *old = xmalloc(most + 1, 1);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    size_t n = (size_t)tail_of(path, text, most), before = 0;
    snprintf(path, sizeof path, "%s/%s.1", dir, name);
    if (n < most)
        before = (size_t)tail_of(path, old, most - n);
    buf_put(out, old, before);
    buf_put(out, text, n);
}

void log_last_line(const char *dir, const char *name, char *out, size_t size)
{
    char path[DESK_PATH + 40], text[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    size_t n = (size_t)tail_of(path, text, sizeof text - 1);
    const char *line = text_last_line(text, n, &n);
    snprintf(out, size, "%.*s", (int)n, line);
}
