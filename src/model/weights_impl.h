/* weights_impl.h - what the files that bind weights share; private to src/model. */
#ifndef HOLORUN_MODEL_WEIGHTS_IMPL_H
#define HOLORUN_MODEL_WEIGHTS_IMPL_H

#include "model/weights.h"

struct binder {
    const struct model_config *c;
    const struct safetensors *s;
    struct backend *b;
    const struct bind_options *o;
    struct err *e;
    bool failed;
    bool *used;       /* by index of the tensor */
    size_t done, all; /* bytes */
    size_t resident;  /* mapped bytes that stay in memory so far */
    char body[64];    /* "language_model.backbone." */
    char head[64];    /* "language_model." */
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

/* Whether a tensor can be used from the file as it is. */
bool binder_stays_mapped(const struct binder *x, const struct st_tensor *t, enum dtype wanted);

/* The tensor as a matrix on the host; *copy is to be freed. */
struct tensor binder_host_view(const struct st_tensor *t, int64_t rows, int64_t cols, void **copy);

/* The one place where a stored tensor becomes a matrix that can be multiplied; and the same by name. */
struct weight *binder_weight(struct binder *x, const struct st_tensor *t, int64_t rows, int64_t cols);
struct weight *binder_matrix(struct binder *x, const char *name, int64_t rows, int64_t cols);

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
