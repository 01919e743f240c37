/* live.h - a suite while it runs, on stderr: a line for each test that has ended, and below them, on a terminal, a bar with
 * what is running and the time left.
 *
 *     l = live_begin(n, jobs, quiet)
 *     live_start(l, test, worker)      from any thread
 *     live_end(l, result)              from any thread; copies what it shows
 *     live_tick(l)                     now and then: time goes on while no test ends
 *     live_summary(l, results, where)  how it went, with what did not pass and what was flaky
 *     live_free(l)
 *
 * Elsewhere than on a terminal only lines; after 30 s without any, one that says how far it is.  Colours on a terminal, without NO_COLOR.
 * Whatever ids and answers hold, no control character of theirs reaches the terminal.
 */
#ifndef HOLORUN_QA_REPORT_LIVE_H
#define HOLORUN_QA_REPORT_LIVE_H

#include "qa/report/result.h"

struct live;

struct live *live_begin(int total, int jobs, bool quiet); /* quiet: nothing but the summary */
void live_start(struct live *l, const struct test *t, int worker);
void live_end(struct live *l, const struct result *r);
void live_tick(struct live *l);
/* report: path of the page, NULL: none. */
void live_summary(struct live *l, const struct results *r, const char *report);
void live_free(struct live *l); /* NULL is fine */

#endif
