/* ops.h - every operation of the model, as one table of functions.
 *
 * The forward pass (src/model) is written once against this table; the scalar reference (ops_ref.c), the CPU
 * kernels of each instruction set (kernels.h) and the GPU kernels (cuda/) fill it in.  Tensors live in the
 * backend's memory: callers never touch a tensor's `data`, they use alloc, upload, download and the
 * operations. On the CPU `data` is ordinary memory.
 *
 * Shapes are written [rows, cols], row-major, `stride` elements from row to row.  A vector is one row.
 * Activations are f32 or bf16 (one choice for a whole run), weights bf16, f32 or quantized; sums are always
 * accumulated in f32.  With bf16 activations every result is rounded once, where it is stored.
 *
 * Names: *_tokens takes many tokens of one session, *_batch row t of session t.
 * Aliasing: outputs may not overlap inputs unless the comment says so.
 * Threads: one call at a time per backend; the backend spreads the work over its own pool.
 * Preconditions (shapes, dtypes) are checked with bug(): shapes from files were checked when the weights were
 * bound.
 */
#ifndef HOLORUN_OPS_OPS_H
#define HOLORUN_OPS_OPS_H

#include "base/err.h"
#include "base/pool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype { DT_F32, DT_BF16, DT_F16, DT_I8, DT_U8, DT_F8E4M3, DT_I32, DT_I64, DT_COUNT };

size_t dtype_size(enum dtype t);
const char *dtype_name(enum dtype t); /* "bf16" */

struct tensor {
    void *data;
    enum dtype dtype;
    int64_t rows, cols, stride;
};

/* A view of rows [r, r+n) or of columns [c, c+n); shares data. */
struct tensor tensor_rows(struct tensor t, int64_t r, int64_t n);
struct tensor tensor_cols(struct tensor t, int64_t c, int64_t n);

size_t tensor_bytes(struct tensor t); /* without gaps between rows */

/* Copies src, of any float type, to dst, of the same type or f32 or bf16; both on the host. */
void tensor_convert(struct tensor dst, struct tensor src);
void tensor_check_copy(struct tensor dst, struct tensor src); /* a bug unless both have one shape */

/* The operation resize_grid below, of tensors on the host. */
void tensor_resize_grid(struct tensor y, struct tensor table, int rows, int cols);

/* A weight matrix [N, K] in the layout the backend multiplies fastest. */
struct weight;

/* y = ..., or y += ... */
enum accumulate { SET, ADD };

enum epilogue {
    EPI_NONE,
    EPI_RELU2,     /* max(0, v)^2, after rounding v to the activation type */
    EPI_GELU,      /* exact: v/2 * (1 + erf(v / sqrt 2)) */
    EPI_GELU_TANH, /* v/2 * (1 + tanh(sqrt(2 / pi) (v + 0.044715 v^3))) */
};

/* Sizes of a Mamba-2 layer. */
struct ssm_shape {
    int heads;            /* H */
    int head_dim;         /* P */
    int state;            /* N */
    int groups;           /* G; head h uses group h / (H/G) */
    int conv;             /* K taps */
    int chunk;            /* Q, chunk length of the scan; any value gives the same mathematics */
    float dt_min, dt_max; /* time_step_limit: (0, inf) is no clamp */
};

/* Per-head constants, f32 [H] each. */
struct ssm_const {
    const float *a; /* -exp(A_log) */
    const float *dt_bias;
    const float *d;
};

/* Sizes of a Gated DeltaNet layer. */
struct delta_shape {
    int key_heads, value_heads; /* value head j uses key head j / (value_heads / key_heads) */
    int key, value;             /* dk, dv: widths of a head */
    int conv;                   /* K taps */
    int chunk;                  /* tokens of a chunk; any number gives the same mathematics */
    bool tiled;                 /* value head j uses key head j % key_heads instead */
};

