/* target.h - a place that a person pointed at: what is kept of it, and how it is found again.
 *
 * Found by its picture, near where it was (in its window, wherever that is now), then anywhere on the
 * screen; by the name of its element; and, only when `settle_for_pixel` says so, by its pixel inside its
 * window.  Each way has its own proof: the picture must be found once, in a window of the same class; so
 * must the name; the pixel must be in a window of the same class and size, with a picture that is still
 * like the recorded one.  So a target that is gone is not found, and nothing is clicked in its place.
 */
#ifndef HOLORUN_RECORD_TARGET_H
#define HOLORUN_RECORD_TARGET_H

#include "atspi/elements.h"
#include "record/recording.h"

enum target_way { TARGET_NONE, TARGET_PICTURE, TARGET_NAME, TARGET_PIXEL, TARGET_WAYS };
const char *target_way_name(enum target_way w); /* "picture" */

struct target_found {
    enum target_way way;
    int x, y;       /* root pixels */
    double score;   /* of the picture; 0: none was compared */
    char text[512]; /* for people: "found by its picture, 40,25 px from where it was", or why it was not */
};

struct target_finder {
    struct screen *screen;
    struct elements *elements; /* NULL: no names */
};

/* im: the screen's view, whose left top corner is at x0, y0 of the root.  Returns out->way. */
enum target_way target_find(const struct target_finder *f, const struct recording_target *t,
                            const struct image *im, int x0, int y0, bool settle_for_pixel,
                            struct target_found *out);

/* Cuts a picture around x, y out of im (the root), inside the rectangle: the smallest that im holds only
 * once. -1: out of memory, or no such place. */
int target_cut(const struct image *im, int x, int y, struct screen_rect within, struct recording_picture *out,
               struct err *e);
/* Cuts the same rectangle out of another picture of the same size. */
int target_cut_same(const struct image *im, int x, int y, const struct recording_picture *like,
                    struct recording_picture *out, struct err *e);

#endif
