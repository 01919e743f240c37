/* attempt.h - runs code that may call die() without ending the program (err.h). */
#pragma once

#include "base/err.h"

/* Runs fn(arg). Returns -1 with the message if this thread called die() in it; fn is then abandoned by
 * longjmp, and whatever it held is leaked. Used to try a device on which any call may fail. */
int err_attempt(void (*fn)(void *arg), void *arg, struct err *e);
