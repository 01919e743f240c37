/* full_model.h - model directory of the published size with sparse weight files.
 *
 * Config, tokenizer, index and headers are written. The 26 GB of tensors are holes, which use no disk space
 * and read as zeros, except for scales, which are ones. A test may change the description first to write an
 * invalid model.
 */
#pragma once

#include "place.h"

#include "session/session.h"

#include <stdbool.h>
#include <stdint.h>

enum { FULL_SHARDS = 6, FULL_TENSORS = 759, FULL_VOCAB = 132096 };

struct full_tensor {
    char name[96];
    const char *dtype; /* as in the file: "BF16" */
    int dims;
    int64_t shape[5];
    int shard;         /* from 0 */
    int64_t begin_off; /* added to its offsets, in the header only */
    int64_t end_off;
    int index_shard;    /* shard in the index; -1: not listed, -2: the right one */
    bool only_in_index; /* in no shard */
    bool ones;          /* data written as ones (BF16 or F32), because it must not be 0 */
};

struct random_model;

struct full_model {
    char dir[PLACE_PATH];
    const struct random_model *as; /* source of config, tokenizer and plain tensors: bench/random.h */
    const char *quantization;      /* members of quantization_config; NULL: none */
    struct full_tensor *tensors;
    int n;
    int64_t cut; /* bytes missing from the last shard */
    int without; /* shard that is not written; -1: none */
};

void full_init(struct full_model *m);                      /* Holotron as published: FULL_TENSORS tensors */
void full_init_as(struct full_model *m, const char *name); /* a model of bench --random */
void full_begin(struct full_model *m);                     /* place_make(), full_init() and full_write() */
void full_free(struct full_model *m);                      /* removes the directory, too */
struct full_tensor *full_find(struct full_model *m, const char *name);
struct full_tensor *full_add(struct full_model *m, const char *name, int shard, int dims,
                             const int64_t *shape);
void full_drop(struct full_model *m, const char *name);

/* Writes the directory: m->dir if set, else a new temporary one. */
void full_write(struct full_model *m);
/* Writes the weights, expects that the directory is not opened with a message that has both texts, and frees
 * all but the directory, for another full_init(). */
void full_damaged(struct full_model *m, struct engine_options o, const char *naming, const char *also);
void full_write_shards(const struct full_model *m); /* writes only the weights, into an existing directory */

int64_t full_bytes(const struct full_tensor *t);
