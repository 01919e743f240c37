/* heads.h - the screen heads of a checkpoint: characters, element classes and pointers for each patch of an
 * image (patch_map.h). */
#pragma once

#include "pocket/patch_map.h"
#include "session/session.h"

struct heads;

/* Finds the heads of an engine, which must outlive them.  Returns NULL if the checkpoint has none, or with e
 * set if their shapes are wrong.  The caller frees them (free()). */
struct heads *heads_open(struct engine *g, struct err *e);

/* Reads an image.  out->patches is NULL if memory was short; the caller frees it with patch_map_free().
 * Returns -1 with e if stopped or out of memory.  cancel: see engine_use_tower(). */
int heads_read(const struct heads *h, const struct image *im, const volatile int *cancel,
               struct patch_map *out, struct err *e);
