/* work.c - a run in its own thread; see host.h.
 *
 * The first run that needs the model opens it; all later runs share it.  A run waits up to LEAVING_MS for an
 * earlier run of this process to leave the display; after that the lock of the display decides. */
#include "host/private.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/lock.h"
#include "cli/recorded.h"
#include "replay/interrupted.h"

#include <stdlib.h>
#include <string.h>

enum { LEAVING_MS = 5000 };

/* ---- callbacks of the run ------------------------------------------------------------------------------ */

static void opened(void *arg, struct screen *s)
{
    struct work *w = arg;
    LOCKED(&w->host->lock);
    w->screen = s;
    w->screen_flag = screen_stop_flag(s);
    if (flag_up(&w->stop))
        screen_stop(s, STOP_HOST);
}

static void hear(void *arg, const char *json, size_t len)
{
    struct work *w = arg;
    json_t *event = json_loadb(json, len, 0, NULL);
    if (!event)
        return;
    if (w->kind == WORK_HAND)
        hand_hear(w, event);
    const char *kind = json_string_value(json_object_get(event, "kind"));
    if (kind && !strcmp(kind, "start"))
        json_object_set_new(event, "dir", json_string(trace_dir(w->job->trace)));
    host_tell(w, event);
}

/* Returns the event of a question, with a text for the user: one line per known fact. */
static json_t *question_of(const struct work *w, const struct confirm_question *q, int n)
{
    autobuf text = buf_of(HOST_TEXT_MAX);
    for (int i = 0; i < q->n_lines; i++)
        buf_printf(&text, "%s%s: %s", i ? "\n" : "", q->lines[i].name, q->lines[i].text);
    autofree char *masked = host_mask(w->host, text.data); /* a window's title may hold a secret */
    json_t *question = json_loads(q->json, 0, NULL), *all = json_string(masked);
    return json_pack("{s:s, s:i, s:o, s:o}", "kind", "question", "n", n, "text", all ? all : json_string("?"),
                     "question", question ? question : json_null());
}

static enum confirm_answer ask(void *arg, const struct confirm_question *q, double seconds,
                               const volatile int *stop)
{
    struct work *w = arg;
    int64_t start = clock_ns();
    enum confirm_answer answer = CONFIRM_TIMED_OUT;
    pthread_mutex_lock(&w->host->lock);
    int n = ++w->asked;
    pthread_mutex_unlock(&w->host->lock);
    host_tell(w, question_of(w, q, n));
    pthread_mutex_lock(&w->host->lock);
    while (w->answered < n && clock_ms_since(start) < 1000 * seconds && !flag_up(stop) && work_wait(w))
        ;
    if (w->answered >= n)
        answer = w->answer;
    else if (flag_up(stop) || work_stopping(w))
        answer = CONFIRM_STOPPED;
    w->answered = n; /* rejects later answers */
    pthread_mutex_unlock(&w->host->lock);
    host_tell(w, json_pack("{s:s, s:i}", "kind", "question_over", "n", n));
    return answer;
}

/* Adds the actions, as text and as a list, and the model's own words if the answer differs from them. */
static void add_deeds(json_t *event, const struct agent_result *r)
{
    if (r->did)
        json_object_set_new(event, "did", json_string(r->did));
    if (r->deeds)
        json_object_set_new(event, "actions", json_loads(r->deeds, 0, NULL));
    if (r->said)
        json_object_set_new(event, "said", json_string(r->said));
}

static char *next_task(void *arg, const struct agent_result *r)
{
    struct work *w = arg;
    int64_t start = clock_ns();
    char *task = NULL;
    json_t *event =
        json_pack("{s:s, s:s, s:s?, s:s, s:i}", "kind", "idle", "status", agent_status_name(r->status),
                  "answer", r->answer, "meaning", agent_status_meaning(r->status), "steps", r->steps);
    add_deeds(event, r);
    host_tell(w, event);
    LOCKED(&w->host->lock);
    while (!w->next_task && !w->finish && clock_ms_since(start) < 1000.0 * HOST_IDLE_S && work_wait(w))
        ;
    if (w->next_task && !work_stopping(w)) {
        task = host_mask(w->host, w->next_task);
        free(w->next_task);
        w->next_task = NULL;
    }
    return task;
}

/* ---- preparation --------------------------------------------------------------------------------------- */

/* Returns whether an earlier run of this process has the display.  The caller holds the lock. */
static bool display_busy(struct work *w)
{
    bool busy = false;
    for (const struct work *o = w->host->works; o && !busy; o = o->next)
        busy = o != w && o->order < w->order && o->kind <= WORK_HAND && !o->ending;
    return busy;
}

static void wait_for_display(struct work *w)
{
    int64_t start = clock_ns();
    LOCKED(&w->host->lock);
    while (display_busy(w) && clock_ms_since(start) < LEAVING_MS && work_wait(w))
        ;
}