/* Inputs of the last tokens of each session of a batch, which its state in f32 does not have yet: in is
 * [WORK_RING, H*P + G*N] = x, B after conv, dt f32 [WORK_RING, H] the time steps; count of them are in use.
 * write: the state gets all of them and the present token; otherwise this token is added to them. */
struct ssm_ring {
    const struct tensor *in, *dt;
    const int *count;
    const bool *write;
};

/* A Mamba-2 layer and the states of the sessions in a batch. */
struct mamba_batch {
    struct tensor conv, conv_bias, norm; /* weights: f32 [C,K], [1,C] or data NULL, [1,H*P] */
    float eps;
    const struct tensor *conv_states, *ssm_states;
    const uint32_t *keys; /* stochastic rounding keys of ssm_states; NULL for f32 */
    const struct ssm_shape *shape;
    const struct ssm_const *constants;
    const struct ssm_ring *ring; /* NULL: states have all tokens, and are written */
};

/* The router of a mixture of experts. */
struct route_shape {
    int experts, chosen; /* E, k */
    int groups,
        groups_kept; /* groups of E / groups neighbouring experts; only the kept ones are chosen from */
    bool normalise;  /* the weights of a row are divided by their sum */
    float scale;     /* and multiplied by this */
    bool softmax;    /* scores are a softmax over all experts instead of sigmoids */
};

/* The matrices of E experts of equal sizes. */
struct experts {
    int count;
    struct weight *const *up;   /* E of [M, K] */
    struct weight *const *down; /* E of [N, M] */
    struct weight *const *gate; /* E of [M, K] of SwiGLU experts; NULL: max(0, Up x)^2 */
};

/* Formats of quantized matrices (quant.h): 8-bit and 4-bit integers, the e4m3 and e2m1 floats of published
 * checkpoints, blocks of GGUF files, and the 4-bit integers of GPTQ. */
enum quant_format {
    QUANT_NONE,
    QUANT_I8,
    QUANT_I4,
    QUANT_F8,
    QUANT_F4,
    QUANT_F8_BLOCKS,
    QUANT_Q8_0,
    QUANT_Q4_K,
    QUANT_Q5_K,
    QUANT_Q6_K,
    QUANT_Q4_1,
    QUANT_Q5_1,
    QUANT_Q4_16, /* 4 bits in groups of 16, as types of GGUF without kernels are kept */
    QUANT_Q8_16, /* 8 bits */
    QUANT_GPTQ,
    QUANT_FORMATS
};

/* A matrix [N, K] of 4-bit integers as GPTQ stores it, transposed: eight neighbours share a word, the first
 * one in its lowest bits.  Nothing need be aligned. */
struct quant_gptq {
    const void *codes;    /* u32 [K/8, N]: neighbours along K */
    const void *zeros;    /* u32 [K/128, N/8]: neighbours along N */
    const void *scales;   /* f16 [K/128, N] */
    int least;            /* added to a stored zero */
    const int32_t *order; /* [K]: columns group after group; NULL: as they are */
};

/* A matrix on the host to quantize. */
struct quant_source {
    int64_t rows, cols;    /* N, K */
    struct tensor stored;  /* [N, K] of a float type, or u8 [N, K/2]: e2m1, the even k in the low half */
    const uint8_t *groups; /* group scales of e2m1: e4m3 [N, K/16] */
    float scale;           /* of e4m3, e2m1 and NVFP4 in GGUF */
    const float *scales;   /* of e4m3: row scales [N] instead of `scale`, or NULL */
    const float *blocks;   /* of e4m3: scales [N/128, K/128] rounded up, instead of both; or NULL */
    uint32_t gguf;         /* type in a GGUF file (gguf_rows.h): stored is u8 [N, bytes of a row]; or 0 */
    const struct quant_gptq *gptq; /* then `stored` is empty */
};

/* Largest working memory that a model's operations need (ops/work.h). */
struct work_need {
    size_t bytes; /* of the operation that needs most */
    int64_t ids;  /* vocabulary that tokens are sampled from */
    int groups;   /* of heads that share channels of a convolution */
};

