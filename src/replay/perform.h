/* perform.h - the actions of a recorded run once more, without a model.
 *
 * Before each step the screen is waited for as in the run, and compared with the screenshot of then; where it is another
 * by more than a threshold the actions end there.  Rules, stops, hands and secrets are those of a run.  What happens is
 * recorded as a run of its own.
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
    struct gate *gate;             /* NULL: everything passes, and secrets are typed as their names */
    const struct secrets *secrets; /* those of the gate; NULL: none */
    const struct progress *progress;
    struct settle settle;
    int from, to;     /* steps; to 0: up to the last */
    double threshold; /* share of the screen that may differ */
    double speed;     /* 0: no other waiting; 1: as long between steps as the run took, 2: half of it */
    bool dry_run;     /* compare, press nothing */
};

enum performed { PERFORMED_ALL, PERFORMED_DIFFERS, PERFORMED_FAILED };

struct perform_result {
    enum performed end;
    int steps, actions;
    int at;       /* DIFFERS, FAILED: the step */
    double tiles; /* DIFFERS: share of the screen */
};

/* -1: it broke off (stopped, no display, a full disk), or did not begin: there is no such step (ERR_USAGE), or a secret
 * that the run typed is not given (ERR_USAGE).  The record is complete all the same. */
int perform_run(const struct perform_options *o, struct perform_result *r, struct err *e);

#endif
