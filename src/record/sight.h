/* sight.h - compares a place in two screenshots of one display by its edges, not by its colours: an element
 * under the pointer, or a selected one, has other colours and the same text.
 */
#pragma once

#include "base/image.h"
#include "screen/screen.h"

enum sight {
    SIGHT_SAME,
    SIGHT_PLAIN, /* neither picture has an edge there */
    SIGHT_OTHER, /* also if the pictures differ in size */
};

/* Compares an area of two pictures. Pixels inside `except` do not count. */
enum sight sight_compare(const struct image *a, const struct image *b, struct screen_rect area,
                         struct screen_rect except);
/* Returns the mean absolute channel difference of an area; 255 if the pictures differ in size. */
double sight_difference(const struct image *a, const struct image *b, struct screen_rect area);
