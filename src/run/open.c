/* open.c - opens the parts of a run, in order: secrets, gate, dialect, screen, stepper, model, run directory;
 * and closes them.  See job.h.
 *
 * Parts that open quickly or are likely to fail come first, the model, which may take minutes, near the end.
 * The run directory is created last, so that a run without a model leaves none. */
#include "run/job.h"

#include "atspi/elements.h"
#include "atspi/refs.h"
#include "checkpoint/find.h"
#include "cli/shared_options.h"
#include "model/config.h"
#include "record/playback.h"
#include "run/place.h"
#include "run/running.h"
#include "screen/x11/displays.h"
#include "text/tokenizer.h"

#include "base/clock.h"
#include "pocket/assist.h"
#include "remote/llm_remote.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- secrets, rules, hidden zones ------------------------------------------------------------ */

/* Masks secrets in an event, and the key of an endpoint, which a server may repeat. */
static void scrub(const void *job, struct buf *json)
{
    const struct job *j = job;
    secrets_scrub_json(j->secrets, json);
    if (j->model->endpoint && j->model->endpoint->key)
        secrets_scrub_json(j->model->endpoint->key, json);
}

/* Opens the secrets and masks their values in the task, which the model sees.  Returns -1 with e. */
static int open_secrets(struct job *j, struct err *e)
{
    if (!j->secrets && secrets_open(&j->secrets, j->s.secrets, e))
        return -1;
    if (!j->secrets)
        return 0;
    char *task = secrets_mask(j->secrets, j->task);
    if (j->resume.task == j->task) /* the resume data borrow the task */
        j->resume.task = task;
    free(j->task);
    j->task = task;
    j->progress.secrets = j->secrets;
    return 0;
}

/* Returns whether the run is the only one of its process, or has a host.  One of several runs prints no
 * general warnings. */
static bool is_alone(const struct job *j)
{
    return !j->among || j->host;
}

/* Starts the reader of the display's accessibility bus.  One of several runs on the user's own display does
 * without, unless its steps need it: there may be hundreds of them. */
static void open_elements(struct job *j)
{
    if (j->s.elements && (is_alone(j) || j->given || !displays_same(j->s.display, NULL)))
        j->elements = elements_open(j->s.display);
}

int job_confirm(const struct job *j, struct confirm *out, struct err *e)
{
    *out = (struct confirm){.seconds = j->s.confirm_timeout};
    if (confirm_parse(j->s.confirm, out, e))
        return -1;
    if (out->method == CONFIRM_HOST && !j->host)
        return err_set(e, ERR_USAGE, "--confirm caller works only with holorun mcp");
    if (j->host && (out->method == CONFIRM_AUTO || out->method == CONFIRM_HOST))
        *out = (struct confirm){
            .method = CONFIRM_HOST, .seconds = out->seconds, .ask = j->host->ask, .arg = j->host->arg};
    return 0;
}

static int open_gate(struct job *j, struct err *e)
{
    struct confirm confirm;
    open_elements(j);
    if (job_confirm(j, &confirm, e) || !(j->policy = policy_open(j->s.policy, e)))
        return -1;
    struct gate_options o = {.policy = j->policy,
                             .confirm = confirm,
                             .dry_run = j->s.dry_run,
                             .observe_only = j->s.observe_only,
                             .secrets = j->secrets,
                             .redact = j->s.redact_frames,
                             .covered = j->covered,
                             .task = j->task};
    job_name_elements(j, &o);
    if ((o.n_hide = zones_read(j->s.hide, "--hide", o.hide, e)) < 0)
        return -1;
    j->gate = gate_new(&o);
    return 0;
}

/* ---- playback of a recording instead of a model ----------------------------------------------- */

/* Prepares a recording that replaces the model: it has its own dialect, uses no localizer or validator, and
 * takes as many steps as it needs.  Returns -1 with e. */
