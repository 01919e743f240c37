/* kernels.h - the fast CPU kernels, written once and compiled once for each instruction set.
 *
 * The including file defines VL, MR, VEC_MAX, DOT_BF16 and VEC_BF16 as kernels_core.h says, and
 * KERNELS_FILL, the name of the function that enters these kernels into a table.
 *
 *   kernels_core.h     vectors, exponentials, packing, the one multiplication that everything uses
 *   kernels_linear.h   matrix products
 *   kernels_rows.h     norms, sums, copies
 *   kernels_ssm.h      convolution and state space
 *   kernels_attend.h   attention
 *
 * Work is split over independent outputs only, and no sum depends on how it was split: the number of
 * threads never changes a bit.
 */
#include "ops/kernels_attend.h"
#include "ops/kernels_core.h"
#include "ops/kernels_linear.h"
#include "ops/kernels_rows.h"
#include "ops/kernels_ssm.h"

void KERNELS_FILL(struct ops *o)
{
    o->upload = fast_copy;
    o->download = fast_copy;
    o->copy = fast_copy;
    o->pack = fast_pack;
    o->embed = fast_embed;
    o->linear = fast_linear;
    o->rmsnorm = fast_rmsnorm;
    o->layernorm = fast_layernorm;
    o->gated_norm = fast_gated_norm;
    o->add = fast_add;
    o->conv = fast_conv;
    o->ssm_step = fast_ssm_step;
    o->ssm_scan = fast_ssm_scan;
    o->attend = fast_attend;
    o->attend_tiles = fast_attend_tiles;
    o->pixel_shuffle = fast_pixel_shuffle;
}
