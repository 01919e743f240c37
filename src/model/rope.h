/* rope.h - rotary position embedding of Qwen's models: positions of tokens in time, height and width.
 *
 * A counter advances with the tokens. A text token takes one number for all three axes and increments it.
 * An image of r x c rows starts at the counter in all three axes and extends over height and width; after
 * it the counter has grown by the longer side. The position of the next token is therefore not a function
 * of the number of tokens but part of a state (state.h). Inside an image the counter stays at the value
 * where the image began.
 *
 * Pair i of the rotated dimensions is rotated by height if i mod 3 = 1 and i < 3 section[1], by width if i
 * mod 3 = 2 and i < 3 section[2], else by time. In Qwen2.5-VL the first section[0] pairs are rotated by
 * time, the next section[1] by height, the rest by width. */
#pragma once

#include "model/config.h"

struct image_rows;

struct rope_position {
    int64_t axis[3]; /* time, height, width */
};

/* Computes the positions of tokens [first, first + n) of a call, where `next` is the counter at token
 * `first`. Returns the counter after them. */
int64_t rope_walk(struct rope_position *out, int64_t next, int64_t first, int64_t n,
                  const struct image_rows *images, int n_images);

/* Computes the cosines, then the sines of each pair's angle: table [n][dims]. */
void rope_table(float *table, const struct rope_shape *r, const struct rope_position *p, int64_t n);
