/* gguf_model.h - GGUF files of the Qwen3.5 family, Qwen2 and Qwen3 as the files of a published directory.
 *
 *   gguf_config.c   keys become the text of a config.json, which config.c reads and checks
 *   gguf_tensors.c  tensors get the published names and shapes; their bytes stay as they lie
 *
 * The converter of Qwen3.5 adds 1 to the norms, stores -exp(A_log), and orders value heads by their
 * place in the group instead of by group; binding knows (weights_qwen.c), the delta rule too (delta_shape).
 * Those of Qwen2 and Qwen3 change nothing but names.
 */
#ifndef HOLORUN_CHECKPOINT_GGUF_MODEL_H
#define HOLORUN_CHECKPOINT_GGUF_MODEL_H

#include "base/gguf.h"

/* The text of config.json and of preprocessor_config.json (NULL without a tower), which the caller frees;
 * eyes
 * may be NULL.  -1: a key is missing or another architecture is named. */
int gguf_config(const struct gguf_file *text, const struct gguf_file *eyes, char **config,
                char **preprocessor, struct err *e);

/* Returns whether the file holds a text model without a vision tower: Qwen2 or Qwen3. */
bool gguf_is_text_model(const struct gguf_file *text);

/* The published name of a tensor in `out`; how the file calls a published one.  Unknown names stay.  text:
 * whether it belongs to a text model. */
void gguf_published(const char *name, bool text, int layers, char out[256]);
void gguf_spelling(const char *published, bool text, char out[256]);

/* Layers without those that predict further tokens. */
int gguf_layers(const struct gguf_file *text);

#endif
