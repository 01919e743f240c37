/* lines.h - lines from a file, a pipe or a terminal, while the stop flag is looked at.  Private to step/. */
#ifndef HOLORUN_STEP_LINES_H
#define HOLORUN_STEP_LINES_H

#include "step/step.h"

struct lines {
    int fd;
    char buf[STEP_LINE];
    size_t n;
    bool ended;
};

/* 1: a line without its end; 0: there are no more; -1: it is too long, it cannot be read, or the run was stopped. */
int lines_next(struct lines *l, const volatile int *stop, char line[STEP_LINE], struct err *e);

#endif
