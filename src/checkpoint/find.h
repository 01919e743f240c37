/* find.h - resolution of a model name or path to the model directory to open. */
#pragma once

#include "base/err.h"

/* Returns the model that `option` (from --model or $HOLORUN_MODEL) denotes. Accepted are:
 *
 * - a model directory, a GGUF file, or a directory with one (the result is then a GGUF place,
 *   base/gguf.h);
 * - a model of Ollama (ollama.h);
 * - a directory models--ORG--NAME of the Hugging Face cache;
 * - a downloaded model by its name, ORG/NAME or ORG/NAME@REVISION.
 *
 * If option is NULL or empty, returns the embedded model: next to the program in the source tree, or in
 * ../share/holorun/pocket of an installation. The caller frees the result. NULL with e on failure. */
char *model_find(const char *option, struct err *e);

/* Returns the model of a directory: the directory itself, or the GGUF place (base/gguf.h) of the GGUF
 * files in it if it has no other weights. The caller frees the result. Returns NULL without a message
 * if the directory contains neither, and NULL with a message if weight files are missing. */
char *model_in(const char *dir, struct err *e);
