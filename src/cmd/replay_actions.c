/* replay_actions.c - `holorun replay RUN --actions`: performs the recorded actions without a model.
 *
 * It writes its own run directory, whose report shows both runs side by side, with an image of the
 * differences if the screen differed. */
#include "cmd/replay.h"

#include "base/clock.h"
#include "cli/options.h"
#include "cli/version.h"
#include "replay/diff.h"
#include "replay/perform.h"
#include "run/running.h"
#include "screen/x11/displays.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct acting {
    const struct replay_settings *s;
    const struct record *record;
    char *task;
    struct secrets *secrets; /* NULL: none */
    struct policy *policy;
    struct gate *gate;
    struct screen *screen;
    struct trace *trace;
    struct progress progress;
    struct perform_result result;
    char started[28];
    struct running_own *told;
    char *report;
};

static void scrub(const void *secrets, struct buf *json)
{
    secrets_scrub_json(secrets, json);
}

static int open_secrets(struct acting *a, struct err *e)
{
    const char *task = field_text(a->record->run, "task");
    if (secrets_open(&a->secrets, a->s->secrets, e))
        return -1;
    a->task = secrets_mask(a->secrets, *task ? task : "recorded actions");
    a->progress.secrets = a->secrets;
    return 0;
}

static int open_gate(struct acting *a, struct err *e)
{
    struct confirm confirm = {.seconds = a->s->confirm_timeout};
    if (confirm_parse(a->s->confirm, &confirm, e) || !(a->policy = policy_open(a->s->policy, e)))
        return -1;
    struct gate_options o = {.policy = a->policy,
                             .confirm = confirm,
                             .dry_run = a->s->dry_run,
                             .observe_only = a->s->observe_only,
                             .secrets = a->secrets,
                             .redact = a->s->redact_frames,
                             .task = a->task};
    if ((o.n_hide = zones_read(a->s->hide, "--hide", o.hide, e)) < 0)
        return -1;
    a->gate = gate_new(&o);
    return 0;
}

static int open_screen(struct acting *a, struct err *e)
{
    struct screen_options o = {.display = a->s->display,
                               .view = a->s->view,
                               .cursor = a->s->cursor,
                               .key_delay_ms = a->s->key_delay,
                               .own_key_delay = !isnan(a->s->key_delay),
                               .keymap_settle_ms = a->s->keymap_settle};
    if (!(a->screen = screen_open(&o, e)))
        return -1;
    struct err unwatched = ERR_INIT;
    if (screen_watch(a->screen, &unwatched))
        warn("Escape twice does not stop this (%s); use Ctrl-C", unwatched.text);
    return a->s->dry_run ? 0 : screen_acquire_input(a->screen, e);
}

static int write_run_json(struct acting *a, const char *status, int code, struct err *e)
{
    struct screen_rect v = screen_view(a->screen);
    json_auto_t *run =
        json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:i, s:i, s:i, s:i}, s:{s:s}}", "schema", 1,
                  "version", HOLORUN_VERSION, "task", a->task, "parent", a->record->dir, "started",
                  a->started, "status", status, "display", "name", screen_name(a->screen), "x", v.x, "y", v.y,
                  "w", v.w, "h", v.h, "model", "name", "recorded actions");
    if (code >= 0)
        json_object_set_new(run, "exit", json_integer(code));
    autofree char *text = json_dumps(run, JSON_PRESERVE_ORDER);
    return text ? trace_run_json(a->trace, text, strlen(text), e) : err_set(e, ERR_ENV, "out of memory");
}

static int open_all(struct acting *a, struct err *e)
{
    struct err alone = ERR_INIT;
    if (open_secrets(a, e) || open_gate(a, e) || open_screen(a, e))
        return -1;
    if (!(a->trace = trace_open(a->s->runs, e)))
        return err_set(e, e->kind, "%s; choose another folder for runs with --runs", e->text);
    a->told = running_enter(0, screen_name(a->screen), a->task, a->started, &alone);
    if (!a->told || running_set_dir(a->told, trace_dir(a->trace), &alone))
        warn("holorun stop cannot find this run: %s", alone.text);
    trace_scrub(a->trace, scrub, a->secrets);
    gate_begin(a->gate, a->screen, trace_dir(a->trace));
    return write_run_json(a, "running", -1, e);
}

