/* full_start.h - opens a model of a published size with sparse weights: measures the time until a session can
 * begin, and compares the memory with the plan.
 */
#pragma once

#include "full_model.h"

#include "capacity/plan.h"

/* Returns the plan, with the tokenizer's actual memory. */
struct plan full_planned(const char *dir, const struct engine_options *o);

/* Fails the test unless the model opens and its memory is within 5 % of the plan. largest: reserves the
 * encoder's scratch memory for the largest canvas, which is otherwise allocated with the first image. */
struct plan full_starts(const char *dir, const struct engine_options *o, bool largest);
