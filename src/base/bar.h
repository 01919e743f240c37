/* bar.h - progress of a long task on stderr: a bar with the remaining time on a terminal, otherwise a line
 * every 30 s. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bar {
    int total, skipped; /* skipped: finished before the start, not counted for the speed */
    int64_t start, shown;
    bool terminal, quiet;
};

void bar_begin(struct bar *b, int total, int skipped, bool quiet);
void bar_show(struct bar *b, int done, const char *note); /* done includes the skipped ones */
void bar_end(const struct bar *b);                        /* clears the line on a terminal */

/* Shows the progress of loading a model once that takes longer than a second; a callback for
 * engine_options.progress. arg is not used. */
void bar_loading(void *arg, double fraction, const char *what);

/* Returns whether to use colours: f is a terminal, and neither NO_COLOR nor TERM=dumb is set. */
bool bar_colors(FILE *f);

/* Formats a duration as "1 h 05 min", "3 min 20 s" or "7 s". */
void bar_time(double seconds, char out[32]);

/* Returns the columns of the terminal at stdout, stderr or stdin; `otherwise` if none is a terminal. */
int bar_columns(int otherwise);
