/* attempt.c - runs one attempt of a test: desktop, setup, program, agent, checks, teardown. */
#include "qa/run/attempt_impl.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/flag.h"
#include "gate/redact.h"
#include "qa/report/summary.h"
#include "qa/run/kept.h"
#include "trace/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMMAND_SECONDS = 300, LOG_BYTES = (16 << 10) - 64 }; /* reports cut texts at 16 KiB */

/* ---- errors -------------------------------------------------------------------------------------- */

void attempt_error(struct attempt *a, const char *kind, const char *text)
{
    if (a->error)
        return; /* the first error is the cause */
    a->error = xstrdup(text);
    a->error_kind = xstrdup(kind);
}

static void replace_text(char **to, const char *text)
{
    free(*to);
    *to = text ? xstrdup(text) : NULL;
}

/* Records an error. Checks the desktop first, because the loss of the display explains every other error. */
static void record_error(struct attempt_state *s, const struct err *e)
{
    static const char *const of_desk[] = {
        [DESK_NO_SERVER] = "display", [DESK_NO_WM] = "window manager", [DESK_NO_SUPERVISOR] = "desk"};
    char what[512];
    enum desk_state state = s->desk ? desk_state(s->desk, what, sizeof what) : DESK_OK;
    if (state < sizeof of_desk / sizeof *of_desk && of_desk[state]) {
        attempt_error(s->out, of_desk[state], what);
        return;
    }
    const char *kind = e->kind == ERR_STOPPED   ? "stopped"
                       : e->kind == ERR_MODEL   ? "model"
                       : e->kind == ERR_USAGE   ? "suite"
                       : e->kind == ERR_UNCLEAR ? "planner"
                       : s->desk                ? "environment"
                                                : "desk";
    attempt_error(s->out, kind, e->text);
}

static void check_desk_state(struct attempt_state *s)
{
    char what[512];
    enum desk_state state = desk_state(s->desk, what, sizeof what);
    /* it crashed; a program that exited with 0 may have been closed as part of the task */
    if (state == DESK_NO_PROGRAM) {
        s->out->crashed = true;
        if (!s->out->error)
            s->out->error = xstrdup(what);
        return;
    }
    struct err none = ERR_INIT;
    if (state != DESK_OK && state != DESK_PROGRAM_DONE)
        record_error(s, &none);
}

/* Saves the output of setup or program; if it did not fit into the buffer, from the first complete line. */
static void save_log(struct attempt_state *s, struct buf *log)
{
    for (char *p = log->data; (p = memchr(p, 0, log->len - (size_t)(p - log->data)));)
        *p = ' ';
    char *end = log->len + 1 >= log->max ? strchr(log->data, '\n') : NULL;
    if (log->len && !s->out->log)
        s->out->log = end ? xasprintf("[earlier output is left out]\n%s", end + 1) : xstrdup(log->data);
}

/* ---- desktop and program ------------------------------------------------------------------------- */

/* Waits for the checks of `wait_until`. */
static int wait_until(const struct attempt_state *s, struct err *e)
{
    const struct test *t = s->test;
    const struct screen_options o = {.display = desk_display(s->desk)};
    struct screen *screen = t->n_waits ? screen_open(&o, e) : NULL;
    const struct check_context context = {.test = t,
                                          .desk = s->desk,
                                          .screen = screen,
                                          .golden_dir = s->run->suite->dir,
                                          .cancel = screen_stop_flag(NULL)};
    int rc = t->n_waits && !screen ? -1 : 0;
    for (int i = 0; i < t->n_waits && rc == 0; i++)
        rc = check_wait(&context, &t->waits[i], e);
    screen_close(screen);
    return rc;
}

static bool uses_elements(const struct suite_run *run, const struct test *t)
{
    return t->elements && run->settings->elements;
}

enum { DISPLAY_S = 20 }; /* least timeout for the start of a display */

struct desk *attempt_open_desk(const struct suite_run *run, const struct test *t, struct err *e)
{
    const char **of_program = t->reuse == REUSE_PROGRAM ? kept_env(t) : NULL;
    const struct desk_options o = {.display = t->display,
                                   .wm = t->wm,
                                   .home = t->home,
                                   .dir = t->dir,
                                   .env = of_program ? of_program : t->env,
                                   .no_elements = !uses_elements(run, t),
                                   .seconds = t->start_timeout > DISPLAY_S ? t->start_timeout : DISPLAY_S};
    struct desk *d = desk_open(&o, e);
    free(of_program);
    return d;
}

static int run_setup(struct attempt_state *s, struct err *e)
{
    autobuf said = buf_of(LOG_BYTES);
    int rc =
        desk_run_all(s->desk, s->test->setup, "setup", COMMAND_SECONDS, screen_stop_flag(NULL), &said, e);
    if (rc)
        save_log(s, &said);
    return rc;
}

