/* merge.h - merges the results of shards into the results of one suite.
 *
 * The result is never success because something is missing: a shard that is missing, was cut off, occurs
 * twice, or belongs to another suite or version gets a row of its own (`lacking`), which is an error in every
 * format and in the exit code. */
#pragma once

#include "qa/report/read.h"

enum { MERGE_MOST = 50000 }; /* limit of files */

struct merged {
    struct suite suite;     /* the tests of all files in the order of the suite, then a row for each fault */
    struct results results; /* rows are borrowed from the files */
    char **faults;          /* one line each */
    int n_faults;
};

/* Merges n >= 1 files, which must outlive *m. merged_free() frees neither them nor their rows. */
void merge(struct results_file *files, int n, struct merged *m);
/* Adds a fault found before the merge, such as a file that cannot be read. */
void merge_fault(struct merged *m, const char *text);
void merged_free(struct merged *m);
