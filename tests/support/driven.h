/* driven.h - the program on its own stage, with scripted replies instead of a model. */
#pragma once

#include "program.h"
#include "replies.h"
#include "stage.h"
#include "trace/read.h"

/* Opens a display for the program, with a window that records its events. */
void driven_open(struct stage *t);
/* Declares such a stage and an outcome, closed and freed at the end of the block. */
#define DRIVEN(t, o)                                                                                         \
    __attribute__((cleanup(stage_close))) struct stage t;                                                    \
    OUTCOME(o);                                                                                              \
    driven_open(&(t))

/* Starts `holorun run` with these replies; `more` are further options. */
pid_t driven_start(const struct stage *t, const char *replies);
pid_t driven_start_with(const struct stage *t, const char *replies, const char *const *more);

/* The same until it ends; more NULL: no more options. */
void driven_run(const struct stage *t, const char *replies, const char *const *more, struct outcome *o);

/* Waits until the window has got n events of this name. */
void driven_wait(const struct stage *t, const char *name, int n);

/* Reads the newest run from disk; free it with record_free(). */
void driven_read(const struct stage *t, struct record *r);

/* Returns the last event of this kind, or NULL. */
const json_t *driven_last(const struct record *r, const char *kind);

/* Checks that no key is down, no keycode borrowed and no file of a run left. */
void driven_left_nothing(const struct stage *t);

/* Checks that the newest record is readable and names `by` as the reason of the stop. */
void driven_was_stopped(const struct stage *t, const char *by);
