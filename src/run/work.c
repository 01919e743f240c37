/* work.c - carries out a run: guard and signals, opening, the agent, the report.  See job.h.
 *
 * The guard is a separate process, forked before there are threads.  A run has a record once everything is
 * open.  However the run ends, the record is completed and the report written before the outcome is printed;
 * an error of the run takes precedence over one of its record. */
#include "run/job.h"

#include "base/clock.h"
#include "model/config.h"
#include "plain/player.h"
#include "run/place.h"
#include "trace/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* seconds for the last answer after a budget is used up; --max-time if that is less */
enum { ANSWER_SECONDS = 120 };

/* Returns whether recorded or plain steps replace the model. */
static bool is_played(const struct job *j)
{
    return j->playback || j->plain || j->planner;
}

static void fill_options(struct job *j, struct agent_options *o)
{
    const struct run_settings *s = &j->s;
    const struct dialect *d = j->dialect;
    const struct policy_limits *limits = policy_limits(j->policy);
    *o = (struct agent_options){
        .task = j->task,
        .dialect = d,
        .llm = j->reused ? j->reused : j->llm,
        .screen = j->screen,
        .trace = j->trace,
        .secrets = j->secrets,
        .gate = j->gate,
        .resume = j->resume.parent ? &j->resume : NULL,
        .progress = &j->progress,
        .window = s->window == 1 ? WINDOW_SAWTOOTH : WINDOW_STRICT,
        .max_images = s->max_images,
        .sampling = {(float)s->temperature, d->top_p, s->reply_tokens},
        .warm_up = j->warm_up,
        .max_steps = s->max_steps,
        .max_seconds = s->max_time,
        .max_tokens = s->max_tokens,
        .max_typed = limits->typed,
        .max_rate = limits->rate,
        .max_errors = limits->errors,
        /* the recorded user may have repeated actions, too */
        .max_repeats = is_played(j) ? 0 : limits->repeats,
        .max_still = is_played(j) ? 0 : limits->no_effect,
        .force_answer = s->force_answer,
        .answer_seconds = s->max_time < ANSWER_SECONDS ? s->max_time : ANSWER_SECONDS,
        .dry_run = s->dry_run,
        .recorded = is_played(j),
        .idle = j->plain && !j->given ? player_idle(j->llm) : NULL,
        .unclear = job_planner_unclear(j),
        .log_tokens = s->log_tokens,
        .human_quiet_ms = 1000 * s->human_quiet,
        .settle = {.min_ms = s->settle_min, .quiet_ms = s->settle_quiet, .max_ms = s->settle_max},
        .think_early = (enum think_early)s->think_early,
        .overseer = j->stepper ? stepper_overseer(j->stepper) : NULL,
        .assist = j->assist,
        .elements = j->tell.read ? &j->tell : NULL,
        .localizer = j->localizer,
        .reads_side = j->model->engine ? engine_config(j->model->engine)->vit.native_side : 0,
        .validator = j->validator.passes ? &j->validator : NULL,
        .next_task = j->host ? j->host->next_task : NULL,
        .next_arg = j->host ? j->host->arg : NULL,
    };
    if (!is_played(j))
        o->demand = j->demand;
}

/* Completes the record after any outcome and writes the report; reports a full disk once.  Returns the exit
 * code. */
static int finish(struct job *j, int code, const struct agent_result *r, struct err *e)
{
    struct err late = ERR_INIT;
    if (job_record(j, agent_status_name(r->status), code, &late) && !e->kind) {
        *e = late;
        code = e->kind;
        if (r->status == AGENT_ANSWERED && !j->s.quiet) /* otherwise job_outcome() prints the reason */
            warn("the record of this run is incomplete: %s", e->text);
    }
    if (!j->s.report)
        return code;
    const char *dir = trace_dir(j->trace);
    j->report = xasprintf("%s/report.html", dir);
    if (trace_sync(j->trace, &late) || report_write(dir, j->report, &late)) {
        if (strcmp(late.text, e->text) != 0)
            warn("cannot write the report: %s", late.text);
        free(j->report);
        j->report = NULL;
    }
    return code;
}

int job_work(struct job *j, struct agent_result *r, struct err *e)
{
    struct agent_options o;
    *r = (struct agent_result){.status = AGENT_FAILED};
    clock_iso(j->started);
    if (job_open(j, e)) {
        r->status = e->kind == ERR_STOPPED   ? AGENT_STOPPED
                    : e->kind == ERR_UNCLEAR ? AGENT_UNCLEAR
                                             : AGENT_FAILED;
        return e->kind ? (int)e->kind : ERR_ENV;
    }
    j->began = true;
    if (j->planner && j->s.dry_run) {
        *r = (struct agent_result){.status = AGENT_DRY_RUN, .answer = job_planner_text(j)};
        return finish(j, 0, r, e);
    }
    fill_options(j, &o);
    job_expect(j, &o);
    progress_head(&j->progress, "task", j->task);
    job_tell_model(j);
    job_tell_canvas(j);
    agent_run(&o, r, e);
    return finish(j, agent_exit_code(r->status, e), r, e);
}

/* Shows the outcome in the step window, unless the user stopped the run. */
static void tell_stepper(const struct job *j, const struct agent_result *r, const struct err *e)
{
    bool done = r->status == AGENT_ANSWERED;
    const char *why = e->kind ? e->text : agent_status_meaning(r->status);
    if (j->stepper && j->began && r->status != AGENT_STOPPED)
        stepper_ended(j->stepper, done ? "Done" : "Ended", done && r->answer ? r->answer : why);
}

static int work_guarded(struct job *j, struct agent_result *r, struct err *e)
{
    struct err unguarded = ERR_INIT;
    if (!j->s.dry_run && screen_guard(&unguarded)) /* before there are threads */
        warn("%s", unguarded.text);
    screen_install_signals();
    return job_work(j, r, e);
}

int job_run(struct job *j)
{
    struct err e = ERR_INIT;
    struct agent_result r = {.status = AGENT_FAILED};
    progress_open(&j->progress, stderr, j->s.quiet, j->s.verbose);
    int code = place_settle(&j->s, &j->desk, &e) ? (int)e.kind : work_guarded(j, &r, &e);
    job_outcome(j, &r, &e, code);
    tell_stepper(j, &r, &e);
    agent_result_free(&r);
    return code;
}