/* Starts the program and waits for a window whose title matches; NULL: for any. */
static int start_program(const struct attempt_state *s, const char *window, struct err *e)
{
    const struct test *t = s->test;
    int rc = desk_start(s->desk, t->start, e);
    return rc ? rc : desk_wait_window(s->desk, window, t->start_timeout, screen_stop_flag(NULL), e);
}

/* Brings a program that stays open between tests to the beginning of this one. */
static int reset_program(struct attempt_state *s, struct err *e)
{
    const struct test *t = s->test;
    desk_set_env(s->desk, t->env);
    return run_setup(s, e) ||
                   desk_wait_window(s->desk, t->window, t->start_timeout, screen_stop_flag(NULL), e)
               ? -1
               : wait_until(s, e);
}

/* Forgets a program that an earlier test has left in a state that the setup cannot reset. */
static void drop_kept(struct attempt_state *s, struct err *e)
{
    warn("%s: a new program is started, because that of %s cannot be reset: %s", s->test->id,
         s->out->program_of, e->text);
    desk_close(s->desk);
    s->desk = NULL;
    replace_text(&s->out->program_of, NULL);
    replace_text(&s->out->log, NULL);
    *e = (struct err)ERR_INIT;
}

/* Takes the program of an earlier test, or opens a new one, which has the same setup. */
static int open_kept(struct attempt_state *s, struct err *e)
{
    const struct test *t = s->test, *from = NULL;
    s->desk = s->order->kept ? kept_take(s->order->kept, t, &from) : NULL;
    if (from) {
        s->out->program_of = xstrdup(from->id);
        desk_clear_log(s->desk);
        int rc = reset_program(s, e);
        if (rc == 0 || flag_up(screen_stop_flag(NULL)))
            return rc;
        drop_kept(s, e);
    }
    s->desk = attempt_open_desk(s->run, t, e);
    return s->desk && start_program(s, NULL, e) == 0 ? reset_program(s, e) : -1;
}

static int open_desk(struct attempt_state *s, struct err *e)
{
    const struct test *t = s->test;
    if (t->reuse == REUSE_PROGRAM)
        return open_kept(s, e);
    s->desk = s->order->desk ? s->order->desk : attempt_open_desk(s->run, t, e);
    if (!s->desk || run_setup(s, e) || (t->start && start_program(s, t->window, e)))
        return -1;
    return wait_until(s, e);
}

/* ---- the agent ----------------------------------------------------------------------------------- */

static char *fake_replies(const struct attempt_state *s)
{
    struct stat st;
    const char *fake = s->test->recording ? s->test->recording : s->run->fake;
    if (fake && stat(fake, &st) == 0 && S_ISDIR(st.st_mode))
        return xasprintf("%s/%s.txt", fake, s->test->id);
    return fake ? xstrdup(fake) : NULL;
}

/* Copies the command line's settings and applies the test's keys, which override them. */
static void fill_settings(struct attempt_state *s)
{
    const struct test *t = s->test;
    struct run_settings *r = &s->job.s;
    bool plain = s->job.given != NULL;
    *r = *s->run->settings;
    r->display = desk_display(s->desk);
    r->fake = plain ? NULL : s->fake;
    if (t->recording || plain) /* whatever dialect the other tests of the suite use */
        r->dialect = NULL;
    r->runs = s->runs;
    r->seed = t->seed + s->order->seed_offset;
    r->confirm = s->run->confirm ? s->run->confirm : test_owns_desktop(t) ? "yes-to-all" : "auto";
    r->max_steps = plain ? 0 : t->steps ? t->steps : r->max_steps;
    if (t->timeout > 0)
        r->max_time = t->timeout;
    r->max_time = r->max_time > s->out->seconds + 0.1 ? r->max_time - s->out->seconds : 0.1;
    r->settle_quiet = isnan(t->settle_quiet) ? r->settle_quiet : t->settle_quiet;
    r->settle_min = isnan(t->settle_min) ? r->settle_min : t->settle_min;
    r->key_delay = isnan(t->key_delay) ? r->key_delay : t->key_delay;
    r->elements = uses_elements(s->run, t);
    if (t->elements_text)
        r->elements_text = t->elements_text;
    if (t->policy)
        r->policy = t->policy;
    if (t->validator)
        r->validator = t->validator;
    r->validator = plain ? 0 : r->validator;
    for (int i = 0; t->secrets && t->secrets[i] && i < OPTION_LIST_MAX; i++)
        r->secrets[i] = t->secrets[i];
}

