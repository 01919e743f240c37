/* room.h - decides whether another test may start beside those that run, from what the machine leaves idle.
 *
 * A test mostly waits: for its program, for a settled screen, for a model elsewhere. So more tests than cores
 * can run, but how many depends on their programs, and on what else the machine does. It is therefore
 * measured. */
#pragma once

#include "capacity/group.h"
#include "qa/suite/suite.h"

#include <stdint.h>

struct room {
    int64_t since;      /* clock_ns() of the readings below; 0: none */
    double idle, total; /* of the usable cores since they were started, in ticks */
    uint64_t throttled; /* see group.h */
};

/* Returns the most tests that may run at the same time: two for each core that the process may use, as its
 * CPU set and its control groups (group.h) say. 1 for a suite with a setup, because its tests share what that
 * has made, and with weights of more than 512 MiB in this process, which need the cores and the memory. */
int room_most(const struct suite *s, size_t weights, struct group_limits limits);

/* Returns whether half a core was idle since the last measurement, at least 300 ms ago, no control group has
 * used up its CPU time, and memory for another desktop is free. */
bool room_left(struct room *r);

/* Returns whether a test uses a port of this machine, as far as its texts tell. Two such tests may use the
 * same one. */
bool room_shares_port(const struct test *t);
