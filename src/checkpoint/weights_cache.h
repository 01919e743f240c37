/* weights_cache.h - a file that keeps the matrices quantized at a start, so that the next start maps it.
 *
 * Quantizing a large model takes minutes; mapping takes nothing.  The file is
 * XDG_CACHE_HOME/holorun/weights/HASH.weights, named after the model's directory, the storage type and
 * the backend's byte order, and holds the identity of the model it was made from: its engine hash and
 * the name, size and time of each of its files.  A stale, damaged or foreign-version file is rewritten;
 * one that cannot be written costs a warning.
 *
 *     header    magic, version, identity, size of the file, place and number of entries, checksums
 *     matrices  each on a page boundary
 *     entries   name, format, rows, columns, place, bytes, checksum
 *
 * Opening checks sizes, header and entries by their checksums, and the matrices: all bytes of a file up
 * to 256 MiB, the first 64 KiB of each matrix of a larger one.  A new file is written under another name
 * and renamed when complete, so that of two processes each has a whole one.
 */
#ifndef HOLORUN_CHECKPOINT_WEIGHTS_CACHE_H
#define HOLORUN_CHECKPOINT_WEIGHTS_CACHE_H

#include "checkpoint/options.h"
#include "checkpoint/safetensors.h"
#include "ops/ops.h"

struct weight_cache;

/* identity: a hash of the model; the files' times and sizes are added here. */
struct weight_cache *weight_cache_open(const char *dir, const struct safetensors *s, uint64_t identity,
                                       enum weight_storage numbers, const char *layout);

/* NULL when not found; else valid until weight_cache_close. */
void *weight_cache_find(const struct weight_cache *c, const char *name, enum quant_format format,
                        int64_t rows, int64_t cols, size_t bytes);
void weight_cache_add(struct weight_cache *c, const char *name, enum quant_format format, int64_t rows,
                      int64_t cols, const void *data, size_t bytes);

/* Ends writing: the file gets its name, or is dropped after a failure elsewhere. */
void weight_cache_finish(struct weight_cache *c, bool complete);
void weight_cache_close(struct weight_cache *c);

/* Path of a file of the cache's folder, which is made; NULL with the reason. */
char *weight_cache_path(uint64_t key, const char *kind, struct err *e);

#endif
