/* result.c - determines the outcome of a test and the exit code of a suite.
 *
 * Checks decide about the program under test; the agent's own statement counts only if no check decides.
 * There are three kinds of evidence:
 *
 *   proof    no model is involved; steps that check or wait for a result are such evidence
 *   model    a model was asked: a test that passes only by models is `judged`
 *   claim    the agent's own answer, matched or not
 *
 * The first line that applies is the outcome:
 *
 *   the user stopped the agent                                       stopped
 *   the agent did not start, failed, or there is an error_kind       error
 *   a proof could not be run                                         error
 *   the program under test crashed, or a step or check failed        failed
 *   the agent answers that the task is infeasible, unexpectedly      failed
 *   it answers something else where infeasible is expected           failed
 *   a model could not be asked                                       error
 *   a model does not know                                            inconclusive
 *   a step or a check was not run                                    inconclusive
 *   its last action was refused, failed or interrupted               inconclusive
 *   it did not finish where infeasible is expected                   inconclusive
 *   a proof succeeded                                                passed
 *   a model says yes, or the agent that it is infeasible             passed, judged
 *   its validator rejects its answer                                 failed
 *   the agent did not finish, or nothing confirms its answer         inconclusive
 *   otherwise                                                        claimed
 *
 * An agent that runs out of steps can pass by checks that run in any case (`when: always`). `expect_fail`
 * turns a failed check and a crash of the program into a pass, but never the agent's own statement. */
#include "qa/report/result.h"

#include "trace/status.h"

#include <stdlib.h>
#include <string.h>

static const char *const outcomes[OUTCOMES] = {
    [OUTCOME_PASSED] = "passed",   [OUTCOME_FAILED] = "failed",
    [OUTCOME_CLAIMED] = "claimed", [OUTCOME_INCONCLUSIVE] = "inconclusive",
    [OUTCOME_ERROR] = "error",     [OUTCOME_SKIPPED] = "skipped",
    [OUTCOME_STOPPED] = "stopped",
};

const char *outcome_name(enum outcome o)
{
    return outcomes[o];
}

const char *undecided_name(enum undecided u)
{
    static const char *const names[] = {"error", "failure", "skipped"};
    return names[u];
}

const char *flaky_name(enum flaky f)
{
    static const char *const names[] = {"not", "model", "application", "unknown"};
    return names[f];
}

const char *flaky_description(enum flaky f)
{
    static const char *const meanings[] = {
        [FLAKY_NOT] = "not flaky",
        [FLAKY_MODEL] = "the model acted differently on the same screens",
        [FLAKY_APPLICATION] = "the application showed different screens",
        [FLAKY_UNKNOWN] = "the cause is unknown",
    };
    return meanings[f];
}

const char *step_end_name(enum step_end e)
{
    static const char *const names[STEP_ENDS] = {
        [STEP_NOT_RUN] = "not run", [STEP_DONE] = "done",    [STEP_NOT_FOUND] = "not found",
        [STEP_FAILED] = "failed",   [STEP_UNREAD] = "error",
    };
    return names[e];
}

const struct step_result *attempt_failed_step(const struct attempt *a)
{
    for (int i = 0; a && i < a->n_script; i++)
        if (a->script[i].end > STEP_DONE)
            return &a->script[i];
    return NULL;
}

/* ---- one attempt --------------------------------------------------------------------------------- */

struct tally {
    int n[BY_PROOF + 1][ANSWER_NOT_ASKED + 1];
    int all[ANSWER_NOT_ASKED + 1];
    int failed_steps; /* without those that check a state */
};

static struct tally count(const struct attempt *a)
{
    struct tally t = {0};
    for (int i = 0; i < a->n_checks; i++) {
        t.n[check_evidence(a->checks[i].check->kind)][a->checks[i].answer]++;
        t.all[a->checks[i].answer]++;
    }
    for (int i = 0; i < a->n_script; i++) {
        const struct step_result *s = &a->script[i];
        enum answer as = s->end == STEP_NOT_RUN  ? ANSWER_NOT_ASKED
                         : s->end == STEP_DONE   ? ANSWER_YES
                         : s->end == STEP_UNREAD ? ANSWER_ERROR
                                                 : ANSWER_NO;
        t.n[BY_PROOF][as] += s->proof;
        t.all[as] += s->proof || as != ANSWER_YES;
        t.failed_steps += as == ANSWER_NO && !s->proof;
    }
    return t;
}

/* Returns the verdict of the agent's end status; an attempt without a known status has none. */
static enum status_verdict verdict_of(const struct attempt *a)
{
    const struct status_row *row = a->status && *a->status ? status_find(a->status) : NULL;
    return row ? row->verdict : STATUS_BREAKS;
}

static enum outcome decide(const struct test *t, const struct attempt *a, const struct tally *n)
{
    enum status_verdict v = verdict_of(a);
    bool infeasible = v == STATUS_SAYS_INFEASIBLE, done = v == STATUS_SAYS_DONE;
    bool unexpected = t->expect_infeasible ? done || v == STATUS_UNCONFIRMED : infeasible;
    if (v == STATUS_STOPS)
        return OUTCOME_STOPPED;
    if (v == STATUS_BREAKS || a->error_kind)
        return OUTCOME_ERROR;
    if (n->all[ANSWER_ERROR] > n->n[BY_MODEL][ANSWER_ERROR])
        return OUTCOME_ERROR;
    if (a->crashed || n->all[ANSWER_NO] || unexpected)
        return OUTCOME_FAILED;
    if (n->all[ANSWER_ERROR])
        return OUTCOME_ERROR;
    if (n->all[ANSWER_UNKNOWN] || n->all[ANSWER_NOT_ASKED] || v == STATUS_NOT_DONE)
        return OUTCOME_INCONCLUSIVE;
    if (t->expect_infeasible)
        return infeasible ? OUTCOME_PASSED : OUTCOME_INCONCLUSIVE;
    if (n->n[BY_PROOF][ANSWER_YES] || n->n[BY_MODEL][ANSWER_YES])
        return OUTCOME_PASSED;
    if (v == STATUS_REJECTED)
        return OUTCOME_FAILED;
    return done ? OUTCOME_CLAIMED : OUTCOME_INCONCLUSIVE;
}

