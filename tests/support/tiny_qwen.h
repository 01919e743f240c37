/* tiny_qwen.h - a random model of the Qwen3.5 family, small enough to open in milliseconds: three Gated DeltaNet
 * layers and one of gated attention, mixtures of five experts, no tower, a tied head; names, storage types
 * and spellings differ from layer to layer as published files do.  The tokenizer is that of tiny_model.h.
 */
#ifndef HOLORUN_TESTS_TINY_QWEN_H
#define HOLORUN_TESTS_TINY_QWEN_H

#include "tiny_model.h"

enum { TINY_QWEN_HIDDEN = 40 };

#define TINY_SHAPE(...)                                                                                      \
    (const int64_t[])                                                                                        \
    {                                                                                                        \
        __VA_ARGS__, 0                                                                                       \
    }

void tiny_qwen(struct tiny *t, uint64_t seed); /* instead of tiny_init */

#endif
