/* rope.h - rotary positions of Qwen's models: where each token stands in time, height and width.
 *
 * A counter walks over the tokens.  Text takes one number for all three axes and advances it by one; an image
 * of r x c rows starts at the counter in all three and spreads over height and width, and after it the
 * counter has grown by the longer side.  So the position of the next token is no function of how many there
 * are: it is part of a state (state.h).  Inside an image it stays where the image began.
 *
 * Pair i of the rotated dimensions turns with height where i mod 3 = 1 and i < 3 section[1], with width where
 * i mod 3 = 2 and i < 3 section[2], else with time.  In Qwen2.5-VL the first section[0] pairs turn with time,
 * the next section[1] with height, the last with width.
 */
#ifndef HOLORUN_MODEL_ROPE_H
#define HOLORUN_MODEL_ROPE_H

#include "model/config.h"

struct image_rows;

struct rope_position {
    int64_t axis[3]; /* time, height, width */
};

/* Positions of tokens [first, first + n) of a call whose first token has the counter `next`; answers the
 * counter after them. */
int64_t rope_walk(struct rope_position *out, int64_t next, int64_t first, int64_t n,
                  const struct image_rows *images, int n_images);

/* Cosines, then sines of each pair's angle: table [n][dims]. */
void rope_table(float *table, const struct rope_shape *r, const struct rope_position *p, int64_t n);

#endif
