/* cost.h - what the model's work costs: arithmetic, and bytes that have to be moved.
 *
 * A multiplication and an addition are 2.  Left out is what is small beside the rest (norms, activations, the
 * convolution), so that a fraction of a limit is never flattered.  Keys and values count as bf16.
 */
#ifndef HOLORUN_CAPACITY_COST_H
#define HOLORUN_CAPACITY_COST_H

#include "model/state.h"

/* So many patches together through the tower, where `prefix` tokens stand in front of them, and through the
 * projector; and one tile, or the largest canvas of a model without tiles. */
double cost_patches_flop(const struct model_config *c, int prefix, int64_t patches);
double cost_tile_flop(const struct model_config *c, int prefix);

/* n tokens behind `past` others, without logits; and the logits of one token. */
double cost_text_flop(const struct model_config *c, int64_t n, int64_t past);
double cost_head_flop(const struct model_config *c, int vocab);

/* One decoding step reads all weights once, whatever the number of sessions (of experts those that are likely to
 * be chosen for so many tokens), each number of `bytes` (engine_bytes_per_weight), and for each of them reads and
 * writes the state, reads the keys and values of `past` tokens, and writes those of one. */
double cost_weight_bytes(const struct model_config *c, int vocab, int sessions, double bytes);
double cost_session_bytes(const struct model_config *c, struct state_types types, int64_t past);

#endif
