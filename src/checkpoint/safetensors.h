/* safetensors.h - tensors by name in one or several memory-mapped safetensors or GGUF files.
 *
 * A safetensors file consists of the header length (8 bytes, little-endian), a JSON header, and the bytes
 * of all tensors. The header is untrusted input: for each tensor, shape times element size must equal its
 * byte range, and the ranges together must cover the data without gaps and overlaps.
 *
 * The pages of a tensor are read on first access. safetensors_release discards them, so that a model
 * larger than free memory can be repacked tensor by tensor. */
#pragma once

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
    const void *data; /* row-major, little-endian; may be unaligned */
    size_t bytes;
    /* Type in a GGUF file whose rows gguf_rows.h decodes: dtype is then u8, and the shape counts numbers.
     * 0: not such a type. */
    uint32_t gguf;
};

struct safetensors;

/* Opens a GGUF place (gguf_model.h) or the safetensors files of a directory: those of
 * model.safetensors.index.json, else model.safetensors, else model-00001-of-0000N.safetensors and the rest
 * of the series. The caller closes the result. NULL with e on failure. */
struct safetensors *safetensors_open(const char *dir, struct err *e);

/* Returns -1 with e if a directory lacks some of its weight files. Sets *here to whether it has an index,
 * a single weight file or a first shard; returns 0 if it has none of these. */
int safetensors_complete(const char *dir, bool *here, struct err *e);

/* Parses one file in memory, which remains the caller's. Used by tests and fuzzing. */
struct safetensors *safetensors_parse(const void *data, size_t len, struct err *e);
void safetensors_close(struct safetensors *s);

int safetensors_count(const struct safetensors *s);
const struct st_tensor *safetensors_at(const struct safetensors *s, int i); /* sorted by name */
const struct st_tensor *safetensors_find(const struct safetensors *s, const char *name);

/* Discards the resident pages of one tensor, or of all. A later access reads them again. */
void safetensors_release(const struct safetensors *s, const struct st_tensor *t);

void safetensors_release_all(const struct safetensors *s);

/* Disables the kernel's readahead for random access; scattered = false enables it again. */
void safetensors_scattered(const struct safetensors *s, bool scattered);

int safetensors_files(const struct safetensors *s);
size_t safetensors_bytes(const struct safetensors *s); /* Returns the bytes of all files. */

/* safetensors_is_gguf: whether the tensors come from GGUF files. safetensors_spelling: the name in the
 * GGUF file of a published tensor name; for other files, the name itself. The result is valid until the
 * next call in this thread. */
bool safetensors_is_gguf(const struct safetensors *s);
const char *safetensors_spelling(const struct safetensors *s, const char *name);

/* Returns the type as text: "f32", "Q4_K". */
const char *safetensors_type(const struct st_tensor *t);

/* Writes the shape as text: "[2, 3]". */
void safetensors_shape_text(const struct st_tensor *t, char *out, size_t size);
