/* report.h - a run as one HTML page that needs no other file and no network.
 *
 * Everything that came from the screen or the model is escaped, and the page's content security policy allows
 * only its own script.
 */
#ifndef HOLORUN_TRACE_REPORT_H
#define HOLORUN_TRACE_REPORT_H

#include "trace/read.h"

#include <stdio.h>

/* Writes the page for the run in `dir` to `path` (NULL: dir/report.html).  0600, atomic. */
int report_write(const char *dir, const char *path, struct err *e);

void report_print(const struct record *r, FILE *f);

#endif
