/* stopping.h - ending runs of other processes, politely first.
 *
 *   at once        SIGTERM: keys go up, the record is closed, the process ends
 *   after 2 s      SIGTERM again: keys go up through a connection of its own, the process ends
 *   after 4.5 s    SIGKILL, and what stayed pressed is released from here
 *
 * One session of a process that has others is asked through its stop file, and no more than that.
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

/* All of them at the same time; returns how many have not ended.  runs: all there are, for the displays that a killed
 * process had. */
int stopping_run(struct stopping *s, int n, const struct running *runs, int n_runs);

#endif
