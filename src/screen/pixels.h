/* pixels.h - the server's pixels to RGB.
 *
 * An XImage describes its own layout: bits a pixel, byte order, masks.  16, 24, 30 and 32 bits in
 * either byte order are understood; the layout nearly every server has (32 bits, BGRX) is fast.
 */
#ifndef HOLORUN_SCREEN_PIXELS_H
#define HOLORUN_SCREEN_PIXELS_H

#include "base/image.h"

#include <X11/Xlib.h>

/* rgb [h][w][3] of the upper left w x h of `from`. */
int pixels_to_rgb(const XImage *from, uint8_t *rgb, int w, int h, struct err *e);

/* Lays a premultiplied ARGB picture over the image, clipped; XFixes hands out one pixel a long. */
void pixels_blend(struct image *to, const unsigned long *argb, int x, int y, int w, int h);

#endif