enum outcome result_outcome(const struct test *t, const struct attempt *a, bool *judged)
{
    struct tally tally = count(a);
    enum outcome o = decide(t, a, &tally);
    enum answer decisive = o == OUTCOME_FAILED ? ANSWER_NO : ANSWER_YES;
    bool by_checks = o == OUTCOME_FAILED && !tally.failed_steps && (a->crashed || tally.all[ANSWER_NO]);
    if (t->expect_fail && (o == OUTCOME_PASSED || by_checks))
        o = by_checks ? OUTCOME_PASSED : OUTCOME_FAILED;
    *judged = o == OUTCOME_PASSED && !tally.n[BY_PROOF][decisive];
    return o;
}

/* ---- a suite ------------------------------------------------------------------------------------- */

void results_begin(struct results *r, const struct suite *s)
{
    r->suite = s;
    r->n = 0;
    r->jobs = 1;
    r->results = xcalloc((unsigned long)s->n + 1, sizeof *r->results);
    for (int i = 0; i < s->n; i++)
        if (s->tests[i].selected)
            r->results[r->n++] = (struct result){.test = &s->tests[i], .outcome = OUTCOME_SKIPPED};
}

void results_abort(struct results *r, const struct err *why)
{
    r->aborted = why->kind;
    free(r->abort_reason);
    r->abort_reason = xstrdup(why->text);
    for (int i = 0; i < r->n; i++) {
        if (r->results[i].n) /* continued from an earlier run */
            continue;
        r->results[i].outcome = why->kind == ERR_STOPPED ? OUTCOME_STOPPED : OUTCOME_ERROR;
        r->results[i].reason = why->kind == ERR_STOPPED ? "stopped before it started" : r->abort_reason;
    }
}

int results_count(const struct results *r, enum outcome o)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        n += r->results[i].outcome == o;
    return n;
}

/* Returns whether all errors are of this kind. */
static bool all_errors(const struct results *r, const char *wanted)
{
    for (int i = 0; i < r->n; i++) {
        const struct result *x = &r->results[i];
        const char *kind = x->n ? x->attempts[x->n - 1].error_kind : NULL;
        if (x->outcome == OUTCOME_ERROR && (!kind || strcmp(kind, wanted) != 0))
            return false;
    }
    return true;
}

int results_flaky(const struct results *r)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        n += r->results[i].flaky != FLAKY_NOT;
    return n;
}

const char *ci_name(enum ci c)
{
    static const char *const names[] = {"passed", "failure", "error", "skipped"};
    return names[c];
}

enum ci results_ci(const struct results *r, const struct result *x)
{
    static const enum ci undecided[] = {CI_ERROR, CI_FAILURE, CI_SKIPPED};
    if (x->lacking)
        return CI_ERROR;
    if (x->outcome == OUTCOME_PASSED)
        return CI_PASSED;
    if (x->outcome == OUTCOME_FAILED)
        return CI_FAILURE;
    if (x->outcome == OUTCOME_ERROR)
        return CI_ERROR;
    bool skipped =
        x->outcome == OUTCOME_SKIPPED ? x->excused : x->outcome == OUTCOME_CLAIMED && r->accept_claims;
    return skipped ? CI_SKIPPED : undecided[r->undecided];
}

int results_exit_code(const struct results *r)
{
    int n[CI_SKIPPED + 1] = {0};
    for (int i = 0; i < r->n; i++)
        n[results_ci(r, &r->results[i])]++;
    if (r->aborted)
        return (int)r->aborted;
    if (r->stopped || results_count(r, OUTCOME_STOPPED))
        return ERR_STOPPED;
    if (n[CI_FAILURE])
        return ERR_FAILED;
    if (results_count(r, OUTCOME_ERROR))
        return all_errors(r, "model") ? ERR_MODEL : all_errors(r, "suite") ? ERR_USAGE : ERR_ENV;
    if (r->time_over)
        return ERR_TIME;
    return n[CI_ERROR] || (r->suite && results_flaky(r) > r->suite->flaky_max) ? ERR_UNSURE : 0;
}

/* ---- freeing ------------------------------------------------------------------------------------- */

void attempt_free(struct attempt *a)
{
    for (int i = 0; i < a->n_checks; i++) {
        struct check_result *c = &a->checks[i];
        free(c->detail);
        free(c->output);
        for (int k = 0; k < 3; k++)
            free(c->pictures[k]);
    }
    free(a->checks);
    free(a->reused_from);
    free(a->program_of);
    for (int i = 0; i < a->n_script; i++) {
        free(a->script[i].text);
        free(a->script[i].planned);
        free(a->script[i].said);
    }
    free(a->script);
    free(a->answer);
    free(a->did);
    free(a->error);
    free(a->error_kind);
    free(a->run_dir);
    free(a->log);
    free(a->picture);
    *a = (struct attempt){0};
}

void results_free(struct results *r)
{
    for (int i = 0; i < r->n; i++) {
        struct result *x = &r->results[i];
        for (int k = 0; k < x->n; k++)
            attempt_free(&x->attempts[k]);
        free(x->attempts);
        free(x->flaky_where);
    }
    free(r->results);
    free(r->abort_reason);
    *r = (struct results){0};
}
