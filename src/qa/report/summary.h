/* summary.h - a result in words and groups: the same on the terminal, in XML, JSON, Markdown and on the
 * page. */
#ifndef HOLORUN_QA_REPORT_SUMMARY_H
#define HOLORUN_QA_REPORT_SUMMARY_H

#include "qa/report/clean.h"
#include "qa/report/result.h"
#include "trace/story.h"

/* The attempt that decided; NULL: none ran. */
const struct attempt *summary_last_attempt(const struct result *r);
/* The result as it would be if its attempts had ended with this one, from 0. */
struct result summary_as_of(const struct result *r, int attempt);
const char *summary_answer(enum answer a); /* "yes", "no", "unknown", "error", "not asked" */

/* Why a test did not pass, or passed with a reservation, in one clean line; "" if it simply passed. Owned. */
char *summary_reason(const struct result *r);
/* The same for machines: "check:shell", "display", "claimed" ...; "" if it passed.  Owned. */
char *summary_kind(const struct result *r);

/* Not passed, and not excused. */
bool summary_needs_attention(const struct result *r);

/* Outcomes as reports group and count them, worst first.  Two groups more than outcomes: tests that were not
 * run are apart from those that --fail-fast skipped, and flaky tests from those that passed. */
enum { SUMMARY_GROUPS = OUTCOMES + 2 };
const char *summary_group_name(int group);  /* "not run" */
const char *summary_group_class(int group); /* one word, for style sheets */
int summary_group(const struct result *r);
int summary_count(const struct results *r, int group);
char *summary_counts(const struct results *r); /* "1 failed, 1 flaky, 37 passed"; owned */
/* All results by group; owned.  [r->n] */
const struct result **summary_worst_first(const struct results *r);

static inline double mib(size_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* ---- files of a run that reports link to (artifacts.c) -------------------------------------------- */

/* `path` as a link from folder `from`: relative if it is below, else absolute; owned. */
char *artifact_link(const char *from, const char *path);
/* The folder of a file; owned. */
char *artifact_folder(const char *path);

/* Indices of the steps at which the last `most` distinct frames of a run were seen, oldest first; returns
 * how many. */
int artifact_last_steps(const struct story *s, int *steps, int most);
/* The numbers of those frames; 0 if there is no readable run. */
int artifact_last_frames(const char *run_dir, int *numbers, int most);
char *artifact_frame(const char *run_dir, int number); /* its path; owned */

#endif
