/* report.h - reports of a suite, all from the same results.
 *
 *   JUnit XML    for Jenkins, GitLab and whatever else reads it
 *   TAP 13       for prove and other harnesses
 *   JSON         everything, for programs; --rerun-failed and --shard-times read it
 *   HTML         one page that opens from disk
 *   Markdown     appended to the summary of a GitHub job
 *
 * A failed check is a `failure`; an `error` is what kept a test from a verdict.  Claimed, inconclusive and
 * stopped tests have no verdict: JUnit marks them `skipped` with the reason, TAP `# TODO`, and the exit
 * code of the program tells.  A flaky test has passed, with a `flakyFailure` for each earlier attempt.
 *
 * Writers return -1 with a message that names the file, leave an existing file as it was, and create
 * files as 0600.
 */
#ifndef HOLORUN_QA_REPORT_REPORT_H
#define HOLORUN_QA_REPORT_REPORT_H

#include "base/err.h"
#include "qa/report/result.h"

#include <stdio.h>

int report_junit(const struct results *r, const char *path, struct err *e);
int report_tap(const struct results *r, const char *path, struct err *e);
int report_json(const struct results *r, const char *path, struct err *e);
void report_tap_print(const struct results *r, FILE *f);
void report_json_print(const struct results *r, FILE *f);
int report_html(const struct results *r, const char *path, struct err *e);
/* Appends.  GitHub takes 1 MiB: tests beyond that are left out, and a line says how many. */
int report_github(const struct results *r, const char *path, struct err *e);

struct report_paths { /* NULL: not wanted */
    const char *junit, *tap, *json, *html, *github;
};
/* Writes all of them.  -1: *e names the first that failed and counts the others; failed paths become NULL. */
int reports_write(const struct results *r, struct report_paths *p, struct err *e);

/* The folder of results, with all reports, runs/ and pictures/, and copies of reports elsewhere. */
enum { REPORTS_FILES = 4 };
struct reports {
    char *dir, *files[REPORTS_FILES];
    struct report_paths paths, copies;
    int64_t saved;   /* clock_ns() of the last save */
    double save_ms;  /* that it took */
    char *errors[2]; /* of the folder, of the copies; or NULL */
};
/* dir NULL: a new folder in the user's state folder.  Removes reports of an earlier run.  reports_close()
 * in every case. */
int reports_open(struct reports *f, const char *dir, const struct report_paths *copies, struct err *e);
/* JSON and JUnit of what is known so far, for a run that gets killed; rarely enough to cost nothing. */
void reports_save_progress(struct reports *f, const struct results *r);
/* false: some could not be written; reports_print_errors() says which. */
bool reports_save(struct reports *f, const struct results *r);
bool reports_print_errors(const struct reports *f); /* whether there were any */
void reports_close(struct reports *f);

#endif
