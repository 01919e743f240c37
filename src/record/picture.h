/* picture.h - finds a small picture in a large one: a recorded target on the current screen.
 *
 * The score is the zero-mean normalized cross-correlation of the RGB values (1: equal up to brightness and
 * contrast), but 0 if a channel's mean differs by more than 48 of 255 or contrast by a factor of more than
 * 1.7: a disabled button does not match the enabled button. The middle is also scored separately and the
 * lower score counts, so that a missing target is not found by its surroundings. A colour change under the
 * pointer does not matter, nor does a text cursor that is in only one of the pictures: a vertical line at
 * most 3 pixels wide and 11 to 64 pixels high.
 *
 * The search uses pictures of means of f x f pixels, with f growing with the size of the small picture; the
 * best positions are then scored pixel by pixel.
 */
#pragma once

#include "base/image.h"

/* Minimum scores: PICTURE_FOUND for a match, PICTURE_LIKE for a changed target at a known position. */
#define PICTURE_FOUND 0.90
#define PICTURE_LIKE  0.55
enum { PICTURE_MATCHES = 8, PICTURE_MIDDLE = 24 /* side of the middle, in pixels */ };

struct picture_match {
    int x, y; /* left top corner */
    double score;
};

/* Finds the positions with a score of at least PICTURE_FOUND. Writes them to out, the best first, at least 4
 * px apart, and returns their number, at most PICTURE_MATCHES. cx, cy: position of the target in `small`;
 * may lie outside. Returns 0 for a plain `small`. */
int picture_find(const struct image *im, const struct image *small, int cx, int cy,
                 struct picture_match out[PICTURE_MATCHES]);

/* Returns the score of `small` with its left top corner at x, y; 0 if it does not lie inside im. If both are
 * plain: 1 for similar colours, else 0. */
double picture_score(const struct image *im, const struct image *small, int x, int y, int cx, int cy);
/* Returns the best score within `reach` pixels of x, y, with its position in *at. */
double picture_score_near(const struct image *im, const struct image *small, int x, int y, int reach, int cx,
                          int cy, struct picture_match *at);

bool picture_plain(const struct image *im); /* standard deviation below 3 of 255 */
