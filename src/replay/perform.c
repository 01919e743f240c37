/* perform.c - repeats the actions of a recorded run, without a model. */
#include "replay/perform.h"

#include "actions/registry.h"
#include "agent/record.h"
#include "base/clock.h"
#include "replay/expected.h"
#include "screen/exec.h"
#include "screen/observed.h"
#include "trace/index.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_LIMIT = 4 << 20, PATIENCE_MS = 3000 /* longest wait for the recorded screen */ };

struct performing {
    const struct perform_options *o;
    struct perform_result *r;
    struct frame_index index;
    struct expected expected;
    struct image now;
    struct view_transform place;
    int64_t start, first; /* clock_ns() at the start, and of the first recorded step */
};

static bool is_wanted(const struct perform_options *o, const struct story_step *s)
{
    return s->number >= o->from && (!o->to || s->number <= o->to) && !s->beyond_budget && s->nactions;
}

/* Waits until the same time after the start as in the recorded run, divided by `speed`. */
static int keep_pace(struct performing *p, const struct story_step *s, struct err *e)
{
    int64_t then = field_int(s->observe, "t_mono_ns");
    if (!p->first)
        p->first = then;
    if (p->o->speed <= 0 || then <= p->first)
        return 0;
    double ms = (double)(then - p->first) / 1e6 / p->o->speed - clock_ms_since(p->start);
    return ms > 0 ? screen_wait(p->o->screen, ms, e) : 0;
}

static int capture_screen(struct performing *p, struct err *e)
{
    struct screen *x = p->o->screen;
    if (screen_capture(x, &p->now, e))
        return -1;
    observed_take(x, &p->now);
    gate_redact(p->o->gate, &p->now); /* the recorded screenshots are redacted too */
    struct screen_rect view = screen_view(x);
    p->place = (struct view_transform){view.x, view.y, (double)view.w / p->now.w, (double)view.h / p->now.h};
    return 0;
}

/* Loads the recorded screenshot of a step. A step that was decided from an earlier step's screenshot has
 * none. */
static int load_expected(struct performing *p, const struct story_step *s, struct err *e)
{
    struct image then = {0};
    struct err why = ERR_INIT;
    if (field_int(s->observe, "from"))
        return 0;
    if (s->frame < 0 || (index_image(&p->index, p->o->record, s->frame, &then, &why), !then.rgb))
        return err_set(e, ERR_ENV, "step %d has no screenshot to compare with%s%s", s->number,
                       *why.text ? ": " : "", why.text);
    expected_next(&p->expected, &then);
    return 0;
}

/* Waits for the recorded screen and captures it. If the last action had a visible effect in the record, the
 * wait ends when the screen shows that effect; otherwise nothing on the screen tells when the program is
 * done, so the screen must also settle. A screen that has settled and differs is given the rest of PATIENCE
 * to change. */
static int await_screen(struct performing *p, bool own, struct settled *total, struct expected_differences *d,
                        struct err *e)
{
    const struct settle *usual = &p->o->settle;
    const double most = usual->max_ms > 0 ? usual->max_ms : PATIENCE_MS;
    bool tells = own && expected_tells(&p->expected), settles = true;
    int64_t start = clock_ns();
    for (;;) {
        struct settle limits = *usual;
        struct settled settled;
        double left = fmax(1, most - clock_ms_since(start));
        limits.known = tells || !settles ? expected_shown : NULL;
        limits.arg = &p->expected;
        if (!settles)
            limits.min_ms = limits.max_ms = left; /* only the recorded screen ends this wait earlier */
        if (screen_settle(p->o->screen, &limits, &settled, e) || capture_screen(p, e))
            return -1;
        *d = own ? expected_compare(&p->expected, &p->now) : (struct expected_differences){0};
        *total = (struct settled){clock_ms_since(start), settled.why};
        bool same = d->fraction <= p->o->threshold, late = clock_ms_since(start) >= most;
        if (same && (settles || tells || late))
            return 0;
        if (!same && late)
            return 0;
        settles = same; /* the screen came late, and nothing tells that it is complete */
    }
}

