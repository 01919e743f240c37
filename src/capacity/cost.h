/* cost.h - a roofline model: arithmetic in flop, and bytes of memory traffic.
 *
 * A multiplication and an addition are 2 flop.  Small work (norms, activations, the convolution) is left out,
 * so that a fraction of the peak is never overstated.
 */
#ifndef HOLORUN_CAPACITY_COST_H
#define HOLORUN_CAPACITY_COST_H

#include "model/state.h"

/* Patches that go through the vision tower together, after `prefix` tokens, and through the projector; and
 * one tile, or the largest canvas of a model without tiles. */
double cost_patches_flop(const struct model_config *c, int prefix, int64_t patches);
double cost_tile_flop(const struct model_config *c, int prefix);

/* n tokens after `past` others, without logits; and the logits of one token. */
double cost_text_flop(const struct model_config *c, int64_t n, int64_t past);
double cost_head_flop(const struct model_config *c, int vocab);

/* Decoding one token of each session reads all weights once (of a mixture of experts, those likely to be
 * chosen for so many tokens), each with `bytes` (engine_bytes_per_weight).  For each session it reads and
 * writes the state, reads the keys and values of `past` tokens, and writes those of one. */
double cost_weight_bytes(const struct model_config *c, int vocab, int sessions, double bytes);
double cost_session_bytes(const struct model_config *c, struct state_types types, int64_t past);

#endif
