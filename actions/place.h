/* place.h - reads a screen position in the notations that models use.
 *
 *   500, 250     (500, 250)     [500, 250]     x=500, y=250     Click(500, 250)     start_box='(500,250)'
 *   <point>500 250</point>      <|box_start|>(400,200),(600,300)<|box_end|>      [[400, 200, 600, 300]]
 *   {"x": 500, "y": 250}      {"point_2d": [500, 250]}      {"bbox_2d": [400, 200, 600, 300], "label": "a"}
 *
 * Numbers may be strings; a code fence, reasoning and other words may surround the place.  A box stands
 * for its centre.  Negative coordinates, null, an empty list and words such as "not found" mean that the
 * element is absent.  Everything else is refused: one or three numbers, a box that ends before it
 * begins, a notation that is cut off, several different places.
 *
 * The number pairs are in the coordinate space of the dialect, with two exceptions.  "box_2d" is
 * Gemini's key; its order is y1, x1, y2, x2.  In <point x="63.5" y="44.2"> numbers with a decimal point
 * are percent, as Molmo writes them, unless one is above 100.
 */
#pragma once

#include "actions/dialect.h"

#include <jansson.h>

enum { PLACE_MAX_TEXT = 16 << 10 };

struct place {
    bool absent;  /* the element is not on the screen; the numbers are unset */
    bool box;     /* n is the centre of a box */
    bool percent; /* n is in percent of the width and of the height */
    struct dialect_numbers n;
    struct dialect_numbers corners[2]; /* corners of the box: minimum and maximum x and y */
};

/* Reads the only place in a text of at most PLACE_MAX_TEXT bytes, or in a JSON value.  Returns -1 with a
 * message of one line when there is none, or more than one. */
int place_read(const char *text, size_t len, struct place *out, struct err *e);
int place_value(const json_t *v, struct place *out, struct err *e);

/* Reads the answer to the dialect's localizer question. */
int dialect_read_place(const struct dialect *d, const char *text, size_t len, struct place *out,
                       struct err *e);

/* Converts a place that is not absent to its exact position, or to a pixel, of a w x h image.  Returns
 * -1 with a message when it, or a corner of its box, is outside the image. */
int dialect_place_position(const struct dialect *d, const struct place *at, int w, int h, double *x,
                           double *y, struct err *e);
int dialect_place_pixel(const struct dialect *d, const struct place *at, int w, int h, int32_t *x, int32_t *y,
                        struct err *e);
