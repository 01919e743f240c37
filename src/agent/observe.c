/* observe.c - the first part of a step: wait until the screen rests, look, and say what came of the last
 * step.  Whether an action had an effect is judged here, from the pictures before and after.
 */
#include "agent/private.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { REPEATS_TOLD = 3 };            /* same action, same screen: say so */
static const double tile_level = 3.0; /* a caret blinking or one character typed stays below */

/* What the last step changed, and what the model is told about it. */
static int judge_last_step(struct agent *a, struct err *e)
{
    const struct agent_options *o = a->o;
    double tiles = image_tiles_changed(&a->before, &a->frame, tile_level);
    bool changed = tiles > 0;
    trace_begin(o->trace, a->number - 1, "effect");
    trace_bool(o->trace, "changed", changed);
    trace_number(o->trace, "tiles", tiles);
    if (trace_end(o->trace, e))
        return -1;
    a->tiles = tiles;
    agent_history_judged(a);
    a->repeats = changed || o->dry_run ? 0 : a->repeats;
    if (changed || o->dry_run)
        a->still = 0;
    else
        a->still += a->expects_change;
    if ((o->max_repeats && a->repeats >= o->max_repeats) || (o->max_still && a->still >= o->max_still)) {
        a->r->status = AGENT_LOOP;
        return 0;
    }
    if (a->repeats >= REPEATS_TOLD && !a->failed) {
        agent_set_text(
            &a->result,
            xasprintf("the same action was done %d times without any visible effect; try another way",
                      a->repeats));
        a->failed = true;
    }
    if (!changed && a->expects_change && !a->failed && !*a->result && !o->dry_run)
        agent_set_text(&a->result, xstrdup(o->dialect->no_effect));
    char *lead = (a->failed ? prompt_error : prompt_output)(o->dialect, a->tool, a->result, e);
    if (!lead)
        return -1;
    agent_set_text(&a->lead, lead);
    if (!*a->result)
        return 0;
    trace_begin(o->trace, a->number - 1, "tool_output");
    trace_text(o->trace, "text", a->result);
    trace_bool(o->trace, "error", a->failed);
    return trace_end(o->trace, e);
}

int agent_record_observation(struct agent *a, const struct settled *settled, struct err *e)
{
    struct trace *t = a->o->trace;
    char hash[17];
    struct buf json;
    uint64_t h = image_hash(&a->frame);
    if (trace_frame(t, &a->frame, h, &a->frame_number, e))
        return -1;
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)h);
    buf_init(&json, AGENT_TEXT_MAX);
    buf_puts(&json, "{\"title\": ");
    buf_put_json(&json, a->title, strlen(a->title));
    buf_puts(&json, ", \"class\": ");
    buf_put_json(&json, a->class, strlen(a->class));
    buf_puts(&json, "}");
    trace_begin(t, a->number, "observe");
    if (a->beyond)
        trace_bool(t, "beyond_budget", true);
    trace_int(t, "frame", a->frame_number);
    trace_text(t, "hash", hash);
    if (a->from)
        trace_int(t, "from", a->from); /* the screen of that step, not of now */
    trace_number(t, "settle_ms", settled->ms);
    trace_text(t, "settle_why", settled->why);
    trace_number(t, "capture_ms", a->ms[PHASE_SEE]);
    trace_json(t, "window", json.data);
    buf_free(&json);
    return trace_end(t, e);
}

int agent_record_prompt(struct agent *a, struct err *e)
{
    struct trace *t = a->o->trace;
    a->ms[PHASE_READ] = a->cost.ms;
    trace_begin(t, a->number, "prompt");
    trace_int(t, "tokens_total", a->cost.total);
    trace_int(t, "tokens_reused", a->cost.reused);
    trace_int(t, "tokens_prefilled", a->cost.prefilled);
    trace_int(t, "images", a->cost.images);
    trace_bool(t, "cut", a->cost.cut);
    trace_text(t, "lead", a->lead);
    trace_number(t, "ms", a->cost.ms);
    return trace_end(t, e);
}

/* Waiting for the screen does not outlast the run; before the answer that is asked for then it may. */
static struct settle in_time(const struct agent *a)
{
    struct settle p = a->o->settle;
    double left = fmax(1, 1000 * (a->o->max_seconds - agent_seconds(a)));
    if (a->budget == AGENT_RUNNING && left < (p.max_ms > 0 ? p.max_ms : 3000)) /* the standard one */
        p.max_ms = left;
    return p;
}

/* Waits until the screen rests, looks, and shows it to the model. */
int agent_observe(struct agent *a, struct err *e)
{
    const struct agent_options *o = a->o;
    if (agent_yield(a, e))
        return -1;
    struct settle patience = in_time(a);
    struct settled settled;
    if (screen_settle(o->screen, &patience, &settled, e))
        return -1;
    int64_t start = clock_ns();
    if (screen_capture(o->screen, &a->frame, e) || agent_place(a, &a->place, e))
        return -1;
    gate_redact(o->gate, &a->frame); /* the model does not see it either */
    a->ms[PHASE_SETTLE] = settled.ms;
    a->ms[PHASE_SEE] = clock_ms_since(start);
    *a->title = *a->class = 0;
    screen_active_window(o->screen, a->title, sizeof a->title, a->class, sizeof a->class);
    a->from = 0;
    if (agent_record_observation(a, &settled, e) || (a->before.rgb && judge_last_step(a, e)))
        return -1;
    if (a->r->status != AGENT_RUNNING)
        return 0;
    if (context_observe(a->context, a->lead, &a->frame, &a->cost, e))
        return -1;
    return agent_record_prompt(a, e);
}
