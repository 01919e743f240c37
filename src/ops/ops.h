/* ops.h - the operations of the model: one table of functions per backend.
 *
 * The forward pass (src/model) is written once against this table; the scalar reference (ops_ref.c), the
 * CPU kernels of each instruction set (kernels.h) and the GPU kernels (cuda/) fill it in. Tensors are in
 * the backend's memory: callers never access a tensor's `data`, they use alloc, upload, download and the
 * operations. On the CPU `data` is ordinary memory.
 *
 * Shapes are written [rows, cols], row-major, with `stride` elements from row to row. A vector is one row.
 * Activations are f32 or bf16 (one choice per run), weights bf16, f32 or quantized; sums are always
 * accumulated in f32. With bf16 activations every result is rounded once, when it is stored.
 *
 * Names: *_tokens takes many tokens of one session, *_batch row t of session t. Aliasing: outputs may not
 * overlap inputs unless the comment says so. Threads: one call at a time per backend; the backend
 * distributes the work over its own pool. Preconditions (shapes, dtypes) are checked with bug(): shapes
 * from files were checked when the weights were bound. */
#pragma once

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

/* Return a view of rows [r, r+n) or columns [c, c+n) that shares the data. */
struct tensor tensor_rows(struct tensor t, int64_t r, int64_t n);
struct tensor tensor_cols(struct tensor t, int64_t c, int64_t n);

size_t tensor_bytes(struct tensor t); /* without gaps between rows */

/* Copies src, of any float type, to dst, of the same type or f32 or bf16; both on the host. */
void tensor_convert(struct tensor dst, struct tensor src);
void tensor_check_copy(struct tensor dst, struct tensor src); /* bug() unless the shapes are equal */

/* Performs the operation resize_grid (see below) on host tensors. */
void tensor_resize_grid(struct tensor y, struct tensor table, int rows, int cols);

/* A weight matrix [N, K] in the layout that the backend multiplies fastest. */
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
    int chunk;            /* Q, chunk length of the scan; any value is mathematically equivalent */
    float dt_min, dt_max; /* time_step_limit: (0, inf) does not clamp */
};

/* Constants per head, f32 [H] each. */
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
    int chunk;                  /* tokens per chunk; any value is mathematically equivalent */
    bool tiled;                 /* value head j uses key head j % key_heads instead */
};

/* Delayed state write-back: inputs of the last tokens of each session that are not yet in its f32 state.
 * in: [WORK_RING, H*P + G*N] = x, B after conv; dt: f32 [WORK_RING, H] time steps; count: tokens in use.
 * write: the state is updated with all of them and the current token; otherwise the current token is
 * appended to them. */
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
    const struct ssm_ring *ring; /* NULL: states are up to date, and are written */
};

/* The router of a mixture of experts. */
struct route_shape {
    int experts, chosen; /* E, k */
    /* Groups of E / groups adjacent experts; experts are chosen only from groups_kept of them. */
    int groups, groups_kept;
    bool normalise; /* the weights of a row are divided by their sum */
    float scale;    /* factor of the weights */
    bool softmax;   /* scores are a softmax over all experts instead of sigmoids */
};

/* The matrices of E experts of equal sizes. */
struct experts {
    int count;
    struct weight *const *up;   /* E of [M, K] */
    struct weight *const *down; /* E of [N, M] */
    struct weight *const *gate; /* E of [M, K], SwiGLU experts; NULL: max(0, Up x)^2 */
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
    QUANT_Q4_16, /* 4 bits in groups of 16, for GGUF types without kernels */
    QUANT_Q8_16, /* 8 bits in groups of 16 */
    QUANT_GPTQ,
    QUANT_FORMATS
};

/* A matrix [N, K] of 4-bit integers as stored by GPTQ, transposed: eight adjacent codes share a word, the
 * first one in its lowest bits. The pointers need not be aligned. */
struct quant_gptq {
    const void *codes;    /* u32 [K/8, N]: adjacent along K */
    const void *zeros;    /* u32 [K/128, N/8]: adjacent along N */
    const void *scales;   /* f16 [K/128, N] */
    int least;            /* added to a stored zero point */
    const int32_t *order; /* [K]: columns ordered by group; NULL: file order */
};

