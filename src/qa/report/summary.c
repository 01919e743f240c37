/* summary.c - describes results in words: reasons, kinds, groups and counts. */
#include "qa/report/summary.h"

#include "base/buf.h"
#include "trace/status.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 400 }; /* limit of a reason, in bytes */

const struct attempt *summary_last_attempt(const struct result *r)
{
    return r->n ? &r->attempts[r->n - 1] : NULL;
}

struct result summary_as_of(const struct result *r, int attempt)
{
    struct result before = *r;
    before.n = attempt + 1;
    before.outcome = r->attempts[attempt].outcome;
    before.flaky = FLAKY_NOT;
    return before;
}

const char *summary_answer(enum answer a)
{
    static const char *const names[] = {"yes", "no", "unknown", "error", "not asked"};
    return (unsigned)a < sizeof names / sizeof *names ? names[a] : "?";
}

/* ---- reasons ------------------------------------------------------------------------------------- */

/* Returns the first check with this answer, or NULL. */
static const struct check_result *find_check(const struct attempt *a, enum answer answer)
{
    for (int i = 0; a && i < a->n_checks; i++)
        if (a->checks[i].answer == answer)
            return &a->checks[i];
    return NULL;
}

static int count_checks(const struct attempt *a, enum answer answer)
{
    int n = 0;
    for (int i = 0; i < a->n_checks; i++)
        n += a->checks[i].answer == answer;
    return n;
}

/* Returns a text such as "shell: curl ...: expected exit code 0, got 1 (and 2 more)". The name is omitted if
 * the detail quotes the check. */
static char *why_check(const struct attempt *a, enum answer answer, const char *otherwise)
{
    const struct check_result *c = find_check(a, answer);
    const char *detail = c->detail ? c->detail : c->output && *c->output ? c->output : otherwise;
    int more = count_checks(a, answer) - 1;
    bool quoted = c->check->text && c->detail && strstr(c->detail, c->check->text);
    char *line = clean_line(detail, LINE), *name = clean_line(quoted ? NULL : c->check->name, LINE / 4);
    char *text = xasprintf("%s%s%s", name, *name ? ": " : "", line);
    free(line), free(name);
    if (more > 0) {
        line = text;
        text = xasprintf("%s (and %d more)", line, more);
        free(line);
    }
    return text;
}

/* Returns the row of the agent's end; that of a broken run if it did not start. */
static const struct status_row *row_of(const struct attempt *a)
{
    const struct status_row *row = a ? status_find(a->status) : NULL;
    return row ? row : status_row(AGENT_RUNNING);
}

/* Returns whether the agent ended by an answer that does not count: refused, interrupted, unverified. */
static bool ends_unconfirmed(const struct status_row *row)
{
    return row->verdict == STATUS_NOT_DONE || row->verdict == STATUS_UNCONFIRMED;
}

/* "interrupted: not done: step 3 (...)"; "unverified: Done; pressed 'Save'; the window did not change". */
static char *why_unconfirmed(const struct attempt *a, const struct status_row *row, const char *answer)
{
    bool named = !strncmp(answer, row->name, strlen(row->name)), done = row->verdict == STATUS_UNCONFIRMED;
    autofree char *did = clean_line(done ? a->did : NULL, LINE);
    return xasprintf("%s%s%s%s%s", named ? "" : row->name, named ? "" : ": ", answer, *did ? "; " : "", did);
}

static char *why_agent(const struct result *r, const struct attempt *a)
{
    if (a->error && *a->error)
        return clean_line(a->error, LINE);
    const struct status_row *row = row_of(a);
    char *status = clean_line(a->status, 40), *answer = clean_line(a->answer, LINE), *text;
    if (row->verdict == STATUS_SAYS_INFEASIBLE)
        text = xasprintf("the agent says that the task is infeasible%s%s", *answer ? ": " : "", answer);
    else if (r->outcome == OUTCOME_FAILED && r->test->expect_infeasible)
        text = xasprintf("the agent was expected to say that the task is infeasible, and says: %s", answer);
    else if (ends_unconfirmed(row))
        text = why_unconfirmed(a, row, answer);
    else if (!*status || row->verdict == STATUS_SAYS_DONE)
        text = xstrdup("a check was not run");
    else
        text = xasprintf("the agent did not finish: %s", row->meaning);
    free(status), free(answer);
    return text;
}

static char *why_claimed(const struct attempt *a)
{
    if (a && a->n_script)
        return xstrdup("all steps were performed, and no check confirms their effect");
    char *answer = clean_line(a ? a->answer : NULL, LINE), *text;
    text = *answer ? xasprintf("no check confirms what the agent says: %s", answer)
                   : xstrdup("no check confirms what the agent says");
    free(answer);
    return text;
}

static char *why_passed(const struct result *r)
{
    if (r->flaky != FLAKY_NOT) {
        autofree char *where = clean_line(r->flaky_where, LINE);
        char *text = xasprintf("flaky, passed on attempt %d: %s%s%s", r->n, flaky_description(r->flaky),
                               *where ? "; " : "", where);
        return text;
    }
    return xstrdup(r->judged ? "confirmed by a model alone" : "");
}

/* Returns whether the agent's own statement decided, not a check. */
static bool failed_by_agent(const struct result *r, const struct attempt *a)
{
    enum status_verdict v = row_of(a)->verdict;
    bool done = v == STATUS_SAYS_DONE || v == STATUS_UNCONFIRMED;
    return r->test->expect_infeasible ? done : v == STATUS_SAYS_INFEASIBLE;
}

