/* exported.h - a run of the embedded model, recorded once, and `holorun export` of it. */
#pragma once

#include "program.h"

#include "trace/read.h"

const char *exported_run(void); /* its folder */
struct xvfb *exported_display(void);

/* Exports the run; returns the printed path, which the caller frees. */
char *exported_as(const char *format, const char *reward);
/* Parses a JSON-lines file of an export. */
json_t *exported_lines(const char *dir, const char *name);

/* Checks names and types of members: s string, i integer, f number, b boolean, a list, o object; a capital
 * allows null. */
void exported_has(const json_t *object, const char *members);
/* Checks that all files below are private to the owner, without temporary ones. */
void exported_private(const char *path);
