/* look.h - a window before a recorded action, at an eighth of its size. Playback that sees the same window
 * need not wait until the screen settles.
 */
#pragma once

#include "record/recording.h"

/* Cuts a window out of a screenshot whose left top pixel is x0, y0 of the root. Leaves *out empty if the
 * window does not lie inside the screenshot or is larger than 8 x RECORDING_SIDE, or memory is exhausted. */
void look_take(const struct image *im, int x0, int y0, struct screen_rect window, struct recording_look *out);

/* Returns whether two windows look the same in every tile of 32 pixels, except the tiles that touch one of n
 * areas (pixels of the window). A caret and a single character do not make a difference. False if one is
 * empty. */
bool look_same(const struct recording_look *a, const struct recording_look *b, const struct screen_rect *skip,
               int n);

/* Returns the rectangle of a step's target in its window: that of its element, or 64 pixels around the point.
 * It may look different while the pointer is at the target. */
struct screen_rect look_of_target(const struct recording_step *s);
