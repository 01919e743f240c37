/* observe.c - observe, the first part of a step: captures the screen, for which early.c has waited, and
 * reports the result of the last step to the model. The effect of an action is judged from the screens
 * before and after it. */
#include "agent/private.h"

#include "base/clock.h"
#include "base/json.h"
#include "screen/observed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS_TOLD = 3 }; /* repetitions without effect until the model is informed */

/* Waits until a user of the display is quiet, and records the pause. From the first key, button or motion of
 * a user, no more input is sent, a started action is aborted, and the model is informed; the next screenshot
 * waits for human_quiet_ms of quiet. Returns -1 with e. */
int agent_wait_for_human(struct agent *a, struct err *e)
{
    const struct agent_options *o = a->o;
    const char *what = screen_user_input(o->screen);
    if (!what)
        return 0;
    char text[128];
    snprintf(text, sizeof text, "the user is using the %s; continuing after %g s without input", what,
             o->human_quiet_ms / 1000);
    progress_trouble(o->progress, text);
    int64_t start = clock_ns();
    int rc = screen_wait_for_user(o->screen, o->human_quiet_ms, e);
    a->run.paused_ns += clock_ns() - start;
    a->run.paused_seen_ns = a->run.paused_ns;
    trace_begin(o->trace, a->step.number, "human");
    trace_text(o->trace, "what", what);
    trace_number(o->trace, "ms", clock_ms_since(start));
    return trace_end(o->trace, rc ? NULL : e) || rc ? -1 : 0;
}

int agent_ignore_answers(struct agent *a, struct err *e)
{
    if (a->run.paused_ns == a->run.paused_seen_ns)
        return 0;
    a->run.paused_seen_ns = a->run.paused_ns;
    return screen_wait_for_user(a->o->screen, 0, e);
}

/* Adds the actions of the last reply that were not performed (see calls.h) to the result that the model
 * reads. */
static void tell_dropped(struct agent *a)
{
    const char *dropped = a->outcome.dropped;
    if (dropped)
        agent_set_text(&a->outcome.result,
                       xasprintf("%s%sFurther actions of the reply were not executed: %s", a->outcome.result,
                                 *a->outcome.result ? " " : "", dropped));
}

static int judge_last_step(struct agent *a, struct err *e)
{
    const struct agent_options *o = a->o;
    double tiles = image_tiles_changed(&a->run.before, &a->step.frame, IMAGE_EFFECT_LEVEL);
    bool changed = tiles > 0;
    trace_begin(o->trace, a->step.number - 1, "effect");
    trace_bool(o->trace, "changed", changed);
    trace_number(o->trace, "tiles", tiles);
    if (trace_end(o->trace, e))
        return -1;
    a->outcome.tiles = tiles;
    agent_history_judged(a);
    a->outcome.repeats = changed || o->dry_run ? 0 : a->outcome.repeats;
    if (changed || o->dry_run)
        a->outcome.still = 0;
    else
        a->outcome.still += a->outcome.expects_change;
    if ((o->max_repeats && a->outcome.repeats >= o->max_repeats) ||
        (o->max_still && a->outcome.still >= o->max_still)) {
        a->r->status = AGENT_LOOP;
        return 0;
    }
    if (o->max_repeats && a->outcome.repeats >= REPEATS_TOLD && !a->outcome.failed) {
        agent_set_text(
            &a->outcome.result,
            xasprintf("the same action was performed %d times without visible effect; try another way",
                      a->outcome.repeats));
        a->outcome.failed = true;
    }
    if (!changed && a->outcome.expects_change && !a->outcome.failed && !*a->outcome.result && !o->dry_run)
        agent_set_text(&a->outcome.result, xstrdup(o->dialect->no_effect));
    tell_dropped(a);
    char *lead =
        (a->outcome.failed ? prompt_error : prompt_output)(o->dialect, a->outcome.tool, a->outcome.result, e);
    if (!lead)
        return -1;
    agent_set_text(&a->outcome.lead, lead);
    if (!*a->outcome.result)
        return 0;
    trace_begin(o->trace, a->step.number - 1, "tool_output");
    trace_text(o->trace, "text", a->outcome.result);
    trace_bool(o->trace, "error", a->outcome.failed);
    return trace_end(o->trace, e);
}