/* How the next token is sampled from a row of logits.  Sets of ids are bit masks: bit i % 64 of word i /
 * 64. */
struct sampler {
    const uint64_t *known;   /* ids that exist in the tokenizer */
    const uint64_t *allowed; /* logit mask: those of them that may follow here; NULL: all */
    float temperature;       /* 0: greedy, the lowest id among equal logits */
    float top_p;   /* below 1: nucleus sampling, from the fewest most probable ids that hold so much */
    double random; /* [0, 1), picks one */
};

struct sampled {
    int32_t id;           /* -1: nothing is allowed, or the logits are NaN */
    float logprob;        /* among the known ids, at temperature 1 */
    float logprob_masked; /* among the allowed ones; equal without a mask */
};

/* Resizing along one axis: out[o] = sum of weight[o * most + k] * in[first[o] + k] over k < count[o]. */
struct resize_taps {
    int out, most;
    int *first, *count;
    float *weight;
};

/* An image on the host and how it becomes patches (model/preprocess.h): size[0] resizes it to the tile grid,
 * size[1], if sizes is 2, to the thumbnail. */
struct picture {
    const uint8_t *rgb;
    int w, h;
    bool round8;
    int sizes;
    struct {
        struct resize_taps across, down;
    } size[2];
    int tile_w, tile_h, patch; /* in pixels */
    float mean[3], scale[3];
};

/* A Gated DeltaNet layer and the states of the sessions in a batch. */
struct delta_batch {
    struct tensor conv, a, dt_bias, norm; /* weights: f32 [C,K], [1,H], [1,H], [1,dv] */
    float eps;
    const struct tensor *conv_states, *states;
    const struct delta_shape *shape;
};

struct backend;
struct synthetic;

struct ops {
    const char *name;                 /* "ref", "avx2", "avx512", "avx512bf16", "cuda" */
    void (*close)(struct backend *b); /* frees everything but *b */

    /* Must be called on a thread other than the one that opened the backend.  NULL: not needed. */
    void (*attach)(struct backend *b);

    /* ---- memory.  upload, download and copy convert between dtypes when they differ ---- */

    struct tensor (*alloc)(struct backend *b, enum dtype t, int64_t rows, int64_t cols); /* zeroed */
    void (*free)(struct backend *b, struct tensor *t);
    /* alloc that answers data NULL when memory is exhausted. */
    struct tensor (*try_alloc)(struct backend *b, enum dtype t, int64_t rows, int64_t cols);
    /* The next four are NULL where tensors live in the host's memory.  memory_left: free bytes on the
     * device. */
    size_t (*memory_left)(struct backend *b);
    /* Takes the working memory of a model's operations, so that none of them allocates later. */
    int (*reserve)(struct backend *b, const struct work_need *n, struct err *e);
    /* Pinned host memory, which copies fastest; NULL when there is none left. */
    void *(*host_alloc)(struct backend *b, size_t bytes);
    void (*host_free)(struct backend *b, void *p);
    void (*upload)(struct backend *b, struct tensor dst, struct tensor host_src);
    void (*download)(struct backend *b, struct tensor host_dst, struct tensor src);
    void (*copy)(struct backend *b, struct tensor dst, struct tensor src); /* same shape */
    /* Row t of src to dst[t], and src[t] to row t of dst: one row each, all of one type and width. */
    void (*scatter)(struct backend *b, const struct tensor *dst, struct tensor src);
    void (*gather)(struct backend *b, struct tensor dst, const struct tensor *src);

    /* ---- weights ---- */

    /* Packs `host` (any float dtype, may be a mapped file), which is read once, as `dtype` (bf16 or f32). */
    struct weight *(*pack)(struct backend *b, struct tensor host, enum dtype dtype);
    /* A weight whose values stay at `host` (bf16 or f32, rows without gaps, aligned to its elements): every
     * product reads them, so `host` must outlive the weight.  Products equal those of a packed weight bit for
     * bit.  once: `host` is a mapped file that does not fit in memory, so its pages are given back after each
     * product.  NULL where a backend cannot read the host's memory. */
    struct weight *(*borrow)(struct backend *b, struct tensor host, bool once);
    void (*weight_free)(struct backend *b, struct weight *w);

