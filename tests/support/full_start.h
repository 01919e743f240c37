/* full_start.h - opening a model of a published size whose weights are holes: how long until a session can begin, and
 * whether it takes the memory that was planned. */
#ifndef HOLORUN_TESTS_FULL_START_H
#define HOLORUN_TESTS_FULL_START_H

#include "full_model.h"

#include "capacity/plan.h"

/* What `plan` says, with the tokenizer's memory as it is. */
struct plan full_planned(const char *dir, const struct engine_options *o);

/* Fails the test unless the model opens and its memory is within 5 % of the plan.  largest: with the tower's
 * scratch memory for the largest canvas, which else is made when there is a picture, and left out here. */
struct plan full_starts(const char *dir, const struct engine_options *o, bool largest);

#endif
