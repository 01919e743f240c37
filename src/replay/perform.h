/* perform.h - performs the actions of a recorded run again, without a model.
 *
 * Before each step it waits until the screen is still and compares it with the recorded screenshot; a
 * difference above a threshold ends the replay.  Rules, stops, input and secrets work as in a run, and
 * the replay is recorded as a run of its own.
 */
#ifndef HOLORUN_REPLAY_PERFORM_H
#define HOLORUN_REPLAY_PERFORM_H

#include "agent/progress.h"
#include "gate/gate.h"
#include "screen/screen.h"
#include "trace/story.h"
#include "trace/trace.h"

struct perform_options { /* all borrowed */
    const struct record *record;
    struct screen *screen;
    struct trace *trace;
    struct gate *gate;             /* NULL: everything passes, and the names of secrets are typed */
    const struct secrets *secrets; /* those of the gate; NULL: none */
    const struct progress *progress;
    struct settle settle;
    int from, to;     /* steps; to 0: up to the last */
    double threshold; /* share of the screen that may differ */
    double speed;     /* 0: no pauses; 1: the pauses of the run between steps, 2: half of them */
    bool dry_run;     /* compare, press nothing */
};

enum performed { PERFORMED_ALL, PERFORMED_DIFFERS, PERFORMED_FAILED };
const char *performed_name(enum performed end); /* "replayed" */

struct perform_result {
    enum performed end;
    int steps, actions;
    int at;       /* DIFFERS, FAILED: the step */
    double tiles; /* DIFFERS: share of the screen */
};

/* -1: it broke off (stopped, no display, a full disk) or did not begin: no such step, or the value of a
 * secret is missing (ERR_USAGE).  The record is complete even so. */
int perform_run(const struct perform_options *o, struct perform_result *r, struct err *e);

#endif
