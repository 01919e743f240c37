/* weights_cache.h - the file that keeps what int8, int4 and fp8 have made, so that the next start maps it.
 *
 * Making small numbers of a large model takes minutes; mapping them takes nothing.  The file is
 * XDG_CACHE_HOME/holorun/weights/HASH.weights, named after the model's directory, the numbers and the order of
 * their bytes (which is the backend's), and holds the identity of the model it was made from: its engine hash
 * and the name, size and time of each of its files.  A file that is stale, damaged or of another version is
 * written anew; one that cannot be written costs a warning.
 *
 *     header    magic, version, identity, size of the file, place and number of entries, checksums
 *     matrices  each on a page boundary
 *     entries   name, form, rows, columns, place, bytes, checksum
 *
 * Checked at opening: sizes, header and entries by their checksums, and of the matrices all bytes of a file up to
 * 256 MiB, of a larger one the first 64 KiB of each.  It is written under another name and renamed
 * when complete: of two processes at once, each has a whole one.
 */
#ifndef HOLORUN_MODEL_WEIGHTS_CACHE_H
#define HOLORUN_MODEL_WEIGHTS_CACHE_H

#include "model/options.h"
#include "model/safetensors.h"
#include "ops/ops.h"

struct weight_cache;

/* identity: of the model, in whatever way; the files' times and sizes are added here. */
struct weight_cache *weight_cache_open(const char *dir, const struct safetensors *s, uint64_t identity,
                                       enum weight_storage numbers, const char *layout);
bool weight_cache_mapped(const struct weight_cache *c); /* matrices are found in it */

/* NULL when it is not there; else memory that is valid until weight_cache_close. */
void *weight_cache_find(const struct weight_cache *c, const char *name, enum quant_format format,
                        int64_t rows, int64_t cols, size_t bytes);
void weight_cache_add(struct weight_cache *c, const char *name, enum quant_format format, int64_t rows,
                      int64_t cols, const void *data, size_t bytes);

/* Nothing will be added: the file gets its name, or is given up after a failure elsewhere. */
void weight_cache_finish(struct weight_cache *c, bool complete);
void weight_cache_close(struct weight_cache *c);

#endif
