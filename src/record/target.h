/* target.h - a position at which the user pointed: its appearance, and finding it again.
 *
 * A target is found as an element (target_element.h); by its picture, first near the recorded position
 * (relative to its window), then anywhere on the screen; and, only if `settle_for_pixel` is set or it has
 * neither a distinctive picture nor an element, by its pixel inside its window. Each way has its own check:
 * the element must be unique, enabled and in its recorded state; the picture must be found once, in a window
 * of the same class; the pixel must be in a window of the same class and size, with a picture that still
 * resembles the recorded one. Where the program describes an element of the same role and another name, or
 * the element is disabled or in another state, neither picture nor pixel count. A target that has disappeared
 * is therefore not found, and nothing is clicked instead.
 */
#pragma once

#include "atspi/elements.h"
#include "record/recording.h"

enum target_way {
    TARGET_NONE,
    TARGET_PICTURE,
    TARGET_NAME,
    TARGET_PIXEL,
    TARGET_MENDED, /* by its path in the tree, because the program uses another language */
    TARGET_WAYS
};
const char *target_way_name(enum target_way w); /* "image" */

struct target_found {
    enum target_way way;
    int x, y;                 /* root pixels */
    double score;             /* score of the picture; 0: none was compared */
    char now[RECORDING_TEXT]; /* TARGET_MENDED: name of the element */
    /* for the user: "found by its image, +40,+25 px from its recorded position", or why not */
    char text[512];
};

struct target_finder {
    struct screen *screen;
    struct elements *elements; /* NULL: no names */
};

/* Finds a target. im: the screen's view, with its left top corner at x0, y0 of the root. Returns out->way,
 * TARGET_NONE if it was not found. */
enum target_way target_find(const struct target_finder *f, const struct recording_target *t,
                            const struct image *im, int x0, int y0, bool settle_for_pixel,
                            struct target_found *out);

/* Cuts a picture around x, y out of im (the root), inside the rectangle: the smallest of 48x48 to 320x200
 * that im contains only once, or else the largest. Returns -1 with e if memory is exhausted or x, y lies
 * outside. */
int target_cut(const struct image *im, int x, int y, struct screen_rect within, struct recording_picture *out,
               struct err *e);
/* Cuts the same rectangle out of another picture of the same size. Returns -1 with e. */
int target_cut_same(const struct image *im, int x, int y, const struct recording_picture *like,
                    struct recording_picture *out, struct err *e);
