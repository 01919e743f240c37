/* summary.h - describes a result in words and groups, the same in every report and on the terminal. */
#pragma once

#include "qa/report/clean.h"
#include "qa/report/result.h"
#include "trace/story.h"

/* Returns how far an attempt repeated an earlier run; the caller frees it. NULL: it did not. */
char *summary_reused(const struct attempt *a);
/* Returns the attempt that decided; NULL: none ran. */
const struct attempt *summary_last_attempt(const struct result *r);
/* Returns the result as if its attempts had ended with this one, from 0. */
struct result summary_as_of(const struct result *r, int attempt);
const char *summary_answer(enum answer a); /* "yes", "no", "unknown", "error", "not asked" */

/* Returns, in one clean line, why a test did not pass, or passed with a reservation; "" if it passed without
 * one. The caller frees it. */
char *summary_reason(const struct result *r);
/* Returns the same for programs: "check:shell", "display", "claimed" ...; "" if it passed. The caller frees
 * it. */
char *summary_kind(const struct result *r);

/* Returns whether a result is neither passed nor excused. */
bool summary_needs_attention(const struct result *r);

/* The groups in which reports list and count results, worst first. There are two more than outcomes: tests
 * that were not run are separate from those that --fail-fast skipped, and flaky tests from those that
 * passed. */
enum { SUMMARY_GROUPS = OUTCOMES + 2 };
const char *summary_group_name(int group);  /* "not run" */
const char *summary_group_class(int group); /* one word, as a CSS class */
int summary_group(const struct result *r);
int summary_count(const struct results *r, int group);
char *summary_counts(const struct results *r); /* "1 failed, 1 flaky, 37 passed"; owned */
/* Returns all results ordered by group: [r->n], the caller frees it. */
const struct result **summary_worst_first(const struct results *r);

static inline double mib(size_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* ---- files of a run that reports link to (artifacts.c) -------------------------------------------- */

/* Returns `path` as a link from directory `from`: relative if it is below, else absolute. The caller frees
 * it. */
char *artifact_link(const char *from, const char *path);
/* Returns the directory of a file. The caller frees it. */
char *artifact_folder(const char *path);

/* Finds the steps at which the last `most` distinct frames of a run were captured, oldest first. Returns
 * their number. */
int artifact_last_steps(const struct story *s, int *steps, int most);
/* Finds the numbers of those frames. Returns their count; 0 if the run cannot be read. */
int artifact_last_frames(const char *run_dir, int *numbers, int most);
char *artifact_frame(const char *run_dir, int number); /* its path; owned */
