/* quantized.h - tiny models with quantized weights: how to open them, and their logits. */
#pragma once

#include "capacity/plan.h"
#include "tiny_model.h"

enum { QUANTIZED_VOCAB = 288 };

struct engine *quantized_open(const struct tiny *t, const char *isa, bool f32, enum weight_storage numbers,
                              bool cache);

/* Computes the logits after a text with an image; closes the engine. */
void quantized_look(struct engine *g, float out[QUANTIZED_VOCAB]);
