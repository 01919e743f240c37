/* ops.h - everything the model does to numbers, as one table of functions.
 *
 * The forward pass (src/model) is written once against this table; the scalar reference
 * (ops_ref.c), the CPU kernels by instruction set, and later a GPU fill it in.  Tensors live where
 * the backend puts them: code above this line never touches `data` of a tensor directly, it uses
 * alloc, upload, download and the operations.  On the CPU `data` is ordinary memory.
 *
 * Shapes are written [rows, cols], row-major, `stride` elements from row to row.  A vector is one
 * row.  Activations are f32 or bf16 (one choice for a whole run), weights bf16 or f32; sums are
 * always accumulated in f32.  With bf16 activations every result is rounded once, where it is stored.
 *
 * Aliasing: outputs may not overlap inputs unless the comment says so.
 * Threads: one call at a time per backend; the backend spreads the work over its own pool.
 * Preconditions (shapes, dtypes) are checked with bug(): a mismatch is our mistake, since every
 * shape from a file was checked when the weights were bound.
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

/* Both on the host: the values of src, one after the other, in dst's type; src is of any float type, dst of its own
 * or f32 or bf16. */
void tensor_convert(struct tensor dst, struct tensor src);

/* A weight matrix [N, K] in whatever form the backend multiplies fastest. */
struct weight;

enum epilogue {
    EPI_NONE,
    EPI_RELU2, /* max(0, v)^2, after rounding v to the activation type */
    EPI_GELU,  /* exact: v/2 * (1 + erf(v / sqrt 2)) */
};

/* Sizes and per-head constants of one Mamba-2 layer. Constants are f32 [H]. */
struct ssm_shape {
    int heads;            /* H */
    int head_dim;         /* P */
    int state;            /* N */
    int groups;           /* G; head h uses group h / (H/G) */
    int conv;             /* K taps */
    int chunk;            /* Q, chunk length of the scan; any value gives the same mathematics */
    float dt_min, dt_max; /* time_step_limit: (0, inf) is no clamp */
};

struct ssm_const {
    const float *a;       /* [H] = -exp(A_log) */
    const float *dt_bias; /* [H] */
    const float *d;       /* [H] */
};

/* A Mamba-2 layer and the states of sessions, of which row t is one token of session t. */
struct mamba_each {
    struct tensor conv, conv_bias, norm; /* weights: f32 [C,K], [1,C] or data NULL, [1,H*P] */
    float eps;
    const struct tensor *conv_states, *ssm_states;
    const uint32_t *keys; /* of the latter; NULL for f32 */
    const struct ssm_shape *shape;
    const struct ssm_const *constants;
};

/* How the router of a mixture of experts chooses. */
struct route_shape {
    int experts, chosen;     /* E, k */
    int groups, groups_kept; /* runs of E / groups experts, of which so many may be chosen from */
    bool normalise;          /* the weights of a row are divided by their sum */
    float scale;             /* and multiplied by this */
};

/* The matrices of E experts of equal sizes. */
struct experts {
    int count;
    struct weight *const *up;   /* E of [M, K] */
    struct weight *const *down; /* E of [N, M] */
};

/* Forms of matrices of small numbers (quant.h): integers of 8 and 4 bits made from other numbers, and the
 * e4m3 and e2m1 numbers of published checkpoints. */
enum quant_format { QUANT_NONE, QUANT_I8, QUANT_I4, QUANT_F8, QUANT_F4, QUANT_FORMATS };

/* A matrix on the host to make one of. */
struct quant_source {
    int64_t rows, cols;    /* N, K */
    struct tensor stored;  /* [N, K] of a float type, or u8 [N, K/2]: e2m1, the even k in the low half */
    const uint8_t *groups; /* of e2m1: e4m3 [N, K/16] */
    float scale;           /* of e4m3 and e2m1 */
    const float *scales;   /* of e4m3: one for each row instead, [N]; NULL: there are none */
};

/* What operations take beside the tensors they are given (ops/work.h). */
struct work_need {
    size_t bytes; /* of the one that takes most */
    int64_t ids;  /* that choices are among */
    int groups;   /* of Mamba-2 layers */
};

/* How the next token is chosen from a row of logits; sets of ids have bit i % 64 of word i / 64 for id i. */
struct choosing {
    const uint64_t *known;   /* ids that may ever be chosen */
    const uint64_t *allowed; /* and of these the ones allowed here; NULL: all */
    float temperature;       /* 0: the largest logit, the lowest id of equals */
    float top_p;             /* below 1: only the fewest most probable ids that hold so much are drawn from */
    double random;           /* [0, 1), picks one */
};

