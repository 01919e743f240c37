/* gguf_wide.h - models of the golden data, widened to rows of 256 numbers, as GGUF files. */
#pragma once

#include "gguf_model.h"

#include "model/weights.h"

struct wide {
    struct golden g;
    char golden[64], dir[PLACE_PATH];
};

enum { WIDE_VOCAB = 160 };

void wide_open(struct wide *w, const char *name);
void wide_close(struct wide *w);

/* Writes the model in this form, opens it on a backend and computes the logits after five tokens.  Returns
 * the list of changed formats (struct model_weights), which the caller frees. */
char *wide_read(const struct wide *w, struct gguf_form form, struct backend *b, struct bind_options o,
                float *logits);
