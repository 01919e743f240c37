/* merge.h - the results of shards as the results of one suite.
 *
 * Never green by omission: a shard that is missing, was cut off, is there twice, or is of another suite or
 * version is named by a row of its own (`lacking`), which is an error in every format and in the exit code.
 */
#ifndef HOLORUN_QA_REPORT_MERGE_H
#define HOLORUN_QA_REPORT_MERGE_H

#include "qa/report/read.h"

enum { MERGE_MOST = 10000 }; /* files */

struct merged {
    struct suite suite;     /* tests of all files in the order of the suite, then a row for each fault */
    struct results results; /* rows are borrowed from the files */
    char **faults;          /* one line each */
    int n_faults;
};

/* Takes n files, n >= 1, which must outlive it.  merged_free() frees neither them nor their rows. */
void merge(struct results_file *files, int n, struct merged *m);
/* A fault that showed before the merge, as a file that cannot be read. */
void merge_fault(struct merged *m, const char *text);
void merged_free(struct merged *m);

#endif