static int record_screen(struct performing *p, int number, const struct settled *settled, double tiles,
                         struct err *e)
{
    struct trace *t = p->o->trace;
    uint64_t h = image_hash(&p->now);
    int frame;
    if (trace_frame(t, &p->now, h, &frame, e))
        return -1;
    trace_begin(t, number, "observe");
    trace_int(t, "frame", frame);
    trace_hash(t, "hash", h);
    trace_number(t, "settle_ms", settled->ms);
    trace_text(t, "settle_why", settled->why);
    trace_number(t, "differs", tiles);
    return trace_end(t, e);
}

/* Compares the screen with the recorded screenshot. */
static int compare_screen(struct performing *p, const struct story_step *s, bool *same, struct err *e)
{
    struct settled settled;
    struct expected_differences d;
    if (keep_pace(p, s, e) || load_expected(p, s, e) ||
        await_screen(p, !field_int(s->observe, "from"), &settled, &d, e) ||
        record_screen(p, s->number, &settled, d.fraction, e))
        return -1;
    *same = d.fraction <= p->o->threshold;
    if (!*same) {
        p->r->end = PERFORMED_DIFFERS;
        p->r->differences = d;
        p->r->waited_ms = settled.ms;
    }
    return 0;
}

/* Applies the rules, as in a run. An action that they reject ends the replay. */
static int pass_gate(struct performing *p, int number, int index, const struct action *a, struct err *e)
{
    struct gate_ruling ruling;
    if (!p->o->gate)
        return 0;
    if (gate_decide(p->o->gate, a, &p->place, number, false, &ruling, e) ||
        record_ruling(p->o->trace, number, index, &ruling, ruling.pass, ruling.pass ? NULL : ruling.told, e))
        return -1;
    return ruling.pass ? 0 : err_set(e, ERR_FAILED, "step %d was not allowed: %s", number, ruling.told);
}

static int execute(struct performing *p, int number, int index, const struct action *a, struct err *e)
{
    struct trace *t = p->o->trace;
    struct exec_result done = {0};
    struct err why = ERR_INIT;
    enum action_fault fault = FAULT_NONE;
    if (trace_sync(t, e))
        return -1;
    if (!p->o->dry_run)
        fault = p->o->gate ? gate_execute(p->o->gate, a, &p->place, &done, &why)
                           : action_execute(p->o->screen, a, &p->place, &done, &why);
    if (p->o->gate && !p->o->dry_run &&
        (fault == FAULT_NONE || action_is(a->kind, ACTION_HOLDS | ACTION_FOCUS)))
        gate_action_done(p->o->gate, a);
    trace_begin(t, number, "exec");
    trace_int(t, "index", index);
    trace_bool(t, "ok", fault == FAULT_NONE);
    if (fault != FAULT_NONE)
        trace_text(t, "error", why.text);
    else if (done.unsure)
        trace_text(t, "unsure", done.unsure);
    trace_int(t, "events", done.events);
    trace_number(t, "ms", done.ms);
    if (trace_end(t, e))
        return -1;
    p->r->actions += fault == FAULT_NONE;
    return fault == FAULT_NONE ? 0 : err_set(e, why.kind, "step %d: %s", number, why.text);
}

static int perform_action(struct performing *p, const struct story_step *s, int index, struct err *e)
{
    struct action a;
    autofree char *json = json_dumps(s->actions[index].action, JSON_PRESERVE_ORDER);
    if (!json || action_from_json(json, strlen(json), &a, e))
        return err_set(e, ERR_ENV, "the record of step %d is damaged: no action", s->number);
    autobuf canonical = buf_of(TEXT_LIMIT);
    int rc = record_action(p->o->trace, p->o->progress, s->number, index, &a, &canonical, e);
    if (rc == 0 && !action_ends_run(a.kind))
        rc = pass_gate(p, s->number, index, &a, e) || execute(p, s->number, index, &a, e) ? -1 : 0;
    action_free(&a);
    return rc;
}

static bool has_secret(const struct secrets *s, const char *name, size_t len)
{
    for (int i = 0; i < secrets_count(s); i++)
        if (strlen(secrets_name(s, i)) == len && !memcmp(secrets_name(s, i), name, len))
            return true;
    return false;
}

