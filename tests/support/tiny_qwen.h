/* tiny_qwen.h - random model of the Qwen3.5 family that opens in milliseconds: three Gated DeltaNet layers
 * and one of gated attention, mixtures of five experts, no vision encoder, a tied output head. Names, storage
 * types and layouts differ between layers as in published files. The tokenizer is that of tiny_model.h.
 */
#pragma once

#include "tiny_model.h"

enum { TINY_QWEN_HIDDEN = 40 };

#define TINY_SHAPE(...)                                                                                      \
    (const int64_t[])                                                                                        \
    {                                                                                                        \
        __VA_ARGS__, 0                                                                                       \
    }

void tiny_qwen(struct tiny *t, uint64_t seed); /* instead of tiny_init() */
/* Expects of n pairs that such a model with the first text as quantization_config is refused as tiny_damaged()
 * does, with the second. */
void tiny_refused_quantization(const char *const (*pairs)[2], size_t n, const char *naming);