struct choice {
    int32_t id;           /* -1: nothing is allowed, or the logits are not numbers */
    float logprob;        /* of the ids known, at temperature 1 */
    float logprob_masked; /* of those allowed; equal without a set of them */
};

/* How a line of numbers is resized: out[o] = sum of weight[o * most + k] * in[first[o] + k] over k < count[o]. */
struct resize_taps {
    int out, most;
    int *first, *count;
    float *weight;
};

/* An image on the host and how it becomes patches (model/preprocess.h): resized to whole tiles, and where there are two sizes
 * to one tile more. */
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

struct backend;
struct made;

struct ops {
    const char *name;                 /* "ref", "avx2", "avx512", "avx512bf16", "cuda" */
    void (*close)(struct backend *b); /* everything of it but *b */

    /* The calling thread is not the one that opened it.  NULL where that makes no difference. */
    void (*attach)(struct backend *b);

    /* memory; upload and download convert between dtypes when they differ */
    struct tensor (*alloc)(struct backend *b, enum dtype t, int64_t rows, int64_t cols); /* zeroed */
    void (*free)(struct backend *b, struct tensor *t);
    /* alloc where memory may be at its end: then data is NULL.  NULL where nobody can tell. */
    struct tensor (*try_alloc)(struct backend *b, enum dtype t, int64_t rows, int64_t cols);
    /* Where tensors do not lie in the host's memory, else NULL: how many bytes are left for them, and memory of the
     * host from and to which they are copied fastest (NULL when there is none). */
    size_t (*memory_left)(struct backend *b);
    /* Takes the working memory of a model's operations, so that none of them asks for more later. */
    int (*reserve)(struct backend *b, const struct work_need *n, struct err *e);
    void *(*host_alloc)(struct backend *b, size_t bytes);
    void (*host_free)(struct backend *b, void *p);
    void (*upload)(struct backend *b, struct tensor dst, struct tensor host_src);
    void (*download)(struct backend *b, struct tensor host_dst, struct tensor src);
    void (*copy)(struct backend *b, struct tensor dst, struct tensor src); /* same shape; converts */
    /* Row t of src to dst[t], and row t of dst from src[t]: one row each, all of one type and width. */
    void (*scatter)(struct backend *b, const struct tensor *dst, struct tensor src);
    void (*gather)(struct backend *b, struct tensor dst, const struct tensor *src);

    /* weights: `host` (any float dtype, may be a mapped file) is read once; pack keeps `dtype` (bf16 or f32) */
    struct weight *(*pack)(struct backend *b, struct tensor host, enum dtype dtype);
    /* The same values left where they are: `host` (bf16 or f32, rows without gaps, aligned to its elements) is
     * read by every product and must outlive the weight; products equal those of a packed weight bit for
     * bit.  once: `host` is a mapped file that does not fit in memory, so its pages are given back after
     * each product.  NULL where a backend cannot read the host's memory. */
    struct weight *(*borrow)(struct backend *b, struct tensor host, bool once);
    void (*unpack_free)(struct backend *b, struct weight *w);

    /* The same of small numbers, in three steps so that the result can be kept in a file: how many bytes such a
     * matrix takes, these bytes (aligned to 64) filled, and a weight made of them.  owned: they came from malloc
     * and are freed with the weight; else they must outlive it.  quant_layout names the order of the bytes,
     * which is not the same in all backends. */
    const char *quant_layout;
    size_t (*quant_bytes)(const struct backend *b, enum quant_format format, int64_t rows, int64_t cols);
    void (*quant_pack)(struct backend *b, void *bytes, enum quant_format format,
                       const struct quant_source *s);
    struct weight *(*quant_weight)(struct backend *b, void *bytes, bool owned, enum quant_format format,
                                   int64_t rows, int64_t cols);

    /* For measuring without a checkpoint, numbers made from a counter where they are needed (synthetic.h): number
     * r * cols + c of dst; and a matrix of them that can be multiplied, in bf16 or f32, or in a form of small
     * numbers whose codes fill their range. */
    void (*make)(struct backend *b, struct tensor dst, const struct made *m);
    struct weight *(*make_synthetic_weight)(struct backend *b, enum quant_format format, enum dtype dtype,
                                            int64_t rows, int64_t cols, const struct made *m);

