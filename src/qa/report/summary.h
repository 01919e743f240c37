/* summary.h - a result in words and groups: the same on the terminal, in XML, JSON, Markdown and on the
 * page. */
#ifndef HOLORUN_QA_REPORT_SUMMARY_H
#define HOLORUN_QA_REPORT_SUMMARY_H

#include "qa/report/clean.h"
#include "qa/report/result.h"

/* The attempt that decided; NULL: none ran. */
const struct attempt *summary_last_attempt(const struct result *r);
/* The result as it would be if its attempts had ended with this one, from 0. */
struct result summary_as_of(const struct result *r, int attempt);
const char *summary_answer(enum answer a); /* "yes", "no", "unknown", "error", "not asked" */

/* Why a test did not pass, or passed with a reservation, in one clean line; "" if it simply passed. Owned. */
char *summary_reason(const struct result *r);
/* The same for machines: "check:shell", "display", "claimed" ...; "" if it passed.  Owned. */
char *summary_kind(const struct result *r);

/* Neither passed nor skipped. */
bool summary_needs_attention(const struct result *r);

/* Outcomes as reports group them, worst first; flaky tests are a group of their own between stopped and
 * skipped. */
enum { SUMMARY_GROUPS = OUTCOMES + 1 };
const char *summary_group_name(int group);
int summary_group(const struct result *r);
/* All results by group; owned.  [r->n] */
const struct result **summary_worst_first(const struct results *r);

#endif
