/* frames.c - writes screenshots in a background thread; see frames.h.
 *
 * The lock protects the queue and the failure; encoding and writing happen without it. Only the caller's
 * thread uses the table of stored images, so that a number is known before the image is written. */
#include "trace/frames.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { QUEUE = 4 };

struct seen {
    uint64_t hash;
    int w, h;
};

struct queued_frame {
    struct image image;
    uint64_t hash;
    int number;
    int64_t ns;
};

struct frames {
    char *dir, *index_path;
    int index_fd;
    struct seen *seen; /* [nseen], in order of numbers */
    int nseen, cap;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the queue or quit */
    struct queued_frame queue[QUEUE];
    int first, count; /* a frame leaves the queue after it was written */
    bool quit;
    struct err failure; /* kind ERR_NONE: none yet */
};

static int write_frame(struct frames *f, const struct queued_frame *j, struct err *e)
{
    char line[128];
    autofree void *png = NULL;
    uint64_t len = 0;
    if (image_encode_png(&j->image, &png, &len, e))
        return -1;
    autofree char *path = xasprintf("%s/frames/%06d.png", f->dir, j->number);
    int n = snprintf(line, sizeof line, "%06d %016llx %d %d %lld %016llx\n", j->number,
                     (unsigned long long)j->hash, j->image.w, j->image.h, (long long)j->ns,
                     (unsigned long long)XXH3_64bits(png, len));
    int rc = file_write(path, png, len, e);
    if (!rc)
        rc = file_write_all(f->index_fd, f->index_path, line, (size_t)n, e);
    return rc;
}

static void *frames_thread(void *arg)
{
    struct frames *f = arg;
    pthread_mutex_lock(&f->lock);
    for (;;) {
        while (!f->count && !f->quit)
            pthread_cond_wait(&f->changed, &f->lock);
        if (!f->count)
            break;
        struct queued_frame *j = &f->queue[f->first];
        bool failed = f->failure.kind != ERR_NONE;
        pthread_mutex_unlock(&f->lock);
        struct err e = ERR_INIT;
        int rc = failed ? 0 : write_frame(f, j, &e); /* after a failure all further frames are dropped */
        image_free(&j->image);
        pthread_mutex_lock(&f->lock);
        if (rc)
            f->failure = e;
        f->first = (f->first + 1) % QUEUE;
        f->count--;
        pthread_cond_broadcast(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static void frames_free(struct frames *f)
{
    if (f->index_fd >= 0)
        close(f->index_fd);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f->seen);
    free(f->index_path);
    free(f->dir);
    free(f);
}

struct frames *frames_open(const char *dir, struct err *e)
{
    struct frames *f = xcalloc(1, sizeof *f);
    f->dir = xstrdup(dir);
    f->index_path = xasprintf("%s/frames.idx", dir);
    f->index_fd = -1;
    autofree char *folder = xasprintf("%s/frames", dir);
    int rc = dir_make(folder, e);
    if (!rc && (f->index_fd = file_append(f->index_path, e)) < 0)
        rc = -1;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    if (!rc && pthread_create(&f->thread, NULL, frames_thread, f))
        rc = err_set(e, ERR_ENV, "cannot start the thread that writes screenshots");
    if (!rc)
        return f;
    frames_free(f);
    return NULL;
}

static int find_seen(const struct frames *f, const struct image *im, uint64_t hash)
{
    for (int i = f->nseen - 1; i >= 0; i--)
        if (f->seen[i].hash == hash && f->seen[i].w == im->w && f->seen[i].h == im->h)
            return i;
    return -1;
}

static int add_seen(struct frames *f, const struct image *im, uint64_t hash)
{
    if (f->nseen == f->cap) {
        f->cap = f->cap ? f->cap * 2 : 64;
        f->seen = xrealloc(f->seen, (unsigned long)f->cap, sizeof *f->seen);
    }
    f->seen[f->nseen] = (struct seen){hash, im->w, im->h};
    return f->nseen++;
}

/* Returns -1 with e if a write has failed. The caller holds the lock. */
static int report_failure(const struct frames *f, struct err *e)
{
    return f->failure.kind == ERR_NONE ? 0 : err_set(e, f->failure.kind, "%s", f->failure.text);
}

int frames_put(struct frames *f, const struct image *im, uint64_t hash, int *number, struct err *e)
{
    *number = find_seen(f, im, hash);
    if (*number >= 0)
        return 0;
    struct queued_frame job = {.hash = hash, .ns = clock_ns()};
    if (image_copy(&job.image, im, e))
        return -1;
    *number = job.number = add_seen(f, im, hash);
    LOCKED(&f->lock);
    while (f->count == QUEUE)
        pthread_cond_wait(&f->changed, &f->lock);
    int rc = report_failure(f, e);
    if (rc) {
        image_free(&job.image);
    } else {
        f->queue[(f->first + f->count) % QUEUE] = job;
        f->count++;
        pthread_cond_broadcast(&f->changed);
    }
    return rc;
}

int frames_flush(struct frames *f, struct err *e)
{
    LOCKED(&f->lock);
    while (f->count)
        pthread_cond_wait(&f->changed, &f->lock);
    return report_failure(f, e);
}

int frames_close(struct frames *f, struct err *e)
{
    if (!f)
        return 0;
    int rc = frames_flush(f, e);
    pthread_mutex_lock(&f->lock);
    f->quit = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    frames_free(f);
    return rc;
}