    /* Between the two, the same operations on tensors of the same shapes each time `key` is the same; ids and what
     * arrays of tensors point to may be others, and nothing is allocated, uploaded or downloaded.  Then a GPU starts
     * all of them at once.  NULL where that gains nothing. */
    void (*step_begin)(struct backend *b, uint64_t key);
    void (*step_end)(struct backend *b);

    /* y[T,D] = E[ids[t], :] */
    void (*embed)(struct backend *b, struct tensor y, struct tensor table, const int32_t *ids);

    /* y[T,N] = epi(x[T,K] . W[N,K]^T + bias[N]);  with add != 0: y += that (y is input too).
     * bias is a f32 vector or has data NULL.  y may be f32 while x is bf16 (logits). */
    void (*linear)(struct backend *b, struct tensor y, struct tensor x, const struct weight *w,
                   struct tensor bias, enum epilogue epi, int add);

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

    /* v[t,c] = silu(bias[c] + sum_k w[c,k] * xbc[t-K+1+k, c]), rows before the first come from
     * state [K-1, C] (oldest row first); on return state holds the last K-1 rows of the input.
     * w f32 [C,K], bias f32 [1,C]; T may be shorter than K-1. */
    void (*conv)(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w, struct tensor bias,
                 struct tensor state);

    /* Mamba-2 state space layer  v [T, H*P + 2*G*N] = x, B, C after conv;
     * dt [T,H] raw; state f32 or f16 [H*P, N] in and out; y [T, H*P] = C.S + D*x.
     * ssm_step: T == 1, the recurrence.  ssm_scan: any T, in chunks of shape->chunk.
     * Within a call the state is f32; in f16 it is rounded once, at the end, as stochastic_round.h says with `key`, the stochastic_key of
     * the position and layer that it is for then.  In f32 the key is not used. */
    void (*ssm_step)(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                     struct tensor state, uint32_t key, const struct ssm_shape *s, const struct ssm_const *c);
    void (*ssm_scan)(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                     struct tensor state, uint32_t key, const struct ssm_shape *s, const struct ssm_const *c);

    /* One token of each of several sessions: row t belongs to session t, whose state is states[t] and key keys[t].
     * All states are of one type; keys may be NULL where that is f32.  The same bits as conv and ssm_step of each row alone. */
    void (*conv_each)(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w,
                      struct tensor bias, const struct tensor *states);
    void (*ssm_each)(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                     const struct tensor *states, const uint32_t *keys, const struct ssm_shape *s,
                     const struct ssm_const *c);

    /* What stands between the projections of a Mamba-2 layer, for one token of each of several sessions, at once:
     * conv_each, ssm_each and gated_norm, rounded in the same places.  NULL where nothing is gained. */
    void (*mamba_each)(struct backend *b, struct tensor out, struct tensor z, struct tensor xbc,
                       struct tensor dt, const struct mamba_each *e);

    /* Keys or values [T, heads * d] in 8 bits: rows of kv8.h, dst f8e4m3 [T, kv8_cols]; and row t into dst[t]. */
    void (*kv_quantize)(struct backend *b, struct tensor dst, struct tensor src, int heads);
    void (*kv_quantize_batch)(struct backend *b, const struct tensor *dst, struct tensor src, int heads);

    /* Causal attention with grouped queries over a cache.  q [T, Hq*d]; k, v [S, Hkv*d] hold all
     * S = past + T positions (the new ones included); y [T, Hq*d]; query t sees positions <= past + t.
     * scale d^-0.5, softmax in f32, scores never stored whole.  k and v are of q's type or both f8e4m3, rows of
     * kv8.h: then as if they were the numbers that these mean. */
    void (*attend)(struct backend *b, struct tensor y, struct tensor q, struct tensor k, struct tensor v,
                   int q_heads, int kv_heads, int64_t past);

    /* Likewise: row t sees all of k[t] and v[t], its own the last of them. */
    void (*attend_each)(struct backend *b, struct tensor y, struct tensor q, const struct tensor *k,
                        const struct tensor *v, int q_heads, int kv_heads);

    /* Bidirectional attention inside each of `tiles` sequences of equal length.
     * qkv [tiles*n, 3*heads*d] with all q, all k, all v; y [tiles*n, heads*d]. */
    void (*attend_tiles)(struct backend *b, struct tensor y, struct tensor qkv, int heads, int tiles);

