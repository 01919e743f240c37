/* weights_impl.h - what the files that bind weights share; private to src/model.
 *
 *   weights.c            the language model, unknown tensors, the whole
 *   weights_qwen.c       the language models of Qwen3.5, Qwen3-VL, Qwen2.5-VL
 *   weights_vision.c     the tower and the projector
 *   weights_vision_qwen.c  those of Qwen's models
 *   weights_read.c       one stored tensor at a time
 *   weights_quantized.c  quantized matrices: as checkpoints store them, and as they are kept
 *   weights_gptq.c       those of GPTQ
 *   weights_cache.c      the file that keeps matrices quantized here
 *   weights_synthetic.c  synthetic values in place of a file's
 */
#ifndef HOLORUN_MODEL_WEIGHTS_IMPL_H
#define HOLORUN_MODEL_WEIGHTS_IMPL_H

#include "model/weights.h"

#define VIT "vision_model.radio_model.model."

/* Matrices stored as one format and kept as another; names are static. */
enum { WEIGHT_FORMS = 64 };
struct weight_form {
    const char *from, *to;
    int matrices;
};

struct binder {
    struct model_weights *w;
    const struct model_config *c;
    const struct safetensors *s;
    struct backend *b;
    const struct bind_options *o;
    struct err *e;
    bool failed;
    bool *used;                             /* by index of the tensor */
    size_t done, all;                       /* bytes */
    size_t resident;                        /* mapped bytes that stay in memory so far */
    size_t awaited;                         /* bytes of matrices still to come that every token needs */
    double elements, stored_bytes;          /* matrices of the language model: elements and their bytes */
    struct weight_form forms[WEIGHT_FORMS]; /* formats that changed */
    bool told_scales;                       /* the warning about ignored KV scales has been given */
    char body[64];                          /* "language_model.backbone." */
    char head[64];                          /* "language_model." */
};

/* Dimensions for binder_take_shape. */
#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                             \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

