/* picture.h - finds a small picture in a large one: a recorded target on the present screen.
 *
 * The score is the zero-mean normalized cross-correlation of the RGB values (1: the same up to brightness
 * and contrast), but 0 when brightness or contrast differ much: a button that is greyed out is not the
 * button.  The middle is scored for itself, too, and the lower score counts, so that a target that is gone
 * is not found by its surroundings.  A change of colour under the pointer does not matter, nor does a text
 * cursor that is in one of the two only: a thin upright line, taller than most letters.
 *
 * The search goes over a picture of means of f x f pixels, f growing with the size of what is searched; the
 * best places are then scored pixel by pixel.
 */
#ifndef HOLORUN_RECORD_PICTURE_H
#define HOLORUN_RECORD_PICTURE_H

#include "base/image.h"

/* From PICTURE_FOUND on it is the same; from PICTURE_LIKE on the same with changes, at a known place. */
#define PICTURE_FOUND 0.90
#define PICTURE_LIKE  0.55
enum { PICTURE_MATCHES = 8, PICTURE_MIDDLE = 24 /* side of the middle, in pixels */ };

struct picture_match {
    int x, y; /* of the left top corner */
    double score;
};

/* Places with a score of at least PICTURE_FOUND, the best first, none within 4 px of another; returns how
 * many, at most PICTURE_MATCHES.  cx, cy: where in `small` its middle is; may lie outside.  A plain
 * `small`: none. */
int picture_find(const struct image *im, const struct image *small, int cx, int cy,
                 struct picture_match out[PICTURE_MATCHES]);

/* The score with its left top corner at x, y; 0 when it does not lie inside im.  When both are plain, 1 for
 * the same colour, else 0. */
double picture_score(const struct image *im, const struct image *small, int x, int y, int cx, int cy);
/* The best score within `reach` pixels of x, y; its place in *at. */
double picture_score_near(const struct image *im, const struct image *small, int x, int y, int reach, int cx,
                          int cy, struct picture_match *at);

bool picture_plain(const struct image *im); /* of one colour, or nearly */

#endif
