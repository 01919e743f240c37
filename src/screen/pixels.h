/* pixels.h - the server's pixels to RGB.
 *
 * Supports 16, 24, 30 and 32 bits a pixel in either byte order, with a fast path for 32-bit BGRX.
 */
#ifndef HOLORUN_SCREEN_PIXELS_H
#define HOLORUN_SCREEN_PIXELS_H

#include "base/image.h"

#include <X11/Xlib.h>

/* rgb [h][w][3] of the upper left w x h of `from`. */
int pixels_to_rgb(const XImage *from, uint8_t *rgb, int w, int h, struct err *e);

/* Blends a premultiplied ARGB picture onto the image, clipped.  One pixel per long, as XFixes returns it. */
void pixels_blend(struct image *to, const unsigned long *argb, int x, int y, int w, int h);

#endif
