/* weights_impl.h - functions shared by the files that bind weights; private to src/model.
 *
 *     weights.c              Nemotron's language model, unknown tensors, weights_bind()
 *     weights_qwen.c         language models of Qwen3.5, Qwen3-VL, Qwen2.5-VL
 *     weights_vision.c       vision encoder and projector
 *     weights_vision_qwen.c  vision encoders and mergers of Qwen's models
 *     weights_read.c         looks up, checks and converts single tensors
 *     weights_quantized.c    quantized matrices: formats of checkpoints, and the formats in memory
 *     weights_gptq.c         GPTQ matrices
 *     weights_synthetic.c    synthetic values instead of a file's
 *
 * The file of matrices quantized at load time: checkpoint/weights_cache.h. */
#pragma once

#include "model/weights.h"

#define VIT "vision_model.radio_model.model."

/* Matrices stored in one format and kept in another; the names are static. */
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
    bool *used;                             /* per tensor index */
    size_t done, all;                       /* bytes */
    size_t resident;                        /* mapped bytes that stay in memory so far */
    size_t awaited;                         /* bytes of matrices still to come that every token needs */
    double elements, stored_bytes;          /* matrices of the language model: elements and bytes */
    struct weight_form forms[WEIGHT_FORMS]; /* formats that changed */
    bool warned_scales;                     /* the warning about ignored KV scales has been issued */
    char body[64];                          /* "language_model.backbone." */
    char head[64];                          /* "language_model." */
};

/* Dimensions for binder_take_shape(). */
#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                             \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