static int open_playback(struct job *j, struct err *e)
{
    j->playback = j->s.fake && playback_is(j->s.fake);
    if (!j->playback)
        return 0;
    if ((j->s.dialect && strcmp(j->s.dialect, PLAYBACK_DIALECT) != 0) || j->s.localizer || j->s.validator)
        return err_set(e, ERR_USAGE,
                       "'%s' is a recording: --dialect, --localizer and --validator need a model", j->s.fake);
    j->s.dialect = PLAYBACK_DIALECT;
    if (!j->s.max_steps && !j->s.dry_run)
        j->s.max_steps = PLAYBACK_STEPS;
    return 0;
}

/* ---- the model's side ------------------------------------------------------------------------ */

int job_model_find(struct job_model *m, const struct run_settings *s, struct err *e)
{
    struct model_config c;
    if (ENDPOINT_GIVEN(*s))
        return 0;
    if (!(m->dir = model_find(s->model, e)))
        return -1;
    return config_load(&c, m->dir, e) || config_check_vision(&c, m->dir, e) ? -1 : 0;
}

int job_model_open(struct job_model *m, const struct run_settings *s, const volatile int *stop, bool share,
                   struct err *e)
{
    if (ENDPOINT_GIVEN(*s)) {
        struct endpoint_options at = ENDPOINT_AT(*s);
        at.open_s = s->max_time;
        return (m->endpoint = endpoint_open(&at, stop, e)) ? 0 : -1;
    }
    struct engine_options o = MODEL_ENGINE(*s);
    o.dir = m->dir;
    o.cancel = stop;
    o.shared = share;
    if (!(m->engine = engine_open(&o, e)))
        return -1;
    if (job_fit_canvas(m, s, e))
        return -1;
    const char *odd = chat_template_warning(engine_chat(m->engine));
    if (odd)
        warn("%s", odd);
    odd = s->verbose ? tokenizer_check(engine_tokenizer(m->engine)) : NULL;
    if (odd)
        warn("%s", odd);
    int large = model_hash_weights(m->dir, MODEL_HASH_MOST, &m->hash, e);
    m->hashed = large == 0;
    return large < 0 ? -1 : 0;
}

void job_model_close(struct job_model *m)
{
    engine_close(m->engine);
    endpoint_free(m->endpoint);
    free(m->dir);
    *m = (struct job_model){0};
}

int job_model_replace(struct job_model *m, const struct run_settings *s, const char *dir, struct err *e)
{
    struct job_model fresh = {0};
    struct run_settings of = *s;
    of.model = dir;
    if (!m->engine)
        return err_set(e, ERR_USAGE, "cannot load other weights: the model is not in this process, but %s",
                       m->endpoint ? "behind an address" : "replaced by replies from a file");
    if (job_model_find(&fresh, &of, e) || job_model_open(&fresh, &of, screen_stop_flag(NULL), true, e)) {
        job_model_close(&fresh);
        return -1;
    }
    job_model_close(m);
    *m = fresh;
    return 0;
}

static int open_dialect(struct job *j, struct err *e)
{
    bool decided = j->host && j->host->decide;
    if (open_playback(j, e) || job_open_plain(j, e) || job_open_planner(j, e))
        return -1;
    bool steps = j->plain || j->planner;
    bool lacking = !decided && !j->s.fake && !steps && !j->model->dir && !j->model->endpoint;
    if ((lacking && job_model_find(&j->own, &j->s, e)) ||
        (lacking && ENDPOINT_GIVEN(j->s) && job_model_open(&j->own, &j->s, screen_stop_flag(NULL), false, e)))
        return -1;
    if (j->s.dialect)
        j->dialect_source = xstrdup(j->s.dialect);
    else
        j->dialect_source = j->model->dir        ? dialect_for_model(j->model->dir, e)
                            : j->model->endpoint ? xstrdup(endpoint_dialect(j->model->endpoint))
                                                 : xstrdup("holo3");
    j->dialect = j->dialect_source ? dialect_load(j->dialect_source, e) : NULL;
    if (!j->dialect)
        return -1;
    job_resolve(j);
    int most = j->model->endpoint ? endpoint_max_images(j->model->endpoint) : 0;
    j->s.max_images = most && most < j->s.max_images ? most : j->s.max_images;
    if (j->s.localizer && !*j->dialect->ground)
        return err_set(e, ERR_USAGE,
                       "--localizer: dialect '%s' cannot ask for a position (it has no key 'ground')",
                       j->dialect->name);
    if (is_alone(j) && !dialect_describes(j->dialect))
        warn("dialect '%s' does not describe click targets: rules about elements see only the model's "
             "thought and titles of dialogs%s",
             j->dialect->name, j->elements ? ", and accessible names" : "");
    return 0;
}

