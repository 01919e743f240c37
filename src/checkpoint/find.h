/* find.h - which model directory to open. */
#ifndef HOLORUN_CHECKPOINT_FIND_H
#define HOLORUN_CHECKPOINT_FIND_H

#include "base/err.h"

/* `option` (from --model or $HOLORUN_MODEL) when given: a folder, a GGUF file or a folder with one
 * (base/gguf.h: then the result is the place of its files), a model of Ollama (ollama.h), a folder
 * models--ORG--NAME of the hub's cache, or a pulled model by name, ORG/NAME or ORG/NAME@REVISION; else the
 * embedded model: next to the program in the source tree, or where it was installed
 * (../share/holorun/pocket).  The caller frees the result; NULL with the places searched in e. */
char *model_find(const char *option, struct err *e);

/* Returns the model of a directory: itself, or the place of its GGUF files when it has no other weights.
 * NULL without a message where neither is, with one where weight files are missing.  The caller frees the
 * result. */
char *model_in(const char *dir, struct err *e);

#endif