/* A matrix on the host to quantize. */
struct quant_source {
    int64_t rows, cols;    /* N, K */
    struct tensor stored;  /* [N, K] of a float type, or u8 [N, K/2]: e2m1, the even k in the low half */
    const uint8_t *groups; /* group scales of e2m1: e4m3 [N, K/16] */
    float scale;           /* scale of e4m3, e2m1 and NVFP4 in GGUF */
    const float *scales;   /* row scales [N] of e4m3 instead of `scale`, or NULL */
    const float *blocks;   /* scales [N/128, K/128] of e4m3, rounded up, instead of both; or NULL */
    uint32_t gguf;         /* GGUF type (gguf_rows.h), `stored` is then u8 [N, bytes of a row]; 0: none */
    const struct quant_gptq *gptq; /* if set, `stored` is empty */
};

/* The largest working memory that a model's operations need (ops/work.h). */
struct work_need {
    size_t bytes; /* largest need of an operation */
    int64_t ids;  /* vocabulary from which tokens are sampled */
    int groups;   /* groups of heads that share channels of a convolution */
};

/* Parameters of sampling the next token from a row of logits. Sets of ids are bit masks: bit i % 64 of
 * word i / 64. */
struct sampler {
    const uint64_t *known;   /* ids that exist in the tokenizer */
    const uint64_t *allowed; /* logit mask: ids of `known` that may follow; NULL: all */
    float temperature;       /* 0: greedy, the lowest id among equal logits */
    float top_p;   /* below 1: nucleus sampling from the fewest most probable ids whose probability reaches
                    * top_p */
    double random; /* random number in [0, 1) */
};

struct sampled {
    int32_t id;           /* -1: no id is allowed, or the logits are NaN */
    float logprob;        /* among the known ids, at temperature 1 */
    float logprob_masked; /* among the allowed ids; equal without a mask */
};

/* Taps of resizing along one axis: out[o] = sum of weight[o * most + k] * in[first[o] + k] over k <
 * count[o]. */
struct resize_taps {
    int out, most;
    int *first, *count;
    float *weight;
};

