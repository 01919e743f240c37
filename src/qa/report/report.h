/* report.h - reports of a suite, all from the same results.
 *
 *   JUnit XML    for Jenkins, GitLab and whatever else reads it
 *   TAP 13       for prove and other harnesses
 *   JSON         everything, for programs; --rerun-failed, --shard-times, --resume-shard and merge read it
 *   HTML         one page that opens from disk
 *   Markdown     appended to the summary of a GitHub job
 *
 * A failed check is a `failure`; an `error` is what kept a test from a verdict.  results_ci() says what a
 * claimed, inconclusive, stopped or unrun test is to CI: the same in each format and in the exit code.  A
 * flaky test has passed, with a `flakyFailure` for each earlier attempt.
 *
 * Writers return -1 with a message that names the file, leave an existing file as it was, and create
 * files as 0600.
 */
#ifndef HOLORUN_QA_REPORT_REPORT_H
#define HOLORUN_QA_REPORT_REPORT_H

#include "base/err.h"
#include "qa/report/result.h"

#include <stdio.h>

enum report { REPORT_JUNIT, REPORT_TAP, REPORT_JSON, REPORT_HTML, REPORT_GITHUB, REPORTS };
int report_save(enum report which, const struct results *r, const char *path, struct err *e);

/* One for each format; path: of the file, since links are relative to it. */
typedef void report_printer(const struct results *r, const char *path, FILE *f);
report_printer report_junit, report_tap, report_json, report_html;
/* Appends.  GitHub takes 1 MiB: tests beyond that are left out, and a line says how many. */
int report_github(const struct results *r, const char *path, struct err *e);

struct report_paths {
    const char *of[REPORTS]; /* NULL: not wanted */
};
/* Writes all of them.  -1: *e names the first that failed and counts the others; failed paths become NULL. */
int reports_write(const struct results *r, struct report_paths *p, struct err *e);

/* The folder of results, with all reports, runs/ and pictures/, and copies of reports elsewhere. */
struct reports {
    char *dir, *files[REPORT_GITHUB];
    struct report_paths paths, copies;
    int64_t saved;   /* clock_ns() of the last save */
    double save_ms;  /* that it took */
    char *errors[2]; /* of the folder, of the copies; or NULL */
};
/* Removes reports of an earlier run, so that nobody takes them for those of a run that wrote none. */
void reports_discard(const char *dir, const struct report_paths *copies);
/* dir NULL: a new folder in the user's state folder.  Removes reports of an earlier run.  reports_close()
 * in every case. */
int reports_open(struct reports *f, const char *dir, const struct report_paths *copies, struct err *e);
/* JSON and JUnit of what is known so far, for a run that gets killed; rarely enough to cost nothing. */
void reports_save_progress(struct reports *f, const struct results *r);
/* false: some could not be written; reports_print_errors() says which. */
bool reports_save(struct reports *f, const struct results *r);
bool reports_print_errors(const struct reports *f); /* whether there were any */
void reports_close(struct reports *f);

/* ---- the terminal reporter of a running suite, on stderr (progress.c) --------------------------------
 *
 * A line for each test when it ends, and on a terminal a progress bar with the running tests and the time
 * left.
 *
 *     p = progress_begin(n, jobs, quiet)
 *     progress_start(p, test, worker)      any thread
 *     progress_end(p, result)              any thread; copies what it shows
 *     progress_tick(p)                     periodically: redraws the clock while no test ends
 *     progress_summary(p, results, path)   counts, and every test that did not pass or was flaky
 *     progress_free(p)
 *
 * Without a terminal there is no bar, but after 30 s of silence a line says how far it is.  NO_COLOR is
 * respected. Control characters in ids and answers never reach the terminal.
 */

struct progress;

struct progress *progress_begin(int total, int jobs, bool quiet); /* quiet: only the summary */
void progress_start(struct progress *p, const struct test *t, int worker);
void progress_end(struct progress *p, const struct result *r);
void progress_tick(struct progress *p);
/* report: path of the HTML page, or NULL. */
void progress_summary(struct progress *p, const struct results *r, const char *report);
void progress_free(struct progress *p); /* NULL is fine */

#endif
