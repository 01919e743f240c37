/* weights_cache.h - cache file of quantized weights, which the next start maps instead of quantizing
 * again.
 *
 * Quantizing a large model takes minutes, and mapping the file takes almost no time. The file is
 * XDG_CACHE_HOME/holorun/weights/HASH.weights, where HASH covers the model directory, the storage type and
 * the backend's weight layout. The file also stores the identity of the model: its engine hash, and the
 * name, size and modification time of each of its files. A file that is stale, damaged or of another
 * version is rewritten. If the file cannot be written, a warning is printed.
 *
 *     header    magic, version, identity, file size, offset and number of entries, checksums
 *     matrices  each at a page boundary
 *     entries   name, format, rows, columns, offset, bytes, checksums
 *
 * Opening verifies the sizes, and header and entries by their checksums. Of the matrices it verifies all
 * bytes of a file of up to 256 MiB, and the first 64 KiB of each matrix in a larger one. A new file is
 * written under a temporary name and renamed when complete, so that two concurrent processes each see a
 * complete file. */
#pragma once

#include "checkpoint/options.h"
#include "checkpoint/safetensors.h"
#include "ops/ops.h"

struct weight_cache;

/* Opens the cache of a model. identity: a hash of the model, to which the times and sizes of the files are
 * added. layout: name of the backend's weight layout. Begins a new file if none is valid. NULL
 * after a warning if the cache directory cannot be created. */
struct weight_cache *weight_cache_open(const char *dir, const struct safetensors *s, uint64_t identity,
                                       enum weight_storage numbers, const char *layout);

/* Returns a matrix, valid until weight_cache_close; NULL if it is not in the file. */
void *weight_cache_find(const struct weight_cache *c, const char *name, enum quant_format format,
                        int64_t rows, int64_t cols, size_t bytes);
void weight_cache_add(struct weight_cache *c, const char *name, enum quant_format format, int64_t rows,
                      int64_t cols, const void *data, size_t bytes);

/* Ends writing. complete: renames the file to its final name; otherwise, discards it. */
void weight_cache_finish(struct weight_cache *c, bool complete);
void weight_cache_close(struct weight_cache *c);

/* Returns the path of a file in the cache directory, which is created. The caller frees it. NULL with e on
 * failure. */
char *weight_cache_path(uint64_t key, const char *kind, struct err *e);