/* An image on the host and the parameters of its patches (model/preprocess.h): size[0] resizes it to the
 * tile grid, size[1], if sizes is 2, to the thumbnail. */
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

    /* Attaches the calling thread; required on threads other than the one that opened the backend. NULL:
     * not needed. */
    void (*attach)(struct backend *b);

    /* ---- memory. upload, download and copy convert between dtypes if they differ ---- */

    struct tensor (*alloc)(struct backend *b, enum dtype t, int64_t rows, int64_t cols); /* zeroed */
    void (*free)(struct backend *b, struct tensor *t);
    /* Returns data NULL if memory is exhausted. */
    struct tensor (*try_alloc)(struct backend *b, enum dtype t, int64_t rows, int64_t cols);
    /* The next four are NULL if tensors are in host memory. memory_left: returns the free bytes on the
     * device. */
    size_t (*memory_left)(struct backend *b);
    /* Allocates the working memory of a model's operations, so that none of them allocates later. */
    int (*reserve)(struct backend *b, const struct work_need *n, struct err *e);
    /* Allocates pinned host memory, which is copied fastest; NULL if none is left. */
    void *(*host_alloc)(struct backend *b, size_t bytes);
    void (*host_free)(struct backend *b, void *p);
    void (*upload)(struct backend *b, struct tensor dst, struct tensor host_src);
    void (*download)(struct backend *b, struct tensor host_dst, struct tensor src);
    void (*copy)(struct backend *b, struct tensor dst, struct tensor src); /* same shape */
    /* Copy row t of src to dst[t], and src[t] to row t of dst: one row each, all of one type and width. */
    void (*scatter)(struct backend *b, const struct tensor *dst, struct tensor src);
    void (*gather)(struct backend *b, struct tensor dst, const struct tensor *src);

    /* ---- weights ---- */

    /* Packs `host` (any float dtype, may be a mapped file), which is read once, as `dtype` (bf16 or f32). */
    struct weight *(*pack)(struct backend *b, struct tensor host, enum dtype dtype);
    /* Creates a weight whose values stay at `host` (bf16 or f32, rows without gaps, aligned to its
     * elements): every product reads them, so `host` must outlive the weight. Products are bit-identical
     * to those of a packed weight. once: `host` is a mapped file that does not fit in memory, so its pages
     * are released after each product. NULL if the backend cannot read host memory. */
    struct weight *(*borrow)(struct backend *b, struct tensor host, bool once);
    void (*weight_free)(struct backend *b, struct weight *w);

    /* Create quantized weights in three steps, so that the result can be stored in a file: compute the
     * bytes of a matrix, fill those bytes (aligned to 64), and create a weight from them. owned: the bytes
     * came from malloc and are freed with the weight; otherwise they must outlive it. quant_layout names
     * the byte order, which differs between backends. */
    const char *quant_layout;
    size_t (*quant_bytes)(const struct backend *b, enum quant_format format, int64_t rows, int64_t cols);
    void (*quant_pack)(struct backend *b, void *bytes, enum quant_format format,
                       const struct quant_source *s);
    struct weight *(*quant_weight)(struct backend *b, void *bytes, bool owned, enum quant_format format,
                                   int64_t rows, int64_t cols);

    /* Rounds bf16 activations to 8 bits in all later products with w (W8A8, quant.h), which is not exact
     * and up to twice as fast for many rows. Applies to integer formats only or, with rounds_to_f8, to f8
     * only and to more rows than a decode step has; others are unchanged. NULL if the backend lacks such
     * kernels. */
    void (*round_activations)(struct backend *b, struct weight *w);
    bool rounds_to_f8;

    /* Create synthetic values for measurements without a checkpoint (synthetic.h): element (r, c) of dst
     * is value r * cols + c; or a weight of such values in bf16, f32 or a quantized format. */
    void (*fill_synthetic)(struct backend *b, struct tensor dst, const struct synthetic *m);
    struct weight *(*make_synthetic_weight)(struct backend *b, enum quant_format format, enum dtype dtype,
                                            int64_t rows, int64_t cols, const struct synthetic *m);

    /* Delimit operations that a backend may record as a graph and replay: for equal keys the operations
     * and their shapes must be the same; ids and the targets of tensor arrays may differ. Nothing may be
     * allocated, uploaded or downloaded in between. NULL if graphs bring no gain. */
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

    /* v[t,c] = silu(bias[c] + sum_k w[c,k] * xbc[t-K+1+k, c]); rows before the first come from state [K-1,
     * C] (oldest row first), which is set to the last K-1 rows of the input. w f32 [C,K], bias f32 [1,C];
     * T may be less than K-1. */
    void (*conv_tokens)(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w,
                        struct tensor bias, struct tensor state);

    /* Mamba-2 state space layer: v [T, H*P + 2*G*N] = x, B, C after conv; dt [T,H] raw; state f32 or f16
     * [H*P, N] in and out; y [T, H*P] = C.S + D*x. Any T, in chunks of shape->chunk. Within a call the
     * state is f32; f16 is rounded stochastically once, at the end, with `key` = stochastic_key() of the
     * layer and of the position reached. f32 ignores the key. */
    void (*ssm_scan)(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                     struct tensor state, uint32_t key, const struct ssm_shape *s, const struct ssm_const *c);

    /* Compute conv_tokens, and the recurrence of ssm_scan, for row t with states[t] and keys[t],
     * bit-identical to one session alone. All states are of one type; keys may be NULL if that is f32. */
    void (*conv_batch)(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w,
                       struct tensor bias, const struct tensor *states);
    void (*ssm_step_batch)(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                           const struct tensor *states, const uint32_t *keys, const struct ssm_shape *s,
                           const struct ssm_const *c);

    /* Fuses conv_batch, ssm_step_batch and gated_norm, rounded at the same points. NULL if fusing brings
     * no gain. */
    void (*mamba_batch)(struct backend *b, struct tensor out, struct tensor z, struct tensor xbc,
                        struct tensor dt, const struct mamba_batch *e);

    /* Applies the count[0] tokens in the ring of one session to its state, bit-identical to writing it at
     * each token. NULL if mamba_batch does not support rings. */
    void (*ssm_flush)(struct backend *b, struct tensor state, const struct ssm_ring *ring,
                      const struct ssm_shape *s, const struct ssm_const *c);

    /* Gates of the delta rule, f32 [T, 2H]: g = a softplus(x + dt_bias), then beta = sigmoid(z), of raw x
     * and z [T, H]; a, dt_bias f32 [1, H]. NULL, like the seven that follow, if the family is not
     * implemented. */
    void (*delta_gates)(struct backend *b, struct tensor gates, struct tensor x, struct tensor z,
                        struct tensor a, struct tensor dt_bias);

    /* Gated delta rule: v [T, 2 Hk dk + H dv] = q, k, v after conv, q and k not yet normalized; gates [T,
     * 2H]; state f32 [H * dk, dv] in and out; y [T, H * dv]. Any T, in chunks of shape->chunk; equations
     * in ref_delta.c. delta_step_batch computes row t with states[t], bit-identical to one session alone. */
    void (*delta_scan)(struct backend *b, struct tensor y, struct tensor v, struct tensor gates,
                       struct tensor state, const struct delta_shape *s);
    void (*delta_step_batch)(struct backend *b, struct tensor y, struct tensor v, struct tensor gates,
                             const struct tensor *states, const struct delta_shape *s);

    /* out = w * y * rsqrt(mean(y^2) + eps) * silu(z), the mean over each part of y as wide as w, f32 [1,
     * d]. out may be y. */
    void (*norm_gate)(struct backend *b, struct tensor out, struct tensor y, struct tensor z, struct tensor w,
                      float eps);

    /* Fuses conv_batch, delta_gates, delta_step_batch and norm_gate, rounded at the same points: x [T, C]
     * before the convolution, ab [T, 2H] both raw gates, out and z [T, H * dv]. NULL if fusing brings no
     * gain. */
    void (*delta_batch)(struct backend *b, struct tensor out, struct tensor z, struct tensor x,
                        struct tensor ab, const struct delta_batch *e);

    /* Heads of y [T, heads * d]: RMSNorm with w, f32 [1, d], of the first d columns of each of `heads`
     * equal parts of x; then the pairs (i, i + n) of its first 2n dimensions are rotated by the angle
     * whose cosines and sines are row t of table, f32 [T, 2n]. y may be x if both have the same columns. */
    void (*norm_rotate)(struct backend *b, struct tensor y, struct tensor x, struct tensor w,
                        struct tensor table, int heads, float eps);

    /* Head h of y [T, heads * d] *= sigmoid of the second half of part h of p [T, heads * 2d]. */
    void (*gate_heads)(struct backend *b, struct tensor y, struct tensor p, int heads);

    /* y = silu(g) * u; y may be either input. */
    void (*swiglu)(struct backend *b, struct tensor y, struct tensor g, struct tensor u);

    /* y[t] += sigmoid(g[t]) * x[t]; g [T, 1] */
    void (*add_gated)(struct backend *b, struct tensor y, struct tensor x, struct tensor g);

    /* Quantize keys or values [T, heads * d] to 8 bits: rows of kv8.h, to dst f8e4m3 [T, kv8_cols], or row
     * t to dst[t]. */
    void (*kv_quantize)(struct backend *b, struct tensor dst, struct tensor src, int heads);
    void (*kv_quantize_batch)(struct backend *b, const struct tensor *dst, struct tensor src, int heads);

    /* Causal attention with grouped queries over a KV cache. q [T, Hq*d]; k, v [S, Hkv*d] contain all S =
     * past + T positions, including the new ones; y [T, Hq*d]; query t attends to positions <= past + t.
     * Scale d^-0.5, softmax in f32, the score matrix is never stored. k and v have q's type, or are both
     * f8e4m3 rows of kv8.h, dequantized before use. */
    void (*attend_tokens)(struct backend *b, struct tensor y, struct tensor q, struct tensor k,
                          struct tensor v, int q_heads, int kv_heads, int64_t past);

    /* Attention of query t over all of k[t] and v[t], whose last row is its own. */
    void (*attend_batch)(struct backend *b, struct tensor y, struct tensor q, const struct tensor *k,
                         const struct tensor *v, int q_heads, int kv_heads);

    /* Bidirectional attention inside each of `tiles` sequences of equal length.
     * qkv [tiles*n, 3*heads*d] with all q, all k, all v; y [tiles*n, heads*d]. */
    void (*attend_tiles)(struct backend *b, struct tensor y, struct tensor qkv, int heads, int tiles);

    /* Pixel shuffle v2: x [h*g, C], h rows of g in raster order -> y [(h/2)*(g/2), 4*C]. */
    void (*pixel_shuffle)(struct backend *b, struct tensor y, struct tensor x, int g);

    /* Resizes a table of side x side rows, f32 [side^2, C], to a square of the longer of rows and cols
     * (bilinear, half-pixel centres, edges repeated, in f32); y [rows*cols, C] is its upper left part. */
    void (*resize_grid)(struct backend *b, struct tensor y, struct tensor table, int rows, int cols);

    /* Samples a table of side x side rows, f32 [side^2, C], at rows x cols positions whose corners are the
     * table's (bilinear, in f32); y [rows*cols, C] in blocks of merge x merge positions, blocks row by
     * row. NULL, like the next one, if no family needs it. */
    void (*sample_grid)(struct backend *b, struct tensor y, struct tensor table, int cols, int merge);

    /* Rotates pairs (i, i + d/2) of each of `heads` parts of x [T, heads * d] by the angle whose cosine
     * and sine are in columns i and d/2 + i of row t of the table, f32 [T, d]; in f32, rounded once. */
    void (*rotate)(struct backend *b, struct tensor x, struct tensor table, int heads);

    /* Computes patches f32 [tiles * patches per tile, 3 * patch^2], bit-identical to preprocess_image();
     * digest: 128 bits per tile, equal for equal patches. Returns -1 with e if there is not enough memory
     * for its pixels. NULL if the host does it. */
    int (*make_patches)(struct backend *b, struct tensor patches, uint64_t (*digest)[2],
                        const struct picture *p, struct err *e);

    /* s = sigmoid(logits[t]), or their softmax; chooses the k experts with the largest s + bias (the first
     * of equals) from the groups whose two largest s + bias have the largest sums. ids i32 [T,k]
     * ascending; weights f32 [T,k] = s of each, normalized and scaled as set in the shape. logits f32
     * [T,E]; bias f32 [1,E], or data NULL. */
    void (*route)(struct backend *b, struct tensor ids, struct tensor weights, struct tensor logits,
                  struct tensor bias, const struct route_shape *s);

    /* y[t] = sum_j weights[t,j] Down_e . max(0, Up_e . x[t])^2 with e = ids[t,j], summed in f32 in the
     * order of j; Up . x and its square are rounded to x's type, the sum once. With gates the inner value
     * is silu(Gate_e . x[t]) * (Up_e . x[t]), all three rounded. ids of a row ascend; y and x have the
     * same type. */
    void (*experts)(struct backend *b, struct tensor y, struct tensor x, struct tensor ids,
                    struct tensor weights, const struct experts *e);

    /* Samples out[t] from row t of logits, f32 [T, N <= 2^21], with the arithmetic of sampling.h,
     * bit-identical to sample_token(). NULL if the host reads the logits. */
    void (*sample)(struct backend *b, struct tensor logits, const struct sampler *how, struct sampled *out);

    /* Sample within a graph, at most WORK_SAMPLED_ROWS rows. Call stage before graph_begin (graphs with
     * equal keys must have the same return value), run inside the graph, mark after graph_end, and wait
     * when the ids are needed; other work may be submitted to the device in between. */
    int (*sample_stage)(struct backend *b, const struct sampler *how, int n, int64_t ids);
    void (*sample_run)(struct backend *b, struct tensor logits);
    void (*sample_mark)(struct backend *b);
    void (*sample_wait)(struct backend *b, const struct sampler *how, struct sampled *out);

    /* ---- measuring ---- */

    /* Multiplies and adds `rounds` times in registers on every thread, with factors of type t (bf16 on a
     * GPU: large matrix products). Returns the number of floating-point operations; the caller measures
     * the time to obtain the compute limit. */
    double (*probe)(struct backend *b, enum dtype t, int64_t rounds);

    /* Waits for the device to finish. NULL if operations are synchronous. */
    void (*synchronize)(struct backend *b);
};

