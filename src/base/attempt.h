/* attempt.h - runs code that may call die() without ending the program (err.h). */
#ifndef HOLORUN_BASE_ATTEMPT_H
#define HOLORUN_BASE_ATTEMPT_H

#include "base/err.h"

/* Runs fn(arg). Returns -1 with the message if this thread called die() in it; fn is then abandoned by
 * longjmp, and whatever it held is leaked. Used to try a device on which any call may fail. */
int err_attempt(void (*fn)(void *arg), void *arg, struct err *e);

#endif