/* Returns the first step of the range that types the secret with this name; 0: none. */
static int step_that_types(const struct perform_options *o, const struct story *s, const char *name,
                           size_t len)
{
    autofree char *braced = xasprintf("{{%.*s}}", (int)len, name);
    int step = 0;
    for (int i = 0; i < s->n && !step; i++)
        for (int k = 0; k < s->steps[i].nactions && is_wanted(o, &s->steps[i]); k++) {
            const struct story_action *a = &s->steps[i].actions[k];
            if (!*a->failure && action_is(registry_kind(field_text(a->action, "kind")), ACTION_TYPES) &&
                strstr(field_text(a->action, "text"), braced))
                step = s->steps[i].number;
        }
    return step;
}

/* Checks, before any input, that the values of all secrets are known: otherwise the name of a secret would be
 * typed. */
static int check_secrets(const struct perform_options *o, const struct story *s, struct err *e)
{
    const json_t *specs = json_object_get(json_object_get(o->record->run, "settings"), "secret");
    for (size_t i = 0; i < json_array_size(specs) && i < SECRETS_MAX && !o->dry_run; i++) {
        const char *spec = json_string_value(json_array_get(specs, i));
        size_t len = spec ? strcspn(spec, "=") : 0;
        if (!len || len > SECRET_NAME || has_secret(o->secrets, spec, len))
            continue;
        int step = step_that_types(o, s, spec, len);
        if (step)
            return err_set(e, ERR_USAGE,
                           "step %d types the secret %.*s; pass it with --secret %.*s=env:VARIABLE", step,
                           (int)len, spec, (int)len, spec);
    }
    return 0;
}

static int perform_step(struct performing *p, const struct story_step *s, struct err *e)
{
    bool same;
    const char *thought = field_text(s->step, "thought");
    progress_thought(p->o->progress, s->number, thought);
    p->r->at = s->number;
    if (p->o->gate)
        gate_set_thought(p->o->gate, thought);
    if (compare_screen(p, s, &same, e))
        return -1;
    trace_begin(p->o->trace, s->number, "step");
    trace_text(p->o->trace, "thought", thought);
    if (*field_text(s->step, "note"))
        trace_text(p->o->trace, "note", field_text(s->step, "note"));
    if (trace_end(p->o->trace, e) || !same)
        return same ? -1 : 0;
    for (int i = 0; i < s->nactions; i++)
        if (!*s->actions[i].failure && perform_action(p, s, i, e))
            return -1;
    p->r->steps++;
    return trace_sync(p->o->trace, e);
}

const char *performed_name(enum performed end)
{
    static const char *const names[] = {"replayed", "differs", "failed"};
    return names[end];
}

static int record_end(struct performing *p, const char *error, struct err *e)
{
    struct trace *t = p->o->trace;
    trace_begin(t, p->r->at, "end");
    trace_text(t, "status", performed_name(p->r->end));
    if (error)
        trace_text(t, "error", error);
    return trace_end(t, e) || trace_sync(t, e) ? -1 : 0;
}

int perform_run(const struct perform_options *o, struct perform_result *r, struct err *e)
{
    struct performing p = {
        .o = o, .r = r, .expected = {.threshold = o->threshold, .gate = o->gate}, .start = clock_ns()};
    struct story s;
    *r = (struct perform_result){0};
    if (index_open(&p.index, o->record, e))
        return -1;
    story_make(&s, o->record);
    int rc = 0, last = s.n ? s.steps[s.n - 1].number : 0;
    if (o->from > last)
        rc = err_set(e, ERR_USAGE, "the run has %d steps; step %d does not exist", last, o->from);
    if (rc == 0)
        rc = check_secrets(o, &s, e);
    for (int i = 0; i < s.n && rc == 0 && r->end == PERFORMED_ALL; i++)
        if (is_wanted(o, &s.steps[i]))
            rc = perform_step(&p, &s.steps[i], e);
    screen_release_all(o->screen);
    r->end = rc ? PERFORMED_FAILED : r->end;
    if (record_end(&p, rc ? e->text : NULL, rc ? NULL : e))
        rc = -1;
    story_free(&s);
    index_free(&p.index);
    expected_free(&p.expected);
    image_free(&p.now);
    return rc;
}
