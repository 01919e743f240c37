/* small.h - tiny models with small weights: how they are opened, and what they see. */
#ifndef HOLORUN_TESTS_SMALL_H
#define HOLORUN_TESTS_SMALL_H

#include "capacity/plan.h"
#include "tiny_model.h"

enum { SMALL_VOCAB = 288 };

struct engine *quantized_open(const struct tiny *t, const char *isa, bool f32, enum weight_storage numbers,
                              bool cache);

/* Logits after a text with an image; closes the engine. */
void quantized_look(struct engine *g, float out[SMALL_VOCAB]);

#endif
