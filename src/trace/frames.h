/* frames.h - writes screenshots in the background: a queue and one thread that encodes PNG.
 *
 *   frames/000003.png    a distinct picture, counted from 0
 *   frames.idx           one line each: number, hash, width, height, monotonic nanoseconds, XXH3 of the file
 *
 * A picture equal to an earlier one (same XXH3 of size and pixels) gets the earlier number and is not
 * stored again.  The queue is short; a caller that is faster than the disk waits.  After the first
 * failure every call reports it.
 */
#ifndef HOLORUN_TRACE_FRAMES_H
#define HOLORUN_TRACE_FRAMES_H

#include "base/err.h"
#include "base/image.h"

struct frames;

struct frames *frames_open(const char *dir, struct err *e); /* makes dir/frames and dir/frames.idx */
/* Copies the image and returns at once unless the queue is full. */
int frames_put(struct frames *f, const struct image *im, uint64_t hash, int *number, struct err *e);
int frames_flush(struct frames *f, struct err *e); /* waits until everything is written */
int frames_close(struct frames *f, struct err *e); /* flushes, joins the thread, frees; NULL is fine */

#endif
