/* image_orient.h - how a camera was held, from the metadata of a JPEG or PNG file, and turning the picture.
 *
 * The number is EXIF's: 1 upright, 2 mirrored, 3 turned by 180 degrees, 4 upside down and mirrored, 5 to 8
 * the same with rows and columns exchanged.  It is in a JPEG's APP1 segment or a PNG's eXIf chunk; without
 * one, in the XMP data of either, as Pillow's exif_transpose reads it.
 */
#ifndef HOLORUN_BASE_IMAGE_ORIENT_H
#define HOLORUN_BASE_IMAGE_ORIENT_H

#include "base/image.h"

#include <stddef.h>

/* 1 to 8; 1 where the file does not say, or is damaged. */
int image_orientation(const void *file, size_t len);

/* Turns the picture upright.  ERR_ENV without memory. */
int image_orient(struct image *im, int orientation, struct err *e);

#endif
