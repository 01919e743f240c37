/* weights_impl.h - what the files that bind weights share; private to src/model.
 *
 *   weights.c         the language model, what nobody asked for, the whole
 *   weights_vision.c  the tower and the projector
 *   weights_read.c    one stored tensor at a time
 *   weights_quantized.c   matrices of small numbers: as checkpoints store them, and as they are held
 *   weights_cache.c   the file that keeps what was made of them
 *   weights_synthetic.c    random numbers in the place of a file's
 */
#ifndef HOLORUN_MODEL_WEIGHTS_IMPL_H
#define HOLORUN_MODEL_WEIGHTS_IMPL_H

#include "model/weights.h"

#define VIT "vision_model.radio_model.model."

struct binder {
    const struct model_config *c;
    const struct safetensors *s;
    struct backend *b;
    const struct bind_options *o;
    struct err *e;
    bool failed;
    bool *used;           /* by index of the tensor */
    size_t done, all;     /* bytes */
    size_t resident;      /* mapped bytes that stay in memory so far */
    size_t awaited;       /* and of matrices that every token needs and that are still to come */
    double numbers, held; /* of matrices of the language model: how many, and their bytes */
    bool told_scales;     /* that scales of keys and values are left out */
    char body[64];        /* "language_model.backbone." */
    char head[64];        /* "language_model." */
};

/* Dimensions for binder_take_shape. */
#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                             \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

/* Keeps the first failure; binder_stopped: and nothing more is to be looked at. */
void binder_fail(struct binder *x, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool binder_stopped(const struct binder *x);

/* The tensor of this name, which must be there, hold numbers we can read, and have this shape; NULL on failure.
 * It counts as used. */
const struct st_tensor *binder_take(struct binder *x, const char *name);
const struct st_tensor *binder_take_shape(struct binder *x, const char *name, int dims, const int64_t *shape);

enum dtype binder_activation(const struct binder *x);

/* What a matrix is for decides in how many bits it may be held. */
enum role {
    ROLE_OTHER,  /* vision, projector */
    ROLE_LINEAR, /* of a layer of the language model */
    ROLE_HEAD,   /* logits */
};

/* A matrix as a checkpoint stores it; form other than NONE: with its scales. */
struct stored {
    const struct st_tensor *t;
    enum quant_format format;
    struct quant_source source;
    float *scales; /* of its rows, which whoever looked it up frees; NULL: there are none */
};

/* Whether a tensor can be used from the file as it is. */
bool binder_stays_mapped(const struct binder *x, const struct st_tensor *t, enum dtype wanted);

/* One of many matrices of which a token needs a few. */
bool binder_is_expert(const struct st_tensor *t);

/* The tensor as a matrix on the host; *copy is to be freed. */
struct tensor binder_host_view(const struct st_tensor *t, int64_t rows, int64_t cols, void **copy);

/* The one place where a stored tensor becomes a matrix that can be multiplied; and the same by name. */
struct weight *binder_weight(struct binder *x, enum role role, const struct stored *m);
struct weight *binder_matrix(struct binder *x, enum role role, const char *name, int64_t rows, int64_t cols);

/* Looks a matrix up with the scales that belong to it; false after a failure. */
bool binder_stored(struct binder *x, const char *name, int64_t rows, int64_t cols, struct stored *out);
/* The same of numbers that need no scales, perhaps a part of a tensor. */
struct stored binder_plain(const struct st_tensor *t, int64_t rows, int64_t cols);

/* The form in which a matrix is held; NONE: as bf16 or f32.  And a weight of such a form. */
enum quant_format binder_format(const struct binder *x, enum role role, const struct stored *m);
struct weight *binder_quantized(struct binder *x, enum quant_format format, const struct stored *m);
/* A stored form as bf16 on the host, which the caller frees. */
struct tensor binder_widened(const struct stored *m);

/* Whether a tensor is a scale that is of no use here. */
bool binder_unused_scale(struct binder *x, const struct st_tensor *t);

/* Random numbers instead of those of a tensor: whether, and where the weights are used or on the host. */
bool binder_makes(const struct binder *x);
struct weight *binder_synthetic_weight(struct binder *x, const struct st_tensor *t, enum quant_format format,
                                       enum dtype dtype, int64_t rows, int64_t cols);
void binder_make(struct binder *x, const struct st_tensor *t, struct tensor out);
void binder_make_host(const struct binder *x, const struct st_tensor *t, float *out, size_t n);

void binder_vision(struct binder *x, struct vision_weights *w);

/* Copied to where the backend wants it, in this type; a vector in f32. */
struct tensor binder_upload(struct binder *x, const struct st_tensor *t, enum dtype dtype, int64_t rows,
                            int64_t cols);
struct tensor binder_vector(struct binder *x, const char *name, int64_t n);

/* The numbers of a tensor in f32 on the host, which the caller frees or puts back; NULL stays NULL. */
float *binder_numbers(struct binder *x, const struct st_tensor *t);
struct tensor binder_put_numbers(struct binder *x, float *values, enum dtype dtype, int64_t rows,
                                 int64_t cols);

/* Its bytes are not needed any more. */
void binder_done(struct binder *x, const struct st_tensor *t);

#endif
