/* index.h - reads frames.idx: the hashes of each screenshot at the time of writing.
 *
 *     000003 d232ba826366beb6 640 480 46405271012876 b6c0f3bd17e4462d
 *     number, hash of size and pixels, width, height, monotonic nanoseconds, hash of the file
 *
 * Records of older versions lack the last field. Invalid lines are skipped and counted. */
#pragma once

#include "base/image.h"
#include "trace/read.h"

enum { INDEX_MAX_BYTES = 64 << 20, INDEX_MAX_FRAMES = 1000000 };

struct index_frame {
    int number, w, h;
    uint64_t pixels, file;
    bool has_file;
};

struct frame_index {
    struct index_frame *frames; /* in file order */
    int n, cap, skipped;
};

/* Reads the index of a run; a missing file is an empty index. Returns -1 with e. */
int index_open(struct frame_index *x, const struct record *r, struct err *e);
int index_parse(struct frame_index *x, const char *data, size_t len, struct err *e);
void index_free(struct frame_index *x);
/* Returns the frame with this number, or NULL. */
const struct index_frame *index_find(const struct frame_index *x, int number);

/* Loads a screenshot and compares it with the index. *why explains a fault. im->rgb is NULL if the file
 * cannot be decoded. */
enum index_fault { FRAME_AS_WRITTEN, FRAME_MISSING, FRAME_UNREADABLE, FRAME_FILE, FRAME_PIXELS };
enum index_fault index_image(const struct frame_index *x, const struct record *r, int number,
                             struct image *im, struct err *why);