int agent_record_observation(struct agent *a, const struct settled *settled, struct err *e)
{
    struct trace *t = a->o->trace;
    uint64_t h = image_hash(&a->step.frame);
    if (trace_frame(t, &a->step.frame, h, &a->step.frame_number, e))
        return -1;
    json_auto_t *window = json_object();
    json_set_text(window, "title", a->step.window.title);
    json_set_text(window, "class", a->step.window.class);
    autofree char *json = json_line(window, 0);
    trace_begin(t, a->step.number, "observe");
    if (a->step.beyond_budget)
        trace_bool(t, "beyond_budget", true);
    trace_int(t, "frame", a->step.frame_number);
    trace_hash(t, "hash", h);
    if (a->step.from)
        trace_int(t, "from", a->step.from); /* a recorded screen, not the current one */
    trace_number(t, "settle_ms", settled->ms);
    trace_text(t, "settle_why", settled->why);
    trace_number(t, "capture_ms", a->step.ms[PHASE_SEE]);
    trace_json(t, "window", json);
    return trace_end(t, e);
}

int agent_record_prompt(struct agent *a, struct err *e)
{
    struct trace *t = a->o->trace;
    a->step.ms[PHASE_READ] = a->step.cost.ms;
    trace_begin(t, a->step.number, "prompt");
    trace_int(t, "tokens_total", a->step.cost.total);
    trace_int(t, "tokens_reused", a->step.cost.reused);
    trace_int(t, "tokens_prefilled", a->step.cost.prefilled);
    trace_int(t, "images", a->step.cost.images);
    trace_bool(t, "cut", a->step.cost.cut);
    trace_text(t, "lead", a->outcome.lead);
    trace_number(t, "ms", a->step.cost.ms);
    return trace_end(t, e);
}

/* Limits settling to the remaining time budget, except before the final answer. A screen that is expected is
 * waited for even if another one has settled. */
struct settle agent_patience(const struct agent *a)
{
    struct settle p = settle_limits(&a->o->settle);
    if (a->o->expects && !a->o->expects(p.arg))
        p.known = NULL;
    else if (a->o->expects)
        p.min_ms = p.max_ms;
    if (a->step.budget == AGENT_RUNNING)
        p.max_ms = fmin(p.max_ms, fmax(1, 1000 * (a->o->max_seconds - agent_seconds(a))));
    return p;
}

/* Warns the user once that the model reads this screenshot scaled down. */
static void tell_large(struct agent *a)
{
    const struct image *im = &a->step.frame;
    int side = a->o->reads_side;
    if (!side || a->run.told_large || (im->w <= side && im->h <= side))
        return;
    struct screen_rect root = screen_root(a->o->screen);
    const char *remedy = im->w == root.w && im->h == root.h
                             ? "click on the window to work on and use --view active, which shows only "
                               "that window"
                             : "make the window smaller";
    autofree char *text =
        xasprintf("the screenshot of %dx%d is larger than the maximum of %d pixels per side of this model: "
                  "small text will be misread; %s, or select another model with --model",
                  im->w, im->h, side, remedy);
    progress_trouble(a->o->progress, text);
    a->run.told_large = true;
}

int agent_see(struct agent *a, const struct settled *settled, struct err *e)
{
    const struct agent_options *o = a->o;
    int64_t start = clock_ns();
    if (screen_capture(o->screen, &a->step.frame, e))
        return -1;
    observed_take(o->screen, &a->step.frame);
    if (agent_place(a, &a->step.place, e))
        return -1;
    gate_redact(o->gate, &a->step.frame); /* hidden from the model too */
    tell_large(a);
    a->step.ms[PHASE_SETTLE] = settled->ms;
    a->step.ms[PHASE_SEE] = clock_ms_since(start);
    struct window_name *w = &a->step.window;
    *w->title = *w->class = 0;
    screen_active_window(o->screen, w->title, sizeof w->title, w->class, sizeof w->class);
    a->step.from = 0;
    if (agent_record_observation(a, settled, e) || (a->run.before.rgb && judge_last_step(a, e)))
        return -1;
    if (a->r->status == AGENT_RUNNING)
        agent_tell_elements(a);
    return 0;
}

int agent_show(struct agent *a, struct err *e)
{
    struct err why = ERR_INIT;
    agent_watch(a);
    int rc = context_observe(a->run.context, a->outcome.lead, &a->step.frame, &a->step.cost, &why);
    if (agent_unwatch(a, e))
        return -1;
    if (rc)
        return err_set(e, why.kind, "%s", why.text);
    return agent_record_prompt(a, e);
}
