/* stopping.h - ends runs of other processes.
 *
 *   at once        SIGTERM: keys are released, the record is closed, the process ends
 *   after 2 s      SIGTERM again: keys are released through a second connection, the process ends
 *   after 4.5 s    SIGKILL, and this process releases what stayed pressed
 *
 * One session of a process with several is only asked through its stop file.
 */
#ifndef HOLORUN_RUN_STOPPING_H
#define HOLORUN_RUN_STOPPING_H

#include "run/running.h"

enum stopped { STOPPED_GONE, STOPPED_ASKED, STOPPED_URGED, STOPPED_KILLED, STOPPED_NOT };
const char *stopped_name(enum stopped s); /* "asked", for programs */

struct stopping {
    struct running run;
    enum stopped how; /* result */
    double ms;        /* until it had ended */
    int fd;
};

/* Stops all of them at the same time; returns how many have not ended.  runs: all runs, to find the
 * displays of a killed process. */
int stopping_run(struct stopping *s, int n, const struct running *runs, int n_runs);

#endif
