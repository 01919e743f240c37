/* read.h - reads results.json, to merge shards or to continue an interrupted shard.
 *
 * The file may come from another machine: its size, lists and texts are bounded, and file contents that it
 * refers to are treated as text. Paths below the directory in which it was written become paths below its
 * current directory. */
#pragma once

#include "qa/report/result.h"

struct results_file {
    char *path, *dir;   /* path as given; its directory */
    struct suite suite; /* its tests, as far as reports need them; texts belong to `json` */
    int *index;         /* [suite.n] position of each test in the whole suite */
    struct results results;
    struct check *checks; /* the checks of all attempts */
    json_t *json;
};

/* Reads a results.json. path: the file, or the directory that contains it. ERR_USAGE with the reason. The
 * caller calls results_file_free() in any case. */
int results_file_read(const char *path, struct results_file *f, struct err *e);
int results_file_parse(const char *text, size_t len, const char *path, struct results_file *f, struct err *e);
void results_file_free(struct results_file *f);

/* Copies the decided results (passed or failed) of an earlier part of the same run into the rows of `r`.
 * Returns their number; -1 if the file belongs to another suite or shard. */
int results_resume(struct results *r, struct results_file *f, struct err *e);