void attempt_job(struct attempt_state *s, const char *task, const struct plain_steps *given, bool plans)
{
    struct agent_result r;
    struct err e = ERR_INIT;
    if (s->job_begun) /* for earlier steps of the task */
        job_close(&s->job);
    job_begin(&s->job, s->run->build, s->run->argc, s->run->argv);
    s->job_begun = true;
    s->job.model = s->run->model;
    s->job.among = true;
    s->job.unseen = test_owns_desktop(s->test);
    s->job.covered = s->covered;
    s->job.task = xstrdup(task);
    s->job.given = given;
    fill_settings(s);
    char *reuse = s->passed ? xasprintf("%s/%d", s->passed, s->n_jobs) : NULL;
    s->job.reuse = reuse;
    s->job.s.planner = plans ? JOB_PLAIN_ONLY : JOB_PLAIN_NO;
    s->job.proposals = plans && test_owns_desktop(s->test);
    if (secret_store_copy(s->run->secret_store, s->job.s.secrets, &s->job.secrets, &e)) {
        record_error(s, &e);
        free(reuse);
        return;
    }
    job_work(&s->job, &r, &e);
    s->out->reused += job_reused(&s->job);
    s->news = s->news || !job_reused_whole(&s->job);
    if (s->job.reused && !s->out->reused_from)
        s->out->reused_from = xstrdup(s->passed_from);
    free(reuse);
    s->out->status = s->job.began ? agent_status_name(r.status) : "";
    s->ended = s->job.began && agent_status_own(r.status);
    replace_text(&s->out->answer, r.answer);
    replace_text(&s->said, r.said);
    replace_text(&s->out->did, r.did);
    s->out->steps += r.steps;
    s->out->cancelled += r.cancelled.turns;
    s->out->seconds += r.seconds;
    replace_text(&s->out->run_dir, s->job.trace ? trace_dir(s->job.trace) : NULL);
    s->job_dirs = xrealloc(s->job_dirs, (unsigned long)s->n_jobs + 1, sizeof *s->job_dirs);
    s->job_dirs[s->n_jobs++] = s->out->run_dir ? xstrdup(s->out->run_dir) : NULL;
    agent_result_free(&r);
    if (e.kind)
        record_error(s, &e);
    else
        check_desk_state(s);
}

/* ---- checks -------------------------------------------------------------------------------------- */

static int frames_needed(const struct test *t)
{
    int n = 0;
    for (int i = 0; i < t->n_checks; i++)
        if (check_evidence(t->checks[i].kind) == BY_MODEL && t->checks[i].frames > n)
            n = t->checks[i].frames;
    return n;
}

/* Loads the last distinct frames of the run, oldest first. A judge sees the current screen after them. */
static void load_frames(struct attempt_state *s)
{
    int numbers[MAX_FRAMES], wanted = frames_needed(s->test) - 1, n = 0;
    if (wanted > 0 && s->out->run_dir && !trace_sync(s->job.trace, NULL))
        n = artifact_last_frames(s->out->run_dir, numbers, wanted);
    for (int i = 0; i < n; i++) {
        autofree char *path = artifact_frame(s->out->run_dir, numbers[i]);
        s->n_frames += image_read_png(&s->frames[s->n_frames], path, NULL) == 0;
    }
}

static int run_checks(struct attempt_state *s)
{
    bool seen = s->job_begun && s->job.screen;
    struct attempt *a = s->out;
    load_frames(s);
    struct err e = ERR_INIT;
    if (dir_make(s->pictures, &e))
        warn("%s: no pictures of checks: %s", s->test->id, e.text);
    const struct check_context context = {
        .test = s->test,
        .desk = s->desk,
        .screen = seen ? s->job.screen : NULL,
        .gate = seen ? s->job.gate : NULL,
        .answer = s->said ? s->said : a->answer,
        .run_dir = a->run_dir,
        .golden_dir = s->run->suite->dir,
        .out_dir = e.kind ? NULL : s->pictures,
        .frames = s->frames,
        .n_frames = s->n_frames,
        .ended = s->ended,
        .update_golden = s->run->update_golden,
        .judge = s->run->judge,
        .cancel = screen_stop_flag(NULL),
    };
    int rc = checks_run(&context, a);
    rmdir(s->pictures); /* fails unless the directory is empty */
    for (int i = 0; i < s->n_frames; i++)
        image_free(&s->frames[i]);
    return rc;
}

/* ---- the end ------------------------------------------------------------------------------------- */

/* Captures the screen with hidden areas painted over. Before the run --hide cannot be applied, but no secret
 * has been typed yet. */
static int capture(const struct attempt_state *s, struct image *out)
{
    if (s->job.began) {
        int rc = screen_capture(s->job.screen, out, NULL);
        gate_redact(s->job.gate, out);
        return rc;
    }
    const struct screen_options o = {.display = desk_display(s->desk)};
    struct screen *own = *s->run->settings->hide ? NULL : screen_open(&o, NULL);
    int rc = own ? screen_capture(own, out, NULL) : -1;
    screen_close(own);
    return rc;
}

