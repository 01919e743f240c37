/* tiny_model.h - random model of the family in the published layout that opens in milliseconds: for tests
 * without assets, and for tests of damaged models.
 *
 *     struct tiny t;
 *     tiny_init(&t, seed);
 *     tiny_edit(&t.config, "\"n_groups\":2", "\"n_groups\":5");      change something, or nothing
 *     tiny_write(&t);                                               t.dir is now a model directory
 *     tiny_free(&t);                                                removes it
 *
 * Layer pattern M-*-M-, hidden size 40; vision encoder of two blocks over tiles of 64 pixels (16 patches, 4
 * tokens); tokens are bytes at 16 + b, with <image> <img> </img> at 272. V is 288, the tokenizer has 275 ids.
 */
#pragma once

#include "place.h"

#include "ops/ops.h"
#include "session/session.h"
#include "session/session_impl.h"

struct tiny_tensor {
    char name[96];
    const char *type; /* as in the header */
    int dims;
    int64_t shape[4];
    uint8_t *data;
    size_t bytes;
};

struct tiny {
    char dir[PLACE_PATH]; /* "" until written */
    struct tiny_tensor *tensors;
    int n;
    char *config, *preprocessor, *generation, *tokenizer; /* NULL: the file is not written */
    int shards;                                           /* 1: model.safetensors; more: with an index */
    bool f32;                                             /* writes weights in f32 instead of bf16 */
};

void tiny_init(struct tiny *t, uint64_t seed);
void tiny_write(struct tiny *t);
void tiny_free(struct tiny *t);

/* Replaces the first occurrence; fails the test without one. */
void tiny_edit(char **text, const char *from, const char *to);

/* Adds a quantization_config with these members. */
void tiny_quantization(struct tiny *t, const char *members);

struct tiny_tensor *tiny_find(struct tiny *t, const char *name);
void tiny_drop(struct tiny *t, const char *name);
/* Adds a tensor of random numbers around `mean` and returns it; shape ends with 0. */
struct tiny_tensor *tiny_add(struct tiny *t, const char *name, double mean, double spread,
                             const int64_t *shape);

/* Adds a tensor NAME SUFFIX with these values, which are copied. cols 0: one dimension. */
void tiny_put(struct tiny *t, const char *name, const char *suffix, const char *type, const void *data,
              int64_t rows, int64_t cols);
/* Changes all tensors in bf16 to f32. */
void tiny_widen(struct tiny *t);
/* Removes all tensors and files; the next tiny_add() begins another model. */
void tiny_clear(struct tiny *t);
/* Writes both and frees them. Returns the largest tiny_distance() of t's logits on each instruction set from
 * those of `plain` on the reference. */
double tiny_worst(struct tiny *t, struct tiny *plain);
/* Returns the code of a format whose value is nearest to x. */
int tiny_nearest_code(enum quant_format format, float x);

/* Writes the model, expects that it is not opened with a message that has both texts, and frees it. */
void tiny_damaged(struct tiny *t, const char *naming, const char *also);

/* Opens t.dir; fails the test with the reason on an error. isa NULL: best. */
struct engine *tiny_open(const struct tiny *t, const char *isa, int threads, bool f32);

/* Opens it on a device ("cpu", "cuda"), with one thread. */
struct engine *tiny_open_on(const struct tiny *t, const char *device, const char *isa, bool f32);

/* Returns the root mean square of the difference of n logits relative to theirs; infinite if they are NaN or
 * all 0. */
double tiny_distance(const float *a, const float *b, int n);

/* Returns a random image; free it with image_free(). */
struct image tiny_image(int w, int h, uint64_t seed);

/* Append or fail the test: n tokens that depend on their position and on `first`, one at a time; text, which
 * may contain special tokens; a random image of 90x60. */
void tiny_append(struct session *s, int first, int n);
void tiny_append_text(struct session *s, const char *text);
void tiny_append_image(struct session *s, uint64_t seed);

/* Computes the logits [288] after 25 tokens, in f32, with these CPU kernels. */
void tiny_logits(const struct tiny *t, const char *isa, float *out);

/* Fails unless opening with these options fails with a usage error that contains `says`. */
void tiny_refused(struct engine_options o, const char *says);
