/* image_orient.h - reads the orientation of a JPEG or PNG file from its metadata, and rotates the image
 * upright.
 *
 * The number is EXIF's: 1 upright, 2 mirrored, 3 rotated by 180 degrees, 4 upside down and mirrored, 5 to
 * 8 the same with rows and columns exchanged. It is in a JPEG's APP1 segment or a PNG's eXIf chunk;
 * otherwise in the XMP data of either, as in Pillow's exif_transpose. */
#pragma once

#include "base/image.h"

#include <stddef.h>

/* Returns 1 to 8; 1 if the file has no orientation or is damaged. */
int image_orientation(const void *file, size_t len);

/* Rotates the image upright. Returns -1 with ERR_ENV if memory is short. */
int image_orient(struct image *im, int orientation, struct err *e);
