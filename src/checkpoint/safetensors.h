/* safetensors.h - named tensors in one or several mapped files.
 *
 * A file is: the length of the header (8 bytes, little-endian), a JSON header, the bytes of all tensors.
 * Nothing in the header is trusted: shape times element size must equal the byte range, and the ranges
 * together must cover the data exactly, without holes or overlaps.
 *
 * A tensor's pages come into memory when it is read and can be given back with safetensors_release, so
 * that a model larger than free memory can be packed tensor by tensor.
 */
#ifndef HOLORUN_CHECKPOINT_SAFETENSORS_H
#define HOLORUN_CHECKPOINT_SAFETENSORS_H

#include "base/err.h"
#include "ops/ops.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ST_MAX_DIMS = 8 };

struct st_tensor {
    char *name;
    const char *file; /* name of its shard, for messages */
    enum dtype dtype;
    int dims;
    int64_t shape[ST_MAX_DIMS];
    const void *data; /* row-major, little-endian, may be unaligned */
    size_t bytes;
    /* type in a GGUF file whose numbers gguf_rows.h reads: the dtype is u8, the shape counts numbers; or 0 */
    uint32_t gguf;
};

struct safetensors;

/* Opens a GGUF file (gguf_model.h), or the shards that model.safetensors.index.json of a directory names;
 * without that file
 * model.safetensors, or model-00001-of-0000N.safetensors and the rest. NULL on failure. */
struct safetensors *safetensors_open(const char *dir, struct err *e);

/* Fails when a directory lacks some of its weight files.  Sets *here to whether it has an index, a single
 * weight file or a first shard. */
int safetensors_complete(const char *dir, bool *here, struct err *e);

/* One file in memory, which stays the caller's: for tests and fuzzing. */
struct safetensors *safetensors_parse(const void *data, size_t len, struct err *e);
void safetensors_close(struct safetensors *s);

int safetensors_count(const struct safetensors *s);
const struct st_tensor *safetensors_at(const struct safetensors *s, int i); /* sorted by name */
const struct st_tensor *safetensors_find(const struct safetensors *s, const char *name);

/* Gives back the pages of a tensor that is not needed any more, or of all. */
void safetensors_release(const struct safetensors *s, const struct st_tensor *t);

void safetensors_release_all(const struct safetensors *s);

/* Random access follows: turns readahead off. */
void safetensors_scattered(const struct safetensors *s, bool scattered);

int safetensors_files(const struct safetensors *s);
size_t safetensors_bytes(const struct safetensors *s); /* of all files */

/* Whether they come from GGUF files; and what these call a tensor with a published name, else the name: valid
 * until the next call in this thread. */
bool safetensors_is_gguf(const struct safetensors *s);
const char *safetensors_spelling(const struct safetensors *s, const char *name);

/* "f32", "Q4_K" */
const char *safetensors_type(const struct st_tensor *t);

/* "[2, 3]" */
void safetensors_shape_text(const struct st_tensor *t, char *out, size_t size);

#endif
