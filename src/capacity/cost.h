/* cost.h - roofline model: arithmetic in flop, and bytes of memory traffic.
 *
 * A multiplication and an addition are 2 flop. Small operations (norms, activations, the convolution) are
 * omitted, so that a fraction of the peak is never overstated. */
#pragma once

#include "model/state.h"

/* Return the flop of the vision encoder and projector: for patches encoded together, after `prefix`
 * tokens; for one tile, or the largest canvas of a model without tiles. */
double cost_patches_flop(const struct model_config *c, int prefix, int64_t patches);
double cost_tile_flop(const struct model_config *c, int prefix);

/* Return the flop of n tokens after `past` others, without logits; and of the logits of one token. */
double cost_text_flop(const struct model_config *c, int64_t n, int64_t past);
double cost_head_flop(const struct model_config *c, int vocab);

/* Return the memory traffic of decoding one token of each session, in bytes. All weights are read once (of
 * a mixture of experts, those likely to be chosen for that many tokens), each with `bytes` bytes
 * (engine_bytes_per_weight). In addition, each of n sessions reads and writes its state, reads the keys and
 * values of `past` tokens, and writes those of one. */
double cost_weight_bytes(const struct model_config *c, int vocab, int sessions, double bytes);
double cost_session_bytes(const struct model_config *c, struct state_types types, int n, int64_t past);

/* Return, of a session's states, the elements in Mamba layers or in all recurrent layers; and the bytes
 * that move in a step of n sessions. With delayed state write-back (types.ring, cuda/mamba.cu), a state is
 * written every (ring + 1)th time; the inputs in between are buffered and read again: cost_replays(). */
double cost_state_elements(const struct lm_config *l, bool mamba);
double cost_state_bytes(const struct lm_config *l, struct state_types types, int n);
bool cost_replays(struct state_types types, int n);
