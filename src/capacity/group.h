/* group.h - what the control groups of this process allow it: in a container less than the machine has. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct group_limits {
    double cores;       /* CPU time per second; 0: no limit */
    uint64_t throttled; /* how often a group had to wait since its start because its CPU time was used up */
    size_t memory_left; /* bytes: limit - use + inactive file pages; SIZE_MAX: no limit */
};

/* Reads the limits of the process's own groups and of all groups around them, of version 1 and 2; the
 * tightest counts. root: "", or a directory that has proc/self/cgroup and sys/fs/cgroup. */
struct group_limits group_limits(const char *root);
