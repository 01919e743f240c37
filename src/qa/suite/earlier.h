/* earlier.h - what came of tests in an earlier run, as its report says.
 *
 * JUnit XML (of whoever wrote it: each testcase's name and time, and whether it has a failure, error or skipped), or our
 * JSON: {"tests": [{"id": "...", "outcome": "passed", "seconds": 1.5}]}.  Which of the two it is, the first character tells.
 */
#ifndef HOLORUN_QA_SUITE_EARLIER_H
#define HOLORUN_QA_SUITE_EARLIER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    EARLIER_MAX_BYTES = 64 << 20,
    EARLIER_MAX_TESTS = 100000,
    EARLIER_MAX_DEPTH = 32,
    EARLIER_MAX_NAME = 1000
};

struct earlier_test {
    char *id, *suite; /* suite: classname; "" when not said */
    bool passed;
    double seconds; /* -1: not said */
    int order;      /* in the report */
};

struct earlier { /* by id, then as in the report */
    struct earlier_test *tests;
    int n, room;
};

/* ERR_USAGE: not to be read, not such a file, too large.  path is for messages. */
int earlier_read(const char *path, struct earlier *p, struct err *e);
int earlier_parse(const char *text, size_t len, const char *path, struct earlier *p, struct err *e);
void earlier_free(struct earlier *p);

/* One more; takes over the texts.  -1: too many. */
int earlier_add(struct earlier *p, struct earlier_test t);
/* earlier_xml.c */
int earlier_xml(const char *text, size_t len, const char *path, struct earlier *p, struct err *e);

/* The test of this id, of this suite or one that is not said; NULL.  The last one when there are several. */
const struct earlier_test *earlier_find(const struct earlier *p, const char *suite, const char *id);

#endif
