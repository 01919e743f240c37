/* bar.h - how far something long has come, on stderr: a bar with the time left on a terminal, a line now and
 * then elsewhere. */
#ifndef HOLORUN_BASE_BAR_H
#define HOLORUN_BASE_BAR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bar {
    int total, skipped; /* skipped: done before this run, which say nothing about its speed */
    int64_t start, shown;
    bool terminal, quiet;
};

void bar_begin(struct bar *b, int total, int skipped, bool quiet);
void bar_show(struct bar *b, int done, const char *note); /* done counts the skipped ones */
void bar_end(const struct bar *b);                        /* leaves an empty line on a terminal */

/* Whether colours are wanted: a terminal, and neither NO_COLOR nor TERM=dumb. */
bool bar_colors(FILE *f);

/* "1 h 05 min", "3 min 20 s", "7 s" */
void bar_time(double seconds, char out[32]);

/* Columns of the terminal that stdout, stderr or stdin is; `otherwise` where none of them is one. */
int bar_columns(int otherwise);

#endif
