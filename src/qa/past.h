/* past.h - what came of tests in an earlier run, as its report says.
 *
 * JUnit XML (of whoever wrote it: each testcase's name and time, and whether it has a failure, error or skipped), or our
 * JSON: {"tests": [{"id": "...", "outcome": "passed", "seconds": 1.5}]}.  Which of the two it is, the first character tells.
 */
#ifndef HOLORUN_QA_PAST_H
#define HOLORUN_QA_PAST_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { PAST_MAX_BYTES = 64 << 20, PAST_MAX_TESTS = 100000, PAST_MAX_DEPTH = 32, PAST_MAX_NAME = 1000 };

struct past_test {
    char *id, *suite; /* suite: classname; "" when not said */
    bool passed;
    double seconds; /* -1: not said */
    int order;      /* in the report */
};

struct past { /* by id, then as in the report */
    struct past_test *tests;
    int n, room;
};

/* ERR_USAGE: not to be read, not such a file, too large.  path is for messages. */
int past_read(const char *path, struct past *p, struct err *e);
int past_parse(const char *text, size_t len, const char *path, struct past *p, struct err *e);
void past_free(struct past *p);

/* One more; takes over the texts.  -1: too many. */
int past_add(struct past *p, struct past_test t);
/* past_xml.c */
int past_xml(const char *text, size_t len, const char *path, struct past *p, struct err *e);

/* The test of this id, of this suite or one that is not said; NULL.  The last one when there are several. */
const struct past_test *past_find(const struct past *p, const char *suite, const char *id);

#endif