struct backend {
    const struct ops *ops;
    struct pool *pool; /* borrowed */
    void *priv;
    /* Rows of a prompt and tiles of an image that go through the model at once, which determines the
     * scratch memory; 0: LANGUAGE_ROWS and VISION_BATCH of src/model. */
    int prompt_rows, picture_tiles;
};

/* Opens a CPU backend. isa: "ref", "avx2", "avx512", "avx512bf16", or NULL for the best that this machine
 * supports. The pool is borrowed and may be NULL (one thread). Returns NULL with e if unknown or not
 * supported by this CPU. */
struct backend *backend_cpu(const char *isa, struct pool *pool, struct err *e);
void backend_free(struct backend *b);

/* A GPU that may run the kernels of cuda/. */
struct gpu {
    char name[64];
    int major, minor;    /* compute capability */
    size_t memory, free; /* bytes */
};

/* Lists at most max GPUs of this machine and returns their number. Returns -1 with e: no driver, a driver
 * that is too old, or a program built without CUDA. */
int backend_gpu_list(struct gpu *out, int max, struct err *e);

/* Runs one small case of each kind of operation and compares it with the scalar reference; takes some
 * milliseconds. Returns -1 with e, which names the operation with wrong results. */
int backend_check(struct backend *b, struct err *e);

/* Opens a backend. device: "cpu"; "cuda" or "cuda:N", an error if that cannot run; "auto" or NULL: the
 * first GPU that runs the kernels and has `need` bytes free, else the CPU (with a warning if a GPU
 * failed), and always the CPU if isa is set. A GPU is tested first (backend_check). */
struct backend *backend_open(const char *device, const char *isa, size_t need, struct pool *pool,
                             struct err *e);

/* Lists the instruction sets that this CPU supports, best last; returns their number. */
int backend_cpu_list(const char *names[], int max);

/* Convert bf16 <-> f32: round to nearest even, NaN stays NaN. */
uint16_t bf16_from_f32(float f);
float bf16_to_f32(uint16_t h);
float f16_to_f32(uint16_t h);
float f8e4m3_to_f32(uint8_t v);