    /* Quantized weights, in three steps so that a file can keep the result: the bytes a matrix needs, these
     * bytes (aligned to 64) filled, and a weight made of them.  owned: the bytes came from malloc and are
     * freed with the weight; else they must outlive it.  quant_layout names the byte order, which differs
     * between backends. */
    const char *quant_layout;
    size_t (*quant_bytes)(const struct backend *b, enum quant_format format, int64_t rows, int64_t cols);
    void (*quant_pack)(struct backend *b, void *bytes, enum quant_format format,
                       const struct quant_source *s);
    struct weight *(*quant_weight)(struct backend *b, void *bytes, bool owned, enum quant_format format,
                                   int64_t rows, int64_t cols);

    /* From now on products with w round activations in bf16 to 8 bits (quant.h), which is not exact, and
     * up to twice as fast for many rows.  Integer formats only, or (rounds_to_f8) f8 only, and there of more
     * rows than a decode step has; others are left as they are.  NULL where there are no such kernels. */
    void (*round_activations)(struct backend *b, struct weight *w);
    bool rounds_to_f8;

    /* Synthetic values, to measure without a checkpoint (synthetic.h): element (r, c) of dst is value
     * r * cols + c; and a weight of such values in bf16, f32 or a quantized format. */
    void (*fill_synthetic)(struct backend *b, struct tensor dst, const struct synthetic *m);
    struct weight *(*make_synthetic_weight)(struct backend *b, enum quant_format format, enum dtype dtype,
                                            int64_t rows, int64_t cols, const struct synthetic *m);

    /* Between the two a backend may record and replay a graph: for equal keys the operations and their shapes
     * must be the same; ids and the targets of tensor arrays may differ.  Nothing may be allocated,
     * uploaded or downloaded.  NULL where graphs gain nothing. */
    void (*graph_begin)(struct backend *b, uint64_t key);
    void (*graph_end)(struct backend *b);

    /* ---- layers ---- */

    /* y[T,D] = E[ids[t], :] */
    void (*embed)(struct backend *b, struct tensor y, struct tensor table, const int32_t *ids);

    /* y[T,N] = or += epi(x[T,K] . W[N,K]^T + bias[N]).
     * bias is a f32 vector or has data NULL.  y may be f32 while x is bf16 (logits). */
    void (*linear)(struct backend *b, struct tensor y, struct tensor x, const struct weight *w,
                   struct tensor bias, enum epilogue epi, enum accumulate mode);

    /* y = w * x * rsqrt(mean(x^2) + eps) per row; w f32 [1,D].  y may be x. */
    void (*rmsnorm)(struct backend *b, struct tensor y, struct tensor x, struct tensor w, float eps);

    /* y = (x - mean) * rsqrt(var + eps) * w + bias per row; w, bias f32 [1,D].  y may be x. */
    void (*layernorm)(struct backend *b, struct tensor y, struct tensor x, struct tensor w,
                      struct tensor bias, float eps);

    /* q = y * silu(z); out = w * q * rsqrt(mean over each of `groups` equal parts of q^2 + eps).
     * out may be y. */
    void (*gated_norm)(struct backend *b, struct tensor out, struct tensor y, struct tensor z,
                       struct tensor w, int groups, float eps);

    /* h += y (rounded to h's type); y [T,D] */
    void (*add)(struct backend *b, struct tensor h, struct tensor y);

    /* v[t,c] = silu(bias[c] + sum_k w[c,k] * xbc[t-K+1+k, c]); rows before the first come from state [K-1, C]
     * (oldest row first), which becomes the last K-1 rows of the input.  w f32 [C,K], bias f32 [1,C]; T may
     * be shorter than K-1. */
    void (*conv_tokens)(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w,
                        struct tensor bias, struct tensor state);

