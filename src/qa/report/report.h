/* report.h - what came of a suite, for people and for CI: each a file of its own from the same results.
 *
 *   JUnit XML    Jenkins, GitLab and everything else that reads it
 *   TAP 13       prove and other harnesses
 *   JSON         all there is, for programs; --rerun-failed reads it
 *   HTML         one page that opens from disk
 *   Markdown     appended to the summary of a GitHub job
 *
 * Only a check that said no is a `failure`, and only what kept a test from a verdict an `error`.  What was claimed, is
 * inconclusive or was stopped has no verdict: JUnit has `skipped` for it, with the reason, TAP a `# TODO`; the exit code of
 * the program says that all is not well.  A flaky test is passed, with a `flakyFailure` for each attempt before.
 *
 * Each returns -1 with a line that names the file when it could not be written; an earlier file then stays as it was, and
 * so do the other reports.  Files are 0600.
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
/* Appends; what does not fit into the 1 MiB that GitHub takes is left out, with a line that says so. */
int report_github(const struct results *r, const char *path, struct err *e);

/* Where reports are wanted; NULL: not. */
struct report_paths {
    const char *junit, *tap, *json, *html, *github;
};
/* All of them.  -1 when some could not be written: *e names the first and how many more, and their paths become NULL. */
int reports_write(const struct results *r, struct report_paths *p, struct err *e);

#endif