static int open_model(struct work *w, struct err *e)
{
    struct host *h = w->host;
    int rc = 0;
    while (pthread_mutex_trylock(&h->model_lock)) { /* another run is opening the model */
        if (work_stopping(w))
            return err_set(e, ERR_STOPPED, "stopped by the program that started it");
        clock_sleep_ms(HOST_LOOK_MS);
    }
    if (!h->model_open) {
        rc = job_model_find(&h->model, h->settings, e) ||
                     job_model_open(&h->model, h->settings, &w->stop, true, e)
                 ? -1
                 : 0;
        h->model_open = rc == 0;
        if (rc)
            job_model_close(&h->model);
    }
    pthread_mutex_unlock(&h->model_lock);
    return rc;
}

static int copy_secrets(struct work *w, struct job *j, struct err *e)
{
    const struct host *h = w->host;
    for (int i = 0; i < h->n_secrets; i++) {
        if (!j->secrets)
            j->secrets = secrets_new();
        if (secrets_add_copy(j->secrets, h->settings->secrets[i], h->secrets[i], e))
            return -1;
    }
    return 0;
}

/* Reads the conversation of the earlier run that the task continues.  Returns -1 with e. */
static int read_resumed(struct work *w, struct job *j, struct err *e)
{
    if (!w->resume)
        return 0;
    return recorded_open(&j->record, w->resume, j->s.runs, e) || timeline_open(&j->timeline, &j->record, e) ||
                   interrupted_continue(&j->resume, &j->timeline, j->task, e)
               ? -1
               : 0;
}

static int prepare(struct work *w, struct job *j, struct err *e)
{
    const struct host *h = w->host;
    job_begin(j, h->build, h->argc, h->argv);
    j->s = *h->settings;
    j->covered = h->covered;
    if (w->max_steps)
        j->s.max_steps = w->max_steps;
    j->among = true;
    if (w->kind == WORK_HAND) {
        j->s.dialect = HAND_DIALECT;
        j->s.localizer = j->s.force_answer = false;
        j->s.validator = 0;
        j->s.fake = NULL;
    } else if (!j->s.fake) {
        if (open_model(w, e))
            return -1;
        j->model = &w->host->model;
    }
    if (job_read_task(j, w->task, e))
        return -1;
    return copy_secrets(w, j, e) || read_resumed(w, j, e) ? -1 : 0;
}

/* ---- the run ------------------------------------------------------------------------------------------- */

static json_t *done_event(const struct job *j, const struct agent_result *r, const struct err *e, int code)
{
    const char *why = e->kind ? e->text : NULL;
    json_t *event =
        json_pack("{s:s, s:i, s:s, s:s?, s:s?, s:s, s:i, s:f, s:s?, s:s?}", "kind", "done", "code", code,
                  "status", agent_status_name(r->status), "answer", r->answer, "error", why, "meaning",
                  agent_status_meaning(r->status), "steps", r->steps, "seconds", r->seconds, "run_dir",
                  j->trace ? trace_dir(j->trace) : NULL, "report", j->report);
    if (r->limit)
        json_object_set_new(event, "limit", json_string(r->limit));
    add_deeds(event, r);
    return event;
}

static json_t *run(struct work *w)
{
    const struct job_host hooks = {.arg = w,
                                   .opened = opened,
                                   .event = hear,
                                   .ask = ask,
                                   .decide = w->kind == WORK_HAND ? hand_open : NULL,
                                   .next_task = w->stays ? next_task : NULL};
    struct job j;
    struct err e = ERR_INIT;
    struct agent_result r = {.status = AGENT_FAILED};
    int code;
    wait_for_display(w);
    if (prepare(w, &j, &e)) {
        code = (int)e.kind;
        r.status = e.kind == ERR_STOPPED ? AGENT_STOPPED : AGENT_FAILED;
    } else {
        progress_open(&j.progress, stderr, j.s.quiet, j.s.verbose);
        j.host = &hooks;
        w->job = &j;
        code = job_work(&j, &r, &e);
        w->job = NULL;
    }
    json_t *event = done_event(&j, &r, &e, code);
    pthread_mutex_lock(&w->host->lock);
    w->screen = NULL;
    w->screen_flag = NULL;
    pthread_mutex_unlock(&w->host->lock);
    agent_result_free(&r);
    job_close(&j);
    return event;
}

void *work_main(void *arg)
{
    struct work *w = arg;
    json_t *event = w->kind <= WORK_HAND ? run(w) : look_done(w);
    pthread_mutex_lock(&w->host->lock);
    w->ending = true;
    pthread_cond_broadcast(&w->host->changed);
    pthread_mutex_unlock(&w->host->lock);
    host_tell(w, event);
    return NULL;
}