/* Writes a report that shows both runs side by side. */
static void write_report(struct acting *a)
{
    struct run_diff d;
    struct err e = ERR_INIT;
    if (!a->s->report)
        return;
    a->report = xasprintf("%s/report.html", trace_dir(a->trace));
    if (trace_sync(a->trace, &e) || diff_open(&d, a->record->dir, trace_dir(a->trace), &e)) {
        warn("cannot write the report: %s", e.text);
        free(a->report);
        a->report = NULL;
        return;
    }
    if (diff_page_write(&d, "Recorded actions, performed again", a->report, &e))
        warn("cannot write the report: %s", e.text);
    diff_free(&d);
}

static const char *status_of(const struct acting *a, const struct err *e)
{
    return e->kind == ERR_STOPPED ? "stopped" : performed_name(a->result.end);
}

static void print_json(const struct acting *a, const struct err *e, int code)
{
    const struct perform_result *r = &a->result;
    const struct expected_differences *d = &r->differences;
    json_t *out =
        json_pack("{s:s, s:i, s:i, s:i, s:s?, s:s?}", "status", status_of(a, e), "exit", code, "steps",
                  r->steps, "actions", r->actions, "run_dir", trace_dir(a->trace), "report", a->report);
    if (r->end == PERFORMED_DIFFERS) {
        json_object_set_new(out, "step", json_integer(r->at));
        json_object_set_new(out, "tiles", json_real(d->fraction));
        json_object_set_new(out, "area", json_pack("[i,i,i,i]", d->area.x, d->area.y, d->area.w, d->area.h));
        json_object_set_new(out, "waited_ms", json_real(r->waited_ms));
    }
    if (e->kind)
        json_object_set_new(out, "error", json_string(e->text));
    options_print_json(out, JSON_PRESERVE_ORDER);
}

static void print_outcome(const struct acting *a, const struct err *e, int code)
{
    const struct perform_result *r = &a->result;
    const struct expected_differences *d = &r->differences;
    char text[200];
    if (e->kind)
        fprintf(stderr, "holorun: %s\n", e->text);
    if (a->s->json) {
        print_json(a, e, code);
        return;
    }
    if (r->end == PERFORMED_DIFFERS)
        printf(
            "differs before step %d: %.1f %% of the screen has changed, the limit is %.1f %%; after %.1f s "
            "%d tile%s differ%s, within the %dx%d pixels at %d,%d\n",
            r->at, d->fraction * 100, a->s->threshold * 100, r->waited_ms / 1000, d->tiles,
            d->tiles == 1 ? "" : "s", d->tiles == 1 ? "s" : "", d->area.w, d->area.h, d->area.x, d->area.y);
    snprintf(text, sizeof text, "%d step%s, %d action%s%s", r->steps, r->steps == 1 ? "" : "s", r->actions,
             r->actions == 1 ? "" : "s", a->s->dry_run ? ", no input sent" : "");
    progress_head(&a->progress, "did", text);
    progress_head(&a->progress, "run", trace_dir(a->trace));
    if (a->report)
        progress_head(&a->progress, "see", a->report);
}

static int act(struct acting *a, struct err *e)
{
    const struct replay_settings *s = a->s;
    struct perform_options o = {.record = a->record,
                                .screen = a->screen,
                                .trace = a->trace,
                                .gate = a->gate,
                                .secrets = a->secrets,
                                .progress = &a->progress,
                                .settle = {s->settle_min, s->settle_quiet, s->settle_max},
                                .from = s->from,
                                .to = s->to,
                                .threshold = s->threshold,
                                .speed = s->speed,
                                .dry_run = s->dry_run};
    struct err late = ERR_INIT;
    int code = perform_run(&o, &a->result, e)       ? (int)e->kind
               : a->result.end == PERFORMED_DIFFERS ? ERR_FAILED
                                                    : 0;
    if (write_run_json(a, status_of(a, e), code, &late) && !e->kind)
        code = options_failed(&late);
    write_report(a);
    print_outcome(a, e, code);
    return code;
}

int replay_actions(const struct replay_settings *s, const struct record *r)
{
    struct err e = ERR_INIT, unguarded = ERR_INIT;
    struct acting a = {.s = s, .record = r};
    clock_iso(a.started);
    progress_open(&a.progress, stderr, s->quiet, false);
    displays_authorize(s->display); /* this and the guard must precede the first thread */
    if (!s->dry_run && screen_guard(&unguarded))
        warn("%s", unguarded.text);
    screen_install_signals();
    int code = open_all(&a, &e) ? options_failed(&e) : act(&a, &e);
    running_leave(a.told);
    screen_close(a.screen);
    gate_free(a.gate);
    policy_free(a.policy);
    secrets_free(a.secrets);
    free(a.task);
    if (trace_close(a.trace, &e))
        warn("%s", e.text);
    screen_guard_end();
    free(a.report);
    return code;
}
