/* report.h - a run as one page: no other file, no network, works from disk and from a mail.
 *
 * Everything that came from the screen or the model is escaped, and the page's own policy allows no
 * script but its own.
 */
#ifndef HOLORUN_TRACE_REPORT_H
#define HOLORUN_TRACE_REPORT_H

#include "trace/read.h"

#include <stdio.h>

/* Writes the page for the run in `dir` to `path` (NULL: dir/report.html).  0600, atomic. */
int report_write(const char *dir, const char *path, struct err *e);

void report_print(const struct record *r, FILE *f);

/* A run's status for people, "step budget used up"; *css: the class of its colour.  An unknown one is returned as it is. */
const char *report_status_words(const char *status, const char **css);

#endif
