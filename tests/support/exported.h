/* exported.h - a run of the embedded model, recorded once, and `holorun export` of it. */
#ifndef HOLORUN_TESTS_EXPORTED_H
#define HOLORUN_TESTS_EXPORTED_H

#include "program.h"

#include "trace/read.h"

const char *exported_run(void); /* its folder */
struct xvfb *exported_display(void);

/* The path that export prints; the caller frees it. */
char *exported_as(const char *format, const char *reward);
/* The objects of a file of lines. */
json_t *exported_lines(const char *dir, const char *name);

/* Members with their types: s string, i integer, f number, b boolean, a list, o object; capital: may be
 * null. */
void exported_has(const json_t *object, const char *members);
/* Every file below is for its owner alone, and none is left over. */
void exported_private(const char *path);

#endif
