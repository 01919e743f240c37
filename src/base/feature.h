/* feature.h - optional features: parts of the program that need a library which a build may lack.
 *
 * If pkg-config does not find the libraries of a feature, the Makefile compiles *_none.c instead of the
 * feature's sources.  The other parts of the program work without them; commands and options of the missing
 * feature are refused with one line.
 */
#pragma once

#include "base/err.h"

enum feature_id { FEATURE_WINDOW, FEATURE_SERVE, FEATURE_VIEW, FEATURES };

struct feature {
    const char *name;      /* as in `make WITHOUT=NAME` */
    const char *provides;  /* "the step window" */
    const char *libraries; /* names of pkg-config, separated by spaces */
    const char *packages;  /* Debian packages, for building */
    bool built;
};

/* Returns the feature with this id. */
const struct feature *feature_get(enum feature_id id);

/* Returns 0 if this build has the feature, or -1 with ERR_ENV: the libraries and packages that it lacks. */
int feature_require(enum feature_id id, struct err *e);
