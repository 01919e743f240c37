/* input_owner.h - which process may send input to a display, decided by the X server.
 *
 * The process that sends input owns the selection _HOLORUN_DRIVER, with a window whose property of the
 * same name identifies the process. Processes that spell the display differently, use different runtime
 * directories or run on different machines still share the server, and the server revokes the selection
 * when the owner's connection ends. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct input_owner {
    pid_t pid;
    uint64_t start_ticks; /* start time of the process in clock ticks since boot */
    char where[128];      /* host and process namespace, in which the pid is valid */
};

/* Finds the owner of a display. Returns 1 and sets *here to whether it runs on this host and in this
 * process namespace; 0 if there is none or the display cannot be opened. */
int input_owner_find(const char *display, struct input_owner *out, bool *here);

/* Returns the start time of a process in clock ticks since boot; 0 if it does not exist. */
uint64_t process_start_ticks(pid_t pid);