static int keep_exchange(void *arg, const char *json, size_t n)
{
    const struct job *j = arg;
    return j->trace ? trace_exchange(j->trace, json, n, NULL) : 0;
}

/* Returns a new conversation with the model of this process, or with the one behind the endpoint. */
static struct llm *conversation(struct job *j)
{
    uint64_t id[2];
    char name[40];
    if (!j->model->endpoint) {
        if (j->model->max_pixels)
            j->s.max_pixels = j->model->max_pixels;
        llm_fit_dialect(j->dialect, j->model->engine);
        return llm_local(j->model->engine, j->dialect, j->s.seed);
    }
    if (getrandom(id, sizeof id, 0) != sizeof id)
        id[0] = (uint64_t)clock_ns();
    snprintf(name, sizeof name, "%016llx%016llx", (unsigned long long)id[0], (unsigned long long)id[1]);
    struct llm *m = llm_remote(j->model->endpoint, j->dialect, j->s.seed, name);
    llm_remote_log(m, keep_exchange, j);
    return m;
}

static int open_llm(struct job *j, struct err *e)
{
    bool open = j->model->engine || j->model->endpoint;
    if (j->host && j->host->decide)
        j->llm = j->host->decide(j->host->arg);
    else if (j->plain)
        j->llm = job_plain_llm(j);
    else if (j->planner)
        j->llm = job_planner_llm(j);
    else if (j->playback)
        j->llm = playback_open(j->s.fake, j->screen, j->secrets, e);
    else if (j->s.fake)
        j->llm = llm_script_file(j->s.fake, e);
    else if (open || job_model_open(&j->own, &j->s, screen_stop_flag(j->screen), false, e) == 0)
        j->llm = conversation(j);
    if (!j->llm)
        return -1;
    llm_set_cancel(j->llm, screen_stop_flag(j->screen));
    struct engine *engine = j->s.assist && llm_session(j->llm) ? j->model->engine : NULL;
    return pocket_assist_open(&j->assist, engine, j->dialect, screen_stop_flag(j->screen), e);
}

/* Returns a second conversation with the same model or script. */
static struct llm *partner(void *arg, struct err *e)
{
    struct job *j = arg;
    return j->s.fake ? llm_script_share(j->llm) : conversation(j);
}

static void open_partners(struct job *j)
{
    j->validator = (struct validator){j->s.validator, j->s.max_validations, partner, j};
    j->localizer = j->s.localizer ? partner(j, NULL) : NULL;
}

/* ---- the screen's side ----------------------------------------------------------------------- */

static int open_screen(struct job *j, struct err *e)
{
    const struct screen_options o = {.pause_on_user = j->s.pause_on_human,
                                     .corner_stop = policy_limits(j->policy)->corner_stop,
                                     .key_delay_ms = j->s.key_delay,
                                     .own_key_delay = !isnan(j->s.key_delay),
                                     .keymap_settle_ms = j->s.keymap_settle};
    if (!(j->screen = place_screen(&j->s, o, e)))
        return -1;
    if (j->elements)
        screen_set_is_field(j->screen, job_is_field, j);
    if (j->host)
        j->host->opened(j->host->arg, j->screen);
    struct err unwatched = ERR_INIT;
    int deaf = screen_watch(j->screen, &unwatched);
    if (!j->s.dry_run && screen_acquire_input(j->screen, e))
        return -1;
    if (!j->s.dry_run && !deaf)
        deaf = screen_watch_check(j->screen, &unwatched);
    if (deaf && unwatched.kind != ERR_STOPPED)
        warn("Escape twice does not stop this run (%s); use Ctrl-C or holorun stop%s", unwatched.text,
             j->s.pause_on_human ? "; the run does not pause for the user's input" : "");
    const struct dialect *d = j->dialect;
    struct screen_rect view = screen_view(j->screen);
    if (is_alone(j) && d->screen_w && (view.w != d->screen_w || view.h != d->screen_h))
        warn("this model was trained on screens of %dx%d, this one is %dx%d: expect errors, or select a "
             "window of that size with --view",
             d->screen_w, d->screen_h, view.w, view.h);
    return 0;
}

