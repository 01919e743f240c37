/* attempt.c - see attempt.h. */
#include "qa/attempt.h"

#include "base/clock.h"
#include "base/file.h"
#include "trace/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMMAND_SECONDS = 300, LOG_BYTES = 16 << 10, MAX_FRAMES = 4 };

struct scene { /* one attempt */
    const struct crew *crew;
    const struct test *test;
    struct attempt *out;
    struct desk *desk;
    struct job job;
    bool job_begun, ended; /* ended: the agent, by itself */
    char *runs, *fake;     /* that its settings speak of */
    int number;            /* of the attempt, from 1 */
    uint64_t dice;
    struct image frames[MAX_FRAMES];
    int n_frames;
};

/* ---- what went wrong -------------------------------------------------------------------------------------- */

static void set_error(struct attempt *a, const char *kind, const char *text)
{
    if (a->error)
        return; /* the first one is the cause */
    a->error = xstrdup(text);
    a->error_kind = xstrdup(kind);
}

/* By what is left of the desk, then by the error: a display that is gone explains all else. */
static void take_error(struct scene *s, const struct err *e)
{
    static const char *const of_desk[] = {
        [DESK_NO_SERVER] = "display", [DESK_NO_WM] = "window manager", [DESK_NO_KEEPER] = "desk"};
    char what[512];
    enum desk_state state = s->desk ? desk_state(s->desk, what, sizeof what) : DESK_WELL;
    if (state < sizeof of_desk / sizeof *of_desk && of_desk[state]) {
        set_error(s->out, of_desk[state], what);
        return;
    }
    switch (e->kind) {
    case ERR_STOPPED:
        set_error(s->out, "stopped", e->text);
        return;
    case ERR_MODEL:
        set_error(s->out, "model", e->text);
        return;
    case ERR_USAGE:
        set_error(s->out, "suite", e->text);
        return;
    default:
        set_error(s->out, s->desk ? "environment" : "desk", e->text);
    }
}

static void look_at_desk(struct scene *s)
{
    char what[512];
    enum desk_state state = desk_state(s->desk, what, sizeof what);
    if (state == DESK_NO_PROGRAM) { /* one that is done was closed, as may be the task */
        s->out->crashed = true;
        if (!s->out->error)
            s->out->error = xstrdup(what);
        return;
    }
    struct err none = ERR_INIT;
    if (state != DESK_WELL && state != DESK_PROGRAM_DONE)
        take_error(s, &none);
}

/* ---- desk and program ------------------------------------------------------------------------------------- */

static int open_desk(struct scene *s, struct err *e)
{
    const struct test *t = s->test;
    const struct desk_options o = {
        .display = t->display, .wm = t->wm, .home = t->home, .dir = t->dir, .env = t->env};
    if (!(s->desk = desk_open(&o, e)) ||
        desk_run_all(s->desk, t->setup, "setup", COMMAND_SECONDS, screen_stop_flag(NULL), e))
        return -1;
    if (!t->start)
        return 0;
    return desk_start(s->desk, t->start, e) ||
           desk_wait_window(s->desk, t->window, t->start_seconds, screen_stop_flag(NULL), e);
}

/* ---- the agent -------------------------------------------------------------------------------------------- */

static char *fake_replies(const struct scene *s)
{
    struct stat st;
    const char *fake = s->crew->fake;
    if (fake && stat(fake, &st) == 0 && S_ISDIR(st.st_mode))
        return xasprintf("%s/%s.txt", fake, s->test->id);
    return fake ? xstrdup(fake) : NULL;
}

/* Settings of the command line, with what the test says in their place. */
static void fill_settings(struct scene *s)
{
    const struct test *t = s->test;
    struct run_settings *r = &s->job.s;
    *r = *s->crew->settings;
    r->display = desk_display(s->desk);
    r->fake = s->fake = fake_replies(s);
    r->runs = s->runs = xasprintf("%s/runs", s->crew->dir);
    r->seed = t->seed + s->dice;
    r->confirm = s->crew->confirm ? s->crew->confirm : test_owns_desktop(t) ? "yes-to-all" : "auto";
    if (t->steps)
        r->max_steps = t->steps;
    if (t->seconds > 0)
        r->max_time = t->seconds;
    if (t->policy)
        r->policy = t->policy;
    if (t->validator)
        r->validator = t->validator;
    for (int i = 0; t->secrets && t->secrets[i] && i < OPTION_LIST_MAX; i++)
        r->secrets[i] = t->secrets[i];
}

static void work(struct scene *s)
{
    struct agent_result r;
    struct err e = ERR_INIT;
    job_begin(&s->job, s->crew->build, s->crew->argc, s->crew->argv);
    s->job_begun = true;
    s->job.model = s->crew->model;
    s->job.among = true;
    s->job.task = xstrdup(s->test->task);
    fill_settings(s);
    if (vault_take(s->crew->vault, s->job.s.secrets, &s->job.secrets, &e)) {
        take_error(s, &e);
        return;
    }
    job_work(&s->job, &r, &e);
    s->out->status = s->job.began ? agent_status_name(r.status) : "";
    s->ended = s->job.began && agent_status_own(r.status);
    s->out->answer = r.answer;
    s->out->steps = r.steps;
    s->out->seconds = r.seconds;
    if (s->job.trace)
        s->out->run_dir = xstrdup(trace_dir(s->job.trace));
    if (e.kind)
        take_error(s, &e);
    else
        look_at_desk(s);
}

