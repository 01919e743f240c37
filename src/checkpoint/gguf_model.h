/* gguf_model.h - GGUF files of Qwen3.5, Qwen2 and Qwen3, presented as a published model directory.
 *
 *     gguf_config.c   generates the text of config.json from the keys; config.c reads and checks it
 *     gguf_tensors.c  gives tensors their published names and shapes; the stored bytes are unchanged
 *
 * The Qwen3.5 converter of llama.cpp adds 1 to the weights of RMS norms, stores -exp(A_log), and orders
 * value heads by their index within the group instead of by group. weights_qwen.c skips the first two
 * conversions for such files, and the delta rule uses their head order (delta_shape). The converters of
 * Qwen2 and Qwen3 only rename tensors. */
#pragma once

#include "base/gguf.h"

/* Generates the text of config.json and of preprocessor_config.json, which the caller frees. vision: the
 * file of the vision encoder, or NULL; *preprocessor is then NULL. Returns -1 with e if a key is missing
 * or the architecture is not implemented. */
int gguf_config(const struct gguf_file *text, const struct gguf_file *vision, char **config,
                char **preprocessor, struct err *e);

/* Returns whether the file contains a text model without a vision encoder: Qwen2 or Qwen3. */
bool gguf_is_text_model(const struct gguf_file *text);

/* Converts tensor names: gguf_published from a GGUF file's to the published one, gguf_spelling in the
 * opposite direction. Unknown names are copied unchanged. text: whether the tensor belongs to a text
 * model. layers: result of gguf_layers; later blocks are multi-token prediction and get the prefix "mtp.". */
void gguf_published(const char *name, bool text, int layers, char out[256]);
void gguf_spelling(const char *published, bool text, char out[256]);

/* Returns the number of layers without the multi-token prediction layers. */
int gguf_layers(const struct gguf_file *text);
