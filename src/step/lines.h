/* lines.h - reads lines from a file, a pipe or a terminal until the stop flag is set.  Private to step/. */
#ifndef HOLORUN_STEP_LINES_H
#define HOLORUN_STEP_LINES_H

#include "step/step.h"

struct lines {
    int fd;
    char buf[STEP_LINE];
    size_t n;
    bool ended;
};

/* 1: a line without its newline; 0: the end; -1: too long, a read error, or stopped. */
int lines_next(struct lines *l, const volatile int *stop, char line[STEP_LINE], struct err *e);

#endif