    /* Pixel shuffle v2: x [h*g, C], h rows of g in raster order -> y [(h/2)*(g/2), 4*C]. */
    void (*pixel_shuffle)(struct backend *b, struct tensor y, struct tensor x, int g);

    /* A table of side x side rows, f32 [side^2, C], resized to a square of the longer of rows and cols
     * (bilinear, half-pixel centres, edges repeated, in f32); y [rows*cols, C] is its upper left part. */
    void (*resize_grid)(struct backend *b, struct tensor y, struct tensor table, int rows, int cols);

    /* patches f32 [tiles * patches of each, 3 * patch^2]: what preprocess_image makes of the picture, to the bit; and
     * 128 bits for each tile that are the same where all its patches are.  NULL where the host does it. */
    int (*cut)(struct backend *b, struct tensor patches, uint64_t (*digest)[2], const struct picture *p,
               struct err *e); /* -1: no memory for its pixels */

    /* s = sigmoid(logits[t]); the k experts with the largest s + bias, among equals the first, of the groups
     * whose two largest s + bias sum to most.  ids i32 [T,k] rising; weights f32 [T,k] = s of each,
     * normalised and scaled as the shape says.  logits f32 [T,E]; bias f32 [1,E]. */
    void (*route)(struct backend *b, struct tensor ids, struct tensor weights, struct tensor logits,
                  struct tensor bias, const struct route_shape *s);

    /* y[t] = sum_j weights[t,j] Down_e . max(0, Up_e . x[t])^2 with e = ids[t,j], summed in f32 in the order
     * of j; Up . x and its square are rounded to x's type, the sum once.  ids of a row rise; y, x of
     * one type. */
    void (*experts)(struct backend *b, struct tensor y, struct tensor x, struct tensor ids,
                    struct tensor weights, const struct experts *e);

    /* out[t] chosen from row t of logits, f32 [T, N <= 2^21]; ids are below N.  By the rules of choose.h, so that it
     * is the choice of sample.h to the bit.  NULL where the host reads the logits. */
    void (*choose)(struct backend *b, struct tensor logits, const struct choosing *how, struct choice *out);

    /* Multiplies and adds `rounds` times in registers, on every thread, with factors of type t; returns
     * how many floating-point operations those were.  The caller takes the time: it is the limit that
     * everything else is measured against.  On a GPU bf16 is large matrix products. */
    double (*probe)(struct backend *b, enum dtype t, int64_t rounds);

    /* Waits until all that was asked of the device is done.  NULL where an operation returns when it is done. */
    void (*finish)(struct backend *b);
};

struct backend {
    const struct ops *ops;
    struct pool *pool; /* borrowed */
    void *priv;
};

/* A CPU backend.  isa: "ref", "avx2", "avx512", "avx512bf16", or NULL for the best this machine
 * runs.  The pool is borrowed and may be NULL (one thread).  NULL with a message when unknown or
 * not supported by this CPU. */
struct backend *backend_cpu(const char *isa, struct pool *pool, struct err *e);
void backend_free(struct backend *b);

/* A graphics processor that the kernels of cuda/ could run on. */
struct gpu {
    char name[64];
    int major, minor;    /* compute capability */
    size_t memory, free; /* bytes */
};

/* Those of this machine, at most max; returns how many there are.  -1 and why: no driver, one that is too old, a
 * program without CUDA. */
int backend_gpu_list(struct gpu *out, int max, struct err *e);

/* Computes a little of everything that a token goes through, and compares it with the scalar reference: some milliseconds.
 * -1 and which operation is off. */
int backend_check(struct backend *b, struct err *e);

/* device: "cpu"; "cuda" or "cuda:N", refused with the reason where it cannot be; "auto" or NULL: the first GPU that
 * can run the kernels and has `need` bytes free, else the CPU (with a warning where a GPU was of no use), and always the
 * CPU when an isa is named.  A GPU is checked first. */
struct backend *backend_open(const char *device, const char *isa, size_t need, struct pool *pool,
                             struct err *e);

/* Names of the instruction sets this CPU runs, best last, for doctor and tests. */
int backend_cpu_list(const char *names[], int max);

/* bf16 <-> f32: round to nearest even, NaN stays NaN. */
uint16_t bf16_from_f32(float f);
float bf16_to_f32(uint16_t h);
float f16_to_f32(uint16_t h);
float f8e4m3_to_f32(uint8_t v);

/* The same for e4m3; what is larger than its largest number, 448, becomes that, NaN 0x7f with its sign. */
uint8_t f8e4m3_from_f32(float f);

#endif
