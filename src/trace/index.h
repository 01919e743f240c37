/* index.h - reads frames.idx: the hashes of each screenshot as it was written.
 *
 *     000003 d232ba826366beb6 640 480 46405271012876 b6c0f3bd17e4462d
 *     number, hash of size and pixels, width, height, monotonic nanoseconds, hash of the file's bytes
 *
 * Runs of older versions lack the last field.  Other lines are skipped and counted.
 */
#ifndef HOLORUN_TRACE_INDEX_H
#define HOLORUN_TRACE_INDEX_H

#include "base/image.h"
#include "trace/read.h"

enum { INDEX_MAX_BYTES = 64 << 20, INDEX_MAX_FRAMES = 1000000 };

struct index_frame {
    int number, w, h;
    uint64_t pixels, file;
    bool has_file;
};

struct frame_index {
    struct index_frame *frames; /* in the order of the file */
    int n, cap, skipped;
};

/* A missing file is an empty index. */
int index_open(struct frame_index *x, const struct record *r, struct err *e);
int index_parse(struct frame_index *x, const char *data, size_t len, struct err *e);
void index_free(struct frame_index *x);
const struct index_frame *index_find(const struct frame_index *x, int number); /* NULL: none */

/* Loads a screenshot and compares it with the index; *why says what is wrong.  im->rgb is NULL when it
 * cannot be decoded. */
enum index_fault { FRAME_AS_WRITTEN, FRAME_MISSING, FRAME_UNREADABLE, FRAME_FILE, FRAME_PIXELS };
enum index_fault index_image(const struct frame_index *x, const struct record *r, int number,
                             struct image *im, struct err *why);

#endif