    /* Mamba-2 state space layer: v [T, H*P + 2*G*N] = x, B, C after conv; dt [T,H] raw; state f32 or f16
     * [H*P, N] in and out; y [T, H*P] = C.S + D*x.
     * Any T, in chunks of shape->chunk.  Within a call the state is f32; f16 is rounded stochastically once,
     * at the end, with `key`, the stochastic_key of the layer and of the position the state then has.  f32
     * ignores the key. */
    void (*ssm_scan)(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                     struct tensor state, uint32_t key, const struct ssm_shape *s, const struct ssm_const *c);

    /* conv_tokens, and the recurrence of ssm_scan, for row t with states[t] and keys[t], with the bits each
     * would have alone.  All states are of one type; keys may be NULL where that is f32. */
    void (*conv_batch)(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w,
                       struct tensor bias, const struct tensor *states);
    void (*ssm_step_batch)(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                           const struct tensor *states, const uint32_t *keys, const struct ssm_shape *s,
                           const struct ssm_const *c);

    /* conv_batch, ssm_step_batch and gated_norm fused, rounded at the same points.  NULL where fusing gains
     * nothing. */
    void (*mamba_batch)(struct backend *b, struct tensor out, struct tensor z, struct tensor xbc,
                        struct tensor dt, const struct mamba_batch *e);

    /* The count[0] tokens of the ring of one session become part of its state, with the bits that writing it
     * each time would have given.  NULL where mamba_batch takes no rings. */
    void (*ssm_flush)(struct backend *b, struct tensor state, const struct ssm_ring *ring,
                      const struct ssm_shape *s, const struct ssm_const *c);

    /* Gates of the delta rule, f32 [T, 2H]: g = a softplus(x + dt_bias), then beta = sigmoid(z), of raw x and
     * z [T, H]; a, dt_bias f32 [1, H].  NULL, like the seven that follow, where the family is not
     * implemented. */
    void (*delta_gates)(struct backend *b, struct tensor gates, struct tensor x, struct tensor z,
                        struct tensor a, struct tensor dt_bias);

    /* Gated delta rule: v [T, 2 Hk dk + H dv] = q, k, v after conv, q and k not yet normalised; gates
     * [T, 2H]; state f32 [H * dk, dv] in and out; y [T, H * dv].  Any T, in chunks of shape->chunk; the
     * equations: ref_delta.c.  And row t with states[t], with the bits each would have alone. */
    void (*delta_scan)(struct backend *b, struct tensor y, struct tensor v, struct tensor gates,
                       struct tensor state, const struct delta_shape *s);
    void (*delta_step_batch)(struct backend *b, struct tensor y, struct tensor v, struct tensor gates,
                             const struct tensor *states, const struct delta_shape *s);

    /* out = w * y * rsqrt(mean(y^2) + eps) * silu(z), the mean over each part of y as wide as w, f32 [1, d].
     * out may be y. */
    void (*norm_gate)(struct backend *b, struct tensor out, struct tensor y, struct tensor z, struct tensor w,
                      float eps);

    /* conv_batch, delta_gates, delta_step_batch and norm_gate fused, rounded at the same points: x [T, C]
     * before the convolution, ab [T, 2H] both raw gates, out and z [T, H * dv].  NULL where fusing gains
     * nothing. */
    void (*delta_batch)(struct backend *b, struct tensor out, struct tensor z, struct tensor x,
                        struct tensor ab, const struct delta_batch *e);

    /* Heads of y [T, heads * d]: RMSNorm with w, f32 [1, d], of the first d columns of each of `heads` equal
     * parts of x, then of its first 2n dimensions the pairs (i, i + n) are turned by an angle whose cosines
     * and sines are row t of table, f32 [T, 2n].  y may be x where both have the same columns. */
    void (*norm_rotate)(struct backend *b, struct tensor y, struct tensor x, struct tensor w,
                        struct tensor table, int heads, float eps);

    /* Head h of y [T, heads * d] *= sigmoid of the second half of part h of p [T, heads * 2d]. */
    void (*gate_heads)(struct backend *b, struct tensor y, struct tensor p, int heads);