static bool is_last_frame(const struct attempt_state *s, const struct image *now)
{
    struct image last = {0};
    int number;
    if (artifact_last_frames(s->out->run_dir, &number, 1) < 1)
        return false;
    autofree char *path = artifact_frame(s->out->run_dir, number);
    bool same = image_read_png(&last, path, NULL) == 0 && image_equal(&last, now);
    image_free(&last);
    return same;
}

/* Saves the screen after failed checks or a window that did not open; errors are ignored. */
static void save_final_screen(struct attempt_state *s)
{
    struct image now = {0};
    char what[8];
    if (s->out->outcome == OUTCOME_PASSED || s->out->outcome == OUTCOME_STOPPED || !s->desk ||
        desk_state(s->desk, what, sizeof what) == DESK_NO_SERVER ||
        (s->job.trace && trace_sync(s->job.trace, NULL)))
        return;
    if (capture(s, &now) == 0 && !is_last_frame(s, &now) && dir_make(s->pictures, NULL) == 0) {
        s->out->picture = xasprintf("%s/end.png", s->pictures);
        if (image_write_png(&now, s->out->picture, NULL)) {
            free(s->out->picture);
            s->out->picture = NULL;
        }
    }
    image_free(&now);
}

static void mask(const struct attempt_state *s, char **text)
{
    char *masked = *text ? secret_store_mask(s->run->secret_store, *text) : NULL;
    free(*text);
    *text = masked;
}

/* Replaces secrets in all texts, including those that a setup printed before the run. */
static void mask_secrets(struct attempt_state *s)
{
    struct attempt *a = s->out;
    mask(s, &a->answer);
    mask(s, &a->error);
    mask(s, &a->log);
    for (int i = 0; i < a->n_script; i++)
        mask(s, &a->script[i].said);
    for (int i = 0; i < a->n_checks; i++) {
        mask(s, &a->checks[i].detail);
        mask(s, &a->checks[i].output);
    }
}

/* Returns whether the desktop may serve the next test: a failed one may have left it in any state. */
static bool may_keep(const struct attempt_state *s)
{
    char what[8];
    return s->desk && s->order->kept && s->test->reuse == REUSE_PROGRAM &&
           s->out->outcome == OUTCOME_PASSED && desk_state(s->desk, what, sizeof what) == DESK_OK;
}

static void tear_down(struct attempt_state *s)
{
    struct err e = ERR_INIT;
    mask_secrets(s);
    if (s->job_begun)
        job_close(&s->job);
    passed_keep(s);
    redact_free(s->covered);
    if (s->desk && desk_run_all(s->desk, s->test->teardown, "teardown", COMMAND_SECONDS, NULL, NULL, &e))
        warn("%s: %s", s->test->id, e.text);
    if (e.kind == ERR_NONE && may_keep(s))
        kept_give(s->order->kept, s->desk, s->test);
    else
        desk_close(s->desk);
    free(s->runs);
    free(s->fake);
    free(s->said);
    free(s->pictures);
    passed_forget(s);
    for (int i = 0; i < s->n_jobs; i++)
        free(s->job_dirs[i]);
    free(s->job_dirs);
}

/* ---- the attempt --------------------------------------------------------------------------------- */

void attempt_run(const struct suite_run *run, const struct test *t, const struct attempt_order *o,
                 struct attempt *out)
{
    struct attempt_state s = {.run = run, .test = t, .out = out, .order = o};
    struct err e = ERR_INIT;
    int64_t start = clock_ns();
    bool judged, stopped;
    *out = (struct attempt){.status = "", .outcome = OUTCOME_ERROR};
    s.fake = fake_replies(&s);
    s.runs = xasprintf("%s/runs/%s", run->dir, t->id);
    s.pictures = xasprintf("%s/pictures/%s-%d", run->dir, t->id, o->number);
    passed_find(&s);
    int rc = open_desk(&s, &e);
    out->start_seconds = clock_ms_since(start) / 1000;
    if (o->started)
        o->started(o->arg);
    if (rc)
        record_error(&s, &e);
    else
        attempt_task(&s);
    stopped = out->error_kind && !strcmp(out->error_kind, "stopped");
    if (rc == 0 && s.job.began && !out->error_kind)
        stopped = run_checks(&s) != 0;
    autobuf log = buf_of(LOG_BYTES);
    if (s.desk)
        desk_log(s.desk, &log, LOG_BYTES - 1);
    save_log(&s, &log);
    out->outcome = stopped ? OUTCOME_STOPPED : result_outcome(t, out, &judged);
    save_final_screen(&s);
    tear_down(&s);
}
