/* frames.h - writes screenshots in the background: a queue and a thread that encodes PNG.
 *
 *   frames/000003.png    a distinct image, numbered from 0
 *   frames.idx           one line each: number, hash, width, height, monotonic nanoseconds, XXH3 of the file
 *
 * An image equal to an earlier one (same XXH3 of size and pixels) gets the same number and is not stored
 * again. The queue holds 4 images; a caller that is faster than the disk waits. After the first failure every
 * call reports it. */
#pragma once

#include "base/err.h"
#include "base/image.h"

struct frames;

/* Creates dir/frames and dir/frames.idx. Returns NULL with e. */
struct frames *frames_open(const char *dir, struct err *e);
/* Copies the image and returns at once unless the queue is full. *number: number of the image. Returns -1
 * with e. */
int frames_put(struct frames *f, const struct image *im, uint64_t hash, int *number, struct err *e);
/* Waits until all images are written. Returns -1 with e. */
int frames_flush(struct frames *f, struct err *e);
/* Flushes, ends the thread and frees f; NULL is allowed. Returns -1 with e. */
int frames_close(struct frames *f, struct err *e);
