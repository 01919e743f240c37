/* read.h - results.json as results again: for a merge of shards, and for a shard that goes on.
 *
 * The file may come from another machine: its size, lists and texts are bounded, and what it says of files
 * is taken as text.  Paths below the folder in which it was written become paths below the one it lies in.
 */
#ifndef HOLORUN_QA_REPORT_READ_H
#define HOLORUN_QA_REPORT_READ_H

#include "qa/report/result.h"

struct results_file {
    char *path, *dir;   /* as given; the folder it lies in */
    struct suite suite; /* its tests, as far as reports need them; texts belong to `json` */
    int suite_tests;    /* of the whole suite, of which `suite` has those that were selected */
    int *index;         /* [suite.n] position of each test in the whole suite */
    struct results results;
    struct check *checks; /* of all attempts */
    json_t *json;
};

/* path: of a results.json, or of the folder that has one.  ERR_USAGE with what is wrong with it.
 * results_file_free() in every case. */
int results_file_read(const char *path, struct results_file *f, struct err *e);
int results_file_parse(const char *text, size_t len, const char *path, struct results_file *f, struct err *e);
void results_file_free(struct results_file *f);

/* Takes what an earlier part of the same run has decided over into the rows of `r`: tests that passed or
 * failed.  Returns how many, -1 if the file is of another suite or shard. */
int results_resume(struct results *r, struct results_file *f, struct err *e);

#endif