    /* y = silu(g) * u; y may be either. */
    void (*swiglu)(struct backend *b, struct tensor y, struct tensor g, struct tensor u);

    /* y[t] += sigmoid(g[t]) * x[t]; g [T, 1] */
    void (*add_gated)(struct backend *b, struct tensor y, struct tensor x, struct tensor g);

    /* Quantizes keys or values [T, heads * d] to 8 bits: rows of kv8.h, dst f8e4m3 [T, kv8_cols], or row t to
     * dst[t]. */
    void (*kv_quantize)(struct backend *b, struct tensor dst, struct tensor src, int heads);
    void (*kv_quantize_batch)(struct backend *b, const struct tensor *dst, struct tensor src, int heads);

    /* Causal attention with grouped queries over a KV cache.  q [T, Hq*d]; k, v [S, Hkv*d] hold all
     * S = past + T positions (the new ones included); y [T, Hq*d]; query t sees positions <= past + t.
     * scale d^-0.5, softmax in f32, scores never stored whole.  k and v are of q's type, or both f8e4m3
     * rows of kv8.h, whose dequantized values count. */
    void (*attend_tokens)(struct backend *b, struct tensor y, struct tensor q, struct tensor k,
                          struct tensor v, int q_heads, int kv_heads, int64_t past);

    /* Query t over all of k[t] and v[t], whose last row is its own. */
    void (*attend_batch)(struct backend *b, struct tensor y, struct tensor q, const struct tensor *k,
                         const struct tensor *v, int q_heads, int kv_heads);

    /* Bidirectional attention inside each of `tiles` sequences of equal length.
     * qkv [tiles*n, 3*heads*d] with all q, all k, all v; y [tiles*n, heads*d]. */
    void (*attend_tiles)(struct backend *b, struct tensor y, struct tensor qkv, int heads, int tiles);

    /* Pixel shuffle v2: x [h*g, C], h rows of g in raster order -> y [(h/2)*(g/2), 4*C]. */
    void (*pixel_shuffle)(struct backend *b, struct tensor y, struct tensor x, int g);

    /* A table of side x side rows, f32 [side^2, C], resized to a square of the longer of rows and cols
     * (bilinear, half-pixel centres, edges repeated, in f32); y [rows*cols, C] is its upper left part. */
    void (*resize_grid)(struct backend *b, struct tensor y, struct tensor table, int rows, int cols);

    /* A table of side x side rows, f32 [side^2, C], sampled at rows x cols places whose corners are the
     * table's (bilinear, in f32); y [rows*cols, C] in blocks of merge x merge places, row by row of blocks.
     *  NULL, like the next one, where no family needs it. */
    void (*sample_grid)(struct backend *b, struct tensor y, struct tensor table, int cols, int merge);

    /* Pairs (i, i + d/2) of each of `heads` parts of x [T, heads * d] are turned by an angle whose cosine and
     * sine stand in columns i and d/2 + i of row t of the table, f32 [T, d]; in f32, rounded once. */
    void (*rotate)(struct backend *b, struct tensor x, struct tensor table, int heads);

    /* patches f32 [tiles * patches of each, 3 * patch^2]: bit for bit what preprocess_image makes of the
     * picture; digest: 128 bits for each tile, equal for equal patches.  -1: no memory for its pixels.  NULL
     * where the host does it. */
    int (*make_patches)(struct backend *b, struct tensor patches, uint64_t (*digest)[2],
                        const struct picture *p, struct err *e);

    /* s = sigmoid(logits[t]), or their softmax; chooses the k experts with the largest s + bias, the first
     * among equals, from the groups whose two largest s + bias have the largest sums.  ids i32 [T,k]
     * ascending; weights f32 [T,k] = s of each, normalised and scaled as the shape says.  logits f32 [T,E];
     * bias f32 [1,E], data NULL without one. */
    void (*route)(struct backend *b, struct tensor ids, struct tensor weights, struct tensor logits,
                  struct tensor bias, const struct route_shape *s);

