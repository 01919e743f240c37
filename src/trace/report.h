/* report.h - the report of a run: one HTML page that needs no other file and no network.
 *
 * All text from the screen or the model is escaped, and the page's content security policy allows only its
 * own script. */
#pragma once

#include "trace/read.h"

#include <stdio.h>

/* Writes the report of the run in `dir` to `path` (NULL: dir/report.html), atomically, with mode 0600.
 * Returns -1 with e. */
int report_write(const char *dir, const char *path, struct err *e);

void report_print(const struct record *r, FILE *f);
