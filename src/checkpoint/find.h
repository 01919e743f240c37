/* find.h - which model directory to open. */
#ifndef HOLORUN_CHECKPOINT_FIND_H
#define HOLORUN_CHECKPOINT_FIND_H

#include "base/err.h"

/* `option` (from --model or $HOLORUN_MODEL) when given, a folder, a GGUF file or a folder with one
 * (base/gguf.h:
 * then the result is the place of its files), or a pulled model by name, ORG/NAME or
 * ORG/NAME@REVISION; else the embedded model: next to the program in
 * the source tree, or where it was installed (../share/holorun/pocket).  The caller frees the result;
 * NULL with what was searched. */
char *model_find(const char *option, struct err *e);

#endif