    /* y[t] = sum_j weights[t,j] Down_e . max(0, Up_e . x[t])^2 with e = ids[t,j], summed in f32 in the order
     * of j; Up . x and its square are rounded to x's type, the sum once.  With gates the inner value is
     * silu(Gate_e . x[t]) * (Up_e . x[t]), the three rounded.  ids of a row ascend; y and x have one type. */
    void (*experts)(struct backend *b, struct tensor y, struct tensor x, struct tensor ids,
                    struct tensor weights, const struct experts *e);

    /* out[t] sampled from row t of logits, f32 [T, N <= 2^21], by the arithmetic of sampling.h: bit for bit
     * what sample_token computes.  NULL where the host reads the logits. */
    void (*sample)(struct backend *b, struct tensor logits, const struct sampler *how, struct sampled *out);

    /* The same within a graph, of at most WORK_SAMPLED_ROWS rows with so many ids: stage before graph_begin
     * (graphs with equal keys have the same answer of it), run within, mark after graph_end; wait when the
     * ids are needed: other work may have been given to the device meanwhile. */
    int (*sample_stage)(struct backend *b, const struct sampler *how, int n, int64_t ids);
    void (*sample_run)(struct backend *b, struct tensor logits);
    void (*sample_mark)(struct backend *b);
    void (*sample_wait)(struct backend *b, const struct sampler *how, struct sampled *out);

    /* ---- measuring ---- */

    /* Multiplies and adds `rounds` times in registers on every thread, with factors of type t (bf16 on a GPU:
     * large matrix products); returns how many floating-point operations those were.  The caller takes the
     * time: that is the compute limit. */
    double (*probe)(struct backend *b, enum dtype t, int64_t rounds);

    /* Waits for the device to finish.  NULL where operations are synchronous. */
    void (*synchronize)(struct backend *b);
};

struct backend {
    const struct ops *ops;
    struct pool *pool; /* borrowed */
    void *priv;
    /* How many rows of a prompt and tiles of a picture go through the model at once, which takes memory
     * before the first; 0: LANGUAGE_ROWS and VISION_BATCH of src/model. */
    int prompt_rows, picture_tiles;
};

/* A CPU backend.  isa: "ref", "avx2", "avx512", "avx512bf16", or NULL for the best this machine
 * runs.  The pool is borrowed and may be NULL (one thread).  NULL with a message when unknown or
 * not supported by this CPU. */
struct backend *backend_cpu(const char *isa, struct pool *pool, struct err *e);
void backend_free(struct backend *b);

/* A GPU that the kernels of cuda/ could run on. */
struct gpu {
    char name[64];
    int major, minor;    /* compute capability */
    size_t memory, free; /* bytes */
};

/* Lists at most max GPUs of this machine and returns how many there are.  -1 with the reason: no driver, a
 * driver that is too old, or a program without CUDA. */
int backend_gpu_list(struct gpu *out, int max, struct err *e);

/* Runs one small case of each kind of operation and compares it with the scalar reference: some milliseconds.
 * -1 with the name of the operation that is off. */
int backend_check(struct backend *b, struct err *e);

/* device: "cpu"; "cuda" or "cuda:N", refused with the reason where that cannot run; "auto" or NULL: the
 * first GPU that runs the kernels and has `need` bytes free, else the CPU (with a warning when a GPU
 * failed), and always the CPU when an isa is named.  A GPU is checked first. */
struct backend *backend_open(const char *device, const char *isa, size_t need, struct pool *pool,
                             struct err *e);

/* Names of the instruction sets this CPU runs, best last. */
int backend_cpu_list(const char *names[], int max);

/* bf16 <-> f32: round to nearest even, NaN stays NaN. */
uint16_t bf16_from_f32(float f);
float bf16_to_f32(uint16_t h);
float f16_to_f32(uint16_t h);
float f8e4m3_to_f32(uint8_t v);

#endif
