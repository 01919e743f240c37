/* perform.h - performs the actions of a recorded run again, without a model.
 *
 * Before each step it waits until the screen shows the recorded screenshot of the step. If the action before
 * had no visible effect in the record, the screen must also settle. A difference above the threshold that
 * remains for the longest settling time (3 s by default) ends the replay. Rules, stop handling, input and
 * secrets are the same as in a run, and the replay is recorded as a run of its own. */
#pragma once

#include "agent/progress.h"
#include "gate/gate.h"
#include "replay/expected.h"
#include "screen/screen.h"
#include "trace/story.h"
#include "trace/trace.h"

struct perform_options { /* all borrowed */
    const struct record *record;
    struct screen *screen;
    struct trace *trace;
    /* NULL: every action is allowed, and names of secrets are typed as they are */
    struct gate *gate;
    const struct secrets *secrets; /* the gate's secrets; NULL: none */
    const struct progress *progress;
    struct settle settle;
    int from, to;     /* range of steps; to 0: up to the last */
    double threshold; /* fraction of the screen that may differ, 0..1 */
    double speed;     /* 0: no pauses; 1: the pauses of the recorded run between steps; 2: half of them */
    bool dry_run;     /* only compares, sends no input */
};

enum performed { PERFORMED_ALL, PERFORMED_DIFFERS, PERFORMED_FAILED };
const char *performed_name(enum performed end); /* Returns the name of an outcome, such as "replayed". */

struct perform_result {
    enum performed end;
    int steps, actions;
    int at;                                  /* for DIFFERS and FAILED: the step */
    struct expected_differences differences; /* for DIFFERS */
    double waited_ms;                        /* for DIFFERS: since the action before */
};

/* Performs the steps. Returns -1 if the replay was interrupted (stop, no display, full disk) or could not
 * start: no such step, or the value of a secret is missing (ERR_USAGE). The recording is complete in any
 * case. */
int perform_run(const struct perform_options *o, struct perform_result *r, struct err *e);
