/* bar.h - progress of a long task on stderr: on a terminal a bar with the time left, elsewhere a line now and
 * then. */
#ifndef HOLORUN_BASE_BAR_H
#define HOLORUN_BASE_BAR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bar {
    int total, skipped; /* skipped: done before, do not count for the speed */
    int64_t start, shown;
    bool terminal, quiet;
};

void bar_begin(struct bar *b, int total, int skipped, bool quiet);
void bar_show(struct bar *b, int done, const char *note); /* done counts the skipped ones */
void bar_end(const struct bar *b);                        /* clears the line on a terminal */

/* For engine_options.progress: loading a model, when it takes longer than a second; arg is not used. */
void bar_loading(void *arg, double fraction, const char *what);

/* Whether to use colours: on a terminal, without NO_COLOR and TERM=dumb. */
bool bar_colors(FILE *f);

/* "1 h 05 min", "3 min 20 s", "7 s" */
void bar_time(double seconds, char out[32]);

/* Columns of the terminal at stdout, stderr or stdin; `otherwise` when none is a terminal. */
int bar_columns(int otherwise);

#endif
