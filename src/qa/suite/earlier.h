/* earlier.h - the outcomes and durations of an earlier run, read from its results.json.
 *
 * Needed: {"tests": [{"id": "...", "outcome": "passed", "seconds": 1.5}]}.  The file may come from
 * elsewhere: sizes are bounded, and every other key is ignored.
 */
#ifndef HOLORUN_QA_SUITE_EARLIER_H
#define HOLORUN_QA_SUITE_EARLIER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { EARLIER_MAX_BYTES = 64 << 20, EARLIER_MAX_TESTS = 100000, EARLIER_MAX_NAME = 1000 };

struct earlier_test {
    const char *id;
    bool passed;
    double seconds; /* -1: unknown */
    int order;      /* position in the file */
};

struct earlier {       /* sorted by id, then by position in the file */
    const char *suite; /* its name; NULL: unknown */
    struct earlier_test *tests;
    int n;
    struct json_t *json; /* owns the texts */
};

/* ERR_USAGE: unreadable, not a results.json, or too large.  path is for messages.  earlier_free() in every
 * case. */
int earlier_read(const char *path, struct earlier *p, struct err *e);
int earlier_parse(const char *text, size_t len, const char *path, struct earlier *p, struct err *e);
void earlier_free(struct earlier *p);

/* NULL: that run was of another suite or had no such test.  Of several entries with the same id the last
 * one counts. */
const struct earlier_test *earlier_find(const struct earlier *p, const char *suite, const char *id);

#endif