/* Returns the reason without a remark. */
static char *reason_of(const struct result *r, const struct attempt *a)
{
    if (r->outcome == OUTCOME_PASSED)
        return why_passed(r);
    if (r->outcome == OUTCOME_SKIPPED)
        return clean_line(r->reason ? r->reason : "still running or waiting when the report was written",
                          LINE);
    if (r->outcome == OUTCOME_STOPPED)
        return xstrdup(r->reason ? r->reason : "stopped by the user");
    if (r->outcome == OUTCOME_CLAIMED)
        return why_claimed(a);
    if (!a)
        return clean_line(r->reason ? r->reason : "did not run", LINE);
    if (r->outcome == OUTCOME_ERROR)
        return find_check(a, ANSWER_ERROR) && !a->error
                   ? why_check(a, ANSWER_ERROR, "the check could not be run")
                   : why_agent(r, a);
    if (r->outcome == OUTCOME_INCONCLUSIVE)
        return find_check(a, ANSWER_UNKNOWN) ? why_check(a, ANSWER_UNKNOWN, "the model does not know")
                                             : why_agent(r, a);
    if (attempt_failed_step(a) && !a->crashed) /* the error names it with its line */
        return clean_line(a->error ? a->error : attempt_failed_step(a)->said, LINE);
    if (find_check(a, ANSWER_NO) && !a->crashed)
        return why_check(a, ANSWER_NO, "no");
    if (r->test->expect_fail && !failed_by_agent(r, a))
        return xstrdup("expected to fail, but passed");
    return why_agent(r, a);
}

char *summary_reason(const struct result *r)
{
    const struct attempt *a = summary_last_attempt(r);
    char *text = reason_of(r, a);
    if (r->outcome == OUTCOME_PASSED || r->outcome == OUTCOME_STOPPED || !a || !a->reused)
        return text;
    char *all = xasprintf("%s (%d of %d replies repeat an earlier run; --fresh repeats none)", text,
                          a->reused, a->steps);
    free(text);
    return all;
}

char *summary_kind(const struct result *r)
{
    const struct attempt *a = summary_last_attempt(r);
    const struct check_result *c = NULL;
    if (r->outcome == OUTCOME_PASSED)
        return xstrdup("");
    const struct step_result *step = r->outcome == OUTCOME_FAILED ? attempt_failed_step(a) : NULL;
    if (step && !a->crashed)
        return xasprintf("step:%s", step_end_name(step->end));
    if (r->outcome == OUTCOME_FAILED)
        c = find_check(a, ANSWER_NO);
    else if (r->outcome == OUTCOME_INCONCLUSIVE)
        c = find_check(a, ANSWER_UNKNOWN);
    else if (r->outcome == OUTCOME_ERROR && (!a || !a->error_kind))
        c = find_check(a, ANSWER_ERROR);
    if (c)
        return xasprintf("check:%s", check_kind_name(c->check->kind));
    if (r->outcome == OUTCOME_ERROR && a && a->error_kind)
        return clean_line(a->error_kind, 40);
    if (r->outcome == OUTCOME_FAILED)
        return xstrdup(r->test->expect_fail && !failed_by_agent(r, a) ? "expect-fail" : "agent");
    if (r->outcome == OUTCOME_INCONCLUSIVE && ends_unconfirmed(row_of(a)))
        return xstrdup(row_of(a)->name);
    return xstrdup(outcome_name(r->outcome));
}

/* ---- groups -------------------------------------------------------------------------------------- */

bool summary_needs_attention(const struct result *r)
{
    return r->outcome != OUTCOME_PASSED && !(r->outcome == OUTCOME_SKIPPED && r->excused);
}

static const struct {
    const char *name, *class;
} groups[SUMMARY_GROUPS] = {
    {"failed", "failed"},   {"error", "error"},   {"claimed", "claimed"}, {"inconclusive", "inconclusive"},
    {"stopped", "stopped"}, {"not run", "unrun"}, {"flaky", "flaky"},     {"skipped", "skipped"},
    {"passed", "passed"}};

const char *summary_group_name(int group)
{
    return groups[group].name;
}

const char *summary_group_class(int group)
{
    return groups[group].class;
}

int summary_group(const struct result *r)
{
    bool flaky = r->outcome == OUTCOME_PASSED && r->flaky != FLAKY_NOT;
    bool unrun = r->outcome == OUTCOME_SKIPPED && !r->excused;
    const char *name = flaky ? "flaky" : unrun ? "not run" : outcome_name(r->outcome);
    int g = 0;
    while (g < SUMMARY_GROUPS - 1 && strcmp(groups[g].name, name) != 0)
        g++;
    return g;
}

int summary_count(const struct results *r, int group)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        n += summary_group(&r->results[i]) == group;
    return n;
}

char *summary_counts(const struct results *r)
{
    struct buf b;
    buf_init(&b, 1000);
    for (int g = 0; g < SUMMARY_GROUPS; g++)
        if (summary_count(r, g))
            buf_printf(&b, "%s%d %s", b.len ? ", " : "", summary_count(r, g), groups[g].name);
    if (!b.len)
        buf_puts(&b, "no tests ran");
    return buf_take(&b);
}

const struct result **summary_worst_first(const struct results *r)
{
    const struct result **list = xcalloc((unsigned long)r->n + 1, sizeof *list);
    int n = 0;
    for (int g = 0; g < SUMMARY_GROUPS; g++)
        for (int i = 0; i < r->n; i++)
            if (summary_group(&r->results[i]) == g)
                list[n++] = &r->results[i];
    return list;
}

char *summary_reused(const struct attempt *a)
{
    if (!a->reused_from)
        return NULL;
    return a->reused ? xasprintf("%d of %d replies as in %s", a->reused, a->steps, a->reused_from)
                     : xasprintf("no reply repeated from %s", a->reused_from);
}
