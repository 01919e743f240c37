/* safetensors.h - named arrays in one or several mapped files.
 *
 * A file is: the length of the header (8 bytes, little-endian), a JSON header, then the bytes of all
 * tensors.  Nothing in the header is believed: shapes times element size must equal the byte range, and
 * the ranges together must cover the data exactly, without holes and without overlaps.
 *
 * Pages of a tensor come into memory when it is read and may be given back with
 * safetensors_release, so that a model larger than memory's spare part can be packed tensor by tensor.
 */
#ifndef HOLORUN_MODEL_SAFETENSORS_H
#define HOLORUN_MODEL_SAFETENSORS_H

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
    const void *data; /* row-major, little-endian, perhaps not aligned */
    size_t bytes;
};

struct safetensors;

/* Opens the shards that model.safetensors.index.json of a directory names; without that file
 * model.safetensors, or model-00001-of-0000N.safetensors and the rest. NULL on failure. */
struct safetensors *safetensors_open(const char *dir, struct err *e);

/* One file that is in memory already and stays there: for tests and fuzzing. */
struct safetensors *safetensors_parse(const void *data, size_t len, struct err *e);
void safetensors_close(struct safetensors *s);

int safetensors_count(const struct safetensors *s);
const struct st_tensor *safetensors_at(const struct safetensors *s, int i); /* sorted by name */
const struct st_tensor *safetensors_find(const struct safetensors *s, const char *name);

/* The tensor has been read and its pages are not needed any more. */
void safetensors_release(const struct safetensors *s, const struct st_tensor *t);

void safetensors_release_all(const struct safetensors *s); /* all of them */

/* What is read next is a little here and there: nothing around it is brought in. */
void safetensors_scattered(const struct safetensors *s, bool scattered);

int safetensors_files(const struct safetensors *s);
size_t safetensors_bytes(const struct safetensors *s); /* of all files together */

/* "[2, 3]" */
void safetensors_shape_text(const struct st_tensor *t, char *out, size_t size);

#endif
