/* progress.h - the terminal reporter of a running suite, on stderr: a line for each test when it ends,
 * and on a terminal a progress bar with the running tests and the time left.
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
#ifndef HOLORUN_QA_REPORT_PROGRESS_H
#define HOLORUN_QA_REPORT_PROGRESS_H

#include "qa/report/result.h"

struct progress;

struct progress *progress_begin(int total, int jobs, bool quiet); /* quiet: only the summary */
void progress_start(struct progress *p, const struct test *t, int worker);
void progress_end(struct progress *p, const struct result *r);
void progress_tick(struct progress *p);
/* report: path of the HTML page, or NULL. */
void progress_summary(struct progress *p, const struct results *r, const char *report);
void progress_free(struct progress *p); /* NULL is fine */

#endif