/* Opens the stepper; breakpoints need --step.  On a private desktop without viewers the step window would not
 * be visible, so it opens on the user's display.  Returns -1 with e. */
static int open_stepper(struct job *j, struct err *e)
{
    bool unseen = j->unseen || (j->desk && !on_desk_address(j->desk));
    if (!j->s.step && *j->s.breaks)
        j->s.step = "auto";
    if (!j->s.step)
        return 0;
    const char *display = j->s.ui_display || !j->desk ? j->s.ui_display : getenv("DISPLAY");
    const struct step_where where = {.out = stderr,
                                     .quiet = j->s.quiet,
                                     .insists = j->s.ui_display != NULL,
                                     .unseen = unseen && !(display && *display),
                                     .window = {.captured = screen_name(j->screen),
                                                .view = screen_view(j->screen),
                                                .display = display && *display ? display : NULL}};
    return (j->stepper = stepper_open(j->s.step, j->s.breaks, &where, e)) ? 0 : -1;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

/* Registers the run for `holorun stop`; a run that shares its process gets an entry of its own, in addition
 * to that of the process. */
static void tell_others(struct job *j)
{
    struct err e = ERR_INIT;
    int session = j->among ? screen_number(j->screen) : 0;
    autofree char *dir = j->trace ? realpath(trace_dir(j->trace), NULL) : NULL;
    if (!j->told)
        j->told = running_enter(session, screen_name(j->screen), j->task, j->started, &e);
    if (!j->told || (dir && running_set_dir(j->told, dir, &e)))
        warn("holorun stop cannot find this run: %s", e.text);
}

/* Opens all parts; see job.h.  The screen precedes the model, so that a missing or occupied display is
 * reported at once. */
int job_open(struct job *j, struct err *e)
{
    if (job_check_task(j, e) || open_secrets(j, e) || open_gate(j, e) || open_dialect(j, e) ||
        job_tell_elements(j, e) || open_screen(j, e) || open_stepper(j, e))
        return -1;
    tell_others(j);
    if (open_llm(j, e))
        return -1;
    open_partners(j);
    job_open_reuse(j);
    if (!(j->trace = trace_open(j->s.runs, e)))
        return err_set(e, e->kind, "%s; choose another folder for runs with --runs", e->text);
    tell_others(j);
    trace_scrub(j->trace, scrub, j);
    if (j->host)
        trace_listen(j->trace, j->host->event, j->host->arg);
    gate_begin(j->gate, j->screen, trace_dir(j->trace));
    return job_record(j, "running", -1, e);
}

void job_close(struct job *j)
{
    struct err e = ERR_INIT;
    screen_close(j->screen);
    on_desk_close(j->desk);
    running_leave(j->told);
    if (trace_close(j->trace, &e))
        warn("%s", e.text);
    job_plain_free(j);
    job_planner_free(j);
    assist_free(j->assist);
    llm_free(j->localizer);
    llm_free(j->reused);
    llm_free(j->llm);
    job_model_close(&j->own);
    interrupted_free(&j->resume);
    timeline_free(&j->timeline);
    record_free(&j->record);
    stepper_free(j->stepper);
    gate_free(j->gate);
    elements_close(j->elements);
    refs_free(j->refs);
    secrets_free(j->secrets);
    policy_free(j->policy);
    if (j->dialect)
        dialect_free(j->dialect);
    progress_close(&j->progress);
    free(j->dialect_source);
    free(j->report);
    for (int i = 0; i < j->argc; i++)
        free(j->argv[i]);
    free(j->argv);
    free(j->task);
}