/* Records a failure; the first one is reported. binder_stopped() returns whether binding ends there. */
void binder_fail(struct binder *x, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool binder_stopped(const struct binder *x);

/* Return the tensor of this name and mark it as used; NULL after reporting a failure. It must exist, be of
 * a float or GGUF type, and have this shape. */
const struct st_tensor *binder_take(struct binder *x, const char *name);
const struct st_tensor *binder_take_shape(struct binder *x, const char *name, int dims, const int64_t *shape);

/* Returns whether the blocks of a GGUF tensor are finite, checking one in `step`; reports a failure if
 * not. */
bool binder_check_blocks(struct binder *x, const struct st_tensor *t, size_t step);

enum dtype binder_activation(const struct binder *x);

/* The purpose of a matrix, which limits its quantization. */
enum role {
    ROLE_OTHER,  /* projector, patch embedding */
    ROLE_TOWER,  /* blocks of the vision encoder */
    ROLE_GATE,   /* a few rows with a large effect: kept as stored */
    ROLE_LINEAR, /* layers of the language model */
    ROLE_HEAD,   /* lm_head */
};

/* A matrix as stored in a checkpoint; with a format other than NONE it has scales. */
struct stored {
    const struct st_tensor *t;
    enum quant_format format;
    struct quant_source source;
    float *scales; /* scales of its rows, or NULL */
    struct quant_gptq gptq;
    int32_t *order; /* column order of GPTQ, or NULL */
};

/* Return whether a tensor can be used in place, in the file; reject NaN or infinity in a sample of its
 * pages. */
void binder_check_mapped(struct binder *x, const struct st_tensor *t);
bool binder_stays_mapped(const struct binder *x, const struct st_tensor *t, enum dtype wanted);

/* Returns whether a tensor belongs to an expert (a token uses only a few). */
bool binder_is_expert(const struct st_tensor *t);

/* Returns the tensor as an aligned matrix on the host, GGUF types converted to f32; reports a failure if
 * values are NaN or infinite. The caller frees *copy. */
struct tensor binder_host_view(struct binder *x, const struct st_tensor *t, int64_t rows, int64_t cols,
                               void **copy);

/* Convert a stored tensor to a weight, directly or by name. No other function does this. */
struct weight *binder_weight(struct binder *x, enum role role, const struct stored *m);
struct weight *binder_matrix(struct binder *x, enum role role, const char *name, int64_t rows, int64_t cols);

/* Looks up a matrix and its scales. Returns false after a failure. Its source points into `out`, whose
 * lists binder_stored_free() frees. */
bool binder_stored(struct binder *x, const char *name, int64_t rows, int64_t cols, struct stored *out);
void binder_stored_free(struct stored *m);
/* Returns the tensor X.SUFFIX that accompanies "X.weight" and marks it as used; NULL if it does not exist. */
const struct st_tensor *binder_beside(struct binder *x, const char *name, const char *suffix);
/* Looks up the tensors of a GPTQ matrix whose codes, X.qweight, were found. Returns false after a failure. */
bool binder_gptq(struct binder *x, struct stored *m, const char *name);
/* Reads the scale of matrix k of stacked NVFP4 experts in a GGUF file, if the file has one. Returns false
 * after a failure. */
bool binder_part_scale(struct binder *x, const struct st_tensor *t, int64_t k, float *out);
/* Returns a matrix without scales, possibly part of a tensor. */
struct stored binder_plain(const struct st_tensor *t, int64_t rows, int64_t cols);

/* Return the format in which a matrix is kept (NONE: bf16 or f32), and a weight of that format. */
enum quant_format binder_format(const struct binder *x, enum role role, const struct stored *m);
struct weight *binder_quantized(struct binder *x, enum quant_format format, const struct stored *m);
/* Dequantizes a stored matrix to bf16 or f32 on the host; the caller frees the data. */
struct tensor binder_dequantized(const struct stored *m, enum dtype dtype);
/* Count a matrix that has no kernels in its stored format and is kept as `to`; return the list of these as
 * text, which the caller frees, or NULL. */
void binder_note_form(struct binder *x, const struct stored *m, const char *to);
char *binder_forms(const struct binder *x);

/* Returns whether a tensor is a scale that is ignored. */
bool binder_unused_scale(struct binder *x, const struct st_tensor *t);

/* Replace a tensor's values by synthetic ones: whether to do so, and the functions for a weight, a tensor
 * of the backend, and host memory. */
bool binder_makes(const struct binder *x);
struct weight *binder_synthetic_weight(struct binder *x, const struct st_tensor *t, enum quant_format format,
                                       enum dtype dtype, int64_t rows, int64_t cols);
void binder_make(struct binder *x, const struct st_tensor *t, struct tensor out);
void binder_make_host(const struct binder *x, const struct st_tensor *t, float *out, size_t n);

/* Bind the language model of a Qwen family: find the spelling of its names; bind all tensors; recognize
 * unused ones. */
bool binder_find_qwen(struct binder *x);
void binder_qwen(struct binder *x, struct model_weights *w);
bool binder_unused_qwen(const struct st_tensor *t);

/* Bind the embedding, which may stay mapped; a router, always in f32; rows [first, first + rows) of a
 * tensor with three dimensions, as a matrix of a layer. */
void binder_embedding(struct binder *x, const struct st_tensor *t, struct model_weights *w);
struct weight *binder_router(struct binder *x, const char *name, int64_t rows, int64_t cols);
struct weight *binder_part(struct binder *x, const struct st_tensor *t, int64_t first, int64_t rows,
                           int64_t cols);

void binder_vision(struct binder *x, struct vision_weights *w);
void binder_vision_qwen(struct binder *x, struct vision_weights *w);

/* Create a tensor of the backend, and register a weight, both freed by weights_free(). */
struct tensor binder_alloc(struct binder *x, enum dtype dtype, int64_t rows, int64_t cols);
struct weight *binder_own_weight(struct binder *x, struct weight *m);

/* Upload a tensor as the given type; a vector as f32. */
struct tensor binder_upload(struct binder *x, const struct st_tensor *t, enum dtype dtype, int64_t rows,
                            int64_t cols);
struct tensor binder_vector(struct binder *x, const char *name, int64_t n);

/* Returns a tensor's values as f32 on the host, which the caller frees or passes to binder_put_numbers();
 * NULL for t NULL. */
float *binder_numbers(struct binder *x, const struct st_tensor *t);
struct tensor binder_put_numbers(struct binder *x, float *values, enum dtype dtype, int64_t rows,
                                 int64_t cols);

/* Reports progress and releases the pages of a tensor that is no longer needed. */
void binder_done(struct binder *x, const struct st_tensor *t);
