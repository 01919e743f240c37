/* attempt_steps.c - performs a task: by a model, or a list of steps. */
#include "qa/run/attempt_impl.h"

#include "gate/redact.h"
#include "plain/player.h"
#include "trace/status.h"

#include <stdlib.h>

/* ---- a task in steps ----------------------------------------------------------------------------- */

/* Takes over the outcomes of steps that were performed without a model. */
static void note_plain(struct attempt_state *s, int first)
{
    static const enum step_end ends[] = {[PLAYER_NOT_RUN] = STEP_NOT_RUN,
                                         [PLAYER_DONE] = STEP_DONE,
                                         [PLAYER_NOT_FOUND] = STEP_NOT_FOUND,
                                         [PLAYER_NOT_DONE] = STEP_FAILED,
                                         [PLAYER_UNREAD] = STEP_UNREAD};
    int n = 0;
    const struct player_outcome *o = s->job.llm ? player_outcomes(s->job.llm, &n) : NULL;
    for (int i = 0; i < n; i++) {
        struct step_result *step = &s->out->script[first + i];
        step->end = ends[o[i].end];
        step->said = *o[i].text ? xstrdup(o[i].text) : NULL;
        step->seconds = o[i].seconds;
    }
}

/* Notes how the model ended a step. */
static void note_model(struct attempt_state *s, struct step_result *step, double seconds)
{
    const struct status_row *row = status_find(s->out->status);
    enum status_verdict v = row ? row->verdict : STATUS_BREAKS;
    step->end = v == STATUS_SAYS_DONE || v == STATUS_UNCONFIRMED      ? STEP_DONE
                : v == STATUS_SAYS_INFEASIBLE || v == STATUS_REJECTED ? STEP_FAILED
                                                                      : STEP_NOT_RUN;
    step->said = s->out->answer ? xstrdup(s->out->answer) : NULL;
    step->seconds = s->out->seconds - seconds;
}

/* Makes the step that failed the reason of the attempt, unless there is another one. */
static void blame_step(struct attempt_state *s)
{
    const struct step_result *step = attempt_failed_step(s->out);
    if (!step || s->out->error)
        return;
    autofree char *why = xasprintf("%s:%d: step %d of %d, %.200s: %s", s->run->suite->path, step->line,
                                   (int)(step - s->out->script) + 1, s->out->n_script, step->text,
                                   step->said ? step->said : step_end_name(step->end));
    if (step->end == STEP_UNREAD)
        attempt_error(s->out, "elements", why);
    else
        s->out->error = xstrdup(why);
}

/* Returns the index after the steps of the same sentence. */
static int end_of_sentence(const struct test *t, int first)
{
    int end = first + 1;
    while (end < t->n_script && t->script[end].of && t->script[end].of_line == t->script[first].of_line)
        end++;
    return end;
}

/* Plans a sentence and performs its steps, or performs those that the attempt before has planned.  Returns
 * the index after its steps. */
static int run_planned(struct attempt_state *s, int first)
{
    const struct attempt *before = s->order->planned;
    const char *steps = before && first < before->n_script ? before->script[first].planned : NULL;
    struct step_result *out = &s->out->script[first];
    struct plain_steps given;
    double seconds = s->out->seconds;
    int end = end_of_sentence(s->test, first);
    if (steps && plain_parse(steps, &given, NULL) == 0) {
        attempt_job(s, steps, &given, false);
        out->planned = xstrdup(steps);
        plain_free(&given);
    } else {
        attempt_job(s, s->test->script[first].of, NULL, true);
        out->planned = job_planner_steps(&s->job);
    }
    note_model(s, out, seconds);
    for (int i = first + 1; i < end; i++)
        s->out->script[i].end = out->end;
    return end;
}

/* Performs the steps from one on up to the next one of the other kind, with or without a model. Returns the
 * index after them. */
static int run_steps(struct attempt_state *s, int first)
{
    const struct test *t = s->test;
    const struct test_step *step = &t->script[first];
    double before = s->out->seconds;
    if (s->order->freezes && (test_step_is_planned(step) || (step->of && step->of_line == s->order->again)))
        return run_planned(s, first);
    if (step->plain < 0) {
        attempt_job(s, step->text, NULL, false);
        note_model(s, &s->out->script[first], before);
        return first + 1;
    }
    int end = first;
    autobuf words = buf_of(SUITE_MAX_TEXT + 1);
    for (; end < t->n_script && t->script[end].plain >= 0 &&
           !(s->order->freezes && end > first && t->script[end].of != step->of);
         end++)
        buf_printf(&words, "%s%s", end > first ? ";\n" : "", t->script[end].text);
    const struct plain_steps given = {t->plain.s + step->plain, end - first};
    attempt_job(s, words.data, &given, false);
    note_plain(s, first);
    return end;
}

void attempt_task(struct attempt_state *s)
{
    const struct test *t = s->test;
    struct attempt *a = s->out;
    if (!t->n_script) {
        attempt_job(s, t->task, NULL, false);
        return;
    }
    s->covered = s->run->settings->redact_frames ? redact_new() : NULL;
    a->script = xcalloc((unsigned long)t->n_script, sizeof *a->script);
    a->n_script = t->n_script;
    for (int i = 0; i < t->n_script; i++)
        a->script[i] = (struct step_result){
            .line = t->script[i].line, .text = xstrdup(t->script[i].text), .proof = test_step_proves(t, i)};
    for (int i = 0, done = 1; done && i < t->n_script && !a->error;) {
        int next = run_steps(s, i);
        for (; i < next; i++)
            done = done && a->script[i].end == STEP_DONE;
    }
    blame_step(s);
}
