/* assist.h - the assist of the embedded model, the only interface of this directory to a run. */
#pragma once

#include "llm/assist.h"

/* Opens the assist for a model and its dialect; both are borrowed.  engine NULL: the model is elsewhere, or a
 * script.  *out is NULL if neither needs one.  cancel: ends reading of images when non-zero; may be NULL.
 * Returns -1 with e if the model's heads have the wrong shape. */
int pocket_assist_open(struct assist **out, struct engine *engine, const struct dialect *dialect,
                       const volatile int *cancel, struct err *e);
