/* record.h - events of a single action, as a run and a replay of its actions write them. */
#ifndef HOLORUN_AGENT_RECORD_H
#define HOLORUN_AGENT_RECORD_H

#include "agent/progress.h"
#include "gate/gate.h"
#include "trace/trace.h"

/* Prints an action and records it; appends its canonical form to `json`. */
int record_action(struct trace *t, const struct progress *p, int step, int index, const struct action *a,
                  struct buf *json, struct err *e);

/* The rule that decided about an action, and who was asked; error: what the model reads, or NULL. */
int record_ruling(struct trace *t, int step, int index, const struct gate_ruling *r, bool pass,
                  const char *error, struct err *e);

#endif
