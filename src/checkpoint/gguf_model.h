/* gguf_model.h - GGUF files of the Qwen3.5 family as what a published directory holds.
 *
 *   gguf_config.c   keys become the text of a config.json, which config.c reads and checks
 *   gguf_tensors.c  tensors get the published names and shapes; their bytes stay as they lie
 *
 * The converter of such files adds 1 to the norms, stores -exp(A_log), and orders value heads by their
 * place in the group instead of by group; binding knows (weights_qwen.c), the delta rule too (delta_shape).
 */
#ifndef HOLORUN_CHECKPOINT_GGUF_MODEL_H
#define HOLORUN_CHECKPOINT_GGUF_MODEL_H

#include "base/gguf.h"

/* The text of config.json and of preprocessor_config.json (NULL without a tower), which the caller frees;
 * eyes
 * may be NULL.  -1: a key is missing or another architecture is named. */
int gguf_config(const struct gguf_file *text, const struct gguf_file *eyes, char **config,
                char **preprocessor, struct err *e);

/* The published name of a tensor in `out`; how the file calls a published one.  Unknown names stay. */
void gguf_published(const char *name, int layers, char out[256]);
void gguf_spelling(const char *published, char out[256]);

/* Layers without those that predict further tokens. */
int gguf_layers(const struct gguf_file *text);

#endif
