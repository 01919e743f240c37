/* record.h - events of a single action, as written by a run and by a replay of its actions. */
#pragma once

#include "agent/progress.h"
#include "gate/gate.h"
#include "trace/trace.h"

/* Prints an action and records it; appends its canonical form to `json`. Returns -1 with e. */
int record_action(struct trace *t, const struct progress *p, int step, int index, const struct action *a,
                  struct buf *json, struct err *e);

/* Records the rule that decided about an action, and who was asked. error: text that the model reads, or
 * NULL. Returns -1 with e. */
int record_ruling(struct trace *t, int step, int index, const struct gate_ruling *r, bool pass,
                  const char *error, struct err *e);