/* Keeps the first failure; binder_stopped: whether binding ends there. */
void binder_fail(struct binder *x, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool binder_stopped(const struct binder *x);

/* The tensor of this name, which must exist, be of a float type or one of GGUF, and have this shape; NULL on
 * failure. It counts as used. */
const struct st_tensor *binder_take(struct binder *x, const char *name);
const struct st_tensor *binder_take_shape(struct binder *x, const char *name, int dims, const int64_t *shape);

/* Returns whether the blocks of a GGUF tensor are finite, looking at one in `step`; fails where not. */
bool binder_check_blocks(struct binder *x, const struct st_tensor *t, size_t step);

enum dtype binder_activation(const struct binder *x);

/* The purpose of a matrix, which limits how far it may be quantized. */
enum role {
    ROLE_OTHER,  /* projector, embedding of patches */
    ROLE_TOWER,  /* blocks of the vision tower */
    ROLE_GATE,   /* a few rows that decide much: kept as stored */
    ROLE_LINEAR, /* layers of the language model */
    ROLE_HEAD,   /* lm_head */
};

/* A matrix as a checkpoint stores it; with a format other than NONE it has scales. */
struct stored {
    const struct st_tensor *t;
    enum quant_format format;
    struct quant_source source;
    float *scales; /* of its rows, or NULL */
    struct quant_gptq gptq;
    int32_t *order; /* of GPTQ, or NULL */
};

/* Whether a tensor can be used in place, in the file. */
void binder_check_mapped(struct binder *x, const struct st_tensor *t); /* refuses NaN in a sample of it */
bool binder_stays_mapped(const struct binder *x, const struct st_tensor *t, enum dtype wanted);

/* Experts: of many such matrices a token needs few. */
bool binder_is_expert(const struct st_tensor *t);

/* The tensor as a matrix on the host, aligned, for values that are about to be read, those of GGUF's types as
 * f32: a failure when some are NaN or infinite.  The caller frees *copy. */
struct tensor binder_host_view(struct binder *x, const struct st_tensor *t, int64_t rows, int64_t cols,
                               void **copy);

/* Turns a stored tensor into a weight, the only place that does; and the same by name. */
struct weight *binder_weight(struct binder *x, enum role role, const struct stored *m);
struct weight *binder_matrix(struct binder *x, enum role role, const char *name, int64_t rows, int64_t cols);

/* Looks a matrix up with its scales; false after a failure.  Its source points into `out`, whose lists
 * binder_stored_free frees. */
bool binder_stored(struct binder *x, const char *name, int64_t rows, int64_t cols, struct stored *out);
void binder_stored_free(struct stored *m);
/* The tensor X.SUFFIX beside "X.weight", which counts as used; NULL when there is none. */
const struct st_tensor *binder_beside(struct binder *x, const char *name, const char *suffix);
/* A matrix of GPTQ whose codes, X.qweight, were found. */
bool binder_gptq(struct binder *x, struct stored *m, const char *name);
/* Reads the scale of matrix k of stacked experts in NVFP4 of a GGUF file, if the file has one; false after a
 * failure. */
bool binder_part_scale(struct binder *x, const struct st_tensor *t, int64_t k, float *out);
/* A matrix without scales beside it, possibly a part of a tensor. */
struct stored binder_plain(const struct st_tensor *t, int64_t rows, int64_t cols);

/* The format a matrix is kept in; NONE: bf16 or f32.  And a weight of that format. */
enum quant_format binder_format(const struct binder *x, enum role role, const struct stored *m);
struct weight *binder_quantized(struct binder *x, enum quant_format format, const struct stored *m);
/* Dequantizes a stored matrix to bf16 or f32 on the host; the caller frees the data. */
struct tensor binder_dequantized(const struct stored *m, enum dtype dtype);
/* Counts a matrix that has no kernels in its stored format and is kept as `to`; the list of these as text,
 * which the caller frees, or NULL. */
void binder_note_form(struct binder *x, const struct stored *m, const char *to);
char *binder_forms(const struct binder *x);

/* Whether a tensor is a scale that is ignored. */
bool binder_unused_scale(struct binder *x, const struct st_tensor *t);

/* Synthetic values instead of a tensor's: whether, and for a weight, a tensor of the backend or host
 * memory. */
bool binder_makes(const struct binder *x);
struct weight *binder_synthetic_weight(struct binder *x, const struct st_tensor *t, enum quant_format format,
                                       enum dtype dtype, int64_t rows, int64_t cols);
void binder_make(struct binder *x, const struct st_tensor *t, struct tensor out);
void binder_make_host(const struct binder *x, const struct st_tensor *t, float *out, size_t n);

/* The language model of the Qwen3.5 family; its spelling of names; tensors that nothing takes. */
bool binder_find_qwen(struct binder *x);
void binder_qwen(struct binder *x, struct model_weights *w);
bool binder_unused_qwen(const struct st_tensor *t);

/* The embedding, which may stay mapped; a router, in f32 whatever the run's type; rows [first, first +
 * rows) of a tensor with three dimensions, as a matrix of a layer. */
void binder_embedding(struct binder *x, const struct st_tensor *t, struct model_weights *w);
struct weight *binder_router(struct binder *x, const char *name, int64_t rows, int64_t cols);
struct weight *binder_part(struct binder *x, const struct st_tensor *t, int64_t first, int64_t rows,
                           int64_t cols);

void binder_vision(struct binder *x, struct vision_weights *w);
void binder_vision_qwen(struct binder *x, struct vision_weights *w);

/* A tensor of the backend, and a weight, that weights_free frees. */
struct tensor binder_alloc(struct binder *x, enum dtype dtype, int64_t rows, int64_t cols);
struct weight *binder_own_weight(struct binder *x, struct weight *m);

/* Uploads a tensor as this type; a vector as f32. */
struct tensor binder_upload(struct binder *x, const struct st_tensor *t, enum dtype dtype, int64_t rows,
                            int64_t cols);
struct tensor binder_vector(struct binder *x, const char *name, int64_t n);

/* A tensor's values in f32 on the host, which the caller frees or passes on; NULL stays NULL. */
float *binder_numbers(struct binder *x, const struct st_tensor *t);
struct tensor binder_put_numbers(struct binder *x, float *values, enum dtype dtype, int64_t rows,
                                 int64_t cols);

/* A tensor's bytes are not needed any more. */
void binder_done(struct binder *x, const struct st_tensor *t);

#endif