/* ---- checks ----------------------------------------------------------------------------------------------- */

static int frames_wanted(const struct test *t)
{
    int n = 0;
    for (int i = 0; i < t->n_checks; i++)
        if (check_by_model(t->checks[i].kind) && t->checks[i].frames > n)
            n = t->checks[i].frames;
    return n <= MAX_FRAMES ? n : MAX_FRAMES + 1;
}

/* What the agent saw last, oldest first; a judge sees the screen of now behind it. */
static void gather_frames(struct scene *s)
{
    int wanted = frames_wanted(s->test) - 1, first = MAX_FRAMES, last = -1;
    struct record r;
    if (wanted < 1 || !s->out->run_dir || trace_sync(s->job.trace, NULL) ||
        record_open(&r, s->out->run_dir, NULL))
        return;
    for (int i = r.n - 1; i >= 0 && MAX_FRAMES - first < wanted; i--) {
        int frame = (int)field_int(r.events[i].fields, "frame");
        if (strcmp(r.events[i].kind, "observe") != 0 || frame == last)
            continue;
        char *path = xasprintf("%s/frames/%06d.png", s->out->run_dir, last = frame);
        if (image_read_png(&s->frames[first - 1], path, NULL) == 0)
            first--;
        free(path);
    }
    record_free(&r);
    s->n_frames = MAX_FRAMES - first;
    memmove(s->frames, s->frames + first, (size_t)s->n_frames * sizeof *s->frames);
}

static int run_checks(struct scene *s)
{
    bool seen = s->job_begun && s->job.screen;
    struct attempt *a = s->out;
    gather_frames(s);
    char *pictures = xasprintf("%s/pictures/%s-%d", s->crew->dir, s->test->id, s->number);
    struct err e = ERR_INIT;
    if (dir_make(pictures, &e))
        warn("%s: no pictures of checks: %s", s->test->id, e.text);
    const struct check_scene scene = {
        .test = s->test,
        .desk = s->desk,
        .screen = seen ? s->job.screen : NULL,
        .gate = seen ? s->job.gate : NULL,
        .answer = a->answer,
        .run_dir = a->run_dir,
        .golden_dir = s->crew->suite->dir,
        .out_dir = e.kind ? NULL : pictures,
        .frames = s->frames,
        .n_frames = s->n_frames,
        .ended = s->ended,
        .update_golden = s->crew->update_golden,
        .judge = s->crew->judge,
        .cancel = screen_stop_flag(NULL),
    };
    int rc = checks_run(&scene, a);
    rmdir(pictures); /* when there are none */
    free(pictures);
    for (int i = 0; i < s->n_frames; i++)
        image_free(&s->frames[i]);
    return rc;
}

/* ---- all of it -------------------------------------------------------------------------------------------- */

/* What the program has written belongs to a result that is not good. */
static void keep_log(struct scene *s)
{
    struct buf log;
    buf_init(&log, LOG_BYTES);
    desk_log(s->desk, &log, LOG_BYTES - 1);
    if (log.len)
        s->out->log = xstrdup(log.data);
    buf_free(&log);
}

static void hide(const struct scene *s, char **text)
{
    char *masked = *text ? secrets_mask(s->job.secrets, *text) : NULL;
    free(*text);
    *text = masked;
}

/* No report has what may not be seen. */
static void hide_secrets(struct scene *s)
{
    struct attempt *a = s->out;
    if (!s->job_begun || !s->job.secrets)
        return;
    hide(s, &a->answer);
    hide(s, &a->error);
    hide(s, &a->log);
    for (int i = 0; i < a->n_checks; i++) {
        hide(s, &a->checks[i].detail);
        hide(s, &a->checks[i].output);
    }
}

static void away(struct scene *s)
{
    struct err e = ERR_INIT;
    hide_secrets(s);
    if (s->job_begun)
        job_close(&s->job);
    if (s->desk && desk_run_all(s->desk, s->test->teardown, "teardown", COMMAND_SECONDS, NULL, &e))
        warn("%s: %s", s->test->id, e.text);
    desk_close(s->desk);
    free(s->runs);
    free(s->fake);
}

void attempt_run(const struct crew *c, const struct test *t, int number, uint64_t dice, struct attempt *out)
{
    struct scene s = {.crew = c, .test = t, .out = out, .number = number, .dice = dice};
    struct err e = ERR_INIT;
    int64_t start = clock_ns();
    bool judged, stopped;
    *out = (struct attempt){.status = "", .outcome = OUTCOME_ERROR};
    int rc = open_desk(&s, &e);
    out->start_seconds = clock_ms_since(start) / 1000;
    if (rc)
        take_error(&s, &e);
    else
        work(&s);
    stopped = out->error_kind && !strcmp(out->error_kind, "stopped");
    if (rc == 0 && s.job.began && !out->error_kind)
        stopped = run_checks(&s) != 0;
    if (s.desk)
        keep_log(&s);
    out->outcome = stopped ? OUTCOME_STOPPED : result_verdict(t, out, &judged);
    away(&s);
}
