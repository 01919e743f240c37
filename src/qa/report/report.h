/* report.h - reports of suite results, in several formats.
 *
 *   JUnit XML    for Jenkins, GitLab and other readers of the format
 *   TAP 13       for prove and other harnesses
 *   JSON         complete, for programs; --rerun-failed, --shard-times, --resume-shard and merge read it
 *   HTML         one page that can be opened from disk
 *   Markdown     appended to the summary of a GitHub job
 *
 * A failed check is a `failure`; an `error` is a problem that prevented a verdict. results_ci() maps claimed,
 * inconclusive, stopped and unrun tests to CI outcomes, the same in every format and in the exit code. A
 * flaky test has passed, with a `flakyFailure` for each earlier attempt.
 *
 * Writers return -1 with a message that names the file, leave an existing file unchanged on failure, and
 * create files with mode 0600. */
#pragma once

#include "base/err.h"
#include "qa/report/result.h"

#include <stdio.h>

enum report { REPORT_JUNIT, REPORT_TAP, REPORT_JSON, REPORT_HTML, REPORT_GITHUB, REPORTS };
int report_save(enum report which, const struct results *r, const char *path, struct err *e);

/* Writes one format. path: of the file, because links are relative to it. */
typedef void report_printer(const struct results *r, const char *path, FILE *f);
report_printer report_junit, report_tap, report_json, report_html;
/* Appends to the summary file. GitHub's limit is 1 MiB: tests beyond that are omitted, and a line states how
 * many. */
int report_github(const struct results *r, const char *path, struct err *e);

struct report_paths {
    const char *of[REPORTS]; /* NULL: not requested */
};
/* Writes all requested reports. Returns -1 if any failed: *e has the first failure and the number of the
 * others; the paths of failed reports become NULL. */
int reports_write(const struct results *r, struct report_paths *p, struct err *e);

/* The results directory, with all reports, runs/ and pictures/, and copies of reports elsewhere. */
struct reports {
    char *dir, *files[REPORT_GITHUB];
    struct report_paths paths, copies;
    int64_t saved;   /* clock_ns() of the last save */
    double save_ms;  /* duration of the last save */
    char *errors[2]; /* for the directory and for the copies; or NULL */
};
/* Removes reports of an earlier run, so that they are not mistaken for those of a run that wrote none. */
void reports_discard(const char *dir, const struct report_paths *copies);
/* Opens the results directory and removes reports of an earlier run. dir NULL: creates one in the user's
 * state directory. The caller calls reports_close() in any case. */
int reports_open(struct reports *f, const char *dir, const struct report_paths *copies, struct err *e);
/* Saves the current results as JSON and JUnit, in case the run is killed. Saves seldom enough not to slow
 * down the run. */
void reports_save_progress(struct reports *f, const struct results *r);
/* Saves all reports. Returns false if some could not be written; reports_print_errors() prints which. */
bool reports_save(struct reports *f, const struct results *r);
bool reports_print_errors(const struct reports *f); /* Returns whether there were any. */
void reports_close(struct reports *f);

/* ---- the terminal reporter of a running suite, on stderr (progress.c) --------------------------------
 *
 * Prints a line for each test when it ends, and on a terminal a progress bar with the running tests and the
 * time left.
 *
 *     p = progress_begin(n, jobs, quiet)
 *     progress_start(p, test, worker)      any thread
 *     progress_end(p, result)              any thread; copies the texts it needs
 *     progress_tick(p)                     periodically: redraws the clock while no test ends
 *     progress_summary(p, results, path)   counts, and every test that did not pass or was flaky
 *     progress_free(p)
 *
 * Without a terminal, it prints only a line about the progress after 30 s without output. NO_COLOR is
 * respected. Control characters in ids and answers never reach the terminal.
 */

struct progress;

struct progress *progress_begin(int total, int jobs, bool quiet); /* quiet: prints only the summary */
void progress_start(struct progress *p, const struct test *t, int worker);
void progress_end(struct progress *p, const struct result *r);
void progress_tick(struct progress *p);
/* Prints the summary. report: path of the HTML page, or NULL. */
void progress_summary(struct progress *p, const struct results *r, const char *report);
void progress_free(struct progress *p); /* p may be NULL */
