/* kernels.h - fast CPU kernels, written once and compiled for each instruction set.
 *
 * The including file defines VL, MR and, if there are dot products, DOT_BF16, VEC_BF16, DOT_BYTES or
 * DOT_SIGNED as described in kernels_core.h; and KERNELS_FILL, the function that enters these kernels into a
 * table.
 *
 *   kernels_avx.h, kernels_neon.h   vector operations of an instruction set
 *   kernels_core.h     vectors, exponentials, packing, the matrix product used by all
 *   kernels_linear.h   matrix products
 *   kernels_quant.h    matrix products with quantized weights
 *   kernels_bytes.h    matrix products in integers: quantized weights and activations
 *   kernels_dot.h      dot products of bytes
 *   kernels_groups.h   their inner loop for weights in groups
 *   kernels_rows.h     norms, sums, copies
 *   kernels_ssm.h      convolution and the state space recurrence
 *   kernels_scan.h     chunked state space scan
 *   kernels_delta.h    the gated delta rule
 *   kernels_gates.h    gates and norms of Qwen3.5
 *   kernels_attend.h   attention
 *   kernels_moe.h      mixture of experts
 *
 * Work is split only over independent outputs, and no sum depends on the split, so results are
 * bit-identical for any number of threads. */
#include "ops/kernels_attend.h"
#include "ops/kernels_bytes.h"
#include "ops/kernels_core.h"
#include "ops/kernels_delta.h"
#include "ops/kernels_gates.h"
#include "ops/kernels_linear.h"
#include "ops/kernels_moe.h"
#include "ops/kernels_rows.h"
#include "ops/kernels_scan.h"
#include "ops/kernels_ssm.h"

/* ---- compute limit ------------------------------------------------------------------------------------- */

struct probe_task {
    enum dtype type;
    int64_t rounds;
};

/* Runs as many independent sums as a block of the matrix product has, and nothing else. */
ALWAYS_INLINE void probe_run(int64_t rounds, const enum factor kind)
{
    vec acc[MR * 2];
    float factor[2] = {1.5f, 0.5f};
    uvec right = (uvec)splat(0.25f);
    UNROLL for (int i = 0; i < MR * 2; i++) acc[i] = splat((float)i);
    for (int64_t r = 0; r < rounds; r++) {
        /* keeps the compiler from folding the values */
        __asm__ volatile("" : "+m"(factor), "+" VECTOR_REGISTER(right));
        UNROLL for (int i = 0; i < MR * 2; i++) acc[i] = multiply_word(acc[i], (char *)factor, right, kind);
    }
    UNROLL for (int i = 0; i < MR * 2; i++)
    {
        __asm__ volatile("" : : VECTOR_REGISTER(acc[i]));
    }
}

static void probe_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct probe_task *p = arg;
    for (int64_t i = begin; i < end; i++) {
        if (HAS_DOT && p->type == DT_BF16)
            probe_run(p->rounds, PAIR);
        else
            probe_run(p->rounds, F32);
    }
}

static double fast_probe(struct backend *b, enum dtype t, int64_t rounds)
{
    struct probe_task p = {t, rounds};
    int threads = pool_threads(b->pool), per_lane = HAS_DOT && t == DT_BF16 ? 4 : 2;
    pool_for(b->pool, threads, 1, probe_range, &p);
    return (double)per_lane * VL * MR * 2 * (double)rounds * threads;
}

void KERNELS_FILL(struct ops *o)
{
    o->upload = fast_copy;
    o->download = fast_copy;
    o->copy = fast_copy;
    o->pack = fast_pack;
    o->embed = fast_embed;
    o->linear = any_linear;
    o->quant_layout = VL == 16 ? "words 1 of 32" : VL == 8 ? "words 1 of 16" : "words 1 of 8";
    o->quant_bytes = quantized_bytes;
    o->quant_pack = quantized_pack;
    o->quant_weight = quantized_weight;
    o->round_activations = cpu_round_activations;
    o->rmsnorm = fast_rmsnorm;
    o->layernorm = fast_layernorm;
    o->gated_norm = fast_gated_norm;
    o->add = fast_add;
    o->delta_gates = fast_delta_gates;
    o->delta_scan = fast_delta_scan;
    o->delta_step_batch = fast_delta_step_batch;
    o->norm_gate = fast_norm_gate;
    o->norm_rotate = fast_norm_rotate;
    o->gate_heads = fast_gate_heads;
    o->swiglu = fast_swiglu;
    o->add_gated = fast_add_gated;
    o->conv_tokens = fast_conv_tokens;
    o->conv_batch = fast_conv_batch;
    o->ssm_step_batch = fast_ssm_step_batch;
    o->ssm_scan = fast_ssm_scan;
    o->attend_tokens = fast_attend_tokens;
    o->attend_batch = fast_attend_batch;
    o->attend_tiles = fast_attend_tiles;
    o->pixel_shuffle = fast_pixel_shuffle;
    o->resize_grid = fast_resize_grid;
    o->rotate = fast_rotate;
    o->experts = fast_experts;
    o->probe = fast_probe;
}
