/* driven.h - the program on a stage of its own, with replies from a script in place of a model. */
#ifndef HOLORUN_TESTS_DRIVEN_H
#define HOLORUN_TESTS_DRIVEN_H

#include "program.h"
#include "replies.h"
#include "stage.h"
#include "trace/read.h"

/* A display for the program alone, with a window that writes down what reaches it. */
void driven_open(struct stage *t);

/* `holorun run` with these replies; with more options. */
pid_t driven_start(const struct stage *t, const char *replies);
pid_t driven_start_with(const struct stage *t, const char *replies, const char *const *more);

/* The same until it ends; more NULL: no more options. */
void driven_run(const struct stage *t, const char *replies, const char *const *more, struct outcome *o);

/* Waits until the window has seen n events of this name. */
void driven_wait(const struct stage *t, const char *name, int n);

/* The newest run as it is on disk; the caller frees it. */
void driven_read(const struct stage *t, struct record *r);

/* The last event of this kind, NULL when there is none. */
const json_t *driven_last(const struct record *r, const char *kind);

/* Nothing is down, no keycode is borrowed, and no file of a run is left. */
void driven_left_nothing(const struct stage *t);

/* The record of the newest run says that it was stopped, and by what, and can be read. */
void driven_was_stopped(const struct stage *t, const char *by);

#endif
